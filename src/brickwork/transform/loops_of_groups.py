"""Loops over the members of groups are two: over groups, and over the members of one.

    for o in range(m):                               for g in range(m // d): for r in range(d):
        for k ..: s += x[o // d, k] * w[o, k]   ->       for k ..: s += x[g, k] * w[g * d + r, k]

One factor is the same for a whole group then, and the members are rows, or columns, of a contraction for each group:
grouped convolutions, and heads that share keys. Iterations keep their order. The nest runs as it was where the last
group is not whole, or groups are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.analysis.contractions import grouped
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Check,
    Expression,
    For,
    If,
    Launch,
    Node,
    Program,
    Read,
    Statement,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, operands_of, read_symbols, rewrite, rewrite_statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.matrix import LEAST_SIDE
from brickwork.target.target import Target
from brickwork.transform.argument_checks import total
from brickwork.transform.free_variables import fresh_names
from brickwork.transform.nests_apart import Apart, Changed, launches, with_each
from brickwork.transform.schedule.contract_loops import opened
from brickwork.transform.scratch import Names, copied

GROUPS = "_groups"
"""Ends the names of kernels with loops over groups."""
REMARK = "where groups are whole, and have rows enough for tiles"
"""What `explain` says of them."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """A loop whose index is divided by how many members a group has."""

    loop: For
    members: Expression


def with_loops_of_groups(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return the program with loops over groups, and over the members of one, and remarks."""
    if not target.matrix:
        return program, {}
    names = fresh_names(program)

    def change(launch: Launch) -> Changed:
        kernel = launch.kernel
        fixed = frozenset(kernel.scalars) - assigned_symbols(kernel.body)
        return launches(launch, [_divided(item, fixed, names) for item in kernel.body], GROUPS, REMARK)

    return with_each(program, change)


def _divided(statement: Statement, fixed: frozenset[Symbol], names: Names) -> Apart | None:
    """Return a nest, which may stand in conditions, with a loop of it in two, and what must hold for that.

    `fixed` variables do not change.
    """
    worth = dict[Expression, None]()

    def visit(statement: Statement) -> Statement:
        match statement:
            case If(then=then, otherwise=otherwise):
                return replace(statement, then=tuple(map(visit, then)), otherwise=tuple(map(visit, otherwise)))
            case For():
                groups = next(_groups_in(statement, fixed), None)
                if groups is None:
                    return statement
                members = total(groups.members)
                rest = build.apply("mod", groups.loop.stop, build.apply("maximum", members, build.integer(1)))
                worth[build.apply("ge", members, build.integer(LEAST_SIDE))] = None
                worth[build.apply("eq", rest, build.integer(0))] = None
                index = groups.loop.index
                pair = [names.symbol(f"{index.name}_{part}", index.dtype) for part in ("group", "member")]
                return rewrite(statement, lambda node: _in_two(node, groups, *pair))
            case _:
                return statement

    made = visit(statement)
    return Apart((copied(made, names),), (), (*worth,)) if worth else None


def _in_two(node: Node, groups: _Groups, outer: Symbol, inner: Symbol) -> Node:
    """Return a node of the nest with the loop in two; those in it come first."""
    own, members = groups.loop.index, groups.members
    match node:
        case For(index=index, stop=stop, body=body) if index == own:
            place = build.add(build.mul(build.read(outer), members), build.read(inner))
            body = tuple(rewrite(item, lambda each: place if each == Read(symbol=own) else each) for item in body)
            each = replace(node, index=inner, stop=members, body=body)
            return replace(node, index=outer, stop=build.apply("floordiv", stop, members), body=(each,))
        case Apply(operator=operator, operands=(left, right)) if left == Read(symbol=own) and right == members:
            if operator.name == "floordiv":
                return build.read(outer)
            return build.read(inner) if operator.name == "mod" else node
        case _:
            return node


@legality
def _groups_in(nest: For, fixed: frozenset[Symbol]) -> Iterator[_Groups]:
    """Yield loops of a nest from 0 on to what the host knows, with groups that one factor of a product goes with alone.

    The host knows how many members groups have, all the same many. A nest with rows and columns needs no groups.
    """
    band = [*_in_one_another(nest)]
    body = rewrite_statements(band[-1].body, lambda item: () if isinstance(item, Check) else (item,))
    if grouped(opened(body), [each.index for each in band]) is not None:
        return
    for loop in band:
        known = build.is_constant(loop.start, 0) and effects(loop.stop).made_of(fixed)
        if known and not effects(loop.body).leaves and not effects(loop).draws:
            sizes = {
                node.operands[1] for node in walk(loop.body) if isinstance(node, Apply) and _divides(node, loop.index)
            }
            for members in sizes if len(sizes) == 1 else ():
                if effects(members).made_of(fixed) and _is_shared(loop, members):
                    yield _Groups(loop, members)


def _in_one_another(nest: For) -> Iterator[For]:
    """Yield the loops of a nest that have no other statement beside them."""
    loop: Statement = nest
    while isinstance(loop, For):
        yield loop
        if len(loop.body) != 1:
            return
        loop = loop.body[0]


def _divides(node: Apply, index: Symbol) -> bool:
    """Whether a node is the quotient of an index."""
    return node.operator.name == "floordiv" and node.operands[0] == Read(symbol=index)


def _is_shared(loop: For, members: Expression) -> bool:
    """Whether one factor of some product is the same for a group, and another one is not."""

    def visit(node: Node) -> Node:
        grouped = isinstance(node, Apply) and _divides(node, loop.index) and node.operands[1] == members
        return build.integer(0) if grouped else node

    moving = _computed_from(loop.index, loop.body)
    alone = _computed_from(loop.index, tuple(rewrite(item, visit) for item in loop.body))

    def is_of_group(node: Node) -> bool:
        return bool(read_symbols(node) & moving) and not read_symbols(rewrite(node, visit)) & alone

    for node in walk(loop.body):
        if isinstance(node, Apply) and node.operator.name == "mul" and node.dtype.is_float:
            factors = [*operands_of(node, "mul")]
            others = [read_symbols(rewrite(each, visit)) & alone for each in factors]
            if any(map(is_of_group, factors)) and any(others):
                return True
    return False


def _computed_from(index: Symbol, body: Block) -> frozenset[Symbol]:
    """Return a loop's index with the variables that a body computes from it."""
    found = {index}
    for node in walk(body):
        if isinstance(node, Assign) and read_symbols(node.value) & found:
            found.add(node.symbol)
    return frozenset(found)
