"""`python -m brickwork bench`: what it measures, prints and writes, what it refuses, and how it ends."""

import argparse
import base64
import dataclasses
import importlib.util
import json
import re
import sys

import pytest
import torch

from brickwork import __main__, bench
from brickwork.bench import command, environment, html_page, plots, summary
from brickwork.bench.question_results import Findings


def rate(run):
    x = torch.ones(8)
    calls = {"torch": x.sin, "brickwork": lambda: torch.sin(x)}
    return bench.compare(calls, {8: ()}, title="rate of <sines>", **run.how)


def broken(run):
    raise ArithmeticError("no such rate\nanywhere")


def ended(run):
    raise KeyboardInterrupt


def with_a_failing_contender(run):
    def fail():
        raise OSError("no device")

    return bench.compare({"torch": torch.ones(8).sin, "other": fail}, {8: ()}, title="half", **run.how)


def question(name, devices=("cpu", "cuda"), **parts):
    def tables(run):
        return {part: lambda measure=measure: measure(run) for part, measure in parts.items()}

    return bench.Question(name=name, asks=f"How fast is {name}?", tables=tables, devices=devices)


QUESTIONS = (
    question("sine", rate=rate),
    question("faults", broken=broken, rate=rate, half=with_a_failing_contender),
    question("ended", rate=rate, ended=ended, never=broken),
    question("links", devices=("cuda",), rate=rate),
)
SUITE = bench.Suite(
    questions={each.name: each for each in QUESTIONS},
    peers=("torch", "other"),
    absent=lambda device: {"other": f"other makes no code for {device}"},
)


