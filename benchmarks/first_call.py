"""The first call of a kernel in a new process, with a cold and with a warm cache, beside the peers'; and imports.

Each figure is from a process of its own, whose caches lie in a folder that is empty at first and is kept for the second
process; packages have their bytecode, as after an installation. What is timed is compiling, loading and one call of few
elements. Importing is timed apart; starting torch and the device is not, nor is decorating brickwork's ready operators.
Processes take seconds, so that brickwork is asked twice or thrice and each peer once, for fewer kernels.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers import registry
from benchmarks.targets import Target, reaching
from brickwork import bench
from brickwork.bench.question import Parts, Run

ROUNDS = {"cpu": 3, "cuda": 2}
KERNELS = {
    "sin": ("(torch.randn(4, 4), torch.empty(4, 4))", "ops.sin(x[0], out=x[1])"),
    "timex": ("(torch.randn(2, 8), torch.randn(2, 2, 8), 0.1)", "ops.timex(*x)"),
    "pad": (
        "(torch.rand(4, 8), torch.empty(20, 32), [4, 2], [8, 0], [2, 4])",
        "ops.brick_pad(x[0], *x[1].shape, *x[2:], out=x[1])",
    ),
    "sample": ("(torch.randn(4), torch.rand(4), 8)", "ops.sample_normal(*x)"),
}
"""The arguments that peers take, and brickwork's call with them."""
ASKED = {"cpu": tuple(KERNELS), "cuda": ("sin", "timex")}
BESIDE_PEERS = {"cpu": ("sin", "timex"), "cuda": ("timex",)}
KEEPING = ("brickwork", "torch.compile", "triton", "warp", "helion")
"""Systems that keep what they compiled; the others compile anew in each process."""
COLD, WARM = {"cpu": Target(0.3), "cuda": Target(0.35)}, {"cpu": Target(0.02), "cuda": Target(0.03)}
IMPORT = Target(0.15)
FOLDERS = ("BRICKWORK_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "WARP_CACHE_PATH")
SPENT = {
    "how": "each figure is of processes of their own; seconds from the function as written to its result",
    "decorating": "the ready operators of brickwork are decorated between the import and the call, which is not timed",
    "caches": "in a folder that is empty for the cold process and kept for the warm one, the driver's too",
}

_PROGRAM = """
import time, torch
device = "{device}"
x = tuple(item.to(device) if isinstance(item, torch.Tensor) else item for item in {arguments})
(torch.ones(2, device=device) * 2).sum().item()
start = time.perf_counter()
{imports}
imported = time.perf_counter() - start
{decorated}
start = time.perf_counter()
{call}
if device == "cuda":
    torch.cuda.synchronize()
print("seconds", imported, time.perf_counter() - start)
"""
WITH_TORCH = frozenset({"torch", "torch.compile", "cuda"})
"""What has nothing to import after torch."""
_OURS = "import brickwork"
_DECORATED = "from brickwork import ops"
_THEIRS = "import {package}"
_PEER = """from benchmarks.peers import registry
call = next(iter(registry.contenders("{kernel}", *x, peers=frozenset({{"{system}"}})).values()))
start = time.perf_counter()
call()"""


@dataclass(slots=True)
class Spent:
    """Seconds of a system's processes for one kernel, or in words why there are none."""

    imports: list[float] = field(default_factory=list[float])
    cold: list[float] = field(default_factory=list[float])
    warm: list[float] = field(default_factory=list[float])
    failed: str = ""


Found = dict[tuple[str, str], Spent]
"""By kernel and system."""


def tables(run: Run) -> Parts:
    """Return the first calls with a cold and with a warm cache, and the imports; all are of the same processes."""
    found = functools.cache(lambda: _found(run))
    parts: Parts = {"cold": lambda: _first(run, found(), "cold"), "import": lambda: _imports(run, found())}
    return parts if run.small else {**parts, "warm": lambda: _first(run, found(), "warm")}


def _first(run: Run, found: Found, state: str) -> bench.Table:
    kernels = tuple(dict.fromkeys(kernel for kernel, _ in found))
    rows = {kernel: {system: _row(spent, state) for system, spent in _of(found, kernel)} for kernel in kernels}
    table = bench.tabled(
        {kernel: {system: seconds for system, seconds in row.items() if seconds} for kernel, row in rows.items()},
        "ms",
        title=f"first call, {state} cache",
        x_name="kernel",
        device=run.device,
        y_log=True,
        protocol=SPENT,
    )
    return reaching(table, (COLD if state == "cold" else WARM)[run.device])


def _imports(run: Run, found: Found) -> bench.Table:
    row: dict[str, list[float]] = {}
    for (_, system), spent in found.items():
        row[system] = row.get(system, []) + spent.imports
    table = bench.tabled(
        {"import": {system: seconds for system, seconds in row.items() if seconds and system not in WITH_TORCH}},
        "ms",
        title="import of a package after torch",
        x_name="statement",
        device=run.device,
        protocol=SPENT,
    )
    return reaching(table, IMPORT)


def _of(found: Found, kernel: str) -> Iterator[tuple[str, Spent]]:
    return ((system, spent) for (each, system), spent in found.items() if each == kernel)


def _row(spent: Spent, state: str) -> list[float] | str:
    return spent.failed or (spent.cold if state == "cold" else spent.warm)


# ---------------------------------------------------------------- the processes


def _found(run: Run) -> Found:
    """Run all processes."""
    absent = registry.absent(run.device)
    systems = [system for system in registry.SYSTEMS if run.wants(system) and system not in absent]
    _write_bytecode(run)
    asked = {(kernel, "brickwork"): ROUNDS[run.device] for kernel in run.pick(ASKED[run.device], ("sin",))}
    asked |= {(kernel, system): 1 for kernel in BESIDE_PEERS[run.device] for system in systems}
    found: Found = {}
    for number, ((kernel, system), rounds) in enumerate(asked.items()):
        found[kernel, system] = _spent(run, kernel, system, run.pick(rounds, 1))
        if run.advance is not None:
            run.advance((number + 1) / len(asked))
    return found


def _write_bytecode(run: Run) -> None:
    """Run a process of brickwork that is not timed, so that none of those that are compiles Python."""
    if not run.small:
        with tempfile.TemporaryDirectory() as folder:
            _seconds(_program(run, next(iter(KERNELS)), "brickwork"), folder)


def _spent(run: Run, kernel: str, system: str, rounds: int) -> Spent:
    """Run the processes of one system for one kernel."""
    program, spent = _program(run, kernel, system), Spent()
    for number in range(rounds):
        run.tell(f"first call of {kernel}, {system}: round {number + 1} of {rounds}")
        with tempfile.TemporaryDirectory() as folder:
            try:
                imported, first = _seconds(program, folder)
                spent.imports.append(imported)
                spent.cold.append(first)
                if system in KEEPING and not run.small:
                    spent.warm.append(_seconds(program, folder)[1])
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                spent.failed = f"failed: {error}".splitlines()[0]
    return spent


def _program(run: Run, kernel: str, system: str) -> str:
    arguments, call = KERNELS[kernel]
    if system == "brickwork":
        imports, decorated = _OURS, _DECORATED
    else:
        imports, decorated = _THEIRS.format(package=registry.SYSTEMS[system].package), ""
        call = _PEER.format(system=system, kernel=kernel)
    return _PROGRAM.format(device=run.device, arguments=arguments, imports=imports, decorated=decorated, call=call)


def _seconds(program: str, folder: str) -> tuple[float, float]:
    """Run a program whose last line says the seconds of importing and of the first call."""
    caches = {name: str(Path(folder) / name.lower()) for name in FOLDERS}
    caches["PYTHONDONTWRITEBYTECODE"] = ""
    command = [sys.executable, "-c", program]
    done = subprocess.run(  # noqa: S603  # the program is ours
        command,
        env={**os.environ, **caches},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
        timeout=40,
    )
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["the process ended without a word"])[-1])
    *_, imported, first = done.stdout.split()
    return float(imported), float(first)
