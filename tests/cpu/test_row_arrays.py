"""Rows that change from iteration to iteration, sums along axes, products with matrices: states, cells, filters."""

# Elements and slices are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportCallIssue=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree

pytestmark = pytest.mark.usefixtures("quick")

X = torch.linspace(-2, 2, 60, dtype=torch.float64).reshape(3, 5, 4).sin()
W = torch.linspace(-1, 1, 16, dtype=torch.float64).reshape(4, 4).cos() / 2


def decayed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = x[b, 0]
        for t in range(x.shape[1]):
            h = 0.5 * h + x[b, t]
            out[b, t] = h
    return out


def of_all(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, h = torch.empty_like(x), torch.zeros(x.shape[0], x.shape[2], dtype=x.dtype)
    for t in range(x.shape[1]):
        h = torch.tanh(x[:, t] + h)
        out[:, t] = h
    return out, h


def cell(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out, zero = torch.empty_like(x), torch.zeros(x.shape[2], dtype=x.dtype)
    for b in range(x.shape[0]):
        h = zero
        for t in range(x.shape[1]):
            h = torch.tanh(w @ x[b, t] + h @ w)
            out[b, t] = h
    return out


def attention(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            s = torch.softmax(x[b] @ (w @ x[b, i]), 0)
            out[b, i] = s @ x[b]
    return out


def power(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x[0])
    for i in range(out.shape[0]):
        v = x[0, i]
        for _ in range(3):
            v = w @ v
            v = v / (v.norm() + 1)
        out[i] = v
    return out


def fibonacci(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x[0])
    p, q = x[0, 0], x[0, 1]
    for k in range(out.shape[0]):
        p, q = q, p + q
        out[k] = p - q
    return out


def previous(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x[0])
    h = x[0, 0]
    for k in range(out.shape[0]):
        before = h
        h = 0.5 * h + x[1, k]
        out[k] = h - before
    return out


def in_branches(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x[0])
    for k in range(out.shape[0]):
        if x[0, k, 0] > 0:
            h = x[0, k] * 2
        else:
            h = -x[0, k]
        v = x[1, k]
        if v.sum() > 0:
            v = v * h
        out[k] = h + v
    return out


def shifted(h):
    for _ in range(2):
        h = h * 0.5 + h.mean()
    return h


def by_helpers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t] = shifted(x[b, t]) + shifted(w @ x[b, t])
    return out


def arguments(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = torch.empty_like(x)
    for t in range(x.shape[1]):
        for b in range(x.shape[0]):
            w = w * 0.5 + x[b, t]
            out[b, t] = w.sum(0)
    return out, w


def number(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    total = torch.zeros((), dtype=x.dtype)
    for b in range(x.shape[0]):
        total = total * 0.5 + x[b].sum()
    return total


def along_axes(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, spread = torch.empty_like(x), torch.empty(x.shape[0], x.shape[2], dtype=x.dtype)
    for b in range(x.shape[0]):
        part = x[b] - x[b].mean(dim=-1, keepdim=True)
        out[b] = part / (part.abs().sum(1, keepdim=True) + 1) + torch.amax(x[b], 0) - x[b].amin(0, keepdim=True)
        spread[b] = x[b].sum(0) * x[b].prod(dim=0)
    return out, spread


def of_each_row(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, more = torch.empty_like(x), torch.empty(x.shape[0], x.shape[2], dtype=x.dtype)
    for b in range(x.shape[0]):
        values, _ = torch.sort(x[b], dim=0)
        out[b] = torch.softmax(x[b], -1) + torch.cumsum(x[b], 0) * values
        more[b] = torch.logsumexp(x[b], 0) + x[b].std(0) + x[b].argmax(0)
    return out, more


def matrices(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], x.shape[1], x.shape[1], dtype=x.dtype)
    for b in range(x.shape[0]):
        keys = x[b] @ w
        values = torch.matmul(torch.relu(keys), w @ w)
        out[b] = values.sum(1, keepdim=True) * torch.mv(keys, w[0])
    return out


def named_slices(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        a = x[b, 1:3]
        a = a * 2
        out[b, 1:3] = a.sum(0, keepdim=True) * a
    return out


def earlier(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x[0])
    before = torch.zeros(x.shape[2], dtype=x.dtype)
    h = torch.zeros(x.shape[2], dtype=x.dtype)
    for t in range(x.shape[1]):
        before = h
        h = 0.5 * h + x[0, t]
        out[t] = h - before
    return out


def in_an_else(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x[0])
    for t in range(x.shape[1]):
        h = x[0, t]
        for _ in range(3):
            h = h * 2
            if h.abs().max() > 3:
                break
        else:
            h = h - 1
        out[t] = h
    return out


def rows_at_once(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out, h = torch.empty_like(x), torch.zeros(x.shape[1], x.shape[2], dtype=x.dtype)
    for t in range(x.shape[0]):
        h = torch.softmax(h + x[t], -1)
        out[t] = h
    return out


FUNCTIONS = [
    *(decayed, of_all, cell, attention, power, fibonacci, previous, in_branches, by_helpers, arguments, number),
    *(along_axes, of_each_row, matrices, named_slices, earlier, in_an_else, rows_at_once),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_four_agree(function: Callable[..., Any]) -> None:
    assert agree(function, X.clone(), W.clone()).definition.host == "native"


@pytest.mark.parametrize("function", [decayed, of_all, cell, attention, number, along_axes, arguments])
def test_layouts_of_arguments_do_not_matter(function: Callable[..., Any]) -> None:
    operator = bw.op(f"row_arrays::strided_{function.__name__}")(function)
    given = X.transpose(0, 1).contiguous().transpose(0, 1), W.T.contiguous().T
    torch.testing.assert_close(operator(*given), function(*given))
    given = X[:, :1].expand(3, 5, 4), W[:1].expand(4, 4)
    torch.testing.assert_close(operator(*given), function(*given))
    given = X.float(), W.float()
    torch.testing.assert_close(operator(*given), function(*given))


@pytest.mark.parametrize("function", [decayed, of_all, cell, power, fibonacci, in_branches, arguments])
def test_gradients_are_those_of_torch(function: Callable[..., Any]) -> None:
    operator = bw.op(f"row_arrays::gradient_{function.__name__}")(function)
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()

    def slopes(run: Callable[..., Any]) -> tuple[torch.Tensor, ...]:
        found = run(x, w)
        first = found[0] if isinstance(found, tuple) else found
        return torch.autograd.grad(first.square().sum(), (x, w), allow_unused=True, materialize_grads=True)

    torch.testing.assert_close(slopes(operator), slopes(function))


@pytest.mark.parametrize("function", [attention, along_axes, of_each_row, matrices, by_helpers])
def test_gradients_of_sums_and_products_are_those_of_torch(function: Callable[..., Any]) -> None:
    test_gradients_are_those_of_torch(function)


def test_rows_that_change_may_be_empty_or_single() -> None:
    agree(decayed, torch.ones(2, 3, 0), W, name="decayed_empty")
    agree(decayed, torch.ones(0, 3, 2), W, name="decayed_none")
    agree(cell, torch.ones(1, 1, 4, dtype=torch.float64), W, name="cell_single")
    agree(of_all, torch.ones(2, 0, 3), W, name="of_all_no_steps")


def typed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, h = torch.empty_like(x), torch.zeros(x.shape[1])
    for t in range(x.shape[0]):
        h = h + x[t]
        out[t] = h
    return out, h


def test_an_array_has_the_type_in_which_all_rows_meet() -> None:
    x = X[0]
    found, wanted = bw.op("row_arrays::typed")(typed)(x), typed(x)
    torch.testing.assert_close(found, wanted)
    assert found[1].dtype == torch.float64


def narrow(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, h = torch.empty_like(x), torch.zeros(x.shape[1], dtype=x.dtype)
    for t in range(x.shape[0]):
        h = h * 2 + x[t]
        out[t] = h
    return out, h


@pytest.mark.parametrize(
    ("dtype", "kept"), [(torch.bfloat16, torch.float32), (torch.int8, torch.int64), (torch.int64, torch.int64)]
)
def test_an_array_of_narrow_elements_holds_numbers(dtype: torch.dtype, kept: torch.dtype) -> None:
    x = (X[0] * 4).to(dtype)
    found, wanted = bw.op("row_arrays::narrow")(narrow)(x), narrow(x.to(kept))
    assert found[1].dtype == kept
    torch.testing.assert_close(found[1], wanted[1])
    torch.testing.assert_close(found[0].to(kept), wanted[0].to(dtype).to(kept))


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    for t in range(y.shape[0]):
        row, end = y[t], y[t, 1:]
        row += 1
        end[0] = 3
        end *= 2
        own = y[t].clone()
        own += 5
        own[0] = 7
        y[t, -1] = own.sum()
    return y


def test_names_of_parts_are_views_and_clones_are_not() -> None:
    assert agree(in_place, X[0]).definition.host == "native"


def changed(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        row = x[t]
        row += 1
        out[t] = row
    return out


def overwritten(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    h = y[0]
    for t in range(x.shape[0]):
        h = h * 0.5 + y[t]
        y[t] = h
    return y


def shared(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    h = 2 * x[0]
    for t in range(x.shape[0]):
        h = h + x[t]
        before = h
        h += 1
        out[t] = before
    return out


def in_the_next_iteration(x: torch.Tensor) -> torch.Tensor:
    y, out, h = x.clone(), torch.empty_like(x), torch.zeros(x.shape[1], dtype=x.dtype)
    for t in range(x.shape[0]):
        y[0] = y[0] + 1
        out[t] = h
        h = y[0]
    return out


def after_a_branch(x: torch.Tensor) -> torch.Tensor:
    y, out = x.clone(), torch.empty_like(x)
    for t in range(x.shape[0]):
        h = x[t]
        if x[t, 0] > 0:
            h = y[0]
        y[0] = y[0] + 1
        out[t] = h
    return out


def of_one_row(x: torch.Tensor) -> torch.Tensor:
    out, h = torch.empty_like(x), x[0] * 2
    for t in range(x.shape[0]):
        a, b = h, h[1:]
        h = h * 2
        b[0] = 7
        out[t] = a
    return out


def with_its_part(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        a = x[t] * 2
        b = a[1:]
        a += 1
        out[t, 1:] = b
    return out


def by_its_part(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        a = x[t] * 2
        b = a[1:]
        b += 1
        out[t] = a
    return out


def by_a_stored_part(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        a = x[t] * 2
        b = a[1:]
        b[0] = 1
        out[t] = a
    return out


def by_a_part_that_changes(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        a = x[t] * 2
        b = a[1:]
        for _ in range(2):
            b += 1
            b = b * 2
        out[t] = a
    return out


def by_its_rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for t in range(2):
        m = x * (2 + t)
        for r in m:
            r += 1
        out = out + m
    return out


def in_a_list(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for t in range(x.shape[0]):
        a = x[t, :] * 2
        kept = [(a, 1), (a * 2, 2)]
        a *= 3
        out[t] = kept[0][0]
    return out


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (in_the_next_iteration, "is kept while `y`, which it is made of, is stored into"),
        (after_a_branch, "is kept while `y`, which it is made of, is stored into"),
        (of_one_row, "is changed in place, and another name stands for the same items"),
        (with_its_part, "`a` is changed in place, and another name stands for the same items"),
        (by_its_part, "a part of a row that was computed is changed in place"),
        (by_a_stored_part, "a part of a row that was computed is changed in place"),
        (by_a_part_that_changes, "`b` is changed in place, and another name stands for the same items"),
        (by_its_rows, "a part of a row that was computed is changed in place"),
        (in_a_list, "`a` is changed in place, and another name stands for the same items"),
        (changed, "`row` is a part of `x`, which would be changed in place"),
        (shared, "`h` is changed in place, and another name stands for the same items"),
    ],
)
def test_what_python_would_see_twice_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        bw.op(function)(X[0].clone())


def test_a_row_of_another_length_is_told() -> None:
    def replaced(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        h = x[0]
        for t in range(x.shape[0]):
            h = w @ h
            out[t] = h.sum()
        return out

    operator = bw.op("row_arrays::replaced")(replaced)
    torch.testing.assert_close(operator(X[0], W), replaced(X[0], W))
    for run in (operator, replaced):
        with pytest.raises(RuntimeError):
            run(X[0], W[:3].contiguous())


def test_sizes_of_products_are_checked() -> None:
    def times(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], w.shape[0], dtype=x.dtype)
        for i in range(x.shape[0]):
            out[i] = w @ x[i]
        return out

    operator = bw.op("row_arrays::times")(times)
    torch.testing.assert_close(operator(X[0], W), times(X[0], W))
    for run in (operator, operator.python):
        with pytest.raises(RuntimeError, match="size mismatch of a product: 3 and 4"):
            run(X[0], W[:, :3].contiguous())
