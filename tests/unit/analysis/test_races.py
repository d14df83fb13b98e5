"""Loops proved independent, reductions, and conflicts with their counter-examples."""

from dataclasses import replace

import pytest

from brickwork.analysis import races
from brickwork.analysis.analyse import analyse
from brickwork.analysis.isl import Solver
from brickwork.analysis.races import Facts, are_separated, find_race, may_meet
from brickwork.analysis.verdicts import Bound, BoundVerdict, ConflictKind
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Break, Local, Read, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from brickwork.transform.spelling import spelled
from support.kernels_ir import KernelBuilder, apply, size, timex, value, wrapped


def by_name(kernel):
    return {symbol.name: verdict for symbol, verdict in analyse(kernel).loops.items()}


def in_place(target, source, *, extent=None, claimed=False, scalar=False):
    """for i in range(extent): x[target] = x[source]"""
    make = KernelBuilder()
    x, i = make.tensor("x", 1), make.symbol("i")
    k = make.scalar("k") if scalar else None
    stop = size(x, 0) if extent is None else extent(x)
    store = make.store(x, (target(i, k),), make.load(x, source(i, k)))
    return make.kernel(make.loop(i, stop, store, claimed=claimed))


def test_timex():
    loops = by_name(timex())
    assert all(verdict.independent for verdict in loops.values())
    assert [(item.symbol.name, item.operator.name) for item in loops["u"].reductions] == [("s", "add")]
    assert not loops["b"].reductions


def test_each_element_from_itself():
    assert by_name(in_place(lambda i, k: i, lambda i, k: i))["i"].independent


def test_a_shift_in_place_collides():
    kernel = in_place(lambda i, k: i, lambda i, k: apply("add", i, 1), extent=lambda x: apply("sub", size(x, 0), 1))
    conflict = by_name(kernel)["i"].conflict
    assert conflict.refuted
    first, second = conflict.parties
    assert abs(first.indices["i"] - second.indices["i"]) == 1
    assert conflict.element == f"x[{first.indices['i']}]"


def test_one_iteration_meets_no_other_and_nothing_is_asked(monkeypatch):
    def first(i, k):
        return build.integer(0)

    two = in_place(first, first, extent=lambda x: build.integer(2))
    assert by_name(two)["i"].conflict.refuted
    one = in_place(first, first, extent=lambda x: build.integer(1))
    monkeypatch.setattr(races, "_ask", None)
    assert by_name(one)["i"].independent


def test_even_and_odd_elements_are_apart():
    kernel = in_place(
        lambda i, k: apply("mul", i, 2),
        lambda i, k: apply("add", apply("mul", i, 2), 1),
        extent=lambda x: apply("floordiv", size(x, 0), 2),
    )
    assert by_name(kernel)["i"].independent


def test_a_shift_by_an_argument_is_neither_proved_nor_refuted():
    kernel = in_place(lambda i, k: i, lambda i, k: apply("add", i, k), scalar=True)
    verdict = by_name(kernel)["i"]
    assert not verdict.independent
    assert not verdict.conflict.refuted


def test_mirrored_halves_are_apart_and_wholes_collide():
    def mirror(x):
        return lambda i, k: apply("sub", apply("sub", size(x, 0), 1), i)

    make = KernelBuilder()
    x, i = make.tensor("x", 1), make.symbol("i")
    for stop, expected in ((apply("floordiv", size(x, 0), 2), True), (size(x, 0), False)):
        store = make.store(x, (i,), make.load(x, mirror(x)(i, None)))
        assert by_name(make.kernel(make.loop(i, stop, store)))["i"].independent is expected


def test_flattened_stores_are_apart():
    make = KernelBuilder()
    x, y, i, j = make.tensor("x", 1), make.tensor("y", 2), make.symbol("i"), make.symbol("j")
    place = apply("add", apply("mul", i, size(y, 1)), j)
    store = make.store(x, (place,), make.load(y, i, j))
    loops = by_name(make.kernel(make.loop(i, size(y, 0), make.loop(j, size(y, 1), store))))
    assert loops["i"].independent
    assert loops["j"].independent


