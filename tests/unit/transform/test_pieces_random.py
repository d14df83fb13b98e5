"""Generated programs, scheduled for a GPU and cut into pieces, do as the source says, without races."""

import os

import pytest
import torch

from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.interpret import run_program
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_program
from brickwork.target.cuda import cuda_target
from brickwork.transform import copies, split
from brickwork.transform.pipeline import schedule_program
from brickwork.transform.schedule import grid
from support.generate import program_of_seed
from support.tensors import argument_type, copy, to_memory, to_tensor

GPU = cuda_target((9, 0))
SEEDS = range(int(os.environ.get("BRICKWORK_FUZZ_EXAMPLES", "150")))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(grid, "LIGHT_PIECE", 3)
    monkeypatch.setattr(grid, "SHORT", 2)
    monkeypatch.setattr(copies, "MANY_UPDATES", 2)
    monkeypatch.setattr(copies, "RUN", 2)
    monkeypatch.setattr(copies, "COPIES", 3)
    monkeypatch.setattr(split, "THREADS", split.Limits(few=100, least=2, unit=1, enough=200, most=5))
    monkeypatch.setattr(split, "BLOCKS", split.Limits(few=100, least=2, unit=2, enough=200, most=5))


def outcome(program, arguments, check):
    memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    try:
        run_program(program, memories, key=5, check=check)
    except (IndexError, ZeroDivisionError) as error:
        return type(error)
    return [to_tensor(item) for item in memories if not isinstance(item, bool | int | float)]


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_programs_in_pieces_mean_what_the_source_says(seed, tmp_path):
    generated = program_of_seed(seed)
    try:
        definition = define(generated.function(tmp_path))
    except CompileError:
        return
    arguments = [copy(item) for item in generated.arguments()]
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    try:
        program = lower(definition, signature)
        pieces, _ = schedule_program(program, GPU)
    except (CompileError, RaceError):
        return
    verify_program(pieces)
    expected = outcome(program, arguments, False)
    try:
        found = outcome(pieces, arguments, True)
    except RaceError:
        assert generated.claims, generated.source
        return
    if isinstance(expected, type):
        assert isinstance(found, type), generated.source
        return
    assert not isinstance(found, type), generated.source
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2, equal_nan=True, msg=generated.source)
