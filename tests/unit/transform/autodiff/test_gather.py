"""Gather form gives what the scatter gives, each contribution once, and runs in parallel."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from brickwork.analysis.formula import AnyOf, Comparison
from brickwork.analysis.inverted import Dimension, Divisible, Ratio, holds_as_computed
from brickwork.analysis.polynomial import IndexAtom, ScalarAtom, SizeAtom, number, of_atom
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory, run_program
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Program,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.signature import Signature
from brickwork.ir.walk import read_symbols, statements, walk
from brickwork.target.cuda import cuda_target
from brickwork.target.target import Target
from brickwork.transform.autodiff.gather import gather
from brickwork.transform.autodiff.gather_versions import Versions, at_worst
from brickwork.transform.derive import Backward
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.schedule.schedule import Bind, Level, Unroll
from brickwork.transform.scratch import Names
from support import scatters
from support.lowering import memory, program_of, strides
from support.random_scatters import Scatter
from support.shared import define, derive, lower, verify_program
from support.sweep import sampled


def transposed(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[1], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j]
    return out


AVX2 = Target(name="cpu", identity="test", vector_bytes=32, vector_registers=16, vector_library="none")
LENGTHS = (0, 1, 2, 31)


def gathered(program: Program) -> Program:
    result = gather(program, Names(count(500_000), count(500_000), count(500_000)))
    verify_program(result)
    return result


def numbers(*sizes: int) -> Memory:
    """Return a tensor of small integers: sums of them are exact in any order."""
    draw = random.Random(sum(sizes))
    total = 1
    for size in sizes:
        total *= size
    return Memory([float(draw.randrange(-4, 5)) for _ in range(total)], sizes, strides(sizes), FLOAT32)


def results(program: Program, arguments: tuple[Any, ...]) -> list[list[Any]]:
    """Run a program on copies of its arguments; return its results, or what it leaves in them if it has none."""
    copies = [
        Memory([*item.data], item.sizes, item.strides, item.dtype) if isinstance(item, Memory) else item
        for item in arguments
    ]
    found = run_program(program, copies, check=True)
    return [[*item.data] for item in (found or [item for item in copies if isinstance(item, Memory)])]


def kernel_of(program: Program) -> Kernel:
    return next(node.kernel for node in walk(program) if isinstance(node, Launch))


# ---------------------------------------------------------------- the same sums


def _codes(*sizes: int) -> Memory:
    return Memory([k * 7 % 16 for k in range(sizes[0] * sizes[1])], sizes, strides(sizes), INT64)


def picked_at_the_end(g: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The last column of a row alone adds to an element that another tensor tells."""
    rows, columns = g.shape
    xb = torch.zeros((4,))
    for i in range(rows):
        for j in range(columns):
            back = columns - 1 - j
            if back == 0:
                xb[at[i]] += g[i, j]
    return xb


