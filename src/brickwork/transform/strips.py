"""Computes ahead what a loop in order stores, strip by strip, so that lanes compute it (processors).

    for j in range(n):                        for strip in range((n + 63) // 64):
        v, at = f(x[j])                           for j in the strip:                  (in lanes)
        y[at] += v                   ->               values[j - first], places[j - first] = f(x[j])
                                                  for j in the strip:
                                                      y[places[j - first]] += values[j - first]

So gradients are computed that are added where data, floats or searches say, and `v[j] = f(v[j], v[j + 1])`, which then
is stored in lanes, too. What moves ahead reads no element that an earlier iteration stores into and no variable that
one leaves for the next, and stores nothing. Invariant: all that the loop stores, it stores in the order of the source,
so that results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import takewhile
from math import prod
from typing import cast

from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Loop
from brickwork.analysis.polynomial import UnknownAtom
from brickwork.analysis.races import Facts, may_meet
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis, Bound, ConflictKind, LoopVerdict
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Cast,
    Check,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Local,
    Node,
    Read,
    Select,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.tensor_types import type_of
from brickwork.ir.walk import assigned_symbols, local_bytes, read_symbols, rebuild, rewrite_statements, statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.cycles import ARITHMETIC
from brickwork.target.target import Target
from brickwork.transform.promote import reads
from brickwork.transform.schedule.lane_costs import lanes_pay, work
from brickwork.transform.schedule.planner import FEW, NEIGHBOUR, access_cost, trip_count, varies_with
from brickwork.transform.schedule.recurrence import is_division
from brickwork.transform.schedule.schedule import LANES_LIMIT
from brickwork.transform.scratch import Names, copied, names_of, with_variables

STRIP = 4 * LANES_LIMIT
"""Iterations of a strip: what a loop passes on stays in the nearest cache."""
SHORT_STRIP = LANES_LIMIT
"""Iterations of a strip if each has loops of its own, whose values are passed on, too."""


def with_strips(kernel: Kernel, analysis: Analysis, target: Target) -> Kernel:
    """Return the kernel with strips of the loops in order that compute much before they store; `analysis` is of it."""
    if kernel.may_alias:
        return kernel
    live = live_after_loops(kernel.body)
    names: list[Names] = []

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For) or not _is_candidate(statement, analysis):
            return (statement,)
        names[:] = names or [names_of(kernel, 1 + max((item.number for item in kernel.tensors), default=0))]
        strip = _cut(statement, live.get(statement.index, NONE), names[0], analysis)
        return (statement,) if strip is None or local_bytes(strip.body) > target.stack_bytes // 4 else (strip,)

    body = rewrite_statements(kernel.body, visit)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _is_candidate(loop: For, analysis: Analysis) -> bool:
    """Whether a long loop is in order for elements that it stores into, and lanes around would not read neighbours."""
    verdict, count = analysis.loops.get(loop.index), trip_count(loop)
    if verdict is None or verdict.conflict is None or verdict.conflict.kind is not ConflictKind.ELEMENTS:
        return False
    found = effects(loop.body)
    if loop.claimed or found.leaves or found.rebinds or found.draws or (count is not None and count <= FEW):
        return False
    if any(isinstance(node, For) and node.index not in analysis.loops for node in statements(loop.body)):
        return False
    return _has_known_ends(loop, analysis) and not _suits_lanes_around(loop, analysis)


def _suits_lanes_around(loop: For, analysis: Analysis) -> bool:
    """Whether iterations of a loop around have tensors of their own, or access neighbours where the loop's do not."""
    inside = analysis.inside(loop.index)
    own = {item.tensor for item in inside if item.store}
    lanes = all(_in_neighbours(item, loop) for item in inside if varies_with(item, loop.index))
    return any(
        any(not item.is_shared(around) for item in inside if item.tensor in own)
        or (not lanes and any(_in_neighbours(item, around.node) for item in inside))
        for around in takewhile(lambda each: each.node.index != loop.index, inside[0].loops)
        if analysis.loops[around.node.index].independent
    )


def _in_neighbours(access: Access, loop: For) -> bool:
    """Whether iterations of a loop access elements that lie side by side."""
    return varies_with(access, loop.index) and access_cost(access, {loop.index}) <= 2 * NEIGHBOUR


@legality
def _has_known_ends(loop: For, analysis: Analysis) -> bool:
    """Whether a loop's length is a 64-bit integer: one that data begin or end may have none."""
    around = next(item for item in analysis.model.loops if item.node.index == loop.index)
    return not any(isinstance(atom, UnknownAtom) for end in (around.start, around.stop) for atom in end.atoms())


