"""Reverse mode where elements are stored over in loops whose lengths come from what counts, or is read, in them."""

import math

import pytest
import torch

from brickwork.diagnostics.errors import CompileError
from brickwork.ir.nodes import Allocate, Break, While
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform.derive import Backward
from support.gradients import check_gradients, derived, lowered, numbers
from support.shared import derive
from support.tensors import argument_type

CASES = []


def case(*arguments):
    def add(function):
        CASES.append(pytest.param(function, arguments, id=function.__name__))
        return function

    return add


@case(numbers(2, 5))
def insertion_sort(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for a in range(1, x.shape[1]):
            v = x[i, a]
            j = a
            while j > 0 and x[i, j - 1] > v:
                x[i, j] = x[i, j - 1]
                j -= 1
            x[i, j] = v


@case(numbers(3, 3) * 0.3, 6)
def until_it_settles(p: torch.Tensor, most: int) -> torch.Tensor:
    a = p.new_full((p.shape[0],), 1.0)
    b = torch.zeros_like(a)
    change = 1.0
    k = 1
    while change > 1e-2 and k <= most:
        change = 0.0
        for i in range(p.shape[0]):
            s = 0.3
            for j in range(p.shape[0]):
                s += math.tanh(p[i, j] * a[j])
            b[i] = s
            change += abs(s - a[i])
        a, b = b, a
        k += 1
    return a


@case(numbers(7), 7)
def steps_of_three(x: torch.Tensor, n: int) -> torch.Tensor:
    s = x.new_full((1,), 1.0)
    k = n - 1
    while k >= 0:
        s[0] = s[0] * x[k] + x[0]
        k -= 3
    return s


@case(numbers(6), numbers(6), 6)
def doubled(s: torch.Tensor, x: torch.Tensor, n: int) -> None:
    d = 1
    while d < n:
        for i in range(n - 1, d - 1, -1):
            s[i] = s[i] * s[i - d] + x[i]
        d *= 2


@case(numbers(3) * 0.6, 5)
def halved(power: torch.Tensor, n: int) -> torch.Tensor:
    out = power.new_full((power.shape[0],), 1.0)
    while n > 0:
        for i in range(power.shape[0]):
            if n % 2 == 1:
                out[i] = out[i] * power[i]
            power[i] = power[i] * power[i]
        n //= 2
    return out


@case(numbers(5), numbers(5), 3)
def jumps_of_a_counted_loop(s: torch.Tensor, x: torch.Tensor, limit: int) -> None:
    for i in range(x.shape[0]):
        k = 0
        while k < limit:
            k += 1
            if k == 2:
                continue
            s[i] = s[i] * x[i] + 1
            if s[i] > 3:
                break


@case(numbers(2, 4, 3), numbers(3, 3), torch.tensor([4, 2]))
def as_long_as_lengths_say(emit: torch.Tensor, step: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    B, _, K = emit.shape
    alpha = torch.zeros((B, K), dtype=emit.dtype)
    new = torch.zeros((B, K), dtype=emit.dtype)
    for b in range(B):
        for k in range(K):
            alpha[b, k] = emit[b, 0, k]
        for t in range(1, length[b]):
            for k in range(K):
                s = 0.0
                for j in range(K):
                    s += math.exp(alpha[b, j] + step[j, k])
                new[b, k] = math.log(s) + emit[b, t, k]
            for k in range(K):
                alpha[b, k] = new[b, k]
    return alpha


@case(numbers(6), torch.tensor([-4, -2, 0]), torch.tensor([-2, 0, 3]))
def from_the_end(x: torch.Tensor, begin: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    s = x.new_full((3,), 1.0)
    for r in range(3):
        for e in range(begin[r], end[r]):
            s[r] = s[r] * x[e] + x[e]
    return s


@case(numbers(6), torch.tensor([2, 4]), torch.tensor([5, 4]))
def beside_the_index(x: torch.Tensor, begin: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    s = x.new_full((2,), 1.0)
    for r in range(2):
        for e in range(begin[r], end[r]):
            before = e - 1
            s[r] = s[r] * x[before] + x[3 + before - 2]
    return s


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_gradients_are_those_of_central_differences(function, arguments):
    program = check_gradients(function, *arguments)
    assert not any(isinstance(node, While) for node in walk(program.body))


def test_a_loop_that_only_counts_is_never_left():
    program = derived(steps_of_three, (numbers(7), 7))
    assert not any(isinstance(node, Break) for node in walk(program.body))


def counts_now_and_then(x: torch.Tensor, n: int) -> None:
    k = 0
    while k < n:
        x[0] = x[0] * x[1]
        if x[0] > 0:
            k += 1


def counts_but_for_jumps(x: torch.Tensor, n: int) -> None:
    k = 0
    while k < n:
        x[0] = x[0] * x[1]
        if x[0] > 0:
            continue
        k += 1


def one_or_the_other(x: torch.Tensor, n: int) -> None:
    k = 0
    while k < n or x[0] > 1:
        x[0] = x[0] * x[1]
        k += 1


def moving_limit(x: torch.Tensor, n: int) -> None:
    k = 0
    while k < n:
        x[0] = x[0] * x[1]
        k += 1
        if x[0] > 1:
            n += 1


def from_zero(x: torch.Tensor, n: int) -> None:
    d = 0
    while d < n and x[0] > 0.01:
        x[0] = x[0] * x[1]
        d *= 2


def only_where_it_reads(x: torch.Tensor, length: torch.Tensor) -> None:
    for e in range(length[0]):
        x[0] = x[0] * x[1]
        if e < 3:
            x[0] = x[0] + x[e]


@pytest.mark.parametrize(
    "function", [counts_now_and_then, counts_but_for_jumps, one_or_the_other, moving_limit, from_zero]
)
def test_a_loop_that_may_turn_more_often_is_refused(function):
    program, kinds = lowered(function, (numbers(3), 2)), (argument_type(numbers(3)), argument_type(2))
    with pytest.raises(CompileError, match="not known beforehand"):
        derive(program, Backward((True, False)), Signature((*kinds, argument_type(numbers(3)))))


def test_an_access_that_an_iteration_may_not_make_tells_nothing():
    with pytest.raises(CompileError, match="not known beforehand"):
        derived(only_where_it_reads, (numbers(3), torch.tensor([5])))


def test_only_what_is_stored_over_has_a_tape_as_long_as_a_tensor():
    def blended(x: torch.Tensor, begin: torch.Tensor) -> torch.Tensor:
        s = x.new_full((begin.shape[0] - 1,), 1.0)
        for r in range(begin.shape[0] - 1):
            light = 1.0
            for e in range(begin[r], begin[r + 1]):
                light = light * x[e]
                s[r] = s[r] * light + x[e]
        return s

    program = check_gradients(blended, numbers(9), torch.tensor([0, 3, 3, 9]))
    names = [node.tensor.name for node in walk(program.body) if isinstance(node, Allocate)]
    assert [name for name in names if name.endswith("_tape")] == ["s_tape"]


def test_what_is_known_without_it_keeps_its_form():
    def newton(x: torch.Tensor, most: int) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            y = 1.0
            k = 0
            while k < most and abs(y * y - x[i]) > 1e-9:
                y = 0.5 * (y + x[i] / y)
                k += 1
            out[i] = y
        return out

    assert any(isinstance(node, While) for node in walk(derived(newton, (numbers(3), 5)).body))
