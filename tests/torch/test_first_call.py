"""Functions without annotations: the first call says what the arguments are, and all else is as with annotations."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch.func import vmap

import brickwork as bw


@bw.op("first::depthwise")
def depthwise(w, k, eps=0.0, bias=None):
    B, C, T = k.shape
    out = torch.empty_like(k)
    for b in range(B):
        for c in range(C):
            for t in range(T):
                s = eps
                for u in range(t + 1):
                    s += w[c, T - 1 - t + u] * k[b, c, u]
                if bias is not None:
                    s += bias[c]
                out[b, c, t] = s
    return out


def scaled_source(x, y):
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * y
    return out


def scaled() -> Any:
    """Return a new operator that was not called yet."""
    return bw.op("first::scaled")(scaled_source)


def test_the_first_call_makes_the_schema() -> None:
    w, k = torch.randn(3, 5), torch.randn(2, 3, 5)
    assert not hasattr(torch.ops.first, "depthwise")
    assert "before its first call" in repr(depthwise)
    torch.testing.assert_close(depthwise(w, k), depthwise.python(w, k))
    overload = torch.ops.first.depthwise.default
    schema = "first::depthwise(Tensor w, Tensor k, float eps=0., Tensor? bias=None) -> Tensor"
    assert str(overload._schema) == schema
    torch.library.opcheck(overload, (w.requires_grad_(), k, 0.5))
    w, k, bias = w.detach().double(), k.double(), torch.randn(3).double()
    torch.testing.assert_close(depthwise(w, k, 1.0, bias), depthwise.python(w, k, 1.0, bias))
    assert type(depthwise) is bw.Op


def test_it_is_compiled_batched_and_differentiated() -> None:
    operator = scaled()
    x = torch.randn(4)
    compiled = torch.compile(lambda x: operator(x, 2.0) + 1, fullgraph=True)
    torch.testing.assert_close(compiled(x), 2 * x + 1)
    torch.testing.assert_close(vmap(operator, in_dims=(0, None))(torch.stack([x, x]), 3.0)[1], 3 * x)
    x.requires_grad_()
    operator(x, 3.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((4,), 3.0))


def test_batches_and_questions_may_come_first() -> None:
    x = torch.randn(2, 4)
    torch.testing.assert_close(vmap(scaled(), in_dims=(0, None))(x, 3), 3 * x)
    torch.testing.assert_close(scaled().python(x[0], 2.0), 2 * x[0])
    assert "in parallel" in scaled().explain(x[0], 2.0)
    assert "scaled" in scaled().inspect("ir", x[0], 2.0)
    operator = scaled()
    assert operator.stats().name == "first::scaled"
    operator.warmup(torch.empty(3, device="meta"), 2.0)
    operator.check(x[0], 1.5)
    assert copy.deepcopy(operator) is operator
    assert pickle.loads(pickle.dumps(depthwise)) is depthwise


def test_a_gradient_may_be_given_before() -> None:
    operator = scaled()

    @operator.backward
    def _(x: torch.Tensor, y: float, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return 7 * grad, None

    x = torch.ones(3, requires_grad=True)
    operator(x, 2.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 7.0))


def test_other_arguments_are_refused() -> None:
    operator = scaled()
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        operator(torch.ones(3))
    with pytest.raises(TypeError, match="argument 'y' is a str, and has no annotation: annotate it as"):
        operator(torch.ones(3), "a")
    operator(torch.ones(3), 2)
    with pytest.raises(TypeError, match=r"'y' must be int, not float: pass int\(...\) of it, or annotate"):
        operator(torch.ones(3), 2.5)


@bw.op("first::lists")
def lists(parts, weights, flag, n=3):
    out = torch.zeros(n)
    for i in range(n):
        for part, w in zip(parts, weights):
            out[i] += part[i] * w if flag else w
    return out


def test_lists_and_numbers() -> None:
    parts = [torch.rand(3), torch.rand(3)]
    torch.testing.assert_close(lists(parts, (1, 0.5), True), parts[0] + 0.5 * parts[1])
    assert "Tensor[] parts, float[] weights, bool flag, SymInt n=3" in str(torch.ops.first.lists.default._schema)
