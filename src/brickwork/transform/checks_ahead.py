"""Contractions of rows that elements say: the checks of these places are made ahead, once for each of them.

    for i ...: for j ...:                       for i ...: check(0 <= at[i] < len(x))
        s = 0.0                                 for i ...: for j ...:
        for k ...:                                  s = 0.0
            check(0 <= at[i] < len(x))     ->       for k ...: s += x[clamped(at[i]), k] * w[k, j]
            s += x[at[i], k] * w[k, j]              if 0 <= at[i] < len(x): y[i, j] = s
        y[i, j] = s

For grids, where a check that fails ends its own thread alone, and other kernels go on. A nest without checks may run in
tiles. Where a sum goes through such places its result is not kept back: it belongs to a new tensor then, which nobody
has after the failure. Invariant: a check is made if one of the nest would be made, and no access is out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cache

from brickwork.analysis.analyse import analyse
from brickwork.analysis.contractions import may_sum
from brickwork.analysis.scalars import live_after_loops
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Check,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Node,
    Program,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.guard import conjunction, range_check
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import (
    Apart,
    Changed,
    Place,
    in_branches,
    launches,
    stands_alone,
    with_each,
    worth_tiles,
)
from brickwork.transform.schedule.contract_loops import opened
from brickwork.transform.scratch import Names, copied, names_of

CHECKED = "_checked"
"""Ends the names of kernels whose checks are made ahead."""
REMARK = "where sums of products are worth tiles, after checks of the places that elements say"
"""What `explain` says of them."""


def with_checks_ahead(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return the program with kernels that check ahead which rows contractions read, and remarks on them."""
    if not target.matrix:
        return program, {}
    names = names_of(program)
    made = frozenset(item.tensor for item in walk(program.body) if isinstance(item, Allocate))

    def change(launch: Launch) -> Changed:
        kernel, analysed = launch.kernel, cache(lambda: analyse(launch.kernel))
        return launches(launch, [_ahead(item, kernel, analysed, made, names) for item in kernel.body], CHECKED, REMARK)

    return with_each(program, change)


def _ahead(
    statement: Statement, kernel: Kernel, analysed: Callable[[], Analysis], made: frozenset[Tensor], names: Names
) -> Apart | None:
    """Return contractions behind their checks; they may stand in conditions. None for what has none to be made ahead.

    Tensors that are `made` in the program are new.
    """
    worth: list[Expression] = []

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or not _reads_places(statement):
            return (statement,)
        if (found := _of_nest(statement, kernel, analysed(), made)) is None:
            return (statement,)
        worth.extend(found[1])
        return tuple(copied(item, names) for item in found[0])

    nests = in_branches((statement,), visit)
    return Apart(nests, (), tuple(worth)) if worth else None


def _of_nest(
    nest: For, kernel: Kernel, analysis: Analysis, made: frozenset[Tensor]
) -> tuple[Block, tuple[Expression, ...]] | None:
    """Return checks, and the contraction of a nest without them, and what makes it worth tiles."""
    constant = frozenset(kernel.tensors) - effects(kernel.body).changes
    fixed = frozenset(kernel.scalars) - assigned_symbols(kernel.body)
    band = [_with_places(nest, constant)]
    while len(band[-1].body) == 1 and isinstance(inner := band[-1].body[0], For):
        band.append(inner)
    body = opened(band[-1].body)
    place = next((place for place, item in enumerate(body) if may_sum(item)), None)
    checked = {key for key, verdict in analysis.bounds.items() if verdict.bound is Bound.CHECKED}
    if place is None or effects(nest).leaves or effects(nest).draws:
        return None
    if not stands_alone(nest, live_after_loops(kernel.body)[nest.index]):
        return None
    before, after = body[:place], body[place + 1 :]
    numbers = {node.access for node in walk((*before, *after)) if isinstance(node, Load | Store)}
    if any(access in numbers for access, _ in checked):
        return None
    checks = _Checks(frozenset(checked), constant, fixed)
    try:
        (only,) = checks.block((body[place],), band, ())
    except _UncheckedError:
        return None
    around = Place((), Ranges(fixed))
    for loop in band:
        around = around.inside(loop)
    worth = worth_tiles([item for item in before if isinstance(item, Assign)], only, around)
    held = checks.held(band)
    if worth is None or not checks.nests or (held is None and not _stores_into(after, made)):
        return None
    behind = (If(condition=held, then=after),) if held is not None and after else after
    block: Block = (*before, only, *behind)
    for loop in reversed(band):
        block = (replace(loop, body=block),)
    return (*checks.nests, *block), worth


def _reads_places(nest: For) -> bool:
    """Whether an index in a nest is an element, or computed from one."""
    read = {node.symbol for node in statements(nest) if isinstance(node, Assign) and effects(node.value).loads}
    indices = [index for node in walk(nest) if isinstance(node, Load) for index in node.indices]
    return any(effects(index).loads or read_symbols(index) & read for index in indices)


def _stores_into(block: Block, tensors: frozenset[Tensor]) -> bool:
    """Whether a block stores into these tensors alone."""
    return all(node.tensor in tensors for node in statements(block) if isinstance(node, Store))


