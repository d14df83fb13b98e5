"""Contractions on processors: factors are packed into panels, and register tiles multiply these.

    for i in range(n): for j in range(m):      parallel for tiles of i: parallel for tiles of j:
        s = 0.0                                    sums = 0.0                               of the tile
        for k in range(p): s += a[i, k] * b[k, j]  for blocks of k:
        y[i, j] = s                                    left = a[tile of i, block of k]
                                                       for strips of j:
                                                           right = b[block of k, strip of j]
                                                           for strips of i: for k in the block:
                                                               sums[strip of i, strip of j] += left * right
                                                   y[i, j] = sums[i, j]

The inner loops hold a strip's sums in registers: rows one by one, columns in lanes. Panels hold what factors are worth:
converted, gathered, and zero where a mask is not met. Rows and columns are filled up to whole strips with zeros.
Invariant: each sum takes its terms in the order of the source. Where zeros stand for masked terms, a sum that is not
finite is computed again as the source has it: zero times infinity is none.
How a nest is written so is in `panel_loops.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.contractions import Contraction, find_contraction, grouped, may_sum
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64
from brickwork.ir.nodes import (
    Apply,
    Block,
    Break,
    Check,
    Constant,
    Continue,
    Expression,
    For,
    If,
    Load,
    Local,
    Random,
    Read,
    Rebind,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, straight, substitute, walk
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.guard import conjunction
from brickwork.transform.schedule.planner import Planner
from brickwork.transform.schedule.schedule import Contract, Schedule, chunk_of

LEAST = 64
"""Rows, columns and terms for which packing pays: with 32 of one of them lanes alone are 1.4 times as fast (Zen 5)."""
STAGED_BYTES = 1024
"""Bytes of a row of a packed factor: a strip of the other one, of as many terms, fits the nearest cache."""
STRIPS = 12
"""Strips of rows in a tile: with them the second cache holds the packed factor of the rows."""
WIDTH_BYTES = 2 * STAGED_BYTES
"""Bytes of a row of a tile's sums."""
PANELS = "panels"
"""The version with panels."""
MOST_COLUMNS = 2
"""Loops that lanes run along as one: neighbours of more lie at places that only vectors of indices give."""
Ranges = Mapping[Symbol, tuple[Expression, Expression]]
"""The first and the last value of some indices."""
Sums = tuple[Block, tuple[tuple[Expression, Expression], ...], frozenset[Expression]]
"""A body, what the bounds of the loops that sum in it were, and the conditions that keep sums within these."""


@dataclass(frozen=True, slots=True)
class PanelNest:
    """A contraction in a nest: its loops, what is asked around its body, and bounds of its sums.

    `spans` are the bounds of the loops that sum, of which rows and columns may have others each; those of
    `contraction` are the outermost of all, and the `limits` among the conditions leave out what is beyond.
    """

    band: tuple[For, ...]
    rows: tuple[For, ...]
    columns: tuple[For, ...]
    asked: tuple[Expression, ...]
    spans: tuple[tuple[Expression, Expression], ...]
    limits: frozenset[Expression]
    contraction: Contraction

    @property
    def batch(self) -> tuple[For, ...]:
        """The loops of which each iteration has a contraction of its own."""
        return tuple(node for node in self.band if node not in self.rows and node not in self.columns)


@legality
def find_nest(loop: For, analysis: Analysis, *, other: bool = False) -> PanelNest | None:
    """Return the contraction of the nest that begins with a loop, if there is one; if `other`, with sides exchanged."""
    planner = Planner(analysis)
    if not analysis.loops[loop.index].independent:
        return None
    band = tuple(planner.rectangle(loop))
    body, asked = band[-1].body, list[Expression]()
    while len(body) == 1 and isinstance(only := body[0], If) and not only.otherwise:
        asked.append(only.condition)
        body = only.then
    if keeps_order(loop, analysis) or read_symbols(asked) & assigned_symbols((loop,)):
        return None
    ranges = {node.index: (node.start, build.sub(node.stop, build.integer(1))) for node in band}
    found = _with_fixed_sums(body, ranges)
    if found is None:
        return None
    body, spans, limits = found
    groups = grouped(body, [node.index for node in band])
    if groups is None:
        return None
    rows, columns = _sides(body, band, groups, exchanged=other)
    names = [frozenset(node.index for node in side) for side in (rows, columns)]
    contraction = find_contraction(body, names[0], names[1], dtypes=frozenset({FLOAT32, FLOAT64}), scaled=False)
    if contraction is None or contraction.where or not _may_be_read_alone(contraction):
        return None
    if not all(planner.accumulates(each, {contraction.symbol}) for each in contraction.sums):
        return None
    return PanelNest(band, rows, columns, tuple(asked), spans, limits, contraction)


