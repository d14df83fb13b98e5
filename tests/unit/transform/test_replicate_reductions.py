"""Counting into a small tensor is done in copies of it where sizes say so; other updates are left alone."""

import pytest
import torch

from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, Constant, For, If, Launch, Role, Store
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import replicate_reductions
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor

GPU = cuda_target((9, 0))


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(replicate_reductions, "COPIES", 3)
    monkeypatch.setattr(replicate_reductions, "RUN", 4)
    monkeypatch.setattr(replicate_reductions, "FEW_COPIES", 2)
    monkeypatch.setattr(replicate_reductions, "room", lambda target: 12)


def programs_of(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = lower(define(function), signature)
    pieces, _ = schedule_program(program, GPU)
    verify_program(pieces)
    return program, pieces


def launches_of(pieces):
    choices = [node for node in walk(pieces) if isinstance(node, If) and isinstance(node.then[0], Allocate)]
    return [sum(isinstance(item, Launch) for item in choice.then) for choice in choices]


def count(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                out[x[i, j]] -= x[i, j]


@pytest.mark.parametrize("shape", [(4, 5), (3, 6), (9, 7), (0, 30)])
@pytest.mark.parametrize("bins", [3, 5, 6])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_copies_count_as_the_source_says(shape, bins, dtype):
    x = torch.randint(-3, bins, shape)
    out = torch.arange(bins).to(dtype)
    program, pieces = programs_of(count, x, out)
    results = []
    for one in (program, pieces):
        memories = [to_memory(x), to_memory(out.clone())]
        run_program(one, memories, key=5, check=True)
        results.append(to_tensor(memories[1]))
    assert torch.equal(*results)
    found = launches_of(pieces)
    assert found
    assert set(found) == {3}


def weigh(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[int(x[i])] += x[i]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("begin", [0.5, -0.0])
def test_floats_are_added_in_copies_too(dtype, begin):
    """What nothing is added to stays as it is, -0.0, too."""
    x = torch.randint(0, 3, (30,)).to(dtype)
    program, pieces = programs_of(weigh, x, torch.zeros(4, dtype=dtype))
    results = []
    for one in (program, pieces):
        memories = [to_memory(x), to_memory(torch.full((4,), begin, dtype=dtype))]
        run_program(one, memories, key=5, check=True)
        results.append(to_tensor(memories[1]))
    assert torch.equal(*results)
    assert torch.equal(*map(torch.signbit, results))
    assert set(launches_of(pieces)) == {3}


def spread(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    rows = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            rows[i] += x[i, j]
            for k in range(2):
                out[int(x[i, j]) // 2 + k, j % 2] += x[i, j] + k
    return rows


@pytest.mark.parametrize("shape", [(4, 5), (3, 6), (9, 7), (0, 30), (1, 1)])
@pytest.mark.parametrize("sizes", [(3, 2), (4, 2), (3, 4)])
def test_tensors_of_several_axes_have_copies_beside_others(shape, sizes):
    x = torch.randint(0, 4, shape).float()
    program, pieces = programs_of(spread, x, torch.zeros(sizes))
    results = []
    for one in (program, pieces):
        memories = [to_memory(x), to_memory(torch.full(sizes, 0.5))]
        rows = run_program(one, memories, key=5, check=True)
        results.append((to_tensor(memories[1]), to_tensor(rows[0])))
    assert all(map(torch.equal, *results))
    assert 3 in launches_of(pieces)


def pairs(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            out[int(abs(x[i] - x[j]))] += 1.0
            out[0] += 2.0


@pytest.mark.parametrize("size", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("bins", [4, 5, 13])
def test_blocks_of_threads_update_copies(size, bins):
    x = torch.randint(0, 4, (size,)).float()
    program, pieces = programs_of(pairs, x, torch.zeros(bins))
    results = []
    for one in (program, pieces):
        memories = [to_memory(x), to_memory(torch.full((bins,), 0.5))]
        run_program(one, memories, key=5, check=True)
        results.append(to_tensor(memories[1]))
    assert torch.equal(*results)


def test_each_block_of_threads_has_a_copy_where_rows_are_not_cut():
    _, pieces = programs_of(pairs, torch.zeros(9), torch.zeros(4))
    blocks = [node for node in walk(pieces) if isinstance(node, For) and node.role is Role.BLOCK]
    assert any(isinstance(node, Store) and node.tensor.name == "out_copies" for block in blocks for node in walk(block))
    choices = [node for node in walk(pieces) if isinstance(node, If) and node.version.startswith("copies")]
    assert any(Constant(value=3, dtype=INT64) in walk(choice.condition) for choice in choices)


def read(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[int(x[i])] += x[i] + out[i % 4]


def least(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[x[i]] = min(out[x[i]], i)


@pytest.mark.parametrize(("function", "dtype"), [(weigh, torch.bfloat16), (least, torch.int64), (read, torch.float32)])
def test_other_updates_have_no_copies(function, dtype):
    _, pieces = programs_of(function, torch.zeros(30, dtype=dtype), torch.zeros(4, dtype=dtype))
    assert launches_of(pieces) == []


def test_copies_have_room_for_the_threads_of_a_machine(monkeypatch):
    """Of a tensor with as many elements as these there are none."""
    monkeypatch.undo()
    _, pieces = programs_of(count, torch.zeros(2, 2, dtype=torch.int64), torch.zeros(4, dtype=torch.int64))
    (choice,) = [node for node in walk(pieces) if isinstance(node, If) and node.version.startswith("copies")]
    assert f"{8 * GPU.threads}" in "".join(str(node.value) + " " for node in walk(choice) if isinstance(node, Constant))
