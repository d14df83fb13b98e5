"""Operators that launch kernels written elsewhere: `bw.cuda_op` and `bw.triton_op`."""
