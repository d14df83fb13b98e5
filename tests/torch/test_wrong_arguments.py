"""What a caller is told whose arguments do not fit: operator, argument, what was given and what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import brickwork as bw
from brickwork.frontend.rules import WrongRankError


def row_sum(a: torch.Tensor, i: int) -> Any:
    total = 0.0
    for j in range(a.shape[1]):
        total += a[i, j]
    return total


@bw.op("bwwrong::unpacked")
def unpacked(k: torch.Tensor) -> torch.Tensor:
    B, C, T = k.shape
    out = torch.empty_like(k)
    for b, c in bw.ndrange(B, C):
        for t in range(T):
            out[b, c, t] = 2 * k[b, c, t]
    return out


@bw.op("bwwrong::helped")
def helped(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = row_sum(x, i) * w
    return out


@bw.op("bwwrong::listed")
def listed(xs: list[torch.Tensor]) -> torch.Tensor:
    out = torch.zeros(3)
    for i in range(3):
        for x in xs:
            out[i] += x[i]
    return out


@bw.op("bwwrong::in_python")
def in_python(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    y = torch.relu(x)
    out = torch.empty_like(x)
    for i in range(n):
        for j in range(m):
            out[i, j] = y[i, j] * w[j]
    return out


@bw.op("bwwrong::iterated")
def iterated(x: torch.Tensor) -> Any:
    total = 0.0
    for v in x:
        total += v
    return total


ONE, TWO, THREE = torch.ones(3), torch.ones(3, 4), torch.ones(3, 4, 2)
RANKS = [
    (unpacked, (TWO,), ["argument `k` of unpacked has 2 dimensions, and 3 are needed"], "B, C, T = k.shape"),
    (helped, (ONE, torch.ones(())), ["argument `x` of helped has 1 dimension, and 2 are needed"], "range(a.shape[1])"),
    (helped, (TWO, ONE), ["argument `w` of helped has 1 dimension, and 0 are needed"], "row_sum(x, i) * w"),
    (
        helped,
        (THREE, ONE),
        ["argument `x` of helped has 3 dimensions, and 2 are", "argument `w` of helped has 1 dimension, and 0 are"],
        "total += a[i, j]",
    ),
    (listed, ([ONE, TWO],), ["argument `xs[1]` of listed has 2 dimensions, and 1 is needed"], "out[i] += x[i]"),
    (in_python, (THREE, ONE), ["argument `x` of in_python has 3 dimensions, and 2 are needed"], "n, m = x.shape"),
    (in_python, (TWO, TWO), ["argument `w` of in_python has 2 dimensions, and 1 is needed"], "y[i, j] * w[j]"),
    (iterated, (TWO,), ["argument `x` of iterated has 2 dimensions, and 1 is needed"], "total += v"),
]


@pytest.mark.parametrize(("operator", "arguments", "told", "line"), RANKS)
def test_a_wrong_rank_is_told_to_the_caller(
    operator: bw.Op, arguments: tuple[object, ...], told: list[str], line: str
) -> None:
    overload = getattr(torch.ops.bwwrong, operator.name.partition("::")[2])
    runs: list[Callable[..., object]] = [operator, overload, operator.python]
    for run in runs:
        with pytest.raises(WrongRankError, match="BW301") as caught:
            run(*arguments)
        text = str(caught.value)
        assert line in text
        assert [each for each in told if each not in text] == []


def test_ranks_that_only_do_not_go_together_are_told_in_the_function() -> None:
    @bw.op("bwwrong::together")
    def together(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in bw.indices(x):
            out[i] = x[i] * y[i]
        return out

    assert together(TWO, TWO).shape == TWO.shape
    with pytest.raises(bw.CompileError, match="`y` has 1 dimension, but 2 indices") as caught:
        together(TWO, ONE)
    assert not isinstance(caught.value, WrongRankError)


def test_a_wrong_rank_is_told_without_data_too() -> None:
    with pytest.raises(WrongRankError, match="argument `k` of unpacked has 2 dimensions, and 3 are needed"):
        unpacked(TWO.to("meta"))
    with FakeTensorMode(), pytest.raises(WrongRankError, match="argument `x` of in_python has 3 dimensions"):
        in_python(torch.empty(3, 4, 2), torch.empty(4))
    compiled = cast("Any", torch).compile(unpacked, backend="eager")
    with pytest.raises(WrongRankError, match="argument `k` of unpacked has 2 dimensions, and 3 are needed"):
        compiled(TWO)


def test_an_object_in_a_loop_is_refused_where_it_is_used() -> None:
    @bw.op("bwwrong::paired")
    def paired(x: torch.Tensor) -> torch.Tensor:
        pair = SimpleNamespace(first=1.0, second=2.0)
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = pair.second * x[i] + pair.first
        return out

    with pytest.raises(bw.CompileError, match="BW301: `pair` is of type SimpleNamespace") as caught:
        paired(ONE)
    (found,) = caught.value.diagnostics
    assert "`first, second = pair.first, pair.second`" in found.help
    assert (found.loc.end_column - found.loc.column) == len("pair.second")


def test_what_to_pass_instead_is_told() -> None:
    @bw.op("bwwrong::scaled")
    def scaled(x: torch.Tensor, a: float, n: int) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(n):
            out[i] = x[i] * a
        return out

    wrong = [
        ((ONE.numpy(), 2.0, 3), r"'x' must be Tensor, not ndarray: pass torch.from_numpy\(...\) of it"),
        (([1.0], 2.0, 1), r"'x' must be Tensor, not list of float: pass torch.tensor\(...\) of it"),
        ((ONE, ONE, 3), r"'a' must be float, not Tensor of shape \(3,\): pass one of its elements, or annotate"),
        ((ONE, 2.0, 1.5), r"'n' must be int, not float: pass int\(...\) of it"),
    ]
    for arguments, message in wrong:
        with pytest.raises(TypeError, match=rf"scaled\(\): argument {message}"):
            scaled(*arguments)
    torch.testing.assert_close(scaled(ONE, torch.ones(1), torch.tensor(3)), ONE)
