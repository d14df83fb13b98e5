"""Contractions that stand beside other loops have nests of their own, where that is legal and worth it."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

import brickwork as bw
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, For, If, Kernel, Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform.canonical.form import canonical
from brickwork.transform.separate_sums import APART, with_separate_sums
from support.lowering import argument_type, nested, numbers
from support.scheduling import GPU, same
from support.shared import define, lower
from support.sums_apart import short_sums

Tensor = torch.Tensor
A, G, U = numbers(3, 4), numbers(4, 5), numbers(4, 5)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth it."""
    with short_sums():
        yield


def separated(function: Callable[..., object], *arguments: object) -> Program:
    """Return the program of a function for a GPU, with its sums apart."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    return with_separate_sums(canonical(lower(define(function), signature), sizes=True), GPU)[0]


def kernels_apart(function: Callable[..., object], *arguments: object) -> list[Kernel]:
    """Return the kernels with nests of their own for sums."""
    program = separated(function, *arguments)
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    return [kernel for kernel in kernels if kernel.name.endswith(APART)]


def kept_by(function: Callable[..., object], *arguments: object) -> list[tuple[str, int]]:
    """Return what is kept between nests: the names of the tensors, and how many axes they have."""
    made = [
        node
        for choice in separated(function, *arguments).body
        if isinstance(choice, If)
        for node in statements(choice.then)
        if isinstance(node, Allocate)
    ]
    return [(each.tensor.name, each.tensor.type.rank) for each in made]


def gated(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 1.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
                q += a[i, k] * u[k, j]
            out[i, j] = max(p, 2.0) * q
    return out


def two_terms(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.5
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j] - a[i, k] * u[k, j]
            out[i, j] = p
    return out


def taken_away(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.5
            for k in range(a.shape[1]):
                if k != 2:
                    p -= a[i, k] * g[k, j]
                    p += a[i, k] * u[k, j]
            out[i, j] = p
    return out


def one_after_the_other(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Go on with one sum, from a place of its own."""
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            for k in range(u.shape[0]):
                p += a[i, k] * u[k, j]
            out[i, j] = p
    return out


