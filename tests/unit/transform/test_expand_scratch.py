"""Scratch tensors that iterations fill anew: each has a part where a thread has no room, on processors each piece."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import Allocate, If, Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements
from brickwork.transform import derive, expand_scratch, privatise
from brickwork.transform.alternatives import with_own_scratch
from brickwork.transform.canonical.form import canonical
from brickwork.transform.derivation import Backward, Derived
from brickwork.transform.free_variables import free_tensors
from brickwork.transform.pipeline import ScheduledKernel
from brickwork.transform.privatise import owned, scratch_of
from brickwork.transform.spelling import spelled
from support import scheduling
from support.lowering import argument_type, memory, nested, numbers, program_of
from support.scheduling import AVX2, GPU, same
from support.shared import define, lower, schedule_program

Function = Callable[..., object]


def mixed(x: torch.Tensor, w: torch.Tensor):
    """Sum steps into a vector that each row begins with zeros."""
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for h in range(2, x.shape[1]):
            s = torch.zeros(x.shape[2])
            for t in range(w.shape[0]):
                for d in range(x.shape[2]):
                    s[d] = s[d] * w[t, d] + x[b, h, d]
            for d in range(x.shape[2]):
                out[b, h, d] = s[d]
        for d in range(x.shape[2]):
            out[b, 0, d], out[b, 1, d] = 0.0, x[b, 1, d]
    return out


def squared(x: torch.Tensor):
    """Fill a matrix for each row, and read it turned."""
    n = x.shape[1]
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        m = torch.empty(n, n)
        for j in range(n):
            for k in range(n):
                m[j, k] = x[i, j] * k - x[i, k]
        for j in range(n):
            for k in range(n):
                out[i, j] += m[k, j]
    return out


def two_nests(x: torch.Tensor):
    """Fill a vector in two nests, of which the second has more rows."""
    out = torch.zeros_like(x)
    s = torch.empty(x.shape[1])
    for i in range(x.shape[0] - 1):
        for d in range(x.shape[1]):
            s[d] = x[i, d] + i
        for d in range(x.shape[1]):
            out[i, d] = s[len(s) - 1 - d]
    for r in range(x.shape[0]):
        if x[r, 0] > 0.0:
            for d in range(x.shape[1]):
                s[d] = x[r, d] * r
            for d in range(x.shape[1]):
                out[r, d] += s[d]
    return out


def rows_of_a_triangle(x: torch.Tensor):
    """Fill a vector in each iteration of a triangle of pairs."""
    out = torch.zeros(x.shape[0], x.shape[0])
    s = torch.empty(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(i):
            for d in range(x.shape[1]):
                s[d] = x[i, d] - x[j, d]
            for d in range(x.shape[1]):
                out[i, j] += s[d] * s[len(s) - 1 - d]
    return out


def rows_to_the_end(x: torch.Tensor):
    """Fill a vector in each iteration of a triangle of pairs, of which the host knows where it ends alone."""
    out = torch.zeros(x.shape[0], x.shape[0])
    s = torch.empty(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(i, x.shape[0]):
            for d in range(x.shape[1]):
                s[d] = x[i, d] - x[j, d]
            for d in range(x.shape[1]):
                out[i, j] += s[d] * s[len(s) - 1 - d]
    return out


def carried(x: torch.Tensor):
    """Leave a vector for the next iteration."""
    out = torch.empty_like(x)
    s = torch.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for d in range(x.shape[1]):
            s[d] += x[i, d]
        for d in range(x.shape[1]):
            out[i, d] = s[len(s) - 1 - d]
    return out


def partly_filled(x: torch.Tensor):
    """Leave the first element of a vector as an iteration before left it."""
    out = torch.empty_like(x)
    s = torch.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for d in range(1, x.shape[1]):
            s[d] = x[i, d]
        for d in range(x.shape[1]):
            out[i, d] = s[len(s) - 1 - d]
        for d in range(x.shape[1]):
            s[d] = x[i, d] + 1
    return out


def filled_outside(x: torch.Tensor):
    """Store into a vector outside of the loop that reads it."""
    out = torch.empty_like(x)
    s = torch.zeros(x.shape[1])
    for d in range(x.shape[1]):
        s[d] = x[0, d]
    for i in range(x.shape[0]):
        for d in range(x.shape[1]):
            s[d] = x[i, d]
        for d in range(x.shape[1]):
            out[i, d] = s[len(s) - 1 - d]
    return out


def read_where_data_say(x: torch.Tensor):
    """Fill a vector whole, and read an element that may be out of range."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = torch.zeros(x.shape[1])
        for d in range(1, x.shape[1]):
            s[d] += x[i, d]
        for d in range(x.shape[1]):
            out[i, d] = s[int(abs(x[i, d])) % 3]
    return out


