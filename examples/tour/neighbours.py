"""The k nearest neighbours of each query, kept in a short sorted list."""

import torch

import brickwork as bw


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


def main(queries: int = 200, points: int = 2000) -> str:
    """Compare with all distances, sorted."""
    generator = torch.Generator().manual_seed(1)
    q = torch.rand(queries, 3, generator=generator, dtype=torch.float64)
    p = torch.rand(points, 3, generator=generator, dtype=torch.float64)
    distances, numbers = nearest(q, p)
    expected, indices = ((q[:, None] - p) ** 2).sum(2).topk(4, largest=False)
    assert torch.equal(numbers, indices)
    assert torch.allclose(distances, expected)
    return f"the neighbours of {queries} queries among {points} points"


if __name__ == "__main__":
    print(main())
