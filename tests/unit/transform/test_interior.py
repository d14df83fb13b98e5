"""The middle of a loop runs without the conditions of its borders; what runs, and in which order, stays the same."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Apply, Assign, Break, Check, For, If, Launch, Reduction, Role, Select, Symbol, While
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import rewrite, statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.interior import with_interiors
from support.lowering import memory, program_of
from support.scheduling import same, scheduled

Tensor = torch.Tensor
LARGE = 2**63 - 1


def row(n):
    return memory([float(3 * i % 7 - 2) for i in range(n)])


def plane(n, m):
    values = [float((5 * i + 3 * j) % 11 - 4) for i in range(n) for j in range(m)]
    return Memory(values, (n, m), (m, 1), FLOAT32)


# ---------------------------------------------------------------- borders at the ends


def neighbours(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        v = x[i]
        if i > 0:
            v += x[i - 1]
        if i < n - 1:
            v += x[i + 1]
        y[i] = v


def the_ends_apart(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        if i == 0 or n - 1 == i:
            y[i] = 7.0
        else:
            y[i] = x[i - 1] - x[i + 1]


def an_end_in_a_variable(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        k = i - 1
        inside = k >= 0 and not i + 1 >= n
        if inside:
            y[i] = x[k]


def downwards(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n - 1, -1, -1):
        if i + 1 < n:
            y[i] = y[i + 1] + x[i]
        else:
            y[i] = x[i]


def every_second(x: Tensor, y: Tensor) -> None:
    for i in range(y.shape[0]):
        if 2 * i - 3 >= 0 and 2 * i < x.shape[0]:
            y[i] = x[2 * i - 3] + x[2 * i]


def clamped(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        y[i] = x[max(i - 2, 0)] + x[min(n - 1, i + 3)]


def a_window(x: Tensor, y: Tensor) -> None:
    n = x.shape[0]
    for i in range(n):
        s = 0.0
        for k in range(5):
            if 0 <= i + k - 2 < n:
                s += x[i + k - 2]
        y[i] = s


def chosen(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        y[i] = x[i] if i > 1 else -1.0


def from_the_third(x: Tensor, y: Tensor) -> None:
    for i in range(3, x.shape[0]):
        if i > 4 and i < x.shape[0] - 1:
            y[i] = x[i - 5] + x[i + 1]


AT_ENDS = (
    from_the_third,
    neighbours,
    the_ends_apart,
    an_end_in_a_variable,
    downwards,
    every_second,
    clamped,
    a_window,
    chosen,
)


@pytest.mark.parametrize("function", AT_ENDS)
def test_the_middle_runs_without_conditions(function):
    for n in (0, 1, 2, 3, 9, 40):
        same(function, row(n), row(n))
    assert plain_loops(function, row(9), row(9)) == 1


def beside_a_third(x: Tensor, y: Tensor) -> None:
    """What the host computes for the kernel is no variable that the loop's borders are kept in."""
    third = x.shape[0] // 3
    for i in range(1, x.shape[0]):
        y[0] = x[1 if 0 <= i < 0 else 0]
    for i in range(1, 0, -1):
        y[0] = third * i


def test_borders_have_variables_of_their_own():
    for n in (3, 9, 40):
        assert same(beside_a_third, row(n), row(n))[1][0] == n // 3


# ---------------------------------------------------------------- borders from arguments


def shifted(x: Tensor, y: Tensor, s: int) -> None:
    for i in range(y.shape[0]):
        if i - s >= 0 and i - s < x.shape[0]:
            y[i] = x[i - s]
        else:
            y[i] = 0.5


def rolled(x: Tensor, y: Tensor, s: int) -> None:
    n = x.shape[0]
    for i in range(n):
        y[i] = x[(i + s) % n]


def up_to_an_argument(x: Tensor, y: Tensor, s: int) -> None:
    for i in range(x.shape[0]):
        if i * 3 + s <= 11:
            y[i] = x[i]
        if s - i > 2:
            y[i] += 1.0