@legality
def _with_places(nest: For, constant: frozenset[Tensor]) -> For:
    """Return a nest in which integers that are read from elements stand where they are used.

    They are assigned once, and made of loops' indices and of elements that stay as they are.
    """
    counts = [node.symbol for node in statements(nest) if isinstance(node, Assign)]

    def visit(block: Block, values: dict[Symbol, Expression]) -> Block:
        result: list[Statement] = []
        for statement in block:
            match statement:
                case Assign(symbol=symbol, value=value):
                    value = substitute(value, values)
                    reads = {node.tensor for node in walk(value) if isinstance(node, Load)}
                    own = read_symbols(value) & {*counts}
                    if counts.count(symbol) == 1 and symbol.dtype.is_integer and reads <= constant and not own:
                        values[symbol] = value
                        continue
                    result.append(replace(statement, value=value))
                case For(start=start, stop=stop, body=body):
                    bounds = [substitute(bound, values) for bound in (start, stop)]
                    inner = visit(body, {**values})
                    result.append(replace(statement, start=bounds[0], stop=bounds[1], body=inner))
                case If(condition=condition, then=then, otherwise=otherwise):
                    blocks = [visit(each, {**values}) for each in (then, otherwise)]
                    asked = substitute(condition, values)
                    result.append(replace(statement, condition=asked, then=blocks[0], otherwise=blocks[1]))
                case _:
                    result.append(substitute(statement, values))
        return tuple(result)

    return replace(nest, body=visit(nest.body, {}))


class _UncheckedError(Exception):
    """A check cannot be made ahead."""


@dataclass(slots=True)
class _Checks:
    """The checks of a sum, each in a nest of the loops that it goes with; `checked` are the axes of accesses."""

    checked: frozenset[tuple[int, int]]
    constant: frozenset[Tensor]
    fixed: frozenset[Symbol]
    nests: dict[Statement, None] = field(default_factory=dict[Statement, None])
    conditions: list[tuple[Expression, frozenset[Symbol]]] = field(
        default_factory=list[tuple[Expression, frozenset[Symbol]]]
    )
    """What each asks, and of which loops."""

    def held(self, band: Sequence[For]) -> Expression | None:
        """Return whether all checks of an element's sum hold; None if the sum's loops go through some of them."""
        own = frozenset(loop.index for loop in band)
        if any(not loops <= own for _, loops in self.conditions):
            return None
        return conjunction(dict.fromkeys(condition for condition, _ in self.conditions))

    def block(self, block: Block, loops: Sequence[For], asked: Sequence[Expression]) -> Block:
        """Return a block without checks, which stands in some loops and conditions."""
        result: list[Statement] = []
        for statement in block:
            match statement:
                case For(start=start, stop=stop, body=body) if not effects((start, stop)).loads:
                    result.append(replace(statement, body=self.block(body, (*loops, statement), asked)))
                case If(condition=condition, then=then, otherwise=()):
                    condition = self.expression(condition, loops, asked)
                    result.append(
                        replace(statement, condition=condition, then=self.block(then, loops, (*asked, condition)))
                    )
                case Assign(value=value):
                    result.append(replace(statement, value=self.expression(value, loops, asked)))
                case _:
                    raise _UncheckedError
        return tuple(result)

    def expression(self, expression: Expression, loops: Sequence[For], asked: Sequence[Expression]) -> Expression:
        """Return an expression whose indices are in range whatever elements say."""

        def visit(node: Node) -> Node:
            if not isinstance(node, Load):
                return node
            indices = [*node.indices]
            for axis in range(len(indices)):
                if (node.access, axis) in self.checked:
                    self.check(range_check(node, axis), loops, asked)
                    last = build.sub(build.size(node.tensor, axis), build.integer(1))
                    natural = build.apply("maximum", indices[axis], build.integer(0))
                    indices[axis] = build.apply("minimum", natural, last)
            return replace(node, indices=tuple(indices))

        return rewrite(expression, visit)

    @legality
    def check(self, check: Check, loops: Sequence[For], asked: Sequence[Expression]) -> None:
        """Note a check in a nest of the loops that it, or a condition around it, goes with; others have to run."""
        wanted = read_symbols((check.condition, *asked, *(end for loop in loops for end in (loop.start, loop.stop))))
        own = [loop for loop in loops if loop.index in wanted]
        others = [build.apply("lt", loop.start, loop.stop) for loop in loops if loop.index not in wanted]
        known = self.fixed | {loop.index for loop in own}
        parts = (check.condition, *asked, *others)
        reads = {node.tensor for node in walk(parts) if isinstance(node, Load)}
        if not others or not read_symbols(parts) <= known or not reads <= self.constant:
            raise _UncheckedError
        block: Block = (If(condition=conjunction((*others, *asked)), then=(check,)),)
        for loop in reversed(own):
            block = (replace(loop, body=block),)
        self.nests |= dict.fromkeys(block)
        # Where none of the others has an iteration, nothing is read at the place, and the sum is stored.
        holds = build.apply("logical_or", build.logical_not(conjunction((*others, *asked))), check.condition)
        self.conditions.append((holds, frozenset(loop.index for loop in own)))
