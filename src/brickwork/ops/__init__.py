"""Ready-made operators, written with the public API alone."""
