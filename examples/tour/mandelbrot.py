"""The Mandelbrot set: how many steps each point of the plane takes to escape."""

import torch

import brickwork as bw
from brickwork.bench import plots
from examples.tour.places import picture_of


@bw.op("tour::escape_times")
def escape_times(height: int, width: int, left: float, top: float, step: float, most: int) -> torch.Tensor:
    """Count the turns of z = z*z + c until |z| > 2, up to `most`, for the points c of a grid: int32 (height, width)."""
    out = torch.empty((height, width), dtype=torch.int32)
    for i in range(height):
        for j in range(width):
            x, y = 0.0, 0.0
            turns = 0
            while turns < most and x * x + y * y <= 4.0:
                x, y = x * x - y * y + left + j * step, 2.0 * x * y + top - i * step
                turns += 1
            out[i, j] = turns
    return out


def main(size: int = 600) -> str:
    """Draw the set; return what was checked."""
    grid = (12, 16, -2.03, 1.17, 0.19, 40)
    assert torch.equal(escape_times(*grid), escape_times.python(*grid))
    turns = escape_times(size, size * 4 // 3, -2.2, 1.2, 2.4 / size, 200)
    shade = (turns.float() / 200).sqrt()
    plots.picture(shade, picture_of("mandelbrot"), "twilight_shifted")
    inside = (turns == 200).float().mean().item() * (2.4 * 3.2)
    assert abs(inside - 1.5066) < 0.1, inside
    return f"its area is about {inside:.3f} (known: 1.507)"


if __name__ == "__main__":
    print(main())
