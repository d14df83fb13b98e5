"""Benchmarks written for Triton: `do_bench`, `Benchmark` and `perf_report` with its arguments and meaning."""

import csv
import sys
import time
from types import SimpleNamespace

import pytest
import torch

from brickwork.bench import Benchmark, do_bench, perf_report


def sleeping():
    time.sleep(0.002)


def test_milliseconds_of_a_call():
    found = do_bench(sleeping, warmup=2, rep=20, device="cpu")
    assert 1.9 < found < 40
    times = do_bench(sleeping, 2, 20, return_mode="all", device="cpu")
    assert 3 <= len(times) <= 11
    least, most = (do_bench(sleeping, 2, 20, return_mode=mode, device="cpu") for mode in ("min", "max"))
    assert 1.9 < least < most


def test_quantiles():
    low, high = do_bench(sleeping, 2, 20, quantiles=[0.0, 1.0], device="cpu")
    assert 1.9 < low < high
    assert isinstance(do_bench(sleeping, 2, 4, quantiles=[0.5], device="cpu"), float)


def test_gradients_are_dropped():
    x = torch.ones(3, requires_grad=True)
    do_bench(lambda: x.sum().backward(), 1, 2, grad_to_none=[x], device="cpu")
    assert torch.equal(x.grad, torch.ones(3))


def test_what_is_refused():
    with pytest.raises(ValueError, match="return_mode is one of min, max, mean, median and all, not 'least'"):
        do_bench(sleeping, return_mode="least")
    with pytest.raises(ValueError, match="not on meta"):
        do_bench(sleeping, device="meta")


def square(**more):
    given = {
        "x_names": ["M", "N"],
        "x_vals": [2, (3, 4)],
        "line_arg": "kind",
        "line_vals": ["a", "b"],
        "line_names": ["A", "B"],
        "plot_name": "square",
        "ylabel": "ms",
        "args": {"more": 1},
    }
    return Benchmark(**given | more)


def test_each_case_is_run_and_printed(capsys):
    calls = []

    @perf_report(square())
    def run(M, N, kind, more, extra):
        calls.append((M, N, kind, more, extra))
        return (M * N + 0.5, 1.0, 20.0) if kind == "a" else M

    assert run.run(print_data=True, extra=7) is None
    assert calls == [(2, 2, "a", 1, 7), (2, 2, "b", 1, 7), (3, 4, "a", 1, 7), (3, 4, "b", 1, 7)]
    assert capsys.readouterr().out.splitlines() == [
        "square:",
        "   M  N     A (ms)  B (ms)",
        "0  2  2   4.500000       2",
        "1  3  4  12.500000       3",
    ]
    assert run(1, 2, "b", 3, 4) == 1


def test_what_is_saved(tmp_path):
    pytest.importorskip("matplotlib")

    @perf_report([square(styles=[("red", "-"), ("blue", "--")]), square(plot_name="other", x_log=True)])
    def run(M, N, kind, more):
        return (M * N + 0.5, 1.0, 20.0) if kind == "a" else M

    run.run(save_path=tmp_path / "new", diff_col=True, save_precision=2)
    with (tmp_path / "new" / "square.csv").open() as file:
        assert [*csv.reader(file)] == [
            ["M", "N", "A (ms)", "B (ms)", "Diff"],
            ["2", "2", "4.50", "2", "-2.50"],
            ["3", "4", "12.50", "3", "-9.50"],
        ]
    assert (tmp_path / "new" / "other.png").stat().st_size > 1000
    assert '<image src="square.png"/>' in (tmp_path / "new" / "results.html").read_text()


def test_data_frames_are_pandas_own(monkeypatch):
    run = perf_report(square())(lambda M, N, kind, more: float(M))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        run.run(return_df=True)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows, columns: (columns, rows)))
    columns = ["M", "N", "A (ms)", "B (ms)"]
    assert run.run(return_df=True) == (columns, [(2, 2, 2.0, 2.0), (3, 4, 3.0, 3.0)])
    run.benchmarks = [square()]
    assert len(run.run(return_df=True)) == 1


def test_values_for_other_names_are_refused():
    run = perf_report(square(x_vals=[(1, 2, 3)]))(lambda **_: 0)
    with pytest.raises(ValueError, match=r"`x_vals` has \(1, 2, 3\) for the 2 names M, N"):
        run.run()


def test_plots_are_shown_by_matplotlib(monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf().axes[0].get_xlabel()))
    perf_report(square(xlabel="size"))(lambda M, N, kind, more: float(M)).run(show_plots=True)
    assert shown == ["size"]
    pyplot.close("all")
