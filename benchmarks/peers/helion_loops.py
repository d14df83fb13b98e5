"""The kernels in Helion: PyTorch's operations on tiles, which it makes Triton of.

Tiles have sizes that are chosen here, since its search for better ones takes many minutes. The convolution is a product
with tiles of the weights of a channel, as in Triton.
"""

from __future__ import annotations

import helion
import helion.language as hl
import torch
from torch import Tensor

from brickwork.bench.timers import Call


def timex(w: Tensor, k: Tensor, eps: float) -> dict[str, Call]:
    """Convolve on tensor cores."""
    return {"helion, tf32x3": lambda: _timex(w, k, eps)}


@helion.kernel(config=helion.Config(block_sizes=[32, 64, 32], num_warps=4, num_stages=3), dot_precision="tf32x3")
def _timex(w: Tensor, k: Tensor, eps: float) -> Tensor:
    B, C, T = k.size()
    out = torch.empty_like(k)
    for tile_c, tile_b, tile_t in hl.tile([C, B, T], block_size=[1, None, None]):
        total = hl.zeros([tile_b, tile_t], dtype=torch.float32) + eps
        for tile_u in hl.tile(tile_t.end):
            lag = tile_t.index[None, :] - tile_u.index[:, None]
            weights = hl.load(w, [tile_c.begin, T - 1 - lag], extra_mask=(lag >= 0) & (lag < T))
            total = hl.dot(k[tile_b, tile_c.begin, tile_u], weights, acc=total)
        out[tile_b, tile_c.begin, tile_t] = total
    return out


def sin(x: Tensor, out: Tensor) -> dict[str, Call]:
    """Compute the sine of every element."""
    source, target = x.view(-1), out.view(-1)

    def call() -> Tensor:
        _sin(source, target)
        return out

    return {"helion": call}


@helion.kernel(config=helion.Config(block_sizes=[1024], num_warps=4))
def _sin(x: Tensor, out: Tensor) -> Tensor:
    for at in hl.tile(x.size(0)):
        out[at] = torch.sin(x[at])
    return out


def sample(mu: Tensor, sigma: Tensor, n: int) -> dict[str, Call]:
    """Draw with Helion's form of `randn_like`."""
    return {"helion": lambda: _sample(mu, sigma, mu.new_empty(len(mu), n))}


@helion.kernel(config=helion.Config(block_sizes=[1, 1024], num_warps=4))
def _sample(mu: Tensor, sigma: Tensor, out: Tensor) -> Tensor:
    for row, column in hl.tile(out.size()):
        z = torch.randn_like(out[row, column])
        out[row, column] = mu[row][:, None] + sigma[row][:, None] * z
    return out


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> dict[str, Call]:
    """Scale and shift the given deviates."""
    return {"helion": lambda: _sample_shared(mu, sigma, z)}


@helion.kernel(config=helion.Config(block_sizes=[1, 1024], num_warps=4))
def _sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> Tensor:
    out = mu.new_empty([mu.size(0), z.size(0)])
    for row, column in hl.tile(out.size()):
        out[row, column] = mu[row][:, None] + sigma[row][:, None] * z[column][None, :]
    return out
