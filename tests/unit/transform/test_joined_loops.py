"""Parts of a loop that compute the same are one loop, where nothing tells them apart; results stay bit for bit."""

# pyright: basic
from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.diagnostics.location import NOWHERE
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Assign, Continue, For, If, Launch, Local, Store, Tensor, TensorType, While
from brickwork.ir.walk import rewrite, rewrite_statements, statements, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.joined_loops import _apart, _holds, _meet, _Merge, joined_loops
from support.gradients import derived
from support.kernels_of_parts import APART, JOINED, nests, sums, three_in_one, under_conditions
from support.lowering import program_of
from support.shared import schedule_program, verify_program
from support.tensors import to_memory, to_tensor
from support.written import let, load, op, store, symbol, when

GPU = cuda_target((9, 0))


def arguments_of(size):
    generator = torch.Generator().manual_seed(size)
    return tuple(torch.randn(size, 2, generator=generator) for _ in range(3))


def kernel_of(function):
    program = of_one_loop(canonical(program_of(function, *map(to_memory, arguments_of(4))), sizes=True))
    return next(node.kernel for node in walk(program) if isinstance(node, Launch))


def of_one_loop(program):
    """Return the program with its loops as parts of one loop of the source."""
    return rewrite(program, lambda node: replace(node, loc=NOWHERE) if isinstance(node, For) else node)


def with_joined(program):
    """Return the program with its loops joined, which no schedule has moved."""

    def visit(node):
        if not isinstance(node, Launch):
            return node
        return replace(node, kernel=joined_loops(node.kernel, analyse(node.kernel)))

    return rewrite(program, visit)


@pytest.mark.parametrize("size", [2, 3, 9])
@pytest.mark.parametrize("function", [*JOINED, *APART])
def test_results_are_the_same_bit_for_bit(function, size):
    program = of_one_loop(canonical(program_of(function, *map(to_memory, arguments_of(size))), sizes=True))
    joined = with_joined(program)
    verify_program(joined)
    found = []
    for each in (program, joined, schedule_program(program, GPU)[0]):
        given = [to_memory(item) for item in arguments_of(size)]
        run_program(each, given, check=each is joined)
        found.append([to_tensor(item) for item in given])
    assert all(torch.equal(one, other) for one, other in zip(found[0], found[1], strict=True))
    for one, other in zip(found[0], found[2], strict=True):
        torch.testing.assert_close(other, one)  # Sums are cut into pieces there.


def loops_of(kernel):
    return sum(isinstance(node, For) for node in walk(kernel.body))


@pytest.mark.parametrize("function", JOINED)
def test_loops_that_compute_the_same_are_one(function):
    kernel = kernel_of(function)
    joined = joined_loops(kernel, analyse(kernel))
    depth = {nests: 2, three_in_one: 3, under_conditions: 2}.get(function, 1)
    assert loops_of(joined) == depth < loops_of(kernel)
    exponentials = [node for node in walk(joined.body) if getattr(getattr(node, "operator", None), "name", "") in LONG]
    assert len(exponentials) == 1


LONG = {"exp", "sqrt"}


@pytest.mark.parametrize("function", APART)
def test_others_stay_apart(function):
    kernel = kernel_of(function)
    assert joined_loops(kernel, analyse(kernel)) is kernel


def test_loops_that_the_user_tells_apart_stay_so():
    program = canonical(program_of(sums, *map(to_memory, arguments_of(4))), sizes=True)
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    assert joined_loops(kernel, analyse(kernel)) is kernel


def with_more(kernel, which, *more, **changed):
    """Return a kernel with more statements in the first or second of two loops, which may be changed besides."""
    loops = [node for node in statements(kernel.body) if isinstance(node, For)]
    assert len(loops) == 2
    found = replace(loops[which], body=(*more, *loops[which].body), **changed)
    return replace(
        kernel, body=rewrite_statements(kernel.body, lambda node: (found if node is loops[which] else node,))
    )


V = symbol("v", FLOAT32)
ONE = build.constant(1.0, FLOAT32)
KEEPING_ORDER = {
    "nothing": (),
    "whiles": (While(prelude=(), condition=op("lt", 1, 0), body=()),),
    "declares": (Local(tensor=Tensor("own", 90, TensorType(FLOAT32, 1), sizes=(8,))),),
    "jumps": (when(op("lt", 1, 0), (Continue(),)),),
}


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("what", KEEPING_ORDER)
def test_loops_whose_iterations_keep_their_order_stay_apart(what, which):
    kernel = with_more(kernel_of(sums_of_one), which, *KEEPING_ORDER[what])
    assert (joined_loops(kernel, analyse(kernel)) is kernel) == (what != "nothing")


@pytest.mark.parametrize("which", [0, 1])
def test_loops_that_are_claimed_stay_apart(which):
    kernel = with_more(kernel_of(sums_of_one), which, claimed=True)
    assert joined_loops(kernel, analyse(kernel)) is kernel


