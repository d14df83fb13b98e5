"""Recurrences are found where each condition on them holds, and are not where one does not."""

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.carrying_loops import carrying_loops
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Cast, For, Load, Local, Read, Role, Store
from brickwork.ir.walk import walk
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.recurrences import Recurrence, _begins_filled, recurrence_in
from support.lowering import memory
from support.scheduling import kernel_of, loops_of

Tensor = torch.Tensor
X = memory([[float((3 * k + 5 * j) % 7 - 3) for j in range(6)] for k in range(6)])
NUMBERS = memory([3, 1, 4, 1, 5, 2], INT64)


def found_in(
    function, *, outer=Role.PARALLEL, inner=Role.SEQUENTIAL, device=frozenset[str](), updated=frozenset[str]()
) -> Recurrence | None:
    """Return the recurrence over `t` in the nest over `c`; the names in `device` are known to the device alone."""
    kernel = kernel_of(function, X, X, X, NUMBERS)
    loops = loops_of(kernel)
    level, loop = replace(loops["c"], role=outer), loops["t"]
    body = tuple(replace(node, role=inner) if node == loop else node for node in level.body)
    symbols = {node.symbol for node in walk(kernel) if isinstance(node, Read)}
    places = Partition(frozenset(symbol for symbol in symbols if symbol.name in device))
    tensors = {node.tensor for node in walk(kernel) if isinstance(node, Load | Store)}
    meeting = frozenset(tensor for tensor in tensors if tensor.name in updated)
    return recurrence_in((replace(level, body=body),), places, {loop.index: meeting}, ())


def names_of(found: Recurrence | None):
    assert found is not None
    return [item.name for item in found.states], [each.item.name for each in found.sums]