def test_stores_in_steps_of_what_is_computed_before_are_apart_where_an_inner_loop_is_as_long():
    for stop, expected in ((lambda step: step, True), (lambda step: apply("add", step, 1), False)):
        make = KernelBuilder()
        x, y, i, j = make.tensor("x", 1), make.tensor("y", 2), make.symbol("i"), make.symbol("j")
        step = apply("floordiv", size(y, 0), make.scalar("k"))
        store = make.store(x, (wrapped(apply("add", apply("mul", i, step), j), x, 0),), make.load(y, i, j))
        kernel = make.kernel(make.loop(i, size(y, 0), make.loop(j, stop(step), store)))
        assert by_name(kernel)["i"].independent is expected


def test_steps_of_an_inner_index_may_meet():
    """x[2] is that of i = 1, s = 2 and of i = 2, s = 1."""
    make = KernelBuilder()
    x, i, s = make.tensor("x", 1), make.symbol("i"), make.symbol("s")
    store = make.store(x, (apply("mul", i, s),), make.load(x, apply("mul", i, s)))
    kernel = make.kernel(make.loop(i, size(x, 0), make.loop(s, size(x, 0), store, start=1)))
    assert not by_name(kernel)["i"].independent


def test_stores_in_steps_of_an_argument_are_apart_where_an_inner_loop_is_as_long():
    for stop, expected in ((lambda k: value(k), True), (lambda k: apply("add", k, 1), False)):
        make = KernelBuilder()
        x, y, i, j = make.tensor("x", 1), make.tensor("y", 2), make.symbol("i"), make.symbol("j")
        k = make.scalar("k")
        place = apply("add", apply("mul", i, k), j)
        store = make.store(x, (place,), make.load(y, i, j))
        loops = by_name(make.kernel(make.loop(i, size(y, 0), make.loop(j, stop(k), store))))
        assert loops["i"].independent is expected
        assert loops["j"].independent


def butterfly(width, *, step=2, apart=None, by=None):
    """for s in range(count): h = width(s); for i in range(n): q = i // h * step * h + i % h; x[q] = x[q + apart]"""
    make = KernelBuilder()
    x, y, s, i = make.tensor("x", 1), make.tensor("y", 2), make.symbol("s"), make.symbol("i")
    h, low = make.symbol("h"), make.symbol("low")
    place = apply("mul", apply("mul", apply("floordiv", i, h), step), value(h) if by is None else by)
    body = (
        make.assign(low, apply("add", place, apply("mod", i, h))),
        make.store(x, (low,), make.load(x, apply("add", low, value(h) if apart is None else apart))),
        make.store(x, (apply("add", low, value(h) if apart is None else apart),), make.load(x, low)),
    )
    levels = make.loop(s, size(y, 0), make.assign(h, width(s)), make.loop(i, apply("floordiv", size(x, 0), 2), *body))
    return make.kernel(levels)


def power(s):
    return apply("shift_left", 1, s)


def test_butterflies_of_a_level_are_apart():
    """Pairs lie as far apart as the level says, which is a power of two: no two pairs have an element in common."""
    assert by_name(butterfly(power))["i"].independent
    assert not by_name(butterfly(power))["s"].independent
    assert by_name(butterfly(lambda s: apply("shift_left", 3, s)))["i"].independent
    assert by_name(butterfly(lambda s: apply("add", apply("mul", s, 3), 1)))["i"].independent
    assert by_name(butterfly(lambda s: apply("maximum", apply("shift_right", 1024, s), 1)))["i"].independent


@pytest.mark.parametrize(
    "kernel",
    [
        butterfly(power, step=1),
        butterfly(power, apart=1),
        butterfly(power, apart=2),
        butterfly(power, by=3),
        butterfly(lambda s: apply("shift_left", apply("sub", s, 5), s)),
        butterfly(lambda s: apply("shift_left", 1, apply("sub", s, 5))),
        butterfly(lambda s: apply("sub", s, 5)),
        butterfly(lambda s: apply("shift_right", -1024, s)),
    ],
)
def test_other_pairs_may_meet(kernel):
    assert not by_name(kernel)["i"].independent


