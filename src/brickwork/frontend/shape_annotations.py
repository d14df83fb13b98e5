"""Shapes in annotations, in jaxtyping's notation: `Float[Tensor, "B C T"]`.

They become asserts at the head of the body, which check every call and tell the analysis which sizes are equal. A name
that the body reads and does not assign is bound there. jaxtyping is not needed: an annotation is known by its form, or
as an object by its attributes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from brickwork.frontend.rules import error
from brickwork.frontend.source import SourceFunction
from brickwork.ir.dtypes import ELEMENTS
from brickwork.records import dataclass

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_COMPLEX = ("complex64", "complex128")
FAMILIES: dict[str, tuple[str, ...]] = {
    "Float": _FLOATS,
    "Complex": _COMPLEX,
    "Inexact": (*_FLOATS, *_COMPLEX),
    "Int": _SIGNED,
    "UInt": _UNSIGNED,
    "Integer": (*_SIGNED, *_UNSIGNED),
    "Real": (*_FLOATS, *_SIGNED, *_UNSIGNED),
    "Num": (*_FLOATS, *_COMPLEX, *_SIGNED, *_UNSIGNED),
    "Bool": ("bool",),
    "Shaped": (),
    **{("BFloat16" if name == "bfloat16" else name.capitalize()): (name,) for name in (*_FLOATS, *_COMPLEX, *_SIGNED)},
    **{f"UInt{name.removeprefix('uint')}": (name,) for name in _UNSIGNED},
}
"""The element types that each annotation allows; none: all."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What an annotation says of one parameter. `words` are its sizes; one of them may be `...`."""

    parameter: str
    words: tuple[str, ...]
    dtypes: tuple[str, ...]
    optional: bool
    node: ast.expr

    @property
    def rest(self) -> int | None:
        """The position of `...`, or None."""
        return next((at for at, word in enumerate(self.words) if word == "..."), None)

    def axes(self) -> Iterator[tuple[int, str]]:
        """Yield each size with its axis; after `...` axes count from the end."""
        for at, word in enumerate(self.words):
            if word != "...":
                yield (at if self.rest is None or at < self.rest else at - len(self.words)), word


def with_shapes(source: SourceFunction) -> SourceFunction:
    """Return the function with what its annotations say of shapes written at the head of its body."""
    shapes = tuple(_shapes(source))
    if not shapes:
        return source
    names = _names(source, shapes)
    written = [(text, shape.node) for shape in shapes for text in _statements(shape, names, source)]
    made: list[ast.stmt] = []
    for text, place in written:
        statement = ast.parse(text).body[0]
        for item in ast.walk(statement):
            if isinstance(item, ast.expr | ast.stmt):
                ast.copy_location(item, place)
        made.append(statement)
    first = source.node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    source.node.body[int(documented) : int(documented)] = made
    captured = {**source.captured, **_dtypes(shapes)}
    return replace(source, captured=captured, text="\n".join((source.text, *(text for text, _ in written))))


# ---------------------------------------------------------------- reading annotations


def _shapes(source: SourceFunction) -> Iterator[Shape]:
    arguments = source.node.args
    for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if item.annotation is not None:
            yield from _shape(source, item.arg, item.annotation, annotation_object(source, item.arg), optional=False)


def annotation_object(source: SourceFunction, parameter: str) -> object:
    """Return the annotation as an object; where annotations are texts, what a plain name means."""
    annotations: dict[str, object] = source.function.__annotations__
    found = annotations.get(parameter)
    space: dict[str, object] = getattr(source.function, "__globals__", {})
    if not isinstance(found, str):
        return found
    return space.get(found, complex if found == "complex" else None)


def _shape(source: SourceFunction, name: str, node: ast.expr, found: object, *, optional: bool) -> Iterator[Shape]:
    text = getattr(found, "dim_str", None)
    if isinstance(text, str):
        allowed = getattr(found, "dtypes", ())
        listed: tuple[str, ...] = ()
        if isinstance(allowed, list | tuple):
            listed = tuple(str(item) for item in cast("Sequence[object]", allowed) if item in ELEMENTS)
        yield Shape(name, _words(source, node, text), listed, optional, node)
        return
    match node:
        case ast.Constant(value=str() as quoted):
            inner = ast.parse(quoted, mode="eval").body
            for part in ast.walk(inner):
                if isinstance(part, ast.expr):
                    ast.copy_location(part, node)
            yield from _shape(source, name, inner, None, optional=optional)
        case ast.Subscript(value=outer, slice=inner) if _last(outer) == "Optional":
            yield from _shape(source, name, inner, None, optional=True)
        case ast.BinOp(left=inner, op=ast.BitOr()):
            yield from _shape(source, name, inner, None, optional=True)
        case ast.Subscript(value=outer, slice=ast.Tuple(elts=[_, ast.Constant(value=str() as sizes)])):
            if _last(outer) in FAMILIES:
                yield Shape(name, _words(source, node, sizes), FAMILIES[_last(outer)], optional, node)
        case _:
            pass


