"""Many cases by several processes: progress, findings as files, and counts of what was tried.

A worker (`work`) examines the seeds that it reads and answers each with a line of JSON. One that dies or hangs is
replaced, and the seed that it was at is a finding: compiled code may do anything where the compiler is wrong.
"""

from __future__ import annotations

import gc
import json
import math
import multiprocessing
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from support.fuzz.case import Case
from support.fuzz.check import FoundError, examine
from support.fuzz.check_contractions import examine_contraction
from support.fuzz.check_gradients import examine_gradients
from support.fuzz.check_grid import examine_gradients_in_pieces, examine_in_pieces
from support.fuzz.check_schedules import examine_schedules
from support.fuzz.check_torch import examine_through_torch
from support.fuzz.contractions import PANELS, TILES, contraction_of_seed
from support.fuzz.findings import write
from support.fuzz.generate import case_of_seed
from support.fuzz.shrink import shrink
from support.fuzz.smooth import smooth_case_of_seed

PATIENCE = 300.0
"""Seconds that one case may take, shrinking included."""
GRACE = 30.0
"""Seconds that cases under way are given when the time of a campaign is over; then they are cut off."""
Examine = Callable[[Case, Path], "Counter[str]"]
Make = Callable[[int], Case]


@dataclass(slots=True)
class Total:
    """What a campaign has seen so far."""

    counts: Counter[str] = field(default_factory=Counter[str])
    findings: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)
    end: float = math.inf
    """When the last case may begin."""


def examiner(device: str, widths: Sequence[int], *, gradients: bool = False, contractions: bool = False) -> Examine:
    """Return what examines a case, or its gradients, for a device; for none, gradients in the interpreter first."""
    if contractions:
        return lambda case, folder: examine_contraction(case, folder, device)
    if gradients and device == "grid":
        return examine_gradients_in_pieces
    if gradients and device:
        return lambda case, folder: examine_through_torch(case, folder, device)
    if gradients:
        return examine_gradients
    if device == "cuda":
        from support.fuzz.check_cuda import examine_on_cuda  # torch starts CUDA there

        return examine_on_cuda
    if device == "grid":
        return examine_in_pieces
    if device == "schedules":
        return examine_schedules
    return lambda case, folder: examine(case, folder, widths=widths)


def maker(device: str, *, gradients: bool, contractions: bool = False) -> Make:
    """Return what writes the program of a seed: contractions are small where no GPU runs them."""
    if contractions:
        return lambda seed: contraction_of_seed(seed, TILES if device == "cuda" else PANELS)
    return smooth_case_of_seed if gradients else case_of_seed


def kind_of(case: Case, folder: Path, check: Examine) -> tuple[str, str, Counter[str]]:
    """Examine a case; return what kind of finding it is ("" for none), the words, and what was counted."""
    try:
        return "", "", check(case, folder)
    except FoundError as error:
        return error.kind, str(error), Counter(programs=1)
    except Exception as error:
        return type(error).__name__, f"{type(error).__name__}: {error}", Counter(programs=1)


def apart(case: Case, folder: Path, check: Examine) -> tuple[str, str, Counter[str]]:
    """Examine a case as `kind_of` does, in a process of its own, whose end is a finding, too."""
    end, begin = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=lambda: begin.send(kind_of(case, folder, check)), daemon=True
    )
    process.start()
    begin.close()
    try:
        answer = end.recv() if end.poll(PATIENCE) else ("hang", "", Counter(programs=1))
    except EOFError:
        process.join()
        answer = f"crash {process.exitcode}", f"the process ended: {process.exitcode}", Counter(programs=1)
    process.kill()
    return answer


def work(seeds: TextIO, answers: TextIO, out: Path, check: Examine, make: Make, patience: float) -> None:
    """Examine the seeds of the lines of `seeds`; write an answer for each.

    The first finding of each kind is made smaller for so many seconds.
    """
    known: set[str] = set()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # with the usual thresholds, a tenth of the time goes to collections
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for line in seeds:
            case = make(int(line))
            kind, text, counts = kind_of(case, folder, check)
            found = ""
            if kind:
                found = str(write(case, out / "unshrunk", kind, text))
                if kind not in known:
                    small = shrink(case, lambda smaller: kind_of(smaller, folder, check)[0] == kind, patience)
                    found = str(write(small, out, kind, kind_of(small, folder, check)[1]))
                known.add(kind)
            print(json.dumps({"seed": case.seed, "found": found, "counts": counts}), file=answers, flush=True)


