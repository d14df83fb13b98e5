"""The harness: what it times, what it refuses to time, and what it makes of the times."""

import dataclasses
import math
import time

import pytest
import torch

import brickwork as bw
from brickwork import bench
from brickwork.bench import check_results, formulas, roofline, timers
from brickwork.bench.timers import measure
from support.timed_tables import ROWS, table_of, timed

QUICK = {"seconds": 0.02, "precision": math.inf}


# ---------------------------------------------------------------- measuring


def test_times_are_those_of_a_sleep():
    def sleep(seconds):
        time.sleep(seconds)
        return 1

    table = bench.compare(
        {"once": sleep, "longer": lambda seconds: sleep(10 * seconds)}, {"nap": 0.004}, x_name="case", **QUICK
    )
    timings = table.case("nap").timings
    assert 0.004 <= timings["once"].least <= timings["once"].lower <= timings["once"].median <= timings["once"].upper
    assert 0.04 <= timings["longer"].least
    assert timings["once"].least < timings["longer"].least
    assert table.value("nap", "once") == timings["once"].median * 1e3
    assert table.protocol["threads"] == str(torch.get_num_threads())


def test_wrong_and_failing_contenders_are_reported_and_not_timed():
    def broken(x):
        raise ArithmeticError("no result\nof any kind")

    calls = []

    def cosine(x):
        calls.append(1)
        return x.cos()

    table = bench.compare(
        {"sin": torch.sin, "cos": cosine, "broken": broken, "short": lambda x: x[1:].sin(), "again": torch.sin},
        [64, 128],
        arguments=torch.randn,
        **QUICK,
    )
    for x in (64, 128):
        case = table.case(x)
        assert set(case.timings) == {"sin", "again"}
        assert case.notes["broken"] == "failed: ArithmeticError: no result"
        assert case.notes["cos"].startswith("wrong: differs by up to")
        assert case.notes["short"] == f"wrong: has shape ({x - 1},), not ({x},) from what sin answers"
    assert len(calls) == 2
    assert table.value(64, "cos") is None
    assert str(table).count("cos: wrong") == 1 or "(N = 64)" in str(table)


def test_answers_need_not_agree_where_that_is_said():
    table = bench.compare({"sin": torch.sin, "cos": torch.cos}, {3: torch.ones(3)}, check=False, **QUICK)
    assert set(table.case(3).timings) == {"sin", "cos"}
    assert table.protocol["answers"] == "not compared"


def test_contenders_may_differ_from_case_to_case():
    done = []

    def contenders(count):
        x = torch.ones(count)
        calls = {"sin": x.sin, "again": lambda: torch.sin(x)}
        return {**calls, "cos": x.cos} if count > 2 else calls

    table = bench.compare(contenders, [2, 4], "GB/s", moved="8 * N", advance=done.append, **QUICK)
    assert table.lines == ("sin", "again", "cos")
    assert [set(case.timings) for case in table.record.cases] == [{"sin", "again"}] * 2
    assert table.case(4).notes["cos"].startswith("wrong")
    assert (table.case(4).reference, table.case(4).moved) == ("sin", 32)
    assert done == sorted(done)
    assert done[-1] == 1
    with pytest.raises(ValueError, match="give the values of x alone"):
        bench.compare(contenders, [2], arguments=torch.randn)


def test_a_case_that_cannot_be_prepared_hides_no_other():
    def contenders(count):
        if count == 4:
            raise MemoryError("no room")
        return {"sin": torch.ones(count).sin}

    table = bench.compare(contenders, [2, 4], **QUICK)
    assert table.value(2, "sin") is not None
    assert table.case(4).notes == {"all": "failed: MemoryError: no room"}
    assert "no room" in str(table)


def test_measures_need_not_answer_what_rivals_do():
    x = torch.ones(9)
    calls = {"zero_": lambda: x.new_zeros(9), "sin": x.sin, "again": x.sin, "cos": x.cos}
    table = bench.compare(calls, {9: ()}, unchecked={"zero_"}, **QUICK)
    assert set(table.case(9).timings) == {"zero_", "sin", "again"}
    assert table.case(9).notes["cos"].endswith("from what sin answers")
    assert table.protocol["answers"].endswith("but zero_")
    best = [cell.manner for cell in table.sheet().rows[0]]
    assert best[1] == "plain", "a measure is not the best of a row"
    assert best.count("good") == 1


