"""A program over samples does to each what the program for one does."""

from __future__ import annotations

import math

import pytest
import torch

import brickwork as bw
from brickwork.ir.nodes import For, Launch, Rebind
from brickwork.ir.walk import walk
from brickwork.transform.derivation import Batch, Forward
from support.derivatives import derived, interpreted
from support.kernels import SUITE
from support.pairs import in_turn
from support.shared import define
from support.tensors import copy

SAMPLES = 2


def of_sample(value, sample):
    """Return an argument unlike those of other samples, but of the same sizes."""
    if isinstance(value, list):
        return [of_sample(item, sample) for item in value]
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_floating_point():
        return (value.double() * (1 - 0.25 * sample)).to(value.dtype)
    return value.roll(sample) if value.ndim == 1 else copy(value)


def stacked(values):
    if isinstance(values[0], list):
        return [torch.stack(items) for items in zip(*values, strict=True)]
    return torch.stack(values)


def duplicate(values):
    return [[copy(item) for item in value] if isinstance(value, list) else copy(value) for value in values]


def is_tensor(value):
    items = value if isinstance(value, list | tuple) else [value]
    return bool(items) and all(isinstance(item, torch.Tensor) for item in items)


def flat(values):
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def check(function, arguments, given, keys=()):
    """Run a function over samples at once, and one after the other."""
    samples = [
        [of_sample(value, sample) if has else value for value, has in zip(arguments, given, strict=True)]
        for sample in range(SAMPLES)
    ]
    together = [
        stacked(values) if has else copy(values[0])
        for values, has in zip(zip(*map(duplicate, samples), strict=True), given, strict=True)
    ]
    key = torch.tensor(keys) if keys else 7
    program = derived(function, together, (Batch(given, keys=bool(keys)), []))
    found = interpreted(program, [*together, key] if keys else together, key=0 if keys else key)
    one = derived(function, arguments)
    for number, sample in enumerate(samples):
        expected = interpreted(one, sample, key=keys[number] if keys else key)
        for whole, single in zip(found, expected, strict=True):
            torch.testing.assert_close(whole[number], single, rtol=0, atol=0, equal_nan=True)
        for whole, single, has in zip(together, sample, given, strict=True):
            for all_of_them, its_own in zip(flat([whole]), flat([single]), strict=True) if has else ():
                torch.testing.assert_close(all_of_them[number], its_own, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("name", "which"), in_turn(sorted(SUITE), ["all", "first", "all", "last", "all"], 1))
def test_samples_are_apart(name, which):
    case = SUITE[name]
    arguments = list(case.arguments(max(3, case.least)))
    places = [place for place, value in enumerate(arguments) if is_tensor(value)]
    if not places:
        return
    chosen = {"all": set(places), "first": {places[0]}, "last": {places[-1]}}[which]
    definition = define(case.function)
    chosen |= {place for place, item in enumerate(definition.parameters) if item.name in definition.mutated}
    given = tuple(place in chosen for place in range(len(arguments)))
    check(case.function, arguments, given)
    if case.draws and which == "all":
        check(case.function, arguments, given, keys=(11, 12))


# ---------------------------------------------------------------- tensors that change places


def relaxed(u: torch.Tensor, steps: int) -> torch.Tensor:
    v = torch.empty_like(u)
    for i in range(len(u)):
        v[i] = u[i]
    w = torch.empty_like(u)
    for t in range(steps):
        for i in range(len(u)):
            w[i] = 0.5 * v[i] + 0.25 * (v[i - 1] + t)
        v, w = w, v
    return v


def relaxed_until(u: torch.Tensor, limit: float) -> torch.Tensor:
    """Each sample makes as many steps as it needs."""
    v, w = torch.empty_like(u), torch.empty_like(u)
    for i in range(len(u)):
        v[i] = u[i]
    largest = math.inf
    while largest > limit:
        largest = 0.0
        for i in range(len(u)):
            w[i] = 0.5 * v[i]
            largest = max(largest, abs(w[i]))
        v, w = w, v
    return v


