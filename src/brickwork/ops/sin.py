"""The sine of every element."""

import math

import torch

import brickwork as bw


@bw.op("brickwork::sin")
def sin(x: torch.Tensor) -> torch.Tensor:
    """Return the sine of every element of a floating-point tensor.

    out[index] = sin(x[index])

    Shapes: any x -> the shape and the type of x; any strides, which the result keeps if they are dense.

    Source: the elementwise function of every numerical library.
    """
    out = torch.empty_like(x)
    for index in bw.indices(x):
        out[index] = math.sin(x[index])
    return out
