"""Contractions: sums of products of which one factor goes with the rows of a nest and the other with its columns.

    for i ...: for j ...:                      rows i and columns j; both factors go along the depth k
        s = 0.0
        for k ...: s += a[i, k] * b[k, j]
        out[i, j] = act(s + bias[j])           what comes after the sum is an epilogue

Asked of the loops as they are written; that the sum may be taken in another order is the analysis' word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from math import isfinite

from brickwork.analysis.factor_places import clipped, in_range
from brickwork.analysis.integer_range import integer_range
from brickwork.analysis.products import Accumulation, Choices, Term, Zero, are_zero, chooses_one, product_of, terms_of
from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT64, DType
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Cast,
    Constant,
    Expression,
    For,
    If,
    Load,
    Node,
    Read,
    Select,
    Statement,
    Store,
    Symbol,
)
from brickwork.ir.walk import operands_of, read_symbols, rewrite, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass

Names = frozenset[Symbol]

SUMMED = frozenset({FLOAT32, INT64})
"""What matrix instructions sum up in."""
TILED = SUMMED | {FLOAT64}
"""What tiles sum up in: in float64 by its own instructions, or whole numbers as words."""
_WHOLE = {BFLOAT16: 2**8, FLOAT16: 2**11}
"""Up to which integer a type of 16 bits has all."""


class Along(Enum):
    """What neighbours in memory go along: the depth of the sum, or rows (or columns) of a tile."""

    DEPTH = "depth"
    SIDE = "side"


@dataclass(frozen=True, slots=True)
class Factor:
    """One factor of the products: what it is worth where all of `masks` hold; elsewhere nothing is added."""

    value: Expression
    masks: tuple[Expression, ...]

    @property
    def exact(self) -> frozenset[DType]:
        """The types of 16 bits that have all of its numbers."""
        match self.value:
            case Load(tensor=tensor):
                return frozenset({tensor.type.dtype} & _WHOLE.keys())
            case Cast(operand=operand) if (bounds := integer_range(operand)) is not None:
                return frozenset(dtype for dtype, most in _WHOLE.items() if -most <= bounds[0] and bounds[1] <= most)
            case _:
                return frozenset()

    @property
    def most(self) -> int | None:
        """How far from zero it is at most, if it is a whole number of which that is known."""
        bounds = integer_range(self.value.operand) if isinstance(self.value, Cast) else None
        return None if bounds is None else max(abs(bounds[0]), abs(bounds[1]), 1)

    @property
    def element(self) -> Load | None:
        """The element that it is, as it is laid out in memory; None if it is computed, or masked."""
        return self.value if isinstance(self.value, Load) and not self.masks else None

    def along(self, sides: Names, loops: Names, depth: Symbol) -> Along:
        """Return what neighbours in memory go along, for most of what it reads: the depth, if several loops are rows.

        `sides` are rows, or columns, and what is computed from them, `loops` those that are one, or stand for several.
        """
        for node in walk(self.value):
            if isinstance(node, Load) and node.tensor.type.unit_axis is not None:
                read = read_symbols(node.indices[node.tensor.type.unit_axis])
                moving = depth in read and not (len(loops) == 1 and read & loops)
                return Along.SIDE if read & sides and not moving else Along.DEPTH
        return Along.DEPTH

    @legality
    def ends(self, depth: Symbol, deep: Names, row: Symbol) -> tuple[Expression, ...] | None:
        """Return where the depth ends in a row, if masks say that alone: bounds that only rise, or only fall.

        They go with no loop of the sum (`deep`), and with no element.
        """
        found: list[Expression] = []
        for mask in self.masks:
            match mask:
                case Apply(operator=operator, operands=(Read(symbol=symbol), bound)) if (
                    operator.name == "lt"
                    and symbol == depth
                    and row in read_symbols(bound)
                    and not deep & read_symbols(bound)
                    and not any(isinstance(node, Load) for node in walk(bound))
                    and is_monotone(bound, frozenset({row}))
                ):
                    found.append(bound)
                case _:
                    return None
        return tuple(found)

    @legality
    def lies_along(self, load: Load, unit: Symbol) -> bool:
        """Whether neighbours along a loop are neighbours in memory, for an element that it reads."""
        axis = load.tensor.type.unit_axis
        if axis is None or load.indices[axis] != Read(symbol=unit):
            return False
        return not any(unit in read_symbols(index) for place, index in enumerate(load.indices) if place != axis)

    def laid_out(self, unit: Symbol) -> Iterator[Load]:
        """Yield the elements of dense tensors that it reads along memory, where neighbours along a loop are."""
        for node in walk(self.value):
            if isinstance(node, Load) and node.tensor.type.contiguous and self.lies_along(node, unit):
                yield node


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products in the body of a nest.

    `symbol` accumulates in the loops `sums` (outermost first), of which the `depth` may be any. `before` are the
    statements ahead of them, `after` those that follow. Products are taken `scale` times, and added if all of `where`
    hold.
    """

    symbol: Symbol
    before: Block
    sums: tuple[For, ...]
    factors: tuple[Factor, Factor]
    scale: tuple[Expression, ...]
    after: Block
    where: tuple[Expression, ...] = ()

    @property
    def dtype(self) -> DType:
        """The type in which products are taken: one of 16 bits that has all numbers of both factors, or a wider one.

        A factor that bfloat16 does not have is taken in parts, if it has the other one. Sums in float64 that are not
        of whole numbers have factors of float64.
        """
        if FLOAT64 in {factor.value.dtype for factor in self.factors}:
            return FLOAT64
        one, other = (factor.exact for factor in self.factors)
        found = one & other or (one | other) & {BFLOAT16}
        return next((item for item in (BFLOAT16, FLOAT16) if item in found), FLOAT32)

    def parts(self, side: int) -> int:
        """Return in how many parts the numbers of a factor are taken by instructions of 16 bits.

        Three parts of bfloat16 have all 24 bits of a float32. Two have 16: more than results, or the factor.
        """
        dtype, exact = self.dtype, self.factors[side].exact
        if dtype.size > BFLOAT16.size or dtype in exact:
            return 1
        return 3 if self.widens and not exact else 2

    @property
    def widens(self) -> bool:
        """Whether a result has more bits than 16."""
        stores = (node for node in statements(self.after) if isinstance(node, Store))
        return any(node.tensor.type.dtype.size > BFLOAT16.size for node in stores)

    @property
    def promotes(self) -> bool:
        """Whether each stage is summed up by itself: matrix instructions cut what they add, which wide results show."""
        return self.dtype is not FLOAT64 and (self.dtype is FLOAT32 or self.widens or self.is_whole)

    @property
    def is_whole(self) -> bool:
        """Whether integers are summed up: a stage exactly, by instructions for bfloat16, and stages as words.

        The variable may be a float64, which has all sums of so many terms as words have room for.
        """
        return self.symbol.dtype in {INT64, FLOAT64} and self.dtype is not FLOAT64

    @property
    def most_terms(self) -> int:
        """How many products of whole numbers a word has room for."""
        one, other = (factor.most or 1 for factor in self.factors)
        return (2**31 - 1) // (one * other)


