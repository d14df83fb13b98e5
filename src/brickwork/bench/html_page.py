"""A run of the questions as one HTML page that stands for itself: plots, tables, the machine, how it was measured.

What is said of every table alike stands once, at the top. Nothing is loaded from anywhere.
"""

from __future__ import annotations

import base64
import html as markup
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from brickwork.bench import plots
from brickwork.bench.compare_runs import Changes
from brickwork.bench.question_results import Findings, common
from brickwork.bench.record import Record
from brickwork.bench.summary import glance, standing
from brickwork.bench.table import COUNTS, Table
from brickwork.bench.table_text import machine_of, versions_of
from brickwork.bench.views import Cell, Rows, Sheet

_STYLE = Path(__file__).with_name("page.css")
_OURS = "brickwork"
_NUMBER = re.compile(r"[\d.]+")
Compared = Mapping[str, Mapping[str, Changes]]
"""How the tables of questions differ from an earlier run."""


def write(
    found: Sequence[Findings], folder: Path, *, against: Compared | None = None, skipped: Sequence[str] = ()
) -> Path:
    """Write the plots of all tables into a folder, and `report.html`, which has them in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for findings in found:
        for name, table in findings.tables.items():
            table.plot(folder / f"{findings.question}-{_file_name(name)}.png")
    path = folder / "report.html"
    path.write_text(page(found, against=against or {}, skipped=skipped), encoding="utf-8")
    return path


def page(found: Sequence[Findings], *, against: Compared, skipped: Sequence[str] = ()) -> str:
    """Return the report as HTML."""
    tables = [table for findings in found for table in findings.tables.values()]
    alike = common(tables)
    sections = "\n".join(_section(findings, against.get(findings.question, {}), alike) for findings in found)
    head = _head([table.record for table in tables], alike, skipped)
    return (
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>brickwork, measured</title>\n<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n"
        f"<body>\n<main>\n{head}\n{_troubles(found)}{_glances(found, against)}\n{sections}\n"
        "<footer>Made by <code>python -m brickwork bench</code>. A cell is a median, ± half of what lies between the "
        "quartiles; the best of a row is green.</footer>\n</main>\n</body>\n</html>\n"
    )


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")


def _text(words: object) -> str:
    return markup.escape(str(words), quote=True)


# ---------------------------------------------------------------- the top


def _head(records: Sequence[Record], alike: Mapping[str, str], skipped: Sequence[str]) -> str:
    """Return the title, the machine, the versions, and what holds of all tables."""
    title = "<h1><b>brickwork</b>, measured</h1>"
    if not records:
        return title
    record = records[0]
    commits = ", ".join(dict.fromkeys(each.commit for each in records if each.commit))
    facts = {"versions": versions_of(record), **({"commit": commits} if commits else {}), **alike}
    facts |= {"left out": "; ".join(skipped)} if skipped else {}
    return (
        f"{title}\n<p class='machine'>{_text(machine_of(record))} · {_text(record.date)}</p>\n{_facts(facts, 'card')}"
    )


def _facts(facts: Mapping[str, str], kind: str = "") -> str:
    entries = "".join(f"<dt>{_text(key)}</dt><dd>{_text(value)}</dd>" for key, value in facts.items())
    return f"<dl class='{kind}'>{entries}</dl>" if entries else ""


def _troubles(found: Iterable[Findings]) -> str:
    """Return what falsifies figures of this run; what differs in numbers alone, such as the load, once."""
    said = [text for each in found for table in each.tables.values() for text in table.warnings]
    alike = {_NUMBER.sub("", text): text for text in reversed(said)}
    lines = [f"<p class='warning'>Warning: {_text(text)}. Do not keep these figures.</p>" for text in alike.values()]
    return "".join(lines)


def _glances(found: Iterable[Findings], against: Compared) -> str:
    """Return a table with a line for each table: how brickwork stands, and what changed."""
    rows: list[str] = []
    for findings in found:
        for name, table in findings.tables.items():
            stands = glance(table)
            manner = _manner(stands.mean) if stands else "faint"
            changed = against.get(findings.question, {}).get(name)
            rows.append(
                f"<tr><td><a href='#{_anchor(findings, name)}'>{_text(findings.question)}: {_text(name)}</a></td>"
                f"<td class='word {manner}'>{_text(stands or 'with no rival')}</td>"
                + (f"<td class='word'>{_text(changed.summary() if changed else '')}</td>" if against else "")
                + "</tr>"
            )
    changes = "<th class='word'>against the earlier run</th>" if against else ""
    return (
        "<div class='card scroll'><h3>At a glance</h3><table><thead><tr><th></th>"
        f"<th class='word'>{_OURS} is</th>{changes}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f"{_standings(found)}</div>"
        if rows
        else ""
    )


def _standings(found: Iterable[Findings]) -> str:
    """Return a picture with a row for each table of times: how many times as long as brickwork the others take."""
    rows = [
        row
        for findings in found
        for name, table in findings.tables.items()
        if table.metric not in {*COUNTS, "speed-up"} and (row := standing(f"{findings.question}: {name}", table))
    ]
    title = "How many times as long as brickwork others take, as geometric means over x"
    return f"<figure>{_picture(title, plots.standings_drawing(rows, title))}</figure>" if rows else ""


def _manner(mean: float) -> str:
    return "good" if mean > 1.03 else "bad" if mean < 1 / 1.03 else ""


# ---------------------------------------------------------------- a question


def _anchor(findings: Findings, name: str) -> str:
    return _text(f"{findings.question}-{_file_name(name)}")


def _section(findings: Findings, changes: Mapping[str, Changes], alike: Mapping[str, str]) -> str:
    """Return a question with its tables, and what could not be measured."""
    failures = "".join(f"<p class='failed'>{_text(name)} {_text(why)}</p>" for name, why in findings.failures.items())
    articles = "\n".join(
        f"<article class='card' id='{_anchor(findings, name)}'>{_article(table, changes.get(name), alike)}</article>"
        for name, table in findings.tables.items()
    )
    return (
        f"<section id='{_text(findings.question)}'><h2>{_text(findings.question)}</h2>"
        f"<p class='asks'>{_text(findings.asks)}</p>{failures}{articles}</section>"
    )


def _article(table: Table, changes: Changes | None, alike: Mapping[str, str]) -> str:
    """Return a table with its plot, notes, and how it was measured where that is not common to all."""
    sheet = table.sheet()
    picture = _picture(table.title, table.drawing())
    own = {key: value for key, value in sheet.facts if key not in alike}
    remarks = "".join(f"<li>{_text(remark)}</li>" for remark in sheet.remarks)
    parts = [
        f"<h3>{_text(sheet.title)}</h3>",
        f"<figure>{picture}</figure>",
        _grid(sheet.headings, sheet.rows),
        f"<ul>{remarks}</ul>" if remarks else "",
        _hidden("Host time, launches and memory of a call", _grid(*sheet.details)) if sheet.details else "",
        _changed(changes) if changes else "",
        _hidden("How it was measured", _facts(own)) if own else "",
    ]
    return "".join(parts)


def _picture(title: str, drawing: str) -> str:
    data = base64.b64encode(drawing.encode()).decode("ascii")
    return f"<img alt='{_text(title)}' src='data:image/svg+xml;base64,{data}'>"


def _hidden(title: str, content: str) -> str:
    return f"<details><summary>{_text(title)}</summary>{content}</details>"


def _changed(changes: Changes) -> str:
    sheet: Sheet = changes.sheet()
    said = "".join(f"<li>{_text(text)}</li>" for text in (*sheet.warnings, *sheet.remarks[1:]))
    title = f"Against the earlier run: {changes.summary()}"
    return _hidden(title, _grid(sheet.headings, sheet.rows) + (f"<ul>{said}</ul>" if said else ""))


def _grid(headings: tuple[str, ...], rows: Rows) -> str:
    """Return a table; the columns of brickwork are marked."""
    ours = [heading.startswith(_OURS) for heading in headings]
    head = "".join(
        f"<th class='{'ours' if mark else ''}'>{_text(heading)}</th>"
        for heading, mark in zip(headings, ours, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_cell(cell, mark) for cell, mark in zip(row, ours, strict=True))}</tr>" for row in rows
    )
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(cell: Cell, mark: bool) -> str:
    kinds = " ".join(kind for kind, holds in ((cell.manner, cell.manner != "plain"), ("ours", mark)) if holds)
    value, sign, spread = cell.text.partition(" ±")
    small = f"<small>{_text(sign.strip() + spread)}</small>" if sign else ""
    return f"<td class='{kinds}'>{_text(value)}{small}</td>"
