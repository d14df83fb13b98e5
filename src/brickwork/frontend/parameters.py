"""The parameters of an operator, read from its signature: kinds from annotations, defaults, keyword-only ones."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location
from brickwork.frontend.source import SourceFunction

Kind: TypeAlias = Literal["tensor", "int", "float", "bool", "list[int]", "list[float]", "list[bool]"]

SCALARS: dict[str, Kind] = {"int": "int", "float": "float", "bool": "bool"}
LISTS: dict[str, Kind] = {"int": "list[int]", "float": "list[float]", "bool": "list[bool]"}
SEQUENCES = frozenset({"list", "tuple", "List", "Tuple", "Sequence"})
SHAPED = frozenset({"Float", "Int", "Bool", "UInt", "Shaped", "Num", "Real", "Inexact", "Integer", "Key"})
ADVICE = "annotate it as torch.Tensor, int, float, bool, list[int] or list[float]"


class NoDefault:
    """Stands for the default of a parameter that has none."""


NO_DEFAULT = NoDefault()


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """One parameter. `default` is NO_DEFAULT where it has none; `length` is that of a tuple annotation, if told."""

    name: str
    kind: Kind
    default: object
    keyword_only: bool
    loc: Location
    length: int | None = None


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
            wrong.append(_wrong(f"the parameter `{item.arg}` has no annotation", loc, ADVICE))
            continue
        kind, length = classify(item.annotation)
        if kind is None:
            wrong.append(_not_understood(item.arg, ast.unparse(item.annotation), loc))
            continue
        default = signature.parameters[item.arg].default
        if default is inspect.Parameter.empty:
            default = NO_DEFAULT
        yield ParameterDeclaration(item.arg, kind, default, item in arguments.kwonlyargs, loc, length)


def _not_understood(name: str, written: str, loc: Location) -> Diagnostic:
    if "Optional" in written or "None" in written:
        message = f"`{name}` may be None, and optional arguments are not supported yet"
        return _wrong(message, loc, "make an operator for each case, and choose between them outside", "BW901")
    if "Tensor" in written and "[" in written:
        message = f"`{name}` is annotated as `{written}`, and lists of tensors are not supported yet"
        return _wrong(message, loc, "pass the tensors one by one, or stack them", "BW901")
    return _wrong(f"the annotation `{written}` of `{name}` is not understood", loc, ADVICE)


def _wrong(message: str, loc: Location, advice: str, code: str = "BW007") -> Diagnostic:
    return Diagnostic(code=code, message=message, loc=loc, help=advice)


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
    outer = _last_name(annotation.value)
    items = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if outer in SHAPED and _last_name(items[0]) == "Tensor":
        return "tensor", None
    if outer not in SEQUENCES:
        return None, None
    names = {_last_name(item) for item in items if not (isinstance(item, ast.Constant) and item.value is ...)}
    if len(names) != 1 or (found := next(iter(names))) not in LISTS:
        return None, None
    fixed = outer in {"tuple", "Tuple"} and not any(isinstance(item, ast.Constant) for item in items)
    return LISTS[found], len(items) if fixed else None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