def test_what_was_to_be_reached_is_told():
    cases = (
        dataclasses.replace(table_of(ROWS).case(1000), target="half of torch", at_most=0.9e-3),
        dataclasses.replace(table_of(ROWS).case(4000), target="half of torch", at_most=4e-3),
    )
    table = table_of(ROWS)
    text = str(dataclasses.replace(table, record=dataclasses.replace(table.record, cases=cases)))
    assert "brickwork's goal" in text
    assert "goal: half of torch" in text
    assert "900 us (missed)" in text
    assert "4.00 ms (met)" in text
    assert text.count("half of torch") == 1
    assert "goal" not in str(table)


def test_samplers_draw_the_same_numbers_when_compared():
    before = torch.get_rng_state()
    table = bench.compare({"a": lambda n: torch.randn(n), "b": lambda n: torch.randn(n)}, {9: 9}, **QUICK)
    assert set(table.case(9).timings) == {"a", "b"}
    assert not torch.equal(before, torch.get_rng_state()), "the calls that are timed draw on"


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0001]), True),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]), False),
        (torch.tensor([1e-6, 2e-6]), torch.tensor([1e-6, 3e-6]), False),
        (torch.tensor([1.0, math.nan]), torch.tensor([1.0, math.nan]), True),
        (torch.tensor([1.0, math.inf]), torch.tensor([1.0, -math.inf]), False),
        (torch.tensor([1.0, math.nan]), torch.tensor([1.0, 2.0]), False),
        (torch.tensor([1, 2]), torch.tensor([1, 3]), False),
        (torch.tensor([1, 2], dtype=torch.int32), torch.tensor([1, 2]), True),
        (torch.tensor([1.0], dtype=torch.float64), torch.tensor([1.0 + 1e-4], dtype=torch.float64), False),
        (torch.tensor([1.0], dtype=torch.float16), torch.tensor([1.005]), True),
        (torch.tensor([1.0 + 1.0j]), torch.tensor([1.0 + 2.0j]), False),
        (torch.empty(0), torch.empty(0), True),
        ((torch.ones(2), 3), [torch.ones(2), 3], True),
        ({"a": 1.0}, {"a": 2.0}, False),
        (None, None, True),
        (None, 1, False),
    ],
)
def test_answers_are_compared_by_their_type(found, expected, same):
    words = check_results.difference(check_results.kept(found), check_results.kept(expected), None)
    assert (words == "") == same, words


def test_rounds_go_on_until_the_median_is_known_or_the_budget_is_spent():
    def call():
        time.sleep(1e-4)

    options = {"rounds": 3, "warm_up": 0, "sample": 1e-4, "budget": 0.1}
    assert measure({"a": call}, **options, precision=math.inf)["a"].samples == 3
    assert measure({"a": call}, **options, precision=0)["a"].samples > 3


def test_a_slow_contender_takes_no_turns_when_it_has_spent_its_part():
    quick = {"rounds": 9, "warm_up": 0, "sample": 1e-4, "budget": 0.02, "precision": 0}
    found = measure({"slow": lambda: time.sleep(0.03), "fast": lambda: None}, **quick)
    assert found["slow"].samples == 3
    assert found["fast"].samples == 9
    assert measure({"slow": lambda: time.sleep(0.01)}, **{**quick, "budget": 0})["slow"].samples == 9


def test_a_call_that_takes_long_is_not_called_more_often_than_needed(monkeypatch):
    monkeypatch.setattr(timers, "_LONG", 0.01)
    calls = []

    def slow():
        calls.append(time.sleep(0.02))

    assert measure({"slow": slow}, rounds=3, warm_up=0, sample=1e-4)["slow"].samples == 3
    assert len(calls) == 1 + 1 + 3, "to warm up, before the first sample, and the samples"


def test_memory_of_a_call_is_its_peak():
    x = torch.randn(1 << 18)
    table = bench.compare({"one": x.sin, "two": lambda: x.sin().cos()}, {"x": ()}, check=False, details=True, **QUICK)
    assert table.case("x").memory == {"one": 4 << 18, "two": 8 << 18}
    assert "peak memory of a call" in str(table)
    assert "2.00 MiB" in str(table)


def test_the_roof_is_measured_in_the_same_run(monkeypatch):
    monkeypatch.setattr(roofline, "_BYTES", {"cpu": 1 << 20})
    monkeypatch.setattr(roofline, "_ELEMENTS", {"cpu": 1 << 6})
    table = bench.compare(
        {"sin": torch.sin}, [64], "GB/s", arguments=torch.randn, moved="8 * N", roofline=True, **QUICK
    )
    assert set(table.peaks) == {"copy", "fill", "fma"}
    assert min(table.peaks.values()) > 0
    assert table.roof(64) == pytest.approx(max(table.peaks["copy"], table.peaks["fill"]) / 1e9)
    assert "roof" in str(table)