def _cut(loop: For, live: frozenset[Symbol], names: Names, analysis: Analysis) -> For | None:
    """Return the loop over the strips of a loop; None where lanes would gain little. `live` is so after it."""
    strip, length = names.symbol(f"{loop.index.name}_strip", INT64), _length(loop)
    size = build.integer(length)
    first = build.add(loop.start, build.mul(build.read(strip), size))
    stop = build.apply("minimum", build.add(first, size), loop.stop)
    place = build.sub(build.read(loop.index), first)
    fixed = live | live_before(loop.body, NONE)
    checked = frozenset(access for (access, _), verdict in analysis.bounds.items() if verdict.bound is Bound.CHECKED)
    around, facts = _facts(loop, analysis)
    early = _early_reads(analysis.inside(loop.index), around, facts)
    cutter = _Cutter(loop, names, fixed, place, checked, early)
    ahead, behind = cutter.block(loop.body, ())
    while both := cutter.moved & cutter.left:
        fixed |= both
        cutter = _Cutter(loop, names, fixed, place, checked, early)
        ahead, behind = cutter.block(loop.body, ())
    one = replace(loop, start=first, stop=stop, body=ahead)
    lanes = not cutter.left & fixed and _are_free(behind, analysis.inside(loop.index), around, facts)
    if not cutter.passed or not (lanes or _pays(one, behind, cutter.passed)) or not _lanes_pay(one, analysis):
        return None
    twice = assigned_symbols(ahead) & assigned_symbols(behind)
    own = {symbol: names.symbol(symbol.name, symbol.dtype) for symbol in sorted(twice, key=lambda item: item.number)}
    other = with_variables(copied(replace(one, body=behind), names), own)
    made = (Local(tensor=tensor, loc=loop.loc) for tensor in cutter.passed)
    count = build.apply("floordiv", build.add(build.sub(loop.stop, loop.start), build.integer(length - 1)), size)
    return replace(loop, index=strip, start=build.integer(0), stop=count, body=(*made, one, other))


def _length(loop: For) -> int:
    """Return how many iterations of a loop a strip has."""
    return SHORT_STRIP if effects(loop.body).loops else STRIP


def _facts(loop: For, analysis: Analysis) -> tuple[Loop, Facts]:
    """Return a loop in the model, and what questions about it rest on."""
    around = next(item for item in analysis.model.loops if item.node.index == loop.index)
    return around, Facts(analysis.model, Solver(), analysis.bounds)


@legality
def _early_reads(inside: Sequence[Access], around: Loop, facts: Facts) -> frozenset[int]:
    """Return the loads of what a loop stores into that find no element which an earlier iteration has stored."""
    stores = [item for item in inside if item.store]
    return frozenset(
        item.number
        for item in inside
        if not item.store
        and not any(
            item.tensor == store.tensor and may_meet(facts, around, store, item, depth=around.depth) for store in stores
        )
    )


def _are_free(behind: Block, inside: Sequence[Access], around: Loop, facts: Facts) -> bool:
    """Whether lanes may run what is left of a loop, too: it only stores apart what it was passed."""
    found, stores = effects(behind), [item for item in inside if item.store]
    return not (found.loads & found.changes or found.loops) and not any(
        one.tensor == other.tensor and may_meet(facts, around, one, other, depth=around.depth)
        for one in stores
        for other in stores
    )


