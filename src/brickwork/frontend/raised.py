"""What a `raise` raises, by syntax and captured names alone: which exceptions there are, and which have no form."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from brickwork.frontend.environment import intrinsic, resolve
from brickwork.ir.nodes import FailureKind

RAISED = {f"builtins.{kind.value}": kind for kind in FailureKind if kind is not FailureKind.MEMORY}
"""The exceptions that compiled code may raise."""


def only_raise(statements: Sequence[ast.stmt]) -> ast.Raise | None:
    """Return the statement of a branch that does nothing but raise."""
    only = statements[0] if len(statements) == 1 else None
    return only if isinstance(only, ast.Raise) else None


def raised_kind(node: ast.Raise, captured: Mapping[str, object], local: frozenset[str]) -> FailureKind | None:
    """Return which exception is raised; None for one that is not among them."""
    called = _class_of(node)
    return None if called is None else RAISED.get(intrinsic(resolve(called, captured, local)) or "")


def is_raised(node: ast.Raise, captured: Mapping[str, object], local: frozenset[str]) -> bool:
    """Return whether compiled code may raise this."""
    return raised_kind(node, captured, local) is not None and text_of(node) is not None


def text_of(node: ast.Raise) -> list[ast.expr] | None:
    """Return what the exception is made with, at most one text; None of another form."""
    if not isinstance(node.exc, ast.Call):
        return []
    return None if len(node.exc.args) > 1 or node.exc.keywords else node.exc.args


def not_raised(node: ast.Raise) -> tuple[str, str]:
    """Return the refusal of another exception, and what to write."""
    called = _class_of(node)
    if called is None:
        return "`raise` names no exception here", 'write `raise ValueError("...")`'
    known = ", ".join(sorted(kind.value for kind in RAISED.values()))
    if text_of(node) is None:
        return "an exception takes one text here", f'write `raise {ast.unparse(called)}("...")`'
    return f"`{ast.unparse(called)}` cannot be raised in compiled code", f"raise one of {known}"


def _class_of(node: ast.Raise) -> ast.expr | None:
    return node.exc.func if isinstance(node.exc, ast.Call) else node.exc
