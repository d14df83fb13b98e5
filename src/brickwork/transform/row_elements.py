"""Elements of rows that ascend, in one loop: few rows would be few threads, or few blocks of them, with a row each.

    for e in range(n):                                for i in range(len(x)):
        for i in range(p[e], p[e + 1]):      ->           e = the row in which i is, by bisection
            x[i] = f(e, i)                                if p[e] <= i < p[e + 1]: x[i] = f(e, i)

Where there are rows enough, or their elements are little work beside the search, the loops stay: a size says which.
Invariant: the same iterations run, each once. All are independent of one another, and what a row computes before its
elements is the same for each of them, since nothing stores into what it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.contractions import grouped
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Node,
    Read,
    Size,
    Statement,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.guard import conjunction
from brickwork.transform.scratch import Names, copied, with_variables


@dataclass(frozen=True, slots=True)
class _Rows:
    """A loop over rows, the one over a row's elements, what stands before that, and the tensor that ends rows.

    Its elements are no more than any of the sizes in `most`. What stands before them reads in range where all `guards`
    hold.
    """

    around: For
    heads: Block
    row: For
    ends: Tensor
    most: tuple[Size, ...]
    guards: tuple[Expression, ...]


def with_row_elements(kernel: Kernel, names: Names, target: Target) -> Kernel:
    """Return a kernel whose rows ascend with their elements in one loop, where rows are few."""
    analysis = find_updates(kernel, analyse(kernel), claimed=False)
    body: list[Statement] = []
    for statement in kernel.body:
        rows = _rows(statement, kernel, analysis)
        body.append(statement if rows is None else _either(rows, names, target))
    return replace(kernel, body=tuple(body)) if tuple(body) != kernel.body else kernel


@legality
def _rows(statement: Statement, kernel: Kernel, analysis: Analysis) -> _Rows | None:
    """Return the rows that a loop goes through, if each of their elements is independent of all others."""
    match statement:
        case For(body=(*heads, For() as row)) as around:
            values = {item.symbol: item.value for item in heads if isinstance(item, Assign)}
        case _:
            return None
    verdicts = [analysis.loops[loop.index] for loop in (around, row)]
    if any(not each.independent or each.reductions or each.updates for each in verdicts):
        return None
    if len(values) < len(heads) or effects(around).draws or effects(heads).loads & effects(row.body).stores:
        return None
    if not effects((around.start, around.stop)).made_of(kernel.scalars):
        return None
    place = build.read(around.index)
    places = ((place,), (build.add(place, build.integer(1)),))
    ends = [values.get(end.symbol, end) if isinstance(end, Read) else end for end in (row.start, row.stop)]
    tensors = {end.tensor for end in ends if isinstance(end, Load)}
    if tuple(end.indices for end in ends if isinstance(end, Load)) != places or len(tensors) > 1:
        return None
    most = [item.most for item in kernel.ascending if item.tensor in tensors and item.last is None]
    guards = _guards((*heads, row.start, row.stop), analysis)
    if not most or guards is None or _multiplies(row):
        return None
    return _Rows(around, tuple(heads), row, tensors.pop(), most[0], guards)


def _multiplies(row: For) -> bool:
    """Whether rows are those of products of matrices, which have tiles of their own."""
    inner = [node for node in statements(row.body) if isinstance(node, For)]
    blocks = [block for loop in inner for block in (loop.body, *_branches(loop.body))]
    return any(grouped(block, [row.index, loop.index]) is not None for loop in inner for block in blocks)


def _branches(block: Block) -> Iterator[Block]:
    for statement in block:
        if isinstance(statement, If):
            yield statement.then


@legality
def _guards(nodes: Sequence[Node], analysis: Analysis) -> tuple[Expression, ...] | None:
    """Return where reads are in range, without a check of each: a row without elements would not run that."""
    loads = [node for node in walk(nodes) if isinstance(node, Load)]
    verdicts = [analysis.bounds[node.access, axis] for node in loads for axis in range(len(node.indices))]
    if any(verdict.bound is Bound.CHECKED for verdict in verdicts):
        return None
    return tuple(dict.fromkeys(guard for verdict in verdicts for guard in verdict.guard))


def _either(rows: _Rows, names: Names, target: Target) -> If:
    """Return the loops, or one over all elements where rows are few."""
    around = rows.around
    count = build.sub(around.stop, around.start)
    heavy = any(isinstance(node, For | While) for node in statements(rows.row.body))
    # A thread takes a row, or a block does where its elements hold no loop.
    few = build.apply("lt", count, build.integer(target.threads if heavy else target.threads // target.block_threads))
    some = build.apply("gt", count, build.integer(0))
    return If(
        condition=conjunction([some, few, *rows.guards]),
        then=(_elements(rows, names),),
        otherwise=(around,),
        loc=around.loc,
    )


@legality
def _elements(rows: _Rows, names: Names) -> For:
    """Return the loop over all elements, which looks for the row of each."""
    around, row = rows.around, rows.row
    low, high, middle, found = (names.symbol(name, INT64) for name in ("low", "high", "middle", around.index.name))
    below = names.symbol("below", BOOL)
    place, step = build.read(row.index), build.integer(1)

    def assigned(symbol: Symbol, value: Expression) -> Assign:
        return Assign(symbol=symbol, value=value, loc=around.loc)

    half = build.apply("floordiv", build.add(build.read(low), build.read(high)), build.integer(2))
    at_most = build.apply("le", names.load(rows.ends, build.read(middle)), place)
    search = While(
        prelude=(),
        condition=build.apply("gt", build.sub(build.read(high), build.read(low)), step),
        body=(
            assigned(middle, half),
            assigned(below, at_most),
            If(
                condition=build.read(below),
                then=(assigned(low, build.read(middle)),),
                otherwise=(assigned(high, build.read(middle)),),
            ),
        ),
    )
    begins = build.apply("le", row.start, place)
    inside = build.apply("logical_and", begins, build.apply("lt", place, row.stop))
    heads: Block = (*rows.heads, If(condition=inside, then=row.body, loc=row.loc))
    body = (
        assigned(low, around.start),
        assigned(high, around.stop),
        search,
        assigned(found, build.read(low)),
        *(with_variables(item, {around.index: found}) for item in heads),
    )
    stop = reduce(lambda one, other: build.apply("minimum", one, other), rows.most[1:], rows.most[0])
    return copied(replace(row, start=build.integer(0), stop=stop, body=body), names)
