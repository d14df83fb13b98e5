"""The published kernels beside the operators: whether they agree, how long each takes, and what came of it in a record.

Each contender has a process of its own (`worker.py`), asked in turns within a case. One that takes longer for a request
than there is patience for is ended, which is said in the case's notes, and the others go on.
"""

from __future__ import annotations

import json
import math
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch

from benchmarks.published import PUBLISHED
from benchmarks.published.operator import Published
from benchmarks.published.peers import PEERS
from benchmarks.published.worker import FORWARD, GRADIENT, Reply, directions_of
from brickwork.bench.record import Case
from brickwork.bench.timers import Timing, summary

OURS, THEIRS, BASE = "brickwork", "published", "base"
PATIENCE = 30.0
"""Seconds for one request."""
START = 120.0
"""Seconds for the start of a process, which imports torch."""
WARM_UP = 150.0
"""Seconds for compiling all operators at tiny sizes."""
TURNS = 3
SPREAD = 0.2
"""A case with more than this is measured once more."""
TOLERANCE = {torch.float32: 2e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}
"""Differences in terms of the element and of the greatest one: published kernels use fast functions and atomics."""
STRAY = 0.002
"""The part of the elements that may differ: ties, and thresholds that one rounding meets and another does not."""
MEASURED = {
    "cuda": "the device's time of a call between CUDA events, the level-two cache warm, the launches queued before",
    "cpu": "the time of a call on the processor",
}


class EndedError(Exception):
    """A process ended, or was ended."""


class Worker:
    """A contender's process, which is started again when it was ended."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str], patience: float = PATIENCE) -> None:
        """Start no process yet."""
        self._command = [sys.executable, "-m", "benchmarks.published.worker", *arguments]
        self._environment = environment
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._unfit = ""

    def ask(self, patience: float | None = None, **request: Any) -> Reply:
        """Return the reply to a request; raise `EndedError` where there is none in time."""
        if self._process is None:
            self._start()
        return self._reply(request, patience or self._patience)

    def _start(self) -> None:
        """Start a process; one that cannot even start is not tried again."""
        if self._unfit:
            raise EndedError(self._unfit)
        self._process = subprocess.Popen(  # noqa: S603  # the command is this module's own
            self._command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            reply = self._reply({"do": "hello"}, START)
        except EndedError as error:
            reply = {"error": str(error)}
        if "error" in reply:
            self.close()
            self._unfit = f"does not start: {reply['error']}"
            raise EndedError(self._unfit)

    def _reply(self, request: Reply, patience: float) -> Reply:
        assert self._process is not None, "it was started"
        inlet, outlet = self._process.stdin, self._process.stdout
        assert inlet is not None, "it is a pipe"
        assert outlet is not None, "it is a pipe"
        try:
            inlet.write(json.dumps(request).encode() + b"\n")
            inlet.flush()
        except BrokenPipeError:
            self._ended()
        deadline, text = time.monotonic() + patience, b""
        while not text.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([outlet], [], [], left)[0]:
                self.close()
                raise EndedError(f"took over {patience:g} s")
            got = os.read(outlet.fileno(), 1 << 16)
            if not got:
                self._ended()
            text += got
        return json.loads(text)

    def _ended(self) -> None:
        assert self._process is not None, "it was started"
        code = self._process.wait()
        self._process = None
        raise EndedError(f"the process ended with {code}")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@dataclass(slots=True)
class Measured:
    """What was found of one case."""

    each: Published
    size: str
    direction: str
    device: str = "cuda"
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    hosts: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    notes: dict[str, str] = field(default_factory=dict[str, str])

    def timing(self, label: str) -> Timing | None:
        """Return how long a contender takes on the device."""
        found = self.seconds.get(label)
        return summary(found, self.calls[label]) if found else None

    def ratio(self, one: str, other: str) -> float | None:
        """Return how many times as long one contender takes as another, where both were timed."""
        times = [self.timing(label) for label in (one, other)]
        return times[0].median / times[1].median if times[0] and times[1] else None

    def case(self) -> Case:
        """Return it as a case of a record."""
        timings = {label: timing for label in self.seconds if (timing := self.timing(label))}
        hosts = {label: summary(found, 10) for label, found in self.hosts.items() if any(found)}
        sizes = getattr(self.each, self.size)
        return Case(
            title=f"{self.each.name}, {self.size}, {self.direction}",
            timings=timings,
            reference=THEIRS if THEIRS in timings else next(iter(timings), ""),
            notes={**self.notes, "sizes": str(sizes), "measured": MEASURED[self.device]},
            device=self.device,
            host=hosts,
        )


@dataclass(slots=True)
class Comparison:
    """The contenders and how they are compared."""

    workers: dict[str, Worker]
    folder: Path
    device: str = "cuda"

    def measure(self, each: Published, size: str, direction: str) -> Measured:
        """Measure one case; once more where the samples of a contender spread."""
        found = Measured(each, size, direction, self.device)
        ready = [label for label in self.workers if self._make(found, label)]
        if size != "large":
            self._check(found, ready)
        self._time(found, ready)
        spread = [label for label in found.seconds if cast("Timing", found.timing(label)).spread > SPREAD]
        if spread:
            found.notes["again"] = f"measured again, {', '.join(spread)} spread over {SPREAD:.0%}"
            found.seconds.clear()
            self._time(found, [label for label in ready if label not in found.notes])
        return found

    def _make(self, found: Measured, label: str) -> bool:
        reply = self._asked(found, label, do="make", name=found.each.name, size=found.size, direction=found.direction)
        if reply is None:
            return False
        if label != THEIRS:
            found.notes[f"{label}, first call"] = f"{reply['first']:.2f} s"
        return True

    def _asked(self, found: Measured, label: str, **request: Any) -> Reply | None:
        """Return a contender's reply, or None and a note of why there is none."""
        try:
            reply = self.workers[label].ask(**request)
        except EndedError as error:
            reply = {"error": str(error)}
        if "error" not in reply:
            return reply
        found.notes[label] = f"failed: {request['do']}: {reply['error']}"
        found.seconds.pop(label, None)
        return None

    def _check(self, found: Measured, ready: list[str]) -> None:
        files = {label: self.folder / f"{label}.pt" for label in ready}
        kept = {label: self._asked(found, label, do="keep", file=str(path)) for label, path in files.items()}
        values = {label: torch.load(files[label]) for label, reply in kept.items() if reply is not None}
        if THEIRS in values and OURS in values:
            why = differences(values[OURS], values[THEIRS], PEERS[found.each.name].tolerance)
            found.notes["agreement"] = why or "the results agree"

    def _time(self, found: Measured, ready: list[str]) -> None:
        for _ in range(TURNS):
            for label in list(ready):
                if len(found.seconds.get(label, [])) and found.seconds[label][-1] > 1:
                    continue
                reply = self._asked(found, label, do="time", host=found.size != "large")
                if reply is None:
                    ready.remove(label)
                    continue
                found.seconds.setdefault(label, []).extend(reply["seconds"])
                found.hosts.setdefault(label, []).append(reply["host"])
                found.calls[label] = reply["calls"]


