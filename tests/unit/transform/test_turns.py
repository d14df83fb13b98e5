"""Variables with two values in turn, as buffers that are swapped have them, are written with an index's parity.

Each program means the same as written, for processors and for a GPU.
"""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.analysis.scalars import live_after_loops, scalar_verdict
from brickwork.ir.build import read
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, For, Launch
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from brickwork.transform.canonical.steps import turns_of
from support.lowering import memory, program_of
from support.scheduling import same
from support.written import let, loop, op, symbol, when

Tensor = torch.Tensor
X = memory([2.0, -1.0, 3.0, -2.5, 0.5, 4.0])
Y = memory([0.25] * 8)
K = memory([3, 0, 2, 5, 1, 4], INT64)


def taken_from(x: Tensor, y: Tensor, a: int) -> None:
    p = a
    for i in range(5):
        y[p] = x[i]
        p = 4 - p
        y[p + 4] = x[i]
    y[p] = p


def exclusive(x: Tensor, y: Tensor, a: int) -> None:
    p, q = a, 0
    for i in range(3):
        y[p + q] = x[i]
        p = 5 ^ p
        q ^= a
        y[p] = x[i] + p
    y[q] = p


def swapped(x: Tensor, y: Tensor, a: int) -> None:
    p, q = a, 2
    for i in range(5):
        y[p] = x[i] + q
        p, q = q, p
        y[q] += p
    y[7] = p * 10 + q


def swapped_by_hand(x: Tensor, y: Tensor, n: int) -> None:
    p, q = 1, 3
    for i in range(n):
        keep = p
        y[p] += x[i]
        p = q
        y[p] += 1.0
        q = keep
        y[q] -= 2.0
    y[0] = p
    y[4] = q


def copied(x: Tensor, y: Tensor, n: int) -> None:
    now = 0
    for i in range(n):
        then = 1 - now
        y[then] = y[now] + x[i]
        now = then
    y[5] = now


def beside_a_while(x: Tensor, y: Tensor, n: int) -> None:
    now, step = 0, 1
    while step < n:
        y[now] += step
        now = 1 - now
        step *= 2
    y[2] = now


def copied_sums(x: Tensor, y: Tensor, n: int) -> None:
    p = 0
    for i in range(n):
        further = p + 2
        y[p] = x[i]
        y[further] = x[i] + 1.0
        p = further


def left_and_not_read_after(x: Tensor, y: Tensor, n: int) -> None:
    p = 0
    for i in range(n):
        if x[i] < -2.0:
            break
        y[p] = x[i]
        p = 1 - p


TURNING = [
    *((taken_from, (a,)) for a in (0, 1, 3)),
    *((exclusive, (a,)) for a in (0, 1, 2)),
    *((swapped, (a,)) for a in (0, 2, 4)),
    *((function, (n,)) for function in (swapped_by_hand, copied, beside_a_while) for n in (0, 1, 2, 5)),
    *((copied_sums, (n,)) for n in (0, 3)),
    (left_and_not_read_after, (6,)),
]


@pytest.mark.parametrize(("function", "numbers"), TURNING)
def test_turns_are_written_with_an_index(function, numbers):
    kernel = kernel_of(function, X, Y, *numbers)
    live = live_after_loops(kernel.body)
    for node in (node for node in statements(kernel) if isinstance(node, For)):
        assert scalar_verdict(node, live[node.index]) == ((), None)
    same(function, X, Y, *numbers)


def kernel_of(function, *arguments):
    """Return the kernel of a function in canonical form."""
    return next(node.kernel for node in canonical(program_of(function, *arguments)).body if isinstance(node, Launch))


# ---------------------------------------------------------------- what is no turn


