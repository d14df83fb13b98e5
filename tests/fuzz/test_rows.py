"""Random loops over rows that elements begin and end: every target leaves what the program leaves as it is written.

`BRICKWORK_FUZZ_PROGRAMS` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter

import pytest

from brickwork.ir.signature import Signature
from support.fuzz.rows import draw_rows
from support.lowering import argument_type
from support.scheduling import AVX2, same
from support.shared import define, lower, schedule_program

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "15"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 15


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_rows_are_the_same_on_every_target(first, tmp_path):
    seen: Counter[str] = Counter({"apart": 0, "whole": 0})
    for seed in range(first, first + BATCH):
        drawn = draw_rows(seed)
        path = tmp_path / f"rows_{seed}.py"
        path.write_text(drawn.source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        program = lower(define(module.drawn), Signature(tuple(map(argument_type, drawn.arguments))))
        seen["apart" if len(schedule_program(program, AVX2)[1]) > 1 else "whole"] += 1
        try:
            same(module.drawn, *drawn.arguments)
        except AssertionError:
            pytest.fail(f"seed {seed}:\n{drawn.source}\n{[item.data for item in drawn.arguments]}")
    assert min(seen.values()) >= BATCH // 15, seen
