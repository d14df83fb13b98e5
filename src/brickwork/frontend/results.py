"""What a function returns: how many tensors, as its `return`s show and its annotation promises, and what is refused.

Invariant: every `return` gives as many tensors as the schema says. What the source does not show (what a foreign
function gives) is counted when it has run, by `pytorch/python_host.py`.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.environment import MISSING, intrinsic, is_tensor, resolve
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes

_NUMBERS = frozenset({"int", "float", "bool"})


def returns_of(source: SourceFunction) -> list[ast.Return]:
    """Return the `return` statements of a function."""
    return [node for node in all_nodes(source.node) if isinstance(node, ast.Return)]


def result_expressions(node: ast.Return) -> tuple[ast.expr, ...]:
    """Return the expressions that a `return` hands out."""
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return ()
    return tuple(node.value.elts) if isinstance(node.value, ast.Tuple | ast.List) else (node.value,)


def result_count(source: SourceFunction, *, native: bool) -> int:
    """Return how many tensors a function returns: as its annotation says, or its `return`s show, else one."""
    returns = returns_of(source)
    if not any(map(result_expressions, returns)):
        return 0
    shown = (_count(source, node, native=native) for node in returns)
    return promised(source) or next((count for count in shown if count is not None), 1)


def wrong_results(
    source: SourceFunction, arguments: frozenset[str], tensors: frozenset[str], *, native: bool
) -> Iterator[Diagnostic]:
    """Yield what is refused of the results; `arguments` cannot be returned, and names of `tensors` not twice."""

    def refusal(message: str, node: ast.AST, advice: str) -> Diagnostic:
        return Diagnostic(code="BW009", message=message, loc=source.location(node), help=advice)

    returns, annotation = returns_of(source), source.node.returns
    if annotation is not None and ast.unparse(annotation).strip("'\"") in _NUMBERS:
        advice = "annotate it as `-> torch.Tensor`: a number that is returned becomes a tensor without dimensions"
        yield refusal("an operator returns tensors, not Python numbers", annotation, advice)
    is_none = isinstance(annotation, ast.Constant) and annotation.value is None
    if annotation is not None and not is_none and not any(map(result_expressions, returns)):
        message = f"`{source.name}` returns nothing, but is annotated as `-> {ast.unparse(annotation)}`"
        yield refusal(message, annotation, "return the result, or annotate it as `-> None`")
    counts = [_count(source, node, native=native) for node in returns]
    wanted = promised(source)
    if len({count for count in counts if count is not None}) > 1:
        advice = "return the same number everywhere"
        yield refusal("the returns differ in how many tensors they give", returns[-1], advice)
    for node, count in zip(returns, counts, strict=True):
        found = resolve(node.value.func, source.captured, source.local) if isinstance(node.value, ast.Call) else None
        kind = found if isinstance(found, type) else None
        if kind is not None and (hasattr(kind, "__dataclass_fields__") or (native and _fields(kind) is not None)):
            message = f"`{kind.__name__}` is returned, and an operator returns tensors"
            advice = f"return a tuple of its parts, and make the `{kind.__name__}` where the operator is called"
            yield refusal(message, node.value or node, advice)
        if count and wanted is not None and count != wanted:
            yield _miscounted(source, node, count)
        for nested in (item for item in result_expressions(node) if isinstance(item, ast.Tuple | ast.List)):
            shown = (part for item in result_expressions(node) for part in _parts(item))
            parts = ", ".join(item.id if isinstance(item, ast.Name) else "..." for item in shown)
            yield refusal("a tuple is one of the results", nested, f"return tensors one by one: `return {parts}`")
        names = [item.id if isinstance(item, ast.Name) else "" for item in result_expressions(node)]
        for place, (name, item) in enumerate(zip(names, result_expressions(node), strict=True)):
            if name in arguments:
                advice = "return nothing, or a new tensor"
                yield refusal(f"`{name}` is an argument and cannot be returned", item, advice)
            elif name in tensors and name in names[:place]:
                yield _repeated(source, item)


def _parts(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def check_results(source: SourceFunction, results: Sequence[object], count: int) -> None:
    """Refuse results of a run if they are not `count`, or if one of them is there twice."""
    returns = [node for node in returns_of(source) if result_expressions(node)]
    if len(results) != count:
        raise CompileError((_miscounted(source, returns[0], len(results)),))
    for place, result in enumerate(results):
        if is_tensor(result) and any(result is other for other in results[:place]):
            shown = [parts for parts in map(result_expressions, returns) if len(parts) == count]
            raise CompileError((_repeated(source, shown[0][place] if len(shown) == 1 else returns[0]),))


def _repeated(source: SourceFunction, node: ast.AST) -> Diagnostic:
    what = f"`{ast.unparse(node)}`" if isinstance(node, ast.expr) else "a tensor"
    message = f"{what} is a result twice: two results cannot share memory"
    return Diagnostic(code="BW009", message=message, loc=source.location(node), help="return it once, or a copy of it")


def _miscounted(source: SourceFunction, node: ast.Return, count: int) -> Diagnostic:
    annotation = source.node.returns
    what = f"annotated as `-> {ast.unparse(annotation)}`" if annotation else "not annotated with how many it returns"
    message = f"this gives {count} tensor{'s' if count != 1 else ''}, and `{source.name}` is {what}"
    kind = "torch.Tensor" if count == 1 else f"tuple[{', '.join(['torch.Tensor'] * count)}]"
    loc = source.location(node.value or node)
    return Diagnostic(code="BW009", message=message, loc=loc, help=f"annotate it as `-> {kind}`")


def miscounted_results(source: SourceFunction, node: ast.Return, count: int) -> CompileError:
    """Return the refusal of a `return` that gives `count` tensors, and not as many as the operator has results."""
    return CompileError((_miscounted(source, node, count),))


def repeated_result(source: SourceFunction, node: ast.expr) -> CompileError:
    """Return the refusal of a result that is the same tensor as one before it."""
    return CompileError((_repeated(source, node),))


# ---------------------------------------------------------------- counting


def promised(source: SourceFunction) -> int | None:
    """Return how many tensors the annotation of the result stands for; None where it does not tell."""
    annotation = source.node.returns
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(annotation, ast.Constant):
        return 0 if annotation.value is None else None
    inner = annotation.slice if isinstance(annotation, ast.Subscript) else None
    name = _last_name(annotation.value if isinstance(annotation, ast.Subscript) else annotation)
    if inner is not None and name in {"tuple", "Tuple"}:
        items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        known = all(_is_tensor(item) for item in items)
        return len(items) if known else None
    return 1 if _is_tensor(annotation) else _fields(_meant(annotation, getattr(source.function, "__globals__", {})))


def _is_tensor(annotation: ast.expr) -> bool:
    """Return whether an annotation is `Tensor`, or jaxtyping's `Float[Tensor, "B C"]`."""
    if isinstance(annotation, ast.Subscript):
        parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
        return len(parts) == 2 and _last_name(parts[0]) == "Tensor"
    return _last_name(annotation) == "Tensor"


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _meant(node: ast.expr, names: Mapping[str, object]) -> object:
    """Return what a name, dotted or not, means."""
    if isinstance(node, ast.Attribute):
        return getattr(_meant(node.value, names), node.attr, None)
    return names.get(node.id) if isinstance(node, ast.Name) else None


