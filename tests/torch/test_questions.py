"""The questions of the benchmarks: each runs at the sizes of tests, and answers what it asks."""

import math

import pytest

from benchmarks.questions import QUESTIONS, Run


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=list(QUESTIONS))
def test_every_question_runs_at_small_sizes(question):
    told, done = [], []
    run = Run(peers=frozenset(), seconds=0.001, small=True, progress=told.append, advance=done.append)
    parts = question.tables(run)
    assert question.asks.endswith("?")
    for measure in parts.values():
        table = measure()
        assert any(line.startswith("brickwork") for line in table.lines)
        assert table.case(table.x_values[0]).timings
        assert table.metric not in {"GB/s", "TFLOP/s"} or table.formulas
        notes = [note for case in table.record.cases for note in case.notes.values()]
        assert not [note for note in notes if "failed" in note or "wrong" in note]
        values = [table.value(x, line) for x in table.x_values for line in table.lines]
        assert all(math.isfinite(value) for value in values if value is not None)
    assert told
    assert done[-1] == 1
