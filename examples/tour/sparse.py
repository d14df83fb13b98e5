"""A sparse matrix in compressed rows times a vector."""

import torch

import brickwork as bw


@bw.op("tour::sparse_times")
def sparse_times(rows: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return A @ x: rows int64 (m + 1,) where each begins, columns int64 (nonzeros,), values (nonzeros,), x (n,)."""
    m = rows.shape[0] - 1
    out = values.new_empty((m,))
    for i in range(m):
        total = 0.0
        for place in range(rows[i], rows[i + 1]):
            total += values[place] * x[columns[place]]
        out[i] = total
    return out


def main(size: int = 2000) -> str:
    """Compare the product and the gradients with those of the dense matrix."""
    generator = torch.Generator().manual_seed(1)
    dense = torch.randn(size, size, generator=generator, dtype=torch.float64)
    dense *= torch.rand(size, size, generator=generator) < 0.01
    where = dense.nonzero()
    rows = torch.searchsorted(where[:, 0].contiguous(), torch.arange(size + 1))
    columns = where[:, 1].contiguous()
    values = dense[where[:, 0], columns].requires_grad_()
    x = torch.randn(size, generator=generator, dtype=torch.float64, requires_grad=True)
    product = sparse_times(rows, columns, values, x)
    assert torch.allclose(product, dense @ x)
    by_values, by_x = torch.autograd.grad(product.sum(), (values, x))
    assert torch.allclose(by_x, dense.sum(0))
    assert torch.allclose(by_values, x.detach()[columns])
    return f"{len(values)} elements, and their gradients"


if __name__ == "__main__":
    print(main())
