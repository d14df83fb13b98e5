"""What may be written inside a kernel, with its meaning in plain Python."""
