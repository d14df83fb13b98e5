"""Handles whose name is defined again: each keeps its code, in calls, graphs, gradients, pickles and overrides."""

import copy
import gc
import importlib
import os
import pickle
import subprocess
import sys
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import brickwork as bw

x = torch.tensor([1.0, 2.0, 3.0])


def scaled(name: str, by: float, *, more: float = 0.0) -> bw.Op:
    @bw.op(f"bwhandles::{name}")
    def operator(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * x[i] * by + more
        return out

    return operator


def told(action: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [each for each in found if issubclass(each.category, bw.BrickworkWarning)]


def gradient(operator: Callable[..., torch.Tensor]) -> list[float]:
    y = x.clone().requires_grad_()
    return torch.autograd.grad(operator(y).sum(), y)[0].tolist()


def expect(operator: Any, by: float) -> None:
    """Check every way in which an operator computes."""
    wanted = x * x * by
    for found in (operator(x), operator(x=x), operator(x, out=torch.empty(3)), operator.python(x)):
        torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(torch.vmap(operator)(x.expand(2, 3)), wanted.expand(2, 3))
    assert gradient(operator) == (2 * x * by).tolist()
    torch.testing.assert_close(torch.func.jvp(operator, (x,), (x,))[1], 2 * wanted)
    y = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(operator(y).sum(), y, create_graph=True)
    assert torch.autograd.grad(first.sum(), y)[0].tolist() == [2 * by] * 3
    assert operator.name.startswith("bwhandles::")
    namespace, _, plain = operator.name.partition("::")
    torch.testing.assert_close(getattr(getattr(torch.ops, namespace), plain)(x), wanted)
    assert pickle.loads(pickle.dumps(operator)).kept == operator.kept
    assert copy.deepcopy([operator])[0] is operator


@pytest.mark.filterwarnings("ignore:BW403")
def test_each_of_three_definitions_keeps_its_code_and_the_name_means_the_last() -> None:
    a = scaled("three", 2.0)
    y = x.clone().requires_grad_()
    before = a(y).sum()
    expect(a, 2.0)
    held = torch.ops.bwhandles.three.default
    b = scaled("three", 3.0)
    after = b(y).sum()
    expect(b, 3.0)
    c = scaled("three", 4.0)
    for operator, by in ((a, 2.0), (b, 3.0), (c, 4.0)):
        expect(operator, by)
        assert (operator.name == operator.kept) == (operator is not c)
        assert getattr(torch.ops.bwhandles, operator.kept.partition("::")[2])(x).tolist() == (x * x * by).tolist()
        derived = getattr(torch.ops.bwhandles, f"{operator.kept.partition('::')[2]}__backward_1")
        assert derived(x, torch.ones(3)).tolist() == (2 * x * by).tolist()
    assert held(x).tolist() == (4 * x * x).tolist()
    assert torch.autograd.grad(before, y)[0].tolist() == (4 * x).tolist()
    assert torch.autograd.grad(after, y)[0].tolist() == (6 * x).tolist()
    again = scaled("three", 4.0)
    assert again.kept == c.kept
    assert c.name == "bwhandles::three"
    d = scaled("three", 5.0)
    for operator, by in ((again, 4.0), (c, 4.0), (d, 5.0)):
        expect(operator, by)


@pytest.mark.filterwarnings("ignore:BW403")
def test_graphs_call_the_handle_that_they_were_traced_with() -> None:
    a = scaled("traced", 2.0)

    def step(y: torch.Tensor) -> torch.Tensor:
        return a(y) + 1.0

    compiled = torch.compile(step, backend="aot_eager", fullgraph=True)
    y = x.clone().requires_grad_()
    before = compiled(y).sum()
    b = scaled("traced", 3.0)
    both = torch.compile(lambda y: (a(y), b(x=y)), backend="aot_eager", fullgraph=True)
    assert [each.tolist() for each in both(x)] == [(2 * x * x).tolist(), (3 * x * x).tolist()]
    assert gradient(lambda y: both(y)[1]) == (6 * x).tolist()
    assert compiled(x).tolist() == (2 * x * x + 1).tolist()
    assert torch.autograd.grad(before, y)[0].tolist() == (4 * x).tolist()
    assert gradient(compiled) == (4 * x).tolist()


def test_it_is_told_once_at_the_line_of_the_call_and_only_if_both_are_called() -> None:
    a = scaled("told", 2.0)
    assert not told(lambda: a(x))
    b = scaled("told", 3.0)
    assert not told(lambda: b(x))  # what is called no more is no matter
    (found,) = told(lambda: a(x))
    assert found.filename == __file__
    assert "BW403: bwhandles::told was defined again, and operators of both" in str(found.message)
    assert a.kept in str(found.message)
    assert not told(lambda: (a(x), b(x), scaled("told", 4.0)(x)))
    quiet = [scaled("quiet", 2.0), scaled("quiet", 3.0)]
    with bw.config.override(warn=0):
        assert not told(lambda: [each(x) for each in quiet])


@pytest.mark.filterwarnings("ignore:BW403")
def test_a_handle_that_nobody_holds_is_collected() -> None:
    a = scaled("collected", 2.0)
    a(x)
    seen = weakref.ref(a)
    b = scaled("collected", 3.0)
    kept = a.kept.partition("::")[2]
    del a
    gc.collect()
    assert seen() is None
    assert not hasattr(torch.ops.bwhandles, kept)
    expect(b, 3.0)


@pytest.mark.filterwarnings("ignore:BW403")
def test_overrides_by_a_handle_keep_its_code() -> None:
    a = scaled("over", 2.0)
    with bw.override("aten::sin", a, device="cpu"):
        assert torch.sin(x).tolist() == (2 * x * x).tolist()
        b = scaled("over", 3.0)
        for values in (x, x.double()):
            assert torch.sin(values).tolist() == (2 * x * x).tolist()
        with bw.override("aten::cos", b, device="cpu"):
            assert (torch.cos(x) - torch.sin(x)).tolist() == (x * x).tolist()


@pytest.mark.filterwarnings("ignore:BW403")
def test_handles_of_other_schemas_hosts_and_captured_objects_keep_their_code() -> None:
    def made(by: Any, source: int) -> bw.Op:
        if source == 0:

            def operator(x: torch.Tensor) -> torch.Tensor:
                out = by(x)
                for i in range(x.shape[0]):
                    out[i] = out[i] + 1.0
                return out
        else:

            def operator(x: torch.Tensor, n: int = 0) -> torch.Tensor:
                out = torch.empty_like(x)
                for i in range(x.shape[0]):
                    out[i] = x[i] * by + n
                return out

        return bw.op("bwhandles::mixed")(operator)

    halves = torch.nn.Linear(3, 3, bias=False)
    doubles = torch.nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        halves.weight.copy_(torch.eye(3) / 2)
        doubles.weight.copy_(torch.eye(3) * 2)
    operators = [made(halves, 0), made(doubles, 0), made(3.0, 1), made(halves, 0), made(4.0, 1), made(3.0, 1)]
    wanted = [x / 2 + 1, x * 2 + 1, x * 3, x / 2 + 1, x * 4, x * 3]
    for _ in range(2):
        for operator, result in zip(operators, wanted, strict=True):
            assert operator(x).detach().tolist() == result.tolist()
            assert operator.python(x).detach().tolist() == result.tolist()
            assert pickle.loads(pickle.dumps(operator))(x).detach().tolist() == result.tolist()
    assert gradient(operators[0]) == [0.5] * 3
    assert gradient(operators[4]) == [4.0] * 3


@pytest.mark.filterwarnings("ignore:BW403")
def test_operators_that_launch_keep_their_functions() -> None:
    def made(rows: int) -> Any:
        return bw.triton_op(
            "bwhandles::launched(Tensor x) -> Tensor", lambda x, out: None, out=lambda x: x.new_empty(rows)
        )

    a, b = made(1), made(2)
    with FakeTensorMode(allow_non_fake_inputs=True):
        y = torch.empty(3, device="cuda")
        assert (a(y).shape, b(y).shape) == ((1,), (2,))
    assert pickle.loads(pickle.dumps(a)) is a


FACTORY = """
import torch, brickwork as bw

def make(by):
    @bw.op("bwhandles::far")
    def far(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * x[i] * by
        return out
    return far
"""


def test_pickles_and_names_mean_the_same_code_in_a_process_that_defines_it_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far.py").write_text(FACTORY + "two, three = make(2.0), make(3.0)\n")
    (tmp_path / "write.py").write_text(
        "import pickle, far; open('op', 'wb').write(pickle.dumps(far.two)); open('name', 'w').write(far.two.kept)"
    )
    path = os.pathsep.join((str(Path(bw.__file__).parents[1]), str(tmp_path)))
    subprocess.run([sys.executable, "write.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=True)
    (tmp_path / "far.py").write_text(FACTORY + "two = make(2.0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    operator = pickle.loads((tmp_path / "op").read_bytes())
    assert operator is importlib.import_module("far").two
    assert operator(x).tolist() == (2 * x * x).tolist()
    plain = (tmp_path / "name").read_text().partition("::")[2]
    assert getattr(torch.ops.bwhandles, plain)(x).tolist() == (2 * x * x).tolist()
    assert getattr(torch.ops.bwhandles, f"{plain}__backward_1")(x, torch.ones(3)).tolist() == (4 * x).tolist()
    three = sys.modules["far"].make(3.0)
    assert getattr(torch.ops.bwhandles, plain)(x).tolist() == (2 * x * x).tolist()
    assert three(x).tolist() == (3 * x * x).tolist()
    (tmp_path / "op").write_bytes((tmp_path / "op").read_bytes().replace(plain.encode(), b"far__000000000000"))
    with pytest.raises(LookupError, match="module far does not define the operator bwhandles::far__0"):
        pickle.loads((tmp_path / "op").read_bytes())
