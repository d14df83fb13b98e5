"""torch's functions of rows, as the functions of `language/rows` that loops compile.

x[i].argmax()                     place_of_first(x[i], True)
torch.softmax(x[i], dim=-1)       softmax(x[i])
x[i].std(correction=0)            root of(variance(x[i], 0))
torch.topk(x[i], k).values        first_in_order(x[i], k, True)[0]
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, cast

from brickwork.language import rows
from brickwork.language.pointwise import root_of_sum, same

ROOT = "root of"
"""The name of `root_of_sum`: names with spaces are nobody's."""
_FUNCTIONS = (
    *(rows.softmax, rows.log_softmax, rows.logsumexp, rows.variance, rows.place_of_first, rows.extreme),
    *(rows.argsort, rows.ordered, rows.first_in_order, rows.median, rows.cumsum, rows.cumprod, rows.flip),
    *(rows.chunks, rows.parts),
)
COPY = "copy of"
"""The name of `same`, which is what `x[i].clone()` is."""
MEANINGS: Mapping[str, object] = {ROOT: root_of_sum, COPY: same, **{f"{item.__name__} of": item for item in _FUNCTIONS}}
"""What the names mean that such calls get."""
OF_ROWS: frozenset[object] = frozenset(_FUNCTIONS)
PAIRS: Mapping[str, int] = {"values": 0, "indices": 1}
"""The attributes of what sorting gives."""

_SIGNATURES = {
    **dict.fromkeys(("softmax", "log_softmax", "cumsum", "cumprod"), ("dim",)),
    "logsumexp": ("dim", "keepdim"),
    "flip": ("dims",),
    "median": (),
    **dict.fromkeys(("argmax", "argmin", "max", "min"), ("dim", "keepdim")),
    **dict.fromkeys(("var", "std"), ("dim", "unbiased", "keepdim", "correction")),
    **dict.fromkeys(("sort", "argsort"), ("dim", "descending", "stable")),
    "topk": ("k", "dim", "largest", "sorted"),
}
_WITH_AXIS = frozenset("softmax log_softmax logsumexp cumsum cumprod flip max min".split())
"""Functions that mean something else, or nothing, without an axis."""
_IN_PAIRS = frozenset({"sort", "topk", "max", "min"})
"""Functions that give values and places."""


def parts_call(name: str, row: ast.expr, node: ast.Call, given: Sequence[ast.expr], count: int) -> ast.Call | None:
    """Return the call of `chunk` or `split` of a row in so many parts; None where it is something else."""
    words = {item.arg or "**": item.value for item in node.keywords}
    number, *rest = [*given, None]
    number = words.pop("chunks" if name == "chunk" else "split_size_or_sections", number) if number is None else number
    axis = words.pop("dim", None) or (rest[0] if len(rest) == 2 else None) or ast.Constant(0)
    try:
        along = ast.literal_eval(axis)
    except ValueError:
        return None
    if number is None or words or len(rest) > 2 or isinstance(number, ast.List | ast.Tuple):
        return None
    words_of = [ast.keyword("dim", ast.Constant(along))]
    if name == "split":
        return ast.Call(ast.Name("parts of", ast.Load()), [row, number, ast.Constant(count)], words_of)
    same = isinstance(number, ast.Constant) and number.value == count
    return ast.Call(ast.Name("chunks of", ast.Load()), [row, number], words_of) if same else None


def is_of_row(name: str, *, pair: bool) -> bool:
    """Return whether a function of this name may have a meaning here, where both, or one of both, are taken."""
    return name in _SIGNATURES and pair is (name in _IN_PAIRS)


def row_call(name: str, row: ast.expr, given: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> ast.Call | None:
    """Return the call that `name` of a row is; None where the arguments say that it is something else."""
    words = dict(zip(_SIGNATURES[name], given, strict=False)) | {item.arg or "**": item.value for item in keywords}
    if len(given) > len(_SIGNATURES[name]) or not words.keys() <= {*_SIGNATURES[name]}:
        return None
    count = words.pop("k", None)
    try:
        options: dict[str, Any] = {key: ast.literal_eval(node) for key, node in words.items()}
    except ValueError:
        return None
    if name in {"var", "std"} and isinstance(options.get("dim"), bool):
        options = {"unbiased": options["dim"]}
    axis: Any = options.pop("dims" if name == "flip" else "dim", None)
    axis = next(iter(cast("Sequence[Any]", axis)), None) if isinstance(axis, list | tuple) else axis
    if (axis is None and name in _WITH_AXIS) or not isinstance(axis, int | None) or options.get("keepdim"):
        return None
    less = options.get("correction", 1 if options.get("unbiased", True) else 0)
    backward = bool(options.get("descending") or options.get("largest", name == "topk"))
    along = [] if axis is None else [ast.keyword("dim", ast.Constant(axis))]

    def called(function: str, *arguments: ast.expr | bool | int) -> ast.Call:
        nodes = (item if isinstance(item, ast.expr) else ast.Constant(item) for item in arguments)
        return ast.Call(ast.Name(f"{function} of", ast.Load()), [row, *nodes], along)

    match name:
        case "argmax" | "argmin":
            return called("place_of_first", name == "argmax")
        case "max" | "min":
            return called("extreme", name == "max")
        case "var" | "std" if isinstance(less, int):
            found = called("variance", less)
            return found if name == "var" else ast.Call(ast.Name(ROOT, ast.Load()), [found], [])
        case "sort" | "argsort":
            return called("ordered" if name == "sort" else name, backward)
        case "topk" if count is not None:
            return called("first_in_order", count, backward)
        case "var" | "std" | "topk":
            return None
        case _:
            return called(name)
