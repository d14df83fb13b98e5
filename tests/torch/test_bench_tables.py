"""What the harness makes of times: files that are read back, views, plots, and two runs beside each other."""

import csv
import dataclasses
import io
import json
import math
import os

import pytest

from brickwork import bench
from brickwork.bench import environment, plots, views
from support.timed_tables import ROWS, table_of, timed

QUICK = {"seconds": 0.02, "precision": math.inf}


# ---------------------------------------------------------------- files and views


def test_a_table_is_read_back_as_it_was(tmp_path):
    table = table_of(ROWS, styles={"torch": ("blue", "-")}, peaks={"copy": 1e9}, warnings=("busy",), x_log=True)
    assert bench.Table.load(table.save(tmp_path / "new" / "sine.json")) == table


@pytest.mark.parametrize("text", ["{}", "[1]", "not JSON {", '{"format": 1}', "NEWER"])
def test_what_is_no_table_is_refused(tmp_path, text):
    newer = table_of(ROWS).data()
    newer["record"]["weather"] = "sunny"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(newer) if text == "NEWER" else text)
    with pytest.raises(ValueError, match=r"other\.json is not a table, or is one of another version of brickwork"):
        bench.Table.load(other)


def test_csv_has_a_line_for_each_cell(tmp_path):
    rows = list(csv.DictReader(io.StringIO(table_of(ROWS).save(tmp_path / "sine.csv").read_text())))
    assert [(row["N"], row["line"], float(row["ms"]), float(row["median"])) for row in rows] == [
        ("1000", "torch", 2.0, 2e-3),
        ("1000", "brickwork", 1.0, 1e-3),
        ("4000", "torch", 8.0, 8e-3),
        ("4000", "brickwork", 2.0, 2e-3),
    ]


def test_markdown_and_html_say_what_the_terminal_says(tmp_path):
    table = table_of(ROWS, protocol={"threads": "2"})
    text = table.save(tmp_path / "sine.md").read_text()
    assert "| N | torch | brickwork |" in text
    assert "| 4000 | 8.00 ±1% | **2.00 ±1%** |" in text
    page = table.save(tmp_path / "sine.html").read_text()
    assert "2.00 ±1%" in page
    assert "data:image/png;base64," in page
    assert "4000   8.00 ±1%    2.00 ±1%" in str(table)
    for shown in (text, page, str(table)):
        assert "threads: 2" in shown
        assert "abc" in shown


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
@pytest.mark.parametrize("words", [False, True])
def test_tables_are_drawn(tmp_path, suffix, begins, words):
    rows = {name: ROWS[x] for name, x in zip("ab", ROWS, strict=True)} if words else ROWS
    table = dataclasses.replace(table_of(ROWS), x_values=tuple(rows), x_log=True, y_log=True, peaks={"copy": 1e9})
    assert table.save(tmp_path / f"sine.{suffix}").read_bytes().startswith(begins)


def test_a_single_point_is_seen_and_a_table_without_any_is_drawn(tmp_path, recwarn):
    one = bench.tabled({3: {"copy_": [1e-3], "a": [2e-3]}}, title="one")
    one = dataclasses.replace(one, measures=("copy_",))
    marks = {line.get_label(): line.get_markersize() for line in plots._drawn(one._curves(), one._axes()).axes[0].lines}
    assert marks["copy_"] > 0
    bench.tabled({3: {"a": "failed: no device"}}, title="none").plot(tmp_path / "none.png")
    assert not recwarn.list


def test_words_below_bars_have_room_and_bounds_go_across_them():
    rows = {f"{number} a rather long name": {"a": [1e-3], "copy_": [2e-3]} for number in range(11)}
    table = dataclasses.replace(bench.tabled(rows, title="t"), measures=("copy_",))
    panel = plots._drawn(table._curves(), table._axes()).axes[0]
    lines = [line for label in panel.get_xticklabels() for line in label.get_text().split("\n")]
    assert len(lines) > 22
    assert max(map(len, lines)) < 10
    (bound,) = [each for each in panel.collections if each.get_label() == "copy_"]
    assert next(segment[:, 0].tolist() for segment in bound.get_segments()) == pytest.approx([-0.42, 0.42])


@pytest.mark.parametrize(("most", "labels"), [(3.0, {"1", "1.5", "2", "3"}), (30.0, {"1", "2", "5", "10", "20"})])
def test_logarithmic_axes_are_labelled_in_steps_that_fit(most, labels):
    table = table_of({1: {"torch": 1e-3, "brickwork": most * 1e-3}, 2: {"torch": 1e-3, "brickwork": 1e-3}}, y_log=True)
    figure = plots._drawn(table._curves(), table._axes())
    figure.draw_without_rendering()
    assert labels <= {label.get_text() for label in figure.axes[0].get_yticklabels()}


