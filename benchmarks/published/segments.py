"""Sums and extremes over segments of rows, and the suppression of boxes that overlap."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math
from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source


@bw.op("published::segment_csr")
def segment_csr(src: torch.Tensor, indptr: torch.Tensor) -> torch.Tensor:
    """Sum the elements of each row, which `indptr` says as CSR does. src: (E, K), indptr: (rows + 1,) -> (rows, K)."""
    rows, K = indptr.shape[0] - 1, src.shape[1]
    out = src.new_empty((rows, K))
    for i in range(rows):
        for k in range(K):
            s = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                s += src[e, k]
            out[i, k] = s
    return out


def segment_csr_inputs(make: Source, rows: int, E: int, K: int) -> tuple[Any, ...]:
    """Return normal elements and rows of random lengths."""
    inner = make.integers(0, E + 1, rows - 1).sort().values
    return make.normal(E, K), torch.cat([make.listed([0]), inner, make.listed([E])])


def segment_csr_reference(src: torch.Tensor, indptr: torch.Tensor) -> torch.Tensor:
    """Compute `segment_csr` with torch's reduction."""
    return torch.segment_reduce(src, "sum", offsets=indptr, axis=0, initial=0.0)


@bw.op("published::scatter_add")
def scatter_add(src: torch.Tensor, index: torch.Tensor, rows: int) -> torch.Tensor:
    """Add each element to the row that the index says. src: (E, K), index: (E,) -> (rows, K)."""
    E, K = src.shape
    out = src.new_zeros((rows, K))
    for e in range(E):
        for k in range(K):
            out[index[e], k] += src[e, k]
    return out


def scatter_add_inputs(make: Source, E: int, K: int, rows: int) -> tuple[Any, ...]:
    """Return normal elements and a row for each."""
    return make.normal(E, K), make.integers(0, rows, E), rows


def scatter_add_reference(src: torch.Tensor, index: torch.Tensor, rows: int) -> torch.Tensor:
    """Compute `scatter_add` with torch's."""
    return src.new_zeros((rows, src.shape[1])).index_add(0, index, src)


@bw.op("published::dynamic_scatter")
def dynamic_scatter(features: torch.Tensor, voxel_of: torch.Tensor, voxels: int) -> torch.Tensor:
    """Take the greatest features of each voxel's points. features: (N, C), voxel_of: (N,), or -1 -> (voxels, C)."""
    N, C = features.shape
    out = features.new_full((voxels, C), -math.inf)
    for n in range(N):
        voxel = voxel_of[n]
        if voxel >= 0:
            for c in range(C):
                out[voxel, c] = max(out[voxel, c], features[n, c])
    return out


def dynamic_scatter_inputs(make: Source, N: int, C: int, voxels: int) -> tuple[Any, ...]:
    """Return normal features and a voxel for each point, or none."""
    return make.normal(N, C), make.integers(-1, voxels, N, dtype=torch.int32), voxels


def dynamic_scatter_reference(features: torch.Tensor, voxel_of: torch.Tensor, voxels: int) -> torch.Tensor:
    """Compute `dynamic_scatter` with torch's reduction into one voxel more."""
    out = features.new_full((voxels + 1, features.shape[1]), -math.inf)
    place = torch.where(voxel_of >= 0, voxel_of.long(), voxels)
    return out.scatter_reduce(0, place[:, None].expand_as(features), features, "amax")[:voxels]


@bw.op("published::nms")
def nms(boxes: torch.Tensor, threshold: float) -> torch.Tensor:
    """Keep each box that overlaps no better one that is kept. boxes: (N, 4), best first -> bool (N,)."""
    N = boxes.shape[0]
    keep = torch.ones(N, dtype=torch.bool)
    for i in range(N):
        if keep[i]:
            area = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
            for j in range(i + 1, N):
                width = max(min(boxes[i, 2], boxes[j, 2]) - max(boxes[i, 0], boxes[j, 0]), 0.0)
                height = max(min(boxes[i, 3], boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1]), 0.0)
                common = width * height
                other = (boxes[j, 2] - boxes[j, 0]) * (boxes[j, 3] - boxes[j, 1])
                if common / (area + other - common) > threshold:
                    keep[j] = False
    return keep


def nms_inputs(make: Source, N: int) -> tuple[Any, ...]:
    """Return boxes of which many overlap."""
    corner, size = make.uniform(N, 2, high=100.0), make.uniform(N, 2, low=5.0, high=20.0)
    return torch.cat([corner, corner + size], 1), 0.3


def nms_reference(boxes: torch.Tensor, threshold: float) -> torch.Tensor:
    """Compute `nms` with a loop over the boxes."""
    least, most = torch.maximum(boxes[:, None, :2], boxes[:, :2]), torch.minimum(boxes[:, None, 2:], boxes[:, 2:])
    common = (most - least).clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    over = common / (area[:, None] + area - common) > threshold
    keep = torch.ones(len(boxes), dtype=torch.bool, device=boxes.device)
    for i in range(len(boxes)):
        keep[i + 1 :] &= ~(keep[i] & over[i, i + 1 :])
    return keep


OPERATORS = (
    Published(
        op=segment_csr,
        repository="rusty1s/pytorch_scatter",
        file="csrc/cuda/segment_csr_cuda.cu",
        commit="9a651d9",
        inputs=segment_csr_inputs,
        reference=segment_csr_reference,
        tiny=(4, 12, 3),
        small=(64, 512, 16),
        large=(1_000_000, 10_000_000, 16),
        gradient=("src",),
    ),
    Published(
        op=scatter_add,
        repository="rusty1s/pytorch_scatter",
        file="csrc/cuda/scatter_cuda.cu",
        commit="624134a",
        inputs=scatter_add_inputs,
        reference=scatter_add_reference,
        tiny=(12, 3, 4),
        small=(512, 16, 64),
        large=(10_000_000, 16, 1_000_000),
        gradient=("src",),
    ),
    Published(
        op=dynamic_scatter,
        repository="open-mmlab/mmcv",
        file="mmcv/ops/csrc/common/cuda/scatter_points_cuda_kernel.cuh",
        commit="fae8151",
        inputs=dynamic_scatter_inputs,
        reference=dynamic_scatter_reference,
        tiny=(12, 3, 4),
        small=(256, 64, 64),
        large=(1_000_000, 64, 100_000),
        gradient=("features",),
    ),
    Published(
        op=nms,
        repository="open-mmlab/mmcv",
        file="mmcv/ops/csrc/common/cuda/nms_cuda_kernel.cuh",
        commit="e0b3223",
        inputs=nms_inputs,
        reference=nms_reference,
        tiny=(30,),
        small=(64,),
        large=(20_000,),
    ),
)
