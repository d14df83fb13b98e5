"""Operators on clouds of points: samples, neighbours, and values between points."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math
from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source

MOST_NEIGHBOURS = 100
"""Most neighbours that `knn` finds; the published kernel has the same bound."""


@bw.op("published::furthest_point_sample")
def furthest_point_sample(xyz: torch.Tensor, samples: int) -> torch.Tensor:
    """Pick points of each cloud, each the furthest from all before it. xyz: (B, N, 3) -> (B, samples)."""
    B, N, _ = xyz.shape
    distance = xyz.new_full((B, N), 1e10)
    out = torch.zeros(B, samples, dtype=torch.int32)
    for b in range(B):
        last = 0
        for s in range(1, samples):
            best, furthest = -1.0, 0
            for n in range(N):
                dx = xyz[b, n, 0] - xyz[b, last, 0]
                dy = xyz[b, n, 1] - xyz[b, last, 1]
                dz = xyz[b, n, 2] - xyz[b, last, 2]
                d = min(dx * dx + dy * dy + dz * dz, distance[b, n])
                distance[b, n] = d
                if d > best:
                    best, furthest = d, n
            last = furthest
            out[b, s] = last
    return out


def furthest_point_sample_inputs(make: Source, B: int, N: int, S: int) -> tuple[Any, ...]:
    """Return clouds in a cube."""
    return make.uniform(B, N, 3), S


def furthest_point_sample_reference(xyz: torch.Tensor, samples: int) -> torch.Tensor:
    """Compute `furthest_point_sample` with a loop over the samples."""
    rows = torch.arange(len(xyz), device=xyz.device)
    distance = xyz.new_full(xyz.shape[:2], 1e10)
    picked = [torch.zeros_like(rows)]
    for _ in range(samples - 1):
        distance = torch.minimum(distance, (xyz - xyz[rows, picked[-1]][:, None]).square().sum(-1))
        picked.append(distance.argmax(1))
    return torch.stack(picked, 1).int()


@bw.op("published::ball_query")
def ball_query(centres: torch.Tensor, xyz: torch.Tensor, least: float, most: float, neighbours: int) -> torch.Tensor:
    """Find the first points within a distance of each centre; those that lack repeat the first one.

    centres: (B, M, 3), xyz: (B, N, 3) -> (B, M, neighbours).
    """
    B, M, _ = centres.shape
    N = xyz.shape[1]
    out = torch.zeros(B, M, neighbours, dtype=torch.int32)
    for b in range(B):
        for m in range(M):
            count = 0
            for n in range(N):
                dx = centres[b, m, 0] - xyz[b, n, 0]
                dy = centres[b, m, 1] - xyz[b, n, 1]
                dz = centres[b, m, 2] - xyz[b, n, 2]
                d = dx * dx + dy * dy + dz * dz
                if d == 0 or (d >= least * least and d < most * most):
                    if count == 0:
                        for k in range(neighbours):
                            out[b, m, k] = n
                    out[b, m, count] = n
                    count += 1
                    if count >= neighbours:
                        break
    return out


def ball_query_inputs(make: Source, B: int, N: int, M: int, K: int) -> tuple[Any, ...]:
    """Return clouds in a cube, the centres among their points, and a distance with about K points."""
    xyz = make.uniform(B, N, 3)
    return xyz[:, :M].clone(), xyz, 0.0, (K / N / 4.19) ** (1 / 3), K


def ball_query_reference(
    centres: torch.Tensor, xyz: torch.Tensor, least: float, most: float, neighbours: int
) -> torch.Tensor:
    """Compute `ball_query` by sorting the places of the points within the distance."""
    N = xyz.shape[1]
    d = (centres[:, :, None] - xyz[:, None]).square().sum(-1)
    inside = (d == 0) | ((d >= least * least) & (d < most * most))
    places = torch.where(inside, torch.arange(N, device=xyz.device), N).sort(-1).values[..., :neighbours]
    return torch.where(places == N, places[..., :1] % N, places).int()


@bw.op("published::knn")
def knn(centres: torch.Tensor, xyz: torch.Tensor, neighbours: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the nearest points of each centre, nearest first, and their squared distances.

    centres: (B, M, 3), xyz: (B, N, 3) -> both (B, M, neighbours).
    """
    assert neighbours <= MOST_NEIGHBOURS, "at most 100 neighbours"
    B, M, _ = centres.shape
    N = xyz.shape[1]
    index = torch.empty(B, M, neighbours, dtype=torch.int32)
    distance = centres.new_empty((B, M, neighbours))
    for b in range(B):
        for m in range(M):
            best = [1e10] * MOST_NEIGHBOURS
            where = [0] * MOST_NEIGHBOURS
            for n in range(N):
                dx = centres[b, m, 0] - xyz[b, n, 0]
                dy = centres[b, m, 1] - xyz[b, n, 1]
                dz = centres[b, m, 2] - xyz[b, n, 2]
                d = dx * dx + dy * dy + dz * dz
                if d < best[neighbours - 1]:
                    p = neighbours - 1
                    while p > 0 and best[p - 1] > d:
                        best[p] = best[p - 1]
                        where[p] = where[p - 1]
                        p -= 1
                    best[p] = d
                    where[p] = n
            for k in range(neighbours):
                index[b, m, k] = where[k]
                distance[b, m, k] = best[k]
    return index, distance


def knn_inputs(make: Source, B: int, N: int, M: int, K: int) -> tuple[Any, ...]:
    """Return clouds in a cube and other points in it."""
    return make.uniform(B, M, 3), make.uniform(B, N, 3), K