def cases() -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Return functions of `scatters` with arguments, of several lengths."""
    made: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for n in LENGTHS:
        few = min(n, 4)
        made += [
            (scatters.causal, (numbers(2, n), numbers(1, 2, n), numbers(1, 2, n))),
            (scatters.stencil, (numbers(n, few),)),
            (scatters.transpose, (numbers(n, 3),)),
            (scatters.matmul, (numbers(n, 2), numbers(2, 3), numbers(n, 3))),
            (scatters.up, (numbers(n),)),
            (scatters.even, (numbers(n),)),
            (scatters.halves_and_total, (numbers(n),)),
            (scatters.layernorm, (numbers(few, n), numbers(n), numbers(few, n))),
            (scatters.diagonal, (numbers(n),)),
            (scatters.bias, (numbers(n, 3),)),
            (scatters.strided, (numbers(n),)),
            (scatters.scan, (memory([1.0, -1.0]), numbers(few, 2, n), numbers(few, 2, n))),
            (scatters.relu, (numbers(n, 2), numbers(n, 2))),
            (scatters.embedding, (memory([k * 7 % 5 for k in range(n)], INT64), numbers(n, 2))),
            (scatters.conv2s, (numbers(few, 2), numbers(3, 2))),
            (scatters.decoded, (_codes(few, 3), numbers(n, few), numbers(few))),
            (scatters.swapped, (numbers(n), numbers(n), 3)),
            (scatters.windows, (numbers(n), numbers(n))),
            (scatters.triangle, (numbers(few),)),
            (scatters.twice, (numbers(few, n),)),
            (scatters.passed_on, (numbers(n),)),
            (scatters.read_again, (numbers(n), few)),
        ]
    for padding in (0, 1, 3):
        made += [(scatters.replicate, (numbers(9), padding)), (scatters.reflect, (numbers(12), padding))]
        made.append((scatters.pad, (numbers(9), padding)))
    for tile, image, origin, shift in (((2, 3), (7, 8), [1, 2], 1), ((1, 1), (3, 2), [-3, 5], 0)):
        made.append((scatters.brick, (numbers(*tile), numbers(*image), origin, shift)))
    made.append((scatters.brick, (numbers(3, 2), numbers(1, 1), [0, 0], -2)))
    for steps in ((1, 0, 1), (2, 1, 1), (1, 2, 3), (3, 1, 2), (0, 0, 1), (-1, -3, 1), (1, 1, 0), (1, 5, -1)):
        made.append((scatters.conv1, (numbers(7), numbers(3), numbers(4), *steps)))
    made += [(scatters.spread, (numbers(4), stride)) for stride in (2, 0, -1)]
    made += [
        (scatters.displaced, (numbers((2 * r + 1) ** 2, n, 3), numbers(n, 3), r)) for n in (0, 1, 4) for r in (0, 1)
    ]
    made += [
        (scatters.displaced, (numbers(25, 4, 1), numbers(4, 1), 2)),
        (scatters.displaced, (numbers(1, 2, 2), numbers(2, 2), -1)),
    ]
    made += [(scatters.flat, (numbers(n, 4, 3), k)) for n in (0, 1, 2) for k in (0, 1, 2, 3)]
    for stride, padding, dilation, groups in (
        (1, 0, 1, 1),
        (2, 1, 1, 2),
        (1, 2, 2, 2),
        (3, 1, 2, 4),
        (2, 0, 0, 1),
        (-3, -4, -1, -1),
    ):
        places = max((7 + 2 * padding - dilation * 2 - 1) // stride + 1, 0)
        weights = 4 // abs(groups)
        made.append(
            (
                scatters.grouped,
                (numbers(4, 7), numbers(4, weights, 3), numbers(4, places), stride, padding, dilation, groups),
            )
        )
    made += [
        (scatters.gated, (numbers(2, 8), n, h, at))
        for n, h, at in ((4, 4, 0), (4, 7, 0), (4, 2, 0), (4, 4, 1), (3, 6, -2))
    ]
    made += [(scatters.packed, (numbers(2, 8), h)) for h in (0, 3, 4)]
    made += [(scatters.heads, (numbers(2, m), numbers(2, m), h)) for m in (0, 6, 7) for h in (1, 2, 6, -1)]
    places = memory([3, -4, 0], INT64)
    made += [(scatters.picked, (numbers(3, 4), places, n)) for n in (0, 1, 4)]
    made += [
        (scatters.picked, (numbers(3, 4), memory([], INT64), 0)),
        (scatters.picked, (numbers(2, 4), memory([9, 9], INT64), 0)),
    ]
    made += [(scatters.picked_twice, (numbers(3, n), places, memory([2, 0, -2], INT64))) for n in (0, 3)]
    made += [(scatters.picked_twice, (numbers(2, 0), places, memory([7, 9], INT64)))]
    made += [(scatters.picked_in_turn, (numbers(2, n), memory([3, 1], INT64), 2)) for n in (0, 3)]
    made += [(scatters.picked_by_quotient, (numbers(2, n), memory([3, 6], INT64), n)) for n in (0, 2)]
    made += [(scatters.picked_along, (numbers(2, n), memory([3, 1, 0, 2], INT64))) for n in (0, 3)]
    made += [(scatters.centred, (numbers(n, 2), r)) for n in (0, 1, 5) for r in (0, 2)]
    made += [(picked_at_the_end, (numbers(2, n), memory([3, 1], INT64))) for n in (0, 3)]
    made += [(scatters.quantised, (numbers(n), numbers(2, n), numbers(2), 3)) for n in (1, 3, 8)]
    made += [(scatters.window, (numbers(9), 9, 3, stride)) for stride in (1, 2, 4)]
    made += [(scatters.solved, (numbers(n, n), numbers(n, m), numbers(n, m))) for n in (0, 1, 4) for m in (0, 1, 3)]
    made.append((scatters.conv2, (numbers(2, 2, 4, 3), numbers(2, 2, 2, 3), numbers(2, 2, 3, 1))))
    return made


@pytest.mark.parametrize(
    ("function", "arguments", "device"),
    sampled(((*case, device) for case in cases() for device in ("cpu", "cuda")), 3),
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_each_contribution_is_added_once(function: Callable[..., Any], arguments: tuple[Any, ...], device: str) -> None:
    program = program_of(function, *arguments)
    assert results(gathered(replace(program, device=device)), arguments) == results(program, arguments)


@pytest.mark.parametrize("seed", range(60))
def test_each_contribution_of_random_nests_is_added_once(seed: int) -> None:
    made = Scatter(seed)
    program = made.program()
    changed = gathered(program)
    draw = random.Random(seed)
    for _ in range(2):
        y = numbers(draw.choice([0, 1, 2, 3, 4]), draw.choice([1, 2, 3, 5]))
        given = () if made.fresh else (numbers(*made.sizes),)
        arguments = (y, *given, draw.randrange(-2, 4), draw.randrange(-2, 5))
        assert results(changed, arguments) == results(program, arguments)


# ---------------------------------------------------------------- the form

SHAPES: dict[str, tuple[Any, ...]] = {
    "causal": (numbers(2, 3), numbers(1, 2, 3), numbers(1, 2, 3)),
    "stencil": (numbers(4, 4),),
    "transpose": (numbers(2, 3),),
    "matmul": (numbers(2, 2), numbers(2, 3), numbers(2, 3)),
    "up": (numbers(4),),
    "even": (numbers(4),),
    "layernorm": (numbers(2, 3), numbers(3), numbers(2, 3)),
    "bias": (numbers(2, 3),),
    "scan": (numbers(2), numbers(2, 2, 3), numbers(2, 2, 3)),
    "relu": (numbers(2, 2), numbers(2, 2)),
    "brick": (numbers(2, 3), numbers(7, 8), [1, 2], 1),
    "conv2": (numbers(1, 1, 4, 3), numbers(1, 1, 2, 3), numbers(1, 1, 3, 1)),
    "conv2s": (numbers(2, 2), numbers(3, 2)),
    "pad": (numbers(9), 1),
    "embedding": (memory([0, 1], INT64), numbers(2, 2)),
    "displaced": (numbers(9, 3, 3), numbers(3, 3), 1),
    "flat": (numbers(2, 4, 3), 2),
    "grouped": (numbers(4, 7), numbers(4, 2, 3), numbers(4, 4), 2, 1, 1, 2),
    "window": (numbers(9), 9, 3, 2),
    "solved": (numbers(3, 3), numbers(3, 2), numbers(3, 2)),
    "windows": (numbers(5), numbers(5)),
    "twice": (numbers(2, 3),),
    "packed": (numbers(2, 8), 4),
    "heads": (numbers(2, 6), numbers(2, 6), 2),
    "centred": (numbers(5, 2), 1),
    "decoded": (_codes(2, 3), numbers(4, 2), numbers(2)),
}


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("name", sorted({*SHAPES} - {"embedding"}))
def test_nests_run_in_parallel_without_updates_that_meet(name: str, grid: bool) -> None:
    program = gathered(program_of(getattr(scatters, name), *SHAPES[name]))
    scheduled = schedule_kernel(kernel_of(program), cuda_target((9, 0)) if grid else AVX2)
    for loop in _outermost(scheduled.source.body):
        verdict = scheduled.analysis.loops[loop.index]
        assert verdict.independent, verdict.conflict
        assert not verdict.updates


def _outermost(block: Any) -> list[For]:
    """Return the outermost loops of a block, of branches only what is meant to be run."""
    found: list[For] = []
    for statement in block:
        if isinstance(statement, For):
            found.append(statement)
        elif isinstance(statement, If):
            found += _outermost(statement.then)
    return found


@pytest.mark.parametrize(
    "name", ["causal", "stencil", "transpose", "matmul", "up", "even", "layernorm", "relu", "conv2"]
)
def test_what_is_written_everywhere_is_not_filled(name: str) -> None:
    program = gathered(program_of(getattr(scatters, name), *SHAPES[name]))
    filled = [node for node in program.body if isinstance(node, Allocate) and node.fill is not None]
    assert not filled
    written = [node for node in walk(kernel_of(program)) if isinstance(node, Store)]
    read = {node.tensor for node in walk(kernel_of(program)) if isinstance(node, Load)}
    assert written
    assert not {node.tensor for node in written if not node.tensor.name.endswith("_kept")} & read


@pytest.mark.parametrize("name", ["strided", "diagonal", "embedding", "bias"])
def test_what_is_not_written_everywhere_is_filled(name: str) -> None:
    shapes = {**SHAPES, "strided": (numbers(3),), "diagonal": (numbers(3),)}
    program = gathered(program_of(getattr(scatters, name), *shapes[name]))
    assert any(isinstance(node, Allocate) and node.fill is not None for node in program.body)


def test_guards_are_known_at_their_worst_where_they_are_of_elements_and_sizes() -> None:
    element, other = (IndexAtom(Symbol("i", number, INT64), number, 1) for number in range(2))
    size = of_atom(SizeAtom(Tensor("x", 0, TensorType(FLOAT32, 1)), 0))
    axis = Dimension(element, (Ratio(number(0)),), (Ratio(size - number(1)),))
    one, at = number(1), of_atom(element)
    for value, worst in ((at - one, number(-1)), (number(8) - at, number(9) - size), (size - one, size - one)):
        assert at_worst(Comparison(value), [axis]) == Comparison(worst)
    for guard in (
        Divisible(at, size),
        Comparison(at - one, equal=True),
        Comparison(at * size - one),
        Comparison(at - of_atom(other)),
    ):
        assert at_worst(guard, [axis]) is None

    def whole(*guards: Any, everywhere: bool = True, grid: bool = True) -> list[Comparison]:
        inverse = SimpleNamespace(everywhere=everywhere, guards=guards, elements=[axis])
        versions: Any = Versions
        return versions(None, {}, None, grid).whole([SimpleNamespace(inverse=inverse)])

    known = Comparison(at - one)
    assert whole(known, known) == [Comparison(number(-1))]
    assert not whole(known, everywhere=False)
    assert not whole(known, grid=False)
    assert not whole(known, Divisible(at, size))


COLUMNS = [
    (scatters.columns, (numbers(2, 3), numbers(2, n), m, at))
    for n, m, at in ((4, 4, 0), (3, 4, 0), (3, 4, 1), (0, 4, 0))
]
BACKWARDS = [(scatters.backwards, (numbers(2, n), m)) for n, m in ((4, 4), (3, 5))]


@pytest.mark.parametrize(("function", "arguments"), COLUMNS + BACKWARDS)
def test_threads_have_a_form_for_terms_of_every_element(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    """Sizes tell whether each element has some. A processor masks those of others."""
    program = program_of(function, *arguments)
    on_grid = gathered(replace(program, device="cuda"))
    assert results(on_grid, arguments) == results(program, arguments)
    assert [_has_bare_form(item) for item in (on_grid, gathered(program))] == [True, False]


def _has_bare_form(program: Program) -> bool:
    """Whether there is a form without a condition inside."""
    choices = [node for node in walk(program) if isinstance(node, If) and node.otherwise]
    return any(not any(isinstance(item, If) for item in walk(node.then)) for node in choices)


def test_what_is_filled_for_the_form_of_other_arguments() -> None:
    """A stride that is not positive takes the nest as it was, which adds."""
    program = gathered(program_of(scatters.spread, numbers(4), 2))
    assert all(node.fill is not None for node in program.body if isinstance(node, Allocate))


def apart(x: torch.Tensor, s: int) -> torch.Tensor:
    out = x.new_zeros((5,))
    for c in range(x.shape[0]):
        for i in range(5):
            p = c * s * s + i
            if 0 <= p < 5:
                out[p] += x[c]
    return out


def test_an_index_that_wraps_takes_the_nest_as_it_was() -> None:
    """4 * s * s is 2**64: what x[4] is added to is what x[0] is."""
    x = numbers(5)
    program = program_of(apart, x, 2**31)
    assert results(gathered(program), (x, 2**31)) == results(program, (x, 2**31)) == [[x.data[0] + x.data[4]] * 5]


def test_an_index_from_a_tensor_stays_a_scatter() -> None:
    program = program_of(scatters.embedding, *SHAPES["embedding"])
    assert kernel_of(gathered(program)).body == kernel_of(program).body


def test_a_row_that_loops_compute_is_kept_for_the_columns() -> None:
    program = gathered(program_of(scatters.layernorm, *SHAPES["layernorm"]))
    kept = [node.tensor.name for node in program.body if isinstance(node, Allocate) and "kept" in node.tensor.name]
    assert kept == ["mean_kept", "r_kept"]


def test_what_is_read_from_a_tensor_that_the_nest_changes_is_kept() -> None:
    program = gathered(program_of(scatters.solved, *SHAPES["solved"]))
    kept = [node.tensor for node in program.body if isinstance(node, Allocate) and "kept" in node.tensor.name]
    assert [(tensor.name, tensor.type.rank) for tensor in kept] == [("a_kept", 2)]


def test_what_iterations_reach_one_by_one_stays_where_it_is() -> None:
    """Loops over elements would divide by an argument to look for their iterations. Each update finds a zero."""
    before, after = kernel_of(program := program_of(scatters.flat, *SHAPES["flat"])), kernel_of(gathered(program))
    loops = [[node.index for node in walk(kernel) if isinstance(node, For)] for kernel in (before, after)]
    assert loops[0] == loops[1]
    assert [node.tensor.name for node in walk(after) if isinstance(node, Load)] == ["g"]


@pytest.mark.parametrize("name", ["picked", "picked_by_halves"])
def test_columns_that_add_to_one_element_are_added_first(name: str) -> None:
    """One addition for each row, in place of an atomic one for each column."""
    arguments = (numbers(3, 4), memory([3, 1, 0], INT64), *([4] if name == "picked" else []))
    kernel = kernel_of(gathered(program_of(getattr(scatters, name), *arguments)))
    columns = [node for node in walk(kernel) if isinstance(node, For) and node.index.name == "j"]
    stores = [node for loop in columns for node in walk(loop) if isinstance(node, Store)]
    assert len(stores) == (name == "picked")


def test_what_one_column_adds_is_not_added_first() -> None:
    kernel = kernel_of(gathered(program_of(picked_at_the_end, numbers(3, 4), memory([3, 1, 0], INT64))))
    assert not [node for node in walk(kernel) if isinstance(node, For) and node.index.name == "j"]
    assert any(isinstance(node, Store) for node in walk(kernel))


def test_what_another_loop_stores_first_is_not_filled() -> None:
    program = gathered(program_of(scatters.twice, *SHAPES["twice"]))
    assert all(node.fill is None for node in program.body if isinstance(node, Allocate))


def test_places_that_are_others_are_stored_where_they_are() -> None:
    """Loops over elements would compute all that both places need twice."""
    kernel = kernel_of(gathered(program_of(scatters.packed, numbers(2, 8), 4)))
    assert [node.index.name for node in walk(kernel) if isinstance(node, For)] == ["b", "j"]
    assert {node.tensor.name for node in walk(kernel) if isinstance(node, Load)} == {"g"}


def test_bounds_by_arguments_may_not_hold_as_computed() -> None:
    """A product may wrap, and so may what is computed of an integer argument."""
    index = of_atom(IndexAtom(Symbol("i", 0, INT64), 0, 1))
    size = of_atom(SizeAtom(Tensor("x", 0, TensorType(FLOAT32, 1)), 0))
    argument = of_atom(ScalarAtom(Symbol("k", 1, INT64)))
    assert holds_as_computed(Comparison(size - number(1) - index))
    for bound in (Comparison(size * size - index), Comparison(argument - index), AnyOf((Comparison(index),))):
        assert not holds_as_computed(bound)


def test_a_place_that_loops_around_keep_in_range_is_not_asked_for() -> None:
    """Neighbouring threads go together where nothing is asked."""
    kernel = kernel_of(gathered(program_of(scatters.centred, *SHAPES["centred"])))
    around = next(node for node in walk(kernel) if isinstance(node, For) and node.index.name == "j")
    conditions = [node.condition for node in walk(around) if isinstance(node, If)]
    assert around.index in read_symbols(around.body)
    assert not [item for item in conditions if around.index in read_symbols(item)]


def test_places_that_may_be_the_same_are_gathered() -> None:
    program = gathered(program_of(scatters.gated, numbers(2, 8), 4, 4, 0))
    assert "xb" in {node.tensor.name for node in walk(kernel_of(program)) if isinstance(node, Load)}


def test_rows_of_a_flat_index_stay_where_they_are() -> None:
    """Each `k` has elements of its own, since `c` stays below `d`."""
    scheduled = schedule_kernel(kernel_of(gathered(program_of(scatters.heads, *SHAPES["heads"]))), cuda_target((9, 0)))
    names = [loop.index.name for loop in statements(scheduled.source.body) if isinstance(loop, For)]
    assert names == ["i", "k", "c", "c", "c"]
    assert all(scheduled.analysis.loops[loop.index].independent for loop in _outermost(scheduled.source.body))


def test_a_stride_of_an_argument_has_a_form_for_one() -> None:
    """Which elements it hits is asked with divisions."""
    program = gathered(program_of(scatters.grouped, *SHAPES["grouped"]))
    (chosen,) = (
        node
        for node in walk(kernel_of(program))
        if isinstance(node, If) and node.otherwise and {item.tensor.name for item in _stores(node)} == {"xb"}
    )
    divided = [
        any(isinstance(node, Apply) and node.operator.name == "mod" for node in walk(part))
        for part in (chosen.then, chosen.otherwise)
    ]
    assert divided == [False, True]


def _stores(node: If) -> list[Store]:
    return [item for item in walk(node) if isinstance(item, Store)]


@pytest.mark.parametrize("grid", [False, True])
def test_few_weights_have_lanes_along_what_is_summed(grid: bool) -> None:
    """On a processor, in a form for few of them; on a grid each of them has a thread in any case."""
    program = replace(program_of(scatters.conv2, *SHAPES["conv2"]), device="cuda" if grid else "cpu")
    program = gathered(program)
    schedule = schedule_kernel(kernel_of(program), cuda_target((9, 0)) if grid else AVX2).schedule
    few = [node for node in kernel_of(program).body if isinstance(node, If)]
    lanes = {item.loop for item in schedule.verbs if schedule.width(item.loop)}
    inside = [
        [{loop.index.name for loop in walk(part) if isinstance(loop, For) and loop.index in lanes} for part in parts]
        for parts in ((node.then, node.otherwise) for node in few)
    ]
    assert inside == ([] if grid else [[{"v"}, {"q"}]])


def test_what_a_recurrence_adds_to_an_element_is_added_first() -> None:
    program = gathered(program_of(scatters.scan, *SHAPES["scan"]))
    kept = [node.tensor for node in program.body if isinstance(node, Allocate) and "kept" in node.tensor.name]
    assert [(tensor.name, tensor.type.rank) for tensor in kept] == [("ab_kept", 2)]


def test_sums_begin_at_one_place_for_all_elements() -> None:
    """Lanes along the elements then read the same weights."""
    program = gathered(program_of(scatters.causal, *SHAPES["causal"]))
    starts = [node.start for node in walk(kernel_of(program)) if isinstance(node, For)]
    assert all(getattr(start, "value", None) == 0 for start in starts)


def test_a_gradient_of_an_argument_without_elements_is_dense() -> None:
    """What stands in for an argument that is not read has the stride 0, and its gradient is written along memory."""
    x, gradient = TensorType(FLOAT32, 2), TensorType(FLOAT32, 2, contiguous=True, unit_axis=1)
    program = lower(define(transposed), Signature((x,)))
    result = derive(program, Backward((True,)), Signature((x, gradient)))
    (made,) = (node for node in result.body if isinstance(node, Allocate))
    assert made.tensor.type == gradient
    assert made.like is None


def biased(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    assert bias.shape[0] == x.shape[1]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + bias[j]
    return out


def test_sizes_of_tensors_that_are_not_read_are_known() -> None:
    """The sizes of the bias are those of x, so that its gradient asks for nothing."""
    matrix, row = (
        TensorType(FLOAT32, 2, contiguous=True, unit_axis=1),
        TensorType(FLOAT32, 1, contiguous=True, unit_axis=0),
    )
    program = lower(define(biased), Signature((matrix, row)))
    result = derive(program, Backward((False, True)), Signature((matrix, row, matrix)))
    assert not any(isinstance(node, If) for node in walk(kernel_of(result)))


def test_what_slides_along_memory_has_lanes_on_a_grid_where_its_loops_grow() -> None:
    program = gathered(program_of(scatters.causal, *SHAPES["causal"]))
    schedule = schedule_kernel(kernel_of(program), cuda_target((9, 0))).schedule
    wide = [item.loop.name for item in schedule.verbs if isinstance(item, Bind) and item.level is Level.LANE]
    tiled = [item.loop.name for item in schedule.verbs if isinstance(item, Unroll) and item.jam]
    assert wide == ["wb_1", "u"]
    assert tiled == ["b"]


def test_a_short_loop_inside_begins_at_one_place_for_all_elements() -> None:
    program = gathered(program_of(scatters.conv2, *SHAPES["conv2"]))
    starts = [node.start for node in walk(kernel_of(program)) if isinstance(node, For)]
    assert all(getattr(start, "value", None) == 0 for start in starts)


def test_distances_stay_loops_inside_of_those_over_elements() -> None:
    """There are fewer of them than places."""
    program = gathered(program_of(scatters.displaced, *SHAPES["displaced"]))
    (chosen,) = (item for item in kernel_of(program).body if isinstance(item, If))
    loops = [[node.index.name for node in walk(item) if isinstance(node, For)] for item in chosen.then]
    assert loops == [["i", "j", "dy", "dx"], ["bb_0", "bb_1", "dy", "dx"]]


def test_tensors_that_change_places_around_a_nest_are_no_obstacle_to_it() -> None:
    program = gathered(program_of(scatters.swapped, numbers(5), numbers(5), 2))
    scheduled = schedule_kernel(kernel_of(program), AVX2)
    inner = [node for loop in _outermost(scheduled.source.body) for node in walk(loop.body) if isinstance(node, For)]
    assert inner
    assert all(scheduled.analysis.loops[loop.index].independent for loop in inner)


def test_elements_that_move_with_the_loops_around_are_looped_over_outside_of_them() -> None:
    """Loops over all elements, in each iteration of those, would be more work. What is apart stays where it is."""
    program = gathered(program_of(scatters.windows, numbers(5), numbers(5)))
    nests = [node for node in kernel_of(program).body if isinstance(node, For)]
    inside = [[node.index.name for node in walk(nest.body) if isinstance(node, For)] for nest in nests]
    assert inside[0] == ["d", "d"]
    assert len(nests) > 1
    kept = [node.tensor.name for node in program.body if isinstance(node, Allocate) and "kept" in node.tensor.name]
    assert kept == ["mean_kept"]


def test_loops_around_a_nest_bound_the_elements_that_it_reaches() -> None:
    program = gathered(program_of(scatters.triangle, numbers(5)))
    around, *inner = (node for node in walk(kernel_of(program)) if isinstance(node, For))
    elements = next(node for node in inner if any(isinstance(item, Store) for item in node.body))
    assert around.index in read_symbols(elements.stop)