def test_overlapping_rows_of_a_flattened_store_collide():
    make = KernelBuilder()
    x, y, i, j = make.tensor("x", 1), make.tensor("y", 2), make.symbol("i"), make.symbol("j")
    place = apply("add", apply("mul", i, 3), j)
    store = make.store(x, (place,), make.load(y, i, j))
    loops = by_name(make.kernel(make.loop(i, size(y, 0), make.loop(j, 4, store))))
    assert not loops["i"].independent
    assert loops["j"].independent


def test_column_sums_are_independent_along_the_row_only():
    make = KernelBuilder()
    x, y, i, j = make.tensor("x", 2), make.tensor("y", 1), make.symbol("i"), make.symbol("j")
    store = make.store(y, (j,), build.apply("add", make.load(y, j), make.load(x, i, j)))
    loops = by_name(make.kernel(make.loop(i, size(x, 0), make.loop(j, size(x, 1), store))))
    assert not loops["i"].independent
    assert loops["j"].independent


def test_a_scatter_is_undecided():
    make = KernelBuilder()
    x, y, index, i = make.tensor("x", 1), make.tensor("y", 1), make.tensor("index", 1, INT64), make.symbol("i")
    store = make.store(x, (make.load(index, i),), make.load(y, i))
    verdict = by_name(make.kernel(make.loop(i, size(index, 0), store)))["i"]
    assert not verdict.independent
    assert verdict.conflict.kind is ConflictKind.ELEMENTS
    assert not verdict.conflict.refuted


@pytest.mark.parametrize(
    ("values", "read", "independent"),
    [
        ((1.0,), False, True),
        ((1.0, 1.0), False, True),
        ((1.0, 2.0), False, False),
        ((0.0, -0.0), False, False),
        ((1.0,), True, False),
    ],
)
def test_stores_of_one_literal_may_meet(values, read, independent):
    make = KernelBuilder()
    x, y, index, i = make.tensor("x", 1), make.tensor("y", 1), make.tensor("index", 1, INT64), make.symbol("i")
    stores = [make.store(x, (make.load(index, i),), build.constant(value, FLOAT32)) for value in values]
    reads = [make.store(y, (i,), make.load(x, i))] if read else []
    loop = make.loop(i, size(index, 0), *reads, *stores)
    assert by_name(make.kernel(loop))["i"].independent is independent


def test_stores_of_one_literal_may_meet_along_one_of_two_axes():
    make = KernelBuilder()
    x, index, i, j = make.tensor("x", 2), make.tensor("index", 1, INT64), make.symbol("i"), make.symbol("j")
    store = make.store(x, (make.load(index, i), j), build.constant(1.0, FLOAT32))
    loops = by_name(make.kernel(make.loop(i, size(index, 0), make.loop(j, size(x, 1), store))))
    assert loops["i"].independent


def test_updates_by_a_literal_are_no_stores_of_it():
    make = KernelBuilder()
    x, index, i = make.tensor("x", 1), make.tensor("index", 1, INT64), make.symbol("i")
    store = make.store(x, (make.load(index, i),), build.constant(1.0, FLOAT32))
    update = replace(store, combine=OPERATORS["add"])
    assert build.stored_literal(store) == "1.0"
    assert build.stored_literal(update) is None
    assert not by_name(make.kernel(make.loop(i, size(index, 0), update)))["i"].independent


def accumulate(step, *, after=True):
    make = KernelBuilder()
    x, y, i, s = make.tensor("x", 1), make.tensor("y", 0), make.symbol("i"), make.symbol("s", FLOAT32)
    loop = make.loop(i, size(x, 0), *step(make, s, make.load(x, i)))
    store = (make.store(y, (), Read(symbol=s)),) if after else ()
    return make.kernel(make.assign(s, build.constant(0.0, FLOAT32)), loop, *store)


def test_reductions_are_recognised():
    for name, expected in (("add", "add"), ("sub", "add"), ("mul", "mul"), ("minimum", "minimum")):
        kernel = accumulate(lambda make, s, e, name=name: (make.assign(s, build.apply(name, Read(symbol=s), e)),))
        verdict = by_name(kernel)["i"]
        assert [item.operator.name for item in verdict.reductions] == [expected]
        assert verdict.independent


def test_a_maximum_by_branching_is_a_reduction():
    def step(make, s, e):
        return (make.branch(build.apply("gt", e, Read(symbol=s)), (make.assign(s, e),)),)

    assert [item.operator.name for item in by_name(accumulate(step))["i"].reductions] == ["maximum"]


