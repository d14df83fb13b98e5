"""Loops that pass counters on: on grids, what their iterations find in these is found first, in parallel."""

# pyright: basic
from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT32
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, For, Launch, Load, Role, Tensor, TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import ranks, split_recurrences
from support.shared import define, lower, schedule_program, verify_program
from support.sweep import sampled
from support.tensors import argument_type, to_memory, to_tensor

GPU = replace(cuda_target((9, 0)), launch_ns=0)
"""A machine for which a few iterations are worth being cut."""


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(split_recurrences, "UNROLLED", 2)
    monkeypatch.setattr(ranks, "UNROLLED", 2)


def places(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        e = key[i]
        place = count[e]
        count[e] += 1
        out[(e * 7 + place) % len(out)] = x[i]


def places_by_the_read(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] = place + 2
        out[place % len(out)] = x[i]


def read_afterwards(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(1, len(key)):
        if x[i] > 0.0:
            count[key[i]] -= key[i - 1]
        out[i] = x[i] * count[key[i]] - count[0]


def pairs(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    """Count two elements in each iteration."""
    for i in range(len(key)):
        first, second = key[i], key[len(key) - 1 - i]
        out[i] = count[first] * 100 + count[second]
        count[first] += 1
        count[second] += 3


def several(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    """Count in a loop inside, of a tensor with two axes."""
    table = torch.zeros(2, len(count), dtype=torch.int32)
    for i in range(len(key)):
        for k in range(3):
            e = (key[i] + k) % len(count)
            place = table[k % 2, e]
            table[k % 2, e] += 1
            if place < len(out):
                out[(place * 3 + k) % len(out)] = x[i] + k
    for e in range(len(count)):
        count[e] = table[0, e] * 1000 + table[1, e]


def kept(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        if x[i] > 0.0:
            out[m] = x[i]
            m += 1
    count[0] = m


def kept_at_both_ends(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    low, high = 0, len(key) - 1
    for i in range(len(key)):
        if x[i] > 0.0:
            out[low] = x[i]
            low += 1
        else:
            out[high] = x[i]
            high -= 1
    count[0] = low * 1000 + high


def counted_in_an_element(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        if x[i] > 0.0:
            out[count[0] % len(out)] = x[i]
            count[0] += 1


def two_counters(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m, total = 0, 0.0
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] += 1
        total += x[i]
        if place < 2:
            out[m] = x[i] + place
            m += 1
    out[0] += total


def from_below(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    """Begin at a place that counts from the end: iterations meet."""
    m = -2
    for i in range(len(key)):
        if x[i] > 0.0:
            out[m] = x[i]
            m += 1


def back_and_forth(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        out[m] = x[i]
        m += 1
        if m > 0:
            m += key[i] - key[i]
        if x[i] > 0.0:
            m -= 1


def halved_place(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        if x[i] > 0.0:
            out[m // 2] = x[i]
            m += 1


def counted_elsewhere(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        out[m] = x[i]
        if x[i] > 0.0:
            m += 1


def counted_back(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        out[m] = x[i]
        m += 1
        if x[i] > 0.0:
            m -= 1


def counted_by_data(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        out[m % len(out)] = x[i]
        m += key[i]


def begun_below(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    if len(key) > 3:
        m = -2
    for i in range(len(key)):
        if x[i] > 0.0:
            out[m] = x[i]
            m += 1


def stored_in_a_loop(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        for k in range(2):
            out[m] = x[i] + k
        if x[i] > 0.0:
            m += 1


MEETING = [begun_below, from_below, stored_in_a_loop, halved_place, counted_elsewhere, counted_back, counted_by_data]
"""Variables say the places, and iterations may meet on one."""


def from_both_ends_on(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    low, high = 0, 2
    for i in range(len(key)):
        if x[i] > 0.0:
            out[low] = x[i]
            low += 1
        else:
            out[high] = x[i]
            high += 1


CHANGED = [
    places,
    places_by_the_read,
    read_afterwards,
    pairs,
    several,
    kept,
    counted_in_an_element,
    two_counters,
    *MEETING,
]


def by_elements_it_changes(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key) - 1):
        out[i] = count[key[i]]
        count[key[i]] += 1
        key[i + 1] = (key[i + 1] + 1) % 5


def as_often_as_data_says(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    n = 0
    for i in range(len(key)):
        n = max(n, key[i])
    for i in range(min(n, len(key))):
        out[i] = count[key[i]]
        count[key[i]] += 1


def full(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    """Let what was counted say whether to count."""
    for i in range(len(key)):
        place = count[key[i]]
        if place < 3:
            count[key[i]] += 1
            out[(key[i] * 3 + place) % len(out)] = x[i]


def doubled(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        out[count[key[i]] % len(out)] = x[i]
        count[key[i]] *= 2


def by_its_own(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] += count[0]
        out[place % len(out)] = x[i]


def read_from_results(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        place = count[key[i]]
        if out[i] < 1.0:
            count[key[i]] += 1
        out[place % len(out)] = x[i]


def last_key(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    before = 0
    for i in range(len(key)):
        place = count[before]
        count[before] += 1
        out[place % len(out)] = x[i]
        before = key[i]


def ended(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    m = 0
    for i in range(len(key)):
        if x[i] > 2.0:
            break
        out[m] = x[i]
        m += key[i]


def rows_of_data(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        for _ in range(key[i]):
            place = count[key[i]]
            count[key[i]] += 1
            out[place % len(out)] = x[i]


def floats(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        out[key[i]] += 1.0
        x[int(out[key[i]]) % len(x)] = 1.0


def in_two_ways(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] += 1
        out[place % len(out)] = x[i]
        out[i] += 1.0


def asserted(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] += 1
        assert place < 10000
        out[place % len(out)] = x[i]


def last_value(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    place = 0
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] += 1
        out[place % len(out)] = x[i]
    count[0] = place


def keys_by_places(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    """Let what was counted say the next key."""
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] += 1
        key[(i + 1) % len(key)] = place % 5
        out[i] = place


def counted_and_raised(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(key)):
        place = count[key[i]]
        count[key[i]] += 1
        count[(key[i] + 1) % 5] = max(count[(key[i] + 1) % 5], i)
        out[i] = place


OTHERS = [
    by_elements_it_changes,
    as_often_as_data_says,
    keys_by_places,
    counted_and_raised,
    from_both_ends_on,
    kept_at_both_ends,
    full,
    doubled,
    by_its_own,
    read_from_results,
    last_key,
    ended,
    rows_of_data,
    floats,
    in_two_ways,
    asserted,
    last_value,
    back_and_forth,
]


def pieces_of(function, *arguments, may_alias=False):
    signature = Signature(
        tuple(map(argument_type, arguments)), device="cuda", may_alias=may_alias, narrow=True, aligned=True
    )
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    verify_program(pieces)
    return pieces


def is_changed(pieces):
    return any(isinstance(node, Launch) and "_ranks" in node.kernel.name for node in walk(pieces))


def arguments_of(size, dtype=torch.int32):
    generator = torch.Generator().manual_seed(size)
    key = torch.randint(0, 5, (size,), generator=generator)
    x = torch.randint(-3, 4, (size,), generator=generator).float()
    return key, x, torch.arange(5, dtype=dtype), torch.zeros(size + 3)


def results_of(function, arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    results = []
    for one in (lower(define(function), signature), pieces_of(function, *arguments)):
        memories = [to_memory(each.clone()) for each in arguments]
        run_program(one, memories, check=True)
        results.append([to_tensor(each) for each in memories])
    return results


@pytest.mark.parametrize(("size", "function"), sampled(product([0, 1, 5, 40, 150], [*CHANGED, *OTHERS])))
def test_iterations_find_what_they_found(function, size):
    source, changed = results_of(function, arguments_of(size))
    assert all(map(torch.equal, source, changed))


@pytest.mark.parametrize(
    ("dtype", "function"),
    sampled(product([torch.uint8, torch.int8, torch.int16, torch.int64], [places, read_afterwards, pairs])),
)
def test_counters_wrap_as_elements_do(function, dtype):
    key, x, count, out = arguments_of(150, dtype)
    source, changed = results_of(function, (key, x, count + 100, out))
    assert all(map(torch.equal, source, changed))


@pytest.mark.parametrize("function", CHANGED)
def test_found_first_where_that_can_be(function):
    pieces = pieces_of(function, *arguments_of(4))
    assert is_changed(pieces)
    kernels = [node.kernel for node in walk(pieces) if isinstance(node, Launch) and "_ranks" in node.kernel.name]
    assert any(isinstance(node, For) and node.role is Role.PARALLEL for each in kernels for node in walk(each.body))


@pytest.mark.parametrize("function", OTHERS)
def test_in_order_elsewhere(function):
    assert not is_changed(pieces_of(function, *arguments_of(4)))


def test_elements_that_are_added_to_alone_count():
    counts, floats = (Tensor(name, 0, TensorType(dtype, 1, True, 0)) for name, dtype in (("n", INT32), ("x", FLOAT32)))
    more = ("add", build.integer(1))
    assert ranks._counts_in(counts, [more, more])
    assert not ranks._counts_in(counts, [more, None])
    assert not ranks._counts_in(counts, [more, ("mul", build.integer(2))])
    assert not ranks._counts_in(floats, [more])
    assert not ranks._counts_in(replace(counts, sizes=(4,)), [more])


def test_arguments_that_may_share_memory_stay_in_order():
    assert not is_changed(pieces_of(places, *arguments_of(4), may_alias=True))


def test_what_is_kept_has_places_of_its_own():
    names = [node.kernel.name for node in walk(pieces_of(kept, *arguments_of(4))) if isinstance(node, Launch)]
    assert not any("last_stores" in name for name in names)


@pytest.mark.parametrize("function", MEETING)
def test_last_stores_are_found_where_places_may_be_the_same(function):
    names = [node.kernel.name for node in walk(pieces_of(function, *arguments_of(4))) if isinstance(node, Launch)]
    assert any("last_stores" in name for name in names)


def after_a_triangle(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(count.shape[0]):
        for j in range(i + 1, count.shape[0]):
            count[i] += count[j] % 3
    for i in range(key.shape[0]):
        out[count[key[i]] % 3] = x[i]
        count[key[i]] += 1


@pytest.mark.parametrize("size", [0, 1, 40])
def test_what_is_given_up_leaves_nothing_behind(size):
    arguments = arguments_of(size)
    assert is_changed(pieces_of(after_a_triangle, *arguments))
    source, changed = results_of(after_a_triangle, arguments)
    assert all(map(torch.equal, source, changed))


def beside_what_has_an_order(key: torch.Tensor, x: torch.Tensor, count: torch.Tensor, out: torch.Tensor) -> None:
    state = 1
    for i in range(key.shape[0]):
        out[(count[key[i]] + state) % 3] = x[i]
        count[key[i]] += 1
        state = (state * state + key[i]) % 7
    for i in range(key.shape[0]):
        out[count[key[i]] % 3] = x[i]
        count[key[i]] += 1


def test_what_is_given_up_late_allocates_nothing():
    """The counter in memory is taken apart before the variable is seen not to be."""
    arguments = arguments_of(40)
    pieces = pieces_of(beside_what_has_an_order, *arguments)
    assert is_changed(pieces)
    used = {node.tensor for node in walk(pieces) if isinstance(node, Load)}
    made = {node.tensor for node in walk(pieces) if isinstance(node, Allocate) and node.tensor.name != "failed"}
    assert made <= used
    source, changed = results_of(beside_what_has_an_order, arguments)
    assert all(map(torch.equal, source, changed))
