"""What the arguments of the first call are, of a function whose parameters have no annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch

from brickwork.frontend.parameters import NO_DEFAULT, Kinds

_TENSOR = "torch.Tensor"


def kinds_of_call(
    name: str,
    defaults: Mapping[str, object],
    unknown: Sequence[str],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> Kinds:
    """Return the annotations that parameters are to have for the arguments of a call; Dynamo traces this.

    `defaults` has all parameters in order, with NO_DEFAULT where there is none.
    """
    given: dict[str, Any] = {**defaults, **dict(zip(defaults, arguments, strict=False)), **named}
    found: list[tuple[str, str | type[Any]]] = []
    for parameter in unknown:
        value = given[parameter]
        if value is NO_DEFAULT:
            raise TypeError(f"{name}() missing a required argument: '{parameter}'")
        text = _kind(value)
        if isinstance(text, type):
            found.append((parameter, text))
            continue
        if not text:
            advice = "annotate it as torch.Tensor, int, float, bool, a list of these, or a dataclass, and pass that"
            what = type(value).__name__
            raise TypeError(f"{name}(): argument '{parameter}' is a {what}, and has no annotation: {advice}")
        if defaults[parameter] is None and text.startswith("list["):
            advice = f"take an empty list for none: `{parameter}=()`"
            raise TypeError(f"{name}(): argument '{parameter}' is a list, and None by default: {advice}")
        optional = defaults[parameter] is None and not text.startswith("Optional[")
        found.append((parameter, f"Optional[{text}]" if optional else text))
    return tuple(found)


def _kind(value: Any) -> str | type[Any]:
    """Return the annotation for a value, the class of one with parts; empty for one that an operator does not take."""
    if isinstance(value, torch.Tensor):
        return _TENSOR
    if value is None:
        return f"Optional[{_TENSOR}]"
    if hasattr(value, "__dataclass_fields__") or hasattr(value, "_fields"):
        return cast("type[Any]", type(value))
    if isinstance(value, complex):
        return complex
    if isinstance(value, list | tuple):
        kinds = {_kind(item) for item in cast("Sequence[Any]", value)} or {"float"}
        if kinds == {"int", "float"}:
            kinds = {"float"}
        return f"list[{kinds.pop()}]" if len(kinds) == 1 and kinds <= {_TENSOR, "int", "float", "bool"} else ""
    if isinstance(value, str):
        return "str"
    for kind, types in _NUMBERS.items():
        if isinstance(value, types):
            return kind
    if hasattr(value, "__len__"):
        return ""  # An array of one number would count as it.
    return "int" if hasattr(value, "__index__") else "float" if hasattr(value, "__float__") else ""


_NUMBERS: dict[str, tuple[type[Any], ...]] = {
    "bool": (bool, torch.SymBool),
    "int": (int, torch.SymInt),
    "float": (float, torch.SymFloat),
}
