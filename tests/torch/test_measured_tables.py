"""What documents show of the measurements is what the records say."""

import dataclasses

import pytest

from benchmarks import headlines, table
from brickwork import bench
from brickwork.bench import plots
from brickwork.bench.question_results import Findings

DOCUMENTS = (
    "README.md",
    "docs/articles.md",
    "docs/guide/measured.md",
    "docs/guide/programs.md",
    "docs/internals/cuda.md",
    "docs/guide/taichi.md",
)


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
    monkeypatch.setattr(plots, "standings", lambda _rows, path, _title: drawn.append(path))
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
    assert "| | brickwork | torch |\n" in readme, "a column for each system, and none that is empty"
    assert "| sine of 4096 x N floats, N = 4096 | 2.00 ms, 0.0164 GB/s | 3.00 x |" in readme
    assert "| first call of timex, cold cache | 300 ms |  |" in readme
    assert "fill_" not in readme.split("measured: begin")[1].split("measured: end")[0]
    text = (copy / "docs/guide/measured.md").read_text()
    for words in (
        "### sin\n\nHow fast?\n\n- bytes: 8 * N",
        "### compile\n\nHow long?",
        "| 4096 | 0.00546 ±0% | **0.0164 ±0%** |",
        "![sines](../images/measured/machine/sin-rate.png)",
        "brickwork: 3.46 x (3.00 x to 4.00 x) as fast as the best other, mostly torch",
        "- bytes: 8 * N",
        "- answers: not compared",
        "- not measured: sin, call: failed: no",
    ):
        assert words in text
    assert text.count("time: of a clock") == 1, "what holds of all tables is said once"
    assert [path.name for path in drawn] == ["headlines.png", "sin-rate.png", "compile-cold.png"]


def test_every_headline_is_in_the_records_of_a_processor():
    said = [row.headline for row in headlines.rows(table.recorded(table.RECORDS / "cpu-2core"))]
    assert said == list(headlines.HEADLINES), "a question, a table or an x has another name"


def test_headlines_have_a_line_for_each_variant_and_say_what_is_faster():
    rows = {"one": {"brickwork": [2e-3], "numba": [8e-3], "numba, tuned": [1e-3], "copy_": [1e-3]}}
    rate = bench.tabled(rows, title="sines", x_name="N", moved="8")
    sin = Findings(question="sin", asks="How fast?", tables={"rate": dataclasses.replace(rate, measures=("copy_",))})
    (row,) = headlines.rows([sin])
    assert headlines.markdown([row]).splitlines()[2:] == [
        "| sine of 4096 x N floats, N = one | 2.00 ms | 4.00 x<br>tuned **0.50 x** | copy_ 0.50 x |"
    ]
    (standing,) = headlines.standings([row])
    assert standing.words == "sine of 4096 x N floats, N = one: 2.00 ms"
    assert [(mark.system, mark.variant, mark.times, mark.measure) for mark in standing.marks] == [
        ("numba", "", 4.0, False),
        ("numba", "tuned", 0.5, False),
        ("scale", "copy_", 0.5, True),
    ]


def test_standings_are_drawn(tmp_path):
    marks = (
        plots.Mark("torch", "FFT", 0.5),
        plots.Mark("numba", "tuned", 3.0),
        plots.Mark("scale", "copy_", 0.9, True),
    )
    plots.standings([plots.Standing("a sum", marks)], tmp_path / "drawn.svg", "beside")
    text = (tmp_path / "drawn.svg").read_text()
    for words in (
        "<!-- a sum -->",
        "<!-- FFT -->",
        "<!-- tuned by hand -->",
        "<!-- for scale: copy_ -->",
        "<!-- beside -->",
    ):
        assert words in text


def test_marks_off_the_limits_of_a_picture_are_arrows_at_its_edges():
    marks = (plots.Mark("torch", "", 1e-9), plots.Mark("numba", "", 3.0), plots.Mark("warp", "", 1e9))
    panel = plots._stood([plots.Standing("a sum", marks)], "beside").axes[0]
    drawn = {line.get_marker(): float(line.get_xdata()[0]) for line in panel.lines if line.get_marker() != "None"}
    assert drawn == {"<": panel.get_xlim()[0], "o": 3.0, ">": panel.get_xlim()[1]}
