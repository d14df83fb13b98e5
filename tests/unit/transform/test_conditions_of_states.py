"""A list is the state of a recurrence where loops go over all of it, and begins with one value for all items."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.nodes import For, Local, Store
from brickwork.transform.recurrences import _Equal, _extent, _is_gone_over, _start
from support.lowering import memory
from support.scheduling import kernel_of, loops_of

Tensor = torch.Tensor


def block_of(function: Callable[..., object]):
    """Return the body of a nest over `c`, and the list in it."""
    loop = loops_of(kernel_of(function, memory([[1.0, 2.0]] * 2)))["c"]
    (declared,) = [node for node in loop.body if isinstance(node, Local)]
    return loop.body[1:], declared.tensor


def whole(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            state[n] = state[n] * x[c, 0]
        for m in range(6):
            x[c, 0] += state[m]
        for q in range(2):
            x[c, q] += 1.0


def of_two_lengths(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            state[n] = state[n] * x[c, 0]
        for m in range(5):
            x[c, 0] += state[m]


def from_the_second(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            state[n] = state[n] * x[c, 0]
        for m in range(1, 6):
            x[c, 0] += state[m]


def read_at_a_place(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            state[n] = state[n] * x[c, 0]
        x[c, 0] += state[2]


def stored_at_a_place(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            x[c, 0] += state[n]
        state[2] = 3.0


def at_the_index_around(x: Tensor) -> None:
    for c in range(2):
        state = [1.0] * 2
        for n in range(2):
            state[n] = state[n] * x[c, 0]
        x[c, 0] += state[c]


def not_at_all(x: Tensor) -> None:
    for c in range(2):
        state = [1.0] * 2
        x[c, 0] += 1.0
        state[1] = 2.0


OTHERS = [of_two_lengths, from_the_second, read_at_a_place, stored_at_a_place, at_the_index_around, not_at_all]


def test_loops_over_all_items_say_how_many_there_are():
    block, state = block_of(whole)
    assert _extent(state, block[-3:], _Equal(())) == build.integer(6)


@pytest.mark.parametrize("function", OTHERS)
def test_other_accesses_say_nothing_of_all_items(function):
    block, state = block_of(function)
    rest = tuple(node for node in block if not (isinstance(node, For) and node.index.name == "item"))
    assert _extent(state, rest, _Equal(())) is None


def test_an_item_is_at_one_index():
    block, state = block_of(whole)
    loop = block[-3]
    assert isinstance(loop, For)
    (store,) = loop.body
    assert isinstance(store, Store)
    assert _is_gone_over((loop,), state)
    elsewhere = replace(store, indices=(build.add(build.read(loop.index), build.integer(1)),))
    in_a_table = replace(store, indices=(build.read(loop.index), build.integer(0)))
    for other in (elsewhere, in_a_table):
        assert not _is_gone_over((replace(loop, body=(other,)),), state)
    assert not _is_gone_over((store,), state)


def filled(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            state[n] = x[c, 0] + n
        x[c, 1] = 2.0


def filled_from_itself(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            state[n] = state[5 - n] + n


def filled_from_the_second(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(1, 6):
            state[n] = x[c, 0] + n


def filled_in_part(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(5):
            state[n] = x[c, 0] + n


def filled_backwards(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        for n in range(6):
            state[5 - n] = x[c, 0] + n


def changed_after(x: Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 6
        state[0] = 3.0


def start_of(function: Callable[..., object]):
    block, state = block_of(function)
    return block, _start(state, block, build.integer(6), _Equal(()))


def test_a_list_begins_as_its_last_loop_fills_it():
    for function, place in ((filled, -2), (whole, 1)):
        block, found = start_of(function)
        loop = block[place]
        assert isinstance(loop, For)
        (store,) = loop.body
        assert isinstance(store, Store)
        assert (found is None) == (function is whole)
        assert found is None or found == (loop.index, store.value)


FILLED_OTHERWISE = [filled_from_itself, filled_from_the_second, filled_in_part, filled_backwards, changed_after]


@pytest.mark.parametrize("function", FILLED_OTHERWISE)
def test_other_lists_begin_with_something_else(function):
    assert start_of(function)[1] is None
