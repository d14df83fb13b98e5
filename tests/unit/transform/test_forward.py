"""Tangents of the suite's operators are what finite differences say, and nothing else is written."""

from __future__ import annotations

import pytest
import torch

from brickwork.ir.nodes import Allocate, Launch, Load
from brickwork.ir.walk import walk
from brickwork.transform.derivation import Forward
from support.derivatives import derived, interpreted
from support.kernels import SUITE
from support.pairs import in_turn
from support.shared import define
from support.tensors import copy

FINE, COARSE = (1e-6, 1e-5), (1e-3, 2e-2)
"""Steps of differences and how close they are: where all is in double precision, and where results are not."""
FLOAT32 = {"relaxed"}
"""Operators whose arguments have to be of one type with tensors that they make."""


def widened(value, factor=1.0):
    """Return an argument in double precision, so that differences are exact enough; with `factor`, unlike others."""
    if isinstance(value, list):
        return [widened(item, factor) for item in value]
    return value.double() * factor if isinstance(value, torch.Tensor) and value.is_floating_point() else copy(value)


def is_float(value):
    items = value if isinstance(value, list | tuple) else [value]
    return bool(items) and all(isinstance(item, torch.Tensor) and item.is_floating_point() for item in items)


def moved(value, direction, step):
    if isinstance(value, list | tuple):
        return [a + step * b for a, b in zip(value, direction, strict=True)]
    return value + step * direction


def direction_of(value):
    generator = torch.Generator().manual_seed(7)
    if isinstance(value, list | tuple):
        return [direction_of(item) for item in value]
    return torch.randn(value.shape, generator=generator, dtype=value.dtype)


def flat(values):
    return [item for value in values for item in (value if isinstance(value, list) else [value])]


def outcome(case, arguments):
    """Return the float tensors that are stored into, then the float results."""
    program = derived(case.function, arguments)
    arguments = [copy(item) if not isinstance(item, list) else [copy(each) for each in item] for item in arguments]
    results = interpreted(program, arguments)
    definition = define(case.function)
    written = [v for p, v in zip(definition.parameters, arguments, strict=True) if p.name in definition.mutated]
    return [item for item in [*flat(written), *results] if item.is_floating_point()]


@pytest.mark.parametrize(("name", "every"), in_turn(sorted(SUITE), [True, False, True], 1))
def test_tangents_are_finite_differences(name, every):
    case = SUITE[name]
    arguments = [
        item if name in FLOAT32 else widened(item, 1 + place / 16) for place, item in enumerate(case.arguments(4))
    ]
    given = tuple(map(is_float, arguments))
    if not every:
        given = tuple(has and not any(given[place + 1 :]) for place, has in enumerate(given))
    if not any(given):
        return
    tangents = {place: direction_of(value) for place, value in enumerate(arguments) if given[place]}
    added = flat(tangents.values())
    program = derived(case.function, [*arguments, *added], (Forward(given), added))
    before = [copy(item) for item in flat(arguments)]
    found = interpreted(program, [*arguments, *added])
    for value, old in zip(flat(arguments), before, strict=True):
        assert not isinstance(value, torch.Tensor) or torch.equal(value, old)
    step, close = FINE if all(item.dtype is torch.float64 for item in found) else COARSE
    sides = [
        outcome(case, [moved(v, tangents[p], side) if given[p] else v for p, v in enumerate(arguments)])
        for side in (step, -step)
    ]
    for tangent, above, below in zip(found, *sides, strict=True):
        expected = (above.double() - below.double()) / (2 * step)
        known = expected.isfinite()
        torch.testing.assert_close(tangent.double()[known], expected[known], rtol=close, atol=close)


def scaled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    total = 0.0
    for i in range(len(x)):
        if w[i] < 0:
            continue
        total += x[i]
        if w[i] > 2:
            break
        out[i] = w[i] * x[i]
    return out


def test_what_no_tangent_needs_is_left_out():
    x = torch.randn(4)
    program = derived(scaled, [x, x, x], (Forward((True, False)), [x]))
    kernel = next(node.kernel for node in program.body if isinstance(node, Launch))
    loaded = {node.tensor.name for node in walk(kernel) if isinstance(node, Load)}
    assert loaded == {"w", "tangent_x"}
    assert [node.tensor.name for node in program.body if isinstance(node, Allocate)] == ["tangent_out"]
