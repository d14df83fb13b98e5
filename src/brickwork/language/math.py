"""Which scalar functions may be written inside a loop, and the IR operator that each one is.

The keys are Python's names, with the module. Functions made of several operators (`divmod`, `math.log` with a base) and
those that turn floats into ints (`math.floor`, `round`, `int`) are in `frontend/calls.py`.
"""

from __future__ import annotations

_SAME = (
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
    "erfc gamma lgamma atan2 hypot fmod copysign isnan isinf isfinite pow"
)

FUNCTIONS: dict[str, str] = {
    **{f"math.{name}": name for name in _SAME.split()},
    "math.fabs": "abs",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "math.trunc": "trunc",
    "builtins.abs": "abs",
    "builtins.min": "minimum",
    "builtins.max": "maximum",
    "builtins.round": "round",
    "builtins.pow": "pow",
}
"""The IR operator of each function by its Python name."""
