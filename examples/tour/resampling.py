"""Bilinear resampling of a picture, with the gradients that find out how it was shifted."""

import math

import torch

import brickwork as bw
from brickwork.bench import plots
from examples.tour.places import picture_of


@bw.op("tour::resample")
def resample(image: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    """Read image (h, w) at scale * (i, j) + shift between its pixels; scale and shift (2,). Outside it is 0."""
    h, w = image.shape
    out = torch.empty_like(image)
    for i in range(h):
        for j in range(w):
            y = scale[0] * i + shift[0]
            x = scale[1] * j + shift[1]
            top = math.floor(y)
            left = math.floor(x)
            value = 0.0
            for di in range(2):
                for dj in range(2):
                    if 0 <= top + di < h and 0 <= left + dj < w:
                        share = (1 - abs(y - (top + di))) * (1 - abs(x - (left + dj)))
                        value += share * image[top + di, left + dj]
            out[i, j] = value
    return out


def main(size: int = 48, updates: int = 150) -> str:
    """Find the shift of a picture by following the gradient, and draw all three; return how near it is."""
    across = torch.linspace(-3, 3, size, dtype=torch.float64)
    image = torch.exp(-(across[:, None] ** 2) - (across - 0.5) ** 2)
    scale = torch.ones(2, dtype=torch.float64)
    true = torch.tensor([2.3, -1.6], dtype=torch.float64)
    wanted = resample(image, scale, true)
    shift = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([shift], lr=0.1)
    for _ in range(updates):
        optimizer.zero_grad()
        (resample(image, scale, shift) - wanted).square().sum().backward()
        optimizer.step()
    apart = (shift.detach() - true).abs().max().item()
    assert apart < 0.02, shift
    strip = torch.cat([image, wanted, resample(image, scale, shift.detach())], dim=1)
    plots.picture(strip.clamp(0, 1), picture_of("resampling"), "magma")
    return f"the shift is found to within {apart:.1e} pixels"


if __name__ == "__main__":
    print(main())