def test_checking_and_debug_modes_are_warned_of():
    with bw.config.override(check="interpret"):
        slow = bw.op("test_bench::interpreted")(one_more)
        table = bench.compare({"slow": slow}, {3: torch.ones(3)}, **QUICK)
    assert any("config.check" in warning for warning in table.warnings)
    later = bench.compare({"slow": slow}, {3: torch.ones(3)}, **QUICK)
    assert any(warning.startswith("slow was defined under") for warning in later.warnings)
    assert "WARNING: slow was defined" in str(later)


def one_more(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + 1
    return out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({}, {1: ()}), "at least one contender"),
        (({"a": print}, {}), "at least one case"),
        (({"a": print}, [1]), "cases without arguments"),
        (({"a": print}, {1: ()}, "GB/s"), "needs `moved=`"),
        (({"a": print}, {1: ()}, "TFLOP/s"), "needs `flops=`"),
        (({"a": print}, {1: ()}, "GBs"), "there is no metric 'GBs'; there are: ms, us, GB/s"),
        (({"a": torch.sin}, {1: torch.ones(3)}, "kernels"), "counted on a GPU, and the contenders run on the CPU"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        bench.compare(*arguments)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"cache": "flushed"}, "is for GPUs"),
        ({"graph": True}, "is for GPUs"),
        ({"baseline": "other"}, "the baseline 'other' is no contender"),
        ({"unchecked": {"copy_"}}, "unchecked names 'copy_', which is no contender; there are: a"),
        ({"seconds": 0}, "seconds is 0; it must be more than 0"),
    ],
)
def test_what_does_not_fit_is_refused(named, words):
    with pytest.raises(ValueError, match=words):
        bench.compare({"a": torch.sin}, {3: torch.ones(3)}, **named)


def test_options_that_there_are_not_are_named():
    with pytest.raises(TypeError, match="there is no option 'repeat'; there are: device, check"):
        bench.compare({"a": torch.sin}, {3: torch.ones(3)}, repeat=9)


def test_cells_and_metrics_that_there_are_not_are_named():
    table = bench.tabled({3: {"a": [1e-3]}}, title="one", x_name="n")
    with pytest.raises(KeyError, match="the table has no n = 4; it has 3"):
        table.value(4, "a")
    with pytest.raises(ValueError, match="GB/s needs `moved=`"):
        table.measured_in("GB/s")


def test_memory_is_counted_where_it_is_shown():
    table = bench.compare({"add": lambda x: x + 1}, {1: torch.ones(1 << 18)}, "MiB", **QUICK)
    assert table.value(1, "add") == pytest.approx(1, rel=0.01)


def test_options_are_the_fields_of_the_protocol():
    assert list(bench.Options.__annotations__) == [field.name for field in dataclasses.fields(bench.Protocol)]


# ---------------------------------------------------------------- the decorator


def test_a_benchmark_runs_over_its_points():
    seen = []

    @bench.benchmark(
        x_name="N",
        x_values=[2, 4],
        line="provider",
        lines={"ours": "brickwork", "theirs": "torch", "absent": "absent"},
        metric="GB/s",
        styles=[("red", "--")],
        arguments={"M": 3},
        moved="8 * M * N",
        baseline="theirs",
        x_log=True,
    )
    def sine(N, M, provider):
        """What it is."""
        x = torch.randn(M, N)
        seen.append(x)
        return {"ours": lambda: torch.sin(x), "theirs": lambda: x.sin()}.get(provider)

    assert sine.__doc__ == "What it is."
    assert sine(N=2, M=3, provider="ours")().shape == (3, 2)
    seen.clear()
    table = sine.run(**QUICK)
    assert table.title == "sine"
    assert table.lines == ("brickwork", "torch", "absent")
    assert table.styles == {"brickwork": ("red", "--")}
    assert torch.equal(seen[0], seen[1]), "all contenders of a point draw the same tensors"
    case = table.case(4)
    assert (case.moved, case.reference, set(case.timings), case.notes) == (96, "torch", {"brickwork", "torch"}, {})
    assert table.value(4, "brickwork") == pytest.approx(96 / case.timings["brickwork"].median / 1e9)
    assert table.formulas == {"bytes": "8 * M * N"}
    assert "bytes: 8 * M * N" in str(table)


