"""The record of Taichi's published tests, and what the guide shows of it."""

from pathlib import Path

from benchmarks import taichi_tests
from benchmarks.taichi_tests import File, Run


def test_the_guide_shows_the_record():
    run = taichi_tests.load()
    assert taichi_tests.markdown(run) in (Path(taichi_tests.__file__).parents[1] / taichi_tests.DOCUMENT).read_text()
    assert run.passed > 0.9 * run.functions


def test_a_run_is_kept_and_shown(tmp_path):
    run = Run("v1", "abc", "2026-01-01", {"test_a.py": File(3, ("test_b", "test_c")), "test_d.py": File(2, ())})
    taichi_tests.save(run, tmp_path / "run.json")
    assert taichi_tests.load(tmp_path / "run.json") == run
    assert taichi_tests.markdown(run).splitlines() == [
        "3 of 5 functions pass (Taichi v1; commit abc; 2026-01-01). "
        "1 of 2 files pass with all their functions. The others:",
        "",
        "| file | pass | fail |",
        "|---|---|---|",
        "| `test_a.py` | 1 of 3 | `b`, `c` |",
    ]
