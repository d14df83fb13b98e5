"""Places of extremes that gradients read from integer results of the forward pass."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Assign, Check, For, Load, Node, Program, Store
from brickwork.ir.walk import statements
from brickwork.transform.autodiff.saved_places import SavedPlaces
from brickwork.transform.canonical.form import canonical
from brickwork.transform.derivation import Backward
from brickwork.transform.scratch import names_of
from support.derivatives import derived, interpreted
from support.gradients import lowered, numbers
from support.sweep import sampled


def nearest(x: torch.Tensor, y: torch.Tensor, first: float, begin: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The places of the least differences, and `begin` where there is none."""
    n, m = y.shape
    least, index = x.new_empty((n,)), torch.empty(n, dtype=torch.int32)
    for i in range(n):
        best = first
        where = begin
        for j in range(m):
            d = (x[i, j] - y[i, j]) * (x[i, j] - y[i, j])
            if d < best:
                best, where = d, j
        least[i] = best
        index[i] = where
    return least, index


def nearest_of_all(x: torch.Tensor, y: torch.Tensor, first: float, begin: int) -> tuple[torch.Tensor, torch.Tensor]:
    """All rows choose from the same elements, to which several may add."""
    n, m = y.shape
    least, index = x.new_empty((n,)), torch.empty(n, dtype=torch.int32)
    for i in range(n):
        best = first
        where = begin
        for j in range(m):
            d = (x[j] - y[i, j]) * (x[j] - y[i, j])
            if d < best:
                best, where = d, j
        least[i] = best
        index[i] = where
    return least, index


