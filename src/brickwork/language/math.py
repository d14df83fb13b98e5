"""Which scalar functions may be written inside a loop: the IR operator, or the formula, that each one is.

The keys are Python's and torch's names, with the module; torch's submodules are left out. What turns floats into ints
(`math.floor`, `round`, `int`) and `math.log` with a base are in `frontend/calls.py`.
"""

from __future__ import annotations

import types
from collections.abc import Iterator

from brickwork.language import complex_numbers, formulas, pointwise, sequences

_SAME = (
    "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
    "erfc gamma lgamma atan2 hypot fmod copysign nextafter isnan isinf isfinite pow"
)
_TORCH = (
    "sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc "
    "lgamma atan2 hypot copysign nextafter isnan isinf isfinite pow abs floor ceil trunc round"
)
_TORCH_ALIASES = {
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "absolute": "abs",
    "fix": "trunc",
    "special_gammaln": "lgamma",
    "special_round": "round",
    **{f"special_{name}": name for name in ("erf", "erfc", "exp2", "expm1", "log1p")},
}

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
    **{f"torch.{name}": name for name in _TORCH.split()},
    **{f"torch.{name}": operator for name, operator in _TORCH_ALIASES.items()},
}
"""The IR operator of each function by its name."""

_MATH_FORMULAS = "gcd lcm factorial comb perm isqrt isclose remainder modf frexp ldexp ulp dist sumprod".split()
_TORCH_FORMULAS = (
    "sign signbit square reciprocal rsqrt sigmoid logit relu relu6 leaky_relu elu silu mish softplus softsign hardtanh "
    "hardsigmoid hardswish gelu clamp where maximum minimum fmax fmin floor_divide div add subtract multiply negative "
    "positive frac lerp addcmul addcdiv heaviside xlogy logaddexp logaddexp2 deg2rad rad2deg sinc nan_to_num digamma "
    "erfinv bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift "
    "bitwise_right_shift logical_and logical_or logical_xor logical_not eq ne lt le gt ge"
).split()
_FORMULA_ALIASES = {
    "sgn": "sign",
    "clip": "clamp",
    "neg": "negative",
    "sub": "subtract",
    "mul": "multiply",
    "divide": "div",
    "true_divide": "div",
    "fmod": "torch_fmod",
    "remainder": "torch_remainder",
    "isclose": "torch_isclose",
    "log_sigmoid": "logsigmoid",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "special_expit": "sigmoid",
    "special_psi": "digamma",
    **{f"special_{name}": name for name in ("logit", "xlogy", "sinc", "digamma", "erfinv")},
}


_SEQUENCES = {
    "bisect": "bisect_left bisect_right insort_left insort_right",
    "functools": "reduce",
    "itertools": "accumulate",
    "heapq": "heappush heappop heapreplace heappushpop heapify",
}


def _formulas() -> Iterator[tuple[str, types.FunctionType]]:
    for name in _MATH_FORMULAS:
        yield f"math.{name}", getattr(formulas, name)
    for module, names in _SEQUENCES.items():
        for name in names.split():
            yield f"{module}.{name}", getattr(sequences, name)
    for name in _TORCH_FORMULAS:
        yield f"torch.{name}", getattr(pointwise, name)
    for name in ("gcd", "lcm", "frexp", "ldexp"):
        yield f"torch.{name}", getattr(formulas, name)
    for name, formula in _FORMULA_ALIASES.items():
        yield f"torch.{name}", getattr(pointwise, formula)


FORMULAS: dict[str, types.FunctionType] = dict(_formulas()) | complex_numbers.OF_PARTS
"""The function to inline for each that is made of others, by its name."""

METHODS = {
    "bit_length": formulas.bit_length,
    "bit_count": formulas.bit_count,
    "index": sequences.index,
    **complex_numbers.METHODS,
}
"""The methods of numbers, and of lists that stay as long as they are."""
POWER_MODULO = formulas.power_modulo
"""`pow` of three arguments."""

FOLDED: dict[str, int | float] = {"math.gcd": 0, "math.lcm": 1, "math.hypot": 0.0}
"""Functions of any number of arguments: f(a, b, c) is f(f(a, b), c); and what they are of none."""


_WITHOUT_FORMULA = frozenset(
    "torch.igamma torch.igammac torch.polygamma torch.mvlgamma torch.float_power torch.i0 torch.celu "
    "torch.selu torch.hardshrink torch.softshrink torch.tanhshrink torch.threshold".split()
)
_OF_ROWS = frozenset("torch.special_logsumexp torch.special_softmax torch.special_log_softmax".split())


def is_without_formula(name: str | None) -> bool:
    """Return whether one of torch's functions works element by element, but has no meaning on elements here."""
    if name is None or is_pointwise(name) or name in _OF_ROWS:
        return False
    return name in _WITHOUT_FORMULA or name.startswith("torch.special_")


def is_pointwise(name: str | None) -> bool:
    """Return whether a function has a meaning on elements."""
    return name is not None and (name in FUNCTIONS or name in FORMULAS)


def is_of_items(name: str | None) -> bool:
    """Return whether a function is computed item by item where it is called with rows: not those of sequences."""
    return name is not None and is_pointwise(name) and name.partition(".")[0] not in _SEQUENCES