def _words(source: SourceFunction, node: ast.expr, text: str) -> tuple[str, ...]:
    """Return the sizes that a text names; refuse what is not understood."""
    words: list[str] = []
    for written in text.split():
        word = written.split("=")[-1] if "=" in written else written
        if word == "..." or word.startswith("*"):
            words.append("...")
            continue
        if word.startswith(("#", "?")):
            message = f"`{written}` in a shape is not understood"
            raise error("BW007", message, source.location(node), "write a name, a number, `...` or a sum such as `n+1`")
        if word.startswith("_"):
            word = "_"
        _check_word(source, node, word)
        words.append(word)
    if words.count("...") > 1:
        raise error("BW007", "a shape has `...` twice", source.location(node), "write it once")
    return tuple(words)


def _check_word(source: SourceFunction, node: ast.expr, word: str) -> None:
    try:
        parsed = ast.parse(word, mode="eval").body
    except SyntaxError:
        parsed = None
    allowed = (ast.Name, ast.Constant, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Load)
    if parsed is None or not all(isinstance(item, allowed) for item in ast.walk(parsed)):
        message = f"`{word}` in a shape is not understood"
        raise error("BW007", message, source.location(node), "write a name, a number, `...` or a sum such as `n+1`")


def _last(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


# ---------------------------------------------------------------- writing statements


def _names(source: SourceFunction, shapes: tuple[Shape, ...]) -> dict[str, str]:
    """Return the variable for each name of a size: the name itself, unless the body gives it a meaning of its own."""
    own = source.local
    found = [word for shape in shapes for _, word in shape.axes() if word.isidentifier() and word != "_"]
    return {name: f"size_{name}" if name in own else name for name in dict.fromkeys(found)}


def _statements(shape: Shape, names: Mapping[str, str], source: SourceFunction) -> Iterator[str]:
    inner = [*_rank_and_dtype(shape, source.name), *_sizes(shape, names, source)]
    if not shape.optional:
        yield from inner
        return
    checks = [text for text in inner if text.startswith("assert")]
    yield "\n".join((f"if {shape.parameter} is not None:", *(f"    {text}" for text in checks)))


def _rank_and_dtype(shape: Shape, operator: str) -> Iterator[str]:
    name, count = shape.parameter, len(shape.words)
    several = shape.rest is not None
    rank = count - several
    wanted = f"{'at least ' if several else ''}{rank} dimension{'s' if rank != 1 else ''}"
    message = f"argument {name} of {operator} needs {wanted}, but has {{{name}.ndim}}"
    yield f"assert {name}.ndim {'>=' if several else '=='} {rank}, f'{message}'"
    if shape.dtypes:
        test = " or ".join(f"{name}.dtype == {_variable(dtype)}" for dtype in shape.dtypes if dtype in ELEMENTS)
        yield f"assert {test or 'False'}, 'argument {name} of {operator} needs elements of {' or '.join(shape.dtypes)}'"


def _sizes(shape: Shape, names: Mapping[str, str], source: SourceFunction) -> Iterator[str]:
    first = _first_places(source)
    for axis, word in shape.axes():
        size = f"{shape.parameter}.shape[{axis}]"
        if word == "_":
            continue
        if word in names and first.get(word) == (shape.parameter, axis):
            yield f"{names[word]} = {size}"
            continue
        expected = _renamed(word, names, source, shape)
        wanted = f"not {word}" if word.isdigit() else f"but {word} is {{{expected}}}"
        message = f"argument {shape.parameter}, axis {axis}: the size is {{{size}}}, {wanted}"
        yield f"assert {size} == {expected}, f'{message}'"


def _first_places(source: SourceFunction) -> dict[str, tuple[str, int]]:
    """Return the parameter and axis that give each name its value; an optional parameter gives none."""
    places: dict[str, tuple[str, int]] = {}
    for shape in _shapes(source):
        for axis, word in () if shape.optional else shape.axes():
            places.setdefault(word, (shape.parameter, axis))
    return places


def _renamed(word: str, names: Mapping[str, str], source: SourceFunction, shape: Shape) -> str:
    tree = ast.parse(word, mode="eval")
    for item in ast.walk(tree):
        if isinstance(item, ast.Name):
            if item.id not in names or item.id not in _first_places(source):
                message = f"the size `{item.id}` in a shape is not the size of an axis"
                raise error("BW007", message, source.location(shape.node), "give it to an axis of another argument")
            item.id = names[item.id]
    return ast.unparse(tree)


def _variable(dtype: str) -> str:
    return f"torch_{dtype}"


def _dtypes(shapes: tuple[Shape, ...]) -> dict[str, object]:
    """Return torch's element types under the names that the asserts call them by."""
    torch = sys.modules.get("torch")
    names = {name for shape in shapes for name in shape.dtypes if name in ELEMENTS}
    return {_variable(name): getattr(torch, name) for name in sorted(names)}
