"""Random legal schedules of random programs: interpreter and machine code agree with Python.

`BRICKWORK_FUZZ_SCHEDULES` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one; `python -m tests.fuzz --device
schedules` tries many more and makes what it finds smaller.
"""

from __future__ import annotations

import os
from collections import Counter
from unittest.mock import patch

from brickwork.diagnostics.errors import InternalError
from brickwork.transform.verbs import bind
from support.fuzz.check import FoundError
from support.fuzz.check_schedules import examine_schedules
from support.fuzz.generate import case_of_seed

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_SCHEDULES", "4"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
COMPILED = 8
"""Of so many programs one runs as machine code, too."""


def test_legal_schedules_compute_what_python_does(tmp_path):
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + PROGRAMS):
        try:
            seen += examine_schedules(case_of_seed(seed), tmp_path, compiled=seed % COMPILED == 0)
        except FoundError as error:
            wrong.append(f"python -m tests.fuzz --device schedules --replay {seed} --shrink: {error}")
    assert not wrong, "\n\n".join(wrong)
    assert seen["compared with verbs"] >= PROGRAMS // 3, seen


def test_a_verb_that_is_never_refused_is_noticed(tmp_path):
    def allowed(*_):
        return None

    with patch.object(bind, "refusal", allowed):
        assert any(is_found(seed, tmp_path) for seed in range(20))


def is_found(seed, folder):
    try:
        examine_schedules(case_of_seed(seed), folder, compiled=False)
    except (FoundError, InternalError):
        return True
    return False
