"""Steps of few iterations, each with much work that is parallel: the grid is launched for each step, on a grid.

    for b in range(B):                            for s in range(n):
        for s in range(n):                            for b in range(B):
            for i in range(m): f[b, i] = ...  ->          for i in range(m): f[b, i] = ...
            for j in range(m): g[b, j] = ...          for b in range(B):
                                                          for j in range(m): g[b, j] = ...

As it was, a block of threads runs all steps of an iteration over `b`: B blocks. Legal where iterations over `b` are
independent, and no variable passes from one part of their body to another: each of them sees its parts in their order.
Invariant: such a kernel runs where launches and the whole grid take less time for a step than a block takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.scalars import NONE, Symbols, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Block, Expression, For, Kernel, Launch, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.columns import with_columns
from brickwork.transform.interchange import interchange
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import Changed, beside, each_launch
from brickwork.transform.persistent import few_iterations, saturated
from brickwork.transform.scratch import Names, copied, with_variables

STEPS = "_steps"
"""Ends the name of a kernel that is launched for each step."""
REMARK = "where steps are launched, since few blocks would each have much to do in one"
"""What `explain` says of it."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Independent loops, perfectly nested, and the parts of what stands in them, of which some are loops in order."""

    levels: tuple[For, ...]
    parts: tuple[Block, ...]
    steps: tuple[For, ...]


@each_launch("grid")
def with_launched_steps(launch: Launch, names: Names, target: Target) -> Changed | None:
    """Return a kernel that is launched for each step where it is better than the given one, if there is such."""
    if not any(map(_has_steps, launch.kernel.body)):
        return None
    kernel = with_sunk_heads(launch.kernel, names)
    analysis = analyse(kernel)
    if with_columns(kernel, analysis) is not kernel:
        return None  # Columns of a state are threads enough.
    exchanged, orders = interchange(kernel, analysis, grid=True)
    if not any(map(_has_steps, exchanged.body)):
        return None
    analysis = find_updates(exchanged, analyse(exchanged) if orders else analysis)
    ranges = Ranges(frozenset(kernel.scalars) - assigned_symbols(kernel.body))
    condition, body, launched = build.constant(True, BOOL), list[Statement](), frozenset[Symbol]()
    for statement in exchanged.body:
        found = steps_of(statement, analysis) if _has_steps(statement) else None
        worth = None if found is None else _are_worth_it(found, ranges, target)
        if found is None or worth is None:
            body.append(statement)
            continue
        condition = build.apply("logical_and", condition, worth)
        body += _changed(found, names)
        launched |= {step.index for step in found.steps}
    if not launched or build.is_constant(condition, 0):
        return None
    other = replace(kernel, name=f"{kernel.name}{STEPS}", body=tuple(body), launched=launched)
    return beside(launch, condition, (), other, REMARK)


def _has_steps(statement: Statement) -> bool:
    """Whether a loop has another one around nests of several loops, so that an analysis is worth making."""
    return isinstance(statement, For) and any(
        isinstance(node, For) and any(effects(inner).depth > 1 for inner in node.body)
        for node in statements(statement.body)
    )


# ---------------------------------------------------------------- what steps begin with


def with_sunk_heads(kernel: Kernel, names: Names) -> Kernel:
    """Return a kernel whose nests compute for themselves what a loop computes first for several of them."""
    after = live_after_loops(kernel.body)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or not statement.body:
            return (statement,)
        count = next((place for place, item in enumerate(statement.body) if isinstance(item, For)), 0)
        heads, nests = statement.body[:count], statement.body[count:]
        if not heads or not _can_sink(heads, nests, after[statement.index]):
            return (statement,)
        return (replace(statement, body=tuple(_with_heads(nest, heads, names) for nest in nests)),)

    body = rewrite_statements(kernel.body, visit)
    return kernel if body == kernel.body else replace(kernel, body=body)


@legality
def _can_sink(heads: Block, nests: Block, after: Symbols) -> bool:
    """Whether nests may each compute what stands before them: variables, of what none of them changes.

    No other iteration and nothing after the loop reads these variables.
    """
    found = effects(heads)
    if found.stores or not (found.plain and found.simple):
        return False
    made, changed = assigned_symbols(heads), assigned_symbols(nests)
    if changed & (made | found.reads) or (after | live_before((*heads, *nests), NONE)) & made:
        return False
    return all(isinstance(nest, For) and not read_symbols((nest.start, nest.stop)) & made for nest in nests)


def _with_heads(nest: Statement, heads: Block, names: Names) -> Statement:
    if not isinstance(nest, For) or not read_symbols(nest.body) & assigned_symbols(heads):
        return nest
    own = {symbol: names.symbol(symbol.name, symbol.dtype) for symbol in assigned_symbols(heads)}
    return with_variables(replace(nest, body=(*heads, *nest.body)), own)


