"""Variables of float64 that count in ones are integers, and what is kept up to date by them is cut into chunks."""

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Assign, Launch, Symbol
from brickwork.ir.walk import statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.canonical.whole_counters import counts
from cpu.test_entry_cuda_emulated import rig_of
from support.long_rows import standardised
from support.lowering import memory, program_of
from support.scheduling import same

Tensor = torch.Tensor
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
Y = memory([0.25] * 6)


def means(x: Tensor, y: Tensor) -> None:
    count = 0.0
    mean = 0.0
    for i in range(x.shape[0]):
        count += 1.0
        mean += (x[i] - mean) / count
        y[i] = mean
    y[0] = count


def down(x: Tensor, y: Tensor) -> None:
    left = 6.0
    for i in range(x.shape[0]):
        y[i] = x[i] * left
        left -= 1
    y[0] = left


def of_some(x: Tensor, y: Tensor) -> None:
    many = 1.0
    for i in range(x.shape[0]):
        if x[i] > 0:
            many = 1 + many
        y[i] = many


def anew(x: Tensor, y: Tensor) -> None:
    run = 0.0
    for i in range(x.shape[0]):
        run = run + 1
        if x[i] < 0:
            run = 0.0
        y[i] = run


def from_a_half(x: Tensor, y: Tensor) -> None:
    count = 0.5
    for i in range(x.shape[0]):
        count += 1.0
        y[i] = count


def in_halves(x: Tensor, y: Tensor) -> None:
    count = 0.0
    for i in range(x.shape[0]):
        count += 0.5
        y[i] = count


def in_large_steps(x: Tensor, y: Tensor) -> None:
    count = 0.0
    for i in range(x.shape[0]):
        count += 4503599627370497.0
        y[i] = count - x.shape[0] * 4503599627370497.0


def from_a_large_number(x: Tensor, y: Tensor) -> None:
    count = 9007199254740992.0
    for i in range(x.shape[0]):
        count += 1.0
        y[i] = count - 9007199254740992.0


def from_negative_zero(x: Tensor, y: Tensor) -> None:
    count = -0.0
    for i in range(x.shape[0]):
        y[i] = 1.0 / (x[i] + 5.0 + 2.0 / (count - 0.5))
        if x[i] > 3:
            count += 1.0


def of_another(x: Tensor, y: Tensor) -> None:
    count, other = 0.0, 0.5
    for i in range(x.shape[0]):
        count = other + 1.0
        other = x[i] * 1.0
        y[i] = count


def times(x: Tensor, y: Tensor) -> None:
    count = 1.0
    for i in range(x.shape[0]):
        count = count * 1.0
        y[i] = count


def given_an_element(x: Tensor, y: Tensor) -> None:
    count = 0.0
    for i in range(x.shape[0]):
        if x[i] > 2:
            count = x[i] * 0.75 + 0.0
        count += 1.0
        y[i] = count


def less_than_one(x: Tensor, y: Tensor) -> None:
    count = 3.0
    for i in range(x.shape[0]):
        count = 1.0 - count
        y[i] = count


def counters(function) -> set:
    """Return the types of what is assigned under the name of a counter."""
    program = canonical(program_of(function, X, Y))
    (launch,) = (node for node in walk(program) if isinstance(node, Launch))
    found = (node.symbol for node in statements(launch.kernel.body) if isinstance(node, Assign))
    return {symbol.dtype for symbol in found if symbol.name in {"count", "left", "many", "run"}}


@pytest.mark.parametrize("function", [means, down, of_some, anew])
def test_what_counts_in_ones_is_an_integer(function):
    assert FLOAT64 not in counters(function)
    same(function, X, Y)


@pytest.mark.parametrize(
    "function",
    [
        from_a_half,
        in_halves,
        in_large_steps,
        from_a_large_number,
        from_negative_zero,
        of_another,
        times,
        given_an_element,
        less_than_one,
    ],
)
def test_other_variables_are_not(function):
    assert INT64 not in counters(function)
    same(function, X, Y)


COUNT, OTHER = Symbol("count", 1, FLOAT64), Symbol("other", 2, FLOAT64)
FIRST, ONE, HALF = (build.constant(value, FLOAT64) for value in (3.0, 1.0, 0.5))


def plus(name, *operands):
    return build.apply(name, *(build.read(item) if isinstance(item, Symbol) else item for item in operands))


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ((FIRST, plus("add", COUNT, ONE)), True),
        ((FIRST, plus("add", ONE, COUNT), FIRST, plus("sub", COUNT, ONE)), True),
        ((FIRST, HALF, plus("add", COUNT, ONE)), False),
        ((FIRST, plus("add", COUNT, ONE), plus("add", COUNT, HALF)), False),
        ((FIRST, plus("add", COUNT, FIRST)), False),
        ((FIRST, plus("add", FIRST, COUNT)), False),
        ((FIRST, plus("add", OTHER, ONE)), False),
        ((FIRST, plus("add", ONE, OTHER)), False),
        ((FIRST, plus("add", COUNT, OTHER)), False),
        ((FIRST, plus("add", OTHER, COUNT)), False),
        ((FIRST, plus("mul", COUNT, ONE)), False),
        ((FIRST, plus("truediv", ONE, COUNT)), False),
        ((FIRST, build.read(OTHER)), False),
        ((FIRST, plus("add", COUNT, build.constant(-0.0, FLOAT64))), False),
    ],
)
def test_each_value_is_a_whole_number_or_the_variable_and_one(given, whole):
    assert counts(COUNT, given) == whole


@pytest.mark.parametrize("shape", [(1, 2, 5), (64, 3, 130), (200, 1, 33)])
def test_means_over_nests_are_found_in_chunks(shape):
    x, scale = torch.randn(shape) + 3, torch.randn(shape[1])
    rig = rig_of(standardised, x, scale)
    mean, variance = x.double().mean((0, 2), keepdim=True), x.double().var((0, 2), correction=0, keepdim=True)
    expected = (x.double() - mean) / (variance + 0.25) * scale.double()[:, None]
    assert torch.allclose(rig.call(x, scale)[0].double(), expected, rtol=1e-4, atol=1e-4)
    assert len(rig.gpu.launches) > 1 or shape[0] < 64
