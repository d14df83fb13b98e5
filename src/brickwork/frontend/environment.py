"""What a captured value is to the compiler: a number, a function it knows, a helper to inline, or nothing of use.

Functions are recognised by identity, so that aliases and renamed imports work; torch, without importing it.
"""

from __future__ import annotations

import ast
import bisect
import builtins
import cmath
import collections
import dataclasses
import functools
import heapq
import itertools
import math
import sys
import types
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from brickwork.frontend.syntax import dotted
from brickwork.ir.dtypes import DTYPES, DType
from brickwork.language.math import FORMULAS, FUNCTIONS, METHODS, POWER_MODULO

MADE_ROWS = frozenset(
    {"filled", "filled_like", "counted_up", "joined_rows", "stacked_rows", "widened", "turned", "converted"}
)
"""What rows that loops make are written as: the functions of `language/made_rows.py`."""
LANGUAGE = (
    frozenset({"prange", "ndrange", "indices", "rand", "randn", "randint", "require", "bounded", "items_of", "row_of"})
    | MADE_ROWS
)
"""brickwork's own functions."""
DRAWS = frozenset({"brickwork.rand", "brickwork.randn", "brickwork.randint"})
"""The random ones among them."""
LOOPS = frozenset({"builtins.range", "brickwork.prange", "brickwork.ndrange", "brickwork.indices"})
"""What a lifted loop may run over."""
ALLOCATIONS = frozenset(
    f"torch.{name}{suffix}" for name in ("empty", "zeros", "ones", "full") for suffix in ("", "_like")
)
"""torch's functions that make a tensor."""
NEW_METHODS = frozenset({"new_empty", "new_zeros", "new_ones", "new_full"})
"""A tensor's methods that make a tensor."""
OF_TYPES = frozenset({"torch.finfo", "torch.iinfo"})
"""torch's functions that tell the limits of a type."""
PYTHON: Mapping[types.ModuleType, Mapping[str, object]] = MappingProxyType(
    {module: MappingProxyType({**vars(module)}) for module in (builtins, math, cmath, bisect, heapq)}
)
"""Python's own functions; `torch.export` puts others in place of some while it runs."""


class Missing:
    """The type of `MISSING`, which stands for a name without a value."""


MISSING = Missing()


def resolve(node: ast.expr, captured: Mapping[str, object], local: frozenset[str]) -> object:
    """Return the captured object that a name or a dotted name means, or MISSING; what was captured stays as it was."""
    if isinstance(node, ast.Name):
        return MISSING if node.id in local else captured.get(node.id, MISSING)
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, captured, local)
        frozen = MISSING if isinstance(owner, Missing) else captured.get(dotted(node) or "", MISSING)
        if isinstance(owner, types.ModuleType):
            own = PYTHON.get(owner)
            found: object = getattr(owner, node.attr, MISSING) if own is None else own.get(node.attr, MISSING)
            return found if frozen is MISSING else frozen
        return frozen
    return MISSING


def intrinsic(value: object) -> str | None:
    """Return `module.name` of a function that the compiler knows, or None."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or isinstance(value, types.ModuleType):
        return None
    for owner, functions in PYTHON.items():
        if functions.get(name) is value:
            return f"{owner.__name__}.{name}"
    module = getattr(value, "__module__", None)
    if name in LANGUAGE and isinstance(module, str) and module.split(".")[0] == "brickwork":
        return f"brickwork.{name}"
    if value is dataclasses.replace:
        return "dataclasses.replace"
    if value is collections.deque:
        return "collections.deque"
    if value is functools.reduce:
        return "functools.reduce"
    if value is itertools.accumulate:
        return "itertools.accumulate"
    if "numpy" in {str(module), type(value).__module__}:
        return _of_numpy(name)
    torch, home = sys.modules.get("torch"), str(module)
    if home.startswith("torch._ops.") and home != "torch._ops.aten":
        return None  # an operator of somebody's: `torch.ops.mine.sin` may be anything
    if torch is not None and (getattr(torch, name, None) is value or home.split(".", maxsplit=1)[0] == "torch"):
        return f"torch.{name}"
    return None


def _of_numpy(name: str) -> str | None:
    """Return what torch or Python calls a function of NumPy's on elements, or one of its types of numbers."""
    if name in _NUMPY_TYPES:
        return f"builtins.{_NUMPY_TYPES[name]}"
    if name in _NUMPY_REDUCTIONS:
        return f"torch.{name.removeprefix('a') if name in {'amin', 'amax'} else name}"
    for found in (f"torch.{_NUMPY_NAMES.get(name, name)}", f"math.{name}"):
        if found in FUNCTIONS or found in FORMULAS:
            return found
    return None