def in_order_around(x: torch.Tensor):
    """Fill a vector for each of several rows, in steps that must stay in order."""
    s = torch.empty(x.shape[1])
    for t in range(3):
        for i in range(x.shape[0]):
            for d in range(x.shape[1]):
                s[d] = x[i, d] + t
            for d in range(x.shape[1]):
                x[i, d] = s[len(s) - 1 - d] * 0.5


def tabled(x: torch.Tensor):
    """Fill a table of steps, each from those beside it."""
    n = x.shape[1]
    out = torch.empty(x.shape[0])
    for b in range(x.shape[0]):
        m = torch.empty(n + 1, n + 1)
        for i in range(n + 1):
            m[i, 0] = i * 0.5
        for j in range(n + 1):
            m[0, j] = j * 0.25
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                m[i, j] = min(m[i - 1, j] + 1, m[i, j - 1] + x[b, i - 1], m[i - 1, j - 1] + x[b, j - 1])
        out[b] = m[n, n]
    return out


def summed_up(x: torch.Tensor):
    """Fill a vector, each element from the one before."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = torch.empty(x.shape[1] + 1)
        s[0] = 0.0
        for d in range(x.shape[1]):
            s[d + 1] = s[d] + x[i, d]
        for d in range(x.shape[1]):
            out[i, d] = s[d + 1] - s[x.shape[1] - d]
    return out


def from_itself(x: torch.Tensor):
    """Read what this step has not stored yet."""
    out = torch.empty_like(x)
    s = torch.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for d in range(x.shape[1]):
            s[d] = s[d] * 0.5 + x[i, d]
            out[i, d] = s[len(s) - 1 - d]
    return out


def from_the_next(x: torch.Tensor):
    """Read what a later step stores."""
    out = torch.empty_like(x)
    s = torch.zeros(x.shape[1] + 1)
    for i in range(x.shape[0]):
        for d in range(x.shape[1]):
            out[i, d] = s[d + 1]
            s[d + 1] = x[i, d]
    return out


def in_a_triangle(x: torch.Tensor):
    """Read an element right of those that the row before stored."""
    n = x.shape[1]
    out = torch.zeros_like(x)
    m = torch.zeros(n, n)
    for b in range(x.shape[0]):
        m[0, 0] = 0.0
        for i in range(1, n):
            for j in range(i):
                out[b, i] += m[i - 1, j]
            for j in range(i):
                m[i, j] = x[b, j]
    return out


def in_a_triangle_to_the_right(x: torch.Tensor):
    """Read an element left of those that the row before stored."""
    n = x.shape[1]
    out = torch.zeros_like(x)
    m = torch.zeros(n, n)
    for b in range(x.shape[0]):
        for j in range(n):
            m[0, j] = 0.0
        for i in range(1, n):
            for j in range(n - i, n):
                out[b, i] += m[i - 1, j]
                m[i, j] = x[b, j]
    return out


def in_inner_triangles(x: torch.Tensor):
    """Read an element that the row before stores in a longer row alone."""
    n = x.shape[1]
    out = torch.zeros_like(x)
    m = torch.zeros(n, n, n)
    for b in range(x.shape[0]):
        for i in range(n):
            for j in range(n):
                m[0, i, j] = m[i, 0, j] = 1.0
        for i in range(1, n):
            for j in range(1, n):
                for k in range(j):
                    out[b, i] += m[i - 1, j - 1, k]
                    m[i, j, k] = x[b, k] + i
    return out


def where_elements_say(x: torch.Tensor):
    """Store where an element says, which is another one in each step."""
    n = x.shape[1]
    out = torch.zeros_like(x)
    m = torch.zeros(n, n + 1)
    for b in range(x.shape[0]):
        for i in range(n):
            m[i, 0] = 0.0
        for i in range(1, n):
            p = int(abs(x[b, i])) % n
            out[b, i] = m[p, i - 1]
            m[p, i] = x[b, i]
    return out


def beside_few(x: torch.Tensor):
    """Fill a vector, and another one of two elements, for each row."""
    out = torch.zeros_like(x)
    s = torch.zeros(x.shape[1])
    few = torch.zeros(2)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s[j] = x[i, j] * 2.0
        for j in range(2):
            few[j] = s[0] + j
        for j in range(x.shape[1]):
            out[i, j] = s[x.shape[1] - 1 - j] - few[int(abs(x[i, j])) % 2]
    return out


def least_in_order(x: torch.Tensor, n: int):
    """Keep the least elements in order, at places that a `while` finds."""
    out = torch.zeros(x.shape[0], n)
    for i in range(x.shape[0]):
        s = torch.full((n,), 100.0)
        for d in range(x.shape[1]):
            if x[i, d] < s[n - 1]:
                k = n - 1
                while k > 0 and s[k - 1] > x[i, d]:
                    s[k] = s[k - 1]
                    k -= 1
                s[k] = x[i, d]
        for k in range(n):
            out[i, k] = s[k]
    return out


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a thread have room for two elements, so that small tensors are large, and loops three pieces."""
    monkeypatch.setattr(expand_scratch, "ROOM", 2)
    monkeypatch.setattr(privatise, "ROOM", 2)
    monkeypatch.setattr(privatise, "LARGEST", 8)
    monkeypatch.setattr(expand_scratch, "PIECES", 3)