def test_an_element_read_again_is_the_one_that_was_compared():
    make = KernelBuilder()
    x, y, i, s = make.tensor("x", 1), make.tensor("y", 0), make.symbol("i"), make.symbol("s", FLOAT32)
    for other, expected in ((i, ["maximum"]), (apply("sub", i, 1), [])):
        greater = build.apply("gt", make.load(x, i), Read(symbol=s))
        loop = make.loop(i, size(x, 0), make.branch(greater, (make.assign(s, make.load(x, other)),)))
        kernel = make.kernel(make.assign(s, build.constant(0.0, FLOAT32)), loop, make.store(y, (), Read(symbol=s)))
        assert [item.operator.name for item in by_name(kernel)["i"].reductions] == expected


def test_other_recurrences_are_conflicts():
    def scaled(make, s, e):
        half = build.apply("mul", Read(symbol=s), build.constant(0.5, FLOAT32))
        return (make.assign(s, build.apply("add", half, e)),)

    def mixed(make, s, e):
        return (
            make.assign(s, build.apply("add", Read(symbol=s), e)),
            make.assign(s, build.apply("mul", Read(symbol=s), e)),
        )

    def last(make, s, e):
        return (make.assign(s, e),)

    for step in (scaled, mixed, last):
        verdict = by_name(accumulate(step))["i"]
        assert verdict.conflict.kind is ConflictKind.VARIABLE


def test_a_private_variable_is_no_conflict():
    assert by_name(accumulate(lambda make, s, e: (make.assign(s, e),), after=False))["i"].independent


def test_a_break_keeps_the_order():
    make = KernelBuilder()
    x, i = make.tensor("x", 1), make.symbol("i")
    body = make.branch(apply("gt", value(i), 3), (Break(),))
    verdict = by_name(make.kernel(make.loop(i, size(x, 0), body)))["i"]
    assert verdict.conflict.kind is ConflictKind.EXIT


def test_tensors_that_may_share_memory_keep_the_order():
    make = KernelBuilder()
    x, y, i = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i")
    loop = make.loop(i, size(x, 0), make.store(y, (i,), make.load(x, i)))
    assert by_name(make.kernel(loop))["i"].independent
    assert by_name(make.kernel(loop, may_alias=True))["i"].conflict.kind is ConflictKind.ALIASES


def test_a_loop_inside_a_sequential_one_stays_independent():
    make = KernelBuilder()
    x, y, t, i, j = make.tensor("x", 1), make.tensor("y", 1), *(make.symbol(name) for name in "tij")
    n = make.scalar("n")
    there = make.loop(i, size(x, 0), make.store(y, (i,), make.load(x, i)))
    back = make.loop(j, size(x, 0), make.store(x, (j,), make.load(y, j)))
    loops = by_name(make.kernel(make.loop(t, n, there, back)))
    assert not loops["t"].independent
    assert loops["i"].independent
    assert loops["j"].independent


def test_locals_share_memory_with_nothing():
    make = KernelBuilder()
    x, i = make.tensor("x", 1), make.symbol("i")
    own = Tensor("own", 90, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0), (8,))

    def steps(target, source):
        loop = make.loop(i, 8, make.store(target, (i,), make.load(source, i)))
        return by_name(make.kernel(Local(tensor=own), loop, may_alias=True))["i"]

    assert steps(own, x).independent
    assert steps(x, own).independent
    assert steps(x, x).independent


def meets(*statements):
    """Whether the first store may meet the second, in a later iteration of the outermost loop."""
    kernel = KERNEL.kernel(*statements)
    analysis = analyse(kernel)
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    first, second = (item for item in analysis.accesses if item.store)
    return may_meet(facts, first.loops[0], first, second, depth=0)


KERNEL = KernelBuilder()
X, ALONE, I, J = KERNEL.tensor("x", 1), KERNEL.tensor("alone", 0), KERNEL.symbol("i"), KERNEL.symbol("j")
ONE = build.constant(1.0, FLOAT32)


def put(index):
    return KERNEL.store(X, (index,), ONE)