# ---------------------------------------------------------------- legality


@legality
def steps_of(statement: Statement, analysis: Analysis) -> Steps | None:
    """Return independent loops around loops in order, if these can be cut.

    Nothing in independent loops leaves them, or rebinds tensors, and no variable passes out of them.
    """
    levels = _levels(statement, analysis)
    if not levels:
        return None
    body = levels[-1].body
    inside = effects(body)
    if inside.fails or inside.declares:
        return None
    parts = cut(body)
    first = (part[0] for part in parts)
    steps = tuple(item for item in first if isinstance(item, For) and _is_step(item, levels, analysis))
    return Steps(levels, parts, steps) if steps else None


@legality
def _levels(statement: Statement, analysis: Analysis) -> tuple[For, ...]:
    """Return the loops from an outer one inwards whose iterations are independent and add nothing up."""
    found: list[For] = []
    while isinstance(statement, For):
        verdict = analysis.loops[statement.index]
        if not verdict.independent or verdict.reductions or statement.claimed:
            break
        found.append(statement)
        if len(statement.body) != 1:
            break
        (statement,) = statement.body
    return tuple(found)


@legality
def cut(block: Block) -> tuple[Block, ...]:
    """Return a block in the smallest parts between which no variable passes."""
    parts: list[Block] = []
    rest: list[Statement] = []
    for place, statement in enumerate(block):
        rest.append(statement)
        if not live_before(block[place + 1 :], NONE) & assigned_symbols(block[: place + 1]):
            parts.append(tuple(rest))
            rest = []
    return tuple(parts)


@legality
def _is_step(loop: For, levels: Sequence[For], analysis: Analysis) -> bool:
    """Whether a loop in order is the same for all iterations around, and nests are all that it has inside.

    What one iteration passes to the next, nests read, so that they are in order, or something beside them does.
    """
    changing = assigned_symbols((*levels,))
    if analysis.loops[loop.index].independent or loop.claimed or read_symbols((loop.start, loop.stop)) & changing:
        return False
    return not effects((loop.start, loop.stop)).loads and all(_is_nest(item, analysis) for item in loop.body)


def _is_nest(statement: Statement, analysis: Analysis) -> bool:
    """Whether a statement is a loop for threads."""
    return isinstance(statement, For) and analysis.loops[statement.index].independent


# ---------------------------------------------------------------- use


def _are_worth_it(found: Steps, ranges: Ranges, target: Target) -> Expression | None:
    """Return whether launches and what the grid then takes for a step are less than what a block takes; None: unknown.

    A block does `few` iterations while there is a launch, and the machine runs so many whole blocks at once.
    """
    few, blocks = few_iterations(target), target.threads // target.block_threads
    around: Expression | None = build.integer(1)
    for level in found.levels:
        around = saturated(around, ranges.iterations(level))
        ranges = ranges.inside(level)
    work: Expression | None = build.integer(0)
    for step in found.steps:
        inside = _work(step.body, ranges.inside(step))
        work = None if work is None or inside is None else build.add(work, inside)
    if around is None or work is None:
        return None
    launches = sum(len(cut(step.body)) for step in found.steps)
    left = build.apply("maximum", build.sub(build.integer(blocks), around), build.integer(0))
    return build.apply("gt", build.mul(work, left), build.integer(launches * few * blocks))


def _work(block: Block, ranges: Ranges) -> Expression | None:
    """Return how many iterations of innermost loops a block has at most, if that is known."""
    total: Expression = build.integer(0)
    for statement in block:
        if not isinstance(statement, For):
            continue
        inner = _work(statement.body, ranges.inside(statement)) if effects(statement.body).loops else build.integer(1)
        times = saturated(inner, ranges.iterations(statement))
        if times is None:
            return None
        total = build.add(total, times)
    return total


# ---------------------------------------------------------------- the change


def _changed(found: Steps, names: Names) -> Block:
    """Return the loops in order with nests around each part in them, and nests around what stands beside them."""
    result: list[Statement] = []
    for part in found.parts:
        step = part[0]
        if isinstance(step, For) and any(step is each for each in found.steps):
            inside = (_around(found.levels, inner, names) for inner in cut(step.body))
            result.append(replace(step, body=tuple(inside)))
        else:
            result.append(_around(found.levels, part, names))
    return tuple(result)


def _around(levels: Sequence[For], body: Block, names: Names) -> For:
    """Return loops of their own around a part."""
    for level in reversed(levels):
        body = (replace(level, body=body),)
    (nest,) = body
    if not isinstance(nest, For):
        raise TypeError("a nest is a loop")
    return copied(nest, names)
