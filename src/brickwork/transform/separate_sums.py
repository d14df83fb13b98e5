"""Nests with several sums, of which some are contractions: a nest for each of them, with scratch tensors in between.

    for i in range(n):                            for i in range(n): for j in range(m):
        for j in range(m):                            s = 0.0
            s = 0.0                                   for k in range(p): s += a[i, k] * g[k, j]
            t = 0.0                                   kept[i, j] = s
            for k in range(p):             ->     for i in range(n): for j in range(m):
                s += a[i, k] * g[k, j]                t = 0.0
                t += a[i, k] * u[k, j]                for k in range(p): t += a[i, k] * u[k, j]
            y[i, j] = silu(s) * t                     y[i, j] = silu(kept[i, j]) * t

Each nest may then run in tiles. What a sum adds to an element that others say (`y[at[i], k] += s`), or to a variable of
a loop around (`most = max(most, s)`), has a nest, too. What does not go with a loop around, as norms of columns in a
nest of rows, is computed before that loop, once; and so is what an inner loop computes for products.
Legal where all iterations of a part may run before all of the next one. Variables that pass from part to part are kept
for each iteration, or computed again where indices and sizes say them. Invariant: the nests run where rows, columns and
terms are worth tiles, and there is room; elsewhere the kernel runs as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.verdicts import Bound
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Launch,
    Load,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.matrix import LEAST_TERMS
from brickwork.target.target import Target
from brickwork.transform.nest_parts import NestCutter, UncutError, asked
from brickwork.transform.nests_apart import Changed, Place, each_launch, launches, worth_tiles
from brickwork.transform.schedule.contract_loops import opened
from brickwork.transform.scratch import Names
from brickwork.transform.sums_apart import assigned_for, sums_of, total_of

APART = "_sums"
"""Ends the name of a kernel with a nest for each sum."""
REMARK = "where each sum of products is worth tiles, and there is room for what passes between them"
"""What `explain` says of it."""


@each_launch("matrix")
def with_separate_sums(launch: Launch, names: Names, target: Target) -> Changed:
    """Return launches of a kernel's nests that are cut, and of what stands between them, and remarks on those."""
    kernel = launch.kernel
    if not any(_has_several(node) for node in statements(kernel.body) if isinstance(node, For)):
        return (launch,), {}
    found = _Cutter.of(kernel, names, target).all_cut(kernel.body)
    return launches(launch, found, APART, REMARK, most=target.scratch_bytes)


def _has_several(loop: For) -> bool:
    """Whether a loop has several loops in it, or one that adds up several sums, so that an analysis is worth making."""
    body = opened(asked(loop.body)[1])
    inner = [item for item in body if effects(item).loops]
    several = len(inner) > 1 or any(len(sums_of(item)) > 1 for item in inner)
    begun = any(_is_begun(body[: body.index(item)], item) for item in inner)
    return several or begun or (bool(inner) and any(_goes_on(item, body, loop) for item in body))


def _is_begun(block: Sequence[Statement], total: Statement) -> bool:
    """Whether conditions before a sum say what it begins with, and nothing else that it is made of."""
    begins = [item for item in block if isinstance(item, If) and not effects(item).loops]
    if not begins or len(sums_of(total)) != 1:
        return False
    return assigned_symbols(begins) & read_symbols(total) == frozenset({total_of(total)})


def _goes_on(statement: Statement, block: Block, loop: For) -> bool:
    """Whether a statement of a loop's block changes what other iterations change: it is no contraction's epilogue.

    That are elements at places that other elements say, or that do not go with the loop, and variables that pass from
    one iteration to the next.
    """
    if not effects(statement).loops and live_before(block, NONE) & assigned_symbols(statement):
        return True
    match statement:
        case Store(tensor=tensor, indices=indices, value=value):
            assigned = {item.symbol: item.value for item in block if isinstance(item, Assign)}
            own = read_symbols(indices)
            read = {symbol for symbol in own if symbol in assigned and effects(assigned[symbol]).loads}
            changes = any(isinstance(node, Load) and node.tensor == tensor for node in walk(value))
            return changes and bool(effects(indices).loads or read or own.isdisjoint({loop.index, *assigned}))
        case If(then=then, otherwise=()):
            return any(_goes_on(item, (*block, *then), loop) for item in then)
        case _:
            return False


# ---------------------------------------------------------------- parts


