"""A histogram, whose iterations meet in the bins, and a prefix sum, whose iterations follow one another."""

import torch

import brickwork as bw


@bw.op("tour::histogram")
def histogram(x: torch.Tensor, low: float, high: float, bins: int) -> torch.Tensor:
    """Count the values of x (n,) in equal bins from low to high: int64 (bins,)."""
    counts = torch.zeros((bins,), dtype=torch.int64, device=x.device)
    for i in bw.prange(x.shape[0]):
        if low <= x[i] < high:
            counts[min(int((x[i] - low) / (high - low) * bins), bins - 1)] += 1
    return counts


@bw.op("tour::prefix_sums")
def prefix_sums(x: torch.Tensor) -> torch.Tensor:
    """Sum along each row up to each element: (rows, n) -> (rows, n)."""
    out = torch.empty_like(x)
    for row in range(x.shape[0]):
        total = 0.0
        for i in range(x.shape[1]):
            total += x[row, i]
            out[row, i] = total
    return out


def main(size: int = 100_000) -> str:
    """Compare both with torch's own."""
    x = torch.randn(size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    counts = histogram(x, -3.0, 3.0, 60)
    assert torch.equal(counts, torch.histc(x, 60, -3, 3).long())
    rows = x.reshape(10, -1)
    assert torch.allclose(prefix_sums(rows), rows.cumsum(1))
    return f"{counts.sum().item()} of {size} values counted"


if __name__ == "__main__":
    print(main())
