"""Decompositions of singular matrices, and of those that turn space over."""

import pytest
import torch

import brickwork.taichi as ti


@pytest.fixture(autouse=True)
def begin():
    ti.init(arch=ti.cpu)
    yield
    ti.reset()


def _matrices(size, dtype):
    made = torch.Generator().manual_seed(1)
    some = torch.randn(40, size, size, generator=made, dtype=dtype)
    some[0] = 0
    some[1:6, :, -1] = some[1:6, :, :1].squeeze(-1)  # of lower rank
    some[6:12] = some[6:12, :, :1] * some[6:12, :1, :]
    some[12:18, 0] = 0
    some[18] = torch.diag(torch.tensor([1e-3] * (size - 1) + [-1e-9], dtype=dtype))
    return some


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_decomposition_of_a_singular_matrix_has_orthogonal_sides(size, dtype):
    @ti.kernel
    def run(a: ti.types.ndarray(), u: ti.types.ndarray(), s: ti.types.ndarray(), v: ti.types.ndarray()):
        for i in range(a.shape[0]):
            given = ti.Matrix([[a[i, j, k] for k in ti.static(range(size))] for j in ti.static(range(size))])
            left, values, right = ti.svd(given)
            for j, k in ti.static(ti.ndrange(size, size)):
                u[i, j, k], s[i, j, k], v[i, j, k] = left[j, k], values[j, k], right[j, k]

    a = _matrices(size, dtype)
    u, s, v = (torch.full_like(a, 7) for _ in range(3))
    run(a, u, s, v)
    near = 1e-5 if dtype is torch.float32 else 1e-13
    one = torch.eye(size, dtype=dtype)
    assert (u @ u.mT - one).abs().max() < near
    assert (v @ v.mT - one).abs().max() < near
    assert (u @ s @ v.mT - a).abs().max() < near * 10
    values = s.diagonal(dim1=1, dim2=2)
    assert (values.abs() - torch.linalg.svdvals(a)).abs().max() < near * 10
    if size == 3:
        assert (torch.linalg.det(u) - 1).abs().max() < near
        assert (torch.linalg.det(v) - 1).abs().max() < near
    else:
        assert values.min() >= 0


def test_a_polar_decomposition_of_a_singular_matrix():
    @ti.kernel
    def run(a: ti.types.ndarray(), r: ti.types.ndarray()):
        given = ti.Matrix([[a[j, k] for k in ti.static(range(3))] for j in ti.static(range(3))])
        turn, stretch = ti.polar_decompose(given)
        back = turn @ stretch
        for j, k in ti.static(ti.ndrange(3, 3)):
            r[j, k] = turn[j, k]
            a[j, k] = back[j, k]

    given = torch.tensor([[1.0, 2, 0], [2, 4, 0], [0, 0, 0]], dtype=torch.float64)
    a, r = given.clone(), torch.zeros(3, 3, dtype=torch.float64)
    run(a, r)
    assert torch.allclose(r @ r.mT, torch.eye(3, dtype=torch.float64))
    assert torch.allclose(a, given)


def test_a_decomposition_in_the_scope_of_python():
    u, s, v = ti.svd(ti.Matrix([[1.0, 2.0], [2.0, 4.0]]))
    assert abs(u.determinant()) == pytest.approx(1)
    assert (u @ s @ v.transpose()).entries == pytest.approx([1, 2, 2, 4])
    with pytest.raises(ValueError, match="only supports 2D and 3D"):
        ti.polar_decompose(ti.Matrix.identity(float, 4))
