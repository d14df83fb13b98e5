"""Searches: loops that keep the least or greatest of their values, and beside it what belongs to that, as its place.

    for i in range(n):                  reductions: maximum(best), where along with it
        if x[i] > best:
            best, where = x[i], i

`<` and `>` keep the first of several iterations with equal values, `<=` and `>=` the last. NaN is never kept, and goes
nowhere where it is what `best` begins with. So partial results can be joined in any order: the better value wins, and
of equal ones the place decides. Where none of the variables is the index of a loop, `with_place` adds one that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    If,
    Load,
    Node,
    Read,
    Reduction,
    Statement,
    Symbol,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import operands_of, read_symbols, rewrite, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass

Symbols = frozenset[Symbol]
MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""What a comparison is called with its operands exchanged."""
EXTREMES = {"lt": "minimum", "le": "minimum", "gt": "maximum", "ge": "maximum"}
"""What a comparison with the best value so far keeps."""
PLACE_NUMBERS = 3_700_000
"""Numbers of the places made in here start from this, and end before the next hundred thousand."""


@dataclass(frozen=True, slots=True)
class Arm:
    """`if value <compare> best: best = value; ...`: the `targets` of its assignments, and what they are `given`."""

    compare: str
    best: Symbol
    targets: tuple[Symbol, ...]
    given: dict[Symbol, Expression]

    @property
    def kind(self) -> tuple[str, Symbols]:
        """What all arms of a search have in common."""
        return self.compare, frozenset(self.given)


@dataclass(frozen=True, slots=True)
class Search:
    """The arms of a loop that keep one value, and the variables that are noted beside it."""

    arms: tuple[Arm, ...]
    noted: tuple[Symbol, ...]

    def place(self, loop: For) -> Symbol | None:
        """Return the variable that is the loop's index."""
        index = Read(symbol=loop.index)
        return next((item for item in self.noted if all(arm.given[item] == index for arm in self.arms)), None)

    def reductions(self, place: Symbol) -> tuple[Reduction, ...]:
        """Return the reductions of a loop whose index a variable is."""
        best, compare = self.arms[0].best, self.arms[0].compare
        which = "minimum" if compare in {"lt", "gt"} else "maximum"
        others = (Reduction(item, OPERATORS["add"], best) for item in self.noted if item != place)
        first = Reduction(best, OPERATORS[EXTREMES[compare]])
        return (first, Reduction(place, OPERATORS[which], best), *others)


@legality
def search_of(loop: For, best: Symbol, outliving: Symbols) -> Search | None:
    """Return the search for a value in a loop, if nothing else reads or sets what is noted of it.

    `outliving` are the variables whose values are read after the loop.
    """
    arms = tuple(
        arm
        for node in statements(loop.body)
        if isinstance(node, If) and (arm := arm_of(node)) is not None and arm.best == best
    )
    if best.dtype is BOOL or len({arm.kind for arm in arms}) > 1:
        return None
    reads = [node.symbol for node in walk(loop.body) if isinstance(node, Read)]
    sets = [node.symbol for node in statements(loop.body) if isinstance(node, Assign)]
    own = [symbol for arm in arms for symbol in arm.targets]
    alone = {symbol for symbol in own if sets.count(symbol) == own.count(symbol) and symbol not in reads}
    if {*own} & outliving - alone - {best} or sets.count(best) != len(arms) or reads.count(best) != len(arms):
        return None
    noted = sorted((item for item in alone if item in outliving or is_made(item)), key=lambda item: item.number)
    return Search(arms, tuple(noted))


@legality
def arm_of(choice: If) -> Arm | None:
    """Return what a branch does if that is to keep a value which is better than the best one so far."""
    assigns = [item for item in choice.then if isinstance(item, Assign)]
    given = {item.symbol: item.value for item in assigns}
    if len(assigns) < len(choice.then) or choice.otherwise:
        return None
    for condition in operands_of(choice.condition, "logical_and"):
        if not isinstance(condition, Apply) or condition.operator.name not in MIRRORED:
            continue
        compare = condition.operator.name
        for name, value, best in ((compare, *condition.operands), (MIRRORED[compare], *condition.operands[::-1])):
            if not isinstance(best, Read) or best.symbol not in given or read_symbols(value) & given.keys():
                continue
            if without_numbers(given[best.symbol]) == without_numbers(value):
                return Arm(name, best.symbol, tuple(item.symbol for item in assigns), given)
    return None


def is_made(symbol: Symbol) -> bool:
    """Whether a variable is a place that was made in here."""
    return PLACE_NUMBERS <= symbol.number < PLACE_NUMBERS + 100_000


def same(one: Expression, other: Expression) -> bool:
    """Whether two expressions are the same, but for the places where they stand in the source."""
    return without_numbers(one) == without_numbers(other)


def without_numbers(expression: Expression) -> Expression:
    """Return the expression with reads that do not tell at which place of the source they stand."""

    def visit(node: Node) -> Node:
        return replace(node, access=0) if isinstance(node, Load) else node

    return rewrite(expression, visit)


# ---------------------------------------------------------------- places


def with_place(loop: For, outliving: Symbols, numbers: Iterator[int]) -> Block:
    """Return a loop whose searches note their places, and before it what gives those a value."""
    starts: list[Statement] = []
    for best in sorted(outliving, key=lambda symbol: symbol.number):
        found = search_of(loop, best, outliving)
        if found is None or not found.noted or found.place(loop) is not None:
            continue
        place = Symbol(f"{loop.index.name}_place", next(numbers), INT64)
        noted = Assign(symbol=place, value=build.read(loop.index), loc=loop.loc)
        starts.append(replace(noted, value=build.integer(0)))
        loop = rewrite(loop, lambda node, best=best, noted=noted: _noting(node, best, noted))
    return (*starts, loop)


def _noting(node: Node, best: Symbol, noted: Assign) -> Node:
    """Return an arm that keeps a value with one assignment more."""
    if not isinstance(node, If) or (arm := arm_of(node)) is None or arm.best != best:
        return node
    return replace(node, then=(*node.then, noted))
