"""Accesses proved in range, guarded by a condition, or left to a check."""

import pytest

from brickwork.analysis import bounds
from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT32, INT64, UINT8
from brickwork.ir.nodes import Assign, Constant, If
from brickwork.transform.spelling import spelled
from support.kernels_ir import KernelBuilder, apply, size, timex, wrapped


def verdicts(kernel, tensor):
    analysis = analyse(kernel)
    numbers = [access.number for access in analysis.accesses if access.tensor.name == tensor]
    return [analysis.bounds[number, 0] for number in numbers]


def copying(index_of, *, extent=None, facts=()):
    """for i in range(extent): y[i] = x[index]"""
    make = KernelBuilder()
    x, y, i, k = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i"), make.scalar("k")
    stop = size(x, 0) if extent is None else extent(x, y, k)
    index = index_of(x, y, i, k)
    return make.kernel(make.loop(i, stop, make.store(y, (i,), make.load(x, index))), facts=facts)


def test_a_loop_over_the_axis_is_proved():
    (verdict,) = verdicts(copying(lambda x, y, i, k: i), "x")
    assert verdict.bound is Bound.PROVED
    assert verdict.plain


def test_unrelated_sizes_give_a_guard():
    (verdict,) = verdicts(copying(lambda x, y, i, k: i), "y")
    assert verdict.bound is Bound.GUARDED
    assert [spelled(guard) for guard in verdict.guard] == ["y.shape[0] >= x.shape[0]"]


def thirds(parts, factor=1):
    """for i in range(parts // 3 of x): y[i] = z[factor * parts // 3 + i], where that is negative or not."""

    def extent(x, y, k):
        return apply("floordiv", size(x, 0), build.integer(3))

    def index(x, y, i, k):
        return apply("add", apply("mul", build.integer(factor * parts), extent(x, y, k)), i)

    make = KernelBuilder()
    x, y, z, i, k = make.tensor("x", 1), make.tensor("y", 1), make.tensor("z", 1), make.symbol("i"), make.scalar("k")
    load = make.load(z, index(x, y, i, k))
    return make.kernel(make.loop(i, extent(x, y, k), make.store(y, (i,), load)))


@pytest.mark.parametrize(
    ("parts", "guard"),
    [
        (0, "2 + 3 * z.shape[0] >= x.shape[0]"),
        (1, "3 * z.shape[0] >= 2 * x.shape[0]"),
        (2, "3 * z.shape[0] >= 3 * x.shape[0]"),
    ],
)
def test_parts_of_an_axis_one_after_the_other_are_guarded(parts, guard):
    (verdict,) = verdicts(thirds(parts), "z")
    assert verdict.bound is Bound.GUARDED
    assert [spelled(each) for each in verdict.guard] == [guard]


def test_what_comes_before_the_parts_is_no_part():
    (verdict,) = verdicts(thirds(1, -1), "z")
    assert not (verdict.bound is Bound.PROVED and verdict.plain)


def test_places_that_move_with_a_half_of_an_index_are_proved():
    """for t in range(y.shape[0]): for k in range(t // 2 - 2, t // 2 + 4): y[t] += x[2 * k - t + 5]"""
    make = KernelBuilder()
    x, y, t, k = make.tensor("x", 1), make.tensor("y", 1), make.symbol("t"), make.symbol("k")
    half = apply("floordiv", t, build.integer(2))
    place = apply("add", apply("sub", apply("mul", build.integer(2), k), t), build.integer(5))
    adding = make.store(y, (t,), apply("add", make.load(y, t), make.load(x, place)))
    inner = make.loop(k, apply("add", half, build.integer(4)), adding, start=apply("sub", half, build.integer(2)))
    (verdict,) = verdicts(make.kernel(make.loop(t, size(y, 0), inner)), "x")
    assert [spelled(guard) for guard in verdict.guard] == ["x.shape[0] >= 12"]


def test_equal_sizes_are_taken_from_facts():
    make = KernelBuilder()
    x, y, i = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i")
    loop = make.loop(i, size(x, 0), make.store(y, (i,), make.load(x, i)))
    kernel = make.kernel(loop, facts=(apply("eq", size(y, 0), size(x, 0)),))
    assert all(verdict.bound is Bound.PROVED for verdict in analyse(kernel).bounds.values())


def test_a_chain_of_equal_sizes_is_one_size():
    """`assert x.shape[0] == y.shape[0] == k`, in either order."""
    for order in (1, -1):
        make = KernelBuilder()
        x, y, i, k = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i"), make.scalar("k")
        links = (apply("eq", size(x, 0), size(y, 0)), apply("eq", size(y, 0), build.read(k)))[::order]
        loop = make.loop(i, build.read(k), make.store(y, (i,), make.load(x, i)))
        kernel = make.kernel(loop, facts=(apply("logical_and", *links),))
        assert all(verdict.bound is Bound.PROVED for verdict in analyse(kernel).bounds.values())