def last_of_some(x: torch.Tensor, first: float, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of equal values the last is kept, and only those of a condition are looked at."""
    n = x.shape[0]
    high, index = x.new_empty((n,)), torch.empty(n, dtype=torch.int32)
    for i in range(n):
        best = first
        where = 0
        for j in range(m):
            if x[i, j] != 2:
                v = x[i, j] * x[i, j]
                if v >= best:
                    best, where = v, j
        index[i] = where
        high[i] = best
    return high, index


def wide(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Places in int64 hold all of them."""
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        best, where = -math.inf, -1
        for j in range(i, x.shape[1]):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def narrow(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Places in uint8 hold those up to 255."""
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.uint8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(256):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def narrower(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Places in int8 hold those up to 127."""
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(128):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
    return high, index


PLACES = {
    nearest: (numbers(4, 5), numbers(4, 5), math.inf, 0),
    nearest_of_all: (numbers(5), numbers(4, 5), math.inf, 0),
    last_of_some: (numbers(3, 4), 0.0, 4),
    wide: (numbers(3, 4),),
    narrow: (numbers(2, 256),),
    narrower: (numbers(2, 128),),
}


def too_narrow(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(129):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def of_any_size(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def of_any_number(x: torch.Tensor, m: int) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(m):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def up_to_a_variable(x: torch.Tensor, ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int32)
    for i in range(x.shape[0]):
        best, where, end = -math.inf, 0, ends[i]
        for j in range(end):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def from_below(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.uint8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(-1, 2):
            if x[i, j + 1] > best:
                best, where = x[i, j + 1], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def from_anywhere(x: torch.Tensor, begin: int) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.uint8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(begin, 2):
            if x[i, j + 1] > best:
                best, where = x[i, j + 1], j
        high[i] = 2 * best
        index[i] = where
    return high, index


def noted_again(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best, where = x[i, j], j
            if x[i, j] < 0:
                where = 0
        high[i] = 2 * best
        index[i] = where
    return high, index


def moved(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        where = (where + 1) % 3
        index[i] = where
    return high, index


def elsewhere(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.zeros(x.shape[0] + 1, dtype=torch.int64)
    slot = 0
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        slot = i + 1
        index[slot] = where
    return high, index


def at_what_is_stored(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.zeros(x.shape[0] + 1, dtype=torch.int64)
    slots = torch.zeros(x.shape[0], dtype=torch.uint8)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        slots[i] = i + 1
        index[slots[i]] = where
    return high, index, slots


def over(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        best, where = -math.inf, 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best, where = x[i, j], j
        high[i] = 2 * best
        index[i] = where
        if i > 0:
            index[i - 1] = 0
    return high, index


def of_others(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is no result, or is no place, tells nothing."""
    high, index = x.new_empty((x.shape[0],)), torch.empty(x.shape[0], dtype=torch.int64)
    inside = torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        best, where, count = -math.inf, 0, 0
        for j in range(x.shape[1]):
            if x[i, j] > best:
                best, where, count = x[i, j], j, count + 1
        high[i] = 2 * best
        inside[i] = where
        index[i] = count
    return high, index


NO_PLACES = {
    too_narrow: (numbers(2, 130),),
    of_any_size: (numbers(2, 130),),
    of_any_number: (numbers(2, 130), 130),
    up_to_a_variable: (numbers(2, 4), torch.tensor([3, 4])),
    from_below: (numbers(3, 4),),
    from_anywhere: (numbers(3, 4), -1),
    noted_again: (numbers(3, 4),),
    moved: (numbers(3, 4),),
    elsewhere: (numbers(3, 4),),
    at_what_is_stored: (numbers(3, 4),),
    over: (numbers(3, 4),),
    of_others: (numbers(3, 4),),
}


def gradients_by_places(function, arguments):
    """Return the program of gradients that is given results; its gradients are those of the program that is not."""
    results = interpreted(lowered(function, arguments), arguments)
    grads = [torch.arange(1.0, len(item) + 1, dtype=item.dtype) for item in results if item.is_floating_point()]
    wanted = tuple(isinstance(item, torch.Tensor) and item.is_floating_point() for item in arguments)
    added = [*grads, *results]
    program = derived(function, [*arguments, *added], (Backward(wanted, (True,) * len(results)), added))
    plain = derived(function, [*arguments, *grads], (Backward(wanted), grads))
    found, expected = interpreted(program, [*arguments, *added]), interpreted(plain, [*arguments, *grads])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)
    return program


def searches(program: Program) -> bool:
    return any(isinstance(node, For) and _has_loop(node) for node in statements(program))


@pytest.mark.parametrize("function", PLACES, ids=lambda item: item.__name__)
def test_a_place_that_was_saved_is_not_looked_for(function):
    assert not searches(gradients_by_places(function, PLACES[function]))


@pytest.mark.parametrize("function", NO_PLACES, ids=lambda item: item.__name__)
def test_a_place_that_results_do_not_tell_is_looked_for(function):
    assert searches(gradients_by_places(function, NO_PLACES[function]))


@pytest.mark.parametrize(
    ("first", "begin"), sampled(itertools.product([math.inf, 0.0, 1.0, -1.0, math.nan], [0, 1, -1, 5]), 3), ids=str
)
def test_nothing_that_was_found_is_no_place(first, begin):
    odd = torch.tensor([0.0, math.inf, math.nan, 1.0, -math.inf], dtype=torch.float64)
    rows = torch.stack([odd, odd.flip(0), odd[torch.tensor([1, 1, 2, 2, 1])], odd[torch.tensor([2, 3, 2, 0, 3])]])
    for x in (rows.flip(0), numbers(4, 5), 0 * numbers(4, 5)):
        for y in (rows, rows[:, :0]):
            assert not searches(gradients_by_places(nearest, (x, y, first, begin)))


@pytest.mark.parametrize("first", [0.0, 1.0, 5.0, math.nan], ids=str)
def test_what_a_condition_leaves_out_is_no_place(first):
    x = torch.tensor([[2.0, 2.0, 2.0], [2.0, 1.0, -1.0], [math.nan, 0.0, 2.0], [-2.0, 2.0, math.inf]])
    assert not searches(gradients_by_places(last_of_some, (x.double(), first, 3)))


def test_an_index_that_elements_are_read_for_tells_nothing():
    program = canonical(lowered(wide, PLACES[wide]))
    (rows,) = (node for node in statements(program) if isinstance(node, For) and _has_loop(node))
    loop = next(node for node in rows.body if isinstance(node, For))
    *_, store = (node for node in rows.body if isinstance(node, Store))
    (best, where) = (node for node in statements(loop) if isinstance(node, Assign))
    saved = SavedPlaces({store.tensor: store.tensor}, (), lambda _: True, names_of(program))
    assert saved.of(loop, (best, where), (store,)) == Load(
        tensor=store.tensor, indices=store.indices, access=store.access + 1, dtype=INT64
    )
    element = saved.names.load(store.tensor, *store.indices)
    assert saved.of(loop, (best, where), (replace(store, indices=(element,)),)) is None


def test_so_many_places_are_refused():
    program = gradients_by_places(nearest, PLACES[nearest])
    sizes = {node.condition for node in statements(program) if isinstance(node, Check)}
    assert any(build.is_constant(node.operands[0], 2**31) for node in sizes if isinstance(node, Apply))


def _has_loop(node: Node) -> bool:
    return sum(isinstance(item, For) for item in statements(node)) > 1