def sums_of_one(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for j in range(x.shape[0]):
        s += math.exp(x[j, 0] - 1.0) * g[j, 0]
    for j in range(x.shape[0]):
        t += math.exp(x[j, 0] - 1.0) * g[j, 1]
    out[0, 0] = s
    out[0, 1] = t


def test_variables_that_both_loops_assign_or_the_first_reads_keep_them_apart():
    kernel = kernel_of(sums_of_one)
    again = with_more(with_more(kernel, 0, let(V, ONE)), 1, let(V, build.constant(2.0, FLOAT32)))
    last = next(node for node in statements(kernel.body) if isinstance(node, Store))
    again = replace(again, body=(*again.body, replace(last, value=build.read(V), access=90)))
    assert joined_loops(again, analyse(again)) is again
    sum_of_second = next(
        node.symbol for node in statements(kernel.body) if isinstance(node, Assign) and node.symbol.name == "t"
    )
    read_first = with_more(kernel, 0, let(V, sum_of_second))
    read_first = replace(read_first, body=(*read_first.body, replace(last, value=build.read(V), access=90)))
    assert joined_loops(read_first, analyse(read_first)) is read_first


def under_sizes(x: torch.Tensor, g: torch.Tensor, out: torch.Tensor) -> None:
    s = t = 0.0
    for _ in range(1):
        if x.shape[1] >= 2:
            for j in range(x.shape[0]):
                s += math.exp(x[j, 0]) * g[j, 0]
        if x.shape[1] >= 2:
            for j in range(x.shape[0]):
                t += math.exp(x[j, 0]) * g[j, 1]
    out[0, 0], out[0, 1] = s, t


@pytest.mark.parametrize(
    ("operator", "place", "least", "held"),
    [
        ("ge", 0, 2, True),
        ("ge", 0, 3, True),
        ("ge", 0, 1, False),
        ("le", 0, 3, False),
        ("eq", 0, 3, False),
        ("ge", 1, 3, False),
    ],
)
def test_conditions_hold_where_as_much_is_known(operator, place, least, held):
    kernel = kernel_of(under_sizes)
    size = build.size(kernel.tensors[place], 1)
    known = replace(kernel, facts=(build.apply(operator, size, build.integer(least)),))
    assert (joined_loops(known, analyse(known)) is not known) == held


A, I, J = Tensor("a", 91, TensorType(FLOAT32, 2)), symbol("i"), symbol("j")


def test_conditions_hold_that_are_among_others():
    some, more = op("ge", I, 3), op("ge", I, J)
    held = frozenset((build.read(symbol("asked", BOOL)), more, op("le", I, 7)))
    assert _holds(some, held | {op("ge", I, 4)})
    assert _holds(more, held)
    assert not _holds(some, held)
    assert not _holds(op("le", I, 5), held)


def test_elements_are_apart_by_numbers_from_the_same_end():
    assert _apart(load(A, 1, I), load(A, 0, J))
    assert not _apart(load(A, 1, I), load(A, 1, J))
    assert not _apart(load(A, -1, I), load(A, 1, J))
    assert not _apart(load(A, 1, I), load(A, -1, J))


def test_a_choice_that_changes_what_it_asks_is_asked_again():
    asked = op("lt", load(A, I, 0), load(A, I, 1))
    merge = _Merge(frozenset((I,)), frozenset((I,)), {})
    other = when(asked, (let(V, ONE),))
    assert merge._place([when(asked, (store(A, (I, 0), ONE),))], other) is None
    first = when(asked, (let(symbol("w", FLOAT32), ONE),))
    assert merge._place([first], other) == (0, first)


def test_statements_that_change_what_others_read_keep_their_order():
    one, again = let(V, ONE), let(V, build.constant(2.0, FLOAT32))
    read = let(symbol("w", FLOAT32), V)
    assert _meet(one, again)
    assert _meet(one, read)
    assert _meet(read, one)
    assert not _meet(one, let(symbol("w", FLOAT32), ONE))
    for each in KEEPING_ORDER["whiles"]:
        assert _meet(each, one)
        assert _meet(one, each)


def attracted(x: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            out[i] += 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + 0.1)
    return out


def test_gradients_by_coordinates_compute_distances_once_for_all_of_them():
    """Where the guards hold, nothing is left of the conditions that a tensor has a third column."""
    program = canonical(derived(attracted, (torch.randn(5, 3),)), sizes=True)
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch) and loops_of(node.kernel) > 6)
    joined = joined_loops(kernel, analyse(kernel))
    roots = [
        sum(getattr(getattr(node, "operator", None), "name", "") == "sqrt" for node in walk(each.body))
        for each in (kernel, joined)
    ]
    assert roots == [6, 2]
    assert not any(isinstance(node, If) for node in walk(joined.body))
