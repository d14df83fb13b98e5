"""Which way a condition of a marked function leads: to more changes of programs, or to fewer.

A mutant that lets a function refuse more often makes programs slower, never wrong. Where the syntax shows that it is
one of these, it is left out: what is asked is whether a condition that makes a change legal can be dropped unnoticed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Place = tuple[str | int, ...]


def directions(function: ast.FunctionDef, *, hazard: bool) -> dict[Place, int]:
    """Return the places of expressions with 1 if more is allowed where they hold more often, -1 if less is.

    A function of legality allows what it answers True or a value; one of hazards allows what it answers False or None.
    """
    found: dict[Place, int] = {}
    if not hazard:
        for place, rewriter in _functions(function, ()):
            given = {argument.arg for argument in rewriter.args.args}
            for inner, node in _places(rewriter, place):
                if isinstance(node, ast.Match):
                    _note_match(node, inner, lambda value, given=given: _is_given(value, given), found)
    truth = isinstance(function.returns, ast.Name) and function.returns.id == "bool"
    given = {argument.arg for argument in function.args.args}
    for place, node in _places(function, ()):
        match node:
            case ast.Return(value=ast.expr() as value) if truth:
                _note(value, (*place, "value"), -1 if hazard else 1, found)
            case ast.If(test=test, body=[ast.Return(value=ast.Constant(value=bool() as answer))]) if truth:
                _note(test, (*place, "test"), 1 if answer is not hazard else -1, found)
            case ast.If(test=test, body=[ast.Return(value=value)]) if not (truth or hazard) and _refuses(value, given):
                _note(test, (*place, "test"), -1, found)
            case ast.Return(value=ast.IfExp(test=test, body=body, orelse=otherwise)) if not (truth or hazard):
                refused = _refuses(body, given), _refuses(otherwise, given)
                if refused[0] is not refused[1]:
                    _note(test, (*place, "value", "test"), -1 if refused[0] else 1, found)
            case ast.Match():
                _note_match(
                    node,
                    place,
                    lambda value: _denies(value, hazard) if truth else not hazard and _refuses(value, given),
                    found,
                )
            case _:
                pass
    return found


def _answer(case: ast.match_case) -> ast.expr | None:
    """Return what a case returns, if it does nothing else."""
    match case.body:
        case [ast.Return(value=value)]:
            return value or ast.Constant(None)
        case _:
            return None


def _denies(value: ast.expr | None, hazard: bool) -> bool:
    """Whether an answer of a function that says True or False always forbids."""
    return isinstance(value, ast.Constant) and value.value is hazard


def _note_match(node: ast.Match, place: Place, refuses: Callable[[ast.expr], bool], found: dict[Place, int]) -> None:
    """Note the directions of cases that return something before one that refuses: each of them is legal by itself."""
    answers = [_answer(case) for case in node.cases]
    *cases, last = node.cases
    if not isinstance(last.pattern, ast.MatchAs) or last.pattern.pattern or last.guard:
        return
    refusals = [answer is not None and refuses(answer) for answer in answers]
    if None in answers or not refusals.pop():
        return
    if not any(refusals):
        found[place] = 1
    for at, (case, refusal) in enumerate(zip(cases, refusals, strict=True)):
        direction = -1 if refusal else 1
        found[*place, "cases", at, "pattern"] = direction
        if case.guard is not None:
            _note(case.guard, (*place, "cases", at, "guard"), direction, found)


def _functions(node: ast.AST, place: Place) -> Iterator[tuple[Place, ast.FunctionDef]]:
    """Yield the functions inside a function, with their places."""
    for inner, statement in _places(node, place, functions=True):
        if isinstance(statement, ast.FunctionDef):
            yield inner, statement


def _is_given(value: ast.expr | None, given: set[str]) -> bool:
    """Whether an answer is what was given, unchanged."""
    match value:
        case ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name)]):
            return name in given
        case _:
            return False


def _places(node: ast.AST, place: Place, *, functions: bool = False) -> Iterator[tuple[Place, ast.AST]]:
    """Yield the statements inside a node, with their places; those of functions inside only if that is said."""
    for name in ("body", "orelse", "cases"):
        items = getattr(node, name, ())
        for at, item in enumerate(items if isinstance(items, list) else ()):
            if functions or not isinstance(item, ast.FunctionDef):
                yield (*place, name, at), item
                yield from _places(item, (*place, name, at), functions=functions)


def _refuses(value: ast.expr | None, given: set[str]) -> bool:
    """Whether an answer is nothing, or what was given, unchanged."""
    match value:
        case None | ast.Constant(value=None) | ast.Tuple(elts=[]):
            return True
        case _:
            return _is_given(value, given)


def _note(node: ast.expr, place: Place, direction: int, found: dict[Place, int]) -> None:
    """Note the direction of an expression and of the conditions inside it."""
    found[place] = direction
    match node:
        case ast.BoolOp(values=values):
            for at, value in enumerate(values):
                _note(value, (*place, "values", at), direction, found)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _note(operand, (*place, "operand"), -direction, found)
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[ast.GeneratorExp(elt=element, generators=loops)]):
            _note(element, (*place, "args", 0, "elt"), direction, found)
            for at, loop in enumerate(loops):
                for number, test in enumerate(loop.ifs):
                    where = (*place, "args", 0, "generators", at, "ifs", number)
                    _note(test, where, direction if name == "any" else -direction, found)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            _note_kinds(kinds, (*place, "args", 1), direction, found)
        case ast.Compare(ops=[ast.In() | ast.NotIn() as op]):
            found[*place, "comparators", 0] = direction if isinstance(op, ast.In) else -direction
        case ast.NamedExpr(value=value):
            _note(value, (*place, "value"), direction, found)
        case _:
            pass


def _note_kinds(kinds: ast.expr, place: Place, direction: int, found: dict[Place, int]) -> None:
    found[place] = direction
    if isinstance(kinds, ast.BinOp):
        _note_kinds(kinds.left, (*place, "left"), direction, found)
        _note_kinds(kinds.right, (*place, "right"), direction, found)