def _fields(found: object) -> int | None:
    """Return how many fields a NamedTuple, or one of torch's kinds of results, has."""
    if not (isinstance(found, type) and issubclass(found, tuple)):
        return None
    kind = cast("Any", found)
    return len(kind._fields) if hasattr(kind, "_fields") else getattr(kind, "n_sequence_fields", None)


def _count(source: SourceFunction, node: ast.Return, *, native: bool) -> int | None:
    """Return how many tensors a `return` gives; None where the source does not show it."""
    if not result_expressions(node):
        return 0
    if isinstance(node.value, ast.Tuple | ast.List):
        return len(node.value.elts)
    if native:
        found = resolve(node.value.func, source.captured, source.local) if isinstance(node.value, ast.Call) else None
        return None if isinstance(found, types.FunctionType) and intrinsic(found) is None else 1
    return _given(source, cast("ast.expr", node.value))


def _given(source: SourceFunction, node: ast.expr) -> int | None:
    match node:
        case ast.Tuple() | ast.List():
            return len(node.elts)
        case ast.Name():
            stores = [item for item in all_nodes(source.node) if isinstance(item, ast.Name) and item.id == node.id]
            stores = [item for item in stores if isinstance(item.ctx, ast.Store)]
            made = [item for item in all_nodes(source.node) if isinstance(item, ast.Assign) and item.targets == stores]
            return _given(source, made[0].value) if len(stores) == len(made) == 1 else None
        case ast.Call():
            return _given_by_call(source, node)
        case _:
            return None


def _given_by_call(source: SourceFunction, node: ast.Call) -> int | None:
    """Return how many tensors a call gives: as the fields of a NamedTuple, or the schema of an operator, say."""
    found: Any = resolve(node.func, source.captured, source.local)
    is_method = found is MISSING and isinstance(node.func, ast.Attribute)
    if (fields := _fields(found)) is not None:
        return fields
    name = (intrinsic(found) or "").removeprefix("torch.") if not is_method else _last_name(node.func)
    packet: Any = getattr(sys.modules["torch"].ops.aten, name, None) if name else None
    if packet is None:
        return None
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]  # noqa: SLF001 (torch's name)
    counts = {_given_by(schema) for schema in schemas if _takes(schema, node, own=int(is_method))}
    return counts.pop() if len(counts) == 1 else None


def _given_by(schema: Any) -> int | None:
    kinds = [str(item.type) for item in schema.returns]
    return len(kinds) if all(kind == "Tensor" for kind in kinds) else None


def _takes(schema: Any, node: ast.Call, *, own: int) -> bool:
    """Return whether the source of a call fits a schema; `own` counts the owner of a method."""
    arguments: list[Any] = list(schema.arguments)
    if not schema.returns or not any("Tensor" in str(item.type) for item in arguments):
        return False  # TorchScript's functions of numbers and lists
    positional = [item for item in arguments if not item.kwarg_only]
    words = {item.arg for item in node.keywords}
    if own + len(node.args) > len(positional) or not words <= {item.name for item in arguments}:
        return False
    given = {item.name for item in positional[: own + len(node.args)]} | words
    if any(not item.has_default_value() and item.name not in given for item in arguments):
        return False
    pairs = [*zip(positional[own:], node.args, strict=False)]
    pairs += [(item, word.value) for item in arguments for word in node.keywords if word.arg == item.name]
    return all("int" in str(item.type) for item, value in pairs if _is_integer(value))


def _is_integer(node: ast.expr) -> bool:
    """Return whether an argument is a literal integer, which stands for no tensor and no name of an axis."""
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(value, ast.Constant) and type(value.value) is int
