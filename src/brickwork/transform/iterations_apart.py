"""An iteration that stores what the others of its loop read stands between two loops, whose iterations are independent.

    for i in range(n):                            for i in range(k):            (independent)
        for j in range(n):                            ...
            d[i, j] = min(d[i, j],        ->      ... with i = k
                          d[i, k] + d[k, j])      for i in range(k + 1, n):     (independent)
                                                      ...

So shortest paths, in which step `k` reads row and column `k` of what it stores into, run in parallel but for that row
and column. Legal whatever the loop does: its iterations keep their order. It is cut at the place of an access that does
not move with it, of a tensor that it stores into along its own index.
Invariant: a loop stays whole unless its iterations are independent on both sides of the cut, and were not before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field, replace

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Analysis, ConflictKind
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Block,
    Constant,
    Expression,
    For,
    If,
    Launch,
    Load,
    Program,
    Read,
    Statement,
    Store,
    Symbol,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, substitute_block, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.canonical.choices import is_simple
from brickwork.transform.guard import conjunction
from brickwork.transform.nests_apart import Changed, with_each
from brickwork.transform.schedule.planner import LARGE_BODY
from brickwork.transform.scratch import Names, copied, names_of


def with_iterations_apart(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return a program whose loops are cut at iterations that keep the others in order."""
    del target
    names = names_of(program)
    return with_each(program, lambda launch: _changed(launch, names))


def _changed(launch: Launch, names: Names) -> Changed | None:
    """Return a launch of a kernel whose loops are cut; None if none is."""
    kernel = launch.kernel
    indices = frozenset(loop.index for loop in statements(kernel.body) if isinstance(loop, For))
    known = indices | (frozenset(kernel.scalars) - assigned_symbols(kernel.body))
    loops = () if kernel.ascending else (loop for loop in statements(kernel.body) if isinstance(loop, For))
    chosen = {loop.index for loop in loops if _place(loop, known) is not None}
    if not chosen:
        return None
    analysis = analyse(kernel)
    chosen = {index for index in chosen if _is_kept_in_order(index, analysis)}
    while chosen:
        cutter = _Cutter(chosen, known, names)
        cut_up = replace(kernel, body=cutter.block(kernel.body, ()))
        verdicts = analyse(cut_up).loops
        parts = cutter.parts.items()
        whole = {index for index, made in parts if not all(verdicts[part].independent for part in made)}
        if not (whole := whole | cutter.large):
            return (replace(launch, kernel=cut_up),), {}
        chosen -= whole
    return None


def _is_kept_in_order(index: Symbol, analysis: Analysis) -> bool:
    """Whether elements alone keep the iterations of a loop in order."""
    verdict = analysis.loops[index]
    return verdict.conflict is not None and verdict.conflict.kind is ConflictKind.ELEMENTS and not verdict.claimed


@legality
def _place(loop: For, known: frozenset[Symbol]) -> Expression | None:
    """Return the iteration that may keep a loop in order; the host knows the variables that are `known`."""
    inside = effects(loop.body)
    if inside.leaves or inside.draws:
        return None
    places = {*_places(loop)}
    found = places.pop() if len(places) == 1 else None
    return found if found is not None and read_symbols(found) <= known else None


def _places(loop: For) -> Iterator[Expression]:
    """Yield the iterations of a loop that store along its index where all others access the same tensor, too."""
    accesses = [node for node in walk(loop.body) if isinstance(node, Load | Store)]
    fixed = frozenset(assigned_symbols(loop))
    for store in (item for item in accesses if isinstance(item, Store)):
        for axis, index in enumerate(store.indices):
            if (offset := _offset(index, loop.index)) is None:
                continue
            for other in accesses:
                if other.tensor == store.tensor and _is_fixed(other.indices[axis], fixed):
                    yield build.sub(other.indices[axis], build.integer(offset))


def _offset(index: Expression, own: Symbol) -> int | None:
    """Return how far an index is beyond a loop's own, if that is a number."""
    match index:
        case Read(symbol=symbol) if symbol == own:
            return 0
        case Apply(operator=operator, operands=(Read(symbol=symbol), Constant(value=int(far)))) if symbol == own:
            return far if operator.name == "add" else None
        case _:
            return None


