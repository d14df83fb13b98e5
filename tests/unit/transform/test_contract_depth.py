"""Which loop of a contraction is staged, where windows slide along rows, and that nests are chosen for one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Apply, Assign, Block, Constant, Expression, For, If, Node, Size, Symbol, TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.walk import rewrite
from brickwork.transform.nests_apart import stand_apart
from brickwork.transform.pipeline import ScheduledKernel
from brickwork.transform.schedule.contract import ContractionPlanner, Nest, contraction_versions
from brickwork.transform.schedule.lengths import lengths_in
from support.scheduling import GPU, kernel_of
from support.shared import define, lower, schedule_program
from support.tensors import to_memory

Tensor = torch.Tensor


def grouped(x: Tensor, w: Tensor, y: Tensor) -> None:
    for g in range(y.shape[0]):
        for f in range(y.shape[1]):
            for i in range(y.shape[2]):
                s = 0.0
                for q in range(w.shape[2]):
                    for c in range(w.shape[3]):
                        s += x[g * 2 + c, i + q] * w[g, f, q, c]
                y[g, f, i] = s


def filters(x: Tensor, g: Tensor, y: Tensor) -> None:
    for f in range(y.shape[0]):
        for c in range(y.shape[1]):
            for q in range(y.shape[2]):
                s = 0.0
                for n in range(x.shape[0]):
                    for i in range(g.shape[2]):
                        s += x[n, c, i + q] * g[n, f, i]
                y[f, c, q] = s


def images(x: Tensor, w: Tensor, y: Tensor) -> None:
    for n in range(x.shape[0]):
        for f in range(y.shape[1]):
            for i in range(x.shape[2]):
                s = 0.0
                for c in range(w.shape[1]):
                    for q in range(w.shape[2]):
                        if i + q < x.shape[2]:
                            s += x[n, c, i + q] * w[f, c, q]
                y[n, f, i] = s


def _nest(function: Callable[..., None], *sizes: tuple[int, ...], second: bool = False) -> Nest:
    kernel = kernel_of(function, *(_tensor(size) for size in sizes))
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    planner = ContractionPlanner(analysis, GPU, lengths_in(kernel.body), second=second)
    (loop,) = [item for item in kernel.body if isinstance(item, For)]
    nest = planner.contracted(loop)
    assert nest is not None
    return nest


def _tensor(size: tuple[int, ...]):
    return to_memory(torch.zeros(size))


GROUPED = (grouped, (4, 6), (2, 2, 3, 2), (2, 2, 4))
FILTERS = (filters, (2, 3, 6), (2, 2, 4), (2, 3, 3))
IMAGES = (images, (2, 3, 6), (2, 3, 3), (2, 2, 6))


def test_an_index_beside_a_batch_stands_alone() -> None:
    """Channels of a group are the depth, not places in a window, though these lie along memory."""
    assert _nest(*GROUPED).depth.index.name == "c"


def test_the_host_chooses_between_two_loops() -> None:
    """Of a gradient of weights images may be few and small: sizes tell which loop is long."""
    assert [_nest(*FILTERS, second=second).depth.index.name for second in (False, True)] == ["n", "i"]


def test_a_place_in_a_window_is_short() -> None:
    assert [_nest(*IMAGES, second=second).depth.index.name for second in (False, True)] == ["c", "c"]


def test_both_loops_have_versions() -> None:
    function, *sizes = FILTERS
    kernel = kernel_of(function, *(_tensor(size) for size in sizes))
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    names = [name for name, *_ in contraction_versions(kernel.body, analysis, GPU)]
    assert any(name.endswith(" second") for name in names)
    assert not names[-1].endswith(" second")


# ---------------------------------------------------------------- windows that slide


def slides(x: Tensor, w: Tensor, y: Tensor) -> None:
    for n in range(y.shape[0]):
        for f in range(y.shape[1]):
            for i in range(x.shape[1]):
                s = 0.0
                for p in range(max(0, i - 1), min(x.shape[1], i + 2)):
                    for c in range(w.shape[1]):
                        s += x[n, p, i, c] * w[f, c]
                y[n, f, i] = s


def is_cut_off(x: Tensor, w: Tensor, y: Tensor) -> None:
    for f in range(y.shape[0]):
        for c in range(y.shape[1]):
            for q in range(3):
                s = 0.0
                for i in range(max(0, 1 - q), min(x.shape[1], x.shape[1] + 1 - q)):
                    s += x[c, i + q - 1] * w[f, i]
                y[f, c, q] = s


@pytest.mark.parametrize(
    ("function", "sizes", "worth"),
    [(slides, ((2, 9, 9, 4), (2, 4), (2, 2, 9)), False), (is_cut_off, ((2, 9), (2, 9), (2, 2, 3)), True)],
)
def test_a_window_that_slides_along_rows_is_not_one_range_for_all(
    function: Callable[..., None], sizes: tuple[tuple[int, ...], ...], worth: bool
) -> None:
    """A tile of rows that are several loops sums over all that any of them has."""
    nest = _nest(function, *sizes)
    assert nest.wide
    shapes = dict(zip("xwy", sizes, strict=True))
    assert all(_holds(each, shapes) for each in nest.wide) is worth


def _holds(condition: Expression, shapes: dict[str, tuple[int, ...]]) -> bool:
    def visit(node: Node) -> Node:
        match node:
            case Size(tensor=tensor, axis=axis):
                return build.integer(shapes[tensor.name][axis])
            case Apply(operator=operator, operands=operands):
                return build.apply(operator.name, *operands)
            case _:
                return node

    found = rewrite(condition, visit)
    assert isinstance(found, Constant)
    return bool(found.value)


# ---------------------------------------------------------------- nests beside one another


def two(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    assert a.shape[1] == b.shape[0]
    assert b.shape[1] == c.shape[0]
    y = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    z = torch.empty(b.shape[0], c.shape[1], dtype=a.dtype, device=a.device)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            s = 0.0
            for k in range(b.shape[1]):
                s += b[i, k] * c[k, j]
            z[i, j] = s
    return y, z


def one_leaves_a_variable(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    assert a.shape[1] == b.shape[0]
    y = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
    last = 0.0
    for i in range(c.shape[0]):
        last = last + c[i, 0]
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s * last
    return y


def _scheduled(function: Callable[..., object]) -> ScheduledKernel:
    argument = TensorType(FLOAT32, 2, contiguous=True, unit_axis=1)
    signature = Signature((argument,) * 3, device="cuda", narrow=True, aligned=True)
    _, (found,) = schedule_program(lower(define(function), signature), GPU)
    return found


def test_each_of_two_nests_is_chosen_for_by_itself() -> None:
    found = _scheduled(two)
    tiles = [[item for item in found.versions if item.part == part and "contraction" in item.name] for part in (0, 1)]
    assert all(tiles)
    assert not {item.name for item in tiles[0]} & {item.name for item in tiles[1]}
    first, second = ({condition for item in each for condition in item.conditions} for each in tiles)
    assert first - second
    assert second - first


def test_nests_that_share_a_variable_are_chosen_for_together() -> None:
    found = _scheduled(one_leaves_a_variable)
    assert {item.part for item in found.versions} == {0}


X, Y = (Symbol(name, number, FLOAT32) for number, name in enumerate("xy", 1))
ONE = build.constant(1.0, FLOAT32)


def _loop(number: int, *body: Assign) -> For:
    return For(index=Symbol("i", number, INT64), start=build.integer(0), stop=build.integer(4), body=body)


SETS, READS = Assign(symbol=X, value=ONE), Assign(symbol=Y, value=build.add(build.read(X), ONE))
ASKED = If(condition=build.apply("lt", build.integer(0), build.integer(1)), then=(_loop(3, SETS),))


@pytest.mark.parametrize(
    ("body", "apart"),
    [
        ((_loop(1, SETS), _loop(2, SETS, READS)), True),
        ((_loop(1, SETS), ASKED, _loop(2, SETS, READS)), True),
        ((_loop(1, SETS), _loop(2, READS)), False),
        ((_loop(1, SETS), ASKED, _loop(2, READS)), False),
        ((_loop(1, SETS), _loop(2, READS), ASKED), False),
        ((_loop(1, READS), _loop(2, SETS)), True),
    ],
    ids=["sets its own", "in a condition", "reads", "reads later", "reads in between", "reads before"],
)
def test_nests_stand_apart_that_leave_no_variable(body: Block, apart: bool) -> None:
    assert stand_apart(body) is apart