def differences(ours: list[Any], theirs: list[Any], tolerance: float = 0.0) -> str:
    """Return in which results two contenders differ beyond what is allowed, or nothing."""
    if len(ours) != len(theirs):
        return f"DIFFER: {len(ours)} results beside {len(theirs)}"
    said: list[str] = []
    for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if other is None:
            continue
        if one.shape != other.shape:
            said.append(f"result {place}: {tuple(one.shape)} beside {tuple(other.shape)}")
            continue
        if not one.is_floating_point():
            wrong = one.double() != other.double()
            far = (one.double() - other.double()).abs()
        else:
            allowed = tolerance or max(TOLERANCE.get(each.dtype, 0.0) for each in (one, other))
            one, other = one.double(), other.double()
            alike = (one == other) | (one.isnan() & other.isnan())
            far = torch.where(alike, 0.0, (one - other).abs())
            finite = other[other.isfinite()].abs()
            wrong = ~(far <= allowed * (other.abs() + (finite.max() if finite.numel() else 0.0)))
        part = wrong.double().mean().item() if wrong.numel() else 0.0
        if part > STRAY:
            most = far[~far.isnan()].max().item() if (~far.isnan()).any() else math.nan
            said.append(f"result {place}: {part:.1%} of the elements, by at most {most:.3g}")
    return f"DIFFER: {'; '.join(said)}" if said else ""


def cases(
    names: Sequence[str], sizes: Sequence[str], directions: Sequence[str]
) -> Iterator[tuple[Published, str, str]]:
    """Return the cases of the operators that are named, or of all."""
    for each in PUBLISHED:
        if names and each.name not in names:
            continue
        for size in sizes:
            for direction in directions:
                if direction in directions_of(each.name):
                    yield each, size, direction


