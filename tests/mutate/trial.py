"""Tries mutants on tests: a plugin of pytest that takes over once the tests are collected.

Each test runs once, alone, with probes in the marked functions: which conditions it meets with which values, and how
long it takes. A mutant then runs on tests that may notice it, the quick ones and those of `tests/unit` first, in a
child forked from the warm process, until one fails. Nothing has been compiled before the fork, and each child has a
disk cache of its own, so no test sees what another code made.
"""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutate.children import Task, run
from tests.mutate.mutants import PROBE, Marked, Mutant, instrumented

Seen = frozenset[tuple[int, int, bool]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many children run at once, how much a mutant's tests, the slowest test and the whole run may take."""

    jobs: int
    seconds: float
    slowest: float
    whole: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant: by what it was killed, if it was, and how many of the tests that may notice it ran."""

    mutant: Mutant
    killer: str | None
    ran: int
    touching: int


@dataclass(slots=True)
class Trial:
    """The plugin. `functions` are those of the mutants; the outcomes are there once pytest has ended."""

    source: Path
    functions: list[Marked]
    mutants: list[Mutant]
    limits: Limits
    outcomes: list[Outcome] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _reports: list[pytest.TestReport] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a part of a test went, in the child that runs it."""
        self._reports.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the mutants in place of the tests."""
        if session.testsfailed:
            raise session.Interrupted("a test file cannot be collected")
        scratch = Path(session.config._tmp_path_factory.getbasetemp())
        places = {number: _function(self.source, item) for number, item in enumerate(self.functions)}
        _forget()
        gc.collect()
        gc.freeze()
        children = _Children(self, session.items, scratch, places)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            children.try_out(children.measure())
        return True


@dataclass(slots=True)
class _Children:
    trial: Trial
    items: list[pytest.Item]
    scratch: Path
    places: dict[int, FunctionType]
    seconds: dict[int, float] = field(default_factory=dict)
    made: int = 0

    def measure(self) -> dict[int, Seen]:
        """Run each test with probes; return what those that pass have seen."""
        codes = {number: instrumented(item, number) for number, item in enumerate(self.trial.functions)}
        seen: dict[int, Seen] = {}
        began = time.monotonic()

        def tasks() -> Iterator[Task]:
            for at in range(len(self.items)):
                folder = self.folder()

                def done(answer: Any, at: int = at, folder: Path = folder) -> None:
                    shutil.rmtree(folder, ignore_errors=True)
                    if answer is None or answer[0] == "failed":
                        self.trial.failed.append(self.items[at].nodeid)
                    elif answer[0] == "passed" and answer[2]:
                        self.seconds[at], seen[at] = answer[1], answer[2]
                    _say(f"measured {at + 1} of {len(self.items)} tests, {time.monotonic() - began:.0f} s")

                slowest = self.trial.limits.slowest
                yield Task(functools.partial(self.probe, codes, at, folder), 20 * slowest + 60, done)

        run(tasks(), self.trial.limits.jobs)
        print(file=sys.stderr)
        return seen

    def probe(self, codes: dict[int, CodeType], at: int, folder: Path) -> tuple[str, float, Seen]:
        """Run a test in a child, and return how it went, how long it took, and what it saw."""
        seen: set[tuple[int, int, bool]] = set()

        def probe(function: int, number: int, value: Any) -> Any:
            seen.add((function, number, bool(value)))
            return value

        setattr(builtins, PROBE, probe)
        for number, code in codes.items():
            self.places[number].__code__ = code
        self.enter(folder)
        began = time.process_time()
        state = self.run(self.items[at], None, self.trial.limits.slowest)
        return state, time.process_time() - began, frozenset(seen)

    def enter(self, folder: Path) -> None:
        """Give a child a folder of its own for all that tests write."""
        self.items[0].config._tmp_path_factory._basetemp = folder

    def folder(self) -> Path:
        self.made += 1
        folder = self.scratch / str(self.made)
        folder.mkdir()
        return folder

    def run(self, item: pytest.Item, following: pytest.Item | None, seconds: float) -> str:
        """Run a test in a child, which ends if the test takes longer than so many seconds of processors."""
        self.trial._reports.clear()
        signal.setitimer(signal.ITIMER_PROF, seconds)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        signal.setitimer(signal.ITIMER_PROF, 0)
        states = {report.outcome for report in self.trial._reports}
        return "failed" if "failed" in states else "skipped" if "skipped" in states else "passed"

    def try_out(self, seen: dict[int, Seen]) -> None:
        """Run all mutants, and note what became of them."""
        noticing: dict[tuple[int, int, bool], list[int]] = defaultdict(list)
        for at, probes in seen.items():
            for probe in probes:
                noticing[probe].append(at)
        numbers = {(item.file, item.name): number for number, item in enumerate(self.trial.functions)}
        killers: dict[int, Counter[int]] = defaultdict(Counter)
        began, total = time.monotonic(), len(self.trial.mutants)
        outcomes = self.trial.outcomes

        def tasks() -> Iterator[Task]:
            for mutant in self.trial.mutants:
                if time.monotonic() - began > self.trial.limits.whole:
                    return
                number = numbers[mutant.function.file, mutant.function.name]
                probe, value = mutant.probe
                values = (True, False) if value is None else (value,)
                touching = {at for value in values for at in noticing[number, probe, value]}
                chosen = self.chosen(touching, killers[number])
                folder = self.folder()

                def done(answer: Any, mutant=mutant, chosen=chosen, folder=folder, number=number, touching=touching):
                    shutil.rmtree(folder, ignore_errors=True)
                    killer: str | None = "crash" if answer is None else None
                    if isinstance(answer, int) and answer >= 0:
                        killers[number][answer] += 1
                        killer = self.items[answer].nodeid
                    outcomes.append(Outcome(mutant, killer, len(chosen), len(touching)))
                    alive = sum(item.killer is None for item in outcomes)
                    _say(f"{len(outcomes)} of {total} mutants, {alive} alive, {time.monotonic() - began:.0f} s")

                limit = sum(map(self.patience, chosen))
                yield Task(functools.partial(self.attack, mutant, number, chosen, folder), 10 * limit + 60, done)

        run(tasks(), self.trial.limits.jobs)
        print(file=sys.stderr)

    def chosen(self, touching: set[int], killers: Counter[int]) -> list[int]:
        """Return the tests to run, in order: what killed others of the function, then what is quick."""
        unit = {at for at in touching if "unit" in self.items[at].path.parts}
        order = sorted(touching, key=lambda at: (-killers[at], at not in unit, self.seconds[at]))
        total, found = 0.0, []
        for at in order:
            total += self.seconds[at]
            if found and total > self.trial.limits.seconds:
                break
            found.append(at)
        return found

    def patience(self, at: int) -> float:
        return 5 * self.seconds[at] + 3

    def attack(self, mutant: Mutant, number: int, chosen: list[int], folder: Path) -> int:
        """Run tests on a mutant in a child; return the one that fails, or -1."""
        self.places[number].__code__ = mutant.code
        self.enter(folder)
        for place, at in enumerate(chosen, 1):
            following = self.items[chosen[place]] if place < len(chosen) else None
            if self.run(self.items[at], following, self.patience(at)) == "failed":
                return at
        return -1


def _function(source: Path, marked: Marked) -> FunctionType:
    """Return the function object that runs a marked function's code."""
    module = importlib.import_module(".".join(marked.file.relative_to(source).with_suffix("").parts))
    found: Any = module
    for part in marked.name.split("."):
        found = vars(found)[part]
    while not isinstance(found, FunctionType) or hasattr(found, "__wrapped__"):
        names = ("__wrapped__", "__func__", "fget", "func")
        found = next(getattr(found, name) for name in names if hasattr(found, name))
    return found


def _forget() -> None:
    """Empty the caches of functions that were filled while modules were imported."""
    for item in gc.get_objects():
        if type(item) is functools._lru_cache_wrapper and str(getattr(item, "__module__", "")).startswith("brickwork"):
            item.cache_clear()


def _say(text: str) -> None:
    print(f"\r{text}   ", end="", file=sys.stderr, flush=True)
