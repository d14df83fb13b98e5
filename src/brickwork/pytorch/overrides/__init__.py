"""Other kernels in place of the ones that PyTorch has for an operator: `bw.override`."""
