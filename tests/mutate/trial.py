"""Tries mutants on tests: a plugin of pytest that takes over once the tests are collected.

Each test runs once, alone, with probes in the marked functions: which conditions it meets with which values, and how
long it takes; those that are named as the functions' modules come first, since time may run out. A mutant then runs on
tests that may notice it, the quick ones and those of `tests/unit` first, in a child forked from the warm process, until
one fails. Nothing has been compiled before the fork, and each child has a disk cache of its own, so no test sees what
another code made.
"""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import math
import os
import shutil
import signal
import sys
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutate import measured
from tests.mutate.children import Task, run
from tests.mutate.measured import Measurement, observed
from tests.mutate.mutants import PROBE, Marked, Mutant, instrumented

GRACE = 30.0
CHILDREN_EACH = 4
EVERY = 20.0
"""Seconds from one record of outcomes to the next."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many children run at once, how much a mutant's tests and the slowest test may take, and when it ends.

    Ends are by the clock of `time.monotonic`; what has begun by then has `GRACE` seconds more.
    """

    jobs: int
    seconds: float
    slowest: float
    measuring: float
    end: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant: by what it was killed, if it was, and how many of the tests that may notice it ran."""

    mutant: Mutant
    killer: str | None
    ran: int
    touching: int


@dataclass(slots=True)
class Trial:
    """The plugin. `functions` are those of the mutants; `record` is called with this every now and then.

    `known` is a file for what tests observed. Tests that `unmeasured` counts judge no mutant of this run.
    """

    source: Path
    functions: list[Marked]
    mutants: list[Mutant]
    limits: Limits
    record: Callable[[Trial], None] = lambda trial: None
    known: Path | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unmeasured: int = 0
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

    def measure(self) -> dict[int, array]:
        """Run each test with probes that no file knows; return what those that pass have seen.

        To fork a process of this size takes longer than many a test, so that foremen share the forking.
        """
        trial = self.trial
        codes = {number: instrumented(item, number) for number, item in enumerate(trial.functions)}
        known = measured.read(trial.known, trial.functions, self.items)
        missing = [at for at in self.by_relevance() if at not in known]
        foremen = max(trial.limits.jobs // CHILDREN_EACH, 1)
        shares = [functools.partial(self.measured, codes, missing[each::foremen]) for each in range(foremen)]
        if foremen == 1:
            known |= shares[0]()
        else:
            run((Task(share, math.inf, lambda found: known.update(found or {})) for share in shares), foremen)
        print(file=sys.stderr)
        measured.write(trial.known, trial.functions, self.items, known)
        trial.unmeasured = len(self.items) - len(known)
        trial.failed += [self.items[at].nodeid for at, each in known.items() if each.state == "failed"]
        passed = {at: each for at, each in known.items() if each.state == "passed" and each.seen}
        self.seconds |= {at: each.seconds for at, each in passed.items()}
        return {at: each.seen for at, each in passed.items()}

    def by_relevance(self) -> list[int]:
        """Return the places of the tests, first those that are named as modules of the functions, then other units."""
        stems = {item.file.stem.strip("_") for item in self.trial.functions}
        own = [any(stem in item.path.stem for stem in stems) for item in self.items]
        unit = ["unit" in item.path.parts for item in self.items]
        return sorted(range(len(self.items)), key=lambda at: (not own[at], not unit[at]))

    def measured(self, codes: dict[int, CodeType], places: Sequence[int]) -> dict[int, Measurement]:
        """Return what `probe` says of some tests, of as many as there is time for."""
        answers: dict[int, Measurement] = {}
        began, limits = time.monotonic(), self.trial.limits

        def tasks() -> Iterator[Task]:
            for at in places:
                left = limits.measuring - time.monotonic()
                if left < 0:
                    return
                folder = self.folder()

                def done(answer: Measurement | None, at: int = at, folder: Path = folder) -> None:
                    shutil.rmtree(folder, ignore_errors=True)
                    if answer is None and time.monotonic() > limits.measuring:
                        return
                    answers[at] = answer or Measurement("failed", 0.0, array("L"))
                    _say(f"measured {len(answers)} of {len(places)} tests, {time.monotonic() - began:.0f} s")

                limit = min(20 * limits.slowest + 60, left + GRACE / 3)
                yield Task(functools.partial(self.probe, codes, at, folder), limit, done)

        run(tasks(), min(limits.jobs, CHILDREN_EACH))
        return answers

    def probe(self, codes: dict[int, CodeType], at: int, folder: Path) -> Measurement:
        """Run a test in a child, and return how it went, how long it took, and what it saw."""
        seen: set[int] = set()
        add = seen.add

        def probe(function: int, number: int, value: Any) -> Any:
            add((function << 16 | number) << 1 | (not not value))
            return value

        setattr(builtins, PROBE, probe)
        for number, code in codes.items():
            self.places[number].__code__ = code
        self.enter(folder)
        began = time.process_time()
        state = self.run(self.items[at], None, self.trial.limits.slowest)
        return Measurement(state, time.process_time() - began, array("L", seen))

    def enter(self, folder: Path) -> None:
        """Give a child a folder of its own for all that tests write."""
        self.items[0].config._tmp_path_factory._basetemp = folder

    def folder(self) -> Path:
        self.made += 1
        folder = self.scratch / f"{os.getpid()}-{self.made}"
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

    def try_out(self, seen: dict[int, array]) -> None:
        """Run all mutants, and note what became of them."""
        noticing: dict[int, array] = defaultdict(functools.partial(array, "L"))
        for at, probes in seen.items():
            for probe in probes:
                noticing[probe].append(at)
        numbers = {(item.file, item.name): number for number, item in enumerate(self.trial.functions)}
        killers: dict[int, Counter[int]] = defaultdict(Counter)
        began, total = time.monotonic(), len(self.trial.mutants)
        outcomes, recorded = self.trial.outcomes, began

        def tasks() -> Iterator[Task]:
            for mutant in self.trial.mutants:
                left = self.trial.limits.end - time.monotonic()
                if left < 0:
                    return
                number = numbers[mutant.function.file, mutant.function.name]
                probe, value = mutant.probe
                values = (True, False) if value is None else (value,)
                touching = {at for value in values for at in noticing[observed(number, probe, value)]}
                chosen = self.chosen(touching, killers[number], mutant.function.file.stem)
                folder = self.folder()

                def done(answer: Any, mutant=mutant, chosen=chosen, folder=folder, number=number, touching=touching):
                    nonlocal recorded
                    shutil.rmtree(folder, ignore_errors=True)
                    if answer is None and time.monotonic() > self.trial.limits.end:
                        return
                    killer: str | None = "crash" if answer is None else None
                    if isinstance(answer, int) and answer >= 0:
                        killers[number][answer] += 1
                        killer = self.items[answer].nodeid
                    outcomes.append(Outcome(mutant, killer, len(chosen), len(touching)))
                    alive = sum(item.killer is None for item in outcomes)
                    _say(f"{len(outcomes)} of {total} mutants, {alive} alive, {time.monotonic() - began:.0f} s")
                    if time.monotonic() > recorded + EVERY:
                        self.trial.record(self.trial)
                        recorded = time.monotonic()

                limit = min(10 * sum(map(self.patience, chosen)) + 60, left + GRACE)
                yield Task(functools.partial(self.attack, mutant, number, chosen, folder), limit, done)

        run(tasks(), self.trial.limits.jobs)
        print(file=sys.stderr)

    def chosen(self, touching: set[int], killers: Counter[int], module: str) -> list[int]:
        """Return the tests to run, what killed others of the function first, then what is for its module."""
        own = {at for at in touching if module.strip("_") in self.items[at].path.stem}
        unit = {at for at in touching if "unit" in self.items[at].path.parts}
        order = sorted(touching, key=lambda at: (-killers[at], at not in own, at not in unit, self.seconds[at]))
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