def scheduled(function: Function, *arguments: object, target=GPU) -> dict[str, ScheduledKernel]:
    grid = {"device": "cuda", "narrow": True, "aligned": True} if target is GPU else {}
    program = lower(define(function), Signature(tuple(map(argument_type, arguments)), **grid))
    return {item.kernel.name: item for item in schedule_program(program, target)[1]}


def expanded(function: Function, *arguments: object, target=GPU) -> tuple[str, int]:
    """Return the loops that are independent in the expanded kernel, and how many axes its scratch tensor has."""
    item = scheduled(function, *arguments, target=target).get(f"{function.__name__}_expanded")
    if item is None:
        return "", 0
    (whole,) = [tensor for tensor in item.source.tensors if tensor.name in {"s", "m"}]
    loops = item.analysis.loops.items()
    carrying = {index.name for index, each in loops if not each.independent}
    names = {index.name for index, _ in loops} - carrying
    if target is not GPU:
        names = {name.removesuffix("_piece") for name in names if name.endswith("_piece")}
    return "".join(sorted(names & {*"bhirjt"})), whole.type.rank


X = memory([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0], [-7.0, 8.0, 9.0], [0.5, 0.25, 2.0]])
CUBE = memory([[[float(i * j - k) for k in range(3)] for j in range(4)] for i in range(2)])
W = memory([[0.5, 2.0, -1.0], [1.0, 0.25, 4.0]])
NARROW = memory([[1.0, -2.0], [4.0, 5.0], [-7.0, 8.0]])


@pytest.mark.parametrize(
    ("function", "arguments", "found"),
    [
        (mixed, (CUBE, W), ("bh", 3)),
        (squared, (X,), ("ij", 3)),
        (two_nests, (X,), ("ir", 2)),
        (carried, (X,), ("", 0)),
        (partly_filled, (X,), ("", 0)),
        (filled_outside, (X,), ("", 0)),
        (read_where_data_say, (X,), ("i", 2)),
        (in_order_around, (X,), ("i", 2)),
        (rows_of_a_triangle, (X,), ("", 0)),
        (rows_to_the_end, (X,), ("", 0)),
        (tabled, (X,), ("bij", 3)),
        (summed_up, (X,), ("i", 2)),
        (from_itself, (X,), ("", 0)),
        (from_the_next, (X,), ("", 0)),
        (in_a_triangle, (X,), ("", 0)),
        (in_a_triangle_to_the_right, (X,), ("", 0)),
        (in_inner_triangles, (X,), ("", 0)),
        (where_elements_say, (X,), ("", 0)),
        (beside_few, (X,), ("ij", 2)),
        (least_in_order, (X, 2), ("i", 2)),
    ],
)
def test_loops_are_independent_where_each_iteration_fills_what_it_reads(
    function: Function, arguments: tuple[object, ...], found: tuple[str, int]
) -> None:
    assert expanded(function, *arguments) == found
    same(function, *arguments)


