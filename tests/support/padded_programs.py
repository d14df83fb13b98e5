"""Programs with loops that elements end, as lengths of samples are: with what else is done there, and how."""

# pyright: basic
from __future__ import annotations

import math

import torch

from brickwork.language.random import rand


def doubled(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t] = x[b, t] * 2.0
    return out


def from_the_second(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(1, n[b] + 1):
            out[b, t] = x[b, t] * 2.0
    return out


def deeper(x: torch.Tensor, n: torch.Tensor):
    """Access along the row in a loop inside alone."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * 2.0
    return out


def scattered(x: torch.Tensor, at: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(4)
    for b in range(at.shape[0]):
        for t in range(n[b]):
            out[at[b, t]] += x[b, t]
    return out


def beside(x: torch.Tensor, n: torch.Tensor):
    """Do something else with each sample."""
    out, sums = torch.zeros_like(x), torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        m = n[b]
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
        for k in range(3):
            sums[b] += float(m) + k
    return out, sums


def two_rows(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor):
    out, other = torch.zeros_like(x), torch.zeros_like(y)
    for b in range(x.shape[0]):
        m = n[b]
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
        for u in range(m):
            other[b, u] = y[b, u] * 3.0
    return out, other


def summed(x: torch.Tensor, n: torch.Tensor):
    """Add a row up: a thread's own sum is better."""
    out = torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b] += x[b, t]
    return out


