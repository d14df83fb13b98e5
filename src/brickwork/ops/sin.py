"""The sine of every element."""

import math

import torch

import brickwork as bw


@bw.op("brickwork::sin")
def sin(x: torch.Tensor) -> torch.Tensor:
    """Return the sine of every element.

    out[index] = sin(x[index])

    Shapes: any x -> the shape of x, and its type if that is a floating-point type: then the result keeps strides that
    are dense. Of integers and truth values the result has torch's default dtype and is contiguous.

    Source: the elementwise function of every numerical library.
    """
    if x.is_floating_point():  # noqa: SIM108  # only a statement may choose what is allocated
        out = torch.empty_like(x)
    else:
        out = torch.empty(x.shape)
    for index in bw.indices(x):
        out[index] = math.sin(x[index])
    return out
