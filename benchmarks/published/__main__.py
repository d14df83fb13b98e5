"""`python -m benchmarks.published compare [names] --built FOLDER [--base SRC] [--record FILE]`, or `schedules [names]`.

The first compares the operators with the published kernels that a folder has (`peers.py` says in what form), and with
another source tree of brickwork. README.md beside this file says which kernels those are. The second needs no GPU: it
compares what is launched for each operator with what was, by `schedules.txt`, which `--write` makes anew.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.published import PUBLISHED
from benchmarks.published.compare import FORWARD, GRADIENT, PATIENCE, Measured, compare, summarised
from benchmarks.published.schedules import compared
from brickwork.bench.record import record, save_all

TABLE = "published"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, print what came of it, and keep it where that is asked for."""
    parser = argparse.ArgumentParser(description="Measure the operators beside the published CUDA kernels.")
    commands = parser.add_subparsers(dest="command", required=True)
    asked = commands.add_parser("compare", help="measure the operators beside published kernels")
    asked.add_argument("names", nargs="*", metavar="name", help="operators; all if none is named")
    asked.add_argument("--built", type=Path, help="folder with the published kernels, a file for each operator")
    asked.add_argument("--base", type=Path, help="another source tree of brickwork, its `src`")
    asked.add_argument("--record", type=Path, help="file that takes the record")
    asked.add_argument("--sizes", default="small,large")
    asked.add_argument("--directions", default=f"{FORWARD},{GRADIENT}")
    asked.add_argument("--device", default="cuda")
    asked.add_argument("--seconds", type=float, default=480.0, help="after which no case is begun")
    asked.add_argument("--patience", type=float, default=PATIENCE, help="seconds after which a contender is ended")
    asked.add_argument("--jobs", type=int, default=14, help="processes that compile beside each other")
    planned = commands.add_parser("schedules", help="tell what is launched otherwise than schedules.txt says")
    planned.add_argument("names", nargs="*", metavar="name", help="operators; all if none is named")
    planned.add_argument("--write", action="store_true", help="write what is launched into schedules.txt")
    planned.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that compile beside each other")
    options = parser.parse_args(arguments)
    unknown = sorted({*options.names} - {each.name for each in PUBLISHED})
    if unknown:
        parser.error(f"there is no operator {unknown[0]!r}")
    if options.command == "schedules":
        moved = compared(options.names, options.jobs, write=options.write)
        print("\n".join(moved or ["all is launched as before"]))
        return 1 if moved and not options.write else 0

    def keep(found: list[Measured]) -> None:
        if options.record is not None:
            save_all([record(TABLE, [each.case() for each in found])], options.record)

    found = compare(
        options.names,
        options.built,
        options.base,
        sizes=options.sizes.split(","),
        directions=options.directions.split(","),
        device=options.device,
        seconds=options.seconds,
        jobs=options.jobs,
        patience=options.patience,
        progress=lambda text: print(text, flush=True),
        done=keep,
    )
    print("\n".join(["", *summarised(found)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
