"""Generated programs, scheduled for a GPU and cut into pieces, do as the source says, without races."""

import os

import pytest

from support.fuzz.check import FoundError
from support.fuzz.check_grid import examine_in_pieces
from support.fuzz.generate import case_of_seed

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "10"))
BATCH = 10


@pytest.mark.parametrize("batch", range((PROGRAMS + BATCH - 1) // BATCH))
def test_generated_programs_in_pieces_mean_what_the_source_says(batch, tmp_path):
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        case = case_of_seed(seed)
        try:
            examine_in_pieces(case, tmp_path)
        except FoundError as error:
            pytest.fail(f"python -m tests.fuzz --device grid --replay {seed} --shrink: {error}\n{case.source}")