def knn_reference(centres: torch.Tensor, xyz: torch.Tensor, neighbours: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute `knn` by sorting all distances."""
    d, places = (centres[:, :, None] - xyz[:, None]).square().sum(-1).sort(-1)
    return places[..., :neighbours].int(), d[..., :neighbours]


@bw.op("published::three_interpolate")
def three_interpolate(points: torch.Tensor, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Average three points' values with weights. points: (B, C, M), index, weight: (B, N, 3) -> (B, C, N)."""
    B, C, _ = points.shape
    N = index.shape[1]
    out = points.new_empty((B, C, N))
    for b in range(B):
        for c in range(C):
            for n in range(N):
                s = 0.0
                for k in range(3):
                    s += weight[b, n, k] * points[b, c, index[b, n, k]]
                out[b, c, n] = s
    return out


def three_interpolate_inputs(make: Source, B: int, C: int, M: int, N: int) -> tuple[Any, ...]:
    """Return values at points, three points for each new one, and weights."""
    return make.normal(B, C, M), make.integers(0, M, B, N, 3, dtype=torch.int32), make.uniform(B, N, 3)


def three_interpolate_reference(points: torch.Tensor, index: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Compute `three_interpolate` with a gather."""
    B, C, _ = points.shape
    taken = points.gather(2, index.long().reshape(B, 1, -1).expand(B, C, -1))
    return (taken.reshape(B, C, *index.shape[1:]) * weight[:, None]).sum(-1)


@bw.op("published::chamfer_distance")
def chamfer_distance(
    xyz1: torch.Tensor, xyz2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Find the nearest point of the other cloud: squared distances both ways, then places both ways.

    xyz1: (B, N, 2), xyz2: (B, M, 2) -> (B, N), (B, M), (B, N), (B, M).
    """
    B, N, _ = xyz1.shape
    M = xyz2.shape[1]
    distance1, distance2 = xyz1.new_empty((B, N)), xyz1.new_empty((B, M))
    index1, index2 = torch.empty(B, N, dtype=torch.int32), torch.empty(B, M, dtype=torch.int32)
    for b in range(B):
        for n in range(N):
            best, where = math.inf, 0
            for m in range(M):
                dx = xyz2[b, m, 0] - xyz1[b, n, 0]
                dy = xyz2[b, m, 1] - xyz1[b, n, 1]
                d = dx * dx + dy * dy
                if d < best:
                    best, where = d, m
            distance1[b, n] = best
            index1[b, n] = where
    for b in range(B):
        for m in range(M):
            best, where = math.inf, 0
            for n in range(N):
                dx = xyz1[b, n, 0] - xyz2[b, m, 0]
                dy = xyz1[b, n, 1] - xyz2[b, m, 1]
                d = dx * dx + dy * dy
                if d < best:
                    best, where = d, n
            distance2[b, m] = best
            index2[b, m] = where
    return distance1, distance2, index1, index2


def chamfer_distance_inputs(make: Source, B: int, N: int) -> tuple[Any, ...]:
    """Return two clouds in a square."""
    return make.uniform(B, N, 2), make.uniform(B, N, 2)


def chamfer_distance_reference(
    xyz1: torch.Tensor, xyz2: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute `chamfer_distance` from all distances."""
    d = (xyz1[:, :, None] - xyz2[:, None]).square().sum(-1)
    there, back = d.min(2), d.min(1)
    return there.values, back.values, there.indices.int(), back.indices.int()


MMCV = "mmcv/ops/csrc/common/cuda"

OPERATORS = (
    Published(
        op=furthest_point_sample,
        repository="open-mmlab/mmcv",
        file=f"{MMCV}/furthest_point_sample_cuda_kernel.cuh",
        commit="469a21c",
        inputs=furthest_point_sample_inputs,
        reference=furthest_point_sample_reference,
        tiny=(2, 20, 5),
        small=(2, 256, 16),
        large=(32, 8192, 1024),
    ),
    Published(
        op=ball_query,
        repository="open-mmlab/mmcv",
        file=f"{MMCV}/ball_query_cuda_kernel.cuh",
        commit="297db8f",
        inputs=ball_query_inputs,
        reference=ball_query_reference,
        tiny=(2, 40, 5, 4),
        small=(2, 256, 32, 8),
        large=(32, 8192, 1024, 32),
    ),
    Published(
        op=knn,
        repository="open-mmlab/mmcv",
        file=f"{MMCV}/knn_cuda_kernel.cuh",
        commit="469a21c",
        inputs=knn_inputs,
        reference=knn_reference,
        tiny=(2, 20, 5, 4),
        small=(2, 256, 32, 4),
        large=(16, 4096, 4096, 16),
    ),
    Published(
        op=three_interpolate,
        repository="open-mmlab/mmcv",
        file=f"{MMCV}/three_interpolate_cuda_kernel.cuh",
        commit="728cb7d",
        inputs=three_interpolate_inputs,
        reference=three_interpolate_reference,
        tiny=(2, 3, 4, 5),
        small=(2, 16, 64, 256),
        large=(16, 256, 1024, 8192),
        gradient=("points",),
    ),
    Published(
        op=chamfer_distance,
        repository="open-mmlab/mmcv",
        file=f"{MMCV}/chamfer_distance_cuda_kernel.cuh",
        commit="58ca3d9",
        inputs=chamfer_distance_inputs,
        reference=chamfer_distance_reference,
        tiny=(2, 7),
        small=(2, 256),
        large=(16, 8192),
        gradient=("xyz1", "xyz2"),
    ),
)
