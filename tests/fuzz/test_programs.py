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

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "10"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 10
OUTSIDE = (1196, 1490, 1825)
"""Seeds of programs that leave their tensors where a copy of a carried integer is mistaken for the integer."""


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_every_way_to_run_a_program_gives_the_same(first, tmp_path):
    seen = examined(range(first, first + BATCH), tmp_path)
    assert seen["compared"] >= BATCH // 2, seen


def test_copies_of_carried_integers_stay_within_tensors(tmp_path):
    seen = examined(OUTSIDE, tmp_path)
    assert seen["IndexErrors agreed upon"] == len(OUTSIDE), "choose other seeds, of programs with such copies"


def examined(seeds, folder):
    """Return what was seen of programs that every way to run them agrees on."""
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            seen += examine(case_of_seed(seed), folder)
        except FoundError as error:
            wrong.append(f"python -m tests.fuzz --replay {seed} --shrink: {error}")
    assert not wrong, "\n\n".join(wrong)
    return seen
