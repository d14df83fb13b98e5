"""Which calls of torch's in loops make rows, and as which functions of `language/made_rows.py` they are compiled.

torch.zeros(n)               `filled of`(0.0, n, None)
x.new_full((n, m), v)        `filled of`(v, (n, m), x.dtype)
torch.zeros_like(x[i])       `filled_like of`(0.0, x[i], None)
torch.cat([x[i], y], 0)      `joined_rows of`((x[i], y), 0)
torch.tensor([a, b])         `stacked_rows of`((a, b), 0, None)
d[:, None]                   `widened of`(d[:], 1)
torch.outer(a, b)            `widened of`(a, 1) * b
W.T                          `turned of`(W)
x[i].float()                 `converted of`(x[i], torch.float32)

What stays with Python: sizes that loops compute, where the row may have to be an array, types that rows do not have,
devices that are not the arguments', and keywords that say more.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from brickwork.frontend.row_forms import is_slice, slices_of
from brickwork.frontend.syntax import all_nodes
from brickwork.ir.dtypes import DTYPES
from brickwork.language import made_rows

MEANINGS: Mapping[str, object] = {
    f"{item.__name__} of": item
    for item in (
        *(made_rows.filled, made_rows.filled_like, made_rows.counted_up, made_rows.joined_rows),
        *(made_rows.stacked_rows, made_rows.widened, made_rows.turned, made_rows.converted),
    )
}
"""What the names mean that such calls get: names with spaces are nobody's."""
NAMES = frozenset(MEANINGS)
_NUMBERS = {"empty": 0.0, "zeros": 0.0, "ones": 1.0}
_FILLED = frozenset({*_NUMBERS, "full"})
_OWN_TYPES = ("int32", "int16", "int8", "uint8", "uint16", "uint32", "int", "short", "complex64", "complex128")
"""Types whose items rows do not have, as sources name them."""
CONVERSIONS: Mapping[str, str] = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "bool": "bool",
}
"""The methods of a tensor that convert it, and to what."""
CONVERTING = frozenset({*CONVERSIONS, "to", "type", "type_as"})
_JOINED = frozenset({"cat", "concat", "concatenate"})
_STACKED = frozenset({"stack", "tensor"})
_TURNED = frozenset({"T", "mT"})


def is_made(name: str) -> bool:
    """Return whether a function of torch's of this name may make rows in loops."""
    base = name.removesuffix("_like").removeprefix("new_")
    return base in _FILLED or name in _JOINED | _STACKED | {"arange", "outer", "unsqueeze", "t", "transpose"}


def has_known_length(name: str, node: ast.Call) -> bool:
    """Return whether a row that a call makes is no new one, or of a length that the source says as a number."""
    if name.removesuffix("_like").removeprefix("new_") not in _FILLED | {"arange"}:
        return True
    given = [*node.args, *(item.value for item in node.keywords if item.arg == "size")]
    return not any(isinstance(item, ast.Name) for each in given for item in all_nodes(each))


