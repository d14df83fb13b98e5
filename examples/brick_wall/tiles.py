"""Tiles to repeat: colours that change across, a brick with its mortar that is computed, and a photograph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from matplotlib import image
from torch.nn import functional

PHOTOGRAPH = Path(__file__).with_name("photograph.jpg")
"""Where it comes from is said in `photograph.md`, beside it."""


def gradient(height: int = 64, width: int = 64) -> torch.Tensor:
    """Return a colour gradient (height, width, 3): red grows to the right, green upwards, blue to the lower left."""
    up = torch.linspace(1, 0, height)[:, None].expand(height, width)
    right = torch.linspace(0, 1, width).expand(height, width)
    return torch.stack([right, up, 1 - (up + right) / 2], dim=2)


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
    """Return a photograph in colour (size, size, 3), with values from 0 to 1."""
    whole = torch.from_numpy(np.array(image.imread(PHOTOGRAPH))).float() / 255
    shrunk = functional.interpolate(whole.movedim(-1, 0)[None], size=(size, size), mode="area")
    return shrunk[0].movedim(0, -1).contiguous()
