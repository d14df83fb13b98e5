"""The functions of `math` and torch's pointwise ones on elements: beside Python's and torch's own results."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import brickwork as bw
from support.fourfold import agree, failure

pytestmark = pytest.mark.usefixtures("quick")

UNARY = (
    "sin cos tan arcsin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt erf erfc "
    "lgamma abs floor ceil trunc fix round isnan isinf isfinite sign sgn signbit square reciprocal rsqrt sigmoid logit "
    "relu frac neg positive deg2rad rad2deg sinc nan_to_num digamma erfinv logical_not special.expit special.erf"
).split()
BINARY = (
    "atan2 hypot copysign pow maximum minimum fmax fmin floor_divide div add sub mul fmod remainder heaviside xlogy "
    "logaddexp nextafter logical_and logical_or logical_xor eq ne lt le gt ge isclose"
).split()
FUNCTIONAL = (
    "relu6 leaky_relu elu silu mish softplus softsign hardtanh hardsigmoid hardswish gelu logsigmoid tanh sigmoid"
).split()
OTHERS = [
    "torch.clamp(a, -1.0, 1)",
    "torch.clamp(a, max=b)",
    "torch.where(a > b, a, 2)",
    "torch.lerp(a, b, 0.7)",
    "torch.addcmul(a, a, b, value=2)",
    "torch.addcdiv(a, a, b)",
    "F.gelu(a, approximate='tanh')",
    "torch.div(a, b, rounding_mode='floor')",
    "torch.frexp(a)[0]",
    "torch.frexp(a)[1]",
    "torch.logit(a, 0.1)",
    "torch.add(a, b, alpha=3)",
]
CALLS = [
    *(f"torch.{name}(a)" for name in UNARY),
    *(f"torch.{name}(a, b)" for name in BINARY),
    *(f"F.{name}(a)" for name in FUNCTIONAL),
    *OTHERS,
]
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 2.0, 3.0, -2.0, 20.0, -30.0, -3.5, 2.5]


def written(name: str, calls: Sequence[str], dtype: str = "x.dtype") -> Callable[..., Any]:
    """Return a function that stores each call's value on elements a and b into a column."""
    lines = "".join(f"        out[i, {place}] = {call}\n" for place, call in enumerate(calls))
    source = (
        "import math, torch\nimport torch.nn.functional as F\n"
        f"def {name}(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:\n"
        f"    out = torch.zeros((x.shape[0], {len(calls)}), dtype={dtype})\n"
        f"    for i in range(x.shape[0]):\n        a = x[i]\n        b = y[i]\n{lines}    return out\n"
    )
    linecache.cache[f"<{name}>"] = (len(source), None, source.splitlines(keepends=True), f"<{name}>")
    space: dict[str, Any] = {}
    exec(compile(source, f"<{name}>", "exec"), space)
    return space[name]