class _Worker:
    """A process that examines seeds one after another; it is replaced when it dies."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: Any = None
        self._lines: queue.Queue[str] = queue.Queue()

    def ask(self, seed: int, end: float = math.inf) -> dict[str, Any] | str:
        """Return the answer for a seed, or how the process ended; after `end` it is not waited for much longer."""
        process = self._process = self._process or self._start()
        process.stdin.write(f"{seed}\n")
        process.stdin.flush()
        left = max(end - time.monotonic(), 0.0) + GRACE
        try:
            line = self._lines.get(timeout=min(PATIENCE, left))
        except queue.Empty:
            process.kill()
            process.wait()
            self._process = None
            return "hang" if left > PATIENCE else "cut off"
        if line:
            return json.loads(line)
        self._process = None
        return f"crash {process.wait()}"

    def end(self) -> None:
        """Let the process finish."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()

    def _start(self) -> Any:
        process: Any = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        lines = self._lines = queue.Queue[str]()

        def read() -> None:
            for line in process.stdout:
                lines.put(line)
            lines.put("")

        threading.Thread(target=read, daemon=True).start()
        return process


def run(
    seeds: range,
    workers: int,
    out: Path,
    command: Callable[[int], Sequence[str]],
    make: Make = case_of_seed,
    seconds: float = math.inf,
) -> Total:
    """Examine all seeds with workers started by `command`, which is told the worker's number.

    None is begun after so many seconds.
    """
    total = Total(end=time.monotonic() + seconds)
    waiting: queue.Queue[int] = queue.Queue()
    for seed in seeds:
        waiting.put(seed)
    threads = [
        threading.Thread(target=_serve, args=(_Worker(command(number)), waiting, total, out, make))
        for number in range(workers)
    ]
    for thread in threads:
        thread.start()
    begin = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        _progress(total, len(seeds), begin)
        for thread in threads:
            thread.join(timeout=2.0 / len(threads))
    _progress(total, len(seeds), begin)
    print(file=sys.stderr)
    return total


def _serve(worker: _Worker, waiting: queue.Queue[int], total: Total, out: Path, make: Make) -> None:
    while True:
        try:
            seed = waiting.get_nowait()
        except queue.Empty:
            break
        if time.monotonic() > total.end:
            break
        answer = worker.ask(seed, total.end)
        with total.lock:
            if answer == "cut off":
                total.counts["cut off"] += 1
            elif isinstance(answer, str):
                total.counts["programs"] += 1
                total.findings.append(str(write(make(seed), out, answer, f"the process ended: {answer}")))
            else:
                total.counts.update(answer["counts"])
                total.findings += [answer["found"]] if answer["found"] else []
    worker.end()


def _progress(total: Total, count: int, begin: float) -> None:
    done, seconds = total.counts["programs"], time.monotonic() - begin
    rate = done / max(seconds, 1.0)
    text = f"{done}/{count} programs, {len(total.findings)} findings, {seconds:.0f} s, {rate:.1f} a second"
    end = "" if sys.stderr.isatty() else "\n"
    if sys.stderr.isatty() or done == count or int(seconds) % 20 < 2:
        print(f"\r{text}" if not end else text, end=end, file=sys.stderr, flush=True)


def report(total: Total, seconds: float) -> str:
    """Return the counts as a table, and the findings."""
    lines = [f"{name:40} {count:>9}" for name, count in sorted(total.counts.items())]
    failed = total.counts["IndexErrors agreed upon"]
    what = f"{total.counts['programs']} programs in {seconds:.0f} s, {total.counts['compared']} compared"
    lines += ["", f"{what}, {failed} IndexErrors agreed upon, {len(total.findings)} findings"]
    return "\n".join((*lines, *sorted(total.findings)))