@legality
def _is_fixed(index: Expression, assigned: frozenset[Symbol]) -> bool:
    """Whether an index is the same for all iterations of a loop, and known where none of them asks for it."""
    return is_simple(index) and not read_symbols(index) & assigned


@dataclass(slots=True)
class _Cutter:
    """Cuts loops at one of their iterations, and notes what becomes of each, and which are too `large` for that.

    Of loops that were copied it knows the origin.
    """

    chosen: Collection[Symbol]
    known: frozenset[Symbol]
    names: Names
    origins: dict[Symbol, Symbol] = field(default_factory=dict[Symbol, Symbol])
    parts: dict[Symbol, list[Symbol]] = field(default_factory=dict[Symbol, "list[Symbol]"])
    large: set[Symbol] = field(default_factory=set[Symbol])

    def block(self, block: Block, around: Sequence[For]) -> Block:
        """Return a block with its loops cut, which stands in the loops `around`."""
        return tuple(part for statement in block for part in self.statement(statement, around))

    def statement(self, statement: Statement, around: Sequence[For]) -> Block:
        """Return a statement with its loops cut."""
        match statement:
            case If(then=then, otherwise=otherwise):
                branches = (self.block(each, around) for each in (then, otherwise))
                return (replace(statement, then=next(branches), otherwise=next(branches)),)
            case For():
                origin = self.origins.get(statement.index, statement.index)
                place = _place(statement, self.known) if origin in self.chosen else None
                if place is None:
                    return (self.whole(statement, around),)
                cut_up = self.cut(statement, place, around, self.parts.setdefault(origin, []))
                if sum(1 for _ in walk(cut_up[0])) > LARGE_BODY:
                    self.large.add(origin)
                return cut_up
            case _:
                return (statement,)

    def whole(self, loop: For, around: Sequence[For]) -> For:
        """Return a loop with those in it cut."""
        return replace(loop, body=self.block(loop.body, (*around, loop)))

    @legality
    def cut(self, loop: For, place: Expression, around: Sequence[For], parts: list[Symbol]) -> Block:
        """Return the iterations of a loop before a place, that one, and those after it."""
        begun, ended = _limits(loop, place, around)
        # The next number is one only where the place is in the loop, and not the greatest of all numbers.
        after = build.add(place if ended else build.apply("minimum", place, loop.stop), build.integer(1))
        first = replace(loop, stop=place if ended else build.apply("minimum", loop.stop, place))
        last = replace(self.copy(loop), start=after if begun else build.apply("maximum", loop.start, after))
        parts += [first.index, last.index]
        alone = self.copy(loop)
        middle = self.block(substitute_block(alone.body, {alone.index: place}), around)
        asked = [] if begun else [build.apply("le", loop.start, place)]
        asked += [] if ended else [build.apply("lt", place, loop.stop)]
        if asked:
            middle = (If(condition=conjunction(asked), then=middle, loc=loop.loc),)
        return (self.whole(first, around), *middle, self.whole(last, around))

    def copy(self, loop: For) -> For:
        """Return a loop once more, and note where it is from."""
        result = copied(loop, self.names)
        pairs = zip(_loops(loop), _loops(result), strict=True)
        self.origins |= {new.index: self.origins.get(old.index, old.index) for old, new in pairs}
        return result


def _loops(loop: For) -> Iterator[For]:
    return (node for node in (loop, *statements(loop.body)) if isinstance(node, For))


@legality
def _limits(loop: For, place: Expression, around: Sequence[For]) -> tuple[bool, bool]:
    """Whether an iteration is at or after the first one of a loop, and before its end: another loop around says so."""
    other = next((each for each in around if build.read(each.index) == place), None)
    if other is None:
        return False, False
    moved = assigned_symbols(other.body)
    match loop.start, other.start:
        case Constant(value=least), Constant(value=begin):
            begun = least <= begin
        case least, begin:
            begun = least == begin and _is_fixed(least, moved)
    return begun, loop.stop == other.stop and _is_fixed(loop.stop, moved)
