"""Random nests with sums: every target leaves what the program leaves as it is written.

`BRICKWORK_FUZZ_PROGRAMS` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one.
"""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from unittest.mock import patch

import pytest

from brickwork.diagnostics.errors import InternalError
from brickwork.ir.signature import Signature
from brickwork.transform import free_parts, nests_apart, residue_nests, separate_sums
from support.fuzz.sums import draw_sums
from support.lowering import argument_type
from support.scheduling import GPU, same
from support.shared import define, lower, schedule_program

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "10"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 10
ENDS = (residue_nests.APART, separate_sums.APART, free_parts.FREE)


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_sums_are_the_same_on_every_target(first, tmp_path):
    seen: Counter[str] = Counter(dict.fromkeys(ENDS, 0))
    for seed in range(first, first + BATCH):
        drawn = draw_sums(seed)
        path = tmp_path / f"sums_{seed}.py"
        path.write_text(drawn.source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        types = tuple(map(argument_type, drawn.arguments))
        with (
            patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=1),
            patch.object(separate_sums, "LEAST_TERMS", 1),
            patch.multiple(free_parts, few_iterations=_none, SHORT=1),
        ):
            program = lower(define(module.drawn), Signature(types, device="cuda", narrow=True, aligned=True))
            made = schedule_program(program, GPU)[1]
            seen.update(end for end in ENDS if any(end in item.source.name for item in made))
            try:
                same(module.drawn, *drawn.arguments)
            except (AssertionError, InternalError):
                pytest.fail(f"seed {seed}:\n{drawn.source}\n{drawn.arguments}")
    assert first or min(seen.values()) > 0, seen


def _none(_target):
    """Return so few iterations that launches are always worth it."""
    return 0