@hazard
def keeps_order(loop: For, analysis: Analysis) -> bool:
    """Whether something in a nest must happen in the order of the source, or once for each iteration."""
    never = Check | Random | While | Break | Continue | Local | Rebind
    if any(isinstance(node, never) for node in walk(loop)):
        return True
    inside = analysis.inside(loop.index)
    places = [(item.number, axis) for item in inside for axis in range(len(item.axes))]
    if any(analysis.bounds[place].bound is Bound.CHECKED for place in places):
        return True
    return any(analysis.loops[node.index].updates for node in statements(loop) if isinstance(node, For))


@legality
def _may_be_read_alone(found: Contraction) -> bool:
    """Whether it can be tested if elements are there, where the conditions of one factor say it of the other's."""
    nodes = [node for each in found.factors for node in walk((each.value, *each.masks)) if isinstance(node, Load)]
    nested = any(isinstance(part, Load) for node in nodes for part in walk(node.indices))
    return not nested or not any(each.masks for each in found.factors)


def _sides(
    body: Block, band: Sequence[For], groups: tuple[frozenset[Symbol], frozenset[Symbol]], *, exchanged: bool
) -> tuple[tuple[For, ...], tuple[For, ...]]:
    """Return the rows and the columns: the group that goes along memory in most of what is read and stored.

    Of many loops that are columns the outer ones make a batch.
    """
    worth = [0, 0]
    for node in walk(body):
        if isinstance(node, Load | Store) and (unit := node.tensor.type.unit_axis) is not None:
            last = read_symbols(node.indices[unit])
            for number, group in enumerate(groups):
                inmost = [each.index for each in band if each.index in group][-1]
                worth[number] += (3 if isinstance(node, Load) else 2) * (inmost in last)
    one, other = (tuple(node for node in band if node.index in group) for group in groups)
    if (worth[1] >= worth[0]) == exchanged:
        one, other = other, one
    return one, other[-MOST_COLUMNS:]


# ---------------------------------------------------------------- bounds that go with rows or columns


@legality
def _with_fixed_sums(body: Block, ranges: Ranges) -> Sums | None:
    """Return a body whose loops sum over one range in all iterations of the nest; None if that is not known."""
    place = next((place for place, item in enumerate(body) if may_sum(item)), None)
    if place is None or not isinstance(body[place], For):
        return None
    spans: list[tuple[Expression, Expression]] = []
    limits: list[Expression] = []

    def fixed(block: Block) -> Block | None:
        match block:
            case (If(then=then, otherwise=()) as found,):
                inner = fixed(then)
                return None if inner is None else (replace(found, then=inner),)
            case (For(start=start, stop=stop) as loop,):
                inner = fixed(loop.body)
                least, greatest = (extreme(each, ranges, greatest=each is stop) for each in (start, stop))
                if inner is None or least is None or greatest is None:
                    return None
                index, own = build.read(loop.index), list[Expression]()
                own += [build.apply("ge", index, start)] if least != start else []
                own += [build.apply("lt", index, stop)] if greatest != stop else []
                spans.insert(0, (start, stop))
                limits.extend(own)
                inner = (If(condition=conjunction(own), then=inner),) if own else inner
                return (replace(loop, start=least, stop=greatest, body=inner),)
            case _:
                return block

    inner = fixed((body[place],))
    return None if inner is None else ((*body[:place], *inner, *body[place + 1 :]), tuple(spans), frozenset(limits))


@legality
def extreme(bound: Expression, ranges: Ranges, *, greatest: bool) -> Expression | None:
    """Return the least or greatest value of a bound while indices run over ranges; None if that is not known."""
    chosen: dict[Symbol, Expression] = {}
    for symbol in read_symbols(bound) & ranges.keys():
        way = _way(bound, symbol)
        if way is None:
            return None
        chosen[symbol] = ranges[symbol][(way == 1) == greatest]
    return substitute(bound, chosen)


