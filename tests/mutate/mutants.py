"""Mutants of the functions that bear a mark: each differs from its function in one condition.

A mutant names the *probe* that tells whether a test can notice it: the expression and the truth value that it has to
take somewhere in the test. Operators whose mutants die with those of others are left out: a negated condition dies
where one forced to true and one forced to false die.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

from tests.mutate.directions import directions

MARKS = {"legality", "hazard"}
PROBE = "__legality_probe__"

Function = ast.FunctionDef
Path_ = tuple[str | int, ...]
Edit = Callable[[ast.AST], ast.AST]
"""Makes the node that takes the place of another; both are its own."""
SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
QUANTIFIERS = {"any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Marked:
    """A function with the mark: its file, its name in it, and where it stands in the syntax tree."""

    file: Path
    name: str
    node: Function
    around: tuple[ast.ClassDef, ...]
    hazard: bool

    @property
    def digest(self) -> str:
        """Tells the function from what it was before it was changed; comments and places do not count."""
        return hashlib.sha256(ast.unparse(self.node).encode()).hexdigest()[:12]

    def code(self, node: Function) -> CodeType:
        """Return the code object of a changed version of the function."""
        bare: ast.stmt = _replaced(node, decorator_list=[], returns=None)
        for outer in reversed(self.around):
            bare = ast.ClassDef(outer.name, bases=[], keywords=[], body=[bare], decorator_list=[])
        future = ast.ImportFrom("__future__", [ast.alias("annotations")], 0)
        module = ast.fix_missing_locations(ast.Module([future, bare], type_ignores=[]))
        return _find(compile(module, str(self.file), "exec"), self.name)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed condition: as it is, as it becomes, the code of the function, and what a test has to see of it."""

    function: Marked
    line: int
    before: str
    after: str
    code: CodeType = field(repr=False)
    probe: tuple[int, bool | None]
    """The number of a probe in the function and the value that it has to take; None where any will do."""


def marked_functions(folder: Path) -> list[Marked]:
    """Return the functions with the mark in the files of a folder."""
    found: list[Marked] = []
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if any(f"@{mark}" in text for mark in MARKS):
            found.extend(_marked(file, ast.parse(text), ()))
    return found


def _marked(file: Path, node: ast.AST, around: tuple[ast.ClassDef, ...]) -> Iterator[Marked]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _marked(file, child, (*around, child))
        elif isinstance(child, Function):
            marks = MARKS & {item.id for item in child.decorator_list if isinstance(item, ast.Name)}
            name = ".".join([outer.name for outer in around] + [child.name])
            if marks:
                yield Marked(file, name, child, around, hazard="hazard" in marks)


# ---------------------------------------------------------------- what is changed


@dataclass(frozen=True, slots=True)
class Change:
    """A node, what takes its place, the expression to watch, and the value that it has to take.

    `wider` is 1 where the new condition holds whenever the old one does, -1 for the reverse, 0 where neither is known.
    """

    place: Path_
    edit: Edit
    watched: Path_ | None
    value: bool | None = None
    wider: int = 0


def mutants(function: Marked) -> list[Mutant]:
    """Return the mutants of a function, each once."""
    changes = list(_changes(function.node, ()))
    numbers = {place: number for number, place in enumerate(probes(function), 1)}
    leads = directions(function.node, hazard=function.hazard)
    seen = {ast.unparse(_simplified(function.node))}
    found: list[Mutant] = []
    for change in changes:
        if change.wider * leads.get(change.place, 0) < 0:
            continue
        node = copy.deepcopy(function.node)
        old = _at(node, change.place)
        before = _text(old)
        new = change.edit(old)
        node = _put(node, change.place, new)
        text = ast.unparse(_simplified(copy.deepcopy(node)))
        if text in seen:
            continue
        seen.add(text)
        watched = 0 if change.watched is None else numbers[change.watched]
        line = getattr(old, "lineno", None) or function.node.lineno
        probe = (watched, change.value if watched else None)
        found.append(Mutant(function, line, before, _text(new), function.code(node), probe))
    return found


def probes(function: Marked) -> list[Path_]:
    """Return the places of the expressions that are watched, in a fixed order."""
    places = (change.watched for change in _changes(function.node, ()))
    return sorted({place for place in places if place is not None}, key=repr)


def instrumented(function: Marked, number: int) -> CodeType:
    """Return code that tells `PROBE` of each call, and of the truth values of what is watched."""
    node = copy.deepcopy(function.node)
    places = list(enumerate(probes(function), 1))
    for probe, place in sorted(places, key=lambda item: -len(item[1])):
        node = _put(node, place, _call(number, probe, _at(node, place)))
    return function.code(_replaced(node, body=[ast.Expr(_call(number, 0, ast.Constant(True))), *node.body]))


def _call(number: int, probe: int, value: ast.AST) -> ast.Call:
    return ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant(number), ast.Constant(probe), value], [])