def test_variants_of_a_system_have_its_colour():
    names = ("brickwork", "brickwork, fast", "triton, blocks", "triton, rows", "torch", "other", "CUDA C++")
    looks = plots._looks([plots.Curve(name, (1,), (1.0,)) for name in names])
    ours, fast, blocks, rows, torchs, other, _ = looks
    assert ours.width > fast.width > rows.width
    assert blocks.colour == rows.colour
    assert blocks.kind != rows.kind
    assert len({look.colour for look in (ours, fast, blocks, torchs, other)}) == 5
    alone = plots._looks([plots.Curve("triton", (1,), (1.0,))])
    assert alone[0].colour == blocks.colour, "in every plot the same one"


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"not '\.txt'"):
        table_of(ROWS).save(tmp_path / "sine.txt")


def test_markup_in_labels_is_text():
    sheet = views.Sheet(title="a<b>", headings=("x|y", "[red]"), rows=((views.Cell("1"), views.Cell("<i>")),))
    assert "&lt;i&gt;" in views.html(sheet)
    assert "x\\|y" in views.markdown(sheet)
    assert "[red]" in views.plain(sheet)


def test_work_of_others_is_told(monkeypatch, tmp_path):
    stat = tmp_path / "stat"
    monkeypatch.setattr(environment, "_STAT", stat)
    assert environment.spent() is None
    assert environment.warnings_for("cpu", None) == ()
    second = os.sysconf("SC_CLK_TCK")

    def spent(user, system, idle, steal):
        stat.write_text(
            f"cpu  {user * second} 0 {system * second} {idle * second} 0 0 0 {steal * second} 0 0\ncpu0 1\n"
        )
        return environment.spent()

    before = spent(10, 2, 50, 0)
    assert before.everyone == 12
    since = dataclasses.replace(before, own=before.own - 4, clock=before.clock - 10)
    spent(13, 3, 60, 0)
    assert environment.taken_by_others(since) < 0.1, "all was this process's"
    assert not [text for text in environment.warnings_for("cpu", since) if "busy" in text]
    spent(1000, 3, 60, 5)
    assert any("the machine was busy: others took" in text for text in environment.warnings_for("cpu", since))
    assert not environment.warnings_for("cuda", since)


def test_wide_tables_are_cut_between_columns(monkeypatch):
    names = [f"contender number {number}" for number in range(9)]
    sheet = views.Sheet(
        title="t", headings=("x", *names), rows=((views.Cell("1024"), *(views.Cell(name[::-1]) for name in names)),)
    )
    for width in (40, 80, 140):
        monkeypatch.setattr(views, "_WIDTH", width)
        lines = views.plain(sheet).splitlines()
        assert max(map(len, lines)) <= width
        assert all(sum(name[::-1] in line for line in lines) == 1 for name in names), "no cell is cut or left out"
        assert sum(line.split()[:1] == ["1024"] for line in lines) == sum("x" in line.split() for line in lines) > 1


# ---------------------------------------------------------------- against an earlier run


def test_two_runs_are_compared_cell_by_cell():
    now = table_of({1000: {"torch": 2e-3, "brickwork": 0.5e-3}, 4000: {"torch": 8.1e-3, "brickwork": 3e-3}})
    changes = now.against(table_of(ROWS))
    assert changes.cell(1000, "brickwork").verdict == "faster"
    assert changes.cell(1000, "brickwork").ratio == pytest.approx(0.5)
    assert changes.cell(4000, "brickwork").verdict == "slower"
    assert changes.cell(4000, "torch").verdict == "same"
    assert not changes.missing
    assert not changes.remarks
    assert "1 faster, 1 slower, 2 same." in str(changes)
    assert "0.50 ± 0.02 faster" in changes.markdown()
    assert "0.50 ± 0.02 faster" in changes._repr_html_()


def test_a_change_within_the_spread_is_none():
    wide = bench.Change(x=1, line="a", now=timed(1.2, spread=0.5, samples=9), then=timed(1.0, spread=0.5, samples=9))
    narrow = bench.Change(x=1, line="a", now=timed(1.2), then=timed(1.0))
    assert (wide.verdict, narrow.verdict) == ("same", "slower")


def test_what_only_one_run_has_is_said():
    now = dataclasses.replace(table_of({1000: {"torch": 2e-3, "new": 1e-3}, 9000: {"torch": 1.0}}))
    then = table_of(ROWS)
    then = dataclasses.replace(then, record=dataclasses.replace(then.record, threads=4, machine={"cores": "8"}))
    changes = now.against(then)
    assert [cell.line for cell in changes.cells] == ["torch"]
    assert changes.missing == (
        "N = 9000: only in this run",
        "new: only in this run, N = 1000",
        "N = 4000: only in the earlier run",
        "brickwork: only in the earlier run, N = 1000",
    )
    assert changes.remarks == ("another machine: cores 8 -> 2", "another number of threads: 4 -> 2")


def test_runs_on_another_device_are_told():
    then = table_of(ROWS)
    cases = tuple(dataclasses.replace(case, device="cuda") for case in then.record.cases)
    then = dataclasses.replace(then, record=dataclasses.replace(then.record, cases=cases))
    assert table_of(ROWS).against(then).remarks == ("another device: cuda -> cpu",)
