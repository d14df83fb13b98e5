"""Parameters that are one of a few literals, `Literal["sum", "mean"]`: a test of that at the head of the body."""

from __future__ import annotations

import ast
from dataclasses import replace

from brickwork.frontend.parameters import choices
from brickwork.frontend.source import SourceFunction


def with_choices(source: SourceFunction) -> SourceFunction:
    """Return the function with a ValueError for what the annotation of a parameter does not name."""
    arguments, made = source.node.args, list[ast.stmt]()
    for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        written = choices(item.annotation) if item.annotation is not None else ()
        if not written:
            continue
        *before, last = map(repr, written)
        wanted = f"{', '.join(before)} or {last}" if before else last
        message = f"argument {item.arg} of {source.name} must be {wanted}, not "
        given = ast.FormattedValue(ast.Name(item.arg, ast.Load()), ord("r"), None)
        said = ast.JoinedStr([ast.Constant(message), given])
        raised = ast.Raise(ast.Call(ast.Name("ValueError", ast.Load()), [said], []))
        statement = ast.If(ast.parse(f"{item.arg} not in {written!r}", mode="eval").body, [raised], [])
        for each in ast.walk(statement):
            ast.copy_location(each, item)
        made.append(statement)
    if not made:
        return source
    first = source.node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    source.node.body[int(documented) : int(documented)] = made
    return replace(source, captured={**source.captured, "ValueError": ValueError})