def test_an_offset_by_an_argument_is_guarded():
    (verdict,) = verdicts(copying(lambda x, y, i, k: apply("add", i, k)), "x")
    assert verdict.bound is Bound.GUARDED


def test_a_condition_on_the_path_proves():
    make = KernelBuilder()
    x, y, i = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i")
    store = make.store(y, (i,), make.load(x, apply("sub", i, 1)))
    body = make.branch(apply("gt", i, 0), (store,))
    kernel = make.kernel(make.loop(i, size(x, 0), body))
    assert [verdict.bound for verdict in verdicts(kernel, "x")] == [Bound.PROVED]


@pytest.mark.parametrize("dtype", [INT32, INT64])
def test_an_index_from_memory_is_checked(dtype):
    make = KernelBuilder()
    x, index, y, i = make.tensor("x", 1), make.tensor("index", 1, dtype), make.tensor("y", 1), make.symbol("i")
    load = make.load(x, wrapped(make.load(index, i), x, 0))
    kernel = make.kernel(make.loop(i, size(index, 0), make.store(y, (i,), load)))
    (verdict,) = verdicts(kernel, "x")
    assert verdict.bound is Bound.CHECKED
    assert not verdict.plain


@pytest.mark.parametrize("first", [0, 1])
def test_what_some_iterations_read_from_memory_is_checked(first):
    """A guard would say that those are none: that there is one iteration at most."""
    make = KernelBuilder()
    at, y, i, k = make.tensor("at", 1, INT64), make.tensor("y", 1), make.symbol("i"), make.symbol("k")
    even = apply("eq", apply("mod", i, build.integer(2)), build.integer(first))
    chosen = If(
        condition=even,
        then=(Assign(symbol=k, value=build.integer(0)),),
        otherwise=(Assign(symbol=k, value=make.load(at, i)),),
    )
    kernel = make.kernel(
        make.loop(i, size(at, 0), chosen, make.store(y, (build.read(k),), build.constant(1.0, FLOAT32)))
    )
    assert [verdict.bound for verdict in verdicts(kernel, "y")] == [Bound.CHECKED]


def test_a_guard_that_no_size_satisfies_is_none():
    make = KernelBuilder()
    x, i = make.tensor("x", 1), make.symbol("i")
    beyond = apply("add", apply("mul", size(x, 0), size(x, 0)), build.read(i))
    kernel = make.kernel(make.loop(i, size(x, 0), make.store(x, (beyond,), build.constant(1.0, FLOAT32))))
    assert [verdict.bound for verdict in verdicts(kernel, "x")] == [Bound.CHECKED]


def test_a_byte_as_index_is_guarded_by_the_size_of_the_table():
    make = KernelBuilder()
    x, index, y, i = make.tensor("x", 1), make.tensor("index", 1, UINT8), make.tensor("y", 1), make.symbol("i")
    kernel = make.kernel(make.loop(i, size(index, 0), make.store(y, (i,), make.load(x, make.load(index, i)))))
    (verdict,) = verdicts(kernel, "x")
    assert [spelled(guard) for guard in verdict.guard] == ["x.shape[0] >= 256"]


def test_a_clamped_index_is_proved():
    def clamp(x, y, i, k):
        return apply("maximum", apply("minimum", apply("add", i, k), apply("sub", size(x, 0), 1)), 0)

    (verdict,) = verdicts(copying(clamp), "x")
    assert verdict.bound is Bound.PROVED


def test_a_wrapping_subtraction_is_not_trusted():
    """`min(k - 2**63 + ..., n - 1)` may wrap: nothing is proved of it below zero."""
    make = KernelBuilder()
    x, index, y, i = make.tensor("x", 1), make.tensor("index", 1, INT64), make.tensor("y", 1), make.symbol("i")
    j = make.load(index, i)
    place = apply("minimum", apply("add", j, 1), apply("sub", size(x, 0), 1))
    body = make.branch(apply("ge", j, 0), (make.store(y, (i,), make.load(x, place)),))
    kernel = make.kernel(make.loop(i, size(index, 0), body))
    assert [verdict.bound for verdict in verdicts(kernel, "x")] == [Bound.CHECKED]


