"""Tables of dynamic programming, bit for bit: on processors, and on an emulated GPU along diagonals of blocks."""

# pyright: basic
from __future__ import annotations

import inspect

import pytest
import torch

import brickwork as bw
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, Launch, Role
from brickwork.ir.walk import statements, walk
from cpu.test_entry_cuda_emulated import rig_of
from support.gradients import derived
from support.kernels_tables import TABLES, best_paths, edit_distance, sequences, spans, spoken, sums_of_paths
from support.lowering import nested
from support.scheduling import GPU
from support.shared import schedule_program
from support.sweep import sampled
from support.tensors import argument_type, to_memory

SIZES = [(3, 5, 7), (2, 9, 4), (4, 1, 1)]
LARGE = (1, 40, 37)
OF_MANY_BLOCKS = {edit_distance, spans}
"""Tables of which some are larger than a block."""


def results(found):
    return found if isinstance(found, (tuple, list)) else (found,)


def expected(function, arguments):
    return results(bw.op(function).python(*arguments))


def agree(function, found, arguments):
    for one, other in zip(expected(function, arguments), results(found), strict=True):
        if function is sums_of_paths:  # Functions of the host's library and of the compiler's may differ by a bit.
            torch.testing.assert_close(other, one)
        else:
            assert torch.equal(one, other)


@pytest.mark.parametrize("size", [*SIZES, LARGE])
@pytest.mark.parametrize("function", TABLES, ids=lambda function: function.__name__)
def test_on_processors(function, size):
    arguments = TABLES[function](*size)
    agree(function, bw.op(function)(*arguments), arguments)


@pytest.mark.parametrize("function", TABLES, ids=lambda function: function.__name__)
def test_on_a_grid(function):
    outputs = inspect.getsource(function).count("tuple[Tensor, Tensor]") + 1
    rigs = {}
    for size in (SIZES[0], LARGE) if function in OF_MANY_BLOCKS else SIZES[1:]:
        arguments = TABLES[function](*size)
        types = tuple(map(argument_type, arguments))
        rig = rigs[types] if types in rigs else rigs.setdefault(types, rig_of(function, *arguments))
        agree(function, rig.call(*arguments, outputs=outputs), arguments)
    loops = [node for each in rig.gpu.launches for node in statements(each.kernel.body) if isinstance(node, For)]
    assert any(node.role is Role.BLOCK for node in loops)
    assert any(node.role is Role.THREAD for node in loops)


FAILURES = [
    (edit_distance, sequences, 2, 6),
    (edit_distance, sequences, 3, 8),
    (best_paths, spoken, 2, 6),
    (best_paths, spoken, 3, 8),
    (best_paths, spoken, 1, 4),
    (best_paths, spoken, 1, -5),
]


@pytest.mark.parametrize(("function", "make", "place", "value"), sampled(FAILURES, 5))
def test_what_is_too_long_fails_in_its_own_sample(function, make, place, value):
    arguments = make(3, 5, 7)
    arguments[place][1] = value
    if place == 1:
        arguments[3][1], arguments[2][1] = 7, 5
    for call in (bw.op(function), bw.op(function).python):
        with pytest.raises(IndexError):
            call(*arguments)
    rig = rig_of(function, *arguments)
    with pytest.raises(IndexError):
        rig.call(*arguments), rig.call(*arguments)


def roles_of(kernel):
    return [(node.index.name, node.role) for node in statements(kernel.body) if isinstance(node, For)]


@pytest.mark.parametrize(
    ("function", "dtype"),
    sampled([(sums_of_paths, torch.int64), (sums_of_paths, torch.int32), (best_paths, torch.int32)], 3),
)
def test_gradients_run_along_diagonals_too(function, dtype):
    logits, labels, *lengths = spoken(2, 5, 6)
    arguments = (logits, labels, *(item.to(dtype) for item in lengths))
    program = derived(function, arguments)
    pieces, _ = schedule_program(program, GPU)
    kernels = [node.kernel for node in walk(pieces) if isinstance(node, Launch)]
    # Another version is for as many sequences as there are threads, each of which takes one then.
    diagonals = [("s", Role.BLOCK), ("u_diagonal", Role.SEQUENTIAL), ("t", Role.THREAD)]
    one_each = [("s", Role.PARALLEL), ("t", Role.SEQUENTIAL), ("u", Role.SEQUENTIAL)]
    tables = [loops for loops in map(roles_of, kernels) if "t" in dict(loops)]
    assert all(loops in (diagonals, one_each) for loops in tables)
    assert tables.count(diagonals) >= 2 == tables.count(one_each)
    gradient = torch.randn(2, 5, 7, generator=torch.Generator().manual_seed(0))
    given = [to_memory(item) for item in (*arguments, gradient)]
    expected, found = (run_program(each, given, check=each is pieces) for each in (program, pieces))
    assert [nested(item) for item in found] == [nested(item) for item in expected]
