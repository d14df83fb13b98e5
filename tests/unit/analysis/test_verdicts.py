"""What is proved of small loop programs: each loop's verdict, and that the proofs take no time worth mentioning."""

from __future__ import annotations

import inspect
import time

import pytest

import support.verdicts_elements
import support.verdicts_numbers
import support.verdicts_spaces
import support.verdicts_steps
from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import LoopVerdict
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Kernel, Launch, TensorType
from brickwork.ir.signature import ArgumentType, ScalarType, Signature
from brickwork.ir.walk import walk
from brickwork.transform.promote import promote
from support.shared import define, lower
from support.verdict_table import INDICES, VERDICTS, Expected

SECONDS = 1.0
"""The longest that an analysis may take; the usual one takes some milliseconds."""


PROGRAMS = (support.verdicts_spaces, support.verdicts_elements, support.verdicts_numbers, support.verdicts_steps)
"""The modules that fill the table when they are imported."""


def signature_of(expected: Expected) -> Signature:
    """Return dense tensors of the ranks that the table says, and integers."""
    types: list[ArgumentType] = []
    for parameter in inspect.signature(expected.function).parameters.values():
        rank = expected.ranks.get(parameter.name, 1)
        if parameter.annotation == "int":
            types.append(ScalarType(INT64))
        else:
            dtype, rank = (INT64, 1) if rank == INDICES else (FLOAT64, rank)
            types.append(TensorType(dtype, rank, contiguous=True, unit_axis=rank - 1))
    return Signature(tuple(types))


def kernel_of(expected: Expected) -> Kernel:
    program = lower(define(expected.function), signature_of(expected))
    (kernel,) = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return promote(kernel)


def letter(verdict: LoopVerdict) -> str:
    if not verdict.independent:
        return "s"
    return "r" if verdict.reductions else "p"


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name: str) -> None:
    expected = VERDICTS[name]
    kernel = kernel_of(expected)
    before = time.process_time()
    analysis = analyse(kernel)
    assert time.process_time() - before < SECONDS
    loops = [analysis.loops[loop.node.index] for loop in analysis.model.loops]
    reasons = [verdict.conflict.sentence for verdict in loops if verdict.conflict is not None]
    assert "".join(map(letter, loops)) == expected.letters, reasons
