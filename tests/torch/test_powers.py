"""Powers with a literal exponent: the bits of `torch.pow`, in compiled code, interpreted, and as Python."""

import numpy as np
import pytest
import torch

import brickwork as bw

OPTIMISED = True

EXPONENTS = (0.5, -0.5, -1, -2, 1, 2, 3)


@bw.op("bwpower::literals")
def literals(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty((7, len(x)), dtype=x.dtype)
    for i in range(len(x)):
        out[0, i] = x[i] ** 0.5
        out[1, i] = x[i] ** -0.5
        out[2, i] = x[i] ** -1
        out[3, i] = pow(x[i], -2)
        out[4, i] = x[i] ** 1
        out[5, i] = torch.pow(x[i], 2.0)
        out[6, i] = x[i] ** 3
    return out


def many(dtype: torch.dtype) -> torch.Tensor:
    special = torch.tensor([-0.0, 0.0, -torch.inf, torch.inf, torch.nan, -1.5, 1e-45, -1e-45, 3e38, 1e-40])
    spread = torch.arange(2**14, dtype=torch.int32) * 1021 + 0x3F000000
    return torch.cat((special, spread.view(torch.float32))).to(dtype)


def expected(x: torch.Tensor) -> torch.Tensor:
    """Return torch's powers; its square root is a library's, which may round wrongly, so that one is NumPy's."""
    rows = [x**exponent for exponent in EXPONENTS]
    with np.errstate(invalid="ignore"):
        rows[0] = torch.from_numpy(np.sqrt(x.numpy()))
    return torch.stack(rows)


def same(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether two tensors have the same bits, but for those of NaN."""
    bits = torch.int32 if found.dtype == torch.float32 else torch.int64
    return bool(((found.view(bits) == wanted.view(bits)) | (found.isnan() & wanted.isnan())).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_literal_powers_have_torchs_bits(dtype):
    x = many(dtype)
    wanted = expected(x)
    torch.testing.assert_close(x**0.5, wanted[0], equal_nan=True)
    assert same((x[:10] ** 0.5)[:2], wanted[0][:2])  # torch keeps the sign of a zero, unlike Python
    assert same(literals(x), wanted)
    few = torch.cat((x[:10], x[10::512]))
    assert same(literals.python(few), expected(few))
    with bw.config.override(check="interpret"):
        interpreted = bw.op("bwpower::interpreted")(literals.__wrapped__)
    assert same(interpreted(few), expected(few))
    assert "pow" not in literals.inspect("llvm", x)


def fifth(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] ** 5 + x[i] ** -3
    return out


def test_other_whole_powers_are_products_under_fast_math_alone():
    x = torch.linspace(0.5, 2.0, 100, dtype=torch.float64)
    precise, fast = bw.op("bwpower::fifth")(fifth), bw.op("bwpower::fast_fifth", fast_math=True)(fifth)
    assert same(precise(x), x**5 + x**-3)
    torch.testing.assert_close(fast(x), precise(x))
    assert "Sleef_pow" in precise.inspect("llvm", x) or "@pow" in precise.inspect("llvm", x)
    assert "pow" not in fast.inspect("llvm", x)


@bw.op("bwpower::whole")
def whole(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] ** 5 - x[i] ** 12
    return out


def test_literal_powers_of_integers_are_products():
    x = torch.arange(-60, 60)
    assert torch.equal(whole(x), x**5 - x**12)
    assert torch.equal(whole.python(x), x**5 - x**12)
    assert "bw_power" not in whole.inspect("llvm", x)


@bw.op("bwpower::sums")
def sums(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] ** 4 + x[i] ** 0.5 + x[i] ** -2 + x[i] ** -0.5 + x[i] ** 1.5
    return out


def test_gradients_of_literal_powers():
    x = torch.tensor([0.5, 1.0, 2.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sums, (x,))
    assert torch.autograd.gradgradcheck(sums, (x,))
    (found,) = torch.autograd.grad(sums(x).sum(), x)
    (wanted,) = torch.autograd.grad((x**4 + x**0.5 + x**-2 + x**-0.5 + x**1.5).sum(), x)
    torch.testing.assert_close(found, wanted)
    assert "pow(" not in sums.inspect("backward ir", x)
