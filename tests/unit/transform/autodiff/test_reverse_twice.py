"""Gradients of gradients: reverse mode on what reverse mode writes, against central differences of that."""

import math
from itertools import pairwise

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, Load, Program, Store
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform.derive import Backward
from support.gradients import STEP, derived, forward, is_float, lowered, numbers
from support.shared import derive
from support.tensors import argument_type, to_memory, to_tensor


def steps_in_one_tensor(x0: torch.Tensor, a: torch.Tensor, steps: int) -> torch.Tensor:
    xs = torch.empty((steps + 1, x0.shape[0]), dtype=x0.dtype)
    for i in range(x0.shape[0]):
        xs[0, i] = x0[i]
    for s in range(steps):
        for i in range(x0.shape[0]):
            v = 0.0
            for j in range(x0.shape[0]):
                v += a[i, j] * xs[s, j]
            xs[s + 1, i] = math.tanh(v)
    return xs


def in_turn(c: torch.Tensor, turns: int) -> torch.Tensor:
    f = torch.zeros(c.shape[0], dtype=c.dtype)
    g = torch.zeros(c.shape[1], dtype=c.dtype)
    out = torch.empty_like(c)
    for _ in range(turns):
        for i in range(c.shape[0]):
            s = 0.0
            for j in range(c.shape[1]):
                s += math.exp(g[j] - c[i, j])
            f[i] = -math.log(s)
        for j in range(c.shape[1]):
            s = 0.0
            for i in range(c.shape[0]):
                s += math.exp(f[i] - c[i, j])
            g[j] = -math.log(s)
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            out[i, j] = math.exp(f[i] + g[j] - c[i, j])
    return out


def weighted(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(v)
    for t in range(v.shape[0]):
        acc = [0.0] * 2
        for u in range(t + 1):
            for d in range(2):
                acc[d] = acc[d] * q[u] + v[u, d]
        for d in range(2):
            out[t, d] = acc[d] * q[t]
    return out


def segment_softmax(x: torch.Tensor, begin: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for s in range(begin.shape[0] - 1):
        top = -math.inf
        for e in range(begin[s], begin[s + 1]):
            top = max(top, x[e])
        z = 0.0
        for e in range(begin[s], begin[s + 1]):
            z += math.exp(x[e] - top)
        for e in range(begin[s], begin[s + 1]):
            out[e] = math.exp(x[e] - top) / z
    return out


def values(program: Program, arguments: list[torch.Tensor | int]) -> list[torch.Tensor]:
    given = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    return [to_tensor(memory) for memory in run_program(program, given)]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (steps_in_one_tensor, [numbers(2), numbers(2, 2), 2]),
        (in_turn, [numbers(2, 2), 1]),
        (weighted, [numbers(2), numbers(2, 2)]),
        (segment_softmax, [numbers(4), torch.tensor([0, 3, 4])]),
    ],
)
def test_gradients_of_gradients_are_those_of_central_differences(function, arguments):
    once = derived(function, arguments)
    arguments = [*arguments, *(numbers(*item.shape) for item in forward(lowered(function, arguments), arguments))]
    results = values(once, arguments)
    assert all(one != other for one, other in pairwise(sorted(numbers_of(once))))
    weights = [numbers(*item.shape) for item in results]
    asked = tuple(map(is_float, arguments))
    signature = Signature(tuple(map(argument_type, (*arguments, *weights))))
    found = iter(values(derive(once, Backward(asked), signature), [*arguments, *weights]))
    for place, argument in enumerate(arguments):
        if not isinstance(argument, torch.Tensor) or not is_float(argument):
            continue
        got = next(found).view(-1)
        for at in range(argument.numel()):
            ends = []
            for step in (STEP, -STEP):
                moved = argument.clone()
                moved.view(-1)[at] += step
                changed = values(once, [*arguments[:place], moved, *arguments[place + 1 :]])
                ends.append(sum((x * w).sum().item() for x, w in zip(changed, weights, strict=True)))
            assert got[at].item() == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-5, abs=1e-6)


def numbers_of(program: Program) -> list[tuple[str, int]]:
    """Return what must be unique in a derived program: the numbers of accesses and of loops."""
    accesses = [("access", node.access) for node in walk(program) if isinstance(node, Load | Store)]
    return [*accesses, *(("loop", node.index.number) for node in walk(program) if isinstance(node, For))]
