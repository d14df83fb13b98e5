"""Elements are kept in variables only where later iterations read what was stored: each condition has a loop for it."""

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT32, INT32, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Launch, Store
from brickwork.ir.operators import OPERATORS
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.carried_elements import with_carried_elements
from support.lowering import memory, nested, program_of
from support.scheduling import same

Tensor = torch.Tensor
X = [3.0, -1.0, 2.0, 5.0, -4.0, 1.0, 7.0, -2.0, 6.0]
OUT = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0, 107.0, 108.0]
PLACES = [2, 0, 1, 2, 2, 1, 0, 1, 2]


def change_of(program, change=lambda kernel: kernel):
    """Return a program whose kernels are as they are changed, and as they are once elements are in variables, too."""

    def before(node):
        return replace(node, kernel=change(node.kernel)) if isinstance(node, Launch) else node

    def after(node):
        if not isinstance(node, Launch):
            return node
        return replace(node, kernel=with_carried_elements(node.kernel, lambda: analyse(node.kernel)))

    given = rewrite(program, before)
    return given, rewrite(given, after)


def outcome(program, arguments):
    copies = [memory(nested(item), item.dtype) if isinstance(item, Memory) else item for item in arguments]
    try:
        run_program(program, copies, check=True)
    except IndexError as error:
        return str(error)
    return [nested(item) for item in copies if isinstance(item, Memory)]


def in_variables(function, *arguments, change=lambda kernel: kernel):
    """Whether elements are kept in variables, in a program that does what it did."""
    given, changed = change_of(program_of(function, *arguments), change)
    verify_program(changed)
    assert outcome(changed, arguments) == outcome(given, arguments)
    return changed != given


def arguments_of(function, size):
    """Return as many arguments of each kind as a function has."""
    kinds = {
        "x": memory(X[:size], FLOAT32),
        "out": memory(OUT[:size], FLOAT32),
        "places": memory(PLACES[:size], INT64),
        "square": memory([[float(7 * r + c) for c in range(max(size, 3))] for r in range(max(size, 3))], FLOAT32),
        "n": 3,
    }
    return [kinds[name] for name in function.__annotations__ if name != "return"]


