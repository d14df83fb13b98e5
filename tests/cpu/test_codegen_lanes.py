"""Control flow in lanes: what masks and forms of values compute is what the interpreter computes, at every width."""

from dataclasses import replace

import pytest
import torch

from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.ir.build import cast, constant
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Break, Continue, Reduction, Role
from support.machine import Machine, interpreted, named, scheduled
from support.pairs import in_turn, pairwise
from support.written import check, extent, kernel, let, load, loop, op, repeat, store, symbol, when, whole

WIDTHS = (1, 4, 16, 64)


def roles(width):
    """Return the schedule in which lanes run iterations of the loop `i`."""
    return {"i": (Role.VECTOR, width)} if width > 1 else {}


def agree(made, tensors, scalars=(), rounding=SOURCE):
    """Check that all widths give the interpreter's result, bit for bit."""
    expected = interpreted(made, tensors, scalars)
    for width in WIDTHS:
        copies = [data.clone() for data in tensors]
        assert Machine(scheduled(made, roles(width)), rounding=rounding)(copies, scalars) is None
        for copy, wanted in zip(copies, expected, strict=True):
            torch.testing.assert_close(copy, wanted, rtol=0, atol=0, equal_nan=True, msg=f"width {width}")


@pytest.fixture
def numbers():
    """Return 101 whole numbers from -50 to 50."""
    return torch.arange(101) - 50


def test_lanes_take_both_branches(numbers):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, s = symbol("i"), symbol("s")
    body = (
        let(s, load(x, i)),
        when(op("lt", s, 0), (let(s, op("neg", s)),), (when(op("gt", s, 20), (let(s, op("mul", s, 3)),)),)),
        store(out, (i,), s),
    )
    agree(kernel((x, out), loop(i, 0, extent(x), *body)), [numbers, torch.zeros_like(numbers)])


def test_lanes_run_while_loops_of_their_own_lengths(numbers):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, s, steps = symbol("i"), symbol("s"), symbol("steps")
    odd = op("eq", op("mod", s, 2), 1)
    body = (
        let(s, op("add", op("abs", load(x, i)), 1)),
        let(steps, 0),
        repeat(
            op("ne", s, 1),
            when(odd, (let(s, op("add", op("mul", s, 3), 1)),), (let(s, op("floordiv", s, 2)),)),
            let(steps, op("add", steps, 1)),
        ),
        store(out, (i,), steps),
    )
    agree(kernel((x, out), loop(i, 0, extent(x), *body)), [numbers, torch.zeros_like(numbers)])


def test_lanes_break_and_continue(numbers):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, j, s = symbol("i"), symbol("j"), symbol("s")
    inner = loop(
        j,
        op("floordiv", i, 7),
        op("add", i, 3),
        when(op("eq", op("mod", op("add", i, j), 3), 0), (Continue(),)),
        when(op("gt", s, 200), (Break(),)),
        let(s, op("add", s, op("mul", j, load(x, j)))),
        when(op("eq", j, 60), (let(s, op("add", s, 1)), Break())),
        let(s, op("add", s, 2)),
    )
    body = (let(s, 0), when(op("eq", load(x, i), 3), (Continue(),)), inner, store(out, (i,), s))
    agree(kernel((x, out), loop(i, 0, op("sub", extent(x), 3), *body)), [numbers, torch.zeros_like(numbers)])


@pytest.mark.parametrize("start", ["0", "i - 5", "i // 2"])
def test_inner_loops_with_bounds_of_a_lane(numbers, start):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, j, s = symbol("i"), symbol("j"), symbol("s")
    begin = {"0": op("mul", 0, 0), "i - 5": op("maximum", op("sub", i, 5), 0), "i // 2": op("floordiv", i, 2)}[start]
    body = (
        let(s, 0),
        loop(j, begin, op("add", i, 1), let(s, op("add", s, op("mul", load(x, j), op("sub", i, j))))),
        store(out, (i,), s),
    )
    agree(kernel((x, out), loop(i, 0, extent(x), *body)), [numbers, torch.zeros_like(numbers)])


def test_backward_runs_and_gathers(numbers):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i = symbol("i")
    last = op("sub", extent(x), 1)
    value = op("add", load(x, op("sub", last, i)), load(x, op("mod", op("mul", i, i), extent(x))))
    body = store(out, (op("sub", last, i),), op("add", value, load(x, op("floordiv", i, 3))))
    agree(kernel((x, out), loop(i, 0, extent(x), body)), [numbers, torch.zeros_like(numbers)])