@legality
def find_contraction(
    body: Block,
    rows: Names,
    columns: Names,
    around: Sequence[For] | None = None,
    dtypes: frozenset[DType] = frozenset({FLOAT32}),
    facts: Sequence[Expression] = (),
    *,
    scaled: bool = True,
) -> Contraction | None:
    """Return the contraction in the body of a nest; its first factor goes with `rows`, its second with `columns`.

    With `around`, the loops of the nest, a factor that is read whatever the other's masks say has masks that keep its
    accesses in range, and whole numbers that are summed up in float64 are factors of float32. `dtypes` are those that
    it may sum up in, `facts` say which sizes are the same. What is the same in the sum scales it if that is `scaled`;
    else it belongs to the factor of its rows, or of its columns.
    """
    place = next((place for place, item in enumerate(body) if may_sum(item)), None)
    if place is None:
        return None
    before, after = body[:place], body[place + 1 :]
    found = accumulated(body[place])
    if found is None or not all(isinstance(item, Assign) for item in before):
        return None
    sums, symbol, product, masks = found.loops, found.symbol, found.added, found.masks
    deep = frozenset(loop.index for loop in sums)
    names = _Names(rows, columns, deep, _origins(before))
    limits = names.bounds(sums)
    if symbol.dtype not in dtypes or limits is None:
        return None
    read = {node.tensor for node in walk((product, *masks)) if isinstance(node, Load)}
    if any(tensor.is_local for tensor in read):
        return None
    if any(isinstance(node, Store) and node.tensor in read for node in statements(after)):
        return None
    if (sorted_out := names.sorted_out(product, scaled=scaled)) is None:
        return None
    *sides, scale = sorted_out
    where = tuple(mask for mask in masks if names.is_of_elements(mask))
    if any(zero.condition in where for zero in found.zeros):
        return None  # what is not finite is to meet the zero
    masked = names.masked([mask for mask in masks if mask not in where], found.zeros, sides)
    if masked is None or (any(isinstance(node, Load) for node in walk(where)) and (any(limits) or any(masked))):
        return None
    if not all(names.reaches(*pair) for pair in zip(sides, (rows, columns), strict=True)):
        return None
    values = [_decided(product_of(sides[side], symbol.dtype), masked[side]) for side in (0, 1)]
    scaling = tuple(product_of((term,), symbol.dtype) for term in scale)
    whole = (around is not None or symbol.dtype is INT64) and _are_whole(symbol, values, scaling)
    if symbol.dtype is INT64 and not whole:
        return None
    factors: list[Factor] = []
    for side, other in ((0, 1), (1, 0)):
        value = _single(values[side]) if whole else build.cast(values[side], symbol.dtype)
        inside = in_range(value, [*sums, *around], facts) if around is not None and (masked[other] or where) else ()
        factors.append(Factor(value, (*limits[side], *masked[side], *inside)))
    if around is not None and (masks or read_symbols([each for loop in sums for each in (loop.start, loop.stop)])):
        scaling = tuple(clipped(each, around, facts) for each in scaling)
    return Contraction(symbol, before, sums, (factors[0], factors[1]), scaling, after, where)


