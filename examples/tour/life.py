"""Conway's Game of Life on a torus, many generations in one call."""

import torch

import brickwork as bw
from brickwork.bench import plots
from examples.tour.places import picture_of


@bw.op("tour::live")
def live(cells: torch.Tensor, generations: int) -> torch.Tensor:
    """Return the cells, uint8 (height, width) of 0 and 1, some generations later."""
    height, width = cells.shape
    now = torch.empty_like(cells)
    later = torch.empty_like(cells)
    for i in range(height):
        for j in range(width):
            now[i, j] = cells[i, j]
    for _ in range(generations):
        for i in range(height):
            for j in range(width):
                around = 0
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        around += now[(i + di) % height, (j + dj) % width]
                around -= now[i, j]
                later[i, j] = 1 if around == 3 or (around == 2 and now[i, j] == 1) else 0
        now, later = later, now
    return now


def main(size: int = 256, generations: int = 200) -> str:
    """Let a soup live on; return how a glider fared."""
    glider = torch.zeros(16, 16, dtype=torch.uint8)
    for i, j in ((0, 1), (1, 2), (2, 0), (2, 1), (2, 2)):
        glider[i, j] = 1
    assert torch.equal(live(glider, 4 * 16), glider)
    assert torch.equal(live(glider, 4), glider.roll((1, 1), (0, 1)))
    soup = (torch.rand(size, size, generator=torch.Generator().manual_seed(1)) < 0.3).to(torch.uint8)
    plots.picture(255 * (1 - live(soup, generations)), picture_of("life"))
    return "a glider comes home round the torus"


if __name__ == "__main__":
    print(main())
