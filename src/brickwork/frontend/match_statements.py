"""`match` on numbers, texts and tuples of them, written as `if` and `elif` where a function is parsed.

What patterns mean lives here; nothing is typed. A `match` with another pattern stays, and is refused with the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from brickwork.frontend.comprehensions import FreshNames, Substituted, names_in
from brickwork.frontend.syntax import all_nodes
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
        self._names = FreshNames(names_in(node))
        cases = [item for item in all_nodes(node) if isinstance(item, ast.match_case)]
        own = {id(item) for case in cases for item in all_nodes(case) if _is_bound(item, case)}
        self._read = {item.id for item in all_nodes(node) if isinstance(item, ast.Name) and id(item) not in own}

    def visit_Match(self, node: ast.Match) -> ast.stmt | list[ast.stmt]:
        """Return the `if` that chooses among the cases, behind what gives the subject a name."""
        self.generic_visit(node)
        before: list[ast.stmt] = []
        try:
            subject = self._named(node.subject, node, before)
            chosen = [(case, self._chosen(case, subject)) for case in node.cases]
        except UnwrittenError:
            return node
        result: list[ast.stmt] = []
        for case, found in reversed(chosen):
            result = _written(case, found, result)
        if result and isinstance(result[0], ast.If):
            ast.copy_location(result[0], node)
        return [ast.fix_missing_locations(item) for item in (*before, *result)]

    def _chosen(self, case: ast.match_case, subject: ast.expr) -> _Case:
        """Return what a case means; a name that it binds though its guard fails is read in such cases alone."""
        found = _case(case.pattern, subject)
        if case.guard is not None and any(name in self._read for name, _ in found.names):
            raise UnwrittenError
        return found

    def _named(self, subject: ast.expr, node: ast.Match, before: list[ast.stmt]) -> ast.expr:
        """Return a subject that can be read again: names, literals, and tuples of these."""
        if isinstance(subject, ast.Name | ast.Constant):
            return subject
        if isinstance(subject, ast.Tuple):
            parts = [self._named(item, node, before) for item in subject.elts]
            return ast.copy_location(ast.Tuple(parts, ast.Load()), subject)
        name = self._names.fresh("subject")
        made = ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), subject)], subject)
        before.append(ast.copy_location(made, subject))
        return ast.copy_location(ast.Name(name, ast.Load()), subject)


def _is_bound(item: ast.AST, case: ast.match_case) -> bool:
    """Return whether a node is a name that a case binds."""
    bound = {part.name for part in all_nodes(case.pattern) if isinstance(part, ast.MatchAs)}
    return isinstance(item, ast.Name) and item.id in bound


def _written(case: ast.match_case, found: _Case, otherwise: list[ast.stmt]) -> list[ast.stmt]:
    """Return a case as an `if` with the later cases behind its `else`."""
    body: list[ast.stmt] = []
    if found.names:
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name, _ in found.names]
        values = [value for _, value in found.names]
        several = len(targets) > 1
        target = ast.Tuple(targets, ast.Store()) if several else targets[0]
        made = ast.Assign([target], ast.Tuple(values, ast.Load()) if several else values[0])
        body.append(ast.copy_location(made, case.pattern))
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
        case ast.MatchSingleton(value=None):
            return _Case(_compared(subject, ast.Is(), ast.copy_location(ast.Constant(None), pattern), pattern))
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
