"""`python -m brickwork bench`: asks the questions of the repository's benchmarks, prints their tables, writes a report.

What is measured is in `benchmarks/` of the repository, which an installed package lacks; it is loaded here by its name.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from brickwork.bench import environment, html_page, views
from brickwork.bench.display import Display, shown
from brickwork.bench.question import Question, Run, Suite
from brickwork.bench.question_results import Findings
from brickwork.bench.run_question import ask
from brickwork.bench.table import Table
from brickwork.records import dataclass

if TYPE_CHECKING:
    from rich.console import Group

EXPLANATION = "measure brickwork beside its peers"
DESCRIPTION = "Measure brickwork beside its peers, print tables, and write a report with plots."
_SUITE = "benchmarks.questions"
_USAGE = 2
"""The exit status where nothing was measured, since what was asked for cannot be."""


class CannotMeasureError(Exception):
    """What was asked for cannot be measured here; the message says why, and what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Say what `bench` takes."""
    parser.add_argument("questions", nargs="*", metavar="question", help="their names, or all; none: list them")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="whose time is taken (default: cpu)")
    parser.add_argument(
        "--peers", metavar="a,b", help="the systems beside brickwork, or none (default: all that are installed)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write tables (JSON), plots and report.html")
    parser.add_argument("--record", action="store_true", help="keep them as the repository's records of such a machine")
    parser.add_argument("--against", type=Path, metavar="DIR", help="the --out of an earlier run to compare with")
    parser.add_argument(
        "--seconds", type=float, default=0.5, metavar="S", help="for a contender and case, about (default: 0.5)"
    )
    parser.add_argument("--small", action="store_true", help="sizes of tests: shows that everything runs")


def main(options: argparse.Namespace) -> int:
    """Do what the options ask; return the exit status: 0, 1 where something could not be measured, 2 for nothing."""
    try:
        suite = find_suite()
        if not options.questions:
            print(_listed(suite))  # noqa: T201  # the command is for the terminal
            return 0
        asked = _Asked.of(options, suite)
    except CannotMeasureError as error:
        print(error, file=sys.stderr)  # noqa: T201  # likewise
        return _USAGE
    return _measure(asked)


def find_suite() -> Suite:
    """Return the questions of the repository, which is looked for here and around this package's source."""
    root = Path(__file__).parents[3]
    if importlib.util.find_spec("benchmarks") is None and (root / "benchmarks" / "questions.py").exists():
        sys.path.append(str(root))
    try:
        found: object = importlib.import_module(_SUITE).SUITE
    except ModuleNotFoundError as error:
        if error.name not in {"benchmarks", _SUITE}:
            raise CannotMeasureError(f"the benchmarks need {error.name}: install it first") from error
        found = None
    if not isinstance(found, Suite):
        raise CannotMeasureError(
            "what is measured is in the folder `benchmarks` of brickwork's repository, which an installed package "
            "lacks: run this command in a clone of the repository"
        )
    return found


def _listed(suite: Suite) -> str:
    """Return the questions that there are, and the peers."""
    width = max(map(len, suite.questions))
    lines = [f"  {name:{width}}  {question.asks}" for name, question in suite.questions.items()]
    absent = suite.absent("cpu")
    here = [name for name in suite.peers if name not in absent]
    return "\n".join(
        [
            "Questions, which `python -m brickwork bench NAME ...` answers; `all` asks them all:",
            *lines,
            f"Peers: {', '.join(suite.peers)}; on this machine's CPU: {', '.join(here) or 'none'}.",
        ]
    )


# ---------------------------------------------------------------- what was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A run as it was asked for, once it is known that it can be carried out."""

    questions: tuple[Question, ...]
    run: Run
    out: Path | None
    earlier: Mapping[str, Findings]
    skipped: tuple[str, ...]
    """In words what is left out."""

    @staticmethod
    def of(options: argparse.Namespace, suite: Suite) -> _Asked:
        """Check the options, and return what they ask for."""
        run = Run(
            device=options.device, peers=_peers(options.peers, suite), seconds=options.seconds, small=options.small
        )
        _refuse(run, writes=options.record or options.out is not None)
        recorded = suite.records / environment.machine(run.device) if options.record and suite.records else None
        out = recorded or options.out
        chosen = _chosen(options.questions, suite)
        here = tuple(each for each in chosen if run.device in each.devices)
        if not here:
            raise CannotMeasureError(f"{chosen[0].name} is not measured on {run.device}")
        absent = suite.absent(run.device)
        earlier = _earlier(options.against, here)
        if out is not None:
            _make(out)
        return _Asked(
            questions=here,
            run=run,
            out=out,
            earlier=earlier,
            skipped=(
                *(f"{each.name} is not measured on {run.device}" for each in chosen if each not in here),
                *_without({name: why for name, why in absent.items() if run.wants(name)}),
            ),
        )


def _without(absent: Mapping[str, str]) -> tuple[str, ...]:
    """Say which peers are left out, and why."""
    said = ", ".join(f"{name} ({why})" for name, why in absent.items())
    return (f"without {said}",) if said else ()


