"""Nests of few long iterations are cut into pieces where sizes say so, and into none that would mean something else."""

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, Apply, Constant, For, If, Launch, Reduction, Role, Size, Store, Symbol
from brickwork.ir.operators import OPERATORS
from brickwork.ir.signature import Signature
from brickwork.ir.walk import read_symbols, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import split_reductions
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.outline import is_nondeterministic
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor

GPU = cuda_target((9, 0))


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(split_reductions, "THREADS", split_reductions.Limits(few=8, least=4, unit=1, enough=12, most=3))
    monkeypatch.setattr(split_reductions, "DEEP", split_reductions.Limits(few=7, least=2, unit=1, enough=12, most=3))
    monkeypatch.setattr(split_reductions, "TOGETHER", split_reductions.Limits(3, 3, 1, 9, 3, Role.PARALLEL))
    monkeypatch.setattr(split_reductions, "BLOCKS", split_reductions.Limits(few=8, least=4, unit=2, enough=12, most=3))
    monkeypatch.setattr(split_reductions, "WARPS", split_reductions.Limits(few=6, least=5, unit=3, enough=12, most=3))


def pieces_of(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    verify_program(pieces)
    return pieces


def parts_of(pieces):
    """The numbers of launches of the choices that make partial results."""
    choices = [node for node in walk(pieces) if isinstance(node, If) and node.version.startswith("pieces")]
    return [sum(isinstance(item, Launch) for item in choice.then) for choice in choices]


def columns(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = out[j]
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s * 2.0


def rows(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        least, most = 0.0, 1.0
        for j in range(x.shape[1]):
            least = min(least, x[i, j])
            most = max(most, x[i, j])
        out[i] = most - least


def planes(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(1, x.shape[1]):
        for k in range(x.shape[2]):
            s = 0.0
            for i in range(1, x.shape[0]):
                s += x[i, j, k]
            out[j, k] = s


def deep(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(j + 1):
                s += x[i, k]
        out[j] = s


def samples(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[2]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(1, x.shape[1]):
                s += x[i, k, j] * (i + 1)
        out[j] = s


def stacks(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[2]):
        s = 0.0
        for k in range(x.shape[1]):
            for i in range(2, x.shape[0]):
                for again in range(i % 3):
                    s += x[i, k, j] * (k + again)
        out[j] = s


def sometimes(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 1.0
        if j != 1:
            for i in range(x.shape[0]):
                s += x[i, j]
        out[j] = s


def if_none(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = j - 1.0
        if s < 1.0:
            if j != 5:
                for i in range(x.shape[0]):
                    s += x[i, j]
        out[j] = s


def up_to_a_level(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(j % 3):
                s += x[i, j]
        out[j] = s


def up_to_a_row(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(i % 3):
                s += x[i, j]
        out[j] = s


def from_a_row(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(i % 3, 3):
                s += x[i, j]
        out[j] = s


def up_to_a_count(x: torch.Tensor, out: torch.Tensor) -> None:
    n = 0
    for i in range(x.shape[0]):
        n += i % 2
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(n):
                s += x[i, j]
        out[j] = s


def up_to_a_variable(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        n = int(out[j]) + j % 2
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(n):
                s += x[i, j]
        out[j] = s


def up_to_an_element(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[2]):
        n = min(max(int(out[j]), 0), x.shape[1])
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(n):
                s += x[i, k, j]
        out[j] = s


def volumes(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[2]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(1, x.shape[1]):
                for m in range(2, 5):
                    if (i + k + m) % 3:
                        s += x[i, k, j] * (m - 3)
        out[j] = s


def windows(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(1, min(j + 2, x.shape[1])):
                for m in range(j + 1):
                    s += x[i, k] * m
        out[j] = s


def over_and_over(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = out[j]
        for i in range(x.shape[0]):
            s += x[i, j]
        for i in range(2, x.shape[0]):
            for k in range(x.shape[1]):
                s += x[i, k] * j
        for k in range(x.shape[1]):
            s += k * j
        out[j] = s * 2.0


def once_more_to_a_level(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        for k in range(j):
            s += k
        out[j] = s


def and_stores(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += abs(x[i, j])
        for i in range(x.shape[0]):
            s += i
            x[x.shape[0] - 1 - i, j] = 0.0
        out[j] = s


def once_more_to_a_row(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        n = int(out[j]) + j
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        for k in range(n):
            s += k
        out[j] = s


def sums_apart(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        t = 1.0
        for i in range(x.shape[0]):
            s += x[i, j]
        for i in range(x.shape[0]):
            t += x[i, j] * 2
        out[j] = s * t


def place_in_two(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        most, where = -100.0, 0
        for i in range(x.shape[0]):
            if x[i, j] > most:
                most, where = x[i, j], i
        for i in range(x.shape[0]):
            if x[x.shape[0] - 1 - i, j] > most:
                most, where = x[x.shape[0] - 1 - i, j], i
        out[j] = where


def in_a_branch_and_behind(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        if j != 1:
            for i in range(x.shape[0]):
                s += x[i, j]
        for i in range(x.shape[0]):
            s += x[i, j] * 3
        out[j] = s


def and_once(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            for k in range(2):
                s += x[i, j]
            s += 1.0
        out[j] = s


def shared(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            s = 0.0
            for k in range(x.shape[0]):
                s += abs(x[k, j] - x[i, 0])
            out[i, j] = s


def one_row(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(out.shape[0]):
        for i in range(x.shape[1]):
            out[j] -= x[0, i]


@pytest.mark.parametrize(
    ("function", "size", "axes"),
    [
        (columns, (1, 0), 1),
        (rows, (0, 1), 1),
        (planes, (1, 0, 2), 2),
        (deep, (1, 0), 1),
        (one_row, (0, 1), 1),
        (shared, (1, 2), 2),
        (samples, (1, 2, 0), 1),
        (samples, (2, 1, 0), 1),
        (stacks, (1, 2, 0), 1),
        (stacks, (2, 1, 0), 1),
        (sometimes, (1, 0), 1),
        (if_none, (1, 0), 1),
        (up_to_a_level, (1, 0), 1),
        (up_to_a_row, (1, 0), 1),
        (from_a_row, (1, 0), 1),
        (up_to_a_count, (1, 0), 1),
        (up_to_a_variable, (1, 0), 1),
        (up_to_an_element, (1, 2, 0), 1),
        (and_once, (1, 0), 1),
        (over_and_over, (1, 0), 1),
        (once_more_to_a_level, (1, 0), 1),
        (and_stores, (1, 0), 1),
        (sums_apart, (1, 0), 1),
        (once_more_to_a_row, (1, 0), 1),
        (place_in_two, (1, 0), 1),
        (in_a_branch_and_behind, (1, 0), 1),
        (volumes, (1, 2, 0), 1),
        (volumes, (2, 1, 0), 1),
        (windows, (1, 0), 1),
    ],
)
@pytest.mark.parametrize(("few", "long"), [(0, 30), (1, 30), (3, 7), (3, 29), (9, 30)])
def test_pieces_mean_what_the_source_says(function, size, axes, few, long):
    extents = [(few, long, 2)[place] for place in size]
    x = torch.randint(-9, 9, extents).float()
    out = torch.ones([2 if axis == 2 else few for axis in (0, 2)[:axes]])
    agree_in_pieces(function, x, out)


def agree_in_pieces(function, x, out):
    """Assert that pieces give what the program gives as it is written."""
    signature = Signature(tuple(map(argument_type, (x, out))), device="cuda", narrow=True, aligned=True)
    program = lower(define(function), signature)
    results = []
    for one in (program, pieces_of(function, x, out)):
        memories = [to_memory(x), to_memory(out.clone())]
        run_program(one, memories, key=5, check=True)
        results.append(to_tensor(memories[1]))
    assert torch.equal(*results)


@pytest.mark.parametrize("function", [columns, rows, sometimes, over_and_over, in_a_branch_and_behind])
def test_there_are_two_launches_for_few_long_iterations(function):
    pieces = pieces_of(function, torch.ones(3, 3), torch.ones(3))
    found = parts_of(pieces)
    assert found
    assert set(found) == {2}
    assert not is_nondeterministic(pieces)
    assert any(isinstance(node, Size) and node.tensor.name.endswith("_partial") for node in walk(pieces))


def test_pieces_are_of_two_loops_together():
    program = pieces_of(samples, torch.ones(5, 4, 3), torch.ones(3))
    assert set(parts_of(program)) == {2}
    parts = [node for node in walk(program) if isinstance(node, For) and node.index.name == "k"]
    assert any(isinstance(node.start, Constant) for node in parts)
    assert not all(isinstance(node.start, Constant) for node in parts)


@pytest.mark.parametrize(("function", "extents"), [(volumes, (5, 4, 3)), (windows, (5, 3))])
def test_pieces_are_of_three_loops_together(function, extents):
    program = pieces_of(function, torch.ones(extents), torch.ones(3))
    assert set(parts_of(program)) == {2}
    loops = [loop for piece in loops_named(program, "piece") for loop in walk(piece) if isinstance(loop, For)]
    around = {"k": "i", "m": "k"}
    cut = {loop.index.name for loop in loops if around.get(loop.index.name) in _read(loop)}
    assert cut == {"k", "m"}


def _read(loop):
    """The names of what the bounds of a loop read."""
    return {symbol.name for symbol in read_symbols((loop.start, loop.stop))}


def test_a_piece_is_of_loops_that_accumulate_the_same():
    level, first, second, s, t = (Symbol(name, number, INT64) for number, name in enumerate("jikst"))
    sums = {symbol: (Reduction(symbol, OPERATORS["add"]),) for symbol in (s, t)}
    zero, three = build.integer(0), build.integer(3)
    loop = For(index=first, start=zero, stop=three, body=(), reductions=sums[s])
    for other in (s, t):
        after = For(index=second, start=zero, stop=three, body=(), reductions=sums[other])
        levels = [For(index=level, start=zero, stop=three, body=(loop, after), role=Role.PARALLEL)]
        found = split_reductions._beside(loop, (after,), Partition(frozenset()), levels)
        assert [*found] == [after] * (other is s)


def test_what_a_condition_asks_is_not_begun_anew():
    assert not parts_of(pieces_of(if_none, torch.ones(3, 3), torch.ones(3)))


def test_loops_of_loops_are_cut_into_shorter_pieces():
    x, out = torch.ones(5, 3), torch.ones(3)
    program = pieces_of(from_a_row, x, out)
    assert set(parts_of(program)) == {2}
    choices = [node for node in walk(program) if isinstance(node, If) and isinstance(node.then[0], Allocate)]
    limits = [{item.value for item in walk(choice.condition) if isinstance(item, Constant)} for choice in choices]
    assert any({2 * split_reductions.DEEP.least, split_reductions.DEEP.few} <= each for each in limits)


def test_threads_that_share_what_they_read_are_cut_while_they_are_few():
    program = pieces_of(shared, torch.ones(30, 4), torch.ones(8, 4))
    choices = [node for node in walk(program) if isinstance(node, If) and node.version.startswith("pieces")]
    together = [node for node in choices if sum(isinstance(item, Allocate) for item in node.then) > 1]
    assert together
    for choice in together:
        limits = [item.value for item in walk(choice.condition) if isinstance(item, Constant)]
        assert split_reductions.TOGETHER.few in limits
        assert 2 * split_reductions.TOGETHER.least in limits
        assert {loop.role for loop in loops_named(choice.then, "piece")} == {Role.PARALLEL, Role.SEQUENTIAL}


def loops_named(block, name):
    return [node for node in walk(block) if isinstance(node, For) and node.index.name == name]


def test_what_joins_the_pieces_of_an_unrolled_loop_is_not_unrolled():
    program = pieces_of(one_row, torch.ones(3, 16), torch.ones(8))
    assert 2 in parts_of(program)
    unrolled = {node.index.name for node in walk(program) if isinstance(node, For) and node.unrolled > 1}
    assert unrolled == {"i"}


def triangle(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(j):
            s += x[i, j]
        out[j] = s


def in_order(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s = s * 0.5 + x[i, j]
        out[j] = s


def twice(x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        for i in range(x.shape[0]):
            s += x[i, j] * s
        out[j] = s


@pytest.mark.parametrize("function", [triangle, in_order])
def test_other_nests_stay_whole(function):
    assert parts_of(pieces_of(function, torch.ones(3, 3), torch.ones(3))) == []


def test_a_sum_that_the_next_one_waits_for_is_in_pieces_of_its_own():
    x = torch.randint(-9, 9, (30, 3)).float()
    assert parts_of(pieces_of(twice, x, torch.ones(3)))
    agree_in_pieces(twice, x, torch.ones(3))


def picked(at: torch.Tensor, x: torch.Tensor, out: torch.Tensor) -> None:
    for j in range(x.shape[1]):
        s = out[j]
        for i in range(at.shape[0]):
            s += x[at[i], j]
        out[j] = s


def test_what_is_checked_is_cut_and_joined_only_if_no_check_failed():
    generator = torch.Generator().manual_seed(3)
    at = torch.randint(-5, 5, (23,), generator=generator)
    x = torch.randint(-9, 9, (5, 4), generator=generator).float()
    out = torch.arange(4.0)
    pieces = pieces_of(picked, at, x, out)
    assert {*parts_of(pieces)} == {3}
    memories = [to_memory(each.clone()) for each in (at, x, out)]
    run_program(pieces, memories, check=True)
    assert torch.equal(to_tensor(memories[-1]), out + x[at].sum(0))
    choice = next(node for node in walk(pieces) if isinstance(node, If) and node.version.startswith("pieces"))
    lowered, parts, joined = [item.kernel for item in choice.then if isinstance(item, Launch)]
    (flag,) = [tensor for tensor in lowered.tensors if tensor.name == "failed"]
    raised = [node for node in walk(parts.body) if isinstance(node, Store) and node.tensor == flag]
    assert {each.combine and each.combine.name for each in raised} == {"maximum"}
    assert all(flag in kernel.tensors for kernel in (lowered, parts, joined))
    (test,) = [node for node in walk(joined.body) if isinstance(node, If) and flag in effects(node.condition).loads]
    outside = [node for node in walk(joined.body) if isinstance(node, Store)]
    assert outside == [node for node in walk(test.then) if isinstance(node, Store)] != []


def sums_of_rows(x: torch.Tensor, p: torch.Tensor, out: torch.Tensor) -> None:
    """Rows share an axis."""
    for i in range(p.shape[0] - 1):
        for k in range(x.shape[1]):
            s = 0.0
            for e in range(p[i], p[i + 1]):
                s += x[e, k]
            out[i, k] = s


def sums_of_samples(x: torch.Tensor, n: torch.Tensor, out: torch.Tensor) -> None:
    """Each row has an axis of its own."""
    for b in range(n.shape[0]):
        for k in range(x.shape[2]):
            s = 0.0
            for e in range(n[b]):
                s += x[b, e, k] * 2.0
            out[b, k] = s


def sums_of_loops_in_rows(x: torch.Tensor, p: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(p.shape[0] - 1):
        for k in range(x.shape[1]):
            s = 0.0
            for e in range(p[i], p[i + 1]):
                for m in range(1, 4):
                    s += x[e, k] * m
            out[i, k] = s


def one_or_the_other(x: torch.Tensor, p: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(p.shape[0] - 1):
        for k in range(x.shape[1]):
            s = 0.0
            if i % 2:
                for e in range(x.shape[0]):
                    s += x[e, k]
            else:
                for e in range(x.shape[0]):
                    s += x[e, k] * 2.0
            out[i, k] = s


@pytest.mark.parametrize("function", [sums_of_rows, sums_of_loops_in_rows])
@pytest.mark.parametrize("ends", [[0, 9], [0, 9, 9, 20], [3, 20, 4], [5, 5], [0, 21], [-2, 3]])
def test_elements_may_end_sums_that_are_cut(function, ends):
    x, p, out = torch.randint(-9, 9, (20, 2)).float(), torch.tensor(ends), torch.zeros(len(ends) - 1, 2)
    assert _agree(function, x, p, out)


@pytest.mark.parametrize("count", [[9], [0, 9, 4], [9, 9, 9], [10, 1], [-1, 2]])
def test_elements_may_end_samples_that_are_cut(count):
    x, n, out = torch.randint(-9, 9, (len(count), 9, 2)).float(), torch.tensor(count), torch.zeros(len(count), 2)
    assert _agree(sums_of_samples, x, n, out)


def test_different_loops_in_two_branches_are_no_loop_with_checks():
    x, p, out = torch.randint(-9, 9, (20, 2)).float(), torch.tensor([0, 9, 20]), torch.zeros(2, 2)
    assert not _agree(one_or_the_other, x, p, out)


def _agree(function, *arguments):
    """See that pieces do what the source says; return the launches that they are."""
    pieces = pieces_of(function, *arguments)
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    results = []
    for program in (lower(define(function), signature), pieces):
        memories = [*map(to_memory, arguments)]
        try:
            run_program(program, memories, check=True)
        except IndexError as error:
            results.append(str(error))
        else:
            results.append(memories[2].data)
    assert results[0] == results[1]
    return parts_of(pieces)


@pytest.mark.parametrize(("function", "shared"), [(sums_of_rows, True), (sums_of_samples, False)])
def test_rows_that_share_an_axis_are_taken_to_be_parts_of_it(function, shared):
    x = torch.ones(20, 2) if shared else torch.ones(2, 9, 2)
    program = pieces_of(function, x, torch.tensor([0, 9, 9]), torch.zeros(2, 2))
    (choice, *_) = [node for node in walk(program) if isinstance(node, If) and node.version.startswith("pieces")]
    assert shared == any(isinstance(n, Apply) and n.operator.name == "floordiv" for n in walk(choice.condition))
