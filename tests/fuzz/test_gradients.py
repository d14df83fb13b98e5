"""Random programs: reverse mode, forward mode and finite differences agree.

`BRICKWORK_FUZZ_GRADIENTS` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one; `python -m tests.fuzz
--gradients` tries many more, all of them as machine code too, and makes what it finds smaller. A few go through torch.
"""

from __future__ import annotations

import os
from collections import Counter
from unittest.mock import patch

import pytest

from brickwork.transform.autodiff import rules
from support.fuzz.check import FoundError
from support.fuzz.check_gradients import INTERPRETED, WAYS, examine_gradients
from support.fuzz.check_grid import examine_gradients_in_pieces
from support.fuzz.check_torch import Limits, examine_through_torch
from support.fuzz.findings import write
from support.fuzz.smooth import smooth_case_of_seed

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_GRADIENTS", "20"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 10


def small_case(seed):
    return smooth_case_of_seed(seed, nests=1)


def examined(seeds, folder):
    """Return what was seen, and what was wrong; one program of a batch runs as machine code, too."""
    wrong: list[str] = []
    seen: Counter[str] = Counter()
    for seed in seeds:
        case = small_case(seed)
        try:
            seen += examine_gradients(case, folder, WAYS if seed % BATCH == 2 else INTERPRETED)
        except FoundError as error:
            path = write(case, folder, error.kind, str(error))
            wrong.append(f"python -m tests.fuzz --gradients --replay {path} --shrink: {error}")
    return seen, wrong


@pytest.mark.parametrize("batch", range((PROGRAMS + BATCH - 1) // BATCH))
def test_all_ways_to_differentiate_agree(batch, tmp_path):
    seen, wrong = examined(range(FIRST + batch * BATCH, FIRST + (batch + 1) * BATCH), tmp_path)
    assert not wrong, "\n\n".join(wrong)
    assert seen["compared"] >= BATCH // 3, seen


def test_pieces_agree(tmp_path):
    seen = sum((examine_gradients_in_pieces(small_case(seed), tmp_path) for seed in (2, 9)), Counter())
    assert seen["compared"] == seen["derivatives: compared"] == 2, seen


@pytest.mark.filterwarnings("ignore")
def test_torch_agrees(tmp_path):
    seen = examine_through_torch(small_case(2), tmp_path)
    seen += examine_through_torch(small_case(9), tmp_path, limits=Limits(second=0.0))
    assert seen["gradcheck passed"] == seen["programs"], seen
    assert seen["vmap passed"] == seen["gradgradcheck passed"] == 1, seen


@pytest.mark.filterwarnings("ignore")
def test_torch_notices_a_wrong_rule(tmp_path):
    rule = (rules.RULES["neg"][0],)
    case = next(case for case in map(small_case, range(30)) if "sin(" in case.source.partition("def generated")[2])
    with patch.dict(rules.RULES, sin=rule), pytest.raises(FoundError, match="gradcheck"):
        examine_through_torch(case, tmp_path)


@pytest.mark.parametrize(("name", "place"), [("sin", 0), ("mul", 1)])
def test_a_wrong_rule_is_noticed(name, place, tmp_path):
    rule = [*rules.RULES[name]]
    rule[place] = rules.RULES["neg"][0]
    word = {"mul": " * "}.get(name, name)
    cases = [case for case in map(small_case, range(30)) if word in case.source.partition("def generated")[2]]
    with patch.dict(rules.RULES, {name: tuple(rule)}):
        assert any(is_found(case, tmp_path) for case in cases)


def is_found(case, folder):
    try:
        examine_gradients(case, folder, INTERPRETED)
    except FoundError:
        return True
    return False
