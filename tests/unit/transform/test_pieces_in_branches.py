"""Long sums are cut into pieces where all that an iteration does stands in a branch."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import (
    Assign,
    Check,
    Failure,
    FailureKind,
    For,
    If,
    Load,
    Local,
    Reduction,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.tensor_types import type_of
from brickwork.transform import split_reductions
from brickwork.transform.host_device_partition import Partition
from unit.transform.test_split_reductions import agree_in_pieces, low_limits, parts_of, pieces_of

__all__ = ["low_limits"]

ONE = build.integer(1)
CHECK = Check(condition=build.constant(True, BOOL), failure=Failure(FailureKind.INDEX, ""))


def wholly_in_branches(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        before = out[j]
        if j != 1:
            s = before * 3.0
            if s > 2.0:
                t = s + 1.0
                for i in range(x.shape[0]):
                    t += x[i, j]
                out[j] = t - before


def or_else(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        if j != 1:
            s = 1.0
            for i in range(x.shape[0]):
                s += x[i, j]
            out[j] = s
        else:
            out[j] = 7.0


@pytest.mark.parametrize("function", [wholly_in_branches, or_else])
@pytest.mark.parametrize(("few", "long"), [(0, 30), (1, 30), (3, 7), (3, 8), (3, 29), (4, 30), (9, 30), (3, 0)])
def test_pieces_mean_what_the_source_says(function, few, long):
    agree_in_pieces(function, torch.randint(-9, 9, (long, few)).float(), torch.ones(few))


@pytest.mark.parametrize(("function", "launches"), [(wholly_in_branches, {2}), (or_else, set())])
def test_nests_in_one_branch_alone_are_cut(function, launches):
    assert set(parts_of(pieces_of(function, torch.ones(3, 3), torch.ones(3)))) == launches


def before_others(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        before = x[1, j]
        if j != 1:
            s = 0.0
            for i in range(x.shape[0]):
                s += x[i, j]
            out[j] = s
        out[x.shape[1] + j] = before * 3.0


def before_others_twice(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        t = 1.0
        if j != 1:
            if j != 2:
                s = 0.0
                for i in range(x.shape[0]):
                    s += x[i, j]
                t = s
            t = t * 3.0
        out[j] = t


def beside_a_store(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
            x[i, j] = x[i, j] + j
        out[j] = s * 2.0


def beside_a_store_of_what_was_read(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        first = x[1, j]
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j] * first
            x[i, j] = j
        out[j] = s


def beside_a_store_of_what_is_asked(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        if x[1, j] > 0.0:
            s = 0.0
            for i in range(x.shape[0]):
                s += x[i, j]
                x[i, j] = -1.0
            out[j] = s


def before_others_with_sums(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        if j != 1:
            s = 0.0
            for i in range(x.shape[0]):
                s += x[i, j]
            out[j] = s
        t = x[1, j]
        for i in range(3):
            t += i * j
        out[j] = out[j] + t


def beside_a_store_that_others_read(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
            x[i, j] = j
        for i in range(x.shape[0]):
            s += x[x.shape[0] - 1 - i, j]
        out[j] = s


CUT = [before_others, before_others_twice, beside_a_store]
WHOLE = [beside_a_store_of_what_was_read, beside_a_store_of_what_is_asked, before_others_with_sums]


@pytest.mark.parametrize("function", [*CUT, *WHOLE, beside_a_store_that_others_read])
@pytest.mark.parametrize(("few", "long"), [(0, 30), (1, 30), (3, 29), (4, 30), (9, 30), (3, 2)])
def test_pieces_beside_others_mean_what_the_source_says(function, few, long):
    agree_in_pieces(function, torch.randint(-9, 9, (long, few)).float(), torch.arange(1.0, 2 * few + 1))


@pytest.mark.parametrize("function", CUT)
def test_sums_beside_stores_and_others_are_cut(function):
    assert set(parts_of(pieces_of(function, torch.ones(3, 3), torch.ones(6)))) == {2}


@pytest.mark.parametrize("function", WHOLE)
def test_what_would_be_run_again_behind_its_stores_is_whole(function):
    assert not parts_of(pieces_of(function, torch.ones(3, 3), torch.ones(6)))


def checked_behind(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        if j != 1:
            s = 0.0
            for i in range(x.shape[0]):
                s += x[i, j]
            out[j] = s
        out[int(x[1, j])] = 3.0


def test_what_fails_behind_a_branch_keeps_its_sum_whole():
    assert not parts_of(pieces_of(checked_behind, torch.ones(3, 3), torch.ones(6)))


def test_a_loop_in_pieces_stores_what_nothing_around_it_reads():
    own, other = (Tensor(name, n, type_of(INT64, 1, dense=True), sizes=(4,)) for n, name in enumerate("ab"))
    given = Tensor("c", 2, type_of(INT64, 1, dense=True))
    stores = {each: Store(tensor=each, indices=(ONE,), value=ONE, access=0) for each in (own, other, given)}
    declared = Local(tensor=own)
    for body, allowed in (
        ((stores[given],), True),
        ((declared, stores[own], stores[given]), True),
        ((CHECK, stores[given]), False),
        ((stores[other],), False),
        ((declared, stores[own], stores[other]), False),
        ((CHECK,), True),
    ):
        loop = For(index=Symbol("i", 0, INT64), start=ONE, stop=ONE, body=body)
        for stop, read in ((ONE, False), (Load(tensor=given, indices=(ONE,), access=1, dtype=INT64), True)):
            around = For(index=Symbol("j", 1, INT64), start=ONE, stop=stop, body=())
            clear = not read or stores[given] not in body
            assert split_reductions._may_store(loop, around) == (allowed and clear)


def test_a_branch_is_left_where_nothing_else_is_for_threads():
    s, t = Symbol("s", 0, INT64), Symbol("t", 1, INT64)
    loop = For(index=Symbol("i", 2, INT64), start=ONE, stop=ONE, body=())
    begin = Assign(symbol=s, value=ONE)
    branch = If(condition=build.apply("lt", build.read(t), ONE), then=(begin, loop))
    for body, left in (
        ((branch,), True),
        ((begin, branch, begin), True),
        ((begin, branch, loop), False),
        ((begin, branch, CHECK), False),
        ((CHECK, branch), False),
        ((replace(branch, then=(loop,)),), False),
        ((replace(branch, otherwise=(begin,)),), False),
    ):
        level = For(index=Symbol("j", 3, INT64), start=ONE, stop=ONE, body=body)
        inner, around = split_reductions._without_branch((level,))
        assert (inner[-1].body == branch.then) == left
        if left:
            place = body.index(branch)
            assert around.whole(branch.then) == body[: place + 1]
            assert around.joined(branch.then) == body


def test_loops_that_add_to_the_same_go_together_until_one_stores() -> None:
    s, c, j, *indices = (Symbol(name, number, INT64) for number, name in enumerate("scjik"))
    tensor = Tensor("a", 0, type_of(INT64, 1, dense=True))
    added = Reduction(s, OPERATORS["add"])
    body = (Assign(symbol=s, value=build.add(build.read(s), ONE)),)
    loop, other = (
        For(index=index, start=ONE, stop=build.integer(9), body=body, reductions=(added,)) for index in indices
    )
    stored = Store(tensor=tensor, indices=(ONE,), value=ONE, access=0)
    asked = build.apply("gt", build.read(c), ONE)
    bare = replace(other, reductions=())
    for first, after, found in (
        (loop, (other,), [other]),
        (loop, (If(condition=asked, then=(other,)),), [other]),
        (loop, (other, Assign(symbol=s, value=ONE)), [other]),
        (loop, (Assign(symbol=s, value=ONE), other), []),
        (loop, (stored, other), []),
        (loop, (bare,), []),
        (loop, (replace(other, body=(*body, stored)),), []),
        (replace(loop, body=(*body, stored)), (other,), []),
        (loop, (replace(other, stop=build.read(s)),), []),
    ):
        levels = (For(index=j, start=ONE, stop=build.integer(3), body=(first, *after)),)
        made = [*split_reductions._beside(first, after, Partition(frozenset()), levels)]
        assert made == found, after
    sought = replace(added, along=indices[0])
    first, after = (replace(each, reductions=(added, sought)) for each in (loop, other))
    levels = (For(index=j, start=ONE, stop=build.integer(3), body=(first, after)),)
    assert not [*split_reductions._beside(first, (after,), Partition(frozenset()), levels)]