@pytest.mark.parametrize(
    ("divisor", "reverse"),
    in_turn([1, 2, 3, 5, 16, 17, 48, 100, 2**40, -1, -2, -7, -64, -(2**63), 7], [False, True], 1),
)
def test_floor_division_by_a_number_known_at_run_time(divisor, reverse):
    out = torch.zeros(3, 150, dtype=torch.int64)
    to, i, d, s = named("out", 0, out), symbol("i"), symbol("d"), symbol("s")
    number = op("sub", 40, i) if reverse else op("sub", i, 70)
    rest = op("sub", number, op("mul", op("floordiv", number, d), d))
    body = (
        let(s, number),
        store(to, (0, i), op("floordiv", number, d)),
        store(to, (1, i), op("mod", number, d)),
        store(to, (2, i), rest),
    )
    agree(kernel((to,), loop(i, 0, extent(to, 1), *body), scalars=(d,)), [out], (divisor,))


LARGE = [2**50 - 1, -(2**50), 2**50, -(2**50) - 1, 2**51 + 1, 2**52 - 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize("rounding", [SOURCE, Rounding(fast_math=True)], ids=["source", "fast_math"])
@pytest.mark.parametrize("large", [[], LARGE], ids=["all small", "some large"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64])
def test_lanes_divide_by_numbers_of_their_own(dtype, large, rounding):
    """A quotient that is as near to an integer as can be is rounded down, at the ends of what is divided as floats."""
    divisors = [1, 2, 3, 7, 10, 2**31 + 1, 2**49 - 1, 2**50 - 1, -1, -3, -(2**50), *large]
    tops = [0, 1, 6, -7, 2**50 - 1, -(2**50), *large]
    near = [divisor * (top // divisor) + step for divisor in divisors for top in tops for step in (-1, 0, 1)]
    given = [(top, divisor) for divisor in divisors for top in dict.fromkeys((*tops, *near))]
    given = [(one, other) for one, other in given if -(2**63) <= one < 2**63 and (large or -(2**50) <= one < 2**50)]
    if dtype is torch.uint64:
        given = [(abs(one), abs(other)) for one, other in given]
        given += [(2**64 - one, 7) for one in (1, 5, 2**50)] if large else []
    x, z = (torch.tensor(side, dtype=torch.uint64).view(torch.int64) for side in zip(*_bits(given), strict=True))
    tensors = [x.view(dtype), z.view(dtype), torch.zeros(2, len(x), dtype=dtype)]
    first, second, out = (
        named(name, place, data) for place, (name, data) in enumerate(zip("xzo", tensors, strict=True))
    )
    i = symbol("i")
    parts = [op(name, load(first, i), load(second, i)) for name in ("floordiv", "mod")]
    body = [store(out, (row, i), part) for row, part in enumerate(parts)]
    agree(kernel((first, second, out), loop(i, 0, extent(first), *body)), tensors, rounding=rounding)


def _bits(pairs):
    """Return pairs of integers as the unsigned ones of the same bits."""
    return [(one % 2**64, other % 2**64) for one, other in pairs]


def test_idle_lanes_divide_by_zero_without_a_trap(numbers):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i = symbol("i")
    rest = op("mod", op("add", i, 7), load(x, i))
    body = when(op("ne", load(x, i), 0), (store(out, (i,), rest),))
    agree(kernel((x, out), loop(i, 0, extent(x), body)), [numbers, torch.zeros_like(numbers)])


@pytest.mark.parametrize("period", [1, 3, 15, 16, 40, 63, 64, 90])
@pytest.mark.parametrize("reverse", [False, True])
def test_runs_that_wrap(period, reverse):
    x, out = torch.randn(2, period), torch.zeros(2, 133)
    tile, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    place = op("mod", op("sub", 5, i) if reverse else op("sub", i, 9), extent(tile, 1))
    body = store(to, (1, i), load(tile, 1, place))
    agree(kernel((tile, to), loop(i, 0, extent(to, 1), body)), [x, out])


def test_a_sum_over_lanes_is_close_and_leaves_idle_lanes_out():
    x, out = torch.rand(1003), torch.zeros(2)
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    s, m = symbol("s", FLOAT32), symbol("m", FLOAT32)
    body = (let(s, op("add", s, load(tensor, i))), let(m, op("maximum", m, load(tensor, i))))
    zero = constant(0.0, FLOAT32)
    for role in (Role.VECTOR, Role.PARALLEL):
        for width in (1, 16):
            made = scheduled(kernel((tensor, to), loop(i, 0, extent(tensor), *body)), {"i": (role, width)})
            reductions = tuple(Reduction(v, op(n, v, v).operator) for v, n in ((s, "add"), (m, "maximum")))
            reduced = replace(made.body[0], reductions=reductions)
            made = replace(made, body=(let(s, zero), let(m, zero), reduced, store(to, (0,), s), store(to, (1,), m)))
            out.zero_()
            assert Machine(made)([x, out]) is None
            torch.testing.assert_close(out, torch.stack([x.sum(), x.max()]))


def test_a_failed_check_names_the_first_lane(numbers):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i = symbol("i")
    body = (
        check(op("lt", op("mod", load(x, i), 31), 25), "bad {0} {1}", op("add", i, 0), load(x, i)),
        store(out, (i,), load(x, i)),
    )
    made = kernel((x, out), loop(i, 0, extent(x), *body))
    for width in WIDTHS:
        failed = Machine(scheduled(made, roles(width)))([numbers, torch.zeros_like(numbers)])
        assert failed is not None
        assert failed.values == (13, -37)


def test_parallel_iterations_keep_the_lowest_failure():
    data = torch.arange(100000)
    x, i = named("x", 0, data), symbol("i")
    body = check(op("lt", op("mod", load(x, i), 30000), 29000), "bad {0}", op("add", i, 0))
    made = scheduled(kernel((x,), loop(i, 0, extent(x), body)), {"i": (Role.PARALLEL, 1)})
    failed = Machine(made)([data])
    assert failed is not None
    assert failed.values == (29000,)
    assert failed.order == 29000


def test_nested_parallel_loops_are_one_range():
    out = torch.zeros(5, 7, 130)
    to = named("out", 0, out)
    a, b, i, s = symbol("a"), symbol("b"), symbol("i"), symbol("s")
    value = cast(op("add", op("mul", op("add", op("mul", a, 7), b), 130), i), FLOAT32)
    value = op("add", value, cast(whole(s), FLOAT32))
    inner = (let(s, op("mul", a, 2)), loop(i, 0, extent(to, 2), store(to, (a, b, i), value)))
    made = kernel((to,), loop(a, 0, extent(to, 0), loop(b, 1, extent(to, 1), *inner)))
    for width in WIDTHS:
        out.zero_()
        plan = {"a": (Role.PARALLEL, 1), "b": (Role.PARALLEL, 1), "i": (Role.VECTOR, width)}
        assert Machine(scheduled(made, plan))([out]) is None
        expected = torch.arange(5 * 7 * 130.0).reshape(5, 7, 130)
        expected += 2 * torch.arange(5.0)[:, None, None]
        expected[:, 0] = 0
        torch.testing.assert_close(out, expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "stride", "limit"),
    pairwise(["lt", "le", "gt", "ge"], [1, -1, 3, -700], [0, -17, 45, 2**62, -(2**62)]),
)
def test_lanes_compare_what_grows_along_them(numbers, name, stride, limit):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, s = symbol("i"), symbol("s")
    place = op("mul", op("sub", i, 50), stride)
    body = (
        let(s, load(x, i)),
        when(op(name, place, limit), (let(s, op("add", s, 1000)),)),
        when(op(name, limit, place), (let(s, op("add", s, 5000)),)),
        store(out, (i,), s),
    )
    agree(kernel((x, out), loop(i, 0, extent(x), *body)), [numbers, torch.zeros_like(numbers)])


@pytest.mark.parametrize("factor", [1, 2, 0, -1, -3])
@pytest.mark.parametrize("least", [-60, 7, 200])
def test_lanes_read_at_a_distance_that_is_an_argument(numbers, factor, least):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, s, n = symbol("i"), symbol("s"), symbol("n")
    place = op("add", op("mul", op("sub", i, 8), n), 48)
    back = op("neg", op("sub", op("mul", place, -1), i))
    body = (
        let(s, op("add", place, op("sub", back, op("mul", n, i)))),
        when(op("gt", load(x, place), least), (let(s, op("mul", load(x, place), load(x, op("sub", back, i)))),)),
        store(out, (i,), s),
    )
    agree(kernel((x, out), loop(i, 0, 23, *body), scalars=(n,)), [numbers, torch.zeros_like(numbers)], (factor,))


def test_lanes_write_at_a_distance_that_is_an_argument(numbers):
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, n = symbol("i"), symbol("n")
    made = kernel((x, out), loop(i, 0, 33, store(out, (op("mul", i, n),), load(x, i))), scalars=(n,))
    for factor in (0, 1, 3):
        agree(made, [numbers, torch.zeros_like(numbers)], (factor,))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 9, 70])
def test_few_iterations_with_loops_inside_run_one_after_the_other(count):
    numbers = torch.arange(count) - count // 2
    x, out = named("x", 0, numbers), named("out", 1, numbers)
    i, k, s, last = symbol("i"), symbol("k"), symbol("s"), symbol("last")
    inner = (when(op("gt", op("mul", k, k), load(x, i)), (Break(),)), let(s, op("add", s, op("mul", k, i))))
    body = (
        let(s, 0),
        let(last, load(x, i)),
        when(op("eq", op("mod", last, 3), 1), (store(out, (i,), last), Continue())),
        loop(k, 0, i, *inner),
        store(out, (i,), op("add", s, last)),
    )
    made = kernel((x, out), loop(i, 0, extent(x), *body))
    agree(made, [numbers, torch.zeros_like(numbers)])
    plain = kernel((x, out), loop(i, 0, extent(x), store(out, (i,), load(x, i))))
    texts = [Machine(scheduled(each, roles(16))).module.text() for each in (made, plain)]
    assert ["alone" in text for text in texts] == [True, False]