def test_what_an_index_moves_with_decides_what_meets():
    def twice(index):
        return put(index), put(index)

    assert not meets(KERNEL.loop(I, 8, *twice(apply("mul", I, 2))))
    assert meets(KERNEL.loop(I, 8, *twice(apply("floordiv", value(I), 2))))
    assert meets(KERNEL.loop(I, 8, *twice(value(7))))
    assert meets(KERNEL.loop(I, 8, KERNEL.store(ALONE, (), ONE), KERNEL.store(ALONE, (), ONE)))
    assert meets(KERNEL.loop(I, 8, KERNEL.loop(J, 8, *twice(apply("add", I, J)))))
    assert not meets(KERNEL.loop(I, 8, put(value(I)), put(apply("add", I, 1))))
    assert meets(KERNEL.loop(I, 8, put(apply("add", I, 1)), put(value(I))))


def test_an_index_that_counts_from_the_end_meets_one_that_does_not():
    whole = apply("add", size(X, 0), 3)
    up, down = apply("sub", I, 3), apply("sub", 2, I)

    def there(index):
        return put(wrapped(index, X, 0))

    def later():
        return KERNEL.branch(apply("ge", I, 3), (put(up),))

    def early():
        return KERNEL.branch(apply("lt", I, 3), (put(down),))

    assert meets(KERNEL.loop(I, whole, there(up), later()))
    assert meets(KERNEL.loop(I, whole, early(), there(down)))


def beside_data(*, far):
    """for c, i, j: y[(c * k + i) * k + j] = x[min(place, n - 1)]; `far(make, at, c, s)` gives place and statements."""
    make = KernelBuilder()
    x, y, c, i, j = make.tensor("x", 1), make.tensor("y", 1), *map(make.symbol, "cij")
    at, k, s = make.tensor("at", 1, INT64), make.scalar("k"), make.scalar("s")
    place, more = far(make, at, c, s)
    apart = apply("add", apply("mul", apply("add", apply("mul", c, k), i), k), j)
    inside = apply("minimum", place, apply("sub", size(x, 0), 1))
    store = make.branch(apply("ge", make.load(at, c), 0), (make.store(y, (apart,), make.load(x, inside)),))
    return make.kernel(make.loop(c, size(x, 0), *more, make.loop(i, k, make.loop(j, k, store))))


def test_what_may_wrap_costs_only_the_proofs_about_itself():
    """An element of `at` may be 2**63 - 1: then one more is negative, and twice it is -2."""

    def from_data(make, at, c, s):
        found = make.symbol("found")
        return apply("add", found, 1), (make.assign(found, apply("maximum", make.load(at, c), 0)),)

    def from_data_and_argument(make, at, c, s):
        found = make.symbol("found")
        return apply("mul", found, s), (make.assign(found, make.load(at, c)),)

    for far in (from_data, from_data_and_argument):
        analysis = analyse(beside_data(far=far))
        assert all(verdict.independent for verdict in analysis.loops.values())
        (read,) = (item for item in analysis.accesses if item.tensor.name == "x")
        assert analysis.bounds[read.number, 0].bound is Bound.CHECKED
        limits = [spelled(item) for item in analysis.assumptions]
        assert {"1048576 >= k", "1048576 + k >= 0", "1048576 >= x.shape[0]"} <= {*limits}
        assert "1048576 >= s" not in limits  # it would save nothing


def test_a_step_that_may_wrap_is_no_step():
    """With `step` 2**62, 0 and 4 * step are one element."""

    def far(make, at, c, s):
        z, step = make.tensor("z", 1), make.symbol("step")
        store = make.store(z, (apply("mul", c, step),), build.cast(make.load(at, 0), FLOAT32))
        fixed = apply("maximum", make.load(at, 0), 1)
        return c, (make.assign(step, fixed), store)

    def outside(kernel):
        """Return the kernel with the first statement of its loop, which sets the step, before the loop."""
        (loop,) = kernel.body
        return replace(kernel, body=(loop.body[0], replace(loop, body=loop.body[1:])))

    loops = by_name(outside(beside_data(far=far)))
    assert [name for name, verdict in loops.items() if verdict.independent] == ["i", "j"]


