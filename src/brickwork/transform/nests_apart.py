"""Kernels of their own for nests that are written anew, where sizes are worth it: launches beside those as they were.

    launch f(x, ...)      ->      launch f: what stands before the nest
                                  if rows, columns and terms are enough: launch f_sums   else: launch f_nest_1
                                  launch f_nest_2: what stands after it

Invariant: both kernels of a choice leave the same elements, and no variable passes between launches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce, wraps
from itertools import count

from brickwork.analysis.contractions import find_contraction, grouped
from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.nodes import Allocate, Assign, Block, Expression, For, If, Kernel, Launch, Program, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, statements
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.matrix import LEAST_AREA, LEAST_SIDE, LEAST_TERMS
from brickwork.target.target import Target
from brickwork.transform.explanation import IN_ORDER, OTHERWISE
from brickwork.transform.free_variables import with_body
from brickwork.transform.guard import conjunction
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.scratch import Names, names_of


@dataclass(frozen=True, slots=True)
class Apart:
    """Nests in place of one, what they keep between them, and what must hold so that they are worth it."""

    nests: Block
    kept: tuple[Allocate, ...]
    worth: tuple[Expression, ...]

    @property
    def bytes(self) -> Expression:
        """How much memory is taken by what is kept."""
        sizes = (build.mul(build.product(item.sizes), build.integer(item.tensor.type.dtype.size)) for item in self.kept)
        return reduce(build.add, sizes, build.integer(0))


@legality
def stand_apart(body: Block) -> bool:
    """Whether the statements of a kernel leave no variable for one another."""
    return not any(live_before(body[place:], NONE) & assigned_symbols(body[:place]) for place in range(1, len(body)))


@legality
def stands_alone(nest: For, live: frozenset[Symbol]) -> bool:
    """Whether no variable passes between a nest's iterations, or from them to what comes after."""
    return not assigned_symbols(nest) & (live_before((nest,), NONE) | live)


Changed = tuple[Block, dict[str, str]]
"""What is launched in place of a kernel, and remarks on the kernels of it."""


Pass = Callable[[Program, Target], tuple[Program, dict[str, str]]]


def each_launch(needed: str) -> Callable[[Callable[[Launch, Names, Target], Changed | None]], Pass]:
    """Make a pass over programs of what changes one launch, for targets that have what is `needed`.

    It is given names that the program does not use.
    """

    def passing(change: Callable[[Launch, Names, Target], Changed | None]) -> Pass:
        @wraps(change)
        def run(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
            if not getattr(target, needed):
                return program, {}
            names = names_of(program)
            return with_each(program, lambda launch: change(launch, names, target))

        return run

    return passing


def with_each(program: Program, change: Callable[[Launch], Changed | None]) -> tuple[Program, dict[str, str]]:
    """Return a program with its launches changed, and all remarks; kernels whose tensors may share memory stay.

    Invariant: different kernels of a program have different names.
    """
    remarks = dict[str, str]()
    launched = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    taken, times = {kernel.name: kernel for kernel in launched}, Counter(kernel.name for kernel in launched)

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, Launch) or statement.kernel.may_alias or (changed := change(statement)) is None:
            return (statement,)
        if times[statement.kernel.name] == 1:
            del taken[statement.kernel.name]
        block, named = _with_own_names(changed[0], taken)
        remarks.update({named.get(name, name): remark for name, remark in changed[1].items()})
        return block

    return replace(program, body=in_branches(program.body, visit)), remarks


def _with_own_names(block: Block, taken: dict[str, Kernel]) -> tuple[Block, dict[str, str]]:
    """Return launches of kernels whose names no other kernel has, and what was renamed; `taken` has all afterwards."""
    named = dict[str, str]()

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, Launch):
            return (statement,)
        kernel, plain = statement.kernel, statement.kernel.name
        numbers = count(2)
        while taken.setdefault(kernel.name, kernel) != kernel:
            kernel = replace(kernel, name=f"{plain}_{next(numbers)}")
        if kernel.name != plain:
            named[plain] = kernel.name
        return (replace(statement, kernel=kernel),)

    return in_branches(block, visit), named