def grouped(stop, offset=0):
    """for g in range(stop): for i in range(k): y[0] = x[g * k + i + offset]"""
    make = KernelBuilder()
    x, y, g, i, k = make.tensor("x", 1), make.tensor("y", 1), make.symbol("g"), make.symbol("i"), make.scalar("k")
    place = apply("add", apply("add", apply("mul", g, k), i), build.integer(offset))
    inner = make.loop(i, k, make.store(y, (build.integer(0),), make.load(x, place)))
    return make.kernel(make.loop(g, stop(x, k), inner))


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_groups_of_a_part_of_an_axis_are_proved(parts):
    """A product of the index and an argument is opaque to isl, and its bound is not."""

    def part(x):
        return apply("floordiv", size(x, 0), build.integer(parts))

    (verdict,) = verdicts(grouped(lambda x, k: apply("floordiv", part(x), k)), "x")
    assert verdict.bound is Bound.PROVED


@pytest.mark.parametrize(
    ("stop", "offset"),
    [
        (lambda x, k: apply("floordiv", apply("add", apply("floordiv", size(x, 0), 2), 1), k), 0),
        (lambda x, k: apply("floordiv", apply("floordiv", size(x, 0), 2), k), 1),
        (lambda x, k: apply("add", apply("floordiv", apply("floordiv", size(x, 0), 2), k), 1), 0),
    ],
)
def test_other_groups_are_not(stop, offset):
    """An axis of one element has none to spare."""
    (verdict,) = verdicts(grouped(stop, offset), "x")
    assert verdict.bound is not Bound.PROVED


def test_a_remainder_by_the_size_is_proved():
    kernel = copying(lambda x, y, i, k: apply("mod", apply("add", i, k), size(x, 0)))
    (verdict,) = verdicts(kernel, "x")
    assert verdict.bound is Bound.PROVED


def test_a_remainder_by_a_constant_needs_that_size():
    kernel = copying(lambda x, y, i, k: apply("mod", apply("add", i, k), 7))
    (verdict,) = verdicts(kernel, "x")
    assert [spelled(guard) for guard in verdict.guard] == ["x.shape[0] >= 7"]


def test_a_quotient_by_an_argument_is_guarded_by_the_greatest():
    """`scale[k // group]`: the guard asks for the group, too, as the quotients of a negative one count down."""
    (verdict,) = verdicts(copying(lambda x, y, i, k: apply("floordiv", i, k), extent=lambda x, y, k: size(y, 0)), "x")
    assert verdict.bound is Bound.GUARDED
    assert verdict.plain
    assert [spelled(guard) for guard in verdict.guard] == ["k >= 1", "x.shape[0] >= 1 + (y.shape[0] - 1) // max(k, 1)"]


@pytest.mark.parametrize(
    "index",
    [
        lambda x, i, k: apply("floordiv", apply("sub", i, build.integer(3)), k),  # may be negative
        lambda x, i, k: apply("floordiv", apply("mul", i, k), size(x, 0)),
        lambda x, i, k: apply("floordiv", apply("bit_and", apply("mul", i, k), build.integer(7)), apply("mul", i, k)),
    ],
)
def test_other_quotients_are_checked(index):
    kernel = copying(lambda x, y, i, k: index(x, i, k), extent=lambda x, y, k: size(y, 0))
    (verdict,) = verdicts(kernel, "x")
    assert verdict.bound is Bound.CHECKED


def test_a_quotient_of_a_third_power_is_guarded_for_sizes_for_which_that_does_not_wrap():
    def cubes(x, y, i, k):
        return apply("floordiv", apply("mul", apply("mul", i, i), i), k)

    kernel = copying(cubes, extent=lambda x, y, k: size(y, 0))
    (verdict,) = verdicts(kernel, "x")
    assert verdict.bound is Bound.GUARDED
    assert "1048576 >= y.shape[0]" in map(spelled, analyse(kernel).assumptions)


def test_a_quotient_of_any_number_makes_no_guard():
    make = KernelBuilder()
    x, y, i, k = make.tensor("x", 1), make.tensor("y", 1, INT64), make.symbol("i"), make.scalar("k")
    number = apply("maximum", make.load(y, i), build.integer(0))
    loop = make.loop(i, size(y, 0), make.store(x, (apply("floordiv", number, k),), Constant(value=1.0, dtype=FLOAT32)))
    (verdict,) = verdicts(make.kernel(loop), "x")
    assert verdict.bound is Bound.CHECKED


def test_a_quotient_times_an_argument_is_a_remainder_where_they_are_equal():
    def residue(x, y, i, k):
        return apply("sub", i, apply("mul", apply("floordiv", i, size(x, 0)), k))

    kernel = copying(residue, extent=lambda x, y, k: size(y, 0))
    (verdict,) = verdicts(kernel, "x")
    assert [spelled(guard) for guard in verdict.guard] == ["x.shape[0] == k"]