@legality
def _are_whole(symbol: Symbol, values: Sequence[Expression], scale: Sequence[Expression]) -> bool:
    """Whether words may sum up products: bfloat16 has both factors, and each product meets no infinity in float64."""
    finite = symbol.dtype is INT64 or all(
        isinstance(each, Constant) and isfinite(float(each.value) * 2.0**INT64.bits) for each in scale
    )
    factors = [Factor(_single(value), ()) for value in values]
    whole = all(factor.most is not None and BFLOAT16 in factor.exact for factor in factors)
    return symbol.dtype in {INT64, FLOAT64} and finite and whole


@legality
def _single(value: Expression) -> Expression:
    """Return a number as float32; a whole one that was made a float64 is made a float32."""
    return build.cast(value.operand if isinstance(value, Cast) and value.dtype is FLOAT64 else value, FLOAT32)


@legality
def _decided(value: Expression, masks: Sequence[Expression]) -> Expression:
    """Return what a value is where masks hold: an index that is not negative is not counted from the end."""

    def visit(node: Node) -> Node:
        match node:
            case Select(condition=Apply(operator=operator, operands=(left, right)), otherwise=otherwise) if (
                operator.name == "lt"
                and (build.apply("ge", left, right) in masks or build.apply("le", right, left) in masks)
            ):
                return otherwise
            case _:
                return node

    return rewrite(value, visit)


