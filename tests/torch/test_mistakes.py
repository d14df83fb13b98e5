"""Forty mistakes, in programs and in calls: each error names the user's line, argument and value, and what to write."""

# What is tested are mistakes, some of which pyright sees, too.
# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportInvalidTypeForm=false, reportOptionalSubscript=false, reportReturnType=false
# pyright: reportUndefinedVariable=false, reportPossiblyUnboundVariable=false
from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError

X = torch.tensor([1.0, 2.0, 3.0])
ALIAS = torch.Tensor


def scaled(x: torch.Tensor, k: int = 2, scale: float = 1.0) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * k * scale
    return out


def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + y[j]
    return out


def shifted(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.empty(n)
    for i in range(n):
        out[i] = x[i + 1]
    return out


def chosen(x: torch.Tensor, mode: Literal["sum", "mean"]) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = 1 if mode == "sum" else 2
    return out


def divided(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = i // n
    return out


def biased(x: torch.Tensor, bias: ALIAS | None = None) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i] + bias[i]
    return out


scaled_operator, added_operator, shifted_operator, chosen_operator, divided_operator, biased_operator = (
    bw.op(f"mistakes::{function.__name__}")(function) for function in (scaled, added, shifted, chosen, divided, biased)
)

CALLS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: scaled_operator(X, 2**70), OverflowError, "'k' must fit in 64 bits, and 0x400000000000000000 does not"),
    (lambda: scaled_operator(X, scal=2.0), TypeError, "keyword argument 'scal': did you mean 'scale'?"),
    (lambda: added_operator(x=X, yy=X), TypeError, "got an unexpected keyword argument 'yy': did you mean 'y'?"),
    (lambda: added_operator(X, X, other=X), TypeError, "unexpected keyword argument 'other': it has x, y"),
    (lambda: added_operator(X, X, 1, 2), TypeError, "added() takes 2 arguments (x, y), not 4"),
    (lambda: added_operator(X), TypeError, "added() missing a required argument: 'y'"),
    (lambda: scaled_operator(X, 2, k=3), TypeError, "scaled() multiple values for argument 'k'"),
    (lambda: scaled_operator(X, 2.5), TypeError, "'k' must be int, not float: pass int(...) of it"),
    (lambda: scaled_operator(X, "2"), TypeError, "scaled(): argument 'k' must be int, not str"),
    (lambda: scaled_operator([1.0]), TypeError, "'x' must be Tensor, not list of float: pass torch.tensor(...)"),
    (lambda: scaled_operator(np.ones(3)), TypeError, "must be Tensor, not ndarray: pass torch.from_numpy(...)"),
    (lambda: scaled_operator(None), TypeError, "argument 'x' must be Tensor, not NoneType"),
    (lambda: scaled_operator(X, torch.ones(2)), TypeError, "must be int, not Tensor of shape (2,): pass one of its"),
    (lambda: scaled_operator(torch.eye(3).to_sparse()), CompileError, "pass `.to_dense()` of it"),
    (lambda: scaled_operator(X.to(torch.float8_e4m3fn)), CompileError, "pass `.to(torch.float16)` of it"),
    (lambda: added_operator(X[None], X.to("meta")), RuntimeError, "added: 'x' is on cpu, 'y' is on meta"),
    (lambda: added_operator(X, X), CompileError, "argument `x` of added has 1 dimension, and at least 2 are needed"),
    (lambda: added_operator(X[None], X[:2]), IndexError, "index 2 is out of bounds for dimension 0 of tensor 'y'"),
    (lambda: shifted_operator(X, 3), IndexError, "index 3 is out of bounds for dimension 0 of tensor 'x' with size 3"),
    (lambda: shifted_operator(X, -1), RuntimeError, "negative dimension -1 (shifted, "),
    (lambda: divided_operator(X, 0), ZeroDivisionError, "integer division by zero (divided, "),
    (lambda: chosen_operator(X, "men"), Exception, "mode of chosen must be 'sum' or 'mean', not 'men'"),
    (lambda: biased_operator(X), CompileError, "test `bias is not None` before"),
]


@pytest.mark.parametrize(("call", "kind", "said"), CALLS, ids=[said for *_, said in CALLS])
def test_a_mistaken_call_is_told_by_argument(call: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=re.escape(said)):
        call()


