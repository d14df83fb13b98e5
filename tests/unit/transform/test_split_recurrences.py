"""Recurrences of few long iterations run in chunks where sizes say so, and others in order."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, If
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import split_recurrences
from brickwork.transform.outline import is_nondeterministic
from brickwork.transform.split_recurrences import chunk_version
from support.shared import define, lower, schedule_program, verify_program
from support.sweep import sampled
from support.tensors import argument_type, to_memory, to_tensor

GPU = replace(cuda_target((9, 0)), threads=64, launch_ns=0)
"""A machine for which eight iterations are few."""


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(split_recurrences, "UNROLLED", 2)


def pieces_of(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    verify_program(pieces)
    return pieces


def is_cut(pieces):
    names = {node.version for node in walk(pieces) if isinstance(node, If)}
    loops = [node.index for node in walk(pieces) if isinstance(node, For)]
    return bool(names & {chunk_version(index) for index in loops})


def filtered(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            out[c, t] = h


def running_sums(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 0.0
        for t in range(1, x.shape[1]):
            h += x[c, t]
            out[c, t] = h * a[c, t]


def counted(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        n = 3
        for t in range(x.shape[1]):
            if x[c, t] > 0.0:
                n = n * 3 + 1
            out[c, t] = n % 1000


def restarted(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, least = 1.0, 5.0
        for t in range(x.shape[1]):
            if a[c, t] < 0.0:
                h = x[c, t]
            else:
                h = (x[c, t] - h) * 2.0
            least = min(least, h)
            out[c, t] = h
        out[c, 0] = out[c, 0] + least


def after_all(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, total = x[c, 0], 2.0
        for t in range(x.shape[1]):
            h = h * a[c, t] + 1.0
            total += h
            out[c, t] = h
        for t in range(x.shape[1]):
            out[c, t] += h - total


def lists(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for n in range(3):
            state[n] = x[c, n]
        for t in range(x.shape[1]):
            y = 0.0
            for n in range(3):
                z = state[n] * a[c, t]
                state[n] = 0.0
                state[n] += z + n
                y += state[n]
            out[c, t] = y


def lists_of_a_size(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [2.0] * a.shape[0]
        for t in range(x.shape[1]):
            y = 0.0
            for n in range(a.shape[0]):
                state[n] = state[n] * a[n, t] + x[c, t]
                y += state[n]
            out[c, t] = y
        for n in range(a.shape[0]):
            out[c, 0] += state[n]


def two_of_them(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, g = 1.0, 2.0
        for t in range(x.shape[1]):
            h = a[c, t] * h + x[c, t]
            g = -g + a[c, t]
            out[c, t] = h * g
        for t in range(x.shape[1]):
            g = g + x[c, t] * out[c, t]
            out[c, t] = g


def products(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            s = 0.0
            for n in range(x.shape[1]):
                s += a[c, n]
            h = h + s
            out[c, t] = h


def last(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            h = h * a[c, t] + x[c, t]
        out[c, 0] = h


def with_one_decay(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        for i in range(2):
            h = 2.0
            for t in range(x.shape[1]):
                h = h * a[c, t] + x[c, t] * i
                if i == 1:
                    out[c, t] = h


def lists_with_one_decay(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            y = 0.0
            for n in range(3):
                if n < 2:
                    state[n] = a[0, n] * state[n] + x[c, t]
                else:
                    state[n] = -state[n]
                y += state[n]
            out[c, t] = y


def by_way_of_a_list(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            parts = [0.0] * 2
            parts[1] = h * a[c, t]
            parts[0] = 1.0
            h = parts[1] + x[c, t]
            out[c, t] = h


def in_rounds(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            y = 0.0
            for r in range(2):
                for n in range(3):
                    state[n] = state[n] * a[c, t] + r
                    y += state[n]
            out[c, t] = y


def slowly(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            y, z = 0.0, 0.0
            for r in range(3):
                h = h + z * a[c, t]
                z = y
                y = h
            h = h * a[c, t]
            out[c, t] = h


def coupled(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, g = 1.0, 2.0
        for t in range(x.shape[1]):
            h, g = g, h * a[c, t] + g
            out[c, t] = h


def one_step_late(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, g = 1.0, 2.0
        for t in range(x.shape[1]):
            out[c, t] = h
            h = g * 2.0 + x[c, t]
            g = g * a[c, t] + 1.0


def biquad(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        x1, x2, y1, y2 = 0.0, 0.0, 0.0, 0.0
        for t in range(x.shape[1]):
            y = x[c, t] + 2.0 * x1 + x2 - y1 - a[c, t] * y2
            x2 = x1
            x1 = x[c, t]
            y2 = y1
            y1 = y
            out[c, t] = y


def delayed(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        before, h, total = 3.0, 0.0, 0.0
        for t in range(x.shape[1]):
            v = x[c, t] * x[c, t]
            h = v - before + a[c, t] * h
            total += h
            before = v
            out[c, t] = h
        out[c, 0] = total + before + h


def in_branches(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, g, other = 1.0, 2.0, 1.0
        for t in range(x.shape[1]):
            other = -other + x[c, t]
            if a[c, t] > 0.0:
                h = g - h
            else:
                g = h + x[c, t]
            out[c, t] = h + other


def fibonacci(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        n, m = 1, c
        for t in range(x.shape[1]):
            n, m = m, n + m
            out[c, t] = n % 1000


def what_it_stored(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            out[c, t] = x[c, t]
            h = h * a[c, t] + out[c, t]
            out[c, t] = h


def previous_results(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(1, x.shape[1]):
            h = h * a[c, t] + 1.0
            out[c, t] = out[c, t - 1] + h


def begun_where_it_stores(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for k in range(min(x.shape[1], 1)):
            out[c, k] = 2.0
        for k in range(min(x.shape[1], 1)):
            h += out[c, k]
        for t in range(x.shape[1]):
            h = h * a[c, t] + out[c, t]
            out[c, t] = h


CUT = [
    what_it_stored,
    previous_results,
    begun_where_it_stores,
    coupled,
    one_step_late,
    biquad,
    delayed,
    in_branches,
    fibonacci,
    by_way_of_a_list,
    in_rounds,
    slowly,
    last,
    with_one_decay,
    lists_with_one_decay,
    filtered,
    running_sums,
    counted,
    restarted,
    after_all,
    lists,
    lists_of_a_size,
    two_of_them,
    products,
]
READING = {lists, lists_of_a_size, lists_with_one_decay, last, after_all, restarted, delayed}
"""Those that read first elements of rows."""


def results_of(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    results = []
    for one in (lower(define(function), signature), pieces_of(function, *arguments)):
        memories = [to_memory(each.clone()) for each in arguments]
        run_program(one, memories, key=5, check=True)
        results.append(to_tensor(memories[-1]))
    return results


@pytest.mark.parametrize(
    ("function", "few", "long"),
    sampled((each, *limits) for each in CUT for limits in [(3, 3), (3, 4), (1, 13), (2, 29), (5, 12), (9, 6), (3, 0)]),
)
def test_chunks_mean_what_the_source_says(function, few, long):
    generator = torch.Generator().manual_seed(few * long)
    long = max(long, 3) if function in READING else long
    x = torch.randint(-3, 4, (few, long), generator=generator).float()
    a = torch.randint(-1, 2, (few, long), generator=generator).float()
    assert torch.equal(*results_of(function, x, a, torch.zeros(few, long)))
    assert is_cut(pieces_of(function, x, a, x))


def squared(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = h * h - x[c, t]
            out[c, t] = h


def divided(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = 4.0 / h
            out[c, t] = h


def chosen(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            if h > 3.0:
                h = h - 3.0
            h = h + a[c, t]
            out[c, t] = h


def rounded(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            h = int(h * 0.5) + x[c, t]
            out[c, t] = h


def neighbouring_items(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 4
        for t in range(x.shape[1]):
            for n in range(3):
                state[n] = state[n + 1] + x[c, t]
            out[c, t] = state[0]


def items_by_one_another(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            y = 0.0
            for n in range(3):
                state[n] = state[n] + y
                y += state[n]
            out[c, t] = y


def stored_before(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = out[c, 0]
        out[c, 0] = 5.0
        for t in range(x.shape[1]):
            h = h * a[c, t] + 1.0
            out[c, t] = h


def read_before_and_after(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, first = 1.0, out[c, 0]
        for t in range(x.shape[1]):
            h = h * a[c, t] + x[c, t]
            out[c, t] = h + first
        out[c, 1] += first


def last_of_another(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, z = 1.0, 0.0
        for t in range(x.shape[1]):
            h = h * a[c, t] + 1.0
            z = x[c, t]
            out[c, t] = h
        out[c, 0] = z


def starting_anywhere(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        state[1] = 7.0
        for t in range(x.shape[1]):
            for n in range(3):
                state[n] = state[n] * a[c, t]
            for n in range(3):
                out[c, t] += state[n]


def ending_anywhere(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 1.0
        for t in range(c, x.shape[1]):
            h = h * a[c, t] + 1.0
            out[c, t] = h


def part_of_a_list(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            for n in range(2):
                state[n] = state[n] * a[c, t] + 1.0
            for n in range(3):
                out[c, t] += state[n]


def moved_items(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            parts = [0.0] * 3
            for n in range(3):
                parts[n] = state[n] * a[c, t] + n
            parts[2] = parts[1]
            y = 0.0
            for n in range(3):
                state[n] = parts[n]
                y += state[n]
            out[c, t] = y


def last_item_for_all(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        state = [1.0] * 3
        for t in range(x.shape[1]):
            y, z = 0.0, 0.0
            for n in range(3):
                z = state[n] * a[c, t] + n
            for n in range(3):
                state[n] = z - state[n]
                y += state[n]
            out[c, t] = y


def six_of_them(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, g, i, j, k, m = 1.0, 2.0, 3.0, 4.0, 5.0, 6.0
        for t in range(x.shape[1]):
            h, g, i, j, k, m = g, i, j, k, m, h - g
            out[c, t] = h


def product_of_two(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h, g = 1.0, 2.0
        for t in range(x.shape[1]):
            h = h * g + x[c, t]
            g = g - a[c, t]
            out[c, t] = h


OTHERS = [
    moved_items,
    last_item_for_all,
    six_of_them,
    product_of_two,
    squared,
    divided,
    chosen,
    rounded,
    neighbouring_items,
    items_by_one_another,
    stored_before,
    read_before_and_after,
    last_of_another,
    starting_anywhere,
    ending_anywhere,
    part_of_a_list,
]


@pytest.mark.parametrize("function", OTHERS)
def test_others_run_in_order(function):
    generator = torch.Generator().manual_seed(1)
    x = torch.randint(-3, 4, (3, 12), generator=generator).float()
    a = torch.randint(-1, 2, (3, 12), generator=generator).float()
    assert torch.equal(*results_of(function, x, a, torch.ones(3, 12)))
    assert not is_cut(pieces_of(function, x, a, x))


def test_great_slopes_move_nothing():
    """A state of 0 stays 0 although the slope of a chunk is beyond float32, and what is tiny grows back."""
    a = torch.full((2, 12), 1e30)
    a[1, :6], a[1, 6:] = 1e-30, 1e30
    x = torch.zeros(2, 12)
    x[1, 0] = 1.0
    assert torch.equal(*results_of(running_product, x, a, torch.ones(2, 12)))


def running_product(x: torch.Tensor, a: torch.Tensor, out: torch.Tensor) -> None:
    for c in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            h = h * a[c, t] + x[c, t]
            out[c, t] = h


@pytest.mark.parametrize("function", [coupled, biquad, delayed, in_branches])
def test_matrices_of_slopes_and_what_is_not_finite(function):
    x, a = torch.ones(3, 20), torch.ones(3, 20) * 0.5
    x[0, 2], x[1, 3], a[2, 5:9] = torch.inf, torch.nan, 1e38
    one, other = results_of(function, x, a, torch.zeros(3, 20))
    torch.testing.assert_close(other, one, equal_nan=True)


def test_nothing_becomes_random():
    x = torch.ones(3, 12)
    assert not any(is_nondeterministic(pieces_of(function, x, x, x)) for function in CUT)
