"""What documents show of the measurements is what the records say."""

import dataclasses

import pytest

from benchmarks import table
from brickwork import bench
from brickwork.bench.findings import Findings

DOCUMENTS = ("README.md", "docs/guide/measured.md", "docs/guide/programs.md")


@pytest.fixture
def copied(monkeypatch, tmp_path):
    """Write to copies of the documents, and draw nothing."""
    for name in DOCUMENTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((table.ROOT / name).read_text())
    drawn = []
    root = table.ROOT
    monkeypatch.setattr(table, "ROOT", tmp_path)
    monkeypatch.setattr(table, "IMAGES", tmp_path / "images")
    monkeypatch.setattr(bench.Table, "plot", lambda _, path: drawn.append(path))
    return root, tmp_path, drawn


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_show_the_records(copied, name):
    root, copy, _ = copied
    table.main()
    assert (copy / name).read_text() == (root / name).read_text(), "run `make table`"


def test_answers_to_questions_are_shown(copied, monkeypatch):
    _, copy, drawn = copied
    monkeypatch.setattr(table, "RECORDS", copy / "results")
    monkeypatch.setattr(table, "QUESTIONS", ("sin", "compile"))
    rows = {512: {"torch": [4e-3, 4e-3], "brickwork": [1e-3, 1e-3]}, 4096: {"torch": [6e-3], "brickwork": [2e-3]}}
    rate = bench.tabled(rows, "GB/s", title="sines", moved="8 * N", protocol={"time": "of a clock"})
    calls = bench.tabled({"timex": {"brickwork": [0.3]}}, title="first calls", x_name="kernel")
    calls = dataclasses.replace(calls, protocol={**rate.protocol, "answers": "not compared"})
    sin = Findings(question="sin", asks="How fast?", tables={"rate": rate}, failures={"call": "failed: no"})
    sin.save(copy / "results" / "machine")
    Findings(question="compile", asks="How long?", tables={"cold": calls}).save(copy / "results" / "machine")
    table.write_measured()
    readme = (copy / "README.md").read_text()
    assert "| sine, N = 4096 | 2.00 ms, 0.0164 GB/s | torch 3.00 x |" in readme
    assert "| first call, cold cache, kernel = timex | 300 ms |  |" in readme
    assert "fill_" not in readme.split("measured: begin")[1].split("measured: end")[0]
    text = (copy / "docs/guide/measured.md").read_text()
    for words in (
        "### sin: How fast?",
        "### compile: How long?",
        "| 4096 | 0.00546 ±0% | **0.0164 ±0%** |",
        "![sines](../images/measured/machine/sin-rate.png)",
        "brickwork: 3.46 x (3.00 x to 4.00 x) as fast as the best other, mostly torch",
        "- bytes: 8 * N",
        "- answers: not compared",
        "- not measured: sin, call: failed: no",
    ):
        assert words in text
    assert text.count("time: of a clock") == 1, "what holds of all tables is said once"
    assert [path.name for path in drawn] == ["sin-rate.png", "compile-cold.png"]