def test_many_stores_at_literal_offsets_are_few_questions(monkeypatch):
    """for i, j: y[i * k + j, 0 ... 15] = 1.0: in j, all of them are apart if the first two are."""
    asked: list[object] = []
    feasible = Solver.feasible
    monkeypatch.setattr(
        Solver, "feasible", lambda self, formulas: (asked.append(formulas), feasible(self, formulas))[1]
    )
    many = []
    for count in (2, 16):
        make = KernelBuilder()
        y, i, j, k = make.tensor("y", 2), make.symbol("i"), make.symbol("j"), make.scalar("k")
        flat = apply("add", apply("mul", i, k), j)
        stores = [make.store(y, (flat, build.integer(each)), ONE) for each in range(count)]
        nest = make.loop(i, size(y, 0), make.loop(j, k, *stores))
        analysis = analyse(make.kernel(nest))
        assert all(verdict.independent for verdict in analysis.loops.values())
        facts = Facts(analysis.model, Solver(), analysis.bounds)
        outer, inner = analysis.accesses[0].loops
        asked.clear()
        for loop in (outer, inner):
            for one in analysis.accesses:
                assert not any(may_meet(facts, loop, one, other, depth=0) for other in analysis.accesses)
        many.append(len(asked))
    assert many[0] == many[1] > 0


def test_a_literal_tells_accesses_apart_that_count_from_the_start():
    last = build.integer(-1)
    assert not meets(KERNEL.loop(I, 8, put(build.integer(3)), put(build.integer(4))))
    assert meets(KERNEL.loop(I, 8, put(wrapped(last, X, 0)), put(build.integer(4))))
    assert meets(KERNEL.loop(I, 8, put(build.integer(4)), put(wrapped(last, X, 0))))
    assert meets(KERNEL.loop(I, 8, put(build.integer(3)), put(build.integer(3))))


def test_one_index_may_always_be_ahead_of_another():
    """Of a loop that neither moves with, only the distance counts."""
    k = KERNEL.scalar("k")
    nest = [KERNEL.loop(J, 8, put(value(J))), KERNEL.loop(J, 8, put(apply("add", J, 8)))]
    assert not meets(KERNEL.loop(I, k, *nest))
    assert not meets(KERNEL.loop(I, k, *nest[::-1]))
    assert meets(KERNEL.loop(I, k, nest[0], KERNEL.loop(J, 8, put(apply("add", J, 7)))))
    assert meets(KERNEL.loop(I, k, KERNEL.loop(J, 8, put(apply("add", J, 7))), nest[0]))


def test_loops_around_may_be_in_any_two_iterations():
    """x[4 * i + 8 * j]: in one iteration of j, those of i are apart; in any two, they are not."""
    index = apply("add", apply("mul", I, 4), apply("mul", J, 8))
    kernel = KERNEL.kernel(KERNEL.loop(J, 8, KERNEL.loop(I, 8, put(index))))
    analysis = analyse(kernel)
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    (store,) = analysis.accesses
    loop = store.loops[1]
    assert not may_meet(facts, loop, store, store, depth=1)
    assert may_meet(facts, loop, store, store, depth=0)
    assert not may_meet(facts, loop, store, store, depth=1)


def test_a_pair_that_is_apart_says_nothing_of_one_with_fewer_conditions():
    even = KERNEL.branch(apply("eq", apply("mod", I, 2), 0), (put(apply("floordiv", I, 2)),))
    analysis = analyse(KERNEL.kernel(KERNEL.loop(I, 8, even, put(apply("floordiv", I, 2)))))
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    guarded, plain = analysis.accesses
    (loop,) = guarded.loops
    assert not may_meet(facts, loop, guarded, guarded, depth=0)
    assert may_meet(facts, loop, plain, plain, depth=0)
    assert may_meet(facts, loop, guarded, plain, depth=0)


@pytest.mark.parametrize(("name", "beyond"), [("minimum", "ge"), ("maximum", "lt")])
def test_bounds_of_minima_are_known_without_a_choice_for_each(name, beyond):
    """Ten minima with n are at most n each; isl would go through a thousand combinations of which is which."""

    def is_apart(limit):
        make = KernelBuilder()
        x, y, i = make.tensor("x", 1), make.tensor("y", 1), make.symbol("i")
        ends = [apply(name, apply("add", i, make.scalar(f"s{each}")), size(x, 0)) for each in range(10)]
        total = ends[0]
        for each in ends[1:]:
            total = apply("add", total, each)
        limit = apply("add", apply("mul", size(x, 0), 10), limit)
        never = make.branch(apply(beyond, total, limit), (make.store(y, (0,), make.load(x, i)),))
        return by_name(make.kernel(make.loop(i, size(x, 0), never)))["i"].independent

    assert is_apart(1 if name == "minimum" else 0)
    assert not is_apart(0 if name == "minimum" else 1)


