"""Reverse mode on what programs are made of: jumps, loops of every kind, locals, exchanges, elements stored over."""

import math

import pytest
import torch

import brickwork as bw
from brickwork.ir.nodes import Rebind
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from support.gradients import check_gradients, numbers
from support.scheduling import scheduled
from support.shared import schedule_program

CASES = []


def case(*arguments):
    def add(function):
        CASES.append(pytest.param(function, arguments, id=function.__name__))
        return function

    return add


@case(numbers(5))
def with_break(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    s = 1.0
    for i in range(x.shape[0]):
        s = s * x[i] + x[i]
        out[i] = s
        if s > 0.5:
            break
        out[i] = s * s
    return out


@case(numbers(6))
def with_continue(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    s = 1.0
    for i in range(x.shape[0]):
        if x[i] < 0:
            continue
        s = s * x[i]
        if s > 100:
            break
        out[i] = s
    return out


@case(numbers(5))
def newton(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        a = abs(x[i]) + 0.5
        y = a
        while abs(y * y - a) > 1e-9:
            y = 0.5 * (y + a / y)
        out[i] = y
    return out


@case(numbers(4), 3)
def while_breaks(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        y = x[i]
        k = 0
        while True:
            k += 1
            if k == 2:
                continue
            y = y * y + x[i]
            if k > n:
                break
        out[i] = y
    return out


@case(numbers(3, 4))
def in_place_scan(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(1, x.shape[1]):
            x[i, j] = x[i, j] * x[i, j - 1]


@case(numbers(5), 3)
def time_stepping(u: torch.Tensor, steps: int) -> torch.Tensor:
    a = torch.empty_like(u)
    b = torch.empty_like(u)
    for i in range(u.shape[0]):
        a[i] = u[i]
        b[i] = 0
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            b[i] = a[i - 1] * a[i] + a[i + 1]
        for i in range(1, u.shape[0] - 1):
            a[i] = b[i] * 0.5
    return a


@case(numbers(5), 4)
def exchanged(u: torch.Tensor, steps: int) -> torch.Tensor:
    a = torch.empty_like(u)
    b = torch.empty_like(u)
    for i in range(u.shape[0]):
        a[i] = u[i]
        b[i] = u[i] * u[i]
    for t in range(steps):
        for i in range(1, u.shape[0] - 1):
            b[i] = a[i - 1] * a[i] + a[i + 1]
        a, b = b, a
    return a


@case(numbers(2, 6), numbers(3))
def median(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for i in range(1, x.shape[1] - 1):
            v = [0.0, 0.0, 0.0]
            for k in range(3):
                v[k] = x[b, i + k - 1] * w[k]
            for p in range(2):
                for q in range(2):
                    if v[q] > v[q + 1]:
                        v[q], v[q + 1] = v[q + 1], v[q]
            out[b, i] = v[1]
        out[b, 0] = 0
        out[b, x.shape[1] - 1] = 0
    return out


@case(numbers(4), numbers(3))
def local_horner(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        h = [1.0, 1.0, 1.0]
        for t in range(4):
            for k in range(3):
                h[k] = h[k] * x[i] + h[(k + 1) % 3] * c[k]
            if h[0] > 0:
                h[1] = h[1] * h[0]
        out[i] = h[0] + h[2] * h[1]
    return out


@case(numbers(4))
def tables(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for k in range(3):
            s = s * x[i] + (0.5, 1.5, -2.0)[k]
        out[i] = s
    return out


@case(numbers(3, 4))
def layer_norm(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.shape[1]
    for i in range(x.shape[0]):
        m = 0.0
        for j in range(n):
            m += x[i, j]
        m /= n
        v = 0.0
        for j in range(n):
            v += (x[i, j] - m) ** 2
        r = 1 / math.sqrt(v / n + 1e-5)
        for j in range(n):
            out[i, j] = (x[i, j] - m) * r
    return out


@case(numbers(4), torch.tensor([1, 3, 0, 2]))
def permuted(x: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in bw.prange(x.shape[0]):
        out[p[i]] = x[i] * x[i]
    return out


@case(numbers(4), numbers(1))
def claimed_shared(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in bw.prange(x.shape[0]):
        out[i] = x[i] * w[0]
    return out


@case(numbers(6), torch.tensor([0, 2, 5, 6]))
def ragged(x: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros((starts.shape[0] - 1,))
    for r in range(starts.shape[0] - 1):
        s = 1.0
        for i in range(starts[r], starts[r + 1]):
            s = s * x[i] + 0.5
        out[r] = s
    return out


@case(numbers(3, 3))
def triangular_solve(a: torch.Tensor) -> torch.Tensor:
    n = a.shape[0]
    x = a.new_zeros((n,))
    for i in range(n):
        s = 1.0
        for j in range(i):
            s -= a[i, j] * x[j]
        x[i] = s / (a[i, i] + 3)
    return x


@case(numbers(3, 3))
def cholesky(a: torch.Tensor) -> torch.Tensor:
    n = a.shape[0]
    l = torch.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j] * 0.1
            if i == j:
                s += 3.0
            for k in range(j):
                s -= l[i, k] * l[j, k]
            if i == j:
                l[i, j] = math.sqrt(s)
            else:
                l[i, j] = s / l[j, j]
    return l


@case(numbers(0), numbers(0))
def empty(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * y[i]
    return out


@case(numbers(4), [numbers(3), numbers(2)], None)
def lists(x: torch.Tensor, ys: list[torch.Tensor], z: torch.Tensor | None) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = x[i]
        for y in ys:
            for j in range(y.shape[0]):
                s = s * y[j] + 1
        out[i] = s
    if z is not None:
        for i in range(x.shape[0]):
            out[i] += z[i]
    return out


@case(numbers(5))
def product_all(x: torch.Tensor) -> torch.Tensor:
    p = 1.0
    for i in range(x.shape[0]):
        p *= x[i]
    return p


@case(numbers(5))
def minmax(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    lo, hi = x[0], x[0]
    for i in range(x.shape[0]):
        lo = min(lo, x[i])
        if x[i] > hi:
            hi = x[i]
    return lo, hi


@case(numbers(5))
def draws(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        if bw.rand() < 0.5:
            out[i] = x[i] * x[i] * 2
        else:
            out[i] = bw.randn() * x[i]
    return out


@case(numbers(4), numbers(4))
def mutated_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    s = 0.0
    for i in range(x.shape[0]):
        y[i] = x[i] * y[i]
        s += y[i] * y[i]
    for i in range(x.shape[0]):
        y[i] += s
    return s


@case(numbers(4))
def select_nan(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = math.sqrt(x[i]) if x[i] > 0 else x[i] * 3
    return out


@case(numbers(4), 2)
def power(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] ** 3 + abs(x[i]) ** 1.5 + x[i] ** n
    return out


@case(numbers(3), numbers(4), torch.tensor([0, 1, 2, 0]))
def scatter_update(x: torch.Tensor, y: torch.Tensor, idx: torch.Tensor) -> None:
    for i in range(y.shape[0]):
        x[idx[i]] = x[idx[i]] * y[i]


@case(numbers(3, 3))
def flip_in_place(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(i):
            a = x[i, j]
            b = x[j, i]
            x[i, j] = b * a
            x[j, i] = a


@case(numbers(6))
def nested_break(x: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros((3,))
    for r in range(3):
        s = 1.0
        for i in range(x.shape[0]):
            t = x[i] * s
            for k in range(4):
                t = t * 1.1 + x[i]
                if t > 1:
                    break
            if t < -3:
                continue
            s += t * 0.1
            if s > 2 + r:
                break
        out[r] = s
    return out


@case(numbers(5), 2)
def blocks_of_a_size_given_at_run_time(x: torch.Tensor, groups: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    last = x.new_zeros((1,))
    for g in range(groups):
        last[0] = 1.0
        for c in range(g * (len(x) // groups), (g + 1) * (len(x) // groups)):
            last[0] = last[0] * x[c] + x[c]
            out[c] = last[0]
    return out


@case(numbers(5), 2)
def chunks_of_a_length_given_at_run_time(x: torch.Tensor, chunk: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    state = x.new_zeros((1,))
    for start in range(0, len(x), chunk):
        for t in range(start, min(start + chunk, len(x))):
            out[t] = x[t] * (x[t] + state[0])
        state[0] = 0.5 * state[0] * state[0] + x[start]
    return out


@case(numbers(4, 2))
def local_changed_in_any_order(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for t in range(x.shape[0]):
        acc = [0.0] * 2
        for d in range(2):
            acc[d] = x[t, d]
        for d in range(2):
            out[t, 0] += acc[d] * acc[d]
        for d in range(2):
            acc[d] = acc[d] * x[t, d]
        for d in range(2):
            out[t, 1] += acc[d] * acc[d]
    return out


@case(numbers(4, 2), torch.tensor([0, 2, 1, 2]))
def local_changed_as_often_as_data_say(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for t in range(x.shape[0]):
        acc = [0.0] * 2
        s = 1.0
        for d in range(2):
            acc[d] = x[t, d]
        for d in range(2):
            out[t, 0] += acc[d] * acc[d]
        for d in range(n[t]):
            acc[d] = acc[d] * x[t, d]
            s += acc[d]
            out[t, 1] += s * acc[d]
    return out


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_gradients_are_those_of_central_differences(function, arguments):
    program = check_gradients(function, *arguments)
    scheduled(program)
    if not any(isinstance(node, Rebind) for node in walk(program)):
        schedule_program(program, cuda_target((9, 0)))
