"""`python -m benchmarks.table`: write what is shown of the measurements from the records, between marks in documents.

README.md has the headlines (`headlines.py`), docs/guide/measured.md every table of every question with its plot
(docs/images/measured/), docs/guide/programs.md the loop programs, docs/articles.md what three articles published
beside the records (`articles.py`). The registers that kernels take are in `registers.py`, what passes of Taichi's
published tests in `taichi_tests.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import articles, contractions, headlines, loop_programs, registers, taichi_tests
from benchmarks.cuda import programs
from benchmarks.questions import QUESTIONS, RECORDS
from brickwork.bench import plots, views
from brickwork.bench.question_results import Findings, common
from brickwork.bench.record import Record, load, load_all
from brickwork.bench.summary import glance
from brickwork.bench.table import Table
from brickwork.bench.table_text import machine_of

ROOT = Path(__file__).parents[1]
DRAWN = "docs/images/measured"
IMAGES = ROOT / DRAWN
MARKS = {"cpu": "measured", "cuda": "measured on a GPU"}
REGISTERS = "registers"


def recorded(folder: Path) -> list[Findings]:
    """Return what was found on a kind of machine, in the order of the questions."""
    return [Findings.load(path) for name in QUESTIONS if (path := folder / f"{name}.json").exists()]


def tables(findings: Iterable[Findings]) -> list[Table]:
    """Return all tables of questions."""
    return [table for each in findings for table in each.tables.values()]


def shown(found: list[Findings], machine: str) -> str:
    """Return the headlines of a machine, which README.md shows: a picture, which is drawn, and a table."""
    said = list(headlines.rows(found))
    picture = IMAGES / machine / "headlines.png"
    described = named(tables(found)[0].record)
    plots.standings(headlines.standings(said), picture, f"How many times as long as brickwork others take: {described}")
    return "\n".join(
        [
            f"![How many times as long as brickwork others take, on {described}]({DRAWN}/{machine}/{picture.name})",
            "",
            '<details markdown="1">',
            f"<summary>The same in figures: {described}</summary>",
            "",
            headlines.markdown(said),
            "",
            "The others' figures are multiples of brickwork's time; bold is faster than brickwork.",
            "",
            "</details>",
            "",
            about(tables(found)),
        ]
    )


def named(record: Record) -> str:
    """Return the name of the device that was measured."""
    gpu = record.machine.get("gpu") if any(case.device == "cuda" for case in record.cases) else None
    return gpu or f"{record.machine.get('processor', 'CPU')}, {record.machine['cores']} cores"


def about(found: Sequence[Table]) -> str:
    """Return a line on the machine, the versions and the commits that were measured."""
    record = found[0].record
    threads = f"{record.threads} threads; " if all(case.device == "cpu" for case in record.cases) else ""
    commits = ", ".join(dict.fromkeys(table.record.commit for table in found))
    return (
        f"{machine_of(record)}; {threads}{versions(record)}; commit {commits}; {record.date}. "
        "Medians; contenders take turns in one process."
    )


def versions(record: Record) -> str:
    """Return the versions of what was measured with."""
    return ", ".join(f"{name} {version}" for name, version in record.versions.items() if name != "brickwork")


def everything(found: list[Findings], machine: str) -> str:
    """Return all tables of a machine, and draw their plots; what holds of all, or of a question, stands once."""
    every = tables(found)
    alike = common(every)
    lines = [about(every), "", *_facts(alike)]
    for findings in found:
        here = {key: value for key, value in common([*findings.tables.values()]).items() if key not in alike}
        lines += [f"### {findings.question}", "", findings.asks, "", *_facts(here)]
        for name, table in findings.tables.items():
            picture = IMAGES / machine / f"{findings.question}-{name}.png"
            table.plot(picture)
            sheet = table.sheet()
            own = tuple(fact for fact in sheet.facts if fact[0] not in {*alike, *here})
            said = glance(table)
            shown = f"![{table.title}](../images/measured/{machine}/{picture.name})"
            subtitle = f"brickwork: {said}\n\n{shown}" if said else shown
            lines.append(views.markdown(replace(sheet, subtitle=subtitle, facts=own)))
        lines += [f"- not measured: {trouble}" for trouble in findings.troubles()]
    return "\n".join(lines)


def _facts(facts: Mapping[str, str]) -> list[str]:
    """Return what is said of several tables, as a list."""
    return [*(f"- {key}: {value}" for key, value in facts.items()), ""] if facts else []


def write_measured() -> None:
    """Write README.md's and docs/guide/measured.md's tables, of every kind of machine that there are records of."""
    found = {folder.name: recorded(folder) for folder in sorted(RECORDS.iterdir()) if folder.is_dir()}
    for device, mark in MARKS.items():
        here = {name: each for name, each in found.items() if each and device in devices(each)}
        if here:
            write("README.md", mark, "\n\n".join(shown(each, name) for name, each in here.items()))
            full = (everything(each, name) for name, each in here.items())
            write("docs/guide/measured.md", mark, "\n\n".join(full))


def write_articles() -> None:
    """Write the tables beside what three articles published, and draw the ladder."""
    for mark, text in articles.texts().items():
        write(articles.DOCUMENT, mark, text)
    articles.draw(IMAGES / articles.LADDER)


def devices(findings: Iterable[Findings]) -> set[str]:
    """Return the kinds of device whose time was taken."""
    return {case.device for table in tables(findings) for case in table.record.cases}


def write_programs() -> None:
    """Write the tables of the loop programs, each with a line on its machine."""
    on_cpus: list[str] = []
    for path in sorted(RECORDS.glob("*/programs.json")):
        found = load(path)
        machine = f"{found.machine.get('processor', '')}, {found.threads} threads"
        said = f"{machine}; {versions(found)}; commit {found.commit}; {found.date}."
        on_cpus.append(f"{loop_programs.markdown(found.cases)}\n\n{said}")
    on_gpus: list[str] = []
    for path in sorted(RECORDS.glob("*/cuda-programs.json")):
        runs = load_all(path)
        commits = ", ".join(dict.fromkeys(run.commit for run in runs))
        machine = f"{runs[0].machine['gpu']} beside {programs.PROCESSORS} cores of its machine"
        said = f"{machine}; commit {commits}; {runs[0].date}."
        on_gpus.append(f"{programs.markdown([case for run in runs for case in run.cases])}\n\n{said}")
    write("docs/guide/programs.md", "programs", "\n\n".join(on_cpus))
    write("docs/guide/programs.md", "programs on a GPU", "\n\n".join(on_gpus))


def write(document: str, mark: str, text: str) -> None:
    """Put a text between the two marks of a document."""
    path = ROOT / document
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Rewrite what is shown of the records."""
    write_measured()
    if registers.PATH.exists():
        write("docs/guide/measured.md", REGISTERS, registers.markdown(registers.load()))
    if contractions.RECORD.exists():
        found = load_all(contractions.RECORD)[0]
        said = f"{found.machine['gpu']}; {versions(found)}; commit {found.commit}; {found.date}."
        write("docs/internals/cuda.md", "contractions", f"{contractions.markdown(found)}\n\n{said}")
    write_programs()
    write_articles()
    write(taichi_tests.DOCUMENT, taichi_tests.MARK, taichi_tests.markdown(taichi_tests.load()))


if __name__ == "__main__":
    main()