def huge_power(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = 2**70 + i


def enormous_power(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = 3**4000 * x[i]


def misspelt_name(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        total = 2 * x[i]
        out[i] = total + totl  # noqa: F821


def misspelt_attribute(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shap[0]):
        out[i] = x[i]


def misspelt_function(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = math.sinn(x[i])


def not_called(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = x[i].exp


def returned_in_a_loop(x: torch.Tensor, out: torch.Tensor) -> int:
    for i in range(len(x)):
        if x[i] > 1:
            return i


def argument_returned(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    for i in range(len(x)):
        x[i] = 2 * x[i]
    return x


def range_shadowed(x: torch.Tensor, out: torch.Tensor) -> None:
    range = 3  # noqa: A001
    for i in range(len(x)):
        out[i] = x[i]


def array_made(x: torch.Tensor) -> torch.Tensor:
    out = np.zeros(3)
    for i in range(len(x)):
        out[i] = x[i]
    return torch.from_numpy(out)


def yields(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        yield x[i]


def stores_global(x: torch.Tensor, out: torch.Tensor) -> None:
    global COUNT
    COUNT = 0
    for i in range(len(x)):
        COUNT += 1
        out[i] = COUNT


def factorial(n: int) -> int:
    return 1 if n < 2 else n * factorial(n - 1)


def recurs(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = factorial(i)


def half_index(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = x[i / 2]


def half_range(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x) / 2):
        out[i] = x[i]


def not_begun(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        total += x[i]  # noqa: F821
        out[i] = total


def bound_in_a_branch(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        if x[i] > 0:
            v = x[i]
        out[i] = v


def prints(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        print(i, x[i])
        out[i] = x[i]


def tries(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        try:
            out[i] = 1 / x[i]
        except ZeroDivisionError:
            out[i] = 0


def changes_a_dictionary(x: torch.Tensor, out: torch.Tensor) -> None:
    seen = {}
    for i in range(len(x)):
        seen[i] = x[i]
        out[i] = seen[i]


def fills_a_set(x: torch.Tensor, out: torch.Tensor) -> None:
    seen = set()
    for i in range(len(x)):
        seen.add(i)
        out[i] = len(seen)


def too_many_indices(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = x[i, 0]


def whole_condition(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        if x:
            out[i] = 1


def unpacked(x: torch.Tensor, out: torch.Tensor) -> None:
    n, m = x.shape
    for i in range(n):
        out[i] = m


def python_random(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = random.random()


def exact_sum(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(x)):
        out[i] = math.fsum(x[j] for j in range(i))


PROGRAMS: list[tuple[Callable[..., Any], str, str]] = [
    (huge_power, "2**70", "1180591620717411303424 does not fit in 64 bits"),
    (enormous_power, "3**4000", "this integer does not fit in 64 bits"),
    (misspelt_name, "totl", "`totl` is not defined"),
    (misspelt_attribute, "x.shap", "a tensor's `shap` is not part of the language"),
    (misspelt_function, "math.sinn(x[i])", "write `math.sin`, if that is meant"),
    (not_called, "x[i].exp", "call it: `.exp()`"),
    (returned_in_a_loop, "return i", "set a variable and `break`"),
    (argument_returned, "x", "return nothing, or a new tensor"),
    (range_shadowed, "range(len(x))", "give the variable another name"),
    (array_made, "out", "write `out = torch.from_numpy(out)` before"),
    (yields, "yield x[i]", "store into a tensor"),
    (stores_global, "global COUNT", "pass the value as an argument and return the result"),
    (recurs, "factorial", "write a loop instead of the recursion"),
    (half_index, "i / 2", "write int(...) around it, or divide with //"),
    (half_range, "range(len(x) / 2)", "write int(...) around it"),
    (not_begun, "total += x[i]", "give `total` a value before"),
    (bound_in_a_branch, "v", "`v` may be read before it is assigned"),
    (prints, "print(i, x[i])", "step through `.python(...)` of the operator in a debugger"),
    (tries, "try:", "test for the condition with `if`"),
    (changes_a_dictionary, "{}", "use a local variable for each key, or a tensor that is indexed by the key"),
    (fills_a_set, "set()", "mark in a tensor of bool what is in the set"),
    (too_many_indices, "x[i, 0]", "argument `x` of too_many_indices has 1 dimension, and 2 are needed"),
    (whole_condition, "x", "`x` is a tensor here, not a condition"),
    (unpacked, "n, m = x.shape", "2 names are assigned, but there is 1 value"),
    (python_random, "random.random()", "write `bw.rand()`"),
    (exact_sum, "(x[j] for j in range(i))", "`sum` for `math.fsum`"),
]


@pytest.mark.parametrize(("function", "place", "said"), PROGRAMS, ids=[item[0].__name__ for item in PROGRAMS])
def test_a_mistaken_program_is_told_by_line(function: Callable[..., Any], place: str, said: str) -> None:
    given = [X.clone()] if function is array_made else [X.clone(), X.clone()]
    with pytest.raises(CompileError, match=re.escape(said)) as caught:
        bw.op(function)(*given)
    locations = [loc for item in caught.value.diagnostics for loc in (item.loc, *(note.loc for note in item.notes))]
    lines = Path(__file__).read_text().splitlines()
    found = [lines[loc.line - 1][loc.column : loc.end_column] for loc in locations if loc.file == __file__]
    assert place in found