def pairs(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    special = torch.tensor(SPECIAL, dtype=dtype)
    more = 3 * torch.randn(2, 100, dtype=dtype, generator=generator)
    count = len(SPECIAL)
    return torch.cat([special.repeat_interleave(count), more[0]]), torch.cat([special.repeat(count), more[1]])


@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torchs_functions_of_elements_give_what_torch_gives(dtype: torch.dtype, part: int) -> None:
    calls = CALLS[part::5]
    operator = bw.op(f"functions::some_{part}")(written(f"some_{part}", calls))
    a, b = pairs(dtype)
    found, python = operator(a, b), operator.python(a[::5], b[::5])
    size = torch.finfo(dtype).eps
    for place, call in enumerate(calls):
        wide = call in {"F.gelu(a)", "torch.digamma(a)"}
        given = {"a": a.double() if wide else a, "b": b, "torch": torch, "F": F}
        expected = eval(call, given).to(dtype)
        absolute = 4 * size if wide or "lerp" in call else 1e-30
        assert torch.allclose(found[:, place], expected, rtol=10 * size, atol=absolute, equal_nan=True), call
        wanted = found[::5, place]
        assert torch.allclose(python[:, place], wanted, rtol=100 * size, atol=100 * size, equal_nan=True), call


INTEGERS = [
    "math.gcd(a, b)",
    "math.gcd(a, b, 12)",
    "math.lcm(a, b)",
    "math.factorial(abs(a) % 21)",
    "math.comb(abs(a), abs(b))",
    "math.perm(abs(a) % 12, abs(b) % 9)",
    "math.perm(abs(b) % 12)",
    "math.isqrt(abs(a))",
    "math.isqrt(9223372036854775807 - abs(a))",
    "a.bit_length() + b.bit_count()",
    "pow(a, abs(b), 1000)",
    "pow(a, 2)",
    "sum(divmod(a, 7))",
    "torch.bitwise_and(a, b) + torch.bitwise_or(a, b) + torch.bitwise_xor(a, b) + torch.bitwise_not(a)",
    "torch.bitwise_left_shift(a, 3) - torch.bitwise_right_shift(a, 2)",
    "torch.fmod(a, 5) + torch.remainder(a, 5)",
    "torch.sign(a) + torch.clamp(b, 2, 9)",
]


def in_python(calls: Sequence[str], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the calls' values by Python's own functions, and torch's on tensors."""
    rows: list[list[Any]] = []
    for at in range(a.shape[0]):
        tensors = {"a": a[at], "b": b[at], "torch": torch}
        numbers = {"a": a[at].item(), "b": b[at].item(), "math": math}
        rows.append([eval(call, dict(tensors if "torch" in call else numbers)) for call in calls])
    dtype = torch.float64 if a.is_floating_point() else torch.int64
    return torch.tensor(rows, dtype=dtype)


def test_functions_of_integers() -> None:
    a, b = torch.tensor([0, 1, 7, 12, 30, -5, 33, 61, 18]), torch.tensor([3, 0, 2, -8, 15, 5, 16, 1, 6])
    operator = agree(written("integers", INTEGERS), a, b, plain=False)
    assert torch.equal(operator(a, b), in_python(INTEGERS, a, b))


FLOATS = [
    "math.isclose(a, b)",
    "math.isclose(a, a + 1e-9, rel_tol=1e-8) + 2 * math.isclose(1.0, a, abs_tol=3)",
    "math.remainder(a, b)",
    "math.modf(a)[0] + 3 * math.modf(a)[1]",
    "math.frexp(a)[0] + math.frexp(a)[1]",
    "math.ldexp(a, -1070) + math.ldexp(b, 900)",
    "math.ulp(a)",
    "math.nextafter(a, b)",
    "math.hypot(a, b, 2.0) + math.hypot(a)",
    "math.dist((a, b), (1.0, -2.0))",
    "math.log(abs(b) + 2, 3) + math.degrees(a) + math.radians(b)",
    "math.floor(a) + math.ceil(b) + math.trunc(a) + round(b)",
    "math.gamma(abs(a) + 0.5) + math.lgamma(abs(b) + 1) + math.cbrt(a) + math.exp2(b) + math.pi + math.tau + math.e",
    "math.fabs(a) + math.copysign(a, b) + math.pow(2.0, b / 9)",
    "math.prod((a, b, 2.0))",
]


def test_functions_of_floats() -> None:
    a = torch.tensor([0.3, -7.5, 2.0, 1e-310, -1e15, 0.5, 9.5, -3.25], dtype=torch.float64)
    b = torch.tensor([1.5, 2.5, -0.7, 3.0, 4.0, -2.0, 3.0, 1.25], dtype=torch.float64)
    operator = agree(written("floats", [item for item in FLOATS if "ldexp" not in item]), a, b, plain=False)
    del operator
    found = bw.op("functions::floats")(written("exact_floats", FLOATS))(a, b)
    expected = in_python([item.replace("math.gamma(abs(a) + 0.5)", "0.0") for item in FLOATS], a, b).double()
    for place, call in enumerate(FLOATS):
        if "gamma" not in call and "1e-9" not in call:
            torch.testing.assert_close(found[:, place], expected[:, place], rtol=1e-14, atol=0, msg=call)


def negative_factorial(x: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        x[i] = math.factorial(x[i])


def test_what_has_no_value_is_a_value_error() -> None:
    kind, message = failure(negative_factorial, torch.tensor([3, -1]))
    assert kind is ValueError
    assert "factorial() not defined for negative values" in message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inverse_hyperbolic_functions_of_large_numbers(dtype: torch.dtype) -> None:
    def large(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty((x.shape[0], 2), dtype=x.dtype)
        for i in range(x.shape[0]):
            out[i, 0] = math.asinh(x[i])
            out[i, 1] = torch.acosh(x[i])
        return out

    most = torch.finfo(dtype).max
    near = [1e11, 9.9e11, 1.1e12, 1e15, 3e19, 1e30, most, math.inf, math.nan, 0.0, -0.0, 1.0, 2.0, 0.5, 1e-30]
    values = [*near, *(-item for item in near), *([1e99, 1.1e100, 1e200] if dtype is torch.float64 else [])]
    x = torch.tensor(values, dtype=dtype)
    operator = bw.op(f"functions::inverse_hyperbolic_{str(dtype)[6:]}")(large)
    expected = torch.stack([torch.asinh(x.double()), torch.acosh(x.double())], 1).to(dtype)
    found = operator(x)
    torch.testing.assert_close(found, expected, rtol=3 * torch.finfo(dtype).eps, atol=0, equal_nan=True)
    torch.testing.assert_close(found.signbit()[:, 0][~x.isnan()], x.signbit()[~x.isnan()])
    torch.testing.assert_close(operator(x[5:6]), found[5:6], equal_nan=True, rtol=0, atol=0)


def test_functions_that_are_refused_say_what_to_write() -> None:
    def in_range(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            x[i] = 1.0 if i in range(2, 5) else 0.0

    def exact_sum(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            x[i] = math.fsum((x[i], 1.0))

    for function, advice in ((in_range, "low <= i < high"), (exact_sum, "write `sum`")):
        with pytest.raises(bw.CompileError, match=advice):
            bw.op(f"functions::{function.__name__}")(function)(torch.ones(3))


def powers(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = x[i, k] ** 1.7 if x[i, k] > 0.25 else math.log10(x[i, k] + 3.0)
    return out


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_short_rows_call_functions_for_lanes_that_take_part(dtype: torch.dtype) -> None:
    operator = bw.op(f"functions::powers_{str(dtype)[6:]}")(powers)
    x = torch.linspace(-1.0, 3.0, 3 * 67, dtype=dtype)[torch.randperm(3 * 67)].reshape(3, 67)
    wide = operator(x)
    torch.testing.assert_close(wide, torch.where(x > 0.25, x.clamp(min=0.0) ** 1.7, torch.log10(x + 3.0)))
    for length in (1, 4, 8, 9, 15, 16, 17, 24, 31, 33):
        assert torch.equal(operator(x[:, :length].contiguous()), wide[:, :length])
    code = operator.inspect("llvm", x)
    assert "Sleef_pow" not in code or "taking" in code


def test_powers_of_two_are_exact() -> None:
    def scaled(x: torch.Tensor, least: int) -> torch.Tensor:
        out = torch.empty(x.shape[0], dtype=torch.float64)
        for i in range(x.shape[0]):
            out[i] = x[i] * 2.0 ** (i + least)
        return out

    operator = bw.op("functions::scaled")(scaled)
    x = torch.ones(2098, dtype=torch.float64)
    assert torch.equal(operator(x, -1074), scaled(x, -1074))
    assert "exp2" in operator.inspect("ir", x, -1074)