def number_of_numpy(value: object) -> object:
    """Return a number of NumPy's, or a small array, as Python's numbers and lists; anything else as it is."""
    if type(value).__module__ != "numpy" or isinstance(value, type):
        return value
    given = cast("Any", value)
    if not hasattr(given, "tolist") or given.dtype.kind not in "biufc" or given.size > _LARGEST_ARRAY:
        return value
    return given.tolist()


_LARGEST_ARRAY = 8192
"""The most numbers of an array that are constants of the code: 64 KiB."""
_NUMPY_REDUCTIONS = frozenset({"sum", "prod", "mean", "min", "max", "amin", "amax", "any", "all"})


_NUMPY_NAMES = {"power": "pow", "fabs": "abs", "rint": "round", "around": "round", "mod": "remainder"} | {
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "invert": "bitwise_not",
}
_NUMPY_TYPES = {"float64": "float", "int64": "int", "bool": "bool", "bool_": "bool"}
"""NumPy's names that are not torch's; what is left out computes in fewer bits."""


def helper(value: object) -> types.FunctionType | None:
    """Return the Python function to inline, or None: the user's, or the formula of a known function."""
    name = intrinsic(value)
    if name is not None:
        return FORMULAS.get(name)
    return value if isinstance(value, types.FunctionType) and not draws_elsewhere(value) else None


def draws_elsewhere(value: object) -> bool:
    """Return whether a function draws random numbers of Python or of NumPy, which torch's seed does not govern."""
    owner = getattr(value, "__self__", None)
    home = str(type(owner).__module__) if owner is not None else str(getattr(value, "__module__", ""))
    return home == "random" or home.startswith("numpy.random")


def called_formula(node: ast.Call) -> types.FunctionType | None:
    """Return the formula that a call means by its form: a method of ints, or `pow` of three."""
    if isinstance(node.func, ast.Attribute):
        return METHODS.get(node.func.attr)
    return POWER_MODULO if isinstance(node.func, ast.Name) and node.func.id == "pow" and len(node.args) == 3 else None


def is_tensor(value: object) -> bool:
    """Return whether the value is a torch tensor, of any subclass."""
    return any(kind.__module__ == "torch" and kind.__name__ == "Tensor" for kind in type(value).__mro__)


def torch_dtype(value: object) -> str | None:
    """Return the name of a torch dtype, or None."""
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value).removeprefix("torch.")
    return None


def default_dtype() -> DType:
    """Return torch's default dtype, which new float tensors have; whoever runs a function has imported torch."""
    return DTYPES[str(sys.modules["torch"].get_default_dtype()).removeprefix("torch.")]


def is_number(value: object) -> bool:
    """Return whether the value is a plain Python number."""
    return isinstance(value, bool | int | float)


_CONSTANTS = (bool, int, float, complex, str)


def constant_items(value: object) -> tuple[object, ...] | None:
    """Return the items of a list or tuple of numbers, complex ones too, and texts (nested ones too), or None."""
    if not isinstance(value, tuple | list):
        return None
    items = tuple(cast("tuple[object, ...]", value))
    if all(isinstance(item, _CONSTANTS) or constant_items(item) is not None for item in items):
        return items
    return None
