"""Gradients: both of the causal convolution from its plain source, and what a differentiated call costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from benchmarks.contenders import Progress, compare
from benchmarks.launch import square
from benchmarks.peers import torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

B, C, T = 8, 64, 512


class SquareByHand(torch.autograd.Function):
    """What people write around an operator of their own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return x * x."""
        ctx.save_for_backward(x)
        return torch.square(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        """Return the gradient of x."""
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


def both(function: Callable[[Tensor, Tensor, float], Tensor], w: Tensor, k: Tensor, gradient: Tensor) -> Call:
    """Return a call that computes the gradients of both arguments, from a forward that has run already.

    It returns both.
    """
    w, k = w.detach().requires_grad_(), k.detach().requires_grad_()
    made: list[Tensor] = []

    def call() -> tuple[Tensor, ...]:
        if not made:
            made.append(function(w, k, 0.1))
        return torch.autograd.grad(made[0], (w, k), gradient, retain_graph=True)

    return call


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the convolution's gradients, and the cost of small calls."""
    w, k, gradient = torch.randn(C, T), torch.randn(B, C, T), torch.randn(B, C, T)
    contenders: dict[str, Call] = {
        "brickwork": both(ops.timex, w, k, gradient),
        "torch FFT": both(torch_formulations.timex_fourier, w, k, gradient),
        "torch conv1d": both(torch_formulations.timex, w, k, gradient),
        "brickwork, its forward": lambda: ops.timex(w, k, 0.1),
    }
    title = f"timex backward, both gradients, B={B} C={C} T={T}"
    return [
        compare(title, contenders, reference="torch FFT", progress=progress, rounds=rounds),
        small(progress, rounds=rounds),
    ]


def small(progress: Progress, *, rounds: int) -> Case:
    """Return the cost of a call of 16 floats without a gradient, and of one with a backward after it."""
    x, ones = torch.randn(16), torch.ones(16)
    leaf = torch.randn(16, requires_grad=True)

    def differentiated(function: Callable[[Tensor], Tensor]) -> Call:
        return lambda: torch.autograd.grad(function(leaf), leaf, ones)

    contenders: dict[str, Call] = {
        "brickwork": differentiated(square),
        "torch.autograd.Function around torch.square": differentiated(SquareByHand.apply),
        "torch.square": differentiated(torch.square),
        "brickwork, no gradient asked for": lambda: square(x),
        "torch.square, no gradient asked for": lambda: torch.square(x),
    }
    target = "torch.autograd.Function around torch.square"
    title = "forward and backward of a call with 16 floats"
    return compare(title, contenders, reference=target, target=target, progress=progress, rounds=rounds)
