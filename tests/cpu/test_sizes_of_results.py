"""Results as long as a product of quotients of sizes: pooled and patched maps that are written at flat places."""

import pytest
import torch

import brickwork as bw

pytestmark = pytest.mark.usefixtures("quick")


@bw.op
def every_other(x: torch.Tensor) -> torch.Tensor:
    H, W = x.shape
    h, w = H // 2, W // 2
    out = x.new_zeros((h * w,))
    for i in range(h):
        for j in range(w):
            out[i * w + j] = x[i * 2, j * 2]
    return out


@bw.op
def patches(x: torch.Tensor, size: int) -> torch.Tensor:
    H, W = x.shape
    h, w = H // size, W // size
    out = x.new_zeros((h * w, size))
    for i in range(h):
        for j in range(w):
            for k in range(size):
                out[i * w + j, k] = x[i * size + k, j * size]
    return out


@pytest.mark.parametrize("shape", [(8, 6), (7, 9), (2, 1), (1, 4), (0, 6), (40, 70)])
def test_quotients_of_sizes_place_elements(shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    wanted = x[: shape[0] // 2 * 2 : 2, : shape[1] // 2 * 2 : 2].reshape(-1)
    result = every_other(x)
    torch.testing.assert_close(result, wanted)
    weights = torch.randn_like(result)
    found, expected = (torch.autograd.grad(value, x, weights)[0] for value in (result, wanted))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("shape", "size"), [((8, 6), 2), ((7, 9), 3), ((5, 5), 7), ((4, 0), 2), ((6, 6), 1)])
def test_quotients_by_an_argument_place_elements(shape, size):
    x = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(patches(x, size), patches.python(x, size))


def test_such_places_are_proved_so_that_loops_are_parallel():
    told = every_other.explain(torch.zeros(64, 64))
    assert told.count("in parallel") == 2
    assert "in range if" not in told
    assert "checked" not in told
