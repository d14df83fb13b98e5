"""torch.compile of the formulations in tensor operations, for the very sizes of the case."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks.peers import torch_formulations
from benchmarks.peers.torch_loops import gradients_of
from brickwork.bench.timers import Call

_LABEL = "torch.compile"
torch._dynamo.config.recompile_limit = 256  # noqa: SLF001  # it has no other name; past it, code runs eager in silence


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled for the sizes that it is called with; what is not compiled whole is refused."""
    return torch.compile(function, dynamic=False, fullgraph=True)


def _compiled(function: Callable[..., Tensor], *arguments: object) -> dict[str, Call]:
    return {_LABEL: functools.partial(compiled(function), *arguments)}


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Fuse the indices into the gather, and the gather into the copy."""

    def filled(tile: Tensor, image: Tensor) -> Tensor:
        return image.copy_(torch_formulations.brick_pad(tile, *image.shape, origin, shift_x, shift_y))

    return _compiled(filled, tile, image)


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Compile the formulation with conv1d; complex numbers of the Fourier transform are not compiled."""
    return _compiled(torch_formulations.timex, w, k, eps)


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> dict[str, Call]:
    """Compile the backward of the formulation with conv1d."""
    return {_LABEL: gradients_of(compiled(torch_formulations.timex), w, k, gradient)}


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Compile the sine into a given tensor."""
    return _compiled(_sin, x, out)


def _sin(x: Tensor, out: Tensor) -> Tensor:
    return out.copy_(torch.sin(x))


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Fuse the generator with the rest."""
    return _compiled(torch_formulations.sample_normal, mu, sigma, n)


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Compile the product and sum."""
    return _compiled(torch_formulations.sample_shared, mu, sigma, z)


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Fuse all additions into one kernel."""
    return _compiled(_sum, *tensors)


def _sum(*tensors: Tensor) -> Tensor:
    return torch_formulations.sum_of(tensors)
