"""Loops over the members of groups are two: over groups, and over the members of one.

    for o in range(m):                               for g in range(m // d): for r in range(d):
        for k ..: s += x[o // d, k] * w[o, k]   ->       for k ..: s += x[g, k] * w[g * d + r, k]

One factor is the same for a whole group then, and the members are rows, or columns, of a contraction for each group:
grouped convolutions, and heads that share keys. Iterations keep their order. The nest runs as it was where the last
group is not whole, or groups are small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from brickwork.analysis.contractions import may_sum
from brickwork.analysis.scalars import live_after_loops
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Check,
    Expression,
    For,
    Launch,
    Node,
    Read,
    Statement,
    Symbol,
)
from brickwork.ir.walk import (
    assigned_symbols,
    operands_of,
    rewrite,
    rewrite_statements,
    statements,
    substitute,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.argument_checks import total, without_argument_checks
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import (
    Apart,
    Changed,
    Place,
    each_launch,
    in_branches,
    launches,
    stands_alone,
    worth_tiles,
)
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


@each_launch("matrix")
def with_loops_of_groups(launch: Launch, names: Names, _: Target) -> Changed:
    """Return nests with loops over groups, and over the members of one, and remarks."""
    kernel, asked = without_argument_checks(launch.kernel)
    if len(kernel.body) < len(launch.kernel.body):
        kernel, asked = launch.kernel, ()
    fixed = frozenset(kernel.scalars) - assigned_symbols(kernel.body)
    live = live_after_loops(kernel.body)
    found = [_divided(item, fixed, live, names) for item in kernel.body]
    found = [None if item is None else replace(item, worth=(*asked, *item.worth)) for item in found]
    return launches(launch, found, GROUPS, REMARK)


def _divided(
    statement: Statement, fixed: frozenset[Symbol], live: Mapping[Symbol, frozenset[Symbol]], names: Names
) -> Apart | None:
    """Return a nest, which may stand in conditions, with loops of it in two, and what must hold for that.

    `fixed` variables do not change, and `live` ones are read after a loop.
    """
    worth = dict[Expression, None]()

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        nest = _gathered(statement) if stands_alone(statement, live[statement.index]) else statement
        if is_worth(nest):
            return (statement,)
        for groups in _groups_in(nest, fixed):
            index = groups.loop.index
            pair = [names.symbol(f"{index.name}_{part}", index.dtype) for part in ("group", "member")]
            made = rewrite(nest, partial(_in_two, groups=groups, outer=pair[0], inner=pair[1]))
            if found := is_worth(made):
                divisor = build.apply("maximum", groups.members, build.integer(1))
                rest = build.apply("mod", groups.loop.stop, divisor)
                worth.update(dict.fromkeys(map(total, (*found, build.apply("eq", rest, build.integer(0))))))
                worth.setdefault(build.apply("ge", total(groups.members), build.integer(1)))
                return (made,)
        return (statement,)

    def is_worth(nest: For) -> tuple[Expression, ...] | None:
        band = [*_in_one_another(nest)]
        place = Place((), Ranges(fixed))
        for loop in band:
            place = place.inside(loop)
        body = opened(rewrite_statements(band[-1].body, lambda item: () if isinstance(item, Check) else (item,)))
        ahead = [item for item in body if isinstance(item, Assign)]
        only = next((item for item in body if may_sum(item)), None)
        return None if only is None else worth_tiles(ahead, only, place)

    (made,) = in_branches((statement,), visit)
    return Apart((copied(made, names),), (), (*worth,)) if worth else None


@legality
def _gathered(nest: For) -> For:
    """Return a nest in which what is computed of indices ahead of an inner loop stands where it is used.

    It is assigned once, of loops around and of what does not change: each place in the nest sees the same value.
    """
    counts = Counter(node.symbol for node in statements(nest) if isinstance(node, Assign))

    def visit(loop: For, values: Mapping[Symbol, Expression]) -> For:
        heads = [item for item in loop.body[:-1] if isinstance(item, Assign)]
        here = {**values}
        for item in heads:
            here[item.symbol] = substitute(item.value, here)
        once = all(counts[item.symbol] == 1 and effects(item.value).plain for item in heads)
        match loop.body[len(heads) :]:
            case (For() as last,) if once:
                start, stop = (substitute(bound, values) for bound in (loop.start, loop.stop))
                return replace(loop, start=start, stop=stop, body=(visit(last, here),))
            case _:
                return substitute(loop, values)

    return visit(nest, {})


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
        case Apply(operator=operator, operands=(left, right)) if left == Read(symbol=own) and operator.name == "sub":
            return build.read(inner) if {*operands_of(right, "mul")} == {members, build.read(outer)} else node
        case _:
            return node


@legality
def _groups_in(nest: For, fixed: frozenset[Symbol]) -> Iterator[_Groups]:
    """Yield loops of a nest from 0 on to what the host knows, whose indices are divided by one number that it knows."""
    for loop in _in_one_another(nest):
        known = build.is_constant(loop.start, 0) and effects(loop.stop).made_of(fixed)
        if known and not effects(loop.body).leaves and not effects(loop).draws:
            quotients = (node for node in walk(loop.body) if isinstance(node, Apply) and _divides(node, loop.index))
            sizes = {node.operands[1] for node in quotients}
            yield from (_Groups(loop, each) for each in sizes if len(sizes) == 1 and effects(each).made_of(fixed))


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