def test_the_quick_rule_sees_what_is_always_ahead():
    k = KERNEL.scalar("k")

    def apart(far):
        nest = KERNEL.loop(I, k, KERNEL.loop(J, 8, put(value(J)), put(apply("add", J, far))))
        analysis = analyse(KERNEL.kernel(nest))
        facts = Facts(analysis.model, Solver(), analysis.bounds)
        first, second = analysis.accesses
        return {are_separated(facts, first.loops[0], *pair) for pair in ((first, second), (second, first))}

    assert apart(8) == {True}
    assert apart(7) == {False}


def test_answers_of_the_quick_rule_hold_under_their_conditions():
    """x[i * k + j] with 8 numbers j: apart where one of two accesses is made for k >= 8 alone."""
    k = KERNEL.scalar("k")
    index = apply("add", apply("mul", I, k), J)
    guarded = KERNEL.branch(apply("ge", k, 8), (put(index),))
    analysis = analyse(KERNEL.kernel(KERNEL.loop(I, 8, KERNEL.loop(J, 8, guarded, put(index)))))
    under, plain = analysis.accesses
    loop = under.loops[0]
    for pair in ((under, plain), (plain, under)):
        facts = Facts(analysis.model, Solver(), {key: BoundVerdict(Bound.PROVED) for key in analysis.bounds})
        assert are_separated(facts, loop, *pair)
        assert not are_separated(facts, loop, plain, plain)


def test_answers_of_the_quick_rule_hold_in_their_loops():
    """The same, where one access is made in a loop that runs for k >= 8 alone."""
    k, m = KERNEL.scalar("k"), KERNEL.symbol("m")
    index = apply("add", apply("mul", I, k), J)
    inner = KERNEL.loop(m, apply("sub", k, 7), put(index))
    analysis = analyse(KERNEL.kernel(KERNEL.loop(I, 8, KERNEL.loop(J, 8, inner, put(index)))))
    under, plain = analysis.accesses
    loop = under.loops[0]
    for pair in ((under, plain), (plain, under)):
        facts = Facts(analysis.model, Solver(), {key: BoundVerdict(Bound.PROVED) for key in analysis.bounds})
        assert are_separated(facts, loop, *pair)
        assert not are_separated(facts, loop, plain, plain)


@pytest.mark.parametrize("back", [False, True])
def test_that_one_access_stays_ahead_says_nothing_of_the_other_way(back):
    """x[i] stays behind x[i + 1] of a later iteration, which is what x[i + 1] meets."""
    stores = put(value(I)), put(apply("add", I, 1))
    analysis = analyse(KERNEL.kernel(KERNEL.loop(I, 8, *(stores[::-1] if back else stores))))
    behind, ahead = analysis.accesses[::-1] if back else analysis.accesses
    for pair in ((behind, ahead), (ahead, behind)):
        facts = Facts(analysis.model, Solver(), analysis.bounds)
        assert may_meet(facts, behind.loops[0], *pair, depth=0) == (pair[0] is ahead)
        assert find_race(facts, behind.loops[0], may_alias=False)


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("alone", [False, True])
def test_accesses_that_meet_no_other_of_their_kind_may_meet_others(back, alone):
    """x[p[i]] never meets itself; only if x[i] is said to be of its kind, it does not meet that."""
    places, i = KERNEL.tensor("places", 1, INT64), KERNEL.symbol("i")
    stores = [KERNEL.store(X, (KERNEL.load(places, i),), value(i)), KERNEL.store(X, (i,), value(i))]
    kernel = KERNEL.kernel(KERNEL.loop(i, 8, *(stores[::-1] if back else stores)))
    kernel = replace(kernel, alone=frozenset(store.access for store in stores[: 1 + alone]))
    assert by_name(kernel)["i"].independent is alone
