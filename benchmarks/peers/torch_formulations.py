"""The ready operators in tensor operations of torch alone: what brickwork is measured against and checked with."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def brick_pad(
    tile: Tensor, height: int, width: int, origin: list[int], shift_x: list[int], shift_y: list[int]
) -> Tensor:
    """Gather every pixel through tensors of indices; tile (h, w) or (h, w, c)."""
    tile_height, tile_width = tile.shape[:2]
    y = (height - 1 - origin[1] - torch.arange(height, device=tile.device)).view(-1, 1)
    x = (torch.arange(width, device=tile.device) - origin[0]).view(1, -1)
    v = torch.div(y, tile_height, rounding_mode="floor")
    u = torch.div(x - v * shift_y[0], tile_width, rounding_mode="floor")
    column = x - u * shift_x[0] - v * shift_y[0]
    row = tile_height - 1 - (y - u * shift_x[1] - v * shift_y[1])
    return tile[row, column]


def pixel_table(height: int, width: int, device: torch.device) -> Tensor:
    """Return the row and the column of each pixel; (height, width, 2)."""
    rows, columns = torch.arange(height, device=device), torch.arange(width, device=device)
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij"), 2)


def brick_pad_by_table(
    table: Tensor, tile: Tensor, origin: list[int], shift_x: list[int], shift_y: list[int]
) -> Tensor:
    """Gather through a table of the pixels' coordinates, in the steps of the article on Taichi; tile (h, w)."""
    height, (tile_height, tile_width) = table.shape[0], tile.shape
    x_shift, y_shift = (torch.tensor(shift, device=tile.device) for shift in (shift_x, shift_y))
    strides = torch.tensor(tile.stride(), device=tile.device, dtype=torch.float)
    at = table.clone()
    at[:, :, 0] = height - 1 - origin[1] - at[:, :, 0]
    at[:, :, 1] -= origin[0]
    at = torch.flip(at, (2,))
    v = torch.floor(at[:, :, 1] / tile_height).to(torch.int)
    u = torch.floor((at[:, :, 0] - v * y_shift[0]) / tile_width).to(torch.int)
    at = at - torch.stack((u, u), 2) * x_shift - torch.stack((v, v), 2) * y_shift
    at[:, :, 1] = tile_height - 1 - at[:, :, 1]
    places = torch.flip(at, (2,)).view(-1, 2).to(torch.float).mv(strides)
    return tile.reshape(-1).index_select(0, places.to(torch.long)).view(table.shape[:2])


def timex(w: Tensor, k: Tensor, eps: float) -> Tensor:
    """Convolve through torch's own grouped convolution."""
    length = k.shape[-1]
    return eps + functional.conv1d(functional.pad(k, (length - 1, 0)), w.unsqueeze(1), groups=k.shape[1])


def timex_fourier(w: Tensor, k: Tensor, eps: float) -> Tensor:
    """Convolve through the Fourier transform, which does fewer operations than the sum."""
    length = k.shape[-1]
    spectrum = torch.fft.rfft(w.flip(-1), 2 * length) * torch.fft.rfft(k, 2 * length)
    return eps + torch.fft.irfft(spectrum, 2 * length)[..., :length]


def timex_padded(w: Tensor, k: Tensor, eps: float) -> Tensor:
    """Convolve a signal that was padded before."""
    return eps + functional.conv1d(k, w, groups=k.shape[1])


def sample_normal(mu: Tensor, sigma: Tensor, n: int) -> Tensor:
    """Scale and shift normal deviates of torch."""
    return mu[:, None] + sigma[:, None] * torch.randn(mu.shape[0], n, dtype=mu.dtype, device=mu.device)


def sample_shared(mu: Tensor, sigma: Tensor, z: Tensor) -> Tensor:
    """Scale and shift given deviates, which all distributions share."""
    return torch.addcmul(mu[:, None], sigma[:, None], z)


def sum_of(tensors: Sequence[Tensor]) -> Tensor:
    """Add vectors one after the other."""
    return functools.reduce(torch.add, tensors) if len(tensors) > 1 else tensors[0].clone()