def shifted_by_half(x: Tensor, y: Tensor, s: int) -> None:
    for i in range(y.shape[0]):
        if i - s // 2 >= 0 and i - s // 2 < x.shape[0]:
            y[i] = x[i - s // 2]
        else:
            y[i] = 0.5


def where_a_sum_may_wrap(x: Tensor, y: Tensor, s: int) -> None:
    for i in range(x.shape[0]):
        if i + s > s:
            y[i] = x[i]


def where_a_product_may_wrap(x: Tensor, y: Tensor, s: int) -> None:
    for i in range(x.shape[0]):
        if s * 4 + i > 2:
            y[i] = x[i]


def where_an_index_wraps(x: Tensor, y: Tensor) -> None:
    for i in range(2**62, 2**62 + 40):
        y[i + 1 - 2**62] = y[i - 2**62] * 0.5
        if 3 * i > 5:
            y[i + 1 - 2**62] += x[i - 2**62]


def test_indices_of_any_size():
    assert same(where_an_index_wraps, row(40), memory([0.0] * 41))[1] == [0.0] * 41


FROM_ARGUMENTS = (shifted, shifted_by_half, rolled, up_to_an_argument, where_a_sum_may_wrap, where_a_product_may_wrap)


@pytest.mark.parametrize("function", FROM_ARGUMENTS)
def test_arguments_of_any_size(function):
    for s in (0, 1, -1, 4, 9, 50, -50, 2**40, -(2**40), 2**61, LARGE, -LARGE - 1):
        same(function, row(9), row(9), s)
    same(function, row(0), row(0), 3)
    assert plain_loops(function, row(9), row(9), 1) == 1


# ---------------------------------------------------------------- nests


def summed_area(x: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j]
            if i > 0:
                v += s[i - 1, j]
            if j > 0:
                v += s[i, j - 1]
            if i > 0 and j > 0:
                v -= s[i - 1, j - 1]
            s[i, j] = v


def around_a_torus(x: Tensor, s: Tensor) -> None:
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            v = 0.0
            for p in range(-1, 2):
                for q in range(-1, 2):
                    v += x[(i + p) % n, (j + q) % m]
            s[i, j] = v


def below_the_diagonal(x: Tensor, s: Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j <= i:
                s[i, j] = x[i, j]
            else:
                s[i, j] = 0.0


@pytest.mark.parametrize("function", [summed_area, around_a_torus, below_the_diagonal])
def test_conditions_of_loops_around_are_tested_before(function):
    for n, m in ((0, 3), (3, 0), (1, 1), (1, 5), (5, 1), (2, 2), (4, 19)):
        same(function, plane(n, m), plane(n, m))
    assert plain_loops(function, plane(4, 9), plane(4, 9)) == 1


# ---------------------------------------------------------------- what has no interior


def an_element_decides(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            y[i] = x[i]


def a_counter_decides(x: Tensor, y: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        if p > 2:
            y[i] = x[i]
        if x[i] > 0.0:
            p += 1


def a_remainder_of_less(x: Tensor, y: Tensor, s: int) -> None:
    for i in range(x.shape[0]):
        y[i] = x[i] + i % 4


def it_may_end(x: Tensor, y: Tensor) -> None:
    for i in range(x.shape[0]):
        if i > 1:
            y[i] = y[i - 1] + x[i]
        if x[i] > 3.0:
            break


def an_argument_decides(x: Tensor, y: Tensor, on: bool) -> None:
    for i in range(x.shape[0]):
        if on:
            y[i] = x[i]


WITHOUT = (
    (an_argument_decides, (True,)),
    (an_element_decides, ()),
    (a_counter_decides, ()),
    (a_remainder_of_less, (2,)),
    (it_may_end, ()),
)


@pytest.mark.parametrize(("function", "more"), WITHOUT)
def test_loops_without_an_interior_stay(function, more):
    same(function, row(9), row(9), *more)
    assert with_interiors(body := fast(function, row(9), row(9), *more)) == body


S = Symbol("s", 2, INT64)


def test_loops_that_check_or_end_are_not_cut():
    i = Symbol("i", 1, INT64)
    above = build.apply("gt", build.read(i), build.integer(0))
    drawn = If(condition=above, then=(Assign(symbol=S, value=build.read(i)),))
    limit = build.read(Symbol("n", 3, INT64))

    def loop(*body, **options):
        return For(index=i, start=build.integer(0), stop=limit, body=(drawn, *body), **options)

    assert len(with_interiors((loop(),))) > 1
    failing = Check(condition=build.apply("lt", build.read(i), limit), failure=None)
    below = build.apply("lt", build.read(S), limit)
    ends, goes_on = (
        If(condition=below, then=way, otherwise=other) for way, other in (((Break(),), ()), ((), (Break(),)))
    )
    again = While(prelude=(), condition=below, body=(Assign(symbol=S, value=limit),))
    total = (Reduction(S, OPERATORS["add"]),)
    roles = [loop(role=Role.PARALLEL), loop(unrolled=2), loop(role=Role.VECTOR), loop(reductions=total)]
    for whole in (loop(failing), loop(ends), loop(goes_on), loop(again), *roles):
        assert with_interiors((whole,)) == (whole,)


def as_far_as_branches_say(x: Tensor, y: Tensor) -> None:
    i = 0
    while i < x.shape[0]:
        more = 0
        if x[i] > 0.0:
            more = 3
        if x[i] > 2.0:
            more = 30
        v = x[i]
        for e in range(more):
            if i + 1 + e < x.shape[0]:
                v += x[i + 1 + e]
        y[i] = v
        i += 1 + more


@pytest.mark.parametrize("most", [30, 33, "more"])
def test_loops_that_branches_give_a_short_length_are_not_cut(most):
    same(as_far_as_branches_say, row(9), row(9))
    body = canonical(program_of(as_far_as_branches_say, row(9), row(9))).body
    body = next(node.kernel.body for node in body if isinstance(node, Launch))

    def change(node):
        if isinstance(node, Assign) and node.value == build.integer(30):
            return replace(node, value=build.read(node.symbol) if most == "more" else build.integer(most))
        return node

    body = tuple(rewrite(statement, change) for statement in body)
    assert (with_interiors(body) == body) == (most == 30)


def fast(function, *arguments):
    """Return the body of the only kernel, scheduled for a processor."""
    program = scheduled(canonical(program_of(function, *arguments)))
    return next(node.kernel.body for node in program.body if isinstance(node, Launch))


def plain_loops(function, *arguments):
    """Return how many parts of loops are without conditions."""
    loops = [node for node in statements(fast(function, *arguments)) if isinstance(node, For)]
    parts = [node for node in loops if len({other.start for other in loops if other.index == node.index}) > 2]
    return sum(not any(map(is_border, walk(node.body))) for node in parts)


def is_border(node):
    names = {"minimum", "maximum", "mod"}
    return isinstance(node, If | Select) or (isinstance(node, Apply) and node.operator.name in names)
