"""Random programs: Python, interpreter and compiled code agree, and what is proved to be free of races is.

`BRICKWORK_FUZZ_PROGRAMS` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one; `python -m tests.fuzz` tries
many more and makes what it finds smaller.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from support.fuzz.check import FoundError, examine
from support.fuzz.generate import case_of_seed

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "60"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 20


@pytest.mark.parametrize("batch", range((PROGRAMS + BATCH - 1) // BATCH))
def test_every_way_to_run_a_program_gives_the_same(batch, tmp_path):
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for seed in range(FIRST + batch * BATCH, FIRST + (batch + 1) * BATCH):
        try:
            seen += examine(case_of_seed(seed), tmp_path)
        except FoundError as error:
            wrong.append(f"python -m tests.fuzz --replay {seed} --shrink: {error}")
    assert not wrong, "\n\n".join(wrong)
    assert seen["compared"] >= BATCH // 2, seen