def grouped(body: Block, band: Sequence[Symbol]) -> tuple[Names, Names] | None:
    """Return the loops of a band that one factor alone goes with, and those of the other; None if there are not two.

    Of more factors than two the one of the innermost loop stays alone, and the others are computed as one.
    """
    found = next((accumulated(item) for item in body if may_sum(item)), None)
    if found is None:
        return None
    before = tuple(item for item in body if isinstance(item, Assign))
    deep = frozenset(each.index for each in found.loops)
    names = _Names(frozenset(band), frozenset(), deep, _origins(before))
    groups: list[Names] = []
    for each in sorted((names.of(each.value) for each in terms_of(found.added)), key=len, reverse=True):
        if each & deep and not any((each & names.rows) <= other for other in groups):
            groups.append(each & names.rows)
    if len(groups) > 2:
        alone = next((group for each in reversed(band) for group in groups if each in group), groups[0])
        groups = [alone, frozenset[Symbol]().union(*(group for group in groups if group is not alone))]
    if len(groups) != 2 or groups[0] <= groups[1] or groups[1] <= groups[0]:
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

    @legality
    def sorted_out(self, product: Expression, *, scaled: bool) -> tuple[list[Term], list[Term], list[Term]] | None:
        """Return the factors of rows, those of columns, and what scales a sum; None if one is of both.

        Where nothing is `scaled`, nothing is divided otherwise than it is written.
        """
        found: tuple[list[Term], list[Term], list[Term]] = ([], [], [])
        for term in sorted(terms_of(product), key=lambda each: self.is_of_depth_alone(each.value)):
            side = self.side(term.value)
            if side is None or not (scaled or (self.parted((term.value,)) and not term.divides)):
                return None
            found[2 if scaled and not self.of(term.value) & self.deep else side].append(term)
        return found

    @legality
    def is_of_elements(self, mask: Expression) -> bool:
        """Whether a mask is for elements of the result: it goes with rows and columns, and is the same in the sum.

        It is asked after the sum.
        """
        found = self.of(mask)
        return bool(found & self.rows and found & self.columns) and not found & self.deep

    def is_of_depth_alone(self, expression: Expression) -> bool:
        """Whether an expression goes with neither rows nor columns."""
        return not self.of(expression) & (self.rows | self.columns)

    def reaches(self, terms: Sequence[Term], loops: Names) -> bool:
        """Whether some factor goes with some of these loops."""
        return any(self.of(term.value) & loops for term in terms)

    @legality
    def bounds(self, sums: Sequence[For]) -> tuple[tuple[Expression, ...], tuple[Expression, ...]] | None:
        """Return the bounds that go with rows, and with columns, as masks; None if there is one that cannot be one.

        A tile sums from the least start of its rows or columns to the greatest stop, which are at its ends. It knows
        no variable there that the body assigns.
        """
        found: list[Expression] = []
        for loop in sums:
            for name, bound in (("ge", loop.start), ("lt", loop.stop)):
                loops = self.of(bound)
                if loops & self.deep or read_symbols(bound) & self.origins.keys():
                    return None
                if loops and not is_monotone(bound, loops):
                    return None
                if loops:
                    found.append(build.apply(name, build.read(loop.index), bound))
        return self.parted(found)

    @legality
    def masked(
        self, masks: Sequence[Expression], zeros: Sequence[Zero], sides: Sequence[Sequence[Term]]
    ) -> tuple[tuple[Expression, ...], tuple[Expression, ...]] | None:
        """Return the masks of rows and those of columns, as `parted` does; None if a zero would not meet a factor.

        A mask of the depth alone is one of the factors that it chooses.
        """
        found = self.parted(masks)
        if found is None or not zeros:
            return found
        late = [mask for mask in found[0] if self.is_of_depth_alone(mask) and chooses_one(zeros, mask, sides)]
        both = tuple(mask for mask in found[0] if mask not in late), (*found[1], *late)
        return both if are_zero(zeros, both, sides) else None

    @legality
    def parted(self, masks: Sequence[Expression]) -> tuple[tuple[Expression, ...], tuple[Expression, ...]] | None:
        """Return the masks of rows and those of columns; None if one goes with both."""
        found: tuple[list[Expression], list[Expression]] = ([], [])
        for mask in masks:
            names = self.of(mask)
            if names & self.rows and names & self.columns:
                return None
            found[int(bool(names & self.columns))].append(mask)
        return tuple(found[0]), tuple(found[1])


@legality
def is_monotone(bound: Expression, loops: Names) -> bool:
    """Whether a bound only rises, or only falls, along the one loop that it goes with."""
    match bound:
        case Read():
            return True
        case Apply(operator=operator, operands=operands):
            moving = [operand for operand in operands if read_symbols(operand) & loops]
            divided = operator.name == "floordiv" and _is_positive(operands[1])
            if not (divided or operator.name in {"add", "sub", "mul", "minimum", "maximum"}) or len(moving) > 1:
                return False
            return is_monotone(moving[0], loops)
        case _:
            return False


def _is_positive(number: Expression) -> bool:
    return isinstance(number, Constant) and number.value > 0