@dataclass(slots=True)
class _Cutter(NestCutter):
    """Cuts the nests of one kernel at its contractions."""

    def loops(self, loop: For, place: Place) -> list[Statement]:
        """Return a loop as one for each part of its body, behind what does not go with it."""
        inside = place.inside(loop)
        condition, body = asked(loop.body)
        spread = self.spread(opened(body, self.live[loop.index]), inside)
        ahead, rest = self.taken_out(loop, spread, inside) if condition is None else ((), spread)
        parts = self.parts(rest, inside)
        if len(parts) == 1 and not ahead:
            return [loop]
        if not self.may_be_parted(loop, parts):
            raise UncutError
        return [*ahead, *self.parted(loop, parts, condition, inside)]

    def spread(self, block: Block, place: Place) -> Block:
        """Return a block with the loops in it cut, and with a loop for each contraction that one of them adds up."""
        result: list[Statement] = []
        for statement in block:
            inner = (node.index for node in statements(statement) if isinstance(node, For))
            sums = sums_of(statement, frozenset[Symbol]().union(*(self.live[index] for index in inner)))
            if len(sums) > 1 and self.is_worth_apart(sums, block, place):
                result += sums
            elif isinstance(statement, For) and not sums:
                result += self.loops(statement, place)
            else:
                result.append(statement)
        return tuple(result)

    def is_worth_apart(self, sums: Sequence[Statement], block: Block, place: Place) -> bool:
        """Whether one of the variables of sums is left with contractions, and with what goes with fewer loops.

        Of `s += a * b + c * d` nothing is gained if the second product takes as long as both do together.
        """
        found = [self.is_contraction(item, block, place) for item in sums]
        short = [bool(self.needless((*assigned_for(item, block), item), place)) for item in sums]
        rest = {total_of(item) for item, *ways in zip(sums, found, short, strict=True) if not any(ways)}
        return any(way and total_of(item) not in rest for item, way in zip(sums, found, strict=True))

    def parts(self, block: Block, place: Place) -> list[Block]:
        """Return a block in parts, cut between loops of which one has a contraction in it, right after the first.

        What goes with fewer loops is a part, and so is what comes after a contraction, but is no epilogue of it.
        Conditions that say what a contraction begins with are one, too.
        """
        parts: list[Block] = []
        rest, last, narrow = list[Statement](), None, False
        contractions = [self.has_contraction(statement, block, place) for statement in block]
        for number, statement in enumerate(block):
            if _is_long(statement):
                needless = self.needless((*assigned_for(statement, block[:number]), statement), place)
                narrow = bool(needless) and any(contractions)
                begun = last is None and contractions[number] and _is_begun(rest, statement)
                if begun or (last is not None and (contractions[number] or narrow or last)):
                    rest = _cut(rest, parts)
                last = contractions[number] or narrow
            elif last and (
                _goes_on(statement, block, place.loops[-1]) or (narrow and not isinstance(statement, Assign))
            ):
                rest, last = _cut(rest, parts), None
            rest.append(statement)
        return [*parts, tuple(rest)]

    def has_contraction(self, statement: Statement, block: Block, place: Place) -> bool:
        """Whether a contraction stands in a loop, or is one, together with the loops around."""
        if sums_of(statement):
            return self.is_contraction(statement, block, place)
        if self.takes_up(statement, block, place):
            return True
        if not isinstance(statement, For):
            return False
        inside, (_, body) = place.inside(statement), asked(statement.body)
        return any(self.has_contraction(item, body, inside) for item in body)

    def is_contraction(self, statement: Statement, block: Block, place: Place) -> bool:
        """Whether a sum is a contraction, together with the loops around; notes what makes it worth tiles."""
        if len(sums_of(statement)) != 1:
            return False
        (only,) = sums_of(statement)
        if any(self.is_checked(node) for node in walk(only) if isinstance(node, Load)):
            return False
        around = [item for loop in place.loops[:-1] for item in loop.body if isinstance(item, Assign)]
        ahead = (*around, *(item for item in block if isinstance(item, Assign)))
        worth = worth_tiles(ahead, only, place)
        self.worth += worth or ()
        return worth is not None

    def takes_up(self, statement: Statement, block: Block, place: Place) -> bool:
        """Whether a statement adds products of what a loop before it computes, as a contraction of the loop around.

        It adds them to a variable, or to elements that do not go with the loop around; notes what makes it worth tiles.
        """
        inner: list[For] = []
        last = statement
        while isinstance(last, For) and len(last.body) == 1:
            inner.append(last)
            (last,) = last.body
        added = _taken_up(last)
        end = next((number for number, item in enumerate(block) if item is statement), 0)
        made = [item for item in block[:end] if effects(item).loops]
        values = {
            symbol: self.as_kept(symbol, (*assigned_for(item, block), item), place)
            for item in made
            for symbol in assigned_symbols(item)
        }
        loop = place.loops[-1]
        if (
            added is None
            or added.dtype is not FLOAT32
            or (isinstance(last, Store) and loop.index in read_symbols(last.indices))
        ):
            return False
        total = Symbol("total", -1, FLOAT32)
        sum_up = Assign(symbol=total, value=build.add(build.read(total), added))
        before = assigned_for(sum_up, block[:end])
        ahead = [item for item in before if item.symbol not in values]
        body = tuple(substitute(item, values) for item in (*ahead, sum_up))
        kept = effects(body).loads & {made.tensor for made in self.kept}
        if not (kept or read_symbols((*ahead, sum_up)) & values.keys()):
            return False
        if any(self.is_checked(node) for node in walk(body) if isinstance(node, Load)):
            return False
        around = [item for each in place.loops[:-1] for item in each.body if isinstance(item, Assign)]
        inside = place
        for each in inner:
            inside = inside.inside(each)
        nest = Place((*place.loops[:-1], *inner), inside.ranges)
        worth = worth_tiles(around, replace(loop, body=body), nest)
        self.worth += worth or ()
        return worth is not None

    def as_kept(self, symbol: Symbol, own: Block, place: Place) -> Load:
        """Return what a variable is worth that a block computes, as if it were kept for the loops it goes with."""
        needless = self.needless(own, place)
        indices = tuple(build.read(loop.index) for loop in place.loops if loop.index not in needless)
        made = TensorType(symbol.dtype, len(indices), contiguous=True, unit_axis=len(indices) - 1)
        return Load(tensor=Tensor(symbol.name, -1, made), indices=indices, access=-1, dtype=symbol.dtype)

    def is_checked(self, load: Load) -> bool:
        """Whether each execution checks where an element is read, which no tile does."""
        found = (self.facts.bounds.get((load.access, axis)) for axis in range(len(load.indices)))
        return any(verdict is not None and verdict.bound is Bound.CHECKED for verdict in found)

    # ------------------------------------------------------------ what goes with fewer loops

    @legality
    def needless(self, block: Block, place: Place) -> frozenset[Symbol]:
        """Return the loops around that a block does not go with: it computes the same in each of their iterations.

        They have bounds that are known before the nest, so whether they have iterations is, too. Loops that have others
        stay around it, and so do those that they go with.
        """
        found, kept = effects(block), {made.tensor for made in self.kept}
        if not found.stores <= kept or found.loads & self.changed:
            return frozenset()
        bounds = {loop.index: read_symbols((loop.start, loop.stop)) for loop in place.loops}
        needed = {*live_before(block, NONE)}
        for index, read in bounds.items():
            needed |= frozenset() if read <= self.known.fixed else {index, *read}
        if needed - self.known.fixed - bounds.keys():
            return frozenset()
        return frozenset(bounds) - needed

    def taken_out(self, loop: For, block: Block, place: Place) -> tuple[Block, Block]:
        """Return what of a loop's body does not go with it, and loops, and the rest; notes that there are iterations.

        Raises UncutError where what is kept for fewer loops would have to be stored in each iteration.
        """
        ahead: list[Statement] = []
        rest = [*block]
        for statement in block:
            own = (*assigned_for(statement, rest), statement)
            if effects(statement).loops and self.may_be_taken_out(own, rest, loop, place):
                ahead += own
                rest = [*_others(own, rest)]
        narrow = {made.tensor for made in self.kept if loop.index in self.without.get(made.tensor, ())}
        if effects(rest).stores & narrow:
            raise UncutError
        if ahead:
            self.worth.append(build.apply("ge", build.iterations(loop.start, loop.stop), build.integer(1)))
        return tuple(ahead), tuple(rest)

    @legality
    def may_be_taken_out(self, own: Block, block: Sequence[Statement], loop: For, place: Place) -> bool:
        """Whether statements of a loop's body may run once before it, with a contraction left in the body."""
        if loop.index not in self.needless(own, place):
            return False
        end = next(number for number, item in enumerate(block) if item is own[-1])
        before, after = (_others(own, part) for part in (block[:end], block[end:]))
        others, assigned = (*before, *after), _variables(own)
        if assigned & (live_before(tuple(block), NONE) | live_before(before, NONE)):
            return False
        if assigned & _variables(others) & (live_before(after, NONE) | self.live[loop.index]):
            return False
        return any(self.has_contraction(item, others, place) for item in others)


