"""Sums over alignments: soft dynamic time warping, and the loss of transducers."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Elements are values in the language, and tensors to the type checker.
from __future__ import annotations

import math
from typing import Any

import torch

import brickwork as bw
from benchmarks.published.operator import Published, Source, values


@bw.op("published::soft_dtw")
def soft_dtw(cost: torch.Tensor, gamma: float, bandwidth: float) -> torch.Tensor:
    """Soft minimum of the costs of all warpings. cost: (B, N, M) -> (B,). A bandwidth of 0 allows all."""
    B, N, M = cost.shape
    R = cost.new_full((B, N + 1, M + 1), math.inf)
    out = cost.new_empty(B)
    for b in range(B):
        R[b, 0, 0] = 0.0
        for i in range(1, N + 1):
            for j in range(1, M + 1):
                if bandwidth > 0 and abs(i - j) > bandwidth:
                    continue
                r0 = -R[b, i - 1, j - 1] / gamma
                r1 = -R[b, i - 1, j] / gamma
                r2 = -R[b, i, j - 1] / gamma
                most = max(max(r0, r1), r2)
                total = math.exp(r0 - most) + math.exp(r1 - most) + math.exp(r2 - most)
                R[b, i, j] = cost[b, i - 1, j - 1] - gamma * (math.log(total) + most)
        out[b] = R[b, N, M]
    return out


def soft_dtw_inputs(make: Source, B: int, N: int) -> tuple[Any, ...]:
    """Return costs of pairs of sequences."""
    return make.uniform(B, N, N), 0.5, 0.0


def soft_dtw_reference(cost: torch.Tensor, gamma: float, bandwidth: float) -> torch.Tensor:
    """Compute `soft_dtw` element by element, for all pairs together."""
    B, N, M = cost.shape
    far = cost.new_full((B,), math.inf)
    R = {(i, j): far for i in range(N + 1) for j in range(M + 1)}
    R[0, 0] = cost.new_zeros(B)
    for i in range(1, N + 1):
        for j in range(1, M + 1):
            if not 0 < bandwidth < abs(i - j):
                before = [R[place] for place in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if R[place] is not far]
                R[i, j] = cost[:, i - 1, j - 1] - gamma * torch.logsumexp(-torch.stack(before) / gamma, 0)
    return R[N, M]


@bw.op("published::rnnt_loss")
def rnnt_loss(
    acts: torch.Tensor, labels: torch.Tensor, frames: torch.Tensor, lengths: torch.Tensor, blank: int
) -> torch.Tensor:
    """Negative log-likelihood of labels, over all alignments with frames.

    acts: (B, T, U + 1, V), labels: (B, U), frames, lengths: (B,) -> (B,).
    """
    B, T, U, V = acts.shape
    denominator = acts.new_empty((B, T, U))
    alpha = acts.new_empty((B, T, U))
    loss = acts.new_empty(B)
    for b in range(B):
        for t in range(T):
            for u in range(U):
                most = -math.inf
                for v in range(V):
                    most = max(most, acts[b, t, u, v])
                total = 0.0
                for v in range(V):
                    total += math.exp(acts[b, t, u, v] - most)
                denominator[b, t, u] = -most - math.log(total)
    for b in range(B):
        for t in range(frames[b]):
            for u in range(lengths[b] + 1):
                if t == 0 and u == 0:
                    alpha[b, 0, 0] = 0.0
                elif u == 0:
                    alpha[b, t, 0] = alpha[b, t - 1, 0] + acts[b, t - 1, 0, blank] + denominator[b, t - 1, 0]
                elif t == 0:
                    label = labels[b, u - 1]
                    alpha[b, 0, u] = alpha[b, 0, u - 1] + acts[b, 0, u - 1, label] + denominator[b, 0, u - 1]
                else:
                    label = labels[b, u - 1]
                    stay = alpha[b, t - 1, u] + acts[b, t - 1, u, blank] + denominator[b, t - 1, u]
                    emit = alpha[b, t, u - 1] + acts[b, t, u - 1, label] + denominator[b, t, u - 1]
                    alpha[b, t, u] = max(stay, emit) + math.log1p(math.exp(-abs(stay - emit)))
        t, u = frames[b] - 1, lengths[b]
        loss[b] = -(alpha[b, t, u] + acts[b, t, u, blank] + denominator[b, t, u])
    return loss


def rnnt_loss_inputs(make: Source, B: int, T: int, U: int, V: int) -> tuple[Any, ...]:
    """Return normal activations, labels other than the blank 0, and numbers of frames and labels."""
    labels = make.integers(1, V, B, U - 1, dtype=torch.int32)
    frames, lengths = make.integers(T // 2, T + 1, B), make.integers(U // 2, U, B)
    return make.normal(B, T, U, V), labels, frames.int(), lengths.int(), 0


def rnnt_loss_reference(
    acts: torch.Tensor, labels: torch.Tensor, frames: torch.Tensor, lengths: torch.Tensor, blank: int
) -> torch.Tensor:
    """Compute `rnnt_loss` element by element."""
    scores = acts.log_softmax(-1)
    losses: list[torch.Tensor] = []
    for b, (T, U) in enumerate(zip(values(frames), values(lengths), strict=True)):
        alpha = {(0, 0): acts.new_zeros(())}
        for t in range(T):
            for u in range(U + 1):
                ways = [alpha[t - 1, u] + scores[b, t - 1, u, blank]] if t else []
                ways += [alpha[t, u - 1] + scores[b, t, u - 1, int(labels[b, u - 1])]] if u else []
                alpha[t, u] = torch.logsumexp(torch.stack(ways), 0) if ways else alpha[t, u]
        losses.append(-(alpha[T - 1, U] + scores[b, T - 1, U, blank]))
    return torch.stack(losses)


OPERATORS = (
    Published(
        op=soft_dtw,
        repository="Maghoumi/pytorch-softdtw-cuda",
        file="soft_dtw_cuda.py",
        commit="7e85e48",
        inputs=soft_dtw_inputs,
        reference=soft_dtw_reference,
        tiny=(2, 4),
        small=(2, 32),
        large=(64, 512),
        gradient=("cost",),
    ),
    Published(
        op=rnnt_loss,
        repository="HawkAaron/warp-transducer",
        file="include/detail/gpu_rnnt_kernel.h",
        commit="a51cb41",
        inputs=rnnt_loss_inputs,
        reference=rnnt_loss_reference,
        tiny=(2, 4, 3, 5),
        small=(2, 16, 8, 32),
        large=(16, 400, 100, 1024),
        gradient=("acts",),
    ),
)
