"""`python -m benchmarks [name ...]`: measure, print tables, write records to `benchmarks/results/`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import brick_pad, first_call, launch, sample_normal, sin, timex
from brickwork.bench.record import record, save
from brickwork.bench.report import show

BENCHMARKS = {
    "brick_pad": brick_pad.cases,
    "timex": timex.cases,
    "sin": sin.cases,
    "sample_normal": sample_normal.cases,
    "launch": launch.cases,
    "first_call": first_call.cases,
}
RESULTS = Path(__file__).parent / "results"


def progress(text: str) -> None:
    """Show what is being done, on one line of the terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Run the benchmarks that were named, or all."""
    parser = argparse.ArgumentParser(description="Measure brickwork beside its peers.")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; all if none is named")
    parser.add_argument("--machine", default="cpu-2core", help="folder of the results, as a kind of machine")
    options = parser.parse_args()
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > 1:
        print(f"This machine is busy (load {busy:.1f}): the figures of this run are not fit to be kept.\n")
    for name in options.names or BENCHMARKS:
        found = BENCHMARKS[name](progress)
        progress("")
        for case in found:
            show(case)
        print(f"wrote {save(record(name, found), RESULTS / options.machine).relative_to(Path.cwd())}\n")


if __name__ == "__main__":
    main()
