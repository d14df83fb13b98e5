"""Loops that would run others again from their beginning keep steps, in time that grows with the length alone."""

import math

import pytest
import torch

from brickwork.ir import interpret
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Local
from brickwork.ir.walk import statements
from brickwork.transform.autodiff import kept_steps, reverse
from support.gradients import check_gradients, derived, kernel_of, numbers
from support.tensors import to_memory, to_tensor


def until_opaque(x: torch.Tensor, begin: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros((begin.shape[0] - 1,))
    for r in range(out.shape[0]):
        light = 1.0
        for e in range(begin[r], begin[r + 1]):
            light = light * math.cos(x[e])
            out[r] += light * x[e]
            if abs(light) < 1e-3:
                break
    return out


def while_it_is_far(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        y, k = x[i], 0
        while k < steps[i]:
            y = y * 0.9 + math.sin(y)
            if k % 3 != 1:
                y = y + x[i] * y
            k += 1
        out[i] = y
    return out


def of_a_list(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        state = [x[i], 0.5, x[i] * 0.5]
        for k in range(steps[i]):
            for j in range(3):
                state[j] = state[j] * 0.5 + math.sin(state[(j + 1) % 3])
        out[i] = state[0] * state[2]
    return out


def in_one_another(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        y = x[i]
        for k in range(steps[i]):
            z = y * 0.5
            for m in range(steps[k % x.shape[0]]):
                z = math.sin(z) + 0.1 * z * y
            y = y * 0.3 + z
        out[i] = y
    return out


SMALL = torch.tensor([3, 0, 7, 1, 18])
CASES = (
    pytest.param(until_opaque, (numbers(40), torch.tensor([0, 3, 3, 40])), id="a loop between bounds"),
    pytest.param(while_it_is_far, (numbers(5) * 0.3, SMALL), id="a while"),
    pytest.param(of_a_list, (numbers(5), SMALL), id="a list"),
    pytest.param(in_one_another, (numbers(5), SMALL), id="loops in one another"),
)


@pytest.mark.parametrize(("function", "arguments"), CASES)
@pytest.mark.parametrize(("room", "bits"), [(2, 2), (2, 3), (2, 5), (4, 4), (4, 6)])
def test_any_number_of_digits_keeps_the_right_steps(function, arguments, room, bits, monkeypatch):
    monkeypatch.setattr(kept_steps, "_ROOMS", (room,))
    monkeypatch.setattr(kept_steps, "_BITS", bits)
    kept = [node for node in statements(kernel_of(check_gradients(function, *arguments))) if isinstance(node, Local)]
    assert any(node.tensor.name.endswith("_kept") for node in kept)


def gradients(function, arguments):
    """Return the gradient of the first argument, and how many variables the gradient program sets."""
    program = derived(function, arguments)
    steps = 0
    assign = interpret._assign

    def counting(node):
        run = assign(node)

        def counted(state):
            nonlocal steps
            steps += 1
            return run(state)

        return counted

    given = numbers(*_shape(function, arguments))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpret, "_assign", counting)
        found = run_program(program, [*map(to_memory, (*arguments, given))])
    return to_tensor(found[0]), steps


def _shape(function, arguments):
    return (arguments[1].shape[0] - 1,) if function is until_opaque else arguments[0].shape


def long(function, length):
    x = numbers(length) * 0.03 if function is until_opaque else numbers(1) * 0.1
    return x, torch.tensor([0, length] if function is until_opaque else [length])


@pytest.mark.parametrize("function", [until_opaque, while_it_is_far, of_a_list])
def test_time_grows_with_the_length(function):
    steps = [gradients(function, long(function, length))[1] for length in (300, 600)]
    assert steps[1] < 2.1 * steps[0]


@pytest.mark.parametrize("length", [1, 31, 32, 33, 64, 65, 300])
@pytest.mark.parametrize("function", [until_opaque, while_it_is_far, of_a_list])
def test_the_bits_are_those_of_steps_that_are_run_again(function, length, monkeypatch):
    found = gradients(function, long(function, length))[0]
    monkeypatch.setattr(reverse, "keep_steps", lambda block, _: block)
    assert torch.equal(found, gradients(function, long(function, length))[0])
