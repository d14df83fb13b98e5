"""Kernels of the suite with lists that grow, numbers that may be None, exceptions, `match`, and slices with steps."""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnnecessaryComparison=false

from __future__ import annotations

import torch

import brickwork as bw
from support.kernels_lists import SUITE
from support.suite import case, floats, integers

__all__ = ["SUITE"]


@case(lambda n: (floats(n, 7),), exact=True)
def sorted_positive(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], 8, dtype=x.dtype)
    for i in range(x.shape[0]):
        found = []
        for j in range(7):
            if x[i, j] > 0:
                found.append((x[i, j], j))
        found.sort(reverse=True)
        for k, (v, j) in enumerate(found):
            out[i, k] = v + j
        out[i, 7] = len(found)
    return out


@case(lambda n: (integers(0, 2, n, 15),), exact=True)
def tree_leaves(x: torch.Tensor) -> torch.Tensor:
    """Visit a tree of 15 nodes, of which some are cut off, with a stack."""
    out = torch.zeros(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        stack = bw.bounded(16)
        stack.append(0)
        while stack:
            node = stack.pop()
            if x[i, node] == 0 and node > 2:
                continue
            if node >= 7:
                out[i] += node
            else:
                stack.extend((2 * node + 1, 2 * node + 2))
    return out


@case(lambda n: (floats(n),), exact=True)
def kept_apart(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    keep = []
    for i in range(x.shape[0]):
        for j in keep:
            if abs(x[i] - x[j]) < 0.25:
                break
        else:
            keep.append(i)
    for k, i in enumerate(keep):
        out[k] = x[i]
    return out


def first_above(x: torch.Tensor, i: int, level: float) -> int | None:
    for j in range(x.shape[1]):
        if x[i, j] > level:
            return j
    return None


@case(lambda n: (floats(n, 5),), exact=True)
def optional_places(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], 2, dtype=x.dtype)
    for i in range(x.shape[0]):
        place = first_above(x, i, 0.5)
        out[i, 0] = -1 if place is None else place
        best = None
        for j in range(x.shape[1]):
            if x[i, j] < 1 and (best is None or x[i, j] > best):
                best = x[i, j]
        if best is None:
            continue
        out[i, 1] = best
    return out


@case(lambda n: (integers(0, 4, n), floats(n, 6)))
def chosen(kind: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0], 3, dtype=x.dtype)
    for i in range(x.shape[0]):
        match kind[i], i % 2:
            case 0, _:
                out[i] = x[i, ::2]
            case (1 | 2) as k, 0:
                out[i] = k * x[i, 1::2]
            case 1 | 2 | 3, _:
                out[i, 0] = x[i, ::4].sum()
            case _:
                raise ValueError(f"unknown kind {kind[i]} of row {i}")
    return out