def test_a_flattened_index_is_guarded_by_the_product():
    make = KernelBuilder()
    x, y, i, j = make.tensor("x", 1), make.tensor("y", 2), make.symbol("i"), make.symbol("j")
    place = apply("add", apply("mul", i, size(y, 1)), j)
    inner = make.loop(j, size(y, 1), make.store(y, (i, j), make.load(x, place)))
    kernel = make.kernel(make.loop(i, size(y, 0), inner))
    (verdict,) = verdicts(kernel, "x")
    assert [spelled(guard) for guard in verdict.guard] == ["x.shape[0] >= y.shape[0] * y.shape[1]"]


def test_timex_needs_no_checks_and_no_negative_indices():
    analysis = analyse(timex())
    assert all(verdict.bound is not Bound.CHECKED and verdict.plain for verdict in analysis.bounds.values())
    guards = {spelled(guard) for verdict in analysis.bounds.values() for guard in verdict.guard}
    assert guards == {"w.shape[0] >= k.shape[1]", "w.shape[1] >= k.shape[2]"}


def test_a_rolling_index_stays_negative_where_it_is_meant():
    kernel = copying(lambda x, y, i, k: wrapped(apply("sub", i, 1), x, 0))
    (verdict,) = verdicts(kernel, "x")
    assert verdict.bound is Bound.PROVED
    assert not verdict.plain


def scaled(factor, make, x, y, i, k):
    """for i in range(y.shape[0]): for j in range(k): y[i] = x[(factor * k + j) * k]"""
    j = make.symbol("j")
    place = apply("mul", apply("add", apply("mul", factor, k), j), k)
    return make.kernel(make.loop(i, size(y, 0), make.loop(j, k, make.store(y, (i,), make.load(x, place)))))


def test_what_is_multiplied_with_a_quotient_is_guarded_by_the_greatest():
    """What bounds a factor only because sizes are thought to be limited is no number for a guard."""
    factors = {
        "(y.shape[0] - 1) // 64": lambda i, y, k: apply("floordiv", i, 64),
        "(y.shape[0] - 1) // max(y.shape[0] // max(k, 1), 1)": lambda i, y, k: apply(
            "floordiv", i, apply("floordiv", size(y, 0), k)
        ),
    }
    for greatest, factor in factors.items():
        make = KernelBuilder()
        x, y, i, k = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i"), make.scalar("k")
        (verdict,) = verdicts(scaled(factor(i, y, k), make, x, y, i, k), "x")
        assert spelled(verdict.guard[-1]) == f"x.shape[0] + k >= 1 + k * k + k * k * ({greatest})"
        asked = ["y.shape[0] // max(k, 1) >= 1"] if "max" in greatest else []
        assert [spelled(guard) for guard in verdict.guard[:-1]] == asked


def test_a_remainder_by_what_is_computed_is_guarded_by_that():
    kernel = copying(
        lambda x, y, i, k: apply("mod", i, apply("floordiv", size(y, 0), k)), extent=lambda x, y, k: size(y, 0)
    )
    (verdict,) = verdicts(kernel, "x")
    guards = [spelled(guard) for guard in verdict.guard]
    assert guards == ["k >= 1", "y.shape[0] // max(k, 1) >= 1", "x.shape[0] >= y.shape[0] // max(k, 1)"]


def test_quotients_whose_extremes_are_not_met_together_are_checked():
    """`x[i // k * k + i % k]` is `x[i]`, and a condition may keep the greatest quotient away."""
    both = copying(
        lambda x, y, i, k: apply("add", apply("mul", apply("floordiv", i, k), 3), apply("mod", i, k)),
        extent=lambda x, y, k: size(y, 0),
    )
    (verdict,) = verdicts(both, "x")
    assert verdict.bound is Bound.CHECKED
    make = KernelBuilder()
    x, y, i, k = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i"), make.scalar("k")
    copy = make.store(y, (i,), make.load(x, apply("mul", apply("floordiv", i, k), 3)))
    loop = make.loop(i, size(y, 0), If(condition=apply("lt", i, size(x, 0)), then=(copy,)))
    (verdict,) = verdicts(make.kernel(loop), "x")
    assert verdict.bound is Bound.CHECKED