def _refuse(run: Run, *, writes: bool) -> None:
    """Refuse a run that cannot be carried out here."""
    if run.device == "cuda" and not torch.cuda.is_available():
        raise CannotMeasureError("there is no NVIDIA GPU here that PyTorch can use: torch.cuda.is_available() is False")
    if run.seconds <= 0:
        raise CannotMeasureError(f"--seconds is {run.seconds:g}; it must be more than 0")
    needed = ("rich", *(("matplotlib",) if writes else ()))
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise CannotMeasureError(f"{' and '.join(missing)} must be installed for this: pip install 'brickwork[bench]'")


def _make(folder: Path) -> None:
    """Make the folder that is written into before anything is measured; refuse one that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CannotMeasureError(f"{folder} cannot be written into: {error.strerror}") from error


def _chosen(names: Iterable[str], suite: Suite) -> tuple[Question, ...]:
    if "all" in names:
        return tuple(suite.questions.values())
    for name in names:
        if name not in suite.questions:
            raise CannotMeasureError(f"there is no question {name!r}; there are: {', '.join(suite.questions)}, all")
    return tuple(question for name, question in suite.questions.items() if name in names)


def _peers(said: str | None, suite: Suite) -> frozenset[str] | None:
    if said is None:
        return None
    names = frozenset(said.split(",")) - {"none", ""}
    for name in sorted(names - {*suite.peers}):
        raise CannotMeasureError(f"there is no peer {name!r}; there are: {', '.join(suite.peers)}, none")
    return names


def _earlier(folder: Path | None, questions: Iterable[Question]) -> dict[str, Findings]:
    """Return what an earlier run found of these questions."""
    if folder is None:
        return {}
    paths = {each.name: folder / f"{each.name}.json" for each in questions}
    try:
        found = {name: Findings.load(path) for name, path in paths.items() if path.exists()}
    except ValueError as error:
        raise CannotMeasureError(str(error)) from error
    if not found:
        raise CannotMeasureError(f"{folder} has nothing to compare with: no {' nor '.join(map(str, paths.values()))}")
    return found


# ---------------------------------------------------------------- the run


def _measure(asked: _Asked) -> int:
    """Measure, print and write; what is done is kept where the user ends the run. Return the exit status."""
    found: dict[str, Findings] = {}
    tables = sum(len(question.tables(asked.run)) for question in asked.questions)
    with shown(tables) as display:
        for text in asked.skipped:
            display.print(text, style="dim")
        ended = _ended_early(asked, found, display)
        display.tell("writing the report")
        status = _concluded(asked, found, display)
    return 130 if ended else status


def _ended_early(asked: _Asked, found: dict[str, Findings], display: Display) -> bool:
    """Answer the questions one after the other; return whether the user ended the run before."""
    said: set[tuple[str, str]] = set()
    try:
        for question in asked.questions:
            display.print(f"\n{question.name}: {question.asks}", style="bold")
            _answer(question, asked, display, found, said)
    except KeyboardInterrupt:
        display.print("ended early" if found else "ended early, before a table was done", style="bold yellow")
        return True
    return False


def _answer(
    question: Question, asked: _Asked, display: Display, found: dict[str, Findings], said: set[tuple[str, str]]
) -> None:
    """Measure the tables of a question, print each, and keep what there is after each."""
    run = asked.run.watched(display.tell, display.advance)
    for findings, table in ask(question, run, lambda name: display.tell(f"{question.name}, {name}")):
        found[question.name] = findings
        if asked.out is not None:
            findings.save(asked.out)
        if table is not None:
            display.print(_shown(table, said))
        display.finish()


def _shown(table: Table, said: set[tuple[str, str]]) -> Group:
    """Return a table as it is printed, without what was said before."""
    sheet = table.sheet()
    new = tuple(fact for fact in sheet.facts if fact not in said)
    subtitle = "" if ("", sheet.subtitle) in said else sheet.subtitle
    said.update((*new, ("", sheet.subtitle)))
    return views.renderable(replace(sheet, facts=new, subtitle=subtitle))


def _concluded(asked: _Asked, found: dict[str, Findings], display: Display) -> int:
    """Say what changed since the earlier run, write plots and the report, and say what could not be measured."""
    changes = {name: findings.against(asked.earlier[name]) for name, findings in found.items() if name in asked.earlier}
    for name, each in changes.items():
        for part, change in each.items():
            display.print(f"\n{name}, {part}, against the earlier run", style="bold")
            display.print(views.renderable(change.sheet()))
    if asked.out is not None and found:
        html_page.write([*found.values()], asked.out, against=changes, skipped=asked.skipped)
        display.print(f"\nwrote {asked.out / 'report.html'}, and the tables and plots beside it")
    elif found:
        display.print("\nnothing was written; --out DIR keeps tables, plots and a report", style="dim")
    troubles = [text for findings in found.values() for text in findings.troubles()]
    for text in troubles:
        display.print(f"NOT MEASURED {text}", style="bold red")
    return 1 if troubles else 0