def _changes(node: ast.AST, place: Path_) -> Iterator[Change]:
    """Yield the changes of a node and of all inside it."""
    yield from _roots(node, place)
    match node:
        case ast.BoolOp(op=op, values=values):
            for at in range(len(values)):
                either = isinstance(op, ast.Or)
                yield Change(place, _without("values", at), (*place, "values", at), either, -1 if either else 1)
        case ast.BinOp(op=ast.BitOr()):
            # `a | b | c` is `(a | b) | c`: the left operand alone is what drops the last one.
            yield Change(place, _side("left"), None, wider=-1)
            if not _is_union(node.left):
                yield Change(place, _side("right"), None, wider=-1)
        case ast.Compare(ops=ops):
            for at, op in enumerate(ops):
                if type(op) in SWAPPED:
                    closed = type(op) in {ast.LtE, ast.GtE}
                    seen = closed if len(ops) == 1 else None
                    yield Change(place, _swapped(at), place, seen, -1 if closed else 1)
                if isinstance(op, ast.In | ast.NotIn):
                    yield from _members(node.comparators[at], (*place, "comparators", at))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            if name in QUANTIFIERS and arguments:
                yield Change(place, _quantified, place)
            for at, argument in enumerate(arguments):
                yield from _members(argument, (*place, "args", at))
        case ast.comprehension(iter=source) | ast.For(iter=source):
            yield from _members(source, (*place, "iter"))
        case ast.Assign(targets=[ast.Name()], value=value):
            yield from _members(value, (*place, "value"))
        case ast.MatchOr(patterns=patterns):
            for at in range(len(patterns)):
                yield Change(place, _without("patterns", at), None, wider=-1)
        case ast.Match(cases=cases):
            for at in range(len(cases) - 1):
                yield Change(place, _without("cases", at), None, wider=-1)
        case _:
            pass
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "args"} and isinstance(node, Function | ast.AnnAssign):
            continue
        if isinstance(value, ast.AST):
            yield from _changes(value, (*place, name))
        elif isinstance(value, list):
            for at, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield from _changes(item, (*place, name, at))


def _roots(node: ast.AST, place: Path_) -> Iterator[Change]:
    """Yield the changes that force a whole condition."""
    match node:
        case ast.If() | ast.IfExp():
            yield from _forced((*place, "test"))
        case ast.While():
            yield Change((*place, "test"), _constant(False), (*place, "test"), True, -1)
        case ast.comprehension(ifs=ifs):
            for at in range(len(ifs)):
                yield from _forced((*place, "ifs", at))
        case ast.match_case(guard=ast.expr()):
            yield from _forced((*place, "guard"))
        case ast.Return(value=value) if _is_condition(value):
            yield from _forced((*place, "value"))
        case _:
            pass


def _is_condition(value: ast.expr | None) -> bool:
    match value:
        case ast.BoolOp(values=values):
            return all(map(_is_condition, values))
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(func=ast.Name(id=name)):
            return name in {"any", "all", "isinstance", "bool"}
        case _:
            return False


def _forced(place: Path_) -> Iterator[Change]:
    yield Change(place, _constant(True), place, False, 1)
    yield Change(place, _constant(False), place, True, -1)


def _members(node: ast.AST, place: Path_) -> Iterator[Change]:
    """Yield the changes that drop a member of a literal collection."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List) and len(node.elts) > 1:
        for at in range(len(node.elts)):
            yield Change(place, _without("elts", at), None, wider=-1)


# ---------------------------------------------------------------- edits


def _constant(value: bool) -> Edit:
    return lambda _: ast.Constant(value)


def _side(name: str) -> Edit:
    return lambda node: getattr(node, name)


def _without(name: str, at: int) -> Edit:
    def edit(node: ast.AST) -> ast.AST:
        rest = [item for place, item in enumerate(getattr(node, name)) if place != at]
        alone = len(rest) == 1 and isinstance(node, ast.BoolOp | ast.MatchOr)
        return rest[0] if alone else _replaced(node, **{name: rest})

    return edit


def _is_union(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)


def _swapped(at: int) -> Edit:
    def edit(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Compare)
        ops = [SWAPPED[type(op)]() if place == at else op for place, op in enumerate(node.ops)]
        return _replaced(node, ops=ops)

    return edit


def _quantified(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _replaced(node, func=ast.Name(QUANTIFIERS[node.func.id], ast.Load()))


def _replaced(node, **changes):
    """Return a copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new


class _Simplifier(ast.NodeTransformer):
    """Takes constants out of conditions, so that mutants that say the same have the same text."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        ends = isinstance(node.op, ast.Or)
        values: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                if value.value is ends:
                    return ast.Constant(ends)
                continue
            values.append(value)
        if not values:
            return ast.Constant(not ends)
        return values[0] if len(values) == 1 else _replaced(node, values=values)


def _simplified(node: Function) -> ast.AST:
    return _Simplifier().visit(copy.deepcopy(node))


# ---------------------------------------------------------------- places


def _at(node, place: Path_):
    for step in place:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def _put(node, place: Path_, new: ast.AST):
    if not place:
        return new
    *way, last = place
    parent = _at(node, tuple(way))
    if isinstance(last, int):
        parent[last] = new
    else:
        setattr(parent, last, new)
    return node


def _text(node: ast.AST) -> str:
    match node:
        case ast.Match(subject=subject, cases=cases):
            return f"match {ast.unparse(subject)}: " + "; ".join(f"case {ast.unparse(case.pattern)}" for case in cases)
        case _:
            return " ".join(ast.unparse(node).split())


def _find(code: CodeType, name: str) -> CodeType:
    """Return the code object of a function inside that of a module."""
    parts = name.split(".")
    for part in parts:
        code = next(item for item in code.co_consts if isinstance(item, CodeType) and item.co_name == part)
    return code