def running(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        s = 0.0
        for t in range(n[b]):
            s += x[b, t]
            out[b, t] = s
    return out


def greatest(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        top = -math.inf
        for t in range(n[b]):
            top = max(top, x[b, t])
        out[b] = top
    return out


def ended(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            if x[b, t] < 0.0:
                break
            out[b, t] = x[b, t] * 2.0
    return out


def skipped(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            if t == 1:
                continue
            out[b, t] = x[b, t] * 2.0
    return out


def sought(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            v = x[b, t]
            while v > 1.0:
                v = v * 0.5
            out[b, t] = v
    return out


def drawn(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t] = x[b, t] + 0.0 * rand()
    return out


def in_branch(x: torch.Tensor, n: torch.Tensor):
    """Access the row only where the iteration is even, so that some could be beyond it."""
    out = torch.zeros(8)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            if t < x.shape[1]:
                out[4 * b + t] += x[b, t]
    return out


def another_place(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, 3 - t] = x[b, 3 - t] * 2.0
    return out


def diagonal(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(4, 4, 4)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t, t] = 2.0 * b + t
    return out


def sparse(x: torch.Tensor, n: torch.Tensor):
    """Go along the same elements with all samples: nothing is padded for each of them."""
    out = torch.zeros(4, 8)
    for b in range(n.shape[0]):
        for t in range(n[b]):
            out[b, t + 1] = x[t, 0]
    return out


def begun_by_elements(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b] - 1, n[b]):
            if t >= 0:
                out[b, t] = x[b, t] * 2.0
    return out


def of_two_places(x: torch.Tensor, n: torch.Tensor):
    """Let a variable that changes say where to end."""
    out = torch.zeros_like(x)
    m = 0
    for b in range(x.shape[0]):
        m = m + n[b]
        for t in range(min(m, 3)):
            out[b, t] = x[b, t] * 2.0
    return out


def with_a_length_of_its_own(x: torch.Tensor, n: torch.Tensor, h: torch.Tensor):
    """Access the row in a loop that elements end, and so maybe never."""
    out = torch.zeros(2, 4)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for k in range(h[b]):
                out[b, t % 4] += x[b, t, k]
    return out


def of_pairs(x: torch.Tensor, n: torch.Tensor):
    """Access a row that is padded for one of two indices alone."""
    out = torch.zeros(2, 2, 8)
    for b in range(2):
        for c in range(2):
            for t in range(n[b, c]):
                out[b, c, t + 1] = x[b, t]
    return out


def in_another_loop(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros(3, 2, 8)
    for h in range(3):
        for b in range(x.shape[0]):
            for t in range(n[b]):
                out[h, b, t + 1] = x[b, t] * h
    return out


def with_a_list(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        p = [x[b, 0] * 0.0] * 4
        for t in range(n[b]):
            p[t] = x[b, t]
        for t in range(4):
            out[b, t] = p[t]
    return out


def ends_itself(x: torch.Tensor, n: torch.Tensor):
    """Store the length that it was ended by."""
    for b in range(x.shape[0]):
        for t in range(n[b, 0]):
            n[b, t] = 1
            x[b, t] = 2.0 * t


def scaled_after(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t] = x[b, t] * 2.0
        for t in range(x.shape[1]):
            out[b, t] = out[b, t] + 1.0
    return out


def read_before(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            x[b, t] = x[b, t] + 1.0
        for t in range(n[b]):
            out[b, t] = x[b, t] * 2.0
    return out


def told_on(x: torch.Tensor, n: torch.Tensor):
    """Leave a variable for what follows."""
    out, last = torch.zeros_like(x), torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        v = 0.0
        for t in range(n[b]):
            v = x[b, t] * 2.0
            out[b, t] = v
        for k in range(1):
            last[b] = v
    return out, last


def filled(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            out[b, t] = 2.0
    return out


def stored_beside(x: torch.Tensor, n: torch.Tensor):
    out, sums = torch.zeros_like(x), torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        m = n[b]
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
        sums[b] = float(m)
    return out, sums


def ended_late(x: torch.Tensor, n: torch.Tensor):
    """Read the length behind another loop."""
    out, sums = torch.zeros_like(x), torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        for k in range(3):
            sums[b] += k
        for t in range(n[b]):
            out[b, t] = x[b, t] * 2.0
    return out, sums


def filled_before(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        m = n[b]
        for k in range(x.shape[1]):
            out[b, k] = 9.0
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
    return out


def summed_before(x: torch.Tensor, n: torch.Tensor, out: torch.Tensor):
    sums = torch.zeros(x.shape[0])
    for b in range(x.shape[0]):
        m = n[b]
        for k in range(x.shape[1]):
            sums[b] += out[b, k]
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
    return sums


def changed_before(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        m = n[b]
        for k in range(x.shape[1]):
            x[b, k] = x[b, k] + 1.0
        for t in range(m):
            out[b, t] = x[b, t] * 2.0
    return out


def divided_by_a_sum(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        m, s = n[b], 0.0
        for k in range(x.shape[1]):
            s += x[b, k]
        for t in range(m):
            out[b, t] = x[b, t] / s
    return out


def with_lengths_stored_over(x: torch.Tensor, n: torch.Tensor):
    """Store where the length came from, and read it again for what follows."""
    out, sums = torch.zeros_like(x), torch.zeros(x.shape[0], 3)
    for b in range(x.shape[0]):
        m = n[b, 0]
        for t in range(m):
            n[b, t] = 7
            out[b, t] = x[b, t] * 2.0
        for k in range(3):
            sums[b, k] = float(m) + k
    return out, sums


def cut_short(x: torch.Tensor, n: torch.Tensor, most: int):
    """Let what is the same for all samples end rows, too."""
    if most > 3:
        most = 3
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(min(most, n[b])):
            out[b, t] = x[b, t] * 2.0
    return out


def begun_late(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(b, n[b]):
            out[b, t] = x[b, t] * 2.0
    return out


def with_a_variable(x: torch.Tensor, n: torch.Tensor):
    """Have a variable that iterations set."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            m = t * t + 5
            out[b, t] = x[b, t] * m * m
    return out


def triangle(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(t):
                out[b, t, h] = x[b, t, h] * 2.0
    return out


def scaled_inside(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            v = float(t) * 0.5 + b
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * v * v
    return out


def scaled_by_an_element(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor):
    """Read an element in each iteration, though a loop inside may be empty."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            v = y[t % 4]
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * v
    return out


def scaled_by_its_element(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            v = y[t]
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * v
    return out


def twice_inside(x: torch.Tensor, n: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            s = 0.0
            for h in range(x.shape[2]):
                s += x[b, t, h]
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * s
    return out


def marked(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor):
    """Do something else in iterations whose loop inside may be empty."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * 2.0
            y[t + 4 * b] = 1.0
    return out


def marked_in_another_loop(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(x.shape[2]):
                out[b, t, h] = x[b, t, h] * 2.0
            for h in range(2):
                y[2 * t + 6 * b + h] = 1.0
    return out


def marked_from_another_place(x: torch.Tensor, n: torch.Tensor, y: torch.Tensor):
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        for t in range(n[b]):
            for h in range(2, x.shape[2]):
                out[b, t, h] = x[b, t, h] * 2.0
            for h in range(x.shape[2]):
                y[2 * t + 6 * b + h] = 1.0
    return out
