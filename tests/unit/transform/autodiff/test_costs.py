"""What gradients compute again and keep, as `explain` tells it; and the types of what they sum."""

import torch

from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Assign
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.costs import costs
from support.gradients import check_gradients, derived, lowered, numbers
from support.tensors import to_memory, to_tensor


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * w[j]
    return out


def recurrence(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1] - 1):
            h = a[b] * h + x[b, t]
            out[b, t] = h
        out[b, x.shape[1] - 1] = 0
    return out


def test_what_needs_nothing_keeps_nothing():
    arguments = numbers(2, 3), numbers(3)
    found = costs(lowered(scaled, arguments), derived(scaled, arguments))
    assert found.recomputed == ()
    assert found.kept == ()


def test_a_recurrence_keeps_its_variable_once_for_each_iteration():
    arguments = numbers(2), numbers(2, 4)
    found = costs(lowered(recurrence, arguments), derived(recurrence, arguments))
    assert found.recomputed == ("h",)
    assert [(item.name, item.formula) for item in found.kept] == [
        ("h_tape", "8 * x.shape[0] * (x.shape[1] - 1)"),
    ]


def mixed(k: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(k)
    for b in range(k.shape[0]):
        state = [1.0] * 12
        for t in range(k.shape[1]):
            s = 0.0
            for j in range(12):
                s += state[j] * k[b, t]
                state[j] = state[j] * w[j] + k[b, t]
            out[b, t] = s
    return out


def test_a_recurrence_of_a_list_keeps_one_step_of_some():
    for length in (1, 3, 32, 70):
        check_gradients(mixed, numbers(1, length) * 0.3, numbers(12) * 0.3)
    arguments = numbers(2, 70), numbers(12)
    found = costs(lowered(mixed, arguments), derived(mixed, arguments))
    kept = [(item.name, item.formula) for item in found.kept if item.name.startswith("state")]
    assert kept == [("state_kept", "8 * k.shape[0] * ((k.shape[1] + 31) // 32) * 12")]


def test_gradients_of_half_types_are_summed_in_float32():
    arguments = numbers(40, 3).half(), numbers(3).half()
    gradient = numbers(40, 3).half()
    program = derived(scaled, arguments)
    sums = [node.symbol for node in walk(program.body) if isinstance(node, Assign) and "adjoint" in node.symbol.name]
    assert all(symbol.dtype is FLOAT32 for symbol in sums)
    memories = [to_memory(item) for item in (*arguments, gradient)]
    found = [to_tensor(item) for item in run_program(program, memories)]
    exact = (arguments[0].double() * gradient.double()).sum(0)
    assert found[1].dtype is torch.float16
    assert torch.equal(found[1], exact.half())