def under_a_condition(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            p = 1 - p
        y[p] += x[i]


def some_do_not_turn(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            continue
        p = 1 - p
        y[p] += x[i]


def one_after_the_other(x: Tensor, y: Tensor, k: Tensor) -> None:
    p, q = 0, 1
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = q
        y[q] += 1.0
        q = p


def around_in_three(x: Tensor, y: Tensor, k: Tensor) -> None:
    p, q, r = 0, 1, 2
    for i in range(x.shape[0]):
        y[p] += x[i]
        p, q, r = q, r, p


def from_what_changes(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = i - p if i > p else 0


def from_an_index(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = i - p


def from_elements(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = k[i] ^ p


def of_another(x: Tensor, y: Tensor, k: Tensor) -> None:
    p, q = 0, 3
    for i in range(x.shape[0]):
        y[p] += x[i]
        q = 3 - p
        p = q - 1
        q = p


def taken_away(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 5
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = (p ^ i) - i if p > i else p


def shifted_on(x: Tensor, y: Tensor, k: Tensor) -> None:
    p, q = 0, 1
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = q
        q = i


def swapped_twice(x: Tensor, y: Tensor, k: Tensor) -> None:
    p, q = 0, 1
    for i in range(x.shape[0]):
        y[p] += x[i]
        p, q = q, p
        if x[i] > 0.0:
            p, q = q, p


def left_and_read_after(x: Tensor, y: Tensor, k: Tensor) -> None:
    p, q = 0, 1
    for i in range(x.shape[0]):
        if x[i] < -2.0:
            break
        p, q = q, p
    y[q] = 3.0


def scaled_to_the_left(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = 3 * p


def halved(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 7
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = p // 2


def exclusive_with_an_index(x: Tensor, y: Tensor, k: Tensor) -> None:
    p = 0
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = p ^ i


def exclusive_of_another(x: Tensor, y: Tensor, k: Tensor) -> None:
    p, q = 0, 1
    for i in range(x.shape[0]):
        y[p] += x[i]
        p = q ^ 3
        q = k[i]


def floats_in_turn(x: Tensor, y: Tensor, k: Tensor) -> None:
    s, t, u = 0.3, 0.1, 0.7
    for i in range(x.shape[0]):
        q = k[i]
        y[q] += x[i] * s + t
        s = 1.0 - s
        t, u = u, t


STAYING = [
    floats_in_turn,
    scaled_to_the_left,
    halved,
    exclusive_with_an_index,
    exclusive_of_another,
    under_a_condition,
    some_do_not_turn,
    one_after_the_other,
    around_in_three,
    from_what_changes,
    from_an_index,
    from_elements,
    of_another,
    taken_away,
    shifted_on,
    swapped_twice,
    left_and_read_after,
]


@pytest.mark.parametrize("function", STAYING)
def test_what_does_not_turn_means_the_same(function):
    kernel = kernel_of(function, X, Y, K)
    assert any(isinstance(node, Assign) and node.symbol.dtype is INT64 for node in statements(kernel))
    same(function, X, Y, K)


def test_only_what_both_read_before_either_is_set_is_swapped():
    i, p, q, kept = map(symbol, "ipqk")

    def turning(*statements):
        return {step.symbol for step in turns_of(loop(i, 0, 9, *statements), p)}

    assert turning(let(kept, p), let(p, read(q)), let(q, read(kept))) == {p, q}
    assert turning(let(p, read(q)), let(q, read(p))) == set()
    assert turning(let(p, read(q)), let(kept, p), let(q, read(kept))) == set()
    assert turning(let(q, read(p)), let(kept, read(q)), let(p, read(kept))) == set()
    assert turning(let(kept, p), let(p, read(q)), let(q, read(kept)), when(op("lt", p, q), (let(q, read(i)),))) == set()


# ---------------------------------------------------------------- what it is for


def smoothed(x: Tensor, w: Tensor, n: int) -> None:
    now, then = 0, 1
    for _ in range(n):
        for i in range(1, x.shape[0] - 1):
            w[then, i] = w[now, i - 1] + w[now, i + 1] + x[i]
        now, then = then, now


def test_buffers_that_are_swapped_leave_the_loops_inside_independent():
    kernel = kernel_of(smoothed, X, memory([[0.5] * 6, [0.25] * 6]), 4)
    steps, inner = [node for node in statements(kernel) if isinstance(node, For)]
    loops = analyse(kernel).loops
    assert not loops[steps.index].independent
    assert loops[inner.index].independent


@bw.op
def reduced(d: Tensor) -> Tensor:
    n = d.shape[0]
    w = d.new_zeros((2, n))
    for i in range(n):
        w[0, i] = d[i]
    now, step = 0, 1
    while step < n:
        then = 1 - now
        for i in range(n):
            kept = w[now, i]
            if i - step >= 0:
                kept += w[now, i - step] * w[now, i]
            w[then, i] = kept
        now = then
        step *= 2
    out = torch.empty_like(d)
    for i in range(n):
        out[i] = w[now, i]
    return out


def test_gradients_of_swapped_buffers_are_right_and_shared_out():
    x = torch.linspace(-0.5, 0.5, 11, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(reduced, (x,))
    large = torch.empty(4096, dtype=torch.float32, device="meta", requires_grad=True)
    told = reduced.explain("backward", large, device="sm_90")
    assert "updates of 'w_adjoint' are atomic" in told