def plain(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def test_a_nest_of_threads_with_a_loop_in_order_has_a_recurrence():
    assert names_of(found_in(plain)) == (["h"], [])
    assert found_in(plain, outer=Role.BLOCK) is None
    assert found_in(plain, inner=Role.VECTOR) is None


def with_a_check(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            assert x[c, t] > -9.0
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def with_a_while(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h
        z = h
        while z > 3.0:
            z = z - 1.0
        out[c, 0] = z


def with_a_break(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            if x[c, t] > 2.0:
                break
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def ends_at_a_number(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        last = 2
        if n[c] > 2:
            last = 4
        h = 1.0
        for t in range(last):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def ends_at_a_place(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(c):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def reads_before(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = out[c, 0]
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def reads_and_stores_before(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = out[c, 0]
        out[c, 0] = 4.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def stores_before(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        out[c, 0] = 4.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def passes_whole_numbers_of_few_bits(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        b = x[c, 0] > 0.0
        for t in range(x.shape[1]):
            out[c, t] = h
            if b:
                out[c, t] = 0.0
            h = a[c, t] * h + x[c, t]
            b = x[c, t] > 0.0


def only_sums(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h += x[c, t]
        out[c, 0] = h


def leaves_another_value(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h, z = 1.0, 0.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            z = x[c, t]
            out[c, t] = h
        out[c, 0] = z


def sums_of_one_item(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        sums = [0.0] * 3
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            sums[1] += h
        out[c, 0] = h + sums[1]


def sums_of_some_items(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        m = min(n[c], 3)
        sums = [0.0] * 3
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            for i in range(m):
                sums[i] += h
        out[c, 0] = h + sums[1]


def leaves_a_list(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        parts = [0.0] * 3
        for t in range(x.shape[1]):
            for i in range(3):
                parts[i] = x[c, t]
            for i in range(3):
                h = a[c, t] * h + parts[i]
            out[c, t] = h
        for i in range(3):
            out[c, 0] += parts[i]


def exchanges_tensors(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h
            x, a = a, x


OTHERS = [exchanges_tensors, with_a_check, with_a_while, with_a_break, ends_at_a_place, reads_and_stores_before]
OTHERS += [passes_whole_numbers_of_few_bits, only_sums, leaves_another_value, sums_of_one_item, sums_of_some_items]
OTHERS += [leaves_a_list]


def test_elements_are_read_or_stored_before_a_recurrence():
    assert names_of(found_in(reads_before)) == (["h"], [])
    found = found_in(stores_before)
    assert names_of(found) == (["h"], [])
    assert not effects(found.before).stores
    assert effects(found.ahead).stores


@pytest.mark.parametrize("function", OTHERS)
def test_other_loops_are_no_recurrences(function):
    assert found_in(function) is None


def ends_at_a_place_further_out(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(3):
        for c in range(x.shape[0]):
            h = 1.0
            for t in range(b):
                h = a[c, t] * h + x[c, t]
                out[c, t] = h


def test_the_host_knows_where_a_recurrence_ends():
    assert found_in(ends_at_a_number) is None
    assert found_in(ends_at_a_place_further_out) is not None
    assert found_in(ends_at_a_place_further_out, device={"b"}) is None


def test_updates_on_which_iterations_may_meet_are_indivisible():
    assert found_in(plain, updated={"x"}) is not None
    assert found_in(plain, updated={"out"}) is None


def sums_of_all_items(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        sums = [0.0] * 3
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            for i in range(3):
                sums[i] += h
        for i in range(3):
            out[c, i] = sums[i]


def products_of_all_items(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        sums = [1.0] * 3
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            for i in range(3):
                sums[i] *= h
        for i in range(3):
            out[c, i] = sums[i]


def fills_a_list_of_before(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        parts = [0.0] * 3
        for t in range(x.shape[1]):
            for i in range(3):
                parts[i] = x[c, t]
            for i in range(3):
                h = a[c, t] * h + parts[i]
            out[c, t] = h


def test_lists_are_states_or_sums_or_neither():
    assert names_of(found_in(sums_of_all_items)) == (["h"], ["sums"])
    assert names_of(found_in(products_of_all_items)) == (["h", "sums"], [])
    assert names_of(found_in(fills_a_list_of_before)) == (["h"], [])


# ---------------------------------------------------------------- lists that an iteration fills


def fills(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            for i in range(3):
                parts[i] = x[c, i]
            for i in range(3):
                out[c, i] = parts[i]


def fills_further_in(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            for t in range(3):
                for i in range(3):
                    parts[i] = x[c, i]
                for i in range(3):
                    out[c, i] = parts[i]


def does_not_touch(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        parts[1] = x[b, 1]
        for c in range(x.shape[0]):
            out[c, 0] = 3.0
        out[0, 0] = parts[0]


def only_reads(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        parts[1] = x[b, 1]
        for c in range(x.shape[0]):
            y = parts[0]
            out[c, 0] = y


def only_stores(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            parts[0] = x[c, 0]


def reads_first(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            for i in range(3):
                out[c, i] = parts[i]
            for i in range(3):
                parts[i] = x[c, i]


def stores_elsewhere(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        parts[1] = x[b, 1]
        seconds = [0.0] * 3
        for c in range(x.shape[0]):
            for i in range(3):
                seconds[i] = parts[i]
            for i in range(3):
                out[c, i] = seconds[i]


def stores_in_one_place(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(3):
            for i in range(3):
                parts[c] = x[c, i]
            for i in range(3):
                out[c, i] = parts[i]


def stores_what_was_there(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            for i in range(3):
                parts[i] = x[c, i] * parts[i]
            for i in range(3):
                out[c, i] = parts[i]


def fills_a_part(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            for i in range(2):
                parts[i] = x[c, i]
            for i in range(3):
                out[c, i] = parts[i]


def reads_one_item(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            for i in range(3):
                parts[i] = x[c, i]
            out[c, 0] = parts[2]


def fills_among_other_loops(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for b in range(2):
        parts = [0.0] * 3
        for c in range(x.shape[0]):
            for i in range(3):
                parts[i] = x[c, i]
            for t in range(x.shape[1]):
                for i in range(3):
                    out[c, t] += parts[i]


FILLED = [fills, fills_further_in, does_not_touch, fills_among_other_loops]
UNFILLED = [only_reads, only_stores, reads_first, stores_elsewhere, stores_in_one_place, stores_what_was_there]
UNFILLED += [fills_a_part, reads_one_item]


@pytest.mark.parametrize("function", [*FILLED, *UNFILLED])
def test_a_list_begins_filled_if_each_item_is_stored_before_any_is_read(function):
    kernel = kernel_of(function, X, X, X, NUMBERS)
    (tensor,) = [node.tensor for node in walk(kernel) if isinstance(node, Local) and node.tensor.name == "parts"]
    assert _begins_filled(loops_of(kernel)["c"].body, tensor) == (function in FILLED)


def test_the_first_loop_has_to_store_each_item_of_the_list():
    """A variable may have the symbol of a later index, and an item may say how far another list is filled."""
    body = loops_of(kernel_of(fills, X, X, X, NUMBERS))["c"].body
    fill, reading = (node for node in body if isinstance(node, For))
    (store,) = (node for node in fill.body if isinstance(node, Store))
    (load,) = (node for node in walk(reading) if isinstance(node, Load) and node.tensor == store.tensor)
    first = Assign(symbol=reading.index, value=build.integer(0))
    assert _begins_filled((first, fill, reading), store.tensor)
    moved = replace(fill, body=(replace(store, indices=(build.read(reading.index),)),))
    assert not _begins_filled((first, moved, reading), store.tensor)
    other = replace(store, tensor=replace(store.tensor, name="other"))
    elsewhere = replace(fill, stop=Cast(operand=load, dtype=INT64), body=(other,))
    assert not _begins_filled((first, elsewhere, reading), store.tensor)


# ---------------------------------------------------------------- what iterations meet on


def carried_in(function):
    """Return the names of the tensors on which iterations over `t` may meet; None if that is no recurrence."""
    kernel = kernel_of(function, X, X, X, NUMBERS)
    found = carrying_loops(kernel, analyse(kernel)).get(loops_of(kernel)["t"].index)
    return None if found is None else {tensor.name for tensor in found}


def adds_to_one_element(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, 0] += h


def adds_to_each_element(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] += h


def stores_into_one_element(x: Tensor, a: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, 0] = h


def test_recurrences_meet_in_updates_alone():
    assert carried_in(plain) == set()
    assert carried_in(adds_to_each_element) == set()
    assert carried_in(adds_to_one_element) == {"out"}
    assert carried_in(stores_into_one_element) is None
    assert carried_in(with_a_break) is None
    assert carried_in(exchanges_tensors) is None
