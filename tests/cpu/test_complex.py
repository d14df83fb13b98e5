"""Complex elements in loops: as plain Python and torch have them, in op.python, the interpreter and compiled code."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

import cmath
import math
from typing import NamedTuple

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support.fourfold import agree, failure
from support.tensors import LAYOUTS

pytestmark = pytest.mark.usefixtures("quick")

COMPLEX = (torch.complex64, torch.complex128)
TWIDDLES = (1 + 0j, 0.5 - 1j, -2j)
MANY = tuple(complex(k, -k) for k in range(12))


def numbers(*shape: int, dtype: torch.dtype = torch.complex64, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


# ---------------------------------------------------------------- elements


def product(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(z)
    for i in range(z.shape[0]):
        out[i] = z[i] * w[i].conj() + 2j
    return out


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("size", [0, 1, 2, 7, 16, 17, 33, 100])
def test_elements_are_read_and_stored(dtype: torch.dtype, size: int) -> None:
    z, w = numbers(size, dtype=dtype), numbers(size, dtype=dtype, seed=1)
    operator = agree(product, z, w)
    torch.testing.assert_close(operator(z, w), z * w.conj() + 2j)


def transposed_product(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    n, m = z.shape
    out = torch.empty(m, n, dtype=z.dtype)
    for i in range(m):
        for j in range(n):
            out[i, j] = z[j, i] / (w[j, i] + 3)
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (0, 4), (33, 18)])
def test_layouts(layout: str, shape: tuple[int, int]) -> None:
    z, w = LAYOUTS[layout](numbers(*shape)), LAYOUTS["sliced"](numbers(*shape, seed=1))
    operator = bw.op("complexes::transposed_product")(transposed_product)
    torch.testing.assert_close(operator(z, w), (z / (w + 3)).T)
    torch.testing.assert_close(operator(z, z), (z / (z + 3)).T)


def test_lazy_conjugates_and_negatives() -> None:
    operator = bw.op("complexes::product")(product)
    z, w = numbers(9), numbers(9, seed=1)
    torch.testing.assert_close(operator(z.conj(), torch._neg_view(w)), z.conj() * -w.conj() + 2j)


def here_and_there(z: torch.Tensor, x: torch.Tensor, out: torch.Tensor, y: torch.Tensor) -> None:
    n = out.shape[0]
    for i in range(n):
        out[i] = z[n - 1 - i] * 2
        out[i] = complex(out[i].imag, out[i].real) + z[2 * i]
    for i in range(n):
        y[2 * i, 0] = x[2 * i, 1]
        y[2 * i, 1] = x[2 * i, 0]


def test_parts_are_stored_together_where_they_lie_so() -> None:
    x = torch.arange(80.0).reshape(2, 40).t()
    agree(here_and_there, numbers(40), x, numbers(19), torch.zeros(2, 40).t(), plain=False)


def gathered(z: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for i in bw.prange(z.shape[0]):
        out[at[i]] += z[i]


def test_elements_that_data_say_are_added_to() -> None:
    at = torch.arange(40).flip(0)
    out = numbers(40, seed=2)
    expected = out + numbers(40).flip(0)
    bw.op("complexes::gathered")(gathered)(numbers(40), at, out)
    torch.testing.assert_close(out, expected)


def doubled(z: torch.Tensor) -> None:
    for i in range(z.shape[0]):
        z[i] *= 2 + 1j


@pytest.mark.parametrize("layout", ["plain", "sliced"])
def test_elements_are_updated_in_place(layout: str) -> None:
    z = LAYOUTS[layout](numbers(21))
    expected = z * (2 + 1j)
    bw.op("complexes::doubled")(doubled)(z)
    torch.testing.assert_close(z, expected)
    conjugate = expected.clone().conj()
    bw.op("complexes::doubled")(doubled)(conjugate)
    torch.testing.assert_close(conjugate, expected.conj() * (2 + 1j))


def shifted(z: torch.Tensor, w: torch.Tensor) -> None:
    for i in range(z.shape[0] - 1):
        z[i + 1] = w[i] * 1j + z[i]


def test_overlapping_arguments_are_stored_into_one_after_the_other() -> None:
    whole = numbers(40)
    expected = whole.clone()
    for i in range(29):
        expected[i + 1] = expected[i + 10] * 1j + expected[i]
    bw.op("complexes::shifted")(shifted)(whole[:30], whole[10:])
    torch.testing.assert_close(whole, expected)


def swapped(z: torch.Tensor) -> None:
    for i in range(z.shape[0]):
        z[i] = complex(z[i].imag, z[i].real)


def test_both_parts_are_read_before_one_is_stored() -> None:
    z = numbers(35)
    agree(swapped, z)
    expected = torch.complex(z.imag.clone(), z.real.clone())
    bw.op("complexes::swapped")(swapped)(z)
    torch.testing.assert_close(z, expected)


def test_expanded_results_are_refused() -> None:
    with pytest.raises(RuntimeError, match="single memory location"):
        bw.op("complexes::doubled")(doubled)(numbers(1).expand(4))


def into(z: torch.Tensor) -> torch.Tensor:
    out = torch.empty(z.shape[0], 2, dtype=torch.complex64)
    for i in range(z.shape[0]):
        out[i, 0], out[i, 1] = z[i], z[i].real
    return out


def test_given_results() -> None:
    operator, z = bw.op("complexes::into")(into), numbers(5)
    buffer = torch.zeros(5, 2, dtype=torch.complex64)
    assert operator(z, out=buffer) is buffer
    torch.testing.assert_close(buffer, torch.stack([z, z.real + 0j], 1))
    with pytest.raises(CompileError, match="`out` has 2 dimensions of complex128, the result 2 of complex64"):
        operator(z, out=buffer.to(torch.complex128))
    with pytest.raises(ValueError, match=r"expected out of shape \[5, 2\], but it has shape \[5, 3\]"):
        operator(z, out=torch.zeros(5, 3, dtype=torch.complex64))


def filled(z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    a = torch.zeros(3, dtype=torch.complex128)
    b = torch.ones_like(z)
    c = torch.full((2, 2), 1 - 2j)
    d = z.new_full((2,), 0.5)
    for i in range(z.shape[0]):
        b[i] += z[i]
    return a, b, c, d


def test_new_tensors_are_filled() -> None:
    z = numbers(19)
    a, b, c, d = bw.op("complexes::filled")(filled)(z)
    torch.testing.assert_close(a, torch.zeros(3, dtype=torch.complex128))
    torch.testing.assert_close(b, z + 1)
    torch.testing.assert_close(c, torch.full((2, 2), 1 - 2j))
    torch.testing.assert_close(d, torch.full((2,), 0.5 + 0j, dtype=torch.complex64))


# ---------------------------------------------------------------- functions


def functions(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(z.shape[0], 34, dtype=z.dtype)
    for i in range(z.shape[0]):
        v, t = z[i], x[i]
        out[i, 0] = cmath.exp(v)
        out[i, 1] = torch.log(v)
        out[i, 2] = cmath.sqrt(v)
        out[i, 3] = torch.sin(v)
        out[i, 4] = cmath.cos(v)
        out[i, 5] = torch.tanh(v)
        out[i, 6] = torch.tan(v)
        out[i, 7] = v**3
        out[i, 8] = v**2.5
        out[i, 9] = v**-2
        out[i, 10] = 1 / v
        out[i, 11] = v / (v + 1j)
        out[i, 12] = abs(v)
        out[i, 13] = cmath.phase(v)
        out[i, 14] = torch.polar(t, 0.5)
        out[i, 15] = complex(t, 2)
        out[i, 16] = v.real * v.imag
        out[i, 17] = 1 if v == z[0] else 0
        out[i, 18] = v if v != 0 else t
        out[i, 19] = t**v if t > 0 else 0j
        out[i, 20] = torch.sgn(v)
        out[i, 21] = torch.sinh(v) + torch.cosh(v)
        out[i, 22] = -v + (+v)
        out[i, 23] = v * t + t * v - t + (3 - v) * 2
        out[i, 24] = cmath.sqrt(t)
        out[i, 25] = sum(z[j] * x[j] for j in range(3))
        out[i, 26] = math.prod(z[j] for j in range(3))
        out[i, 27] = torch.angle(v) + torch.abs(v) + v.abs()
        out[i, 28] = pow(v, 2) + t.conj()
        out[i, 29] = cmath.rect(t, t) if v.imag > 0 else cmath.exp(1j * t)
        out[i, 30] = cmath.log(v, 2) + torch.log2(v) + torch.log10(v)
        out[i, 31] = torch.square(v) + torch.reciprocal(v) + torch.rsqrt(v)
        out[i, 32] = v ** (1j + 1) + complex(v, 1) + complex(t, v)
        out[i, 33] = int(torch.isnan(v)) + int(torch.isfinite(v)) + int(bool(v))
    return out


def expected_functions(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    n, real = z.shape[0], x + 0j
    columns = [z.exp(), z.log(), z.sqrt(), z.sin(), z.cos(), z.tanh(), z.tan(), z**3, z**2.5, z**-2, 1 / z]
    columns += [z / (z + 1j), z.abs(), z.angle(), torch.polar(x, torch.full_like(x, 0.5))]
    columns += [torch.complex(x, torch.full_like(x, 2)), z.real * z.imag, z == z[0], torch.where(z != 0, z, real)]
    columns += [torch.where(x > 0, real**z, 0j), z.sgn(), z.sinh() + z.cosh(), 0 * z, 2 * z * x - x + (3 - z) * 2]
    columns += [real.sqrt(), (z[:3] * x[:3]).sum().expand(n), z[:3].prod().expand(n), z.angle() + 2 * z.abs()]
    columns += [z**2 + x, torch.where(z.imag > 0, x * (1j * x).exp(), (1j * x).exp())]
    columns += [z.log() / math.log(2) * 2 + z.log10(), z**2 + 1 / z + z.rsqrt(), z ** (1j + 1) + z + 1j + x + 1j * z]
    columns += [z.isnan().int() + z.isfinite().int() + (z != 0).int()]
    return torch.stack([column.to(z.dtype) for column in columns], 1)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_functions(dtype: torch.dtype) -> None:
    z = numbers(23, dtype=dtype)
    x = torch.randn(23, dtype=z.real.dtype, generator=torch.Generator().manual_seed(2))
    z[1], z[2], z[3], z[4] = 2, -4, 2j, 1 - 0.0j
    operator = bw.op("complexes::functions")(functions)
    tolerance = 1e-4 if dtype is torch.complex64 else 1e-11
    close = {"rtol": tolerance, "atol": tolerance, "equal_nan": True}
    torch.testing.assert_close(operator(z, x), expected_functions(z, x), **close)
    torch.testing.assert_close(operator(z, x), operator.python(z, x), **close)


def quotient(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(z)
    for i in range(z.shape[0]):
        out[i] = z[i] / w[i]
    return out


def test_quotients_do_not_overflow_before_their_results() -> None:
    z = torch.tensor([1e38 + 1e38j, 1e-38j, 3e30, 1 + 1j])
    w = torch.tensor([1e38 - 1e37j, 2e-38 + 1e-39j, 1e30j, 1e20 + 1e25j])
    exact = z.to(torch.complex128) / w.to(torch.complex128)
    torch.testing.assert_close(bw.op("complexes::quotient")(quotient)(z, w), exact.to(torch.complex64))


# ---------------------------------------------------------------- variables, lists, helpers


class Pair(NamedTuple):
    first: complex
    second: complex


def horner(v: complex, w: complex = 1j) -> complex:
    total = 0
    for k in range(3):
        if abs(v) > 100:
            return 0.0
        total += v**k * w
    return total


def variables(z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out = torch.zeros_like(z)
    count = 0
    for i in range(z.shape[0]):
        if x[i] > 0:
            v = z[i]
        else:
            v = x[i]
        if z[i] != 0 and v:
            count += 1
        pair = Pair(v, z[i] * 2)
        out[i] = horner(v) * pair.second if x[i] > -1 else 0
        out[i] -= TWIDDLES[i % 3] + MANY[i % 12]
        low, high = sorted((x[i], 0.0))
        out[i] += complex(low, high)
    return out, count


def test_variables_are_complex_where_they_may_be() -> None:
    agree(variables, numbers(24), torch.randn(24, generator=torch.Generator().manual_seed(1)), plain=False)


def lists(z: torch.Tensor) -> torch.Tensor:
    n = z.shape[0]
    out = z.new_ones(n)
    for i in range(n):
        sums = [0.0] * 4
        for k in range(n):
            sums[k % 4] += z[k] * (i + 1)
        best = sums[0]
        for v in sums:
            if abs(v) > abs(best):
                best = v
        waiting = []
        for k in range(i + 1):
            waiting.append(z[k])
        while waiting:
            best = best * 0.5 + waiting.pop()
        out[i] = best
    return out


def test_lists_hold_complex_numbers() -> None:
    agree(lists, numbers(9))


def rows(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(z)
    for i in range(z.shape[0]):
        out[i] = 2j * z[i] + w
        out[i, 0] = z[i, :].sum()
        out[i, 1:] -= w[1:]
    return out


def test_rows_of_complex_elements() -> None:
    agree(rows, numbers(3, 5), numbers(5, seed=1))


def total(z: torch.Tensor) -> torch.Tensor:
    s = 0.0
    for v in z:
        s += v * v.conjugate()
    return s


@pytest.mark.parametrize("size", [0, 1, 1000, 20001])
def test_sums_of_many(size: int) -> None:
    z = numbers(size, dtype=torch.complex128)
    operator = bw.op("complexes::total")(total)
    torch.testing.assert_close(operator(z), (z * z.conj()).sum())
    assert torch.equal(operator(z), operator(z))


def scattered(z: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(4, dtype=z.dtype)
    for i in range(z.shape[0]):
        out[places[i]] += z[i] * 1j
    return out


def test_scattered_sums() -> None:
    z, places = numbers(50), torch.arange(50) * 7 % 4
    expected = torch.zeros(4, dtype=z.dtype).index_add_(0, places, z * 1j)
    torch.testing.assert_close(bw.op("complexes::scattered")(scattered)(z, places), expected)
    with pytest.raises(IndexError):
        bw.op("complexes::scattered")(scattered)(z, places + 1)


def masked(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(z)
    for i in range(z.shape[0]):
        if x[i] > 0:
            out[i] = z[i] * 2j
    return out


@pytest.mark.parametrize("size", [5, 16, 37])
def test_lanes_under_conditions_touch_their_own_elements_alone(size: int) -> None:
    z, x = numbers(size), torch.randn(size, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(
        bw.op("complexes::masked")(masked)(z, x), torch.where(x > 0, z * 2j, torch.zeros_like(z))
    )


def powers(z: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(z.shape[0], 6, dtype=z.dtype)
    for i in range(z.shape[0]):
        w = z[i]
        for k in range(6):
            out[i, k] = w**k
    return out


def test_powers_with_variable_exponents() -> None:
    agree(powers, numbers(8, dtype=torch.complex128))


def indexed_twice(z: torch.Tensor, i: int) -> torch.Tensor:
    out = torch.empty(1, dtype=z.dtype)
    for k in range(1):
        out[k] = z[i]
    return out


def test_indices_are_checked() -> None:
    kind, text = failure(indexed_twice, numbers(4), 4)
    assert kind is IndexError
    assert "size 4 (shape (4,))" in text


# ---------------------------------------------------------------- parameters


@bw.op("complexes::scaled")
def scaled(z: torch.Tensor, c: complex, d: complex = 2j) -> torch.Tensor:
    out = torch.empty_like(z)
    for i in range(z.shape[0]):
        out[i] = z[i] * c + d * c.real
    return out


def test_complex_parameters_are_given_by_their_parts() -> None:
    z = numbers(6)
    assert "float c_real, float c_imag, float d_real=0., float d_imag=2." in str(
        torch.ops.complexes.scaled.default._schema
    )
    for c in (1 - 2j, 2, 0.5):
        torch.testing.assert_close(scaled(z, c), z * c + 2j * c.real)
        torch.testing.assert_close(scaled.python(z, c), z * c + 2j * c.real)
    torch.testing.assert_close(scaled(z, c=1j, d=3), z * 1j)
    with pytest.raises(TypeError, match="argument 'c' must be complex, not str"):
        scaled(z, "1")


# ---------------------------------------------------------------- refusals


def ordered(z: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    for i in range(z.shape[0]):
        if z[i] < 1:
            out[0] += 1
    return out


def as_index(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    for i in range(z.shape[0]):
        out[0] += x[z[i]]
    return out


def into_real(z: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    for i in range(z.shape[0]):
        out[0] = z[i]
    return out


def floored(z: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(z)
    for i in range(z.shape[0]):
        out[i] = z[i] // 2
    return out


def of_math(z: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(z)
    for i in range(z.shape[0]):
        out[i] = math.exp(z[i])
    return out


def largest(z: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(z)
    for i in range(z.shape[0]):
        out[i] = max(z[i], 1)
    return out


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (ordered, "complex numbers are not ordered"),
        (into_real, "a real number is needed here, not a complex one"),
        (floored, "`//` does not take a complex number"),
        (of_math, "`math.exp` does not take a complex number"),
        (largest, "`max` does not take a complex number"),
    ],
)
def test_what_complex_numbers_have_not_is_refused_at_its_line(function, words: str) -> None:
    operator = bw.op(f"complexes::{function.__name__}")(function)
    with pytest.raises(CompileError, match=words):
        operator(numbers(3))
    with pytest.raises(TypeError):
        operator.python(numbers(3))


def test_complex_indices_are_refused() -> None:
    with pytest.raises(CompileError, match="a real number is needed here"):
        bw.op("complexes::as_index")(as_index)(numbers(3), torch.ones(3))


# ---------------------------------------------------------------- machine code


def test_neighbouring_elements_are_accessed_at_once() -> None:
    """Sixteen parts are loaded and stored together, and none is gathered or scattered."""
    operator, z = bw.op("complexes::masked")(masked), numbers(64)
    for text in (operator.inspect("llvm", z, torch.ones(64)),):
        assert "shufflevector" in text
        assert "@llvm.masked.gather.v" not in text.replace("declare", "")
        assert "call void @llvm.masked.scatter" not in text