def test_a_guard_of_extremes_that_a_condition_keeps_away_is_none():
    """`for i in range(len(x)): if i < n // 2: y[i] = x[n // 2 + i]`: no guard asks for `n // 2 <= 0`."""
    make = KernelBuilder()
    x, y, z, i = make.tensor("x", 1), make.tensor("y", 1), make.tensor("z", 1), make.symbol("i")
    half = apply("floordiv", size(z, 0), 2)
    copy = make.store(y, (i,), make.load(x, apply("add", half, i)))
    loop = make.loop(i, size(x, 0), If(condition=apply("lt", i, half), then=(copy,)))
    (verdict,) = verdicts(make.kernel(loop), "x")
    assert verdict.bound is Bound.CHECKED


def test_a_quotient_that_elements_limit_has_no_guard():
    """`for i in range(n[0]): y[i] = x[i // 2]`: no axis is half as long as the greatest integer."""
    make = KernelBuilder()
    x, y, n, i = make.tensor("x", 1), make.tensor("y", 1), make.tensor("n", 1, INT64), make.symbol("i")
    end = make.symbol("end")
    copy = make.store(y, (i,), make.load(x, apply("floordiv", i, 2)))
    body = (Assign(symbol=end, value=make.load(n, 0)), make.loop(i, end, copy))
    (verdict,) = verdicts(make.kernel(*body), "x")
    assert verdict.bound is Bound.CHECKED


def test_numbers_of_the_program_make_guards():
    factors = (
        lambda make, i: make.load(make.tensor("index", 1, UINT8), i),
        lambda make, i: apply("minimum", apply("bit_and", apply("mul", i, i), 1023), 255),
    )
    for factor in factors:
        make = KernelBuilder()
        x, y, i, k = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i"), make.scalar("k")
        (verdict,) = verdicts(scaled(factor(make, i), make, x, y, i, k), "x")
        assert spelled(verdict.guard[-1]) == "x.shape[0] + k >= 1 + 256 * k * k"


def test_constants_fold_in_guards():
    assert spelled(build.apply("logical_or", build.constant(False, build.BOOL), apply("ge", 3, 2))) == "True"


def test_what_several_accesses_of_a_place_ask_of_an_index_is_proved_once(monkeypatch):
    asked = []

    def counted(model, solver, access, goal):
        asked.append(goal)
        return proved(model, solver, access, goal)

    proved = bounds._proved
    monkeypatch.setattr(bounds, "_proved", counted)
    make = KernelBuilder()
    x, y, i = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i")
    twice = apply("add", make.load(x, i), make.load(x, i))
    analyse(make.kernel(make.loop(i, size(x, 0), make.store(y, (i,), twice))))
    assert len(asked) == len(set(asked)) == 3


def test_a_condition_proves_nothing_of_the_same_index_beside_it():
    make = KernelBuilder()
    x, y, i = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i")
    inside = make.store(y, (i,), make.load(x, i))
    guarded = make.branch(apply("lt", i, size(y, 0)), (inside,))
    beside = make.store(y, (i,), make.load(x, i))
    first, second = verdicts(make.kernel(make.loop(i, size(x, 0), guarded, beside)), "y")
    assert (first.bound, second.bound) == (Bound.PROVED, Bound.GUARDED)


def quotients(fact_of):
    """for i in range(z.shape[0]): for j in range(m): y[i * m + j] = x[j], where a fact says what m is."""
    make = KernelBuilder()
    x, y, z, m = make.tensor("x", 1), make.tensor("y", 1), make.tensor("z", 1), make.scalar("m")
    i, j = make.symbol("i"), make.symbol("j")
    store = make.store(y, (apply("add", apply("mul", i, m), j),), make.load(x, j))
    third = apply("floordiv", size(x, 0), build.integer(3))
    facts = (apply("eq", size(y, 0), apply("mul", size(z, 0), m)), fact_of(build.read(m), third))
    return make.kernel(make.loop(i, size(z, 0), make.loop(j, m, store)), facts=facts)


@pytest.mark.parametrize("fact_of", [lambda m, third: apply("eq", m, third), lambda m, third: apply("eq", third, m)])
def test_a_scalar_is_the_quotient_that_a_fact_says(fact_of):
    kernel = quotients(fact_of)
    assert [verdict.bound for name in ("x", "y") for verdict in verdicts(kernel, name)] == [Bound.PROVED] * 2


@pytest.mark.parametrize(
    "fact_of",
    [
        lambda m, third: apply("eq", m, apply("mul", 3, third)),
        lambda m, third: apply("eq", m, apply("add", 1, third)),
        lambda m, third: apply("ge", m, third),
    ],
)
def test_of_more_than_a_quotient_the_end_is_asked(fact_of):
    (verdict,) = verdicts(quotients(fact_of), "x")
    assert [spelled(guard) for guard in verdict.guard] == ["x.shape[0] >= m"]
