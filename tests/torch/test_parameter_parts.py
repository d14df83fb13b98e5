"""Parameters with parts: objects of dataclasses and NamedTuples, of which each field is a parameter of the schema."""

import inspect
import pickle
from collections import namedtuple
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Optional

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError

Tensor = torch.Tensor


class Gain(NamedTuple):
    factor: float = 1.0
    shift: Optional[Tensor] = None  # noqa: UP045  # as users write it


@dataclass(frozen=True)
class Filter:
    taps: Tensor
    count: int
    gain: Gain
    limits: tuple[float, float] = (-10.0, 10.0)

    def cut(self, value: Any) -> Any:
        return min(max(value, self.limits[0]), self.limits[1])


def amplified(given: Filter, value: Any) -> Any:
    return given.cut(value) * given.gain.factor


@bw.op("bwparts::filtered")
def filtered(x: Tensor, by: Filter, *, after: Gain = Gain(2.0)) -> Tensor:
    """Filter, limit and amplify."""
    out = torch.empty_like(x)
    for i in range(len(x)):
        total = 0.0
        for k in range(by.count):
            if i >= k:
                total += by.taps[k] * x[i - k]
        if by.gain.shift is not None:
            total += by.gain.shift[i]
        out[i] = amplified(by, total) * after.factor
    return out


@bw.op("bwparts::fill_")
def fill_(into: Filter) -> None:
    for i in range(into.count):
        into.taps[i] = into.gain.factor


@bw.op("bwparts::in_python")
def in_python(x: Tensor, gain: Gain) -> Tensor:
    factor, shift = gain
    y = x.relu() * factor
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = y[i] * gain.factor
        if shift is not None:
            out[i] += shift[i]
    return out


@bw.op("bwparts::untyped")
def untyped(x, by):
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = amplified(by, x[i]) + by.count
    return out


@bw.op("bwparts::halved")
def halved(x: Tensor, gain: Gain) -> Tensor:
    gain = gain._replace(factor=gain.factor / 2)
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * gain.factor
    return out


X = torch.linspace(-3.0, 4.0, 7)
BY = Filter(torch.tensor([0.5, 2.0, -1.0]), 3, Gain(1.5, torch.ones(7)))


def test_the_schema_has_a_parameter_for_each_part():
    schema = str(torch.ops.bwparts.filtered.default._schema)
    assert schema == (
        "bwparts::filtered(Tensor x, Tensor by_taps, SymInt by_count, float by_gain_factor, Tensor? by_gain_shift, "
        "float[] by_limits, *, float after_factor=2., Tensor? after_shift=None) -> Tensor"
    )
    assert list(inspect.signature(filtered).parameters) == ["x", "by", "after"]
    assert str(torch.ops.bwparts.fill_.default._schema).startswith("bwparts::fill_(Tensor(a!) into_taps")


@pytest.mark.parametrize("shift", [None, torch.ones(7)], ids=["without", "with"])
def test_it_is_an_operator_like_any_other(shift):
    by = replace(BY, gain=Gain(1.5, shift))
    filtered.check(X, by)
    filtered.check(X, by=by, after=Gain(3.0), constant=("by",))
    in_python.check(X, by.gain)
    expected = filtered.python(X, by)
    torch.testing.assert_close(filtered(X, by), expected)
    compiled = torch.compile(lambda x, by: filtered(x * 1, by) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(X, by), expected + 1)
    assert "by_count" in filtered.explain(X, by)
    assert pickle.loads(pickle.dumps(filtered)) is filtered


def test_gradients_flow_to_the_tensors_of_an_object():
    taps = BY.taps.clone().requires_grad_()
    filtered(X, replace(BY, taps=taps)).sum().backward()
    again = BY.taps.clone().requires_grad_()
    total = sum(again[k] * torch.nn.functional.pad(X, (k, 0))[: len(X)] for k in range(3)) + 1
    (total.clamp(-10, 10) * 3.0).sum().backward()
    torch.testing.assert_close(taps.grad, again.grad)


def test_a_tensor_of_an_object_is_written():
    into = replace(BY, taps=torch.zeros(3))
    fill_(into)
    assert into.taps.tolist() == [1.5] * 3


def test_a_name_may_be_assigned_anew():
    torch.testing.assert_close(halved(X, Gain(3.0)), X * 1.5)
    torch.testing.assert_close(halved.python(X, Gain(3.0)), X * 1.5)


def test_the_first_call_tells_the_class():
    untyped.check(X, BY)
    assert "Tensor by_taps, SymInt by_count" in str(torch.ops.bwparts.untyped.default._schema)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((X, 3), "argument 'by' must be Filter, not int"),
        ((X, replace(BY, gain=None)), "argument 'by.gain' must be Gain, not NoneType"),
        ((X, replace(BY, count=1.5)), "argument 'by_count' must be int, not float"),
        ((X,), "missing a required argument: 'by'"),
    ],
)
def test_wrong_objects_are_named(arguments, text):
    with pytest.raises(TypeError, match=text):
        filtered(*arguments)


def test_classes_without_annotations_are_refused():
    bare = namedtuple("bare", "a b")  # noqa: PYI024  # a class without annotations

    def scaled(x: Tensor, by: bare) -> Tensor:
        return torch.empty_like(x)

    with pytest.raises(CompileError, match="`a` has no annotation"):
        bw.op("bwparts::scaled")(scaled)


def test_a_part_is_not_stored_into():
    def stored(x: Tensor, by: Gain) -> Tensor:
        by.factor = 2.0
        return torch.empty_like(x)

    with pytest.raises(CompileError, match=r"`by.factor` is stored into, and a `Gain` is a value here"):
        bw.op("bwparts::stored")(stored)