def prefix(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        out[t] = x[t] + out[t - 1]


def added(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        out[t] += out[t - 1]


def each_from_the_end(x: Tensor, out: Tensor) -> None:
    for t in range(x.shape[0]):
        out[t] = x[t] + out[t - 1]


def downwards_but_the_first(x: Tensor, out: Tensor) -> None:
    for t in range(x.shape[0]):
        s = x[t]
        if t > 0:
            s -= out[x.shape[0] - t]
        out[x.shape[0] - 1 - t] = s


def downwards_but_the_second(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        s = x[t] - out[x.shape[0] - t]
        if t > 1:
            s -= out[x.shape[0] - t + 1]
        out[x.shape[0] - 1 - t] = s


def both_from_some_place_on(x: Tensor, out: Tensor, n: int) -> None:
    for t in range(n, x.shape[0]):
        if n > 1:
            s = x[t]
            if t > n:
                s -= out[t - 1]
            if t >= n:
                out[t] = s


def under_an_element(x: Tensor, out: Tensor) -> None:
    for k in range(2):
        if x[k] > 0.0:
            for t in range(1, x.shape[0]):
                out[t] = x[t] + out[t - 1]


def read_again(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        out[t] = out[t - 1] * 0.5
        x[t] = out[t]


def at_an_element(square: Tensor, places: Tensor) -> None:
    for r in range(places.shape[0]):
        c = places[r]
        for t in range(1, square.shape[1]):
            square[c, t] = square[c, t] + square[c, t - 1]


def beside_others(square: Tensor) -> None:
    for t in range(1, square.shape[1]):
        square[1, t] = square[0, t] + square[1, t - 1]


def in_steps(x: Tensor, out: Tensor) -> None:
    for t in range(x.shape[0] // 3 - 1):
        out[3 * t + 4] = x[t] + out[3 * t + 1]


def read_where_it_may_not_be_stored(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        s = x[t] + out[t - 1]
        if t < x.shape[0] - 1:
            out[t] = s
        x[t] = out[t]


TAKEN = [
    prefix,
    added,
    each_from_the_end,
    downwards_but_the_first,
    downwards_but_the_second,
    both_from_some_place_on,
    under_an_element,
    read_again,
    at_an_element,
    beside_others,
    in_steps,
    read_where_it_may_not_be_stored,
]


@pytest.mark.parametrize("function", TAKEN)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 9])
def test_elements_in_variables(function, size):
    if size >= 2 or function not in {under_an_element}:
        assert in_variables(function, *arguments_of(function, size))


def stored_at_times(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        if float(t) * 0.5 == float(t // 2):
            out[t] = x[t] + out[t - 1]


def stored_but_at_n(x: Tensor, out: Tensor, n: int) -> None:
    for t in range(1, x.shape[0]):
        if t != n:
            out[t] = x[t] + out[t - 1]


def stored_where_it_is_positive(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        s = out[t - 1]
        if x[t] > 0.0:
            out[t] = x[t] + s


def left_at_times(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        s = out[t - 1]
        if x[t] < 0.0:
            continue
        out[t] = x[t] + s


def not_stored_at_first(x: Tensor, out: Tensor) -> None:
    for t in range(x.shape[0]):
        s = x[t]
        if t > 0:
            s += out[t - 1]
        if t > 3:
            out[t] = s


def read_after_it_has_moved_on(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        out[t] = x[t]
        x[t] = out[t - 1]


def read_where_elements_say(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        s = x[t]
        if s > 0.0:
            s += out[t - 1]
        out[t] = s


def stored_again_before_it_is_read(x: Tensor, out: Tensor) -> None:
    for t in range(2, x.shape[0]):
        out[t] = x[t] + out[t - 1]
        out[2] = 7.0
        x[t] = out[t]


def stored_over_and_read_at_once(x: Tensor, out: Tensor) -> None:
    for t in range(1, x.shape[0]):
        s = x[t]
        if t % 2 == 0:
            s += out[t - 2]
        out[t] = s
        out[x.shape[0] - 1] = 2.0
        x[t] = out[t]


def rows_that_elements_say(square: Tensor, places: Tensor) -> None:
    for t in range(1, places.shape[0]):
        c = places[t]
        square[c, t] = 1.0 + square[c, t - 1]


def rows_that_squares_say(square: Tensor) -> None:
    for t in range(1, square.shape[1]):
        c = (t * t + 1) % 3
        square[c, t] = 1.0 + square[c, t - 1]


def a_row_that_an_element_says(square: Tensor, places: Tensor) -> None:
    for r in range(places.shape[0]):
        for t in range(1, square.shape[1]):
            square[places[r], t] = 1.0 + square[places[r], t - 1]


def in_a_row_at_a_place_of_a_branch(square: Tensor) -> None:
    for t in range(square.shape[1]):
        s = 1.0
        if t > 0:
            before = t - 1
            s += square[1, before]
        square[1, t] = s


def at_squares(x: Tensor, out: Tensor) -> None:
    for t in range(1, (x.shape[0] + 2) // 3):
        out[t * t] = x[t] + out[(t - 1) * (t - 1)]


def never_elsewhere(x: Tensor, out: Tensor) -> None:
    for t in range(x.shape[0]):
        out[0] = x[t] + out[0]


def far_ahead(x: Tensor, out: Tensor) -> None:
    for t in range(x.shape[0] - 1):
        out[t] = x[t] + out[t + 1]


def of_another_row(square: Tensor) -> None:
    for t in range(1, square.shape[1]):
        square[1, t] = 1.0 + square[2, t - 1]


def at_a_place_of_a_branch(x: Tensor, out: Tensor) -> None:
    for t in range(x.shape[0]):
        s = x[t]
        if t > 0:
            before = t - 1
            s += out[before]
        out[t] = s


def swapped(x: Tensor) -> Tensor:
    one, two = torch.zeros(x.shape[0] + 1), torch.ones(x.shape[0] + 1)
    for t in range(x.shape[0]):
        two[t + 1] = x[t] + two[t]
        one, two = two, one
    return one


REFUSED = [
    stored_at_times,
    stored_but_at_n,
    stored_where_it_is_positive,
    left_at_times,
    not_stored_at_first,
    read_after_it_has_moved_on,
    read_where_elements_say,
    stored_again_before_it_is_read,
    stored_over_and_read_at_once,
    rows_that_elements_say,
    rows_that_squares_say,
    a_row_that_an_element_says,
    in_a_row_at_a_place_of_a_branch,
    at_squares,
    never_elsewhere,
    far_ahead,
    of_another_row,
    at_a_place_of_a_branch,
    swapped,
]


@pytest.mark.parametrize("function", REFUSED)
@pytest.mark.parametrize("size", [1, 2, 4, 9])
def test_elements_that_are_read_again(function, size):
    assert not in_variables(function, *arguments_of(function, size))


def test_conditions_of_which_nothing_is_known_are_no_promise():
    same(stored_at_times, memory(X), memory(OUT))


def test_narrow_integers_wrap_in_memory():
    x, out = memory([2**30] * 5, INT32), memory([2**30] * 5, INT32)
    assert not in_variables(prefix, x, out)


def test_what_is_added_is_not_what_is_stored():
    def with_addition(kernel):
        def visit(node):
            return replace(node, combine=OPERATORS["add"]) if isinstance(node, Store) else node

        return rewrite(kernel, visit)

    assert not in_variables(prefix, memory(X), memory(OUT), change=with_addition)


def test_a_loop_that_stands_twice():
    assert not in_variables(
        prefix, memory(X), memory(OUT), change=lambda kernel: replace(kernel, body=(*kernel.body, *kernel.body))
    )


def test_tensors_that_may_overlap():
    def overlapping(kernel):
        return replace(kernel, may_alias=True)

    assert not in_variables(prefix, memory(X), memory(OUT), change=overlapping)


def by_a_stride(x: Tensor, out: Tensor, square: Tensor) -> None:
    for _ in range(square.shape[0]):
        for t in range(2, x.shape[0]):
            s = x[t] - out[(t - 1) * (square.shape[0] - 1)]
            if t > 2:
                s -= out[(t - 2) * (square.shape[0] - 1)]
            out[t * (square.shape[0] - 1)] = s


def test_strides_that_may_be_none():
    assert not in_variables(by_a_stride, memory(X), memory(OUT), memory([[1.0]]))


def two_places_of_one_element(x: Tensor, out: Tensor) -> None:
    for t in range(3):
        s = x[t]
        if t > 0:
            s += out[t - 2]
        if t > 1:
            s += out[t - 3]
        if t < 2:
            out[t - 1] = s


def stored_from_the_end(x: Tensor, out: Tensor) -> None:
    for t in range(4):
        s = x[t]
        if 0 < t < 3:
            s += out[2 - t]
        if t > 1:
            s += out[3 - t]
        if t > 2:
            s += out[4 - t]
        out[1 - t] = s


def read_from_the_end(x: Tensor, out: Tensor) -> None:
    for t in range(2):
        s = x[t] + out[t - 1] - out[t - 2]
        if t > 0:
            s += out[t - 3]
        out[t] = s


@pytest.mark.parametrize(
    ("function", "size"), [(two_places_of_one_element, 1), (stored_from_the_end, 2), (read_from_the_end, 2)]
)
def test_negative_indices_stand_for_elements_stored_meanwhile(function, size):
    assert not in_variables(function, memory(X[:4]), memory(OUT[:size]))


def test_programs_do_what_they_did_on_a_grid():
    for function in (*TAKEN, *REFUSED):
        same(function, *arguments_of(function, 9))


def test_nothing_is_left_to_read():
    given, changed = change_of(program_of(prefix, memory(X), memory(OUT)))
    (store,) = (node for node in walk(given) if isinstance(node, Store))
    assert store.tensor.name == "out"
    assert [node.value for node in walk(changed) if isinstance(node, Store)] != [store.value]
