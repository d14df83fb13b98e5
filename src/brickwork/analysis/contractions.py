"""Contractions: sums of products of which one factor goes with the rows of a nest and the other with its columns.

    for i ...: for j ...:                      rows i and columns j; both factors go along the depth k
        s = 0.0
        for k ...: s += a[i, k] * b[k, j]
        out[i, j] = act(s + bias[j])           what comes after the sum is an epilogue

Asked of the loops as they are written; that the sum may be taken in another order is the analysis' word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from brickwork.ir import build
from brickwork.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, UINT8, DType
from brickwork.ir.nodes import Apply, Assign, Block, Cast, Expression, For, If, Load, Read, Store, Symbol
from brickwork.ir.walk import read_symbols, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass

Names = frozenset[Symbol]

_EXACT = {
    BFLOAT16: frozenset({BFLOAT16}),
    FLOAT16: frozenset({FLOAT16}),
    INT8: frozenset({BFLOAT16, FLOAT16}),
    UINT8: frozenset({BFLOAT16, FLOAT16}),
}
"""The types of 16 bits that have all numbers of a type of elements."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of the products: what it is worth where all of `masks` hold; elsewhere nothing is added."""

    value: Expression
    masks: tuple[Expression, ...]

    @property
    def exact(self) -> frozenset[DType]:
        """The types of 16 bits that have all of its numbers."""
        match self.value:
            case Load(tensor=tensor) | Cast(operand=Load(tensor=tensor)):
                return _EXACT.get(tensor.type.dtype, frozenset())
            case _:
                return frozenset()

    @property
    def element(self) -> Load | None:
        """The element that it is, as it lies in memory; None if it is computed, or masked."""
        return self.value if isinstance(self.value, Load) and not self.masks else None


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products in the body of a nest.

    `symbol` accumulates in the loops `sums` (outermost first), of which the `depth` may be any. `before` are the
    statements ahead of them, `after` those that follow. Products are taken `scale` times.
    """

    symbol: Symbol
    before: Block
    sums: tuple[For, ...]
    factors: tuple[Factor, Factor]
    scale: tuple[Expression, ...]
    after: Block

    @property
    def dtype(self) -> DType:
        """The type in which products are taken: one of 16 bits that has all numbers of both factors, or float32."""
        both = self.factors[0].exact & self.factors[1].exact
        return next((item for item in (BFLOAT16, FLOAT16) if item in both), FLOAT32)


@legality
def find_contraction(
    body: Block, rows: Names, columns: Names, dtypes: frozenset[DType] = frozenset({FLOAT32})
) -> Contraction | None:
    """Return the contraction in the body of a nest; its first factor goes with `rows`, its second with `columns`.

    `dtypes` are those that it may sum up in.
    """
    place = next((place for place, item in enumerate(body) if isinstance(item, For)), None)
    if place is None:
        return None
    before, after = body[:place], body[place + 1 :]
    found = _accumulation(body[place])
    if found is None or not all(isinstance(item, Assign) for item in before):
        return None
    sums, symbol, product, masks = found
    deep = frozenset(loop.index for loop in sums)
    names = _Names(rows, columns, deep, _origins(before))
    if symbol.dtype not in dtypes or symbol in read_symbols(product) or not names.are_fixed(sums):
        return None
    stored = {node.tensor for node in statements(after) if isinstance(node, Store)}
    if any(isinstance(node, Load) and node.tensor in stored for node in walk((product, *masks))):
        return None
    sides: tuple[list[Expression], list[Expression]] = ([], [])
    scale: list[Expression] = []
    for factor in sorted(_factors(product), key=names.is_of_depth_alone):
        side = names.side(factor)
        if side is None:
            return None
        if not names.of(factor) & deep:
            scale.append(factor)
        else:
            sides[side].append(factor)
    masked: tuple[list[Expression], list[Expression]] = ([], [])
    for mask in masks:
        side = names.side(mask)
        if side is None:
            return None
        masked[side].append(mask)
    if not all(sides) or not all(names.reaches(*pair) for pair in zip(sides, (rows, columns), strict=True)):
        return None
    left, right = (Factor(_product(side), tuple(mask)) for side, mask in zip(sides, masked, strict=True))
    return Contraction(symbol, before, sums, (left, right), tuple(scale), after)


def grouped(body: Block, band: Sequence[Symbol]) -> tuple[Names, Names] | None:
    """Return the loops of a band that one factor alone goes with, and those of the other; None if there are not two."""
    loop = next((item for item in body if isinstance(item, For)), None)
    found = None if loop is None else _accumulation(loop)
    if loop is None or found is None:
        return None
    before = tuple(item for item in body if isinstance(item, Assign))
    deep = frozenset(each.index for each in found[0])
    names = _Names(frozenset(band), frozenset(), deep, _origins(before))
    groups: list[Names] = []
    for each in sorted((names.of(factor) for factor in _factors(found[2])), key=len, reverse=True):
        if each & deep and not any((each & names.rows) <= other for other in groups):
            groups.append(each & names.rows)
    if len(groups) != 2:
        return None
    return groups[0] - groups[1], groups[1] - groups[0]


@dataclass(frozen=True, slots=True)
class _Names:
    """The loops of a nest, and what the variables that its body assigns are computed from."""

    rows: Names
    columns: Names
    deep: Names
    origins: Mapping[Symbol, Names]

    def of(self, expression: Expression) -> Names:
        """Return the loops that an expression goes with."""
        read = read_symbols(expression)
        reached = read.union(*(self.origins.get(symbol, frozenset()) for symbol in read))
        return reached & (self.rows | self.columns | self.deep)

    @legality
    def side(self, expression: Expression) -> int | None:
        """Return 0 for what goes with no column, 1 for what goes with no row, None for what goes with both."""
        found = self.of(expression)
        if found & self.rows and found & self.columns:
            return None if found & self.deep else 0
        return int(bool(found & self.columns))

    def is_of_depth_alone(self, expression: Expression) -> bool:
        """Whether an expression goes with neither rows nor columns."""
        return not self.of(expression) & (self.rows | self.columns)

    def reaches(self, factors: Sequence[Expression], loops: Names) -> bool:
        """Whether some factor goes with some of these loops."""
        return any(self.of(factor) & loops for factor in factors)

    @legality
    def are_fixed(self, sums: Sequence[For]) -> bool:
        """Whether all iterations of the nest sum over the same range."""
        return not any(self.of(bound) for loop in sums for bound in (loop.start, loop.stop))


def _origins(before: Block) -> dict[Symbol, Names]:
    """Return what each variable that is assigned before the sum is computed from."""
    found: dict[Symbol, Names] = {}
    for item in before:
        if isinstance(item, Assign):
            read = read_symbols(item.value)
            found[item.symbol] = read.union(*(found.get(symbol, frozenset()) for symbol in read))
    return found


@legality
def _accumulation(
    statement: For,
) -> tuple[tuple[For, ...], Symbol, Expression, tuple[Expression, ...]] | None:
    """Return the loops that accumulate, the variable, what is added, and the conditions under which it is."""
    loops: list[For] = []
    values: dict[Symbol, Expression] = {}
    masks: list[Expression] = []
    block: Block = (statement,)
    while True:
        *ahead, last = block or (None,)
        for item in ahead:
            if not isinstance(item, Assign) or item.symbol in values:
                return None
            values[item.symbol] = substitute(item.value, values)
        match last:
            case For() if not ahead:
                loops.append(last)
                block = last.body
            case If(condition=condition, then=then, otherwise=()):
                masks += [substitute(part, values) for part in _conjuncts(condition)]
                block = then
            case Assign(symbol=symbol, value=Apply(operator=operator, operands=operands)) if operator.name == "add":
                added = [item for item in operands if item != Read(symbol=symbol)]
                if len(added) != 1 or symbol in values or not loops:
                    return None
                return tuple(loops), symbol, substitute(added[0], values), tuple(masks)
            case _:
                return None


def _factors(product: Expression) -> Iterator[Expression]:
    if isinstance(product, Apply) and product.operator.name == "mul":
        for operand in product.operands:
            yield from _factors(operand)
    else:
        yield product


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Apply) and condition.operator.name == "logical_and":
        for operand in condition.operands:
            yield from _conjuncts(operand)
    else:
        yield condition


def _product(factors: Sequence[Expression]) -> Expression:
    result = factors[0]
    for factor in factors[1:]:
        result = build.apply("mul", result, factor)
    return result