def varying_names(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names that loops assign, those in their heads, too."""
    loops = (node for node in all_nodes(function) if isinstance(node, ast.For | ast.While))
    return frozenset(
        item.id
        for loop in loops
        for item in all_nodes(loop)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    )


def made(name: str, owner: ast.expr | None, node: ast.Call, varying: frozenset[str]) -> ast.expr | None:
    """Return what a call of torch's function `name`, or of the method of `owner`, is in a loop; None if it stays."""
    words = {item.arg or "**": item.value for item in node.keywords}
    kind = words.pop("dtype", None)
    place = words.pop("device", None)
    if place is not None and not (isinstance(place, ast.Attribute) and place.attr == "device"):
        return None
    if kind is not None and ast.unparse(kind).rpartition(".")[2] in _OWN_TYPES:
        return None
    if name == "outer" and len(node.args) == 2 and not words:
        return ast.BinOp(_call("widened", node.args[0], ast.Constant(1)), ast.Mult(), node.args[1])
    if name in _JOINED | _STACKED:
        return _several(name, node, words, kind)
    if name == "arange":
        return None if words else _counted_up(node.args, kind)
    if name in {"unsqueeze", "t", "transpose"}:
        return _with_axes(name, [owner, *node.args] if owner is not None else node.args, words)
    return _filled(name, owner, node.args, words, (kind, varying))


def _filled(
    name: str,
    owner: ast.expr | None,
    given: Sequence[ast.expr],
    words: dict[str, ast.expr],
    known: tuple[ast.expr | None, frozenset[str]],
) -> ast.expr | None:
    kind, varying = known
    base = name.removesuffix("_like").removeprefix("new_")
    rest = [*given]
    if name.endswith("_like"):
        if not rest:
            return None
        like, rest = rest[0], rest[1:]
        value = _value(base, rest, words)
        return None if value is None or rest or words else _call("filled_like", value, like, kind or _none())
    if owner is not None and kind is None:
        kind = ast.Attribute(owner, "dtype", ast.Load())
    sizes: ast.expr | None = words.pop("size", None)
    if base == "full" and sizes is None and rest:
        sizes, rest = rest[0], rest[1:]
    value = _value(base, rest, words)
    if sizes is None and rest:
        sizes, rest = (rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load())), []
    if value is None or sizes is None or rest or words or not is_of_host(sizes, varying):
        return None
    if isinstance(sizes, ast.List):
        sizes = ast.copy_location(ast.Tuple(sizes.elts, ast.Load()), sizes)
    if isinstance(sizes, ast.Tuple) and not sizes.elts:
        return None
    return _call("filled", value, sizes, kind or _none())


def _value(base: str, rest: list[ast.expr], words: dict[str, ast.expr]) -> ast.expr | None:
    """Return the number that a new tensor is filled with; what of the arguments says it is taken out."""
    if base in _NUMBERS:
        return ast.Constant(_NUMBERS[base])
    if "fill_value" in words:
        return words.pop("fill_value")
    return rest.pop(0) if rest else None


def is_of_host(node: ast.expr, varying: frozenset[str]) -> bool:
    """Return whether sizes are made of what loops do not assign, and of no elements; a row's shape is the same."""
    match node:
        case ast.Name(id=name):
            return name not in varying
        case ast.Attribute(attr="shape"):
            return True
        case ast.Subscript(value=owner, slice=index):
            return isinstance(owner, ast.Attribute) and owner.attr == "shape" and is_of_host(index, varying)
        case ast.Call(func=ast.Name(id="len"), args=[_]) | ast.Call(func=ast.Attribute(attr="size")):
            return True
        case _:
            return all(is_of_host(item, varying) for item in ast.iter_child_nodes(node) if isinstance(item, ast.expr))


def _several(name: str, node: ast.Call, words: dict[str, ast.expr], kind: ast.expr | None) -> ast.expr | None:
    """Return rows that are joined; those that are written there alone."""
    if name == "tensor" and len(node.args) == 1 and not words and isinstance(node.args[0], ast.Constant):
        return _call("filled", node.args[0], ast.Tuple([], ast.Load()), kind or _none())
    rest = [*node.args]
    rows = rest.pop(0) if rest else words.pop("tensors", None)
    axis = words.pop("dim", words.pop("axis", None)) or (rest.pop(0) if rest else ast.Constant(0))
    if words or rest or not isinstance(rows, ast.List | ast.Tuple) or not rows.elts or not is_number(axis):
        return None
    if any(isinstance(item, ast.Starred) for item in rows.elts):
        return None
    rows = ast.copy_location(ast.Tuple(rows.elts, ast.Load()), rows)
    if name in _JOINED:
        return None if kind is not None else _call("joined_rows", rows, axis)
    if name == "tensor" and any(isinstance(item, ast.List | ast.Tuple) for item in rows.elts):
        return None
    return None if name == "stack" and kind is not None else _call("stacked_rows", rows, axis, kind or _none())


