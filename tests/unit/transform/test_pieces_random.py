"""Generated programs, scheduled for a GPU and cut into pieces, do as the source says, without races."""

import os
from dataclasses import replace

import pytest

from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.signature import NARROW_SIZE
from brickwork.ir.verify import verify_program
from brickwork.target.cuda import cuda_target
from brickwork.transform import copies, split
from brickwork.transform.pipeline import schedule_program
from brickwork.transform.schedule import grid
from support.fuzz.case import NumberArgument
from support.fuzz.check import compare, is_small
from support.fuzz.execute import in_interpreter, outcome, signature_of
from support.fuzz.generate import case_of_seed

GPU = cuda_target((9, 0))
PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "120"))
BATCH = 20


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(grid, "LIGHT_PIECE", 3)
    monkeypatch.setattr(grid, "SHORT", 2)
    monkeypatch.setattr(copies, "MANY_UPDATES", 2)
    monkeypatch.setattr(copies, "RUN", 2)
    monkeypatch.setattr(copies, "COPIES", 3)
    monkeypatch.setattr(split, "THREADS", split.Limits(few=100, least=2, unit=1, enough=200, most=5))
    monkeypatch.setattr(split, "BLOCKS", split.Limits(few=100, least=2, unit=2, enough=200, most=5))


@pytest.mark.parametrize("batch", range((PROGRAMS + BATCH - 1) // BATCH))
def test_generated_programs_in_pieces_mean_what_the_source_says(batch, tmp_path):
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        examine_in_pieces(case_of_seed(seed), tmp_path)


def examine_in_pieces(case, folder):
    try:
        program = lower(define(case.function(folder)), signature_on_cuda(case))
        pieces, _ = schedule_program(program, GPU)
    except (CompileError, RaceError):
        return
    verify_program(pieces)
    try:
        expected = outcome(in_interpreter(program), case)
    except RaceError:
        assert case.claims, case.source
        return
    if not is_small(expected):
        return
    found = outcome(in_interpreter(pieces), case)
    assert (found.failure is None) == (expected.failure is None), f"seed {case.seed}\n{case.source}"
    if found.failure is None:
        compare("pieces", found, expected, case, f"seed {case.seed}")


def signature_on_cuda(case):
    easy = case.seed % 2 == 0 and all(
        abs(item.value) < NARROW_SIZE for item in case.arguments if isinstance(item, NumberArgument)
    )
    return replace(signature_of(case, may_alias=case.shares), device="cuda", narrow=easy, aligned=easy)
