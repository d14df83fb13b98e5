"""`python -m benchmarks programs [--device cuda] [--only ...]`: measure the loop programs, for a quarter of an hour.

All else that is measured answers a question: `python -m brickwork bench`.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import loop_programs
from benchmarks.cuda import programs
from brickwork.bench.record import Case, Record, record, save, save_all

PROGRAMS = "programs"
Benchmark = Callable[[Callable[[str], None]], list[Case]]
RESULTS = Path(__file__).parent / "results"


def progress(text: str) -> None:
    """Show what is being done, on one line of the terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Run the programs that were named, or all."""
    parser = argparse.ArgumentParser(description="Measure the loop programs beside Numba, or on a GPU.")
    parser.add_argument("what", choices=(PROGRAMS,))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--machine", default="cpu-2core", help="folder of the CPU's results, as a kind of machine")
    parser.add_argument("--out", type=Path, help="file of the results, in place of one under benchmarks/results/")
    parser.add_argument("--budget", type=float, default=280, help="seconds after which no family is begun on a GPU")
    parser.add_argument("--only", default="", help="programs, or families of them, to measure; kept in --out alone")
    options = parser.parse_args()
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > 1:
        print(f"This machine is busy (load {busy:.1f}): the figures of this run are not fit to be kept.\n")
    only = options.only.split(",") if options.only else []
    if options.device == "cuda":
        return on_a_gpu(only, options.out, options.budget)
    return on_the_cpu(only, options.out, RESULTS / options.machine)


def on_the_cpu(only: list[str], out: Path | None, folder: Path) -> int:
    """Measure loop programs on the CPU, all of them for `folder`; what is done is in `out` if the run ends early."""
    found: list[Case] = []
    for case in loop_programs.of_programs(progress, only):
        found.append(case)
        if out is not None:
            save_all([record(PROGRAMS, found)], out)
    print("\n".join(loop_programs.summarised(found)))
    if not only:
        print(f"wrote {save(record(PROGRAMS, found), folder).relative_to(Path.cwd())}\n")
    return 0


def on_a_gpu(only: list[str], out: Path | None, budget: float) -> int:
    """Measure loop programs on the GPU; a family that fails does not hide the others. Return how many failed."""
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here: torch.cuda.is_available() is False.")
        return 1
    torch.cuda.init()
    machine = re.sub(r"[^a-z0-9]+", "-", torch.cuda.get_device_name().lower())
    path = out or RESULTS / machine / "cuda-programs.json"
    chosen: dict[str, Benchmark] = {"those named": functools.partial(programs.cases, only=only)}
    start, records, failed = time.perf_counter(), list[Record](), list[str]()
    for name, benchmark in (chosen if only else programs.BENCHMARKS).items():
        passed = time.perf_counter() - start
        if passed > budget:
            failed.append(f"{name}: not begun, {passed:.0f} s have passed")
            continue
        try:
            found = benchmark(progress)
        except Exception as error:  # noqa: BLE001  # one family that fails does not hide the others
            traceback.print_exc()
            failed.append(f"{name}: {type(error).__name__}: {error}".splitlines()[0])
            if is_lost():
                failed.append("the context of the GPU is lost: what has not run needs a run of its own")
                break
            continue
        torch.cuda.empty_cache()
        print(f"{name}: {time.perf_counter() - start - passed:.1f} s\n", flush=True)
        records.append(record(name, found))
        save_all(records, path)
    for text in failed:
        print(f"FAILED {text}")
    print(f"{time.perf_counter() - start:.0f} s; wrote {path}")
    return len(failed)


def is_lost() -> bool:
    """Whether nothing can run on the GPU any more."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