def _counted_up(given: Sequence[ast.expr], kind: ast.expr | None) -> ast.expr | None:
    whole = all(not (isinstance(item, ast.Constant) and isinstance(item.value, float)) for item in given)
    if not 1 <= len(given) <= 3 or not whole:
        return None
    start, stop = (ast.Constant(0), given[0]) if len(given) == 1 else (given[0], given[1])
    step = given[2] if len(given) == 3 else ast.Constant(1)
    return _call("counted_up", start, stop, step, kind or _none()) if is_number(step) else None


def _with_axes(name: str, given: Sequence[ast.expr], words: dict[str, ast.expr]) -> ast.expr | None:
    row, *axes = given
    axes += [words.pop(key) for key in ("dim", "dim0", "dim1") if key in words]
    if words or not all(map(is_number, axes)) or len(axes) != {"unsqueeze": 1, "t": 0, "transpose": 2}[name]:
        return None
    return _call("widened" if name == "unsqueeze" else "turned", row, *axes)


def converted(name: str, owner: ast.expr, node: ast.Call) -> ast.expr | None:
    """Return what a method that converts the items of `owner` is in a loop."""
    words = {item.arg: item.value for item in node.keywords}
    kind: ast.expr | None = None
    match name, node.args:
        case "to" | "type", [] if words.keys() == {"dtype"} and _has_rows(words["dtype"]):
            kind = words["dtype"]
        case "to" | "type", [given] if not words and _has_rows(given):
            kind = given
        case "type_as", [other] if not words:
            kind = ast.Attribute(other, "dtype", ast.Load())
        case _, [] if name in CONVERSIONS and not words:
            kind = ast.Attribute(ast.Name("torch", ast.Load()), CONVERSIONS[name], ast.Load())
        case _:
            return None
    return _call("converted", owner, kind)


def _has_rows(node: ast.expr) -> bool:
    """Return whether an expression names a type that rows may be of: `torch.float32`, `x.dtype`."""
    attr = node.attr if isinstance(node, ast.Attribute) else ""
    return attr == "dtype" or (attr in {*DTYPES, "float", "double", "half", "long"} and attr not in _OWN_TYPES)


def turned(node: ast.Attribute) -> ast.Call | None:
    """Return what `W.T` is in a loop."""
    axes = [ast.Constant(-2), ast.Constant(-1)] if node.attr == "mT" else []
    return _call("turned", node.value, *axes) if node.attr in _TURNED else None


def without_none(node: ast.Subscript) -> ast.expr | None:
    """Return what `d[:, None]` is in a loop: the axes of one item are given to what the other indices leave."""
    parts = slices_of(node)
    if not any(map(_is_none, parts)):
        return None
    left = [part for part in parts if _is_none(part) or is_slice(part)]
    dots = next((at for at, part in enumerate(left) if isinstance(part, ast.Constant) and part.value is ...), len(left))
    axes = [at if at < dots else at - len(left) for at, part in enumerate(left) if _is_none(part)]
    rest = [part for part in parts if not _is_none(part)]
    found: ast.expr = node.value
    if any(not _is_all(part) for part in rest):
        index = rest[0] if len(rest) == 1 else ast.Tuple(rest, ast.Load())
        found = ast.copy_location(ast.Subscript(node.value, index, ast.Load()), node)
    for axis in sorted(axes, key=lambda axis: axis if axis >= 0 else len(left) - axis):
        found = ast.copy_location(_call("widened", found, ast.Constant(axis)), node)
    return found


def _is_all(node: ast.expr) -> bool:
    """Return whether an index is `:` or `...`."""
    return is_slice(node) and (isinstance(node, ast.Constant) or ast.unparse(node) == ":")


def _is_none(node: ast.expr) -> bool:
    """Return whether an index is `None`, or `np.newaxis`."""
    return (isinstance(node, ast.Constant) and node.value is None) or (
        isinstance(node, ast.Attribute) and node.attr == "newaxis"
    )


def is_number(node: ast.expr) -> bool:
    """Return whether an expression is an int as such."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _none() -> ast.expr:
    return ast.Constant(None)


def _call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(f"{function} of", ast.Load()), [*arguments], [])
