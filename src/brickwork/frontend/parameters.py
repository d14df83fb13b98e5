"""The parameters of an operator, read from its signature: kinds from annotations, defaults, keyword-only ones."""

from __future__ import annotations

import ast
import enum
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, cast

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location
from brickwork.frontend.shape_annotations import FAMILIES, annotation_object
from brickwork.frontend.source import SourceFunction
from brickwork.ir.dtypes import BOOL, ELEMENTS, FLOAT64, INT64
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import AbsentType, ArgumentType, ListType, ScalarType, TensorListType, TextType
from brickwork.ir.tensor_types import type_of
from brickwork.records import dataclass

Kind: TypeAlias = Literal[
    "tensor", "int", "float", "bool", "str", "list[tensor]", "list[int]", "list[float]", "list[bool]"
]

Kinds: TypeAlias = tuple[tuple[str, "str | type[Any]"], ...]
"""Parameters without an annotation, and the annotation that each is to have: a text, or the class of its objects."""

SCALARS: dict[str, Kind] = {"int": "int", "float": "float", "bool": "bool", "str": "str"}
LISTS: dict[str, Kind] = {
    "Tensor": "list[tensor]",
    "int": "list[int]",
    "float": "list[float]",
    "bool": "list[bool]",
}
SEQUENCES = frozenset({"list", "tuple", "List", "Tuple", "Sequence"})
SHAPED = FAMILIES.keys()
ADVICE = (
    "annotate it as torch.Tensor, int, float, bool, a list of one of them, Optional[...] of the first four, complex or"
    " str"
)


OWNERS = frozenset({"self", "cls"})
"""What Python passes to methods."""
_LIST = "say what is in it: `list[int]`, `list[float]`, `list[bool]` or `list[torch.Tensor]`"
FIELDS = "let its fields be set by the constructor that `dataclass` makes, without `default_factory` and `init=False`"
_EACH = "make each item a parameter, or a list of items of one type"
INSTEAD: dict[str, str] = {
    "Literal": "write texts alone in it, or integers alone; or annotate it as float and test its value",
    "dtype": "leave it out: write `dtype=x.dtype` where a result is made, or convert what is returned",
    "device": "leave it out: an operator computes where its tensors are",
    "Generator": "leave it out: an operator that draws is called with `generator=` or `key=` besides its own arguments",
    "Size": "annotate it as `list[int]`",
    "ndarray": "annotate it as `torch.Tensor`, and pass `torch.from_numpy(...)` of it",
    "Callable": "define the operator in a function that takes this one, so that it is captured",
    "Number": "annotate it as int or float",
    "dict": "make each value a parameter",
    "Dict": "make each value a parameter",
    "list": _LIST,
    "List": _LIST,
    "Sequence": _LIST,
    "tuple": _EACH,
    "Tuple": _EACH,
}
"""Advice where a parameter is annotated as one of these."""


_OFTEN_NONE: frozenset[Kind] = frozenset({"tensor", "int", "float", "bool"})
"""What a parameter that is None by default may be annotated as without `Optional`, as was long written."""


class NoDefault:
    """Stands for the default of a parameter that has none."""


NO_DEFAULT = NoDefault()


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """One parameter. `default` is NO_DEFAULT where it has none; `length` is that of a tuple annotation, if told.

    `optional`: it may be None.
    """

    name: str
    kind: Kind
    default: object
    keyword_only: bool
    loc: Location
    length: int | None = None
    optional: bool = False