@legality
def _way(expression: Expression, symbol: Symbol) -> int | None:
    """Return 1 for an integer that grows with a variable, -1 for one that falls, 0 for one that stays; else None."""
    match expression:
        case _ if symbol not in read_symbols(expression):
            return 0
        case Read():
            return 1
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub", "minimum", "maximum"}:
            one, other = _way(left, symbol), _way(right, symbol)
            if one is None or other is None:
                return None
            other = -other if operator.name == "sub" else other
            return None if one * other < 0 else one or other
        case Apply(operator=operator, operands=(left, Constant(value=value))) if operator.name in {"mul", "floordiv"}:
            way = _way(left, symbol)
            return way if value > 0 else None
        case _:
            return None


# ---------------------------------------------------------------- versions


def panel_versions(
    block: Block, analysis: Analysis, target: Target, plain: Schedule
) -> Iterator[tuple[str, Schedule, tuple[Expression, ...]]]:
    """Yield a schedule of a kernel's body that packs the factors of its contractions, with what must hold for it."""
    if target.grid or not target.vector_bytes:
        return
    inner = assigned_symbols(block)
    found = [nest for nest in _nests(block, analysis) if not read_symbols(_bounds(nest)) & inner and not _slides(nest)]
    tried: list[list[PanelNest]] = [found]
    if any(nest.batch and len(nest.columns) == MOST_COLUMNS for nest in found):
        # What makes a batch may be rows, too, and then the columns need not be long.
        tried.insert(0, [find_nest(nest.band[0], analysis, other=bool(nest.batch)) or nest for nest in found])
    for nests in tried if found else ():
        inside = {node.index for nest in nests for node in statements(nest.band[0]) if isinstance(node, For)}
        inside |= {nest.band[0].index for nest in nests}
        inside |= {chunk_of(index) for index in inside}
        kept = tuple(item for item in plain.verbs if item.loop not in inside)
        schedule = Schedule((*kept, *(_directive(nest, target) for nest in nests)))
        conditions = [part for nest in nests for part in _worth(nest)]
        yield PANELS, schedule, tuple(dict.fromkeys(conditions))


def _nests(block: Block, analysis: Analysis) -> Iterator[PanelNest]:
    for loop in (statement for statement in straight(block) if isinstance(statement, For)):
        found = find_nest(loop, analysis)
        if found is not None:
            yield found
        elif not analysis.loops[loop.index].independent:
            yield from _nests(loop.body, analysis)


def _slides(nest: PanelNest) -> bool:
    """Whether the factor of the columns is a row, along which a sum of one loop slides.

    Lanes alone keep all of it near: `timex` of 32 x 32 x 1024 took 2.5 ms so, and 8.4 in panels (one core, Zen 5).
    """
    sums, columns = ({loop.index for loop in loops} for loops in (nest.contraction.sums, nest.columns))
    loads = [node for node in walk(nest.contraction.factors[1].value) if isinstance(node, Load)]
    read = [read_symbols(index) for node in loads for index in node.indices]
    return len(sums) == 1 and any(each & sums and each & columns for each in read)


def _bounds(nest: PanelNest) -> list[Expression]:
    every = (*nest.band, *nest.contraction.sums)
    return [bound for node in every for bound in (node.start, node.stop)]


def _directive(nest: PanelNest, target: Target) -> Contract:
    size = nest.contraction.symbol.dtype.size
    down = 14 if target.vector_registers >= 32 else 6
    across = 2 * target.vector_bytes // size
    return Contract(
        nest.band[0].index,
        tuple(node.index for node in nest.rows),
        tuple(node.index for node in nest.columns),
        nest.contraction.sums[-1].index,
        height=STRIPS * down,
        width=max(WIDTH_BYTES // size // across, 1) * across,
        staged=STAGED_BYTES // size,
        down=down,
        across=across,
    )


def _worth(nest: PanelNest) -> Iterator[Expression]:
    for loops in (nest.rows, nest.columns, nest.contraction.sums):
        yield build.apply("ge", total(loops), build.integer(LEAST))


def total(loops: Sequence[For]) -> Expression:
    """Return how many iterations loops have together."""
    return build.product([build.integer(1), *(build.iterations(node.start, node.stop) for node in loops)])
