"""Random contractions: in panels they give the bits that they give as written, in the interpreter and as machine code.

`BRICKWORK_FUZZ_PROGRAMS` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.interpret import run_program
from brickwork.ir.signature import Signature
from brickwork.pytorch.dtypes import to_torch
from brickwork.transform.pipeline import schedule_program
from support.fuzz.contractions import draw
from support.fuzz.execute import small_pieces
from support.lowering import argument_type
from support.scheduling import AVX2

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "40"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 20
COMPILED = 5
"""Of so many programs one runs as machine code, too."""


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_contractions_give_the_same_in_panels(first, tmp_path):
    seen: Counter[str] = Counter()
    for seed in range(first, first + BATCH):
        drawn = draw(seed)
        function = loaded(drawn.source, tmp_path / f"drawn_{seed}.py")
        program = lower(define(function), Signature(tuple(map(argument_type, drawn.arguments))))
        with small_pieces():
            ways, kernels = schedule_program(program, AVX2)
        seen["panels"] += any(version.name == "panels" for item in kernels for version in item.versions)
        expected = result(program, drawn.arguments)
        assert result(ways, drawn.arguments) == expected, drawn.source
        if seed % COMPILED == 0:
            given = [tensor(item) for item in drawn.arguments]
            with small_pieces():
                bw.op(function)(*given)
            assert torch.equal(given[-1], tensor(replace(drawn.arguments[-1], data=expected))), drawn.source
    assert seen["panels"] >= BATCH // 4


def loaded(source, path):
    """Return the function of a text, which is kept in a file for the frontend."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.drawn


def result(program, arguments):
    given = [replace(item, data=[*item.data]) for item in arguments]
    run_program(program, given, check=True)
    return given[-1].data


def tensor(item):
    return torch.tensor(item.data, dtype=torch.float64).reshape(item.sizes).to(to_torch(item.dtype))