def computed_from(before: Sequence[Statement], wanted: Collection[Symbol]) -> tuple[Assign, ...]:
    """Return the assignments in a block that variables, and these, are computed from."""
    wanted = set(wanted)
    found: list[Assign] = []
    for item in reversed(before):
        if isinstance(item, Assign) and item.symbol in wanted:
            found.append(item)
            wanted |= read_symbols(item.value)
    return tuple(reversed(found))


def reached(body: Block, names: Names) -> Names:
    """Return variables with those that a body computes from them."""
    found = set(names)
    for item in body:
        if isinstance(item, Assign) and read_symbols(item.value) & found:
            found.add(item.symbol)
    return frozenset(found)


def _origins(before: Block) -> dict[Symbol, Names]:
    """Return what each variable that is assigned before the sum is computed from."""
    found: dict[Symbol, Names] = {}
    for item in before:
        if isinstance(item, Assign):
            read = read_symbols(item.value)
            found[item.symbol] = read.union(*(found.get(symbol, frozenset()) for symbol in read))
    return found


def may_sum(statement: Statement) -> bool:
    """Whether a statement is a loop, or a condition around one."""
    match statement:
        case If(then=(*_, last), otherwise=()):
            return may_sum(last)
        case _:
            return isinstance(statement, For)


def accumulation(
    statement: Statement,
) -> tuple[tuple[For, ...], Symbol, Expression, tuple[Expression, ...]] | None:
    """Return the loops that accumulate, the variable, what is added, and the conditions under which it is."""
    found = accumulated(statement)
    return None if found is None or found.zeros else (found.loops, found.symbol, found.added, found.masks)


@legality
def accumulated(statement: Statement) -> Accumulation | None:
    """Return what a statement adds up in a variable, if it does nothing else."""
    loops: list[For] = []
    values: dict[Symbol, Expression] = {}
    masks: list[Expression] = []
    chosen = Choices()
    block: Block = (statement,)
    here: set[Symbol] = set()
    while True:
        for item in block[:-1]:
            if isinstance(item, Assign) and (item.symbol not in values or item.symbol in here):
                values[item.symbol] = substitute(item.value, values)
                here.add(item.symbol)
            elif (found := _chosen(item, values)) is not None:
                if found.symbol not in here:
                    return None  # it keeps what an iteration before chose
                values[found.symbol] = found.value
            elif (symbol := chosen.take(item, values, here)) is not None:
                values[symbol] = Read(symbol=symbol)
                here.discard(symbol)
            else:
                return None
        match block[-1] if block else None:
            case For(body=body) as loop if not read_symbols((loop.start, loop.stop)) & values.keys():
                loops.append(loop)
                block, here = body, set()
            case If(condition=condition, then=then, otherwise=()):
                masks += operands_of(substitute(condition, values), "logical_and")
                block = then
            case Assign(symbol=symbol) as last if symbol not in values and (term := _added(last)) is not None:
                if live_before((statement,), NONE) & values.keys():
                    return None  # terms with what passes from one to the next have an order
                return chosen.resolved(Accumulation(tuple(loops), symbol, substitute(term, values), tuple(masks)))
            case _:
                return None


@legality
def _added(statement: Assign) -> Expression | None:
    """Return what is added to a variable."""
    own = Read(symbol=statement.symbol)
    match statement.value:
        case Apply(operator=operator, operands=operands) if operator.name == "add":
            added = [item for item in operands if item != own]
            return added[0] if len(added) == 1 else None
        case Apply(operator=operator, operands=(left, right)) if operator.name == "sub" and left == own:
            return build.mul(build.constant(-1, right.dtype), right)
        case _:
            return None


@legality
def _chosen(statement: Statement, values: Mapping[Symbol, Expression]) -> Assign | None:
    """Return an assignment of what a variable is worth after a condition in which it may be assigned, as one value.

    Both values are computed then, so nothing is read for the one in the condition.
    """
    match statement:
        case If(condition=condition, then=(Assign(symbol=symbol, value=value),), otherwise=()) if (
            symbol in values and not any(isinstance(node, Load) for node in walk(value))
        ):
            one, asked = substitute(value, values), substitute(condition, values)
            return Assign(symbol=symbol, value=build.select(asked, one, values[symbol]))
        case _:
            return None