def undeclared(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the parameters of a function that have neither an annotation nor a number as default.

    Methods have none: they are refused.
    """
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return ()
    given = list(inspect.signature(function).parameters.values())
    if (given and given[0].name in OWNERS) or any(item.kind in _STARS for item in given):
        return ()
    return tuple(item.name for item in given if item.annotation is item.empty and not _told(item.default))


_STARS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _told(default: object) -> str:
    """Return the annotation that a default stands for."""
    return type(default).__name__ if isinstance(default, bool | int | float | complex | str) else ""


def annotated(source: SourceFunction, kinds: Kinds) -> SourceFunction:
    """Return the function with annotations: those that are given, and those that defaults stand for."""
    arguments = source.node.args
    known = {name: kind.__name__ if isinstance(kind, type) else kind for name, kind in kinds}
    signature = inspect.signature(source.function)
    for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        text = known.get(item.arg) or _told(signature.parameters[item.arg].default)
        if item.annotation is None and text:
            item.annotation = ast.copy_location(ast.parse(text, mode="eval").body, item)
    return source


def declare(source: SourceFunction) -> tuple[tuple[ParameterDeclaration, ...], list[Diagnostic]]:
    """Return the parameters, and what is wrong with them."""
    arguments = source.node.args
    wrong: list[Diagnostic] = []
    for star in (arguments.vararg, arguments.kwarg):
        if star is not None:
            message = f"`{star.arg}` takes any number of arguments"
            wrong.append(_wrong(message, source.location(star), "write one parameter for each argument"))
    declared = tuple(_declarations(source, wrong))
    return declared, wrong


def _declarations(source: SourceFunction, wrong: list[Diagnostic]) -> Iterator[ParameterDeclaration]:
    arguments = source.node.args
    signature = inspect.signature(source.function)
    for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        loc = source.location(item)
        if item.annotation is None:
            wrong.append(_without_annotation(source, item.arg, loc))
            continue
        annotation, optional = _without_none(item.annotation)
        kind, length = classify(annotation)
        if kind is None:
            alias = annotation.id if isinstance(annotation, ast.Name) else ""
            space: dict[str, object] = getattr(source.function, "__globals__", {})
            kind = _kind_of_object(annotation_object(source, item.arg) or space.get(alias))
        if kind is None or (optional and (kind == "str" or kind.startswith("list["))):
            own = item.arg in OWNERS and item is (arguments.posonlyargs or arguments.args)[0]
            made = _method(source, item.arg, loc) if own else _not_understood(source, item.arg, item.annotation, loc)
            wrong.append(made)
            continue
        default = signature.parameters[item.arg].default
        if default is inspect.Parameter.empty:
            default = NO_DEFAULT
        if isinstance(default, enum.Enum):
            default = default.value
        optional = optional or (default is None and kind in _OFTEN_NONE)
        fault = _wrong_default(item.arg, kind, default, optional=optional)
        if fault is not None:
            wrong.append(_wrong(fault[0], loc, fault[1]))
        named = item in arguments.kwonlyargs
        yield ParameterDeclaration(item.arg, kind, default, named, loc, length, optional)


def _kind_of_object(annotation: object) -> Kind | None:
    """Return the kind that an annotation means under a name of the user's own (`T = torch.Tensor`), or by its shape."""
    if hasattr(annotation, "dim_str"):
        return "tensor"
    others = [item for item in typing.get_args(annotation) if item is not types.NoneType]
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return _kind_of_object(others[0]) if len(others) == 1 else None
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return next((kind for base, kind in KINDS_OF.items() if issubclass(annotation, base)), None)
    if not isinstance(annotation, type) or annotation.__module__.partition(".")[0] not in {"torch", "builtins"}:
        return None
    return classify(ast.Name(annotation.__name__))[0]


def _without_annotation(source: SourceFunction, name: str, loc: Location) -> Diagnostic:
    if name in OWNERS:
        return _method(source, name, loc)
    return _wrong(f"the parameter `{name}` has no annotation", loc, ADVICE)


def _method(source: SourceFunction, name: str, loc: Location) -> Diagnostic:
    """Return the refusal of a method: an operator knows no object or class that it belongs to."""
    message = f"`{source.name}` is a method, and an operator takes no `{name}`"
    read = {
        ast.unparse(item)
        for item in ast.walk(source.node)
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == name
    }
    needed = ", ".join(sorted(read)[:3]) or "what it needs"
    return _wrong(message, loc, f"define the operator outside of the class, and call it in a method with {needed}")


def _not_understood(source: SourceFunction, name: str, annotation: ast.expr, loc: Location) -> Diagnostic:
    written = ast.unparse(annotation)
    plain, optional = _without_none(annotation)
    if optional and classify(plain)[0] is not None:
        what = "text" if classify(plain)[0] == "str" else "list"
        message = f"`{name}` is annotated as `{written}`, and a {what} cannot be None"
        return _wrong(message, loc, f"take an empty {what} for none")
    inner = plain.slice if isinstance(plain, ast.Subscript) and _last_name(plain.value) in SEQUENCES else None
    if isinstance(inner, ast.expr) and _without_none(inner)[1]:
        message = f"`{name}` is annotated as `{written}`, and an item of a list cannot be None"
        return _wrong(message, loc, "leave the items out, or make each an argument of its own")
    if isinstance(plain, ast.Subscript) and _last_name(plain.value) in INSTEAD:
        plain = plain.value
    known = _last_name(plain)
    advice = INSTEAD.get(known, ADVICE)
    if known not in INSTEAD and isinstance(annotation_object(source, name), type):
        is_dataclass = hasattr(annotation_object(source, name), "__dataclass_fields__")
        advice = FIELDS if is_dataclass else "make it a dataclass or a NamedTuple, or make what is needed parameters"
        if isinstance(annotation_object(source, name), enum.EnumType):
            advice = "derive it from `enum.IntEnum`, or from `str` and `Enum`: then a member is a number, or a text"
    return _wrong(f"the annotation `{written}` of `{name}` is not understood", loc, advice)


def _wrong_default(name: str, kind: Kind, default: object, *, optional: bool) -> tuple[str, str] | None:
    """Return what is wrong with a default, and what to write; None where nothing is."""
    if default is NO_DEFAULT or (default is None and optional):
        return None
    if default is None:
        wanted = "torch.Tensor" if kind == "tensor" else kind.replace("tensor", "torch.Tensor")
        advice = "take an empty list for none" if kind.startswith("list[") else f"annotate it as `Optional[{wanted}]`"
        return f"`{name}` is None by default, and is annotated as `{wanted}`", advice
    if kind in {"tensor", "list[tensor]"}:
        if kind == "list[tensor]" and default in ([], ()):
            return None
        return f"the default of `{name}` is a {type(default).__name__}", "leave it out, or make it None"
    wanted = kind.removeprefix("list[").removesuffix("]")
    if kind.startswith("list["):
        if not isinstance(default, list | tuple):
            return f"the default of `{name}` is no list, but `{default!r}`", "write a list or a tuple of numbers"
        items = list(cast("Sequence[object]", default))
    else:
        items = [default]
    types = {"int": (int,), "float": (int, float), "bool": (bool,), "str": (str,)}[wanted]
    for item in items:
        if not isinstance(item, types) or (wanted == "int" and isinstance(item, bool)):
            return f"the default of `{name}` is `{item!r}`, which is no {wanted}", f"write a plain {wanted}"
    return None


def _without_none(annotation: ast.expr) -> tuple[ast.expr, bool]:
    """Return an annotation without the None that it may be, and whether there was one."""
    match annotation:
        case ast.Constant(value=str() as text):
            try:
                return _without_none(ast.parse(text, mode="eval").body)
            except SyntaxError:
                return annotation, False
        case ast.Subscript(value=outer, slice=inner) if _last_name(outer) == "Optional":
            return inner, True
        case ast.Subscript(value=outer, slice=ast.Tuple(elts=[one, other])) if _last_name(outer) == "Union":
            parts = [one, other]
        case ast.BinOp(left=one, op=ast.BitOr(), right=other):
            parts = [one, other]
        case _:
            return annotation, False
    kept = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
    return (kept[0], True) if len(kept) == 1 else (annotation, False)


def _wrong(message: str, loc: Location, advice: str, code: str = "BW007") -> Diagnostic:
    return Diagnostic(code=code, message=message, loc=loc, help=advice)


def argument_type(declaration: ParameterDeclaration, argument: Any) -> ArgumentType:
    """Return the type of an argument, which may be a fake tensor or a symbolic number."""
    kinds = {"int": INT64, "float": FLOAT64, "bool": BOOL}
    if argument is None:
        return AbsentType()
    if declaration.kind == "tensor":
        return _tensor_type(argument)
    if declaration.kind == "list[tensor]":
        return TensorListType(tuple(map(_tensor_type, argument)))
    if declaration.kind == "str":
        return TextType(argument)
    if declaration.kind in kinds:
        return ScalarType(kinds[declaration.kind])
    return ListType(kinds[declaration.kind.removeprefix("list[").removesuffix("]")], len(argument))


def _tensor_type(tensor: Any) -> TensorType:
    return type_of(ELEMENTS[str(tensor.dtype).removeprefix("torch.")], tensor.dim())


def classify(annotation: ast.expr) -> tuple[Kind | None, int | None]:
    """Return the kind of parameter that an annotation means, and the length of a tuple where it tells one."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return classify(ast.parse(annotation.value, mode="eval").body)
        except SyntaxError:
            return None, None
    name = _last_name(annotation)
    if name == "Tensor":
        return "tensor", None
    if name in SCALARS:
        return SCALARS[name], None
    if not isinstance(annotation, ast.Subscript):
        return None, None
    written = choices(annotation)
    if written:
        return KINDS_OF[type(written[0])], None
    outer = _last_name(annotation.value)
    items = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if outer in SHAPED and _last_name(items[0]) == "Tensor":
        return "tensor", None
    if outer not in SEQUENCES:
        return None, None
    names = {_item_name(item) for item in items if not (isinstance(item, ast.Constant) and item.value is ...)}
    if len(names) != 1 or (found := next(iter(names))) not in LISTS:
        return None, None
    fixed = outer in {"tuple", "Tuple"} and not any(isinstance(item, ast.Constant) for item in items)
    return LISTS[found], len(items) if fixed else None


KINDS_OF: dict[type, Kind] = {str: "str", int: "int", bool: "bool"}
"""The kinds of parameters that are one of a few literals."""


def choices(annotation: ast.expr) -> tuple[str | int, ...]:
    """Return the texts or integers in `Literal["sum", "mean"]`; none of another annotation."""
    match annotation:
        case ast.Constant(value=str() as quoted):
            try:
                return choices(ast.parse(quoted, mode="eval").body)
            except SyntaxError:
                return ()
        case ast.Subscript(value=outer, slice=inner) if _last_name(outer) == "Literal":
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            found = [item.value for item in map(_signed, items) if isinstance(item, ast.Constant)]
            known = [value for value in found if isinstance(value, str | int)]
            return tuple(known) if len(known) == len(items) and len({*map(type, known)}) == 1 else ()
        case _:
            return ()


def _signed(node: ast.expr) -> ast.expr:
    """Return `-1` as one literal."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return ast.Constant(-value)
        case _:
            return node


def _item_name(item: ast.expr) -> str:
    """Return the name of the type of a list's items."""
    return "Tensor" if classify(item)[0] == "tensor" else _last_name(item)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
