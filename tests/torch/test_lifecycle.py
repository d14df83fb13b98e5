"""The life of an operator: definition, redefinition, threads, fork, pickling, caches, and what it says of itself."""

import copy
import gc
import importlib.util
import os
import pickle
import sys
import threading

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from brickwork.op import Op
from brickwork.runtime import cache, stages
from support.operators import noise, square, timex

SOURCE = """
import torch
import brickwork as bw

@bw.op("bwlife::{name}")
def {name}(x: torch.Tensor{more}) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = {value}
    return out
"""


@pytest.fixture
def define(tmp_path):
    """Return a function that writes a module with an operator and imports it."""
    number = iter(range(100))

    def make(name, value, more="", *, file=None):
        path = tmp_path / (file or f"life_{name}_{next(number)}.py")
        path.write_text(SOURCE.format(name=name, value=value, more=more))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return getattr(module, name)

    return make


@pytest.mark.filterwarnings("ignore:BW403")
def test_redefinition_with_the_same_schema_replaces_the_code(define):
    x = torch.randn(5)
    first = define("same", "x[i] + 1")
    held = torch.ops.bwlife.same.default
    torch.testing.assert_close(first(x), x + 1)
    second = define("same", "x[i] + 2")
    for function in (second, held, torch.ops.bwlife.same):
        torch.testing.assert_close(function(x), x + 2)
    torch.testing.assert_close(first(x), x + 1)


@pytest.mark.filterwarnings("ignore:BW403")
def test_redefinition_with_another_schema_leaves_held_overloads_alone(define):
    x = torch.randn(5)
    first = define("changed", "x[i] + 1")
    held = torch.ops.bwlife.changed.default
    torch.testing.assert_close(first(x), x + 1)
    second = define("changed", "x[i] * by", ", by: float")
    torch.testing.assert_close(first(x), x + 1)
    torch.testing.assert_close(second(x, 3.0), x * 3)
    torch.testing.assert_close(torch.ops.bwlife.changed(x, 3.0), x * 3)
    torch.testing.assert_close(held(x), x + 1)
    torch.library.opcheck(second._overload, (x, 2.0))


def test_redefinition_reaches_compiled_graphs(define):
    x = torch.randn(5)
    define("traced", "x[i] + 1")
    compiled = torch.compile(lambda x: torch.ops.bwlife.traced(x), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), x + 1)
    define("traced", "x[i] * by", ", by: float = 2.0")
    torch.testing.assert_close(compiled(x), x * 2)


def test_threads_that_meet_cold_compile_once(define):
    operator = define("threads", "x[i] * x[i] + 1")
    x, barrier, wrong = torch.randn(100), threading.Barrier(4), []

    def run():
        barrier.wait()
        for _ in range(20):
            if not torch.allclose(operator(x), x * x + 1):
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(operator.stats().specialisations) == 1


def test_compiling_collects_no_garbage(define, monkeypatch):
    operator, build, enabled = define("tidy", "x[i] * x[i] + 2"), stages.build, []

    def watched(*arguments, **named):
        enabled.append(gc.isenabled())
        return build(*arguments, **named)

    monkeypatch.setattr(stages, "build", watched)
    operator(torch.randn(8))
    assert (enabled, gc.isenabled()) == ([False], True)


def test_a_forked_child_can_call_and_compile(define):
    operator = define("forked", "x[i] + 1")
    x = torch.randn(8)
    operator(x)
    child = os.fork()
    if child == 0:
        good = torch.equal(operator(x), x + 1) and torch.equal(operator(x.double()), x.double() + 1)
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_operators_pickle_and_copy_by_name():
    assert pickle.loads(pickle.dumps(square)) is square
    assert copy.deepcopy({"op": square})["op"] is square
    assert copy.copy(square) is square


def test_a_damaged_or_unwritable_cache_means_a_compile(tmp_path, define):
    x = torch.randn(4)
    with config.override(cache_dir=str(tmp_path / "cache")):
        cache.forget()
        torch.testing.assert_close(define("damaged", "x[i] + 1", file="damaged.py")(x), x + 1)
        for path in (tmp_path / "cache").glob("*/*"):
            path.write_bytes(path.read_bytes()[:-1])
        cache.forget()
        cache._state.warned = False
        with pytest.warns(bw.BrickworkWarning, match="damaged"):
            torch.testing.assert_close(define("damaged", "x[i] + 1", file="damaged.py")(x), x + 1)
    (tmp_path / "file").write_text("")
    with config.override(cache_dir=str(tmp_path / "file")):
        cache._state.warned = False
        with pytest.warns(bw.BrickworkWarning, match="cannot write"):
            torch.testing.assert_close(define("unwritable", "x[i] + 1")(x), x + 1)


def test_names_are_checked_and_made_of_the_module():
    with pytest.raises(ValueError, match="namespace::name"):
        bw.op("nonsense")

    @bw.op
    def plain(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i]
        return out

    assert isinstance(plain, Op)
    namespace, _, name = plain.name.partition("::")
    assert name == "plain"
    assert getattr(torch.ops, namespace).plain.default is plain._overload
    assert torch.equal(plain(torch.ones(2)), torch.ones(2))


def test_redefinition_with_a_host_part_in_python_and_back():
    x = torch.randn(5)

    def native(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] + 1
        return out

    def python(x: torch.Tensor) -> torch.Tensor:
        out = torch.relu(x)
        for i in range(x.shape[0]):
            out[i] = out[i] + 2
        return out

    for _ in range(2):
        torch.testing.assert_close(bw.op("bwlife::moved")(native)(x), x + 1)
        torch.testing.assert_close(torch.ops.bwlife.moved(x), x + 1)
        torch.testing.assert_close(bw.op("bwlife::moved")(python)(x), torch.relu(x) + 2)
        torch.testing.assert_close(torch.ops.bwlife.moved(x), torch.relu(x) + 2)


def test_explain_inspect_warmup_and_stats(define):
    operator = define("told", "x[i] * 2")
    assert "not compiled yet" in operator.explain()
    with pytest.raises(ValueError, match="pass arguments"):
        operator.inspect("ir")
    operator.warmup(torch.empty(8, device="meta"))
    (found,) = operator.stats().specialisations
    assert found.signature == "(float32[1] contiguous unit=0)"
    operator(torch.randn(8))
    assert len(operator.stats().specialisations) == 1
    text = operator.explain(torch.randn(8))
    assert "host part: native" in text
    assert "for i at" in text
    assert "vector" in text
    assert "told" in operator.inspect("ir")
    assert "define void" in operator.inspect("llvm")
    assert "ret" in operator.inspect("asm")
    with pytest.raises(ValueError, match="no stage"):
        operator.inspect("ptx")


def test_check_compares_with_the_reference():
    timex.check(torch.randn(2, 5), torch.randn(1, 2, 5), 0.1)
    noise.check(torch.zeros(6), 1.0, key=torch.tensor(3))


def test_fast_math_is_another_code(define):
    precise = define("precise", "x[i] / 3.0 + x[i]")

    @bw.op("bwlife::fast", fast_math=True)
    def fast(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] / 3.0 + x[i]
        return out

    x = torch.randn(100)
    torch.testing.assert_close(fast(x), precise(x))
    assert "arcp" in fast.inspect("llvm")
    assert "arcp" not in precise.inspect("llvm")