def test_a_contender_that_cannot_be_prepared_hides_no_other():
    @bench.benchmark(x_name="N", x_values=[2], line="who", lines=["a", "b"])
    def sine(N, who):
        if who == "a":
            raise ImportError("a is not installed")
        x = torch.ones(N)
        return lambda: x.sin()

    case = sine.run(**QUICK).case(2)
    assert case.notes == {"a": "failed: ImportError: a is not installed"}
    assert set(case.timings) == {"b"}


# ---------------------------------------------------------------- values and formulas


def test_values_in_every_metric():
    table = table_of(ROWS, formulas={"bytes": "8 * N", "operations": "2 * N"})
    assert table.value(4000, "brickwork") == pytest.approx(2.0)
    assert table.measured_in("us").value(4000, "brickwork") == pytest.approx(2000)
    assert table.measured_in("GB/s").value(4000, "brickwork") == pytest.approx(32000 / 2e-3 / 1e9)
    assert table.measured_in("TFLOP/s").value(4000, "brickwork") == pytest.approx(8000 / 2e-3 / 1e12)
    assert table.measured_in("speed-up").value(4000, "brickwork") == pytest.approx(4.0)
    low, high = table.measured_in("GB/s").quartiles(4000, "brickwork")
    assert low < table.measured_in("GB/s").value(4000, "brickwork") < high


def test_what_the_host_launches_and_memory_are_metrics():
    case = dataclasses.replace(
        table_of(ROWS).case(1000),
        device="cuda",
        host={"torch": timed(7e-6)},
        launches={"torch": 3},
        memory={"brickwork": 3 << 19},
    )
    table = table_of({1000: ROWS[1000]}, peaks={"copy": 8e6})
    table = dataclasses.replace(table, record=dataclasses.replace(table.record, cases=(case,)))
    shown = {metric: table.measured_in(metric) for metric in ("host us", "kernels", "MiB")}
    assert {metric: each.value(1000, "torch") for metric, each in shown.items()} == {
        "host us": pytest.approx(7.0),
        "kernels": 3,
        "MiB": None,
    }
    assert shown["MiB"].value(1000, "brickwork") == 1.5
    assert "7.00 ±1%" in str(shown["host us"])
    assert "±" not in str(shown["kernels"]).split("clocks")[0]
    assert not any(each.roof(1000) for each in shown.values())
    assert table_of(ROWS, metric="host us").value(1000, "torch") == pytest.approx(2000)


def test_a_table_of_times_that_were_taken_elsewhere():
    table = bench.tabled(
        {"sin": {"cold": [0.3, 0.2, 0.4], "warm": timed(0.01)}, "timex": {"cold": "failed: no compiler"}},
        title="first calls",
        x_name="operator",
        flops="10",
        protocol={"time": "of a process of its own"},
    )
    assert table.lines == ("cold", "warm")
    assert table.value("sin", "cold") == pytest.approx(300)
    assert table.value("timex", "cold") is None
    assert table.case("sin").flops == 10
    assert "failed: no compiler" in str(table)
    assert "of a process of its own" in str(table)
    assert table.measured_in("speed-up").value("sin", "warm") == pytest.approx(30)


def test_the_roof_is_the_longer_of_bytes_and_operations():
    table = table_of(ROWS, peaks={"copy": 8e6, "fill": 4e6, "fma": 2e6})
    assert table.roof(1000) == pytest.approx(1.0)
    assert dataclasses.replace(table, peaks={"copy": 8e6, "fma": 1e6}).roof(1000) == pytest.approx(2.0)
    assert table_of(ROWS).roof(1000) is None


@pytest.mark.parametrize(
    ("formula", "value"), [("8 * N", 80), ("N**2 - N // 3 + -1", 96), ("2 * M * N / 4", 15), (None, 0), ("1e3", 1000)]
)
def test_formulas_are_arithmetic(formula, value):
    assert formulas.evaluated(formula, {"N": 10, "M": 3, "x": torch.ones(2)}, ()) == value


@pytest.mark.parametrize("formula", ["__import__('os')", "N.real", "K * 2", "x * 2", "N % 2", "'a'"])
def test_formulas_are_no_more_than_arithmetic(formula):
    with pytest.raises(ValueError, match="formula"):
        formulas.evaluated(formula, {"N": 10, "x": torch.ones(2)}, ())


def test_a_formula_may_be_a_function_of_the_arguments():
    def moved(x):
        return 2 * x.nbytes

    assert formulas.evaluated(moved, {}, (torch.ones(5),)) == 40
    assert formulas.written(moved) == "moved(...)"
