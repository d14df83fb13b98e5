"""`python -m tests.fuzz --programs 20000 --seed 0 --workers 8`: random programs run in every way there is.

`--device cuda` runs them on GPUs, `--device grid` runs what would run there in the interpreter, and `--device
schedules` runs them by random legal schedules on this processor. `--gradients` compares
the derivatives of programs that have some, with `--device grid` as they would run on a GPU; with `--device cpu` or
`cuda` they are operators, which must pass torch's gradcheck and gradgradcheck, and vmap. `--kind contractions` writes
sums of products, which plain Python runs, too;
with `--device grid` some of their kernels are assembled. `--replay FILE` and `--show SEED` look at one. No program is
begun after `--seconds`. The exit status is 1 if two ways to run a program differ; each finding is a file that
`--replay` takes.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.fuzz import campaign  # noqa: E402  # the folders are known from here on
from support.fuzz.check import WIDTHS  # noqa: E402
from support.fuzz.findings import read, write  # noqa: E402
from support.fuzz.shrink import shrink  # noqa: E402


def main() -> int:
    options = _options()
    contractions, widths = options.kind == "contractions", WIDTHS if options.every_width else ()
    check = campaign.examiner(options.device, widths, gradients=options.gradients, contractions=contractions)
    make = campaign.maker(options.device, gradients=options.gradients, contractions=contractions)
    if options.worker:
        if options.device == "cuda":
            torch.cuda.set_device(options.number % torch.cuda.device_count())
        campaign.work(sys.stdin, sys.stdout, options.out, check, make, options.patience)
        return 0
    if options.show is not None:
        print(make(options.show).source, *make(options.show).arguments, sep="\n")
        return 0
    if options.replay is not None:
        return _replay(options, check, make)
    begin = time.monotonic()
    seeds = range(options.seed, options.seed + options.programs)
    total = campaign.run(
        seeds, options.workers, options.out, lambda number: _command(options, number), make, options.seconds
    )
    print(campaign.report(total, time.monotonic() - begin))
    return 1 if total.findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=500, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no program after so many")
    parser.add_argument("--device", choices=("cpu", "cuda", "grid", "schedules"), default="")
    parser.add_argument("--kind", choices=("any", "contractions"), default="any", help="what programs are like")
    parser.add_argument("--gradients", action="store_true", help="derivatives; through torch if a device is given")
    parser.add_argument("--every-width", action="store_true", help="all widths of vectors for each program, not one")
    parser.add_argument("--out", type=Path, default=Path("fuzz-findings"), help="the folder for findings")
    parser.add_argument("--replay", type=Path, help="examine the case of a file, or of a seed")
    parser.add_argument("--shrink", action="store_true", help="with --replay: make it smaller")
    parser.add_argument("--patience", type=float, default=90.0, help="seconds to make a finding smaller")
    parser.add_argument("--show", type=int, help="print the program of a seed")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def _command(options: argparse.Namespace, number: int) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--worker", "--number", str(number)]
    command += ["--out", str(options.out), "--patience", str(options.patience)]
    command += ["--kind", options.kind]
    command += ["--device", options.device] if options.device else []
    command += ["--gradients"] if options.gradients else []
    return [*command, "--every-width"] if options.every_width else command


def _replay(options: argparse.Namespace, check: campaign.Examine, make: campaign.Make) -> int:
    text = str(options.replay)
    case = make(int(text)) if text.isdigit() else read(options.replay)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kind, words, counts = campaign.apart(case, folder, check)
        if kind and options.shrink:
            case = shrink(case, lambda smaller: campaign.apart(smaller, folder, check)[0] == kind, options.patience)
            kind, words, counts = campaign.apart(case, folder, check)
            print(write(case, options.out, kind, words))
    print(words or "\n".join(f"{name}: {count}" for name, count in counts.items()))
    return 1 if kind else 0


if __name__ == "__main__":
    torch.set_num_threads(2)
    sys.exit(main())
