"""Which expressions are lines along a loop, and which iterations a comparison of them leaves to the middle."""

import pytest

from brickwork.analysis.definitions import definitions_in
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import For, Load, Symbol, Tensor, TensorType
from brickwork.transform.borders import NOTHING, ONE, Borders, Line
from brickwork.transform.sums import SMALL, Sum

I, N, M = (build.read(Symbol(name, place, INT64)) for place, name in enumerate("inm"))
H = build.read(Symbol("h", 3, FLOAT64))
X = Tensor("x", 4, TensorType(INT64, 1, contiguous=True, unit_axis=0))
LOOP = For(index=I.symbol, start=build.integer(0), stop=N, body=())
LARGEST_FACTOR = 2**14


def number(value):
    return build.integer(value)


def line(value):
    return Borders(LOOP, {}).line(value, definitions_in(()), {})


def difference(left, right):
    return Borders(LOOP, {}).difference(left, right, definitions_in(()), {})


def test_sums_of_multiples_are_lines():
    rest = Sum(((N, -2),), 5)
    value = build.sub(build.add(build.mul(number(3), I), number(5)), build.mul(N, number(2)))
    assert line(value) == Line(3, rest, rest)
    assert line(build.apply("neg", I)) == Line(-1, Sum(), Sum())
    for value in (build.apply("neg", build.mul(I, I)), build.mul(number(3), build.mul(I, I))):
        assert line(value) is None
    assert line(build.apply("abs", I)) is None


def test_what_changes_with_the_loop_is_no_leaf():
    square = build.mul(I, I)
    half, least = build.apply("floordiv", I, number(2)), build.apply("minimum", I, N)
    for value in (square, build.add(square, N), build.add(N, square), half, least):
        assert line(value) is None
    assert line(build.mul(N, M)) == Line(0, Sum(((build.mul(N, M), 1),)), Sum(((build.mul(N, M), 1),)))


@pytest.mark.parametrize(
    "value",
    [
        Load(tensor=X, indices=(N,), access=0, dtype=INT64),
        build.mul(N, Load(tensor=X, indices=(N,), access=0, dtype=INT64)),
        build.apply("floordiv", N, M),
        build.apply("maximum", N, build.apply("mod", N, M)),
    ],
)
def test_what_may_fail_where_the_loop_does_not_run_is_no_leaf(value):
    assert line(value) is None


def test_lines_do_not_wrap():
    most, less = build.mul(number(LARGEST_FACTOR), I), build.mul(number(-LARGEST_FACTOR), I)
    assert line(most) == Line(LARGEST_FACTOR, Sum(), Sum())
    assert line(build.mul(number(LARGEST_FACTOR + 1), I)) is None
    assert line(build.add(most, I)) is None
    assert line(number(2**62)) == NOTHING.plus(ONE, 2**62)
    assert line(number(2**62 + 1)) is None
    assert difference(most, number(0)) == line(most)
    assert difference(most, less) is None


def test_only_integers_have_a_difference():
    assert difference(H, build.constant(0.5, FLOAT64)) is None
    assert difference(N, number(1)) == Line(0, Sum(((N, 1),), -1), Sum(((N, 1),), -1))


def test_iterations_between_borders_and_what_is_tested_before():
    rest = Sum(((N, 1),), -1)
    for factor, lows, highs, tests in (
        (2, [build.apply("neg", build.apply("floordiv", rest.expression(), number(2)))], [], []),
        (-2, [], [build.add(build.apply("floordiv", rest.expression(), number(2)), number(1))], []),
        (0, [], [], [build.apply("ge", rest.expression(), number(0))]),
    ):
        borders = Borders(LOOP, {})
        borders.note(Line(factor, rest, rest))
        assert ([*borders.lows], [*borders.highs], [*borders.tests]) == (lows, highs, tests)


def test_what_is_added_up_is_tested_to_be_small():
    borders = Borders(LOOP, {})
    for value, expected in ((number(SMALL), True), (number(SMALL + 1), False), (number(-SMALL - 1), False)):
        borders.tests.clear()
        borders.bound(value)
        assert (not borders.tests) is expected
    borders.bound(N)
    assert {build.apply("le", N, number(SMALL)), build.apply("ge", N, number(-SMALL))} <= borders.tests.keys()
