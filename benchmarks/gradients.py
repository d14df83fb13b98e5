"""Derived gradients: what a differentiated call costs the host, and gradients of loops beside torch's own.

Those of the convolution are in `timex.py`, beside the peers'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from benchmarks.launch import FLOATS, square
from benchmarks.lineup import paced
from benchmarks.streaming import gather, layer_norm, softmax
from benchmarks.targets import Target, reaching
from brickwork import bench
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

ROWS = {"cpu": 4096, "cuda": 1 << 15}
COLUMNS = 1024
ASKED, UNASKED = "asked for", "not asked for"
BY_HAND = "torch.autograd.Function"


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


def tables(run: Run) -> Parts:
    """Return the cost of a small call, and the backward passes of some loops."""
    return {"call": lambda: call(run), "backward": lambda: backward(run)}


def call(run: Run) -> bench.Table:
    """Measure what the host takes for a small call, and with its backward pass where a gradient is asked for."""
    count = FLOATS[run.device]

    def contenders(gradient: str) -> dict[str, Call]:
        x, ones = torch.randn(count, device=run.device), torch.ones(count, device=run.device)
        x.requires_grad_(gradient == ASKED)
        functions: dict[str, Callable[[Tensor], Tensor]] = {
            "brickwork": square,
            BY_HAND: SquareByHand.apply,
            "torch.square": torch.square,
        }

        def called(function: Callable[[Tensor], Tensor]) -> Call:
            if gradient == ASKED:
                return lambda: torch.autograd.grad(function(x), x, ones)
            return lambda: function(x)

        return {label: called(function) for label, function in functions.items()}

    table = bench.compare(
        contenders,
        (ASKED, UNASKED),
        "host us",
        x_name="gradient",
        title=f"a call with {count} floats, its backward pass included where the gradient is asked for",
        baseline=BY_HAND,
        **paced(run, roofline=False),
    )
    return reaching(table, Target(1, BY_HAND), at=(ASKED,)) if run.device == "cpu" else table


def backward(run: Run) -> bench.Table:
    """Measure backward passes that are derived from loops, beside those that torch has by hand."""
    rows, columns = run.pick((ROWS[run.device], COLUMNS), (4, 8))
    count = rows * columns

    def contenders(name: str) -> dict[str, Call]:
        x = torch.randn(rows, columns, device=run.device)
        if name == "gather":
            index = torch.randint(0, count, (count,), device=run.device)
            flat = x.flatten()
            return {
                "brickwork": differentiated(lambda x: gather(x, index), flat),
                "torch": differentiated(lambda x: torch.index_select(x, 0, index), flat),
            }
        ours, theirs = {
            "softmax": (softmax, lambda x: torch.softmax(x, 1)),
            "layer norm": (layer_norm, lambda x: torch.nn.functional.layer_norm(x, (columns,))),
        }[name]
        return {"brickwork": differentiated(ours, x), "torch": differentiated(theirs, x)}

    return bench.compare(
        contenders,
        run.pick(("softmax", "layer norm", "gather"), ("gather",)),
        "ms",
        x_name="loops",
        title=f"backward passes of loops over {rows}x{columns} floats",
        **paced(run),
    )


def differentiated(function: Callable[[Tensor], Tensor], x: Tensor) -> Call:
    """Return a call that computes the gradient of x, from a forward pass that runs once, here."""
    x = x.detach().requires_grad_()
    out = function(x)
    gradient = torch.randn(out.shape, generator=torch.Generator(out.device).manual_seed(1), device=out.device)
    return lambda: torch.autograd.grad(out, x, gradient, retain_graph=True)
