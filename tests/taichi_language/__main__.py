"""Runs Taichi's published tests on brickwork: `python -m tests.taichi_language PATH`, PATH being a checkout of Taichi.

Each test function runs unedited in a process of its own, with `taichi` being `brickwork.taichi` and the processor in
place of all machines. A function passes if all its cases do, and none is skipped. Those that use sparse structures are
left out, and those about what brickwork has not: windows, textures, meshes, quantised types, files of kernels.
"""

from __future__ import annotations

import argparse
import ast
import collections
import gc
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import taichi_tests

LEFT_OUT = re.compile(
    r"\.(pointer|bitmasked|dynamic|hash|quant_array|bit_struct)\(|types\.quant|BitpackedFields|deactivate\(|"
    r"is_active|extension\.(sparse|quant|mesh|bls)|ti\.(ui|GUI|Texture|Mesh|graph|aot|tools|sparse|append|length)\b|"
    r"linalg\.Sparse|sparse_matrix|types\.(rw_)?texture|argpack|rescale_index|get_addr|paddle|TaichiMain"
)
FILES_LEFT_OUT = re.compile(r"test_(cli|paddle_io|offline_cache|graph|simt|aot|cuda_internals|test|binding|api)\b")


@dataclass
class Outcome:
    """How a test function went."""

    file: str
    name: str
    passed: bool
    seconds: float
    message: str


class Plugin:
    """Begins each test as the published `conftest.py` does, and notes how it went."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []

    @pytest.fixture(autouse=True)
    def wanted_arch(self, req_arch, req_options):
        import brickwork.taichi as ti

        if req_arch is not None:
            ti.init(arch=req_arch, enable_fallback=False, **req_options)
        yield
        if req_arch is not None:
            ti.reset()

    def pytest_generate_tests(self, metafunc):
        if not getattr(metafunc.function, "__ti_test__", False):
            metafunc.parametrize("req_arch,req_options", [(None, None)], ids=["none"])

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.passed += 1
        elif not report.passed:
            self.failed.append("skipped" if report.skipped else _short(report))

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append(_short(report))


def _short(report) -> str:
    text = str(report.longrepr)
    lines = [line for line in text.splitlines() if line.startswith("E ")]
    return " | ".join(line[2:].strip() for line in lines[:6]) or text[-300:]


def functions(root: Path, pattern: str) -> list[tuple[Path, str]]:
    """Return the test functions that count, in order."""
    found = []
    for path in sorted((root / "tests" / "python").glob("test_*.py")):
        text = path.read_text()
        lines = text.splitlines()
        if FILES_LEFT_OUT.search(path.name):
            continue
        named = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        for node in named.values():
            if not node.name.startswith("test"):
                continue
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            source = "\n".join(lines[first - 1 : node.end_lineno])
            if LEFT_OUT.search(source) or not _on_processors(source):
                continue
            if re.search(pattern, f"{path.name}::{node.name}"):
                found.append((path, node.name))
    return found


def _on_processors(source: str) -> bool:
    """Return whether a test is for processors too."""
    arch = re.search(r"@test_utils\.test\([^\n]*?arch=(\[[^\]]*\]|[\w.()]+)", source)
    return arch is None or "cpu" in arch[1] or "host_arch" in arch[1]


def run_function(path: Path, name: str) -> tuple[bool, str]:
    """Run a function in this process."""
    for module in [each for each in sys.modules if each == "tests" or each.startswith("tests.")]:
        del sys.modules[module]
    import torch

    torch.set_num_threads(2)
    plugin = Plugin()
    arguments = [
        "-q",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:unraisableexception",
        "-c",
        os.devnull,
        "--rootdir",
        str(path.parent),
    ]
    pytest.main([*arguments, f"{path}::{name}"], plugins=[plugin])
    if plugin.failed:
        return False, plugin.failed[0]
    return plugin.passed > 0, "" if plugin.passed else "nothing ran"


def run_apart(path: Path, name: str, limit: int) -> Outcome:
    """Run a function in a process of its own."""
    reader, writer = os.pipe()
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        os.close(reader)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.alarm(limit)
        answer = (False, "the harness failed")
        try:
            answer = run_function(path, name)
        finally:
            os.write(writer, json.dumps(answer).encode()[:60000])
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    passed, message = json.loads(said) if said else (False, f"ended by signal {status & 127}")
    return Outcome(path.name, name, passed, time.perf_counter() - start, message)


def _run(outcomes: list[Outcome], version: str) -> taichi_tests.Run:
    """Return the outcomes as they are recorded."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout.strip()
    files: dict[str, taichi_tests.File] = {}
    for name in sorted({each.file for each in outcomes}):
        own = [each for each in outcomes if each.file == name]
        files[name] = taichi_tests.File(len(own), tuple(sorted(each.name for each in own if not each.passed)))
    return taichi_tests.Run(version, commit, str(datetime.now(UTC).date()), files)


def main() -> int:
    """Run the functions and print how many passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.taichi_language", description=__doc__)
    parser.add_argument("path", type=Path, help="a checkout of Taichi's repository")
    parser.add_argument("-k", dest="pattern", default="", help="only functions whose `file::name` this is found in")
    parser.add_argument("--every", type=int, default=1, help="only each so-manieth function")
    parser.add_argument("--first", type=int, default=0, help="the number of the first of them")
    parser.add_argument("--limit", type=int, default=60, help="seconds that a function may take")
    parser.add_argument("--json", type=Path, help="a file for the outcomes, which a later run with it adds to")
    parser.add_argument("--record", metavar="VERSION", help="write the record, of tests of this version of Taichi")
    parser.add_argument("-v", action="store_true", help="print each outcome")
    chosen = parser.parse_args()
    if importlib.util.find_spec("autograd") is None:
        parser.error("the tests of gradients compare nothing without the package `autograd`: install it")
    here = Path(__file__).parent
    sys.path.insert(0, str(here))
    import stand_in

    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take seconds to load in each process
    stand_in.install()
    stand_in.load_compiler()
    sys.path.remove(str(here))
    sys.path.insert(0, str(chosen.path.resolve()))
    names = functions(chosen.path.resolve(), chosen.pattern)[chosen.first :: chosen.every]
    outcomes = []
    gc.freeze()  # what is loaded is not searched in each process
    for path, name in names:
        outcomes.append(run_apart(path, name, chosen.limit))
        last = outcomes[-1]
        if chosen.v:
            said = "ok" if last.passed else f"FAILED {last.message[:400]}"
            print(f"{last.file}::{last.name} {last.seconds:.1f}s {said}", flush=True)
    if chosen.json:
        before = json.loads(chosen.json.read_text()) if chosen.json.exists() else []
        known = {(each.file, each.name): each for each in [*(Outcome(**each) for each in before), *outcomes]}
        outcomes = [*known.values()]
        chosen.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=0))
    if chosen.record:
        taichi_tests.save(_run(outcomes, chosen.record))
    passed = sum(each.passed for each in outcomes)
    by_file = collections.Counter(each.file for each in outcomes if not each.passed)
    print("failures by file:", ", ".join(f"{name} {count}" for name, count in by_file.most_common(40)))
    print(f"{passed} of {len(outcomes)} functions pass, in {sum(each.seconds for each in outcomes):.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
