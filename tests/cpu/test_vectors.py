"""Vectors and matrices in operators: what they compute, as plain Python, in the interpreter and compiled."""

# pyright: reportArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from support.fourfold import agree, failure

Tile, Six = bw.matrix(4, 2), bw.vector(6)
X = torch.linspace(-2.0, 1.5, 7)


def algebra(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v, w = bw.vec3(x[i], 1.0, 2.0), bw.vec3(0.5)
        u = v + w * 2 - 1
        r = 1 / (2 + u * u) - (1 - v) ** 2 + -v // 3 + abs(v) % 2
        out[i] = u.dot(v) + u @ r + u.cross(v).norm() + v.normalized().z + r.sum() + r.max() - r.min()
        out[i] += bw.vec4(v.xy, w.zz).w + v.zyx.y + v[i % 3] + v.outer_product(w)[0, 1] + v.norm_sqr() + (v == v.rgb)
    return out


def matrices(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = bw.mat2(x[i], 1.0, 2.0, 3.0)
        for _ in range(3):
            m = m @ bw.mat2((0.5, 0.1), (0.2, 0.9)) + 0.01
        w = m @ bw.vec2(1.0, 2.0)
        out[i] = m[0, 1] + m[i % 2, 0] + w.x * w.y + m.determinant() + m.transpose()[1].x + m.trace()
        n = (2 - m * 2) / 3 + 1 * -m - bw.mat2(bw.vec2(1.0, 2.0), bw.vec2(3.0, 4.0))
        out[i] += n[1, 1] + (n == n) + len(n)
    return out


def inverses(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = bw.mat3(x[i], 1.0, 2.0, 3.0, 1.0, 0.0, 2.0, 1.0, 1.0)
        n = bw.mat4((x[i], 1.0, 2.0, 3.0), (1.0, 0.5, 2.0, 1.0), (1.0, 4.0, 1.5, 0.25), (3.0, 2.0, 0.0, 1.0))
        p, q, r = m @ m.inverse(), n @ n.inverse(), bw.mat2(x[i], 2.0, 1.0, 0.5).inverse()
        out[i] = m.determinant() + n.determinant() + p[0, 0] + q[2, 2] + q[1, 3] + r[0, 1]
    return out


def tiles(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s, h = Tile(0.0), Six(0)
        for k in range(x.shape[0]):
            for a in range(4):
                for b in range(2):
                    s[a, b] += x[k] * (a + b) + i
            h[k % 6] += 1
        total = 0.0
        for a in range(4):
            total += s[a, 1] - s[a, 0] * 2
        out[i] = total + h[0] * 10 + h[5]
    return out


@pytest.mark.parametrize("function", [algebra, matrices, inverses, tiles])
def test_vectors_and_matrices_agree(function: Callable[..., Any]):
    agree(function, X)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_determinants_and_inverses_are_those_of_torch(size: int):
    made = torch.randn(size, size, dtype=torch.float64, generator=torch.Generator().manual_seed(size))
    matrix = bw.matrix(size, size)(*made.flatten().tolist())
    found = torch.tensor(matrix.inverse().rows, dtype=torch.float64)
    torch.testing.assert_close(found, torch.linalg.inv(made))
    torch.testing.assert_close(matrix.determinant(), torch.linalg.det(made).item())


def unlike(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = (bw.vec2(x[i], 1.0) + bw.vec3(x[i], 1.0, 2.0)).x
    return out


def test_vectors_of_different_lengths_do_not_mix():
    kind, text = failure(unlike, X)
    assert kind is ValueError
    assert text.startswith("two vectors differ in length")


def outside(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        s = Tile(x[i])
        s[i, 1] = 3.0
        out[i] = s[3, 1]
    return out


def test_stores_into_items_are_checked():
    assert failure(outside, X)[0] is IndexError


def orbit(x: torch.Tensor, turn: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 2, dtype=x.dtype)
    for i in range(x.shape[0]):
        m = bw.mat2(turn[0], turn[1], -turn[1], turn[0])
        p = bw.vec2(x[i], 1.0)
        for _ in range(4):
            p = m @ p + p.yx * 0.1
        out[i, 0], out[i, 1] = p
    return out


def test_gradients_pass_through_matrices():
    x = torch.linspace(-1.0, 1.0, 3, dtype=torch.float64, requires_grad=True)
    turn = torch.tensor([0.8, 0.6], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(bw.op(orbit), (x, turn))
