"""The record of Taichi's published tests, and the table of it."""

from benchmarks import taichi_tests
from benchmarks.taichi_tests import File, Run


def test_a_run_is_kept_and_shown(tmp_path):
    run = Run("v1", "abc", "2026-01-01", {"test_a.py": File(3, ("test_b", "test_c")), "test_d.py": File(2, ())})
    taichi_tests.save(run, tmp_path / "run.json")
    assert taichi_tests.load(tmp_path / "run.json") == run
    first, *rest = taichi_tests.markdown(run).splitlines()
    assert first.startswith("3 of 5 functions pass (Taichi v1; commit abc; 2026-01-01). 1 of 2 files pass")
    assert rest == [
        "",
        "| file | pass | fail |",
        "|---|---|---|",
        "| `test_a.py` | 1 of 3 | `b`, `c` |",
    ]
