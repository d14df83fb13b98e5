"""The k nearest neighbours of each query, kept in a short sorted list."""

import torch

import brickwork as bw
from brickwork.bench import plots
from examples.tour.places import picture_of


@bw.op("tour::nearest")
def nearest(queries: torch.Tensor, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the squared distances and the numbers of the 4 nearest points: (m, d), (n, d) -> (m, 4), int64 (m, 4)."""
    m, d = queries.shape
    n = points.shape[0]
    distances = queries.new_empty((m, 4))
    numbers = torch.empty((m, 4), dtype=torch.int64, device=queries.device)
    for q in range(m):
        best = [float("inf")] * 4
        which = [-1] * 4
        for p in range(n):
            distance = 0.0
            for axis in range(d):
                difference = queries[q, axis] - points[p, axis]
                distance += difference * difference
            if distance < best[3]:
                place = 3
                while place > 0 and best[place - 1] > distance:
                    best[place] = best[place - 1]
                    which[place] = which[place - 1]
                    place -= 1
                best[place] = distance
                which[place] = p
        for place in range(4):
            distances[q, place] = best[place]
            numbers[q, place] = which[place]
    return distances, numbers


def cells(points: torch.Tensor, pixels: int) -> torch.Tensor:
    """Return how much farther the second point is than the first, for each pixel of a unit square: (pixels, pixels)."""
    across = torch.linspace(0, 1, pixels, dtype=points.dtype)
    distances, _ = nearest(torch.cartesian_prod(across, across), points)
    return (distances[:, 1].sqrt() - distances[:, 0].sqrt()).reshape(pixels, pixels)


def main(queries: int = 200, points: int = 2000, pixels: int = 240) -> str:
    """Compare with all distances, sorted, and draw the cells of a few points."""
    generator = torch.Generator().manual_seed(1)
    q = torch.rand(queries, 3, generator=generator, dtype=torch.float64)
    p = torch.rand(points, 3, generator=generator, dtype=torch.float64)
    distances, numbers = nearest(q, p)
    expected, indices = ((q[:, None] - p) ** 2).sum(2).topk(4, largest=False)
    assert torch.equal(numbers, indices)
    assert torch.allclose(distances, expected)
    apart = cells(p[:40, :2].contiguous(), pixels)
    plots.picture((apart / apart.max()).sqrt(), picture_of("neighbours"), "copper")
    return f"the neighbours of {queries} queries among {points} points"


if __name__ == "__main__":
    print(main())