@pytest.fixture
def ask(monkeypatch, capsys):
    """Run the command; return its exit status and what it printed."""
    monkeypatch.setattr(command, "find_suite", lambda: SUITE)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        status = command.main(parser.parse_args([*map(str, arguments), "--small", "--seconds", "0.001"]))
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the pictures out, which take most of the time."""
    monkeypatch.setattr(bench.Table, "plot", lambda table, path: path)
    monkeypatch.setattr(bench.Table, "drawing", lambda table: "<svg/>")
    monkeypatch.setattr(plots, "standings_drawing", lambda rows, title: "<svg/>")


def test_tables_are_printed_and_kept_with_a_report(ask, tmp_path):
    status, said = ask("sine", "--out", tmp_path / "new")
    assert status == 0
    assert "sine: How fast is sine?" in said
    assert "rate of <sines> [ms]" in said
    assert "without other (other makes no code for cpu)" in said
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["report.html", "sine-rate.png", "sine.json"]
    found = Findings.load(tmp_path / "new" / "sine.json")
    assert (found.question, found.asks, found.failures) == ("sine", "How fast is sine?", {})
    assert set(found.tables["rate"].case(8).timings) == {"torch", "brickwork"}


def test_the_report_stands_for_itself(ask, tmp_path):
    ask("faults", "--out", tmp_path)
    text = (tmp_path / "report.html").read_text()
    record = Findings.load(tmp_path / "faults.json").tables["rate"].record
    needed = (
        "rate of &lt;sines&gt;",
        "How fast is faults?",
        "At a glance",
        f"torch {record.versions['torch']}",
        record.date,
        f"{record.machine['cores']} cores",
        "median of samples in turns",
        "<dt>threads</dt>",
        "no such rate",
        "no device",
        "other makes no code for cpu",
    )
    assert [words for words in needed if words not in text] == []
    assert text.count("data:image/svg+xml;base64,") == 3, "a plot for each table, and one of all"
    loaded = re.findall(r"(?:src|href)=['\"](?!data:|#)", text)
    assert not loaded
    assert "<script" not in text


def test_what_fails_hides_nothing_else(ask, undrawn, tmp_path):
    status, said = ask("faults", "--out", tmp_path)
    assert status == 1
    assert "NOT MEASURED faults, broken: failed: ArithmeticError: no such rate" in said
    assert "NOT MEASURED faults, half, N = 8: other: failed: OSError: no device" in said
    found = Findings.load(tmp_path / "faults.json")
    assert set(found.tables) == {"rate", "half"}
    assert found.failures == {"broken": "failed: ArithmeticError: no such rate"}


def test_what_is_done_is_kept_when_the_user_ends_it(ask, undrawn, tmp_path):
    status, said = ask("all", "--out", tmp_path)
    assert status == 130
    assert "ended early" in said
    assert set(Findings.load(tmp_path / "ended.json").tables) == {"rate"}
    assert "How fast is ended?" in (tmp_path / "report.html").read_text()


def test_two_runs_are_compared(ask, undrawn, tmp_path):
    ask("sine", "--out", tmp_path)
    data = json.loads((tmp_path / "sine.json").read_text())
    for timing in data["tables"]["rate"]["record"]["cases"][0]["timings"].values():
        timing.update({name: 100 * timing[name] for name in ("median", "lower", "upper", "least")})
    (tmp_path / "sine.json").write_text(json.dumps(data))
    status, said = ask("sine", "--against", tmp_path, "--out", tmp_path / "now")
    assert status == 0
    assert "sine, rate, against the earlier run" in said
    assert said.count(" faster") == 3, "two cells, and their number"
    assert "2 faster, 0 slower, 0 same" in (tmp_path / "now" / "report.html").read_text()


def test_records_are_kept_by_the_kind_of_machine(ask, undrawn, monkeypatch, tmp_path):
    monkeypatch.setattr(environment.os, "cpu_count", lambda: 7)
    monkeypatch.setattr(command, "find_suite", lambda: dataclasses.replace(SUITE, records=tmp_path))
    status, said = ask("sine", "--record")
    assert status == 0
    assert str(tmp_path / "cpu-7core" / "report.html") in said
    assert (tmp_path / "cpu-7core" / "sine.json").exists()


def test_without_names_it_lists_what_there_is(ask):
    status, said = ask()
    assert status == 0
    assert "faults  How fast is faults?" in said
    assert "on this machine's CPU: torch." in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cosine"], "there is no question 'cosine'; there are: sine, faults, ended, links, all"),
        (["sine", "--peers", "torch,nobody"], "there is no peer 'nobody'; there are: torch, other, none"),
        (["links"], "links is not measured on cpu"),
        (["sine", "--against", "nowhere"], "nowhere has nothing to compare with"),
        (["sine", "--device", "cuda"], "there is no NVIDIA GPU here"),
    ],
)
def test_what_cannot_be_measured_is_refused(ask, monkeypatch, arguments, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    status, said = ask(*arguments)
    assert (status, said.count("\n")) == (2, 1)
    assert words in said


@pytest.mark.parametrize(
    ("lacking", "named", "words"),
    [
        ("rich", [], "rich must be installed"),
        ("matplotlib", ["--out", "x"], "matplotlib must be installed for this: pip install 'brickwork[bench]'"),
    ],
)
def test_packages_that_are_missing_are_named(ask, monkeypatch, lacking, named, words):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == lacking else find(name))
    status, said = ask("sine", *named)
    assert status == 2
    assert words in said


def test_files_that_hold_something_else_are_refused(ask, tmp_path):
    (tmp_path / "sine.json").write_text("{}")
    status, said = ask("sine", "--against", tmp_path)
    assert status == 2
    assert "sine.json is not an answer to a question, or is one of another version of brickwork" in said


def test_a_folder_that_cannot_be_written_into_is_refused_before_anything_is_measured(ask, tmp_path):
    (tmp_path / "file").write_text("")
    status, said = ask("sine", "--out", tmp_path / "file")
    assert (status, said.count("\n")) == (2, 1)
    assert f"{tmp_path / 'file'} cannot be written into: File exists" in said


def test_a_run_that_ends_before_its_first_table_says_so(ask, undrawn, monkeypatch, tmp_path):
    def ended(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "ask", ended)
    status, said = ask("sine", "--out", tmp_path)
    assert status == 130
    assert "ended early, before a table was done" in said
    assert not list(tmp_path.iterdir())


def test_peers_are_those_that_were_asked_for():
    assert command._peers(None, SUITE) is None
    assert command._peers("none", SUITE) == frozenset()
    assert command._peers("other,torch", SUITE) == {"other", "torch"}


def test_an_installed_package_says_where_the_measurements_are(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "__file__", str(tmp_path / "lib" / "site" / "brickwork" / "bench" / "command.py"))
    monkeypatch.setattr(sys, "path", [])
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(command.CannotMeasureError, match="run this command in a clone of the repository"):
        command.find_suite()


def test_the_repository_is_measured_from_end_to_end(undrawn, monkeypatch, tmp_path, capsys):
    given = ["brickwork", "bench", "sin", "--small", "--peers", "none", "--seconds", "0.001", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit) as stopped:
        __main__.main()
    assert stopped.value.code == 0, capsys.readouterr().out
    assert (tmp_path / "sin.json").exists()
    assert "brickwork" in (tmp_path / "report.html").read_text()


def test_a_table_at_a_glance(undrawn):
    def times(ours, theirs, measure):
        return {"brickwork": [ours], "torch": [theirs], "copy": [measure], "brickwork, other": [1e-9]}

    table = bench.tabled({1: times(1.0, 2.0, 0.1), 2: times(1.0, 8.0, 0.1)}, title="t")
    found = summary.glance(dataclasses.replace(table, measures=("copy",)))
    assert (found.mean, found.least, found.most, found.rival) == (pytest.approx(4.0), 2.0, 8.0, "torch")
    assert summary.glance(bench.tabled({1: {"torch": [1.0]}}, title="t")) is None
    busy = [dataclasses.replace(table, warnings=(f"the machine is busy (load {load})",)) for load in (7.1, 6.9)]
    text = html_page.page(
        [Findings(question="q", asks="Is it?", tables=dict(zip("ab", busy, strict=True)))], against={}
    )
    assert "Is it?" in text
    assert text.count("the machine is busy") == 1


def test_the_others_beside_brickwork_in_one_row():
    rows = {1: {"brickwork": [1.0], "warp, tuned": [2.0], "mine": [3.0]}, 2: {"brickwork": [1.0], "warp, tuned": [8.0]}}
    table = dataclasses.replace(bench.tabled(rows, title="t"), measures=("mine",))
    found = summary.standing("t", table)
    assert [(mark.system, mark.variant, mark.measure) for mark in found.marks] == [
        ("warp", "tuned", False),
        ("scale", "mine", True),
    ]
    assert [mark.times for mark in found.marks] == pytest.approx([4.0, 3.0])
    assert summary.standing("t", bench.tabled({1: {"torch": [1.0]}}, title="t")) is None
    kinds = {"ms": table, "speed-up": table.measured_in("speed-up"), "MiB": table.measured_in("MiB")}
    drawn = html_page._standings([Findings(question="q", asks="Is it?", tables=kinds)])
    text = base64.b64decode(drawn.partition("base64,")[2].partition("'")[0]).decode()
    assert text.count("<!-- q: ") == 1, "one row for what is shown in several metrics"
    assert html_page._standings([Findings(question="q", asks="Is it?")]) == ""
