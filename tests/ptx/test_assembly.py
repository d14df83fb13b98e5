"""PTX of every operator, through NVIDIA's assembler."""

import re

import pytest
import torch

import support.gpu_operators as gpu_operators
from brickwork.codegen.rounding import Rounding
from brickwork.diagnostics.errors import CompileError
from brickwork.ops import sample_normal, sin, timex, timex_padded
from brickwork.ops.brick_pad import brick_pad_colour, brick_pad_plane
from brickwork.target.cuda import cuda_target
from support.fuzz.generate import case_of_seed
from support.kernels import SUITE
from support.ptx import assemble, program_for_gpu, ptx_of
from support.sweep import sampled

CAPABILITIES = [((12, 0),), ((7, 5),)]
"""The oldest and the newest; `test_registers.py` assembles for those between."""
SPILLED = 12
"""Bytes: the assembler gives up two or three registers now and then so that more threads fit."""
SPILLED_IN_TILES = 160
"""Bytes: places of computed factors, beside sums in registers, of kernels with matrix instructions."""
SPILLED_BESIDE_LISTS = 184
"""Bytes: what a list of 64 items leaves no registers for, where the assembler lets two blocks fit."""
SPILLED_ALONE = 64
"""Bytes: of kernels of one thread, which run where proofs do not hold."""
NEWEST_TESTED = cuda_target((9, 0))
_SHIFTS = (9, 9, [0, 0], [6, 0], [2, 5])


def ready_made():
    """Return the programs of the ready-made operators, for easy arguments and for any."""
    zeros = torch.zeros
    calls = [
        (sin, zeros(8, 8)),
        (sin, zeros(8, 8).t()),
        (sin, zeros(8, dtype=torch.float64)),
        (sin, zeros(8, dtype=torch.float16).reshape(2, 4).t()),
        (timex, zeros(4, 8), zeros(3, 4, 8), 0.5),
        (timex_padded, zeros(1, 4, 8), zeros(3, 4, 8), 0.5),
        (sample_normal, zeros(5), zeros(5), 8),
        (brick_pad_plane, zeros(5, 6), *_SHIFTS),
        (brick_pad_plane, zeros(5, 6, dtype=torch.uint8), *_SHIFTS),
        (brick_pad_colour, zeros(5, 6, 3), *_SHIFTS),
    ]
    return [program_for_gpu(operator, *rest, easy=easy) for operator, *rest in calls for easy in (True, False)]


def is_too_much(each):
    """Whether a kernel keeps too few threads on a multiprocessor, or registers in memory."""
    if each.matrix:
        return each.spilled > SPILLED_IN_TILES
    return each.spilled > SPILLED or each.registers > 128


@pytest.fixture(scope="module")
def suite_ptx():
    """Return the PTX of the suite's kernels."""
    programs = [program_for_gpu(case.function, *case.arguments(4)) for case in [*SUITE.values()][::5]]
    return ptx_of(programs, NEWEST_TESTED)


@pytest.mark.parametrize("capability", sampled(CAPABILITIES))
def test_ready_made_operators_fit_the_registers(capability, tmp_path):
    target, programs = cuda_target(capability), ready_made()
    found = assemble(ptx_of(programs, target), target, tmp_path)
    assert len(found) >= len(programs)
    assert {name: each for name, each in found.items() if is_too_much(each)} == {}


def test_suite_assembles(suite_ptx, tmp_path):
    found = assemble(suite_ptx, NEWEST_TESTED, tmp_path)
    assert len(found) > 17
    limits = {name: SPILLED_IN_TILES if each.matrix else SPILLED for name, each in found.items()}
    limits |= {name: SPILLED_BESIDE_LISTS for name in found if name.startswith("linear_attention_4")}
    limits |= dict.fromkeys(re.findall(r"\.entry (\w+)\([^)]*\)\s*\.maxntid 1\s", suite_ptx), SPILLED_ALONE)
    assert {name: each for name, each in found.items() if each.spilled > limits[name]} == {}


def test_careful_code_assembles_for_the_oldest(tmp_path):
    target = cuda_target((7, 5))
    cases = [*SUITE.values()][::9]
    programs = [program_for_gpu(case.function, *case.arguments(4), easy=False) for case in cases]
    assert assemble(ptx_of(programs, target), target, tmp_path)


def test_fast_math_assembles(tmp_path):
    ptx = ptx_of(ready_made()[::2], NEWEST_TESTED, rounding=Rounding(fast_math=True))
    assert "sin.approx" in ptx
    assert assemble(ptx, NEWEST_TESTED, tmp_path)


def test_generated_programs_assemble(tmp_path):
    programs = []
    for seed in range(3):
        made = case_of_seed(seed)
        try:
            programs.append(program_for_gpu(made.function(tmp_path), *made.make(), easy=seed % 2 == 0))
        except CompileError:
            continue
    assert assemble(ptx_of(programs, NEWEST_TESTED), NEWEST_TESTED, tmp_path)


def test_access_of_sixteen_bytes():
    ptx = ptx_of([program_for_gpu(sin, torch.zeros(8, 8))], NEWEST_TESTED)
    assert "ld.global.nc.v4.b32" in ptx
    assert "st.global.v4.b32" in ptx
    assert set(re.findall(r"\bcall[^;]*?\), *\s*(\w+)", ptx)) == {"bw_far_sin"}


def test_indices_of_small_tensors_take_32_bits():
    program = program_for_gpu(gpu_operators.gather, torch.zeros(8), torch.zeros(8, dtype=torch.int64))
    ptx = ptx_of([program], NEWEST_TESTED)
    assert not re.search(r"(div|rem)\.[us]64", ptx)


def test_no_question_to_the_compiler_is_left(suite_ptx):
    assert "__nvvm_reflect" not in suite_ptx
    assert not re.search(r"(?<!approx)\.ftz", suite_ptx)
