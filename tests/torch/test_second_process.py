"""What a first process leaves for a second one: code without a compiler, graphs, pickles, and the same fingerprints.

Both processes run all programs, one after the other: most of what a process takes is the import of PyTorch.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import brickwork as bw
from brickwork.runtime.cuda_toolkit import find_libdevice

TESTS = Path(__file__).parents[1]
COMPILER = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler for the CPU")
RUN_ALL = """
import contextlib, io, json, runpy, sys, traceback
said = {}
for name in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            runpy.run_path(f"{name}.py")
        except Exception:
            traceback.print_exc(file=out)
    said[name] = out.getvalue()
print(json.dumps(said))
"""
OPERATOR = """
import torch
import brickwork as bw

@bw.op("bwsecond::{name}")
def {name}(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = {value}
    return out
"""
WARM = """
import sys
assert warm(torch.ones(3)).sum() == 6
print(warm.stats().specialisations[0].cached, "llvmlite" in sys.modules, "islpy" in sys.modules)
"""
FOR_A_GPU = """
import sys, torch
from brickwork import ops
x = torch.empty(8, 8, device="meta")
w, k = torch.empty(3, 16, device="meta"), torch.empty(2, 3, 16, device="meta")
mu = torch.empty(5, device="meta")
ops.sin.warmup(x, device="sm_90")
ops.timex.warmup(w, k, 1e-3, device="sm_90")
ops.sample_normal.warmup(mu, mu, 7, device="sm_90")
made = [each for op in (ops.sin, ops.timex, ops.sample_normal) for each in op.stats().specialisations]
print(all(each.cached for each in made), "llvmlite" in sys.modules, torch.cuda.is_initialized())
"""
PICKLED = """
import pickle, sys, torch
from pathlib import Path
kept = Path("operator")
if kept.exists():
    assert "fresh" not in sys.modules
    print(pickle.loads(kept.read_bytes())(torch.ones(3)).tolist())
else:
    import fresh
    kept.write_bytes(pickle.dumps(fresh.fresh))
"""
FINGERPRINT = f"""
import sys
sys.path.append({str(TESTS / "unit" / "frontend")!r})
import test_definition
print(test_definition.define(test_definition.two).fingerprint)
"""
GRAPH = """
import torch
from torch._dynamo.utils import counters
from support.operators import timex
w, k = torch.randn(4, 6, requires_grad=True), torch.randn(2, 4, 6, requires_grad=True)
compiled = torch.compile(lambda w, k: timex(w, k, 0.1).square().sum(), fullgraph=True)
ours = torch.autograd.grad(compiled(w, k), (w, k))
torch.testing.assert_close(ours, torch.autograd.grad(timex(w, k, 0.1).square().sum(), (w, k)))
print(counters["aot_autograd"]["autograd_cache_hit"], counters["inductor"]["fxgraph_cache_hit"])
"""
CHANGED = """
print(torch.compile(lambda x: changing(x) + 1, fullgraph=True)(torch.ones(4)).tolist())
"""


def has_libdevice():
    try:
        find_libdevice()
    except bw.DeviceError:
        return False
    return True


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Return what each program printed in the first process, and in the second."""
    folder = tmp_path_factory.mktemp("second")
    (folder / "fresh.py").write_text(OPERATOR.format(name="fresh", value="x[i] - 1"))
    programs = {"warm": OPERATOR.format(name="warm", value="x[i] + 1") + WARM}
    programs |= {"for_a_gpu": FOR_A_GPU} if has_libdevice() else {}
    programs |= {"pickled": PICKLED, "fingerprint": FINGERPRINT}
    programs |= {"graph": GRAPH, "changed": ""} if shutil.which("g++") else {}
    environment = os.environ | {
        "BRICKWORK_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join((str(Path(bw.__file__).parents[1]), str(TESTS), str(folder))),
    }
    outputs = []
    for factor in (2.0, 3.0):
        programs["changed"] = OPERATOR.format(name="changing", value=f"x[i] * {factor}") + CHANGED
        for name, text in programs.items():
            (folder / f"{name}.py").write_text(text)
        command = [sys.executable, "-c", RUN_ALL, *programs]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append(json.loads(done.stdout))
    return lambda name: [output[name].split() for output in outputs]


def test_a_warm_cache_needs_no_compiler(said):
    first, second = said("warm")
    assert first[:2] == ["False", "True"]
    assert second == ["True", "False", "False"]


@pytest.mark.skipif(not has_libdevice(), reason="needs libdevice: install triton or nvidia-nvvm")
def test_code_for_a_gpu_needs_no_compiler(said):
    assert said("for_a_gpu") == [["False", "True", "False"], ["True", "False", "False"]]


def test_pickles_load_in_a_process_that_has_not_imported_the_module(said):
    assert said("pickled") == [[], "[0.0, 0.0, 0.0]".split()]


def test_fingerprints_are_the_same_in_every_process(said):
    (first,), (second,) = said("fingerprint")
    assert first == second


@pytest.mark.slow
@COMPILER
def test_a_second_process_uses_the_graph_of_the_first(said):
    first, second = said("graph")
    assert first == ["0", "0"]
    assert int(second[0]) >= 1


@pytest.mark.slow
@COMPILER
def test_a_cached_graph_does_not_outlive_an_operators_code(said):
    assert said("changed") == [str([factor + 1] * 4).split() for factor in (2.0, 3.0)]
