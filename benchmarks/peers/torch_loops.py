"""torch as it is: its formulations in tensor operations, run one by one, and through the Fourier transform."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.peers import torch_formulations
from brickwork.bench.timers import Call


def pad(tile: Tensor, image: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]) -> dict[str, Call]:
    """Gather; the indices are computed at each call, as the lattice may be another one.

    On a GPU also by a table of coordinates, which takes seconds on a CPU.
    """
    lattice = (origin, shift_x, shift_y)
    found: dict[str, Call] = {"torch": lambda: image.copy_(torch_formulations.brick_pad(tile, *image.shape, *lattice))}
    if tile.is_cuda:
        table = torch_formulations.pixel_table(*image.shape, tile.device)
        found["torch, by a table"] = lambda: image.copy_(torch_formulations.brick_pad_by_table(table, tile, *lattice))
    return found


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve through conv1d, and through the Fourier transform."""
    return {
        "torch FFT": lambda: torch_formulations.timex_fourier(w, k, eps),
        "torch conv1d": lambda: torch_formulations.timex(w, k, eps),
    }


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> dict[str, Call]:
    """Differentiate both formulations, from a forward that has run already."""
    return {
        "torch FFT": gradients_of(torch_formulations.timex_fourier, w, k, gradient),
        "torch conv1d": gradients_of(torch_formulations.timex, w, k, gradient),
    }


def gradients_of(function: Callable[..., Tensor], w: Tensor, k: Tensor, gradient: Tensor) -> Call:
    """Return a call that computes the gradients of both arguments; the forward is run once, by the first call."""
    w, k = w.detach().requires_grad_(), k.detach().requires_grad_()
    forward = functools.cache(lambda: function(w, k, 0.1))
    return lambda: torch.autograd.grad(forward(), (w, k), gradient, retain_graph=True)


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Call torch's own kernel."""
    return {"torch": lambda: torch.sin(x, out=out)}


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Scale and shift torch's deviates."""
    return {"torch": lambda: torch_formulations.sample_normal(mu, sigma, n)}


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates, in one kernel of torch's."""
    return {"torch": lambda: torch_formulations.sample_shared(mu, sigma, z)}


def launch(tensors: list[Tensor]) -> dict[str, Call]:
    """Add one after the other, which is a kernel for each; for a single tensor, copy."""
    return {"torch": lambda: torch_formulations.sum_of(tensors)}