def layers(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    hidden = torch.empty(a.shape[0], g.shape[1])
    out = torch.empty(a.shape[0], u.shape[0])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * g[k, j]
            hidden[i, j] = max(s, 1.0)
        for j in range(u.shape[0]):
            s = 0.0
            for k in range(g.shape[1]):
                s += hidden[i, k] * u[j, k]
            out[i, j] = s
    return out


def normalised(a: Tensor, g: Tensor) -> Tensor:
    """Take the greatest element away, and multiply; the row of the result is the first that is read."""
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        row = a.shape[0] - 1 - i
        most = a[row, 0]
        for k in range(a.shape[1]):
            most = max(most, a[row, k])
        for j in range(g.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += (a[row, k] - most) * g[k, j]
            out[row, j] = s * most
    return out


def triangular(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.zeros(a.shape[0], g.shape[1])
    for i in range(1, a.shape[0]):
        for j in range(i, g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
                q += a[i, k] * u[k, j]
            out[i, j] = p + 2 * q
    return out


def from_the_right(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 1.0
            q = 0.0
            for k in range(a.shape[1]):
                p = a[i, k] * g[k, j] + p
                q = q - a[i, k] * u[k, j]
            out[i, j] = p - q
    return out


def between_condition(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                f = a[i, k] * 2.0
                if f > 1.0:
                    p += f * g[k, j]
                    q -= f * u[k, j]
            out[i, j] = p * q
    return out


def inner_breaks(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            n = 0
            for m in range(7):
                if m > p:
                    break
                n += 1
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = p * q + n
    return out


def whiles(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            while p > 3.0:
                p = p / 2.0
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = p * q
    return out


def lists_inside(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.zeros(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            row = [0.0, 0.0, 0.0]
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            row[j % 3] = row[j % 3] + p
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = row[j % 3] * q
    return out


SEPARATE = [gated, two_terms, taken_away, one_after_the_other, layers, triangular, from_the_right, between_condition]


@pytest.mark.parametrize("function", SEPARATE)
def test_sums_have_nests_of_their_own(function: Callable[..., object]) -> None:
    (kernel,) = kernels_apart(function, A, G, U)
    assert len([node for node in kernel.body if isinstance(node, For)]) == 2
    same(function, A, G, U)


@pytest.mark.parametrize("function", [inner_breaks, whiles])
def test_loops_that_end_early_may_stand_between_sums(function: Callable[..., object]) -> None:
    (kernel,) = kernels_apart(function, A, G, U)
    assert len(kernel.body) == 3
    same(function, A, G, U)


def test_loops_that_are_no_contractions_stand_apart_from_those_that_are() -> None:
    (kernel,) = kernels_apart(normalised, A, G)
    assert len(kernel.body) == 2
    assert kept_by(normalised, A, G) == [("most_kept", 1)]
    same(normalised, A, G)


def test_what_passes_between_nests_is_kept_for_each_iteration_if_it_cannot_be_computed_again() -> None:
    assert kept_by(gated, A, G, U) == [("p_kept", 2)]
    assert kept_by(two_terms, A, G, U) == [("p_kept", 2)]
    assert kept_by(layers, A, G, U) == []
    assert kept_by(triangular, A, G, U) == [("p_kept", 2)]


# ---------------------------------------------------------------- what stays one nest


def reads_the_last_row(a: Tensor, g: Tensor, h: Tensor) -> None:
    """Read in each row what the row before has stored."""
    for i in range(1, a.shape[0]):
        for j in range(g.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += h[i - 1, k] * g[k, j]
            h[i, j] = s
        for j in range(g.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * g[k, j]
            h[i, j] += s


def carries(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Begin each sum with what the last one has come to."""
    out = torch.empty(a.shape[0], g.shape[1])
    q = 0.0
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = q
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            q = 0.0
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = p - q
    return out


def adds_up(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Add to a variable that is read after the nest."""
    out = torch.empty(1)
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            for k in range(a.shape[1]):
                p += a[i, k] * u[k, j]
            total += p
    for i in range(1):
        out[i] = total
    return out


def asserts(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            assert p >= 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * u[k, j]
            out[i, j] = p
    return out


def depends(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Add to one sum what the other one has come to."""
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
                q += p * u[k, j]
            out[i, j] = q
    return out


def assigned_anew(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Compute factors in one variable, one after the other."""
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                f = a[i, k] + 1.0
                p += f * g[k, j]
                f = f * a[i, k]
                q += f * u[k, j]
            out[i, j] = p - q
    return out


def asks_itself(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    """Add to two variables if the first is small."""
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = a[i, 0]
            q = 1.0
            if p < 0.75:
                for k in range(a.shape[1]):
                    p += a[i, k] * g[k, j]
                    q += a[i, k] * u[k, j]
            out[i, j] = max(p, 2.0) * q
    return out


def inner_reset(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p = 1.0
                p += a[i, k] * g[k, j]
                q += a[i, k] * u[k, j]
            out[i, j] = p - q
    return out


def outer_reset(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p = 1.0
                for m in range(u.shape[0]):
                    p += a[i, k] * g[k, j]
                    q += a[i, m] * u[m, j]
            out[i, j] = p - q
    return out


def ahead_reads(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
                h = p + 1.0
                q += h * u[k, j]
            out[i, j] = p - q
    return out


def taken_from(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p = a[i, k] * g[k, j] - p
                q += a[i, k] * u[k, j]
            out[i, j] = p - q
    return out


def multiplied(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 1.0
            q = 0.0
            for k in range(a.shape[1]):
                p = p * (a[i, k] * g[k, j])
                q += a[i, k] * u[k, j]
            out[i, j] = p - q
    return out


def otherwise(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                if k > 1:
                    p += a[i, k] * g[k, j]
                    q -= a[i, k] * u[k, j]
                else:
                    p += 2.0
            out[i, j] = p * q
    return out


def breaks(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            if p > 3.0:
                break
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = p * q
    return out


def continues(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.zeros(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            if p > 3.0:
                continue
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = p * q
    return out


def lists(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.zeros(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        row = [0.0, 0.0, 0.0]
        for j in range(g.shape[1]):
            p = 0.0
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
            row[j % 3] = row[j % 3] + p
            for k in range(a.shape[1]):
                q += a[i, k] * u[k, j]
            out[i, j] = row[j % 3] * q
    return out


STAYS = [
    *(carries, adds_up, asserts, depends, assigned_anew, asks_itself, inner_reset, outer_reset),
    *(ahead_reads, taken_from, multiplied, otherwise, breaks, continues, lists),
]


@pytest.mark.parametrize("function", STAYS)
def test_what_is_not_legal_stays_one_nest(function: Callable[..., object]) -> None:
    assert not kernels_apart(function, A, G, U)
    same(function, A, G, U)


def test_a_part_that_reads_what_a_later_one_stores_stays() -> None:
    given = numbers(4, 4), numbers(4, 4), numbers(4, 4)
    assert not kernels_apart(reads_the_last_row, *given)
    same(reads_the_last_row, *given)


def test_lists_of_one_iteration_stay_with_it() -> None:
    same(lists_inside, A, G, U)


def draws(a: Tensor, g: Tensor, u: Tensor) -> Tensor:
    out = torch.empty(a.shape[0], g.shape[1])
    for i in range(a.shape[0]):
        for j in range(g.shape[1]):
            r = bw.rand()
            p = r
            q = 0.0
            for k in range(a.shape[1]):
                p += a[i, k] * g[k, j]
                q += a[i, k] * u[k, j]
            out[i, j] = p * q + r
    return out


def test_draws_are_those_of_their_iterations() -> None:
    program = separated(draws, A, G, U)
    assert kernels_apart(draws, A, G, U)
    written = lower(define(draws), Signature(tuple(map(argument_type, (A, G, U)))))
    outcomes = [nested(run_program(each, [A, G, U], key=7)[0]) for each in (written, program)]
    assert outcomes[0] == outcomes[1]