def in_branches(block: Block, change: Callable[[Statement], Block]) -> Block:
    """Return a block with each statement changed that is no branch, in branches, too."""
    result: list[Statement] = []
    for statement in block:
        match statement:
            case If(then=then, otherwise=otherwise):
                then, otherwise = in_branches(then, change), in_branches(otherwise, change)
                result.append(replace(statement, then=then, otherwise=otherwise))
            case _:
                result += change(statement)
    return tuple(result)


def beside(launch: Launch, condition: Expression, made: Block, other: Kernel, remark: str) -> Changed:
    """Return a launch of another kernel, with what is made for it, where a condition holds, and remarks on both."""
    choice = If(condition=condition, then=(*made, replace(launch, kernel=other)), otherwise=(launch,))
    return (choice,), {other.name: remark, launch.kernel.name: OTHERWISE}


def launches(
    launch: Launch, found: Sequence[Apart | None], ending: str, remark: str, *, most: int = 0, usual: bool = False
) -> Changed:
    """Return launches of a kernel's statements, of which some may run as other nests, and remarks on the kernels.

    Names of kernels with these have an `ending`. They take no more than `most` bytes. If they are the `usual` ones, the
    others run in order, as little code as may be.
    """
    kernel, result, remarks = launch.kernel, list[Statement](), dict[str, str]()
    rest: list[Statement] = []
    if kernel.ascending or not any(found) or not stand_apart(kernel.body):
        return (launch,), {}

    def part(block: Block) -> Launch:
        name = f"{kernel.name}_nest_{len(result)}" if result else kernel.name
        return replace(launch, kernel=replace(with_body(kernel, block, kernel.facts), name=name))

    for statement, apart in zip(kernel.body, found, strict=True):
        if apart is None:
            rest.append(statement)
            continue
        fits = build.apply("le", apart.bytes, build.integer(most))
        condition = conjunction((*dict.fromkeys(apart.worth), fits))
        if build.is_constant(condition, 1):
            rest += apart.nests
            continue
        if rest:
            result.append(part(tuple(rest)))
            rest = []
        whole = part((statement,))
        whole = replace(whole, kernel=replace(whole.kernel, may_alias=usual))
        name = f"{whole.kernel.name}{ending}"
        remarks |= {name: remark, whole.kernel.name: IN_ORDER if usual else OTHERWISE}
        sizes = [(made.tensor, axis, size) for made in apart.kept for axis, size in enumerate(made.sizes)]
        facts = [build.apply("eq", build.size(tensor, axis), size) for tensor, axis, size in sizes]
        nests = replace(with_body(kernel, apart.nests, (*facts, *kernel.facts)), name=name)
        result.append(If(condition=condition, then=(*apart.kept, replace(launch, kernel=nests)), otherwise=(whole,)))
    if rest:
        result.append(part(tuple(rest)))
    return tuple(result), remarks


# ---------------------------------------------------------------- use


@dataclass(frozen=True, slots=True)
class Place:
    """The loops around a block, and the ranges of their indices."""

    loops: tuple[For, ...]
    ranges: Ranges

    def inside(self, loop: For) -> Place:
        """Return the place of a loop's body."""
        return Place((*self.loops, loop), self.ranges.inside(loop))

    def total(self, loops: Sequence[For]) -> Expression | None:
        """Return how many iterations loops have together at most, if that is known."""
        total, ranges = build.integer(1), self.ranges
        for loop in loops:
            count = ranges.iterations(loop)
            if count is None:
                return None
            total, ranges = build.mul(total, count), ranges.inside(loop)
        return total


def worth_tiles(ahead: Sequence[Assign], only: Statement, place: Place) -> tuple[Expression, ...] | None:
    """Return what must hold so that a sum at a place is worth tiles; None if it is no contraction, or never worth them.

    `ahead` is assigned before it.
    """
    body = (*ahead, only)
    groups = grouped(body, [loop.index for loop in place.loops])
    found = None if groups is None else find_contraction(body, *groups)
    if groups is None or found is None:
        return None
    rows, columns = (place.total([loop for loop in place.loops if loop.index in group]) for group in groups)
    terms = place.total(found.sums)
    if rows is None or columns is None or terms is None:
        return None
    least = (rows, LEAST_SIDE), (columns, LEAST_SIDE), (build.mul(rows, columns), LEAST_AREA), (terms, LEAST_TERMS)
    asked = tuple(build.apply("ge", value, build.integer(number)) for value, number in least)
    return None if any(build.is_constant(item, 0) for item in asked) else asked
