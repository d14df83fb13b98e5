"""The suite: small operators as users write them, each with a maker of arguments for a size.

Tests run all of them in every way there is: as Python, in the interpreter, compiled.
"""

# Elements are read as numbers, which torch's annotations do not know.
# pyright: reportArgumentType=false, reportCallIssue=false, reportReturnType=false, reportUnknownVariableType=false

from __future__ import annotations

import math

import torch

from brickwork.language.loops import indices, ndrange
from support.causal import timex
from support.kernels_grown import SUITE
from support.suite import Case, case, floats, integers

__all__ = ["SUITE", "Case"]


# ---------------------------------------------------------------- elementwise


@case(lambda n: (floats(n), floats(n)), exact=True)
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


@case(lambda n: (floats(n, n + 1), 1.5))
def affine(x: torch.Tensor, scale: float) -> torch.Tensor:
    out = torch.empty_like(x)
    for i, j in ndrange(x.shape[0], x.shape[1]):
        out[i, j] = scale * x[i, j] - 0.25
    return out


@case(lambda n: (floats(n, 3),))
def transcendental(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for at in indices(x):
        v = x[at]
        out[at] = math.sin(v) * math.exp(-abs(v)) + math.sqrt(math.fabs(v)) - math.tanh(v) / math.log1p(v * v + 1)
    return out


@case(lambda n: (floats(n, dtype=torch.float64),))
def more_functions(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        v = x[i]
        out[i] = math.atan2(v, 2.0) + math.hypot(v, 1.0) + math.erf(v) + math.expm1(v) + math.cbrt(v) + math.cosh(v)
    return out


@case(lambda n: (floats(n), floats(n)), exact=True)
def minimum_maximum(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    low, high = torch.empty_like(x), torch.empty_like(x)
    for i in range(x.numel()):
        a = x[i] if i % 3 else math.nan
        b = y[i] if i % 5 else math.nan
        low[i] = min(a, b)
        high[i] = max(a, b, 0.5)
    return low, high


@case(lambda n: (floats(n),), exact=True)
def clamp(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        if x[i] < -1:
            out[i] = -1
        elif x[i] > 1:
            out[i] = 1.0
        else:
            out[i] = x[i]
    return out


@case(lambda n: (floats(n),), exact=True)
def conditional_expression(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i - 1] if i > 0 and x[i - 1] > x[i] else (x[i] if 0 <= x[i] < 1 else -x[i])
    return out


@case(lambda n: (floats(n),), exact=True)
def rounding(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 4, dtype=torch.int64)
    for i in range(x.shape[0]):
        v = x[i] * 3
        out[i, 0] = math.floor(v)
        out[i, 1] = math.ceil(v)
        out[i, 2] = round(v)
        out[i, 3] = int(v)
    return out


@case(lambda n: (torch.tensor(1.5), floats(n)), exact=True)
def zero_dimensional(s: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * s[()]
    return out


@case(lambda n: (floats(n), floats(n)), exact=True)
def domain_errors(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        zero = x[i] - x[i]
        out[i] = math.sqrt(x[i]) if i % 2 else y[i] / zero
    return out


# ---------------------------------------------------------------- integers and types


@case(lambda n: (integers(-50, 50, n), integers(1, 9, n)), exact=True)
def integer_division(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 5, dtype=torch.int64)
    for i in range(x.shape[0]):
        d = y[i] if i % 2 else -y[i]
        out[i, 0] = x[i] // d
        out[i, 1] = x[i] % d
        q, r = divmod(x[i], 7)
        out[i, 2] = q * 100 + r
        out[i, 3] = x[i] // -3
        out[i, 4] = x[i] ** 3
    return out


@case(lambda n: (floats(n), floats(n)), exact=True)
def float_division(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 3)
    for i in range(x.shape[0]):
        out[i, 0] = x[i] // y[i]
        out[i, 1] = x[i] % y[i]
        out[i, 2] = x[i] / y[i]
    return out


@case(lambda n: (integers(-1000, 1000, n), integers(0, 70, n)), exact=True)
def bits(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 5, dtype=torch.int64)
    for i in range(x.shape[0]):
        out[i, 0] = x[i] << y[i]
        out[i, 1] = x[i] >> y[i]
        out[i, 2] = (x[i] & 255) | 7
        out[i, 3] = x[i] ^ y[i]
        out[i, 4] = ~x[i]
    return out


@case(lambda n: (integers(-(2**62), 2**62, n),), exact=True)
def wrapping(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v = x[i] * 6364136223846793005 + 1442695040888963407
        out[i] = abs(v) * v
    return out


@case(lambda n: (integers(-300, 300, n, dtype=torch.int16), integers(0, 255, n, dtype=torch.uint8)), exact=True)
def narrow_integers(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a = torch.empty(x.shape[0], dtype=torch.int8)
    b = torch.empty(x.shape[0], dtype=torch.uint8)
    c = torch.empty(x.shape[0], dtype=torch.int32)
    for i in range(x.shape[0]):
        a[i] = x[i] + y[i]
        b[i] = x[i] * 2
        c[i] = x[i] * y[i]
    return a, b, c


@case(lambda n: (integers(0, 2**31, n).to(torch.uint32), integers(0, 60000, n).to(torch.uint16)), exact=True)
def unsigned_integers(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.uint32)
    for i in range(x.shape[0]):
        out[i] = x[i] * 3 - y[i]
    return out


@case(lambda n: (integers(0, 2**62, n).to(torch.uint64),), exact=True)
def unsigned_long(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = (x[i] * 5 ^ x[i] >> 7) % 1000003
    return out


@case(lambda n: (integers(0, 2, n).bool(), integers(0, 2, n, dtype=torch.bool)), exact=True)
def booleans(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, count = torch.empty_like(x), torch.zeros(1, dtype=torch.int64)
    for i in range(x.shape[0]):
        out[i] = (x[i] and not y[i]) or (x[i] ^ y[i])
        count[0] += x[i]
    return out, count


@case(lambda n: (floats(n, dtype=torch.float16), floats(n, dtype=torch.bfloat16)), exact=True)
def half_precision(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = torch.empty_like(x), torch.empty_like(y)
    for i in range(x.shape[0]):
        a[i] = x[i] * 1.5
        b[i] = y[i] + x[i]
    return a, b


@case(
    lambda n: (integers(-9, 9, n, dtype=torch.int32), floats(n), floats(n, dtype=torch.float64)), computed=torch.float32
)
def mixed(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.float64)
    for i in range(x.shape[0]):
        out[i] = x[i] / 4 + y[i] * x[i] + z[i] * 0.1 + i
    return out


@case(lambda n: (floats(n) * 1e10,), exact=True)
def saturating(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.int64)
    for i in range(x.shape[0]):
        v = x[i] * 1e10 if i % 3 else math.nan * x[i]
        out[i] = int(v)
    return out


# ---------------------------------------------------------------- reductions and scans


@case(lambda n: (floats(n),))
def total(x: torch.Tensor) -> torch.Tensor:
    s = 0
    for i in range(x.shape[0]):
        s += x[i]
    return s


@case(lambda n: (floats(n, 5),))
def row_sums(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * x[i, j]
        out[i] = s
    return out


@case(lambda n: (integers(-99, 99, n, 3),), exact=True)
def column_sums(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[1], dtype=torch.int64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j] += x[i, j]
    return out


@case(lambda n: (integers(-99, 99, n),), exact=True)
def largest(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    best, place = -1000, -1
    for i in range(x.shape[0]):
        if x[i] > best:
            best = x[i]
            place = i
    return best, place


@case(lambda n: (floats(n), floats(n)))
def dot(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * y[i]
    return s


@case(lambda n: (integers(-5, 5, n),), exact=True)
def running_sum(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    s = 0
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s
    return out


@case(lambda n: (floats(n, 4),))
def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = -math.inf
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - m)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - m) / s
    return out


@case(lambda n: (floats(n, 3), floats(3, n)))
def matrix_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_zeros(a.shape[0], b.shape[1])
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]
    return out


# ---------------------------------------------------------------- index maps


case(lambda n: (floats(2, n), floats(2, 2, n), 0.1))(timex)


@case(lambda n: (floats(n, n),))
def stencil(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            out[i, j] = 0.25 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
    return out


@case(lambda n: (floats(n), integers(-n, n, 2 * n) if n else integers(0, 1, 0)), exact=True)
def gather(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(index.shape[0])
    for i in range(index.shape[0]):
        out[i] = x[index[i]]
    return out


@case(lambda n: (integers(0, 4, n, dtype=torch.int32),), exact=True)
def histogram(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(4, dtype=torch.int64)
    for i in range(x.shape[0]):
        out[x[i]] += 1
    return out


@case(lambda n: (floats(n),), exact=True)
def reverse(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0] - 1, -1, -1):
        out[i] = x[-1 - i]
    return out


@case(lambda n: (floats(3 * n),), exact=True)
def strided(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(1, x.shape[0], 3):
        out[i] = x[i] + 1
        out[i - 1] = 2 * x[i + 1]
    return out


@case(lambda n: (floats(n, n),), exact=True)
def triangle(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[i, j] = x[j, i]
    return out


@case(lambda n: (integers(0, 99, 2, 3, dtype=torch.uint8), n, n + 2, 1, (3, 0), (1, 2)), exact=True)
def brick(
    tile: torch.Tensor, height: int, width: int, origin: int, across: tuple[int, int], up: tuple[int, int]
) -> torch.Tensor:
    rows, columns = tile.shape
    out = tile.new_empty(height, width)
    for y in range(height):
        for x in range(width):
            v = (height - 1 - y) // rows
            u = (x - origin - v * up[0]) // columns
            out[y, x] = tile[rows - 1 - (height - 1 - y - v * up[1]) % rows, (x - origin - v * up[0] - u * across[0])]
    return out


@case(lambda n: (floats(n, 3),), exact=True)
def rows_as_views(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        row = x[i]
        for j in range(3):
            out[i][j] = row[2 - j]
    return out
