"""The convolution and its gradients in Quadrants for GPUs: rows in shared memory, elements of the result in registers.

A block has one channel and several batches. Rows are filled up with zeros to whole tiles, so no loop asks where one
ends. Weights depend on t - u alone: sixteen of them wait in registers, and each step along a row takes one more. Tile i
of the result takes i + 1 tiles of a row; a warp has tiles i and last - i, so all warps have the same work. Shared
arrays have sizes that are known when a kernel is compiled, so there is a kernel for each length.
"""

import functools

import quadrants as qd
import torch
from torch import Tensor

from benchmarks.peers.shared_tiles import LANES, OUTPUTS, ROWS, longest, padded, warps_of

Matrix = qd.types.ndarray(dtype=qd.f32, ndim=2)
Cube = qd.types.ndarray(dtype=qd.f32, ndim=3)


def timex(w: Tensor, k: Tensor, eps: float) -> Tensor:
    """Return the convolution."""
    out = torch.empty_like(k)
    _convolution(k.shape[2], False)(w, k, out, eps)
    return out


def timex_backward(w: Tensor, k: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of w and of k; that of k is the convolution from the end to the beginning."""
    to_w, to_k = torch.empty_like(w), torch.empty_like(k)
    _convolution(k.shape[2], True)(w, gradient, to_k, 0.0)
    _gradient_of_w(k.shape[2])(k, gradient, to_w)
    return to_w, to_k


def fits(k: Tensor) -> bool:
    """Whether the rows fit into shared memory."""
    return k.shape[2] <= longest()


@functools.cache
def _convolution(length: int, turned: bool):
    tile = 32 // LANES * OUTPUTS
    whole = padded(length, tile)
    tiles, stride, warps = whole // tile, whole + 4, warps_of(whole // tile)
    block = 32 * warps

    @qd.kernel
    def convolve(w: Matrix, k: Cube, out: Cube, eps: qd.f32):
        B, C = k.shape[0], k.shape[1]
        qd.loop_config(block_dim=block)
        for index in range((B + LANES - 1) // LANES * C * block):
            thread = index % block
            c = index // block % C
            first = index // (block * C) * LANES
            rows = qd.simt.block.SharedArray((LANES * stride,), qd.f32)
            weights = qd.simt.block.SharedArray((whole + tile,), qd.f32)
            for at in range(LANES * whole // block + 1):
                place = at * block + thread
                if place < LANES * whole:
                    row, u = place // whole, place % whole
                    value = 0.0
                    if first + row < B and u < length:
                        value = k[first + row, c, length - 1 - u if qd.static(turned) else u]
                    rows[row * stride + u] = value
            for at in range((whole + tile) // block + 1):
                place = at * block + thread
                if place < whole + tile:
                    u = place - (whole - length)
                    value = 0.0
                    if u >= 0 and u < length:
                        value = w[c, u]
                    weights[place] = value
            qd.simt.block.sync()
            lane = thread % 32
            mine = lane % LANES * stride
            for turn in range(2 * ((tiles + 1) // 2 // warps + 1)):
                pair = turn // 2 * warps + thread // 32
                if 2 * pair < tiles and (turn % 2 == 0 or 2 * pair != tiles - 1):
                    chosen = pair if turn % 2 else tiles - 1 - pair
                    start = chosen * tile + lane // LANES * OUTPUTS
                    around = whole - OUTPUTS - start
                    total = qd.Vector([0.0 for _ in range(OUTPUTS)])
                    window = qd.Vector([0.0 for _ in range(2 * OUTPUTS)])
                    for i in qd.static(range(OUTPUTS)):
                        total[i] = eps
                        window[i] = weights[around + i]
                    for part in range((chosen + 1) * tile // OUTPUTS):
                        u = part * OUTPUTS
                        for step in qd.static(range(OUTPUTS)):
                            window[OUTPUTS + step] = weights[around + u + OUTPUTS + step]
                            value = rows[mine + u + step]
                            for i in qd.static(range(OUTPUTS)):
                                total[i] += window[OUTPUTS - 1 - i + step] * value
                        for i in qd.static(range(OUTPUTS)):
                            window[i] = window[OUTPUTS + i]
                    b = first + lane % LANES
                    if b < B:
                        for i in qd.static(range(OUTPUTS)):
                            if start + i < length:
                                out[b, c, length - 1 - start - i if qd.static(turned) else start + i] = total[i]
            qd.simt.block.sync()

    return convolve


@functools.cache
def _gradient_of_w(length: int):
    tile = 32 // ROWS * OUTPUTS
    whole = padded(length, tile)
    tiles, stride, longer, warps = whole // tile, whole + 4, whole + tile + 4, warps_of(whole // tile)
    block = 32 * warps

    @qd.kernel
    def correlate(k: Cube, gradient: Cube, out: Matrix):
        B, C = k.shape[0], k.shape[1]
        qd.loop_config(block_dim=block)
        for index in range(C * block):
            thread = index % block
            c = index // block
            signals = qd.simt.block.SharedArray((ROWS * stride,), qd.f32)
            gradients = qd.simt.block.SharedArray((ROWS * longer,), qd.f32)
            totals = qd.simt.block.SharedArray((whole,), qd.f32)
            for at in range(whole // block + 1):
                if at * block + thread < whole:
                    totals[at * block + thread] = 0.0
            lane = thread % 32
            row = lane % ROWS
            for group in range((B + ROWS - 1) // ROWS):
                qd.simt.block.sync()
                for at in range(ROWS * (whole + tile) // block + 1):
                    place = at * block + thread
                    if place < ROWS * (whole + tile):
                        r, u = place // (whole + tile), place % (whole + tile)
                        left, right = 0.0, 0.0
                        if group * ROWS + r < B and u < length:
                            left, right = k[group * ROWS + r, c, u], gradient[group * ROWS + r, c, u]
                        if u < whole:
                            signals[r * stride + u] = left
                        gradients[r * longer + u] = right
                qd.simt.block.sync()
                for turn in range(2 * ((tiles + 1) // 2 // warps + 1)):
                    pair = turn // 2 * warps + thread // 32
                    if 2 * pair < tiles and (turn % 2 == 0 or 2 * pair != tiles - 1):
                        chosen = tiles - 1 - pair if turn % 2 else pair
                        start = chosen * tile + lane // ROWS * OUTPUTS
                        total = qd.Vector([0.0 for _ in range(OUTPUTS)])
                        window = qd.Vector([0.0 for _ in range(2 * OUTPUTS)])
                        for i in qd.static(range(OUTPUTS)):
                            window[i] = gradients[row * longer + start + i]
                        for part in range((whole - chosen * tile) // OUTPUTS):
                            s = part * OUTPUTS
                            for step in qd.static(range(OUTPUTS)):
                                window[OUTPUTS + step] = gradients[row * longer + start + s + OUTPUTS + step]
                                value = signals[row * stride + s + step]
                                for i in qd.static(range(OUTPUTS)):
                                    total[i] += window[step + i] * value
                            for i in qd.static(range(OUTPUTS)):
                                window[i] = window[OUTPUTS + i]
                        for i in qd.static(range(OUTPUTS)):
                            found = total[i]
                            found += qd.simt.warp.shfl_down_f32(qd.u32(0xFFFFFFFF), found, 2)
                            found += qd.simt.warp.shfl_down_f32(qd.u32(0xFFFFFFFF), found, 1)
                            if row == 0:
                                totals[start + i] = totals[start + i] + found
            qd.simt.block.sync()
            for at in range(length // block + 1):
                place = at * block + thread
                if place < length:
                    out[c, place] = totals[length - 1 - place]
            qd.simt.block.sync()

    return correlate
