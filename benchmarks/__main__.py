"""`python -m benchmarks [--device cuda] [name ...]`: measure, print tables, write records to `benchmarks/results/`.

`programs`, the loop programs, take a quarter of an hour, and run only where they are named.
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

from benchmarks import (
    brick_pad,
    cuda,
    first_call,
    gradients,
    launch,
    loop_programs,
    matrix_product,
    override,
    sample_normal,
    sin,
    timex,
)
from brickwork.bench.record import Case, Record, record, save, save_all
from brickwork.bench.report import show, verdicts

PROGRAMS = "programs"
Benchmark = Callable[[Callable[[str], None]], list[Case]]
BENCHMARKS = {
    "brick_pad": brick_pad.cases,
    "timex": timex.cases,
    "sin": sin.cases,
    "sample_normal": sample_normal.cases,
    "launch": launch.cases,
    "override": override.cases,
    "first_call": first_call.cases,
    "gradients": gradients.cases,
    "matrix_product": matrix_product.cases,
    PROGRAMS: loop_programs.cases,
}
RESULTS = Path(__file__).parent / "results"


def progress(text: str) -> None:
    """Show what is being done, on one line of the terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main() -> int:
    """Run the benchmarks that were named, or all."""
    parser = argparse.ArgumentParser(description="Measure brickwork beside its peers.")
    parser.add_argument(
        "names", nargs="*", help=f"of {', '.join({**BENCHMARKS, **cuda.BENCHMARKS})}; else all but programs"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--machine", default="cpu-2core", help="folder of the CPU's results, as a kind of machine")
    parser.add_argument("--out", type=Path, help="file of the results, in place of one under benchmarks/results/")
    parser.add_argument("--budget", type=float, default=280, help="seconds after which no benchmark of a GPU is begun")
    parser.add_argument(
        "--only", default="", help="loop programs, or families of them, to measure; kept in --out alone"
    )
    options = parser.parse_args()
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > 1:
        print(f"This machine is busy (load {busy:.1f}): the figures of this run are not fit to be kept.\n")
    if options.device == "cuda":
        return on_a_gpu(on_gpus(options.names, options.only), options.out, options.budget)
    if options.only:
        return on_programs(options.only.split(","), options.out)
    for name in options.names or [name for name in BENCHMARKS if name != PROGRAMS]:
        found = BENCHMARKS[name](progress)
        progress("")
        if name == PROGRAMS:
            print("\n".join(loop_programs.summarised(found)))
        else:
            for case in found:
                show(case)
        print(f"wrote {save(record(name, found), RESULTS / options.machine).relative_to(Path.cwd())}\n")
    return 0


def on_programs(only: list[str], out: Path | None) -> int:
    """Measure some of the loop programs on the CPU; what is done is kept in `out` if the run ends early."""
    found: list[Case] = []
    for case in loop_programs.of_programs(progress, only):
        found.append(case)
        if out is not None:
            save_all([record(PROGRAMS, found)], out)
    print("\n".join(loop_programs.summarised(found)))
    return 0


def on_gpus(names: list[str], only: str) -> dict[str, Benchmark]:
    """Return the GPU's benchmarks of these names, or all but the programs; or those programs that are named alone."""
    if only:
        return {PROGRAMS: functools.partial(cuda.programs.cases, only=only.split(","))}
    every = cuda.BENCHMARKS
    wanted = names or [name for name in every if not name.startswith(PROGRAMS)]
    return {name: every[name] for name in every if {name, name.partition("/")[0]} & {*wanted}}


def on_a_gpu(chosen: dict[str, Benchmark], out: Path | None, budget: float) -> int:
    """Run the GPU's benchmarks; one that fails does not hide the others. Return how many failed."""
    if not torch.cuda.is_available():
        print("There is no NVIDIA GPU here: torch.cuda.is_available() is False.")
        return 1
    torch.cuda.init()
    machine = re.sub(r"[^a-z0-9]+", "-", torch.cuda.get_device_name().lower())
    programs = all(name.startswith(PROGRAMS) for name in chosen)
    path = out or RESULTS / machine / ("cuda-programs.json" if programs else "cuda.json")
    start, records, failed = time.perf_counter(), list[Record](), list[str]()
    for name, benchmark in chosen.items():
        passed = time.perf_counter() - start
        if passed > budget:
            failed.append(f"{name}: not begun, {passed:.0f} s have passed")
            continue
        try:
            found = of_one(benchmark, tables=not programs)
        except Exception as error:  # noqa: BLE001  # one benchmark that fails does not hide the others
            traceback.print_exc()
            failed.append(f"{name}: {type(error).__name__}: {error}".splitlines()[0])
            if is_lost():
                failed.append("the context of the GPU is lost: what has not run needs a run of its own")
                break
            continue
        print(f"{name}: {time.perf_counter() - start - passed:.1f} s\n", flush=True)
        records.append(record(name, found))
        save_all(records, path)
    if not programs:
        verdicts([case for result in records for case in result.cases])
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


def of_one(benchmark: Benchmark, *, tables: bool) -> list[Case]:
    """Run one benchmark, show its cases as tables unless it has printed them, and give its memory back."""
    found = benchmark(progress)
    progress("")
    for case in found if tables else ():
        show(case)
    torch.cuda.empty_cache()
    return found


if __name__ == "__main__":
    sys.exit(main())
