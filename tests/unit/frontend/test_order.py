"""Operands are evaluated from left to right, each before what later ones store."""

import pytest
import torch

from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import define
from brickwork.frontend.reference import python_function
from support.lowering import memory, nested, run


def bump(t, i):
    t[i] += 1
    return t[i]


def joined(a, b):
    return a * 100 + b


def of_a_builtin(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = max(x[i], bump(x, i) - 10)


def of_a_helper(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = joined(x[i], bump(x, i))


def of_a_chain(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        if x[i] < bump(x, i) < x[i] + 1:
            out[i] = 1


def of_a_tuple(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        a, b = x[i], bump(x, i)
        out[i] = a * 10 + b


def of_an_operator(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[i] = x[i] - 2 * bump(x, i)


@pytest.mark.parametrize("function", [of_a_builtin, of_a_helper, of_a_chain, of_a_tuple, of_an_operator])
def test_an_operand_has_the_value_from_before_what_a_later_one_stores(function):
    x, out = memory([0.0, 1.0, 2.0]), memory([0.0] * 3)
    tensors = torch.tensor(nested(x)), torch.zeros(3)
    run(function, x, out)
    python_function(define(function))(*tensors)
    assert (nested(x), nested(out)) == (tensors[0].tolist(), tensors[1].tolist())


def through_other_names(x: torch.Tensor, out: torch.Tensor) -> None:
    s, t = 0.0, 1.0
    for i in range(x.shape[0]):
        t = x[i]
        s, t = t, s
    s = 7.0
    out[0] = s


def test_a_statement_between_loops_keeps_its_place_whatever_reached_the_name():
    x, out = memory([1.0, 2.0]), memory([0.0])
    run(through_other_names, x, out)
    assert nested(out) == [7.0]


def after_a_while(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        n = 0
        while n < i:
            n += 1
        else:
            s = x[i]
            s += n
            out[i] = s + x[i]


def test_an_else_after_a_while_has_values_in_python_too():
    x, out = memory([1.0, 2.0, 3.0]), memory([0.0] * 3)
    tensors = torch.tensor(nested(x)), torch.zeros(3)
    run(after_a_while, x, out)
    python_function(define(after_a_while))(*tensors)
    assert (nested(x), nested(out)) == (tensors[0].tolist(), tensors[1].tolist()) == ([1.0, 2.0, 3.0], [2.0, 5.0, 8.0])


def raised(t):
    t[0] = t[0] + 1.0
    return 1.0


def raised_in_a_loop(t, n: int):
    for k in range(n):
        t[k] += 1.0
    return 1.0


def of_three(a, b: float = 0.0, c: float = 0.0):
    return a * 100 + b * 10 + c


def names_that_change(m: torch.Tensor, out: torch.Tensor, s: int) -> None:
    for t in range(2):
        p = s
        out[0] += p + (p := 3) + p
        out[1] += m[0, p % 4] + m[1, (p := p + 1) % 4] + m[0, p % 4]
        if p < (p := p + 1) < (p := p + 1) and (p, s) != ((p := 1), s):
            p += (p := 7)
        a, b, c = p, (p := 9), p
        out[2] += max(p, (p := 1), p) + of_three(a, c=b, b=(p := 2)) * p + c
        out[p % 4] += (p := p + 1)
        out[(p := 5) % 4] = p + t
        for j in range(p, p + (p := 3)):
            out[j % 4] += p + m[p % 4][(p := 2) % 4]
        m[p % 4][(p := p + 1) % 4] += p * 100


def elements_that_change(m: torch.Tensor, out: torch.Tensor, s: int) -> None:
    for t in range(2):
        out[0] += raised_in_a_loop(out, 3)
        out[1] += of_three(out[0], b=raised(out), c=out[0])
        out[int(raised(out))] = out[0]
        out[2] += max((raised(out) for i in range(s - 1)), default=out[0])
        v = [raised(out) + out[0] for _ in range(3)]
        out[3] += v[0] + v[1] * 10 + v[2] * 100


def what_a_loop_runs_over(m: torch.Tensor, out: torch.Tensor, s: int) -> None:
    for t in range(2):
        p = s
        for k, v in enumerate(m[p % 4]):
            p += 1
            out[k] += v
        for v in reversed(m[p % 4]):
            p += 1
            out[p % 4] += v
        for v in (p, p + 1, out[0]):
            p = 10
            out[0] = 5.0
            out[1] += v
            if v > 50:
                break


def what_is_evaluated_once(m: torch.Tensor, out: torch.Tensor, s: int) -> None:
    for t in range(2):
        out[1] += min((m[0, i] for i in range(int(raised(out)) + 2) if i > 0), default=3.0)
        out[2] += min(m[0, i] for i in range(int(raised(out)) + 2))
        w = [m[0, i] + t for i in range(int(raised(out)) + 1)]
        out[3] += w[t % 2]


@pytest.mark.parametrize("s", [1, 2, 6])
@pytest.mark.parametrize(
    "function", [names_that_change, elements_that_change, what_a_loop_runs_over, what_is_evaluated_once]
)
def test_an_operand_has_the_value_from_before_what_is_evaluated_later(function, s):
    rows = [[float((3 * i + 5 * j) % 7) for j in range(4)] for i in range(4)]
    m, out = memory(rows), memory([1.0, 2.0, 3.0, 4.0])
    tensors = torch.tensor(rows), torch.tensor([1.0, 2.0, 3.0, 4.0])
    run(function, m, out, s)
    python_function(define(function))(*tensors, s)
    assert (nested(m), nested(out)) == (tensors[0].tolist(), tensors[1].tolist())


def rows_that_only_look_exchanged(out: torch.Tensor) -> None:
    for _ in range(1):
        a = [[1.0 * i for _ in range(2)] for i in range(4)]
        p = 0
        a[p + 1], a[p] = a[p], a[(p := p + 1) + 1]
        a[0][0] = 9.0
        out[0] = a[2][0]


def test_rows_are_the_same_only_where_what_names_them_has_not_changed():
    with pytest.raises(CompileError, match="one and the same list"):
        run(rows_that_only_look_exchanged, memory([0.0]))