def _others(own: Block, block: Sequence[Statement]) -> Block:
    return tuple(item for item in block if not any(item is each for each in own))


def _taken_up(statement: Statement) -> Expression | None:
    """Return what a statement adds to a variable, or to an element; None if it does not."""
    match statement:
        case Assign(symbol=symbol, value=Apply(operator=operator, operands=operands)) if operator.name == "add":
            rest = [item for item in operands if item != Read(symbol=symbol)]
        case Store(tensor=tensor, indices=indices, value=Apply(operator=operator, operands=operands)) if (
            operator.name == "add"
        ):
            rest = [
                item
                for item in operands
                if not isinstance(item, Load) or (item.tensor, item.indices) != (tensor, indices)
            ]
        case _:
            return None
    return rest[0] if len(rest) == 1 else None


def _variables(block: Iterable[Statement]) -> set[Symbol]:
    return {node.symbol for statement in block for node in statements(statement) if isinstance(node, Assign)}


def _cut(rest: Sequence[Statement], parts: list[Block]) -> list[Statement]:
    """Add a part that ends after the last loop of some statements; return what is left of them."""
    end = max(n for n, item in enumerate(rest) if not isinstance(item, Assign)) + 1
    parts.append(tuple(rest[:end]))
    return [*rest[end:]]


def _is_long(statement: Statement) -> bool:
    """Whether a statement is a loop, or has one, that is worth a nest of its own."""
    match statement:
        case For(start=Constant(value=start), stop=Constant(value=stop), body=body) if not effects(body).loops:
            return stop - start >= LEAST_TERMS
        case _:
            return effects(statement).loops
