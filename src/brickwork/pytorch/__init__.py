"""The only use of torch by the compiler: schemas, registration, fakes, dispatch."""