def exchanged_in_turn(u: torch.Tensor, steps: int) -> torch.Tensor:
    """A variable of each sample lives from one turn to the next."""
    v, w = torch.empty_like(u), torch.empty_like(u)
    for i in range(len(u)):
        v[i] = u[i]
        w[i] = 2 * u[i]
    total = 0.0
    for t in range(steps):
        if t % 3 == 2:
            continue
        total += v[0]
        for i in range(len(u)):
            w[i] += total
        v, w = w, v
        if t == 6:
            break
    return v


def exchanged_arguments(u: torch.Tensor, w: torch.Tensor, steps: int):
    for t in range(steps):
        for i in range(len(u)):
            u[i] += 0.5 * w[i]
        u, w = w, u


@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9])
@pytest.mark.parametrize("function", [relaxed, exchanged_in_turn])
def test_places_are_exchanged_for_each_sample(function, steps):
    check(function, [torch.tensor([1.0, -2.0, 4.5, 3.0]), steps], (True, False))


def test_samples_exchange_as_often_as_each_needs():
    check(relaxed_until, [torch.tensor([1.0, -2.0, 4.5, 3.0]), 0.5], (True, False))
    assert loops_around_exchange(relaxed_until, (torch.zeros(3, 4), 0.5)) is None


@pytest.mark.parametrize("steps", [1, 4])
def test_arguments_are_exchanged_for_each_sample(steps):
    check(exchanged_arguments, [torch.tensor([1.0, 2.0]), torch.tensor([3.0, -1.0]), steps], (True, True, False))


def loops_around_exchange(function, arguments):
    """Return the names of the loops around the exchange of places, None where elements are exchanged."""
    program = derived(function, arguments, (Batch((True, False)), []))
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    for node in walk(kernel.body):
        if isinstance(node, For) and any(isinstance(item, Rebind) for item in node.body):
            return [loop.index.name for loop in walk(kernel.body) if isinstance(loop, For) and node in walk(loop)]
    return None


def test_samples_share_exchanges_where_they_make_the_same():
    assert loops_around_exchange(relaxed, (torch.zeros(3, 4), 5)) == ["t"]
    assert loops_around_exchange(exchanged_in_turn, (torch.zeros(3, 4), 5)) is None


# ---------------------------------------------------------------- again


def weighted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        for j in range(i + 1):
            out[i] += w[j] * x[i - j]
    return out


def test_samples_of_samples():
    x, w = torch.randn(4, 3, 5), torch.randn(3, 5)
    both = Batch((True, True))
    program = derived(weighted, [x, w], (both, []), (Batch((True, False)), []))
    (found,) = interpreted(program, [x, w])
    one = derived(weighted, [x[0, 0], w[0]])
    for first in range(4):
        for second in range(3):
            (expected,) = interpreted(one, [x[first, second], w[second]])
            torch.testing.assert_close(found[first, second], expected, rtol=0, atol=0)


def test_samples_of_tangents_are_tangents_of_samples():
    x, w, tangent = torch.randn(4, 5), torch.randn(5), torch.randn(4, 5)
    samples = derived(weighted, [x, w, tangent], (Forward((True, False)), [tangent]), (Batch((True, False, True)), []))
    tangents = derived(weighted, [x, w, tangent], (Batch((True, False)), []), (Forward((True, False)), [tangent]))
    (first,), (second,) = (interpreted(program, [x, w, tangent]) for program in (samples, tangents))
    torch.testing.assert_close(first, second)
    assert first.abs().sum() > 0


def drawn(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] + bw.rand()
    return out


def test_keys_of_samples_of_samples():
    x = torch.zeros(2, 3, 4)
    keys = torch.tensor([[1, 2, 3], [4, 5, 6]])
    every = Batch((True,), keys=True)
    program = derived(drawn, [x], (every, []), (every, []))
    (found,) = interpreted(program, [x, keys])
    one = derived(drawn, [x[0, 0]])
    for first in range(2):
        for second in range(3):
            (expected,) = interpreted(one, [x[0, 0]], key=int(keys[first, second]))
            torch.testing.assert_close(found[first, second], expected, rtol=0, atol=0)


def test_numbers_of_samples_that_differ_are_refused():
    program = derived(weighted, [torch.zeros(3, 4), torch.zeros(2, 4)], (Batch((True, True)), []))
    with pytest.raises(ValueError, match="is of 3 samples, `w` of 2"):
        interpreted(program, [torch.zeros(3, 4), torch.zeros(2, 4)])
