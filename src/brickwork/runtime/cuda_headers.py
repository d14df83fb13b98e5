"""Headers that kernels include by habit and NVRTC does not bring: C's library, as far as device code uses it.

`printf`, `assert` and the mathematical functions are known to NVRTC anyway, so their headers are all but empty.
`nv/target`, which NVIDIA's own headers include (`curand_kernel.h`), belongs to a package that torch does not bring.
"""

from __future__ import annotations

_INTEGERS = """
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef unsigned long long uint64_t; typedef long long intptr_t; typedef unsigned long long uintptr_t;
"""
_STANDARD = """
namespace std {
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::intptr_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::uintptr_t;
}
"""
_MATH = """
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LN2 0.693147180559945309417
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_1_PI 0.318309886183790671538
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.707106781186547524401
"""
_FUNCTIONS = (
    *("sqrt", "cbrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "hypot", "fma", "fmod"),
    *("abs", "fabs", "floor", "ceil", "round", "trunc", "rint", "nearbyint", "remainder", "fmin", "fmax", "copysign"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "lgamma", "tgamma", "ldexp", "isnan", "isinf", "isfinite", "signbit"),
)
"""Functions of CUDA's that nvcc also calls by their names in `std`."""
_LEAST = """
namespace std {
template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
}
"""
_FLOATS = """
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
"""
_LIMITS = """
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807ll
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX 18446744073709551615ull
"""
_ARCHITECTURES = (35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)
_TARGET = """
#define NV_IS_DEVICE 1
#define NV_IS_HOST 0
#define NV_ANY_TARGET 1
#define NV_NO_TARGET 0
#define BRICKWORK_BARE(...) __VA_ARGS__
#define BRICKWORK_TAKE_1(yes, no) BRICKWORK_BARE yes
#define BRICKWORK_TAKE_0(yes, no) BRICKWORK_BARE no
#define BRICKWORK_TAKE_(known, yes, no) BRICKWORK_TAKE_##known(yes, no)
#define BRICKWORK_TAKE(known, yes, no) BRICKWORK_TAKE_(known, yes, no)
#define NV_IF_ELSE_TARGET(known, yes, no) BRICKWORK_TAKE(known, yes, no)
#define NV_IF_TARGET(known, yes) BRICKWORK_TAKE(known, yes, ())
"""


def _target() -> str:
    """Return `nv/target`: which architecture code is made for, and the choice between two pieces of code by it."""
    kinds = {"PROVIDES": ">=", "IS_EXACTLY": "=="}
    return _TARGET + "".join(
        f"#if __CUDA_ARCH__ {relation} {10 * each}\n#define NV_{kind}_SM_{each} 1\n"
        f"#else\n#define NV_{kind}_SM_{each} 0\n#endif\n"
        for kind, relation in kinds.items()
        for each in _ARCHITECTURES
    )


def _once(text: str) -> str:
    return f"#pragma once\n{text}"


HEADERS: dict[str, str] = {
    **dict.fromkeys(("assert.h", "cassert", "stdio.h", "cstdio", "stdlib.h", "cstdlib"), _once("")),
    **dict.fromkeys(("stddef.h", "cstddef", "string.h", "cstring"), _once("")),
    "stdint.h": _once(_INTEGERS),
    "cstdint": _once(f"#include <stdint.h>\n{_STANDARD}"),
    "math.h": _once(_MATH),
    "cmath": _once(f"#include <math.h>\nnamespace std {{ {' '.join(f'using ::{name};' for name in _FUNCTIONS)} }}"),
    "algorithm": _once(_LEAST),
    **dict.fromkeys(("float.h", "cfloat"), _once(_FLOATS)),
    **dict.fromkeys(("limits.h", "climits"), _once(_LIMITS)),
}
"""The text of each header by name."""
TARGET = {"nv/target": _once(_target())}
"""The one that stands in where NVIDIA's is not to be found."""