def _pays(loop: For, behind: Block, passed: Sequence[Tensor]) -> bool:
    """Whether lanes gain more than what is left takes, and more than to store and load what is passed on."""
    gained, often = _total(loop.body), sum(prod(tensor.sizes) // tensor.sizes[-1] for tensor in passed)
    return gained >= max(2 * ARITHMETIC * often, _total(behind))


def _lanes_pay(loop: For, analysis: Analysis) -> bool:
    """Whether what runs ahead of a loop takes less time in lanes."""
    numbers = {node.access for node in walk(loop) if isinstance(node, Load)}
    accesses = tuple(item for item in analysis.accesses if item.number in numbers)
    alone = replace(analysis, accesses=accesses, loops={**analysis.loops, loop.index: LoopVerdict(True)})
    return lanes_pay(loop, FEW, alone)


@dataclass(slots=True)
class _Cutter:
    """Tells what of a loop's iterations runs ahead, and what is left to run in order; `fixed` variables stay in order.

    `place` is an iteration's place in its strip, `checked` are accesses that may fail, and `early` loads that find what
    no iteration before has stored. `moved` and `left` are the variables that are assigned ahead and in order, `read`
    those that have been read in order so far, `passed` the arrays that pass values on, `stored` the tensors that the
    iteration may have changed so far.
    """

    loop: For
    names: Names
    fixed: frozenset[Symbol]
    place: Expression
    checked: frozenset[int]
    early: frozenset[int]
    moved: set[Symbol] = field(default_factory=set[Symbol])
    left: set[Symbol] = field(default_factory=set[Symbol])
    read: set[Symbol] = field(default_factory=set[Symbol])
    passed: list[Tensor] = field(default_factory=list[Tensor])
    stored: set[Tensor] = field(default_factory=set[Tensor])
    fails: bool = False
    """Whether what fails in some iterations only has been met: what follows is left."""
    acts: bool = False
    """Whether something has been left that may store or fail, or that some iterations only run."""

    def block(self, block: Block, around: tuple[For, ...]) -> tuple[Block, Block]:
        """Return what of a block, in so many loops of few iterations, runs ahead, and what is left of it."""
        ahead: list[Statement] = []
        behind: list[Statement] = []
        for statement in block:
            if self.may_move(statement):
                ahead.append(statement)
                self.moved |= assigned_symbols(statement)
                if self.is_cheap(statement):
                    self.read |= read_symbols(statement)
                    behind.append(statement)
                continue
            match statement:
                case For(body=body) if self.is_short(statement, around):
                    self.acts = True
                    self.stored |= effects(body).changes
                    self.moved.add(statement.index)
                    parts = self.block(body, (*around, statement))
                    ahead += [replace(statement, body=parts[0])] if parts[0] else []
                    behind += [replace(statement, body=parts[1])] if parts[1] else []
                case If(condition=condition) if self.is_known(condition):
                    flag = self.value(condition, ahead)
                    self.acts = True
                    self.read |= read_symbols(flag)
                    pairs = [self.block(each, around) for each in (statement.then, statement.otherwise)]
                    (then, rest), (otherwise, other) = pairs
                    ahead += [replace(statement, then=then, otherwise=otherwise)] if then or otherwise else []
                    behind += [replace(statement, condition=flag, then=rest, otherwise=other)] if rest or other else []
                case Check(condition=condition) if self.is_same(condition):
                    ahead.append(statement)
                    behind.append(statement)
                case _:
                    kept = self.kept(statement, ahead)
                    found = effects(kept)
                    self.fails |= bool(found.fails)
                    self.acts |= bool(found.fails or found.changes) or self.may_fail(kept)
                    self.stored |= found.changes
                    self.left |= found.assigns
                    self.read |= found.reads
                    behind.append(kept)
        return self.with_passed(tuple(ahead), tuple(behind), around)

    @property
    def inside(self) -> frozenset[Symbol]:
        """What is assigned in an iteration."""
        return effects(self.loop.body).assigns | {self.loop.index}

    @legality
    def may_move(self, statement: Statement) -> bool:
        """Whether a statement may run ahead of what earlier iterations have left to do.

        It only assigns variables of its iteration, which nothing left has read by then, of what is known ahead.
        """
        found = effects(statement)
        return (
            found.simple
            and not found.stores
            and not self.fails
            and not self.may_fail(statement)
            and self.finds_the_same(statement)
            and self.are_known(live_before((statement,), NONE))
            and not found.assigns & (self.fixed | self.read | self.left)
        )

    @property
    def changed(self) -> frozenset[Tensor]:
        """The tensors whose elements are others in the course of the loop."""
        found = effects(self.loop.body)
        return found.changes | found.declares

    @legality
    def is_known(self, value: Expression) -> bool:
        """Whether a value can be computed ahead."""
        found = effects(value)
        quiet = not (self.fails or self.may_fail(value))
        return quiet and self.finds_the_same(value) and self.are_known(found.reads)

    @legality
    def finds_the_same(self, root: Node) -> bool:
        """Whether the elements that a tree loads are ahead what they are in order."""
        changed, declared = self.changed, effects(self.loop.body).declares
        return all(
            node.access in self.early and node.tensor not in declared and node.tensor not in self.stored
            for node in walk(root)
            if isinstance(node, Load) and node.tensor in changed
        )

    @legality
    def may_fail(self, root: Node) -> bool:
        """Whether a tree accesses what may not be there: earlier iterations store, or fail, before that does."""
        return reads(root, self.checked)

    @legality
    def is_same(self, value: Expression) -> bool:
        """Whether a value is the same in all iterations, and the first one asks for it before it stores or fails."""
        return not self.acts and self.is_known(value) and not read_symbols(value) & self.inside

    @legality
    def are_known(self, symbols: Iterable[Symbol]) -> bool:
        """Whether variables have ahead what they have in order: all of the iteration's own are assigned ahead."""
        return all(symbol in self.moved or symbol not in self.inside or symbol == self.loop.index for symbol in symbols)

    def is_cheap(self, statement: Statement) -> bool:
        """Whether an integer is computed once more rather than passed on: proofs know then what it is."""
        if not isinstance(statement, Assign) or statement.symbol.dtype not in {INT64, BOOL}:
            return False
        if sum(isinstance(node, Assign) and node.symbol == statement.symbol for node in statements(self.loop)) > 1:
            return False
        parts = [node for node in walk(statement.value) if not isinstance(node, Read | Constant | Size)]
        return all(
            isinstance(node, Apply | Select)
            and not is_division(node)
            and node.dtype in {INT64, BOOL}
            and all(each.dtype in {INT64, BOOL} for each in (node.operands if isinstance(node, Apply) else ()))
            for node in parts
        )

    @legality
    def is_short(self, loop: For, around: tuple[For, ...]) -> bool:
        """Whether all that is computed in a loop can be kept: it has few iterations, and makes all of them."""
        counts = [trip_count(each) for each in (*around, loop)]
        quiet = not loop.claimed and not effects(loop.body).leaves
        return quiet and 0 < prod(each or 0 for each in counts) <= LANES_LIMIT

    # ------------------------------------------------------------ what is left

    def kept(self, statement: Statement, ahead: list[Statement]) -> Statement:
        """Return a statement that is left, with the parts of its value that are computed ahead in variables."""
        if isinstance(statement, Store | Assign):
            return replace(statement, value=self.value(statement.value, ahead))
        return statement

    def value(self, value: Expression, ahead: list[Statement]) -> Expression:
        """Return a value with what is computed ahead of it in variables, which are assigned `ahead`."""
        if not effects(value).reads & self.inside or isinstance(value, Load):
            return value
        computed = isinstance(value, Apply | Cast | Select) and any(
            isinstance(node, Apply | Cast | Select) and (node.dtype.is_float or _of_floats(node))
            for node in walk(value)
        )
        if computed and self.is_known(value):
            symbol = self.names.symbol("ahead", value.dtype)
            self.moved.add(symbol)
            ahead.append(Assign(symbol=symbol, value=value, loc=value.loc))
            return build.read(symbol, loc=value.loc)
        return cast("Expression", rebuild(value, lambda part: self.value(cast("Expression", part), ahead)))

    def with_passed(self, ahead: Block, behind: Block, around: tuple[For, ...]) -> tuple[Block, Block]:
        """Return both parts of a block with arrays for the variables that the first one has for the second one."""
        needed = live_before(behind, NONE) & assigned_symbols(ahead) - {each.index for each in around}
        sizes = (*(trip_count(each) or 0 for each in around), _length(self.loop))
        indices = (*(build.sub(build.read(each.index), each.start) for each in around), self.place)
        stores: list[Statement] = []
        loads: list[Statement] = []
        for symbol in sorted(needed, key=lambda item: item.number):
            number, kind = next(self.names.tensors), type_of(symbol.dtype, len(sizes), dense=True)
            tensor = Tensor(f"{symbol.name}_ahead", number, kind, sizes, added=len(sizes))
            self.passed.append(tensor)
            stores.append(replace(self.names.store(tensor, *indices, build.read(symbol)), loc=self.loop.loc))
            loads.append(Assign(symbol=symbol, value=self.names.load(tensor, *indices)))
        return (*ahead, *stores), (*loads, *behind)


def _of_floats(node: Apply | Cast | Select) -> bool:
    """Whether something is made of floats."""
    operands = node.operands if isinstance(node, Apply) else (node.operand,) if isinstance(node, Cast) else ()
    return any(operand.dtype.is_float for operand in operands)


def computes_ahead(loop: For) -> bool:
    """Whether a loop is what a strip computes ahead, for which lanes are meant."""
    stored = effects(loop.body).stores
    return bool(stored) and all(tensor.is_local and tensor.added for tensor in stored)


def is_strip(loop: For) -> bool:
    """Whether a loop is over the iterations of one strip, or is as short."""
    match loop.stop:
        case Apply(operator=operator, operands=(stop, _)) if operator.name == "minimum":
            return any(stop == build.add(loop.start, build.integer(most)) for most in (STRIP, SHORT_STRIP))
        case _:
            return False


def _total(block: Iterable[Statement]) -> float:
    """Return the cycles that statements take, in all iterations of the loops in them, where nothing waits."""
    result = 0.0
    for statement in block:
        match statement:
            case For(body=body):
                count = trip_count(statement)
                result += (FEW if count is None else count) * _total(body)
            case If(then=then, otherwise=otherwise):
                result += work((statement.condition,)) + _total(then) + _total(otherwise)
            case _:
                result += work((statement,))
    return result
