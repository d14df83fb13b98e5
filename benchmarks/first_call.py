"""The first call of a new operator with a cold and a warm cache, and the import; each in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.contenders import Progress
from brickwork.bench.record import Case
from brickwork.bench.timers import summary

_FIRST_CALL = """
import time, torch
from brickwork import ops
x = {arguments}
torch.empty(2) * 2
start = time.perf_counter()
ops.{name}(*x)
print(time.perf_counter() - start)
"""

_IMPORT = """
import time, torch
start = time.perf_counter()
import brickwork
print(time.perf_counter() - start)
"""

_OPERATORS = {
    "sin": "(torch.randn(16),)",
    "timex": "(torch.randn(2, 8), torch.randn(2, 2, 8), 0.1)",
    "brick_pad": "(torch.randn(4, 6), 20, 30, [4, 2], [6, 0], [2, 4])",
    "sample_normal": "(torch.randn(4), torch.rand(4), 8)",
}


def cases(progress: Progress, *, rounds: int = 5) -> list[Case]:
    """Return the first calls of the ready operators, and the import beyond torch's."""
    found = [_first_call(name, arguments, rounds, progress) for name, arguments in _OPERATORS.items()]
    progress("import")
    seconds = [seconds_of(_IMPORT, "") for _ in range(rounds)]
    target = "0.15 s beyond torch"
    timings = {"brickwork": summary(seconds, 1)}
    return [*found, Case(title="import beyond torch", timings=timings, reference="brickwork", target=target)]


def _first_call(name: str, arguments: str, rounds: int, progress: Progress) -> Case:
    program = _FIRST_CALL.format(name=name, arguments=arguments)
    cold: list[float] = []
    warm: list[float] = []
    for number in range(rounds):
        progress(f"first call of {name}: round {number + 1} of {rounds}")
        with tempfile.TemporaryDirectory() as folder:
            cold.append(seconds_of(program, folder))
            warm.append(seconds_of(program, folder))
    timings = {"brickwork, cold cache": summary(cold, 1), "brickwork, warm cache": summary(warm, 1)}
    title = f"first call of {name}"
    target = "0.3 s cold, 20 ms warm"
    return Case(title=title, timings=timings, reference="brickwork, cold cache", target=target)


def seconds_of(program: str, cache: str) -> float:
    """Run a program that prints seconds, with a folder for its cache."""
    environment = {**os.environ, "BRICKWORK_CACHE_DIR": cache}
    command = [sys.executable, "-c", program]
    folder = Path(__file__).parents[1]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  # the program is ours
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout)