@pytest.mark.parametrize(
    ("function", "arguments", "found"),
    [
        (mixed, (CUBE, W), ("b", 2)),
        (squared, (X,), ("i", 3)),
        (two_nests, (X,), ("ir", 2)),
        (carried, (X,), ("", 0)),
        (partly_filled, (X,), ("", 0)),
        (filled_outside, (X,), ("", 0)),
        (read_where_data_say, (X,), ("i", 2)),
        (in_order_around, (X,), ("i", 2)),
        (rows_of_a_triangle, (X,), ("i", 2)),
        (rows_to_the_end, (X,), ("i", 2)),
        (tabled, (X,), ("b", 3)),
        (summed_up, (X,), ("i", 2)),
        (from_the_next, (X,), ("", 0)),
        (where_elements_say, (X,), ("", 0)),
        (beside_few, (X,), ("i", 2)),
    ],
)
def test_pieces_of_loops_have_parts_on_processors(
    function: Function, arguments: tuple[object, ...], found: tuple[str, int]
) -> None:
    assert expanded(function, *arguments, target=AVX2) == found


def test_few_elements_stay_with_threads() -> None:
    narrow = memory([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
    same(mixed, narrow, memory([[0.5, 2.0]]))
    same(squared, NARROW)


def test_no_rows_and_one_row() -> None:
    same(two_nests, Memory([], (0, 3), (3, 1), FLOAT32))
    same(two_nests, memory([[1.0, -2.0, 3.0]]))


def test_what_takes_too_much_runs_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "GPU", replace(GPU, scratch_bytes=4))
    same(mixed, CUBE, W)
    same(two_nests, X)


def with_steps(x: torch.Tensor):
    """Fill a vector in each iteration, beside a matrix of which each has a row."""
    out = torch.zeros_like(x)
    steps = torch.empty(x.shape[0], x.shape[1])
    s = torch.empty(x.shape[1])
    for i in range(x.shape[0]):
        for d in range(x.shape[1]):
            s[d] = x[i, d] + i
            steps[i, d] = x[i, d] * 2
        for d in range(x.shape[1]):
            out[i, d] = s[len(s) - 1 - d] + steps[i, len(s) - 1 - d]
    return out


def expanded_program() -> Program:
    """Return a program with a kernel and an expanded one, which both use `steps`."""
    signature = Signature((argument_type(X),), device="cuda", narrow=True, aligned=True)
    program = canonical(lower(define(with_steps), signature), sizes=True)
    changed, remarks = expand_scratch.with_expanded_scratch(program, GPU)
    assert remarks
    return changed


def places_of_steps(program: Program) -> list[tuple[str, ...]]:
    """Return the tensors of this name that are allocated outside of branches, in the first one and in the other."""
    (choice,) = [node for node in program.body if isinstance(node, If)]
    blocks = (program.body, choice.then, choice.otherwise)
    made = [[node.tensor for node in block if isinstance(node, Allocate)] for block in blocks]
    return [tuple(str(tensor.number) for tensor in part if tensor.name == "steps") for part in made]


def test_tensors_of_kernels_of_which_one_runs_are_for_one_alone() -> None:
    program = expanded_program()
    assert "steps" in {tensor.name for tensor in privatise.scratch_of(program)}
    (choice,) = [node for node in program.body if isinstance(node, If)]
    twice = replace(program, body=(*program.body[:-1], choice, program.body[-1]))
    assert not privatise.scratch_of(twice)
    launch = next(node for node in choice.otherwise if isinstance(node, Launch))
    other = replace(launch, kernel=replace(launch.kernel, name="other", tensors=()))
    assert privatise.scratch_of(replace(program, body=(other, *program.body))) == privatise.scratch_of(program)


def test_kernels_of_which_one_runs_have_tensors_of_their_own() -> None:
    outside, first, second = places_of_steps(with_own_scratch(expanded_program()))
    assert not outside
    assert len(first) == len(second) == 1
    assert first != second
    same(with_steps, X)
    same(with_steps, NARROW)


def test_kernels_inside_of_branches_use_the_tensors_of_their_branch() -> None:
    """A branch may choose once more: all kernels in it have its tensors, in their bodies and in what they name."""
    program = expanded_program()
    (choice,) = [node for node in program.body if isinstance(node, If)]
    inner = replace(choice, condition=build.apply("lt", build.integer(1), build.integer(2)))
    inner = replace(inner, then=choice.otherwise, otherwise=choice.otherwise)
    branch = replace(choice, then=(inner,))
    found = with_own_scratch(replace(program, body=tuple(branch if it is choice else it for it in program.body)))
    (first,), (second,) = places_of_steps(found)[1:]
    (whole,) = [node for node in found.body if isinstance(node, If)]
    for number, block in ((first, whole.then), (second, whole.otherwise)):
        kernels = [node.kernel for node in statements(block) if isinstance(node, Launch)]
        named = {str(tensor.number) for kernel in kernels for tensor in kernel.tensors if tensor.name == "steps"}
        assert named == {number}
        assert all(kernel.tensors == free_tensors(kernel.body) for kernel in kernels)


def test_a_tensor_that_others_speak_of_stays_where_it_is() -> None:
    program = expanded_program()
    steps = next(item.tensor for item in program.body if isinstance(item, Allocate) and item.tensor.name == "steps")
    other = Allocate(
        tensor=replace(steps, name="other", number=1000), sizes=(build.size(steps, 0), build.size(steps, 1))
    )
    for made in (other, replace(other, sizes=(build.integer(1), build.integer(1)), like=steps)):
        found = with_own_scratch(replace(program, body=(*program.body[:-1], made, program.body[-1])))
        assert places_of_steps(found) == [(str(steps.number),), (), ()]


def test_a_tensor_that_the_condition_speaks_of_stays_where_it_is() -> None:
    program = expanded_program()
    (choice,) = [node for node in program.body if isinstance(node, If)]
    steps = next(item.tensor for item in program.body if isinstance(item, Allocate) and item.tensor.name == "steps")
    asked = replace(choice, condition=build.apply("lt", build.size(steps, 0), build.integer(9)))
    found = with_own_scratch(replace(program, body=tuple(asked if it is choice else it for it in program.body)))
    assert places_of_steps(found) == [(str(steps.number),), (), ()]


def test_a_tensor_of_one_branch_stays_where_it_is() -> None:
    program = expanded_program()
    (choice,) = [node for node in program.body if isinstance(node, If)]
    for branch in (replace(choice, then=()), replace(choice, otherwise=())):
        found = with_own_scratch(replace(program, body=tuple(branch if it is choice else it for it in program.body)))
        assert len(places_of_steps(found)[0]) == 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_elements_that_are_checked_have_parts_too(n: int) -> None:
    """A copy of a tensor could not tell where that ends: a part of one can, however few elements there are."""
    signature = Signature((argument_type(X), argument_type(n)), device="cuda", narrow=True, aligned=True)
    found, _ = expand_scratch.with_expanded_scratch(canonical(lower(define(least_in_order), signature)), GPU)
    (choice,) = [node for node in found.body if isinstance(node, If)]
    assert spelled(choice.condition).count("<=") == 1
    assert ">" not in spelled(choice.condition)
    same(least_in_order, X, n)


def test_gradients_have_parts_too() -> None:
    memories = [memory(nested(CUBE)), memory(nested(W)), memory(nested(CUBE))]
    made = Derived(define(mixed), Backward((True, True)), (True,), (0, 1), (True, True))
    signature = Signature(tuple(map(argument_type, memories)), device="cuda", narrow=True, aligned=True)
    program = derive.program_of(made, signature)
    ways, kernels = schedule_program(program, GPU)
    assert any(item.remark == expand_scratch.REMARK for item in kernels)
    results = [[nested(item) for item in run_program(each, memories, check=each is ways)] for each in (program, ways)]
    assert results[0] == results[1]


def rows_of_a_table(x: torch.Tensor) -> torch.Tensor:
    table = torch.empty_like(x)
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        table[i, 0] = x[i, 0]
        for j in range(1, x.shape[1]):
            table[i, j] = x[i, j] * table[i, j - 1]
        for j in range(x.shape[1]):
            out[i, j] = table[i, j]
    return out


def one_row(x: torch.Tensor) -> torch.Tensor:
    row = torch.empty(x.shape[1])
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        row[0] = x[i, 0]
        for j in range(1, x.shape[1]):
            row[j] = x[i, j] * row[j - 1]
        for j in range(x.shape[1]):
            out[i, j] = row[j]
    return out


@pytest.mark.parametrize(("function", "expected"), [(rows_of_a_table, []), (one_row, ["row"])])
def test_iterations_with_rows_of_their_own_need_no_tensor_that_begins_anew(
    function: Callable[..., object], expected: list[str]
) -> None:
    program = program_of(function, numbers(3, 4))
    (launch,) = [node for node in statements(program.body) if isinstance(node, Launch)]
    found = owned(launch.kernel, analyse(launch.kernel), scratch_of(program))
    assert [tensor.name for tensors in found.values() for tensor in tensors] == expected
