"""`python -m tests.mutate --jobs 2`: is each condition of legality tested?

Changes the conditions of the functions that bear `brickwork.legality`'s mark, one at a time, and runs the tests that
meet the condition. A mutant that no test kills is a condition without a test: it gets one, or it goes. `result.json`
has the last run; `accepted.json` the few mutants that may live, each with the reason.

`--only PATTERN` takes functions whose `file::name` matches the pattern, `--survivors` the mutants that the result says
are alive, `--rest` those of functions that the result does not hold as they stand now (with `--survivors`, both). They
write what they found into the result that is there. `--whole` ends a run after that time, of which at most half goes
to finding which tests meet which conditions; what it has found by then, also until it is interrupted, is in the output.
Mutants that tests might kill which there was no time to measure are alive until a later run of `--survivors`.
So a campaign may run in pieces: all have `--rest`, one output, which the first finds empty, and one file of
`--measured`, which keeps what was measured. `--tests` are the tests to judge by. The exit status is 1 if a mutant
lives that is not accepted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SOURCE = ROOT / "src"
sys.path[:0] = [str(ROOT), str(SOURCE), str(ROOT / "tests")]

import islpy  # noqa: E402, F401  # children need not import it, and the folders are known from here on
import llvmlite.binding  # noqa: E402, F401  # likewise
import pytest  # noqa: E402

from tests.mutate.mutants import Marked, Mutant, marked_functions, mutants  # noqa: E402
from tests.mutate.trial import Limits, Outcome, Trial  # noqa: E402

STARTED = time.monotonic()
TESTS = ("tests/unit", "tests/cpu", "tests/errors")


def main() -> int:
    options = _options()
    before = json.loads(options.output.read_text()) if options.output.exists() else {}
    functions = [item for item in _marked() if re.search(options.only, _name(item))]
    found = [mutant for function in functions for mutant in mutants(function)]
    total = Counter(_name(item.function) for item in found)
    if options.survivors or options.rest:
        alive = {(item["function"], item["before"], item["after"]) for item in before.get("survivors", ())}
        held = {name: digest for name, (*_, digest) in before.get("functions", {}).items()}
        rest = {item for item in functions if options.rest and held.get(_name(item)) != item.digest}
        found = [item for item in found if item.function in rest or (options.survivors and _key(item) in alive)]
        found.sort(key=lambda item: item.function not in rest)  # those that were alive take longest
        functions = list({_name(item.function): item.function for item in found}.values())
    if options.list:
        for item in found:
            print(f"{_name(item.function)}:{item.line}: {item.before}  ->  {item.after}")
        return 0

    def record(trial: Trial) -> None:
        _write(options.output, _merged(before, trial, total, sum(os.times()[:4]), options))

    trial = _tried(functions, found, options, record)
    record(trial)
    alive = sorted(_alive(trial), key=lambda item: (_name(item.mutant.function), item.mutant.line))
    for item in alive:
        print(
            f"{_name(item.mutant.function)}:{item.mutant.line}: {item.mutant.before}  ->  {item.mutant.after}", end=""
        )
        print(f"  [{item.ran} of {item.touching} tests]")
    for item in trial.outcomes if options.killers else ():
        print(f"{item.killer}: {_name(item.mutant.function)}:{item.mutant.line}: {item.mutant.after}")
    for name in trial.failed:
        print(f"not used, since it fails or takes too long: {name}")
    if trial.unmeasured:
        print(f"{trial.unmeasured} tests were not measured")
    counted = f"{len(functions)} functions, {len(trial.outcomes)} of {len(found)} mutants, {len(alive)} alive"
    print(f"{counted}, {sum(os.times()[:4]):.0f} s of processors")
    return 1 if alive else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="children at a time")
    parser.add_argument("--only", default="", metavar="PATTERN", help="functions whose file::name matches this")
    parser.add_argument("--survivors", action="store_true", help="only the mutants that the result says are alive")
    parser.add_argument("--rest", action="store_true", help="only functions that the result does not hold as they are")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="what pytest collects")
    parser.add_argument("--seconds", type=float, default=10.0, help="what a mutant's tests take, at most, in all")
    parser.add_argument("--slowest", type=float, default=10.0, help="seconds of a test that is used, at most")
    parser.add_argument("--whole", type=float, default=math.inf, help="when no mutant is begun any more, in seconds")
    parser.add_argument("--measured", type=Path, metavar="FILE", help="keeps what tests meet from run to run")
    parser.add_argument("--output", type=Path, default=HERE / "result.json")
    parser.add_argument("--killers", action="store_true", help="say what killed each mutant")
    parser.add_argument("--list", action="store_true", help="say what the mutants are, and run none")
    return parser.parse_args()


def _tried(
    functions: list[Marked], found: list[Mutant], options: argparse.Namespace, record: Callable[[Trial], None]
) -> Trial:
    """Run the mutants, and return what became of them."""
    measuring = max(STARTED + options.whole / 2, time.monotonic())
    limits = Limits(options.jobs, options.seconds, options.slowest, measuring, STARTED + options.whole)
    trial = Trial(SOURCE, functions, found, limits, record, options.measured)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["BRICKWORK_CACHE_DIR"] = f"{scratch}/disk"
        settings = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
        settings.append(f"--basetemp={scratch}/tests")
        status = pytest.main([*settings, *options.tests], plugins=[trial])
    if status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        raise SystemExit(f"pytest ended with {status!r}")
    return trial


def _alive(trial: Trial) -> list[Outcome]:
    """Return what no test killed, but what may live."""
    accepted = {(item["function"], item["before"], item["after"]) for item in _accepted()}
    return [item for item in trial.outcomes if item.killer is None and _key(item.mutant) not in accepted]


def _merged(
    before: dict[str, Any], trial: Trial, total: Counter[str], seconds: float, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the result of this run, with what an earlier one says of functions and mutants that did not run."""
    whole = not (options.only or options.survivors or options.rest)
    counts: dict[str, list[Any]] = {} if whole else before.get("functions", {})
    survivors = [] if whole else list(before.get("survivors", ()))
    tried = {_key(item.mutant) for item in trial.outcomes}
    # Of what was interrupted, the functions count whose mutants have all been tried.
    per = Counter(_name(item.mutant.function) for item in trial.outcomes)
    digests = {_name(item): item.digest for item in trial.functions}
    counts = counts | {name: [number, 0, digests[name]] for name, number in per.items() if number == total[name]}
    survivors = [
        item for item in survivors if item["function"] not in digests or per[item["function"]] < total[item["function"]]
    ]
    survivors = [item for item in survivors if (item["function"], item["before"], item["after"]) not in tried]
    survivors += [
        {"function": _name(item.mutant.function), "before": item.mutant.before, "after": item.mutant.after}
        for item in _alive(trial)
        if _name(item.mutant.function) in counts
    ]
    there = {_name(item) for item in _marked()}
    counts = {name: numbers for name, numbers in counts.items() if name in there}
    survivors = sorted((item for item in survivors if item["function"] in counts), key=lambda item: item["function"])
    living = Counter(item["function"] for item in survivors)
    counts = {name: [number, number - living[name], digest] for name, (number, _, digest) in sorted(counts.items())}
    taken = 0 if whole else before.get("seconds", 0)
    return {
        "commit": _output("git", "rev-parse", "--short", "HEAD"),
        "date": time.strftime("%Y-%m-%d"),
        "tests": list(options.tests) if whole else before.get("tests", list(options.tests)),
        "seconds": taken + round(seconds) if whole or options.rest else taken,
        "mutants": sum(number for number, *_ in counts.values()),
        "alive": len(survivors),
        "accepted": len(_accepted()),
        "survivors": survivors,
        "functions": counts,
    }


def _write(path: Path, result: dict[str, Any]) -> None:
    """Write a result, one function and one survivor a line."""
    parts = {name: json.dumps(value) for name, value in result.items()}
    parts["survivors"] = "[" + ",".join(f"\n  {json.dumps(item)}" for item in result["survivors"]) + "\n ]"
    lines = (f"\n  {json.dumps(name)}: {json.dumps(value)}" for name, value in result["functions"].items())
    parts["functions"] = "{" + ",".join(lines) + "\n }"
    beside = path.with_name(path.name + ".new")
    beside.write_text("{" + ",".join(f"\n {json.dumps(name)}: {text}" for name, text in parts.items()) + "\n}\n")
    beside.replace(path)


def _accepted() -> list[dict[str, str]]:
    path = HERE / "accepted.json"
    return json.loads(path.read_text()) if path.exists() else []


@cache
def _marked() -> list[Marked]:
    return marked_functions(SOURCE / "brickwork")


def _name(function: Marked) -> str:
    return f"{function.file.relative_to(SOURCE / 'brickwork')}::{function.name}"


def _key(mutant: Mutant) -> tuple[str, str, str]:
    return _name(mutant.function), mutant.before, mutant.after


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