def warm(names: Sequence[str], environments: Sequence[dict[str, str]], device: str, jobs: int) -> None:
    """Fill the compiler's cache: tiny inputs of all operators, in processes beside each other."""
    names = names or [each.name for each in PUBLISHED]
    groups = [group for first in range(jobs) if (group := names[first::jobs])]
    command = [sys.executable, "-m", "benchmarks.published.worker", "--device", device, "--warm"]
    quiet = subprocess.DEVNULL
    running = [
        subprocess.Popen([*command, *group], env=environment, stdout=quiet, stderr=quiet)  # noqa: S603  # our own
        for environment in environments
        for group in groups
    ]
    deadline = time.monotonic() + WARM_UP
    for process in running:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def compare(
    names: Sequence[str],
    built: Path | None,
    base: Path | None,
    *,
    sizes: Sequence[str] = ("small", "large"),
    directions: Sequence[str] = (FORWARD, GRADIENT),
    device: str = "cuda",
    seconds: float = 480.0,
    jobs: int = 14,
    patience: float = PATIENCE,
    progress: Callable[[str], None] = print,
    done: Callable[[list[Measured]], None] = lambda _: None,
) -> list[Measured]:
    """Measure cases until all are done or `seconds` have passed; `done` is told of those so far."""
    start = time.monotonic()
    here = dict(os.environ)
    older = {**here, "PYTHONPATH": os.pathsep.join([str(base), here.get("PYTHONPATH", "")])}
    warm(names, [here, older] if base else [here], device, jobs)
    progress(f"compiled in {time.monotonic() - start:.0f} s")
    plain = ["--device", device]
    workers = {OURS: Worker(plain, here, patience)}
    if built is not None:
        workers[THEIRS] = Worker([*plain, "--built", str(built)], here, patience)
    if base is not None:
        workers[BASE] = Worker(plain, older, patience)
    found: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(workers, Path(folder), device)
        try:
            for each, size, direction in cases(names, sizes, directions):
                if time.monotonic() - start > seconds:
                    progress(f"not measured: {each.name}, {size}, {direction}")
                    continue
                found.append(comparison.measure(each, size, direction))
                progress(line(found[-1]))
                done(found)
        finally:
            for worker in workers.values():
                worker.close()
    progress(f"{time.monotonic() - start:.0f} s")
    return found


def line(found: Measured) -> str:
    """Return a case as a line: the times of ours and of the published kernel, their ratio, ours beside the base."""
    words = [f"{found.each.name:22}{found.size:6}{found.direction:9}"]
    for label in (OURS, THEIRS):
        timing = found.timing(label)
        words.append(f"{timing.median * 1e3:10.4f}" if timing else f"{'-':>10}")
    for pair in ((OURS, THEIRS), (OURS, BASE)):
        ratio = found.ratio(*pair)
        words.append(f"{ratio:7.2f}" if ratio else f"{'-':>7}")
    notes = [found.notes[label] for label in (OURS, THEIRS, BASE) if label in found.notes]
    agreement = found.notes.get("agreement", "")
    return "".join(words) + "  " + "; ".join([*notes, *([agreement] if "DIFFER" in agreement else [])])


def summarised(found: Sequence[Measured]) -> list[str]:
    """Return the table, the geometric means by direction and size, and the largest ratios."""
    head = f"{'operator':22}{'size':6}{'':9}{'ours, ms':>10}{'theirs':>10}{'ratio':>7}{'base':>7}"
    lines = [head, *(line(each) for each in found), ""]
    for direction in (FORWARD, GRADIENT):
        for sizes in (("small",), ("large",), ("small", "large")):
            here = [each for each in found if each.direction == direction and each.size in sizes]
            means = [mean([each.ratio(*pair) for each in here]) for pair in ((OURS, THEIRS), (OURS, BASE))]
            lines.append(f"{direction:9} {' and '.join(sizes):16} {means[0]}; beside the base {means[1]}")
        ordered = sorted(
            ((ratio, each) for each in found if each.direction == direction and (ratio := each.ratio(OURS, THEIRS))),
            key=lambda pair: -pair[0],
        )
        worst = ", ".join(f"{each.each.name} {each.size} {ratio:.2f}" for ratio, each in ordered[:6])
        lines.append(f"{direction:9} largest: {worst}")
    return lines


def mean(ratios: Sequence[float | None]) -> str:
    """Return the geometric mean of the ratios that there are, and their number."""
    known = [ratio for ratio in ratios if ratio]
    return f"{statistics.geometric_mean(known):.3f} of {len(known)}" if known else "none"
