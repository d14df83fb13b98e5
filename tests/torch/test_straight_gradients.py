"""Calls with a gradient that skip the dispatcher: which do, and that modes, tracers and transforms still see theirs."""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import brickwork as bw

Tensor = torch.Tensor


@bw.op("bwstraight::scaled")
def scaled(x: Tensor, factor: float, offset: Tensor | None = None) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i] * factor
    return out


@pytest.fixture
def served(monkeypatch):
    leaf = torch.randn(3, requires_grad=True)
    scaled(leaf, 2.0, None).sum().backward()
    calls = []
    native = scaled._native

    def counting(*arguments):
        calls.append(arguments)
        return native(*arguments)

    monkeypatch.setattr(scaled, "_native", counting)
    return calls


def leaf():
    return torch.randn(3, requires_grad=True)


def test_a_plain_call_skips_the_dispatcher(served):
    x = leaf()
    result = scaled(x, 2.0, None)
    assert not served
    result.sum().backward()
    torch.testing.assert_close(x.grad, 4 * x.detach())
    scaled(torch.nn.Parameter(torch.randn(3)), 2, None)
    assert not served


def test_others_do_not(served):
    x = leaf()
    scaled(x.detach(), 2.0, None)
    with torch.no_grad():
        assert not scaled(x, 2.0, None).requires_grad
    assert scaled(x, 2.0).requires_grad  # A default is the dispatcher's matter.
    assert scaled(x, torch.tensor(2.0), None).requires_grad
    with torch._C._AutoDispatchBelowAutograd():
        assert not scaled(x, 2.0, None).requires_grad
    assert len(served) == 5
    with pytest.raises(TypeError, match="argument 'factor' must be float, not str"):
        scaled(x, "2", None)


def test_modes_see_their_calls(served):
    seen = []

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Called(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append("called")
            return function(*args, **(kwargs or {}))

    with Dispatched():
        scaled(leaf(), 2.0, None)
    assert "bwstraight.scaled.default" in seen
    seen.clear()
    with Called():
        scaled(leaf(), 2.0, None)
    assert "called" in seen
    assert len(served) == 2


def test_transforms_and_tracers_see_their_calls(served):
    x = leaf()
    torch.testing.assert_close(torch.func.grad(lambda x: scaled(x, 2.0, None).sum())(x), 4 * x)
    batched = torch.vmap(lambda x: scaled(x, 2.0, None))(torch.randn(2, 3, requires_grad=True))
    assert batched.requires_grad
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3))
        result = torch.autograd.forward_ad.unpack_dual(scaled(dual, 2.0, None))
        torch.testing.assert_close(result.tangent, 4 * x)
    traced = torch.jit.trace(lambda x: scaled(x, 2.0, None), x)
    assert "bwstraight::scaled" in str(traced.graph)
    assert len(served) >= 4
