"""From scheduled IR to LLVM and object code."""
