"""Functions without annotations: the first call says what the arguments are, and all else is as with annotations."""

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import vmap

import brickwork as bw
from brickwork.diagnostics.errors import CompileError


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
    compiled = torch.compile(lambda x: operator(x, 2.0) + 1, fullgraph=True, backend="aot_eager")
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
    with pytest.raises(TypeError, match="argument 'y' is a dict, and has no annotation: annotate it as"):
        operator(torch.ones(3), {})
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


def test_methods_may_be_bound_before_the_first_call() -> None:
    operator = scaled()
    call, python, explain, stats, backward = (
        operator.__call__,
        operator.python,
        operator.explain,
        operator.stats,
        operator.backward,
    )
    x = torch.ones(3)
    operator(x, 2.0)
    torch.testing.assert_close(call(x, 3.0), 3 * x)
    torch.testing.assert_close(python(x, 3.0), 3 * x)
    assert "scaled" in explain("fusion", x, 2.0)
    assert stats().specialisations

    @backward
    def _(x: torch.Tensor, y: float, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return 7 * grad, None

    x.requires_grad_()
    operator(x, 2.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 7.0))


def test_threads_make_an_operator_once() -> None:
    x, operator, made = torch.ones(3), scaled(), []
    make = operator._make

    def slowly(**options: Any) -> None:
        made.append(options)
        time.sleep(0.05)
        make(**options)

    operator._make = slowly
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda y: operator(x, float(y)) / y, range(1, 17)):
            torch.testing.assert_close(found, x)
    assert len(made) == 1


def counted_source(x, n):  # type: ignore[no-untyped-def]
    out = torch.zeros_like(x)
    for i in range(n):
        out[i] = x[i]
    return out


def test_a_call_that_fails_fixes_no_kinds() -> None:
    operator = bw.op("first::counted")(counted_source)
    x = torch.ones(3)
    for ask in (operator, operator.explain, operator.warmup):
        with pytest.raises(CompileError, match="the bounds of a loop are integers"):
            ask(x, 2.5)
    assert "before its first call" in repr(operator)
    held = torch.ops.first.counted.default
    torch.testing.assert_close(operator(x, 2), torch.tensor([1.0, 1, 0]))
    assert "SymInt n" in str(torch.ops.first.counted.default._schema)
    with pytest.raises(CompileError, match="the bounds of a loop are integers"):
        held(x, 2.5)
    with pytest.raises(TypeError, match="'n' must be int, not float"):
        operator(x, 2.5)


def test_arrays_are_no_numbers() -> None:
    operator = scaled()
    with pytest.raises(TypeError, match="argument 'x' is a ndarray"):
        operator(np.zeros(1), 2.0)
    torch.testing.assert_close(operator(torch.ones(3), np.float32(2.0)), torch.full((3,), 2.0))


def perhaps_source(x, w=None):  # type: ignore[no-untyped-def]
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i] if w is None else w[i]
    return out


def test_a_list_is_not_none_by_default() -> None:
    operator = bw.op("first::perhaps")(perhaps_source)
    with pytest.raises(TypeError, match=r"'w' is a list, and None by default: take an empty list for none: `w=\(\)`"):
        operator(torch.ones(2), [2.0, 3.0])
    torch.testing.assert_close(operator(torch.ones(2)), torch.ones(2))

    def annotated(x: torch.Tensor, w: list[float] = None) -> None:  # type: ignore[assignment]  # noqa: RUF013  # The annotation is what is refused.
        for i in range(len(x)):
            x[i] = 1

    with pytest.raises(CompileError, match="take an empty list for none"):
        bw.op(annotated)


@bw.op("first::in_graph")
def in_graph(x, y):
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * y
    return out


def test_a_graph_may_be_the_first_to_call_a_global() -> None:
    x = torch.randn(4)
    compiled = torch.compile(lambda x: in_graph(x + 1, 2.0) + in_graph(x, 1.0), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), 3 * x + 2)
    assert type(in_graph) is bw.Op
