"""`match` on numbers, texts and tuples of them, written as `if` and `elif` where a function is parsed.

What patterns mean lives here; nothing is typed. A `match` with another pattern stays, and is refused with the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from brickwork.frontend.comprehensions import Substituted
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class _Case:
    """A case: when it is taken (None: always), and the names that it binds."""

    test: ast.expr | None
    names: tuple[tuple[str, ast.expr], ...] = ()


class UnwrittenError(Exception):
    """A pattern that has no such form."""


class Matches(ast.NodeTransformer):
    """Writes each `match` as a chain of `if`s."""

    def __init__(self, node: ast.FunctionDef) -> None:
        """Take the names that the function uses."""
        self._taken = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}

    def visit_Match(self, node: ast.Match) -> ast.stmt | list[ast.stmt]:
        """Return the `if` that chooses among the cases, behind what gives the subject a name."""
        self.generic_visit(node)
        before: list[ast.stmt] = []
        try:
            subject = self._named(node.subject, node, before)
            chosen = [(case, _case(case.pattern, subject)) for case in node.cases]
        except UnwrittenError:
            return node
        result: list[ast.stmt] = []
        for case, found in reversed(chosen):
            result = _written(case, found, result)
        if result and isinstance(result[0], ast.If):
            ast.copy_location(result[0], node)
        return [ast.fix_missing_locations(item) for item in (*before, *result)]

    def _named(self, subject: ast.expr, node: ast.Match, before: list[ast.stmt]) -> ast.expr:
        """Return a subject that can be read again: names, literals, and tuples of these."""
        if isinstance(subject, ast.Name | ast.Constant):
            return subject
        if isinstance(subject, ast.Tuple):
            parts = [self._named(item, node, before) for item in subject.elts]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), subject)
        name, number = "subject", 1
        while name in self._taken:
            number += 1
            name = f"subject_{number}"
        self._taken.add(name)
        made = ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), subject)], subject)
        before.append(ast.copy_location(made, subject))
        return ast.copy_location(ast.Name(name, ast.Load()), subject)


def _written(case: ast.match_case, found: _Case, otherwise: list[ast.stmt]) -> list[ast.stmt]:
    """Return a case as an `if` with the later cases behind its `else`."""
    body: list[ast.stmt] = []
    for name, value in found.names:
        target = ast.copy_location(ast.Name(name, ast.Store()), case.pattern)
        body.append(ast.copy_location(ast.Assign([target], value), case.pattern))
    tests = [item for item in (found.test, case.guard) if item is not None]
    if found.names and case.guard is not None:
        tests[-1] = Substituted(dict(found.names)).visit(case.guard)
    body += case.body
    if not tests:
        return body
    test = tests[0] if len(tests) == 1 else ast.copy_location(ast.BoolOp(ast.And(), tests), case.pattern)
    return [ast.copy_location(ast.If(test, body, otherwise), case.pattern)]


def _case(pattern: ast.pattern, subject: ast.expr) -> _Case:
    match pattern:
        case ast.MatchValue(value=value):
            return _Case(_compared(subject, ast.Eq(), value, pattern))
        case ast.MatchSingleton(value=value):
            operator = ast.Is() if value is None else ast.Eq()
            return _Case(_compared(subject, operator, ast.copy_location(ast.Constant(value), pattern), pattern))
        case ast.MatchAs(pattern=None, name=None):
            return _Case(None)
        case ast.MatchAs(pattern=inner, name=str() as name):
            found = _Case(None) if inner is None else _case(inner, subject)
            return _Case(found.test, (*found.names, (name, subject)))
        case ast.MatchOr(patterns=patterns):
            cases = [_case(item, subject) for item in patterns]
            tests = [item.test for item in cases if item.test is not None]
            if any(item.names for item in cases):
                raise UnwrittenError
            every = len(tests) < len(cases)
            return _Case(None if every else ast.copy_location(ast.BoolOp(ast.Or(), [*tests]), pattern))
        case ast.MatchSequence(patterns=patterns) if isinstance(subject, ast.Tuple):
            return _sequence(patterns, subject, pattern)
        case _:
            raise UnwrittenError


def _sequence(patterns: Sequence[ast.pattern], subject: ast.Tuple, pattern: ast.pattern) -> _Case:
    if len(patterns) != len(subject.elts) or any(isinstance(item, ast.MatchStar) for item in patterns):
        raise UnwrittenError
    cases = [_case(item, part) for item, part in zip(patterns, subject.elts, strict=True)]
    tests = [item.test for item in cases if item.test is not None]
    names = tuple(name for item in cases for name in item.names)
    if len(tests) < 2:
        return _Case(tests[0] if tests else None, names)
    return _Case(ast.copy_location(ast.BoolOp(ast.And(), tests), pattern), names)


def _compared(subject: ast.expr, operator: ast.cmpop, value: ast.expr, pattern: ast.pattern) -> ast.expr:
    return ast.copy_location(ast.Compare(subject, [operator], [value]), pattern)
