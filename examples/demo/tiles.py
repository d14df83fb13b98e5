"""Tiles to repeat: a brick with its mortar that is computed, and a photograph that comes with matplotlib."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib import cbook, image


def brick(height: int = 48, width: int = 96, mortar: int = 4) -> torch.Tensor:
    """Return a brick in colour (height, width, 3), lit from above, with mortar at the left and below."""
    y = torch.linspace(0, 1, height)[:, None]
    x = torch.linspace(0, 1, width)[None, :]
    generator = torch.Generator().manual_seed(7)
    grain = 0.06 * torch.randn(height, width, generator=generator)
    light = 1.05 - 0.35 * y + 0.08 * torch.sin(9 * x + 4 * y) + grain
    clay = torch.tensor([0.70, 0.30, 0.20]) * light[..., None]
    joint = torch.tensor([0.80, 0.78, 0.74]) * (0.95 + grain[..., None])
    is_joint = (torch.arange(height)[:, None] >= height - mortar) | (torch.arange(width)[None, :] < mortar)
    return torch.where(is_joint[..., None], joint, clay).clamp(0, 1)


def photograph(size: int = 160) -> torch.Tensor:
    """Return a part of a photograph in colour (size, size, 3)."""
    with cbook.get_sample_data("grace_hopper.jpg") as file:
        whole = np.asarray(image.imread(file, format="jpg"))
    part = torch.from_numpy(whole[20:420, 60:460].copy()).float() / 255
    shrunk = torch.nn.functional.interpolate(part.movedim(-1, 0)[None], size=(size, size), mode="area")
    return shrunk[0].movedim(0, -1).contiguous()
