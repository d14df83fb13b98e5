"""Nests that add products to elements, with conditions and partial sums between their loops, as perfect nests.

    for t ...:                                         for t ...: for j ...: for k ...:
        at = i + t - 1                                     if i + t >= 1 and i + t - 1 < n:
        if at >= 0 and at < n:                                 y[i, j] += x[i + t - 1, k] * w[t, k, j]
            for j ...:                           ->
                s = 0.0
                for k ...: s += x[at, k] * w[t, k, j]
                y[i, j] += s

Such nests may have their loops in any order, and so are contractions. Invariant: elements get the same terms; where
partial sums were added, in the order in which these took them. As these begin with 0.0, an element of -0.0 becomes 0.0
before, unless the tensor was made of zeros and is only added to. It is chosen where sizes are worth tiles. Ranges that
are cut into blocks are whole in it (`whole_ranges.py`), and in other nests whose sums are worth tiles then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import copysign

from brickwork.analysis.analyse import analyse
from brickwork.analysis.contractions import SUMMED, accumulation, may_sum
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Program,
    Read,
    Rebind,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite_statements, statements, substitute, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.canonical.choices import is_simple
from brickwork.transform.canonical.form import canonical_kernel
from brickwork.transform.free_variables import with_body
from brickwork.transform.guard import conjunction
from brickwork.transform.iteration_bounds import Ranges
from brickwork.transform.nests_apart import (
    Apart,
    Changed,
    Place,
    each_launch,
    in_branches,
    launches,
    stands_alone,
    with_each,
    worth_tiles,
)
from brickwork.transform.scratch import Names, copied, names_of
from brickwork.transform.sums_of_sums import with_whole_sums
from brickwork.transform.whole_ranges import (
    chain,
    directly,
    follows,
    in_any_order,
    keeps_sums,
    with_whole_ranges,
    without_ends,
)

APART = "_products"
"""Ends the names of kernels with such nests."""
REMARK = "where sums of products are worth tiles, in any order of the loops"
"""What `explain` says of them."""


def with_product_nests(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return a program with launches of such nests in place of a kernel's where that is worth it, and remarks."""
    positive = _never_negative_zero(program)

    @each_launch("matrix")
    def change(launch: Launch, names: Names, _: Target) -> Changed:
        kernel = launch.kernel
        fixed, live = frozenset(kernel.scalars) - assigned_symbols(kernel.body), live_after_loops(kernel.body)
        analysed = cache(lambda: analyse(kernel))

        def visit(item: Statement) -> Apart | None:
            return _perfect(item, fixed, live, positive, names) or _unblocked(item, kernel, live, analysed, names)

        found = [visit(item) for item in kernel.body]
        return launches(launch, found, APART, REMARK)

    return change(program, target)


@legality
def _never_negative_zero(program: Program) -> frozenset[Tensor]:
    """Return the tensors that begin as zeros and are only added to: 0.0 and whatever comes to it is not -0.0."""
    made = {node.tensor: node for node in walk(program) if isinstance(node, Allocate)}
    zeros = {tensor for tensor, node in made.items() if not node.given and _is_positive_zero(node.fill)}
    others = {node.tensor for node in walk(program) if isinstance(node, Store) and _added(node, {}) is None}
    moved = {tensor for node in walk(program) if isinstance(node, Rebind) for tensor in (*node.targets, *node.sources)}
    return frozenset(zeros - others - moved)


@legality
def _is_positive_zero(found: Expression | None) -> bool:
    return isinstance(found, Constant) and found.value == 0 and copysign(1.0, found.value) > 0


def _perfect(
    statement: Statement,
    fixed: frozenset[Symbol],
    live: Mapping[Symbol, frozenset[Symbol]],
    positive: frozenset[Tensor],
    names: Names,
) -> Apart | None:
    """Return nests, which may stand in conditions, as perfect ones that are contractions; None if there are none."""
    worth: list[Expression] = []

    def visit(statement: Statement) -> Block:
        alone = isinstance(statement, For) and stands_alone(statement, live[statement.index])
        found = _product_nest((statement,), {}) if alone else None
        if found is None:
            return (statement,)
        asked: list[Expression] = []
        whole = found.whole(names, asked)
        if not whole.parted or (needed := whole.worth(fixed)) is None:
            return (statement,)
        worth.extend((*needed, *asked))
        before = () if found.store.tensor in positive else found.without_negative_zeros()
        return tuple(copied(item, names) for item in (*before, whole.nest()))

    nests = in_branches((statement,), visit)
    return Apart(nests, (), tuple(worth)) if worth else None


def with_whole_nests(program: Program) -> Program:
    """Return a program without ranges that are cut into blocks, as it is derived: of partial sums just the terms.

    Nests that ask for a condition stay.
    """
    positive, names = _never_negative_zero(program), names_of(program)

    def of_launch(launch: Launch) -> Changed:
        kernel = launch.kernel
        analysed, live = cache(lambda: analyse(kernel)), live_after_loops(kernel.body)

        def visit(statement: Statement) -> Block:
            if not isinstance(statement, For) or not stands_alone(statement, live[statement.index]):
                return (statement,)
            asked, found = list[Expression](), _product_nest((statement,), {})
            if found is not None and found.store.tensor in positive and not found.filled:
                whole = found.whole(names, asked)
                return (statement,) if asked or whole is found else (whole.nest(),)
            joined = _joined(statement, kernel, analysed, names)
            return (statement,) if joined is None or joined[1] else joined[0]

        body = in_branches(kernel.body, visit)
        return (replace(launch, kernel=with_body(kernel, body, kernel.facts)),), {}

    return with_each(program, of_launch)[0]


def _unblocked(
    statement: Statement,
    kernel: Kernel,
    live: Mapping[Symbol, frozenset[Symbol]],
    analysed: Callable[[], Analysis],
    names: Names,
) -> Apart | None:
    """Return a nest whose ranges are whole, if its sums are worth tiles then; None if none is cut into blocks.

    So is it for a nest whose sums add up products of sums of their own.
    """
    if not isinstance(statement, For) or not stands_alone(statement, live[statement.index]):
        return None
    flat = rewrite_statements((statement,), lambda item: with_whole_sums(item, live, names))
    joined = _joined(statement, kernel, analysed, names) if flat == (statement,) else (flat, list[Expression]())
    if joined is None:
        return None
    found, asked = joined
    place, body = Place((), Ranges(frozenset(kernel.scalars) - assigned_symbols(kernel.body))), found
    while len(body) == 1 and isinstance(body[0], For | If):
        match body[0]:
            case For() as loop:
                place, body = place.inside(loop), loop.body
            case If(then=then, otherwise=()):
                body = then
            case _:
                return None
    at = next((at for at, item in enumerate(body) if may_sum(item)), None)
    ahead = [item for item in body[:at] if isinstance(item, Assign)]
    worth = None if at is None or len(ahead) < at else worth_tiles(ahead, body[at], place)
    return None if worth is None else Apart(tuple(copied(item, names) for item in found), (), (*worth, *asked))


def _joined(
    statement: For, kernel: Kernel, analysed: Callable[[], Analysis], names: Names
) -> tuple[Block, list[Expression]] | None:
    """Return a nest whose ranges are whole, and what must hold for it; None if none is cut into blocks."""
    asked, more = list[Expression](), list[Expression]()

    def visit(inner: Statement) -> Block:
        return (with_whole_ranges(directly(inner), names, asked, follows) if isinstance(inner, For) else inner,)

    (nest,) = rewrite_statements((statement,), visit)
    if not isinstance(nest, For):
        return None
    apart = with_whole_ranges(nest, names, more, in_any_order)
    if apart is not nest and not _have_no_order([*chain(directly(statement)), *chain(nest)], analysed()):
        apart, more = nest, []
    if _loops_of(apart) == _loops_of(statement):
        return None
    found = canonical_kernel(with_body(kernel, (apart,), kernel.facts), names).body
    return tuple(map(without_ends, found)), [*asked, *more]


def _loops_of(nest: For) -> int:
    return sum(isinstance(node, For) for node in statements(nest))


@legality
def _have_no_order(loops: Sequence[For], analysis: Analysis) -> bool:
    """Whether iterations of loops that stand directly in one another may run in any order, whatever is passed."""
    found = [analysis.loops[loop.index] for loop in loops if loop.index in analysis.loops]
    own = all(each.independent and not each.updates and not each.reductions for each in found)
    return own and not analysis.assumptions


@dataclass(frozen=True, slots=True)
class _ProductNest:
    """Loops, outermost first, the conditions under which something is added to an element, and the store that does.

    Something may stand `between` two loops, which is in the way of other orders if they are `parted` then: by a
    condition, or where a loop around is one of the sum. Of loops that are `filled` there must be an iteration.
    Of partial sums the last loops and conditions are the sum's own: so many.
    """

    loops: tuple[For, ...]
    conditions: tuple[Expression, ...]
    store: Store
    element: Load
    added: Expression
    between: bool = False
    parted: bool = False
    filled: tuple[For, ...] = ()
    own: tuple[int, int] | None = None

    def around(self, loop: For, *, between: bool) -> _ProductNest:
        """Return what a loop adds; something may stand between it and the next one."""
        between = self.between or between
        parted = self.parted or (between and loop.index not in read_symbols(self.store.indices))
        return replace(self, loops=(loop, *self.loops), between=between, parted=parted)

    def nest(self) -> Statement:
        """Return the loops, directly in one another."""
        return self.inside(replace(self.store, value=build.add(self.element, self.added)), self.loops)

    def whole(self, names: Names, asked: list[Expression]) -> _ProductNest:
        """Return it with whole ranges in place of blocks, where what is added to what is `asked` holds."""
        nest = self.nest()
        whole = with_whole_ranges(nest, names, asked, keeps_sums) if isinstance(nest, For) else nest
        if whole is nest or not isinstance(whole, For):
            return self
        loops = chain(without_ends(whole))
        inside = _product_nest(loops[-1].body, {}) or self
        return replace(inside, loops=(*loops,), between=self.between, parted=True, filled=self.filled, own=self.own)

    def inside(self, statement: Statement, loops: Sequence[For]) -> Statement:
        """Return a statement under the conditions, in some loops."""
        return _inside(statement, loops, self.conditions)

    def without_negative_zeros(self) -> Block:
        """Return what makes 0.0 of -0.0 where a partial sum is added, which is 0.0 at least: what begins with it."""
        if self.own is None:
            return ()
        loops = self.loops[: len(self.loops) - self.own[0]]
        conditions = self.conditions[: len(self.conditions) - self.own[1]]
        asked = read_symbols((*self.store.indices, *conditions, *(each for loop in loops for each in _bounds(loop))))
        once = tuple(build.apply("lt", *_bounds(loop)) for loop in loops if loop.index not in asked)
        zero = build.constant(0.0, self.store.tensor.type.dtype)
        added = replace(self.store, value=build.add(self.element, zero))
        return (_inside(added, [loop for loop in loops if loop.index in asked], (*once, *conditions)),)

    def worth(self, fixed: frozenset[Symbol]) -> tuple[Expression, ...] | None:
        """Return what must hold so that the sum is worth tiles; None if it is no contraction."""
        own = read_symbols(self.store.indices)
        place = Place((), Ranges(fixed))
        for loop in self.loops:
            place = place.inside(loop)
        total = Symbol("total", -1, self.added.dtype)
        term = Assign(symbol=total, value=build.add(build.read(total), self.added))
        only = self.inside(term, [loop for loop in self.loops if loop.index not in own])
        rows = tuple(loop for loop in self.loops if loop.index in own)
        worth = worth_tiles((), only, Place(rows, place.ranges)) if isinstance(only, For) else None
        if worth is None or any(read_symbols((loop.start, loop.stop)) - fixed for loop in self.filled):
            return None
        return (*worth, *(build.apply("lt", loop.start, loop.stop) for loop in self.filled))


def _inside(statement: Statement, loops: Sequence[For], conditions: Sequence[Expression]) -> Statement:
    if conditions:
        statement = If(condition=conjunction(dict.fromkeys(conditions)), then=(statement,))
    for loop in reversed(loops):
        statement = replace(loop, body=(statement,))
    return statement


def _bounds(loop: For) -> tuple[Expression, Expression]:
    """Return where a loop begins, and where it ends."""
    return loop.start, loop.stop


@legality
def _product_nest(block: Block, known: Mapping[Symbol, Expression]) -> _ProductNest | None:
    """Return what a block adds to an element; None if it does anything else, or what stands in it must stay there.

    That are conditions and bounds that read elements: these may be out of range where conditions around do not hold.
    `known` are variables that were assigned before.
    """
    values = {**known}
    for place, statement in enumerate(block):
        match statement:
            case Assign(symbol=symbol, value=value):
                if (whole := _partial(block[place:], values)) is not None:
                    return whole
                values[symbol] = substitute(value, values)
                if effects(value).loads:
                    found = _product_nest(block[place + 1 :], values)
                    # What is read here would not be where no iteration of a loop in it runs.
                    if found is None or found.conditions:
                        return None
                    return replace(found, filled=(*found.filled, *found.loops))
            case If(condition=condition, then=then, otherwise=()) if place + 1 == len(block):
                asked, found = substitute(condition, values), _product_nest(then, values)
                if found is None or not is_simple(asked):
                    return None
                return replace(found, conditions=(asked, *found.conditions), parted=bool(found.loops))
            case For(start=start, stop=stop, body=body) if place + 1 == len(block):
                if live_before(body, NONE) & assigned_symbols(body):
                    return None  # a variable that passes between iterations is not worth what it was before the loop
                loop = replace(statement, start=substitute(start, values), stop=substitute(stop, values))
                found = _product_nest(body, values) if is_simple(loop.start) and is_simple(loop.stop) else None
                return None if found is None else found.around(loop, between=not isinstance(body[0], For | Store))
            case Store() if place + 1 == len(block):
                return _added(statement, values)
            case _:
                return None
    return None


@legality
def _partial(block: Block, values: Mapping[Symbol, Expression]) -> _ProductNest | None:
    """Return what a block adds to an element that adds up a sum of its own first: the terms of that."""
    match block:
        case (Assign(symbol=symbol, value=Constant(value=0) as start), total, Store() as store):
            values = {each: value for each, value in values.items() if each not in assigned_symbols(total)}
            summed, added = accumulation(substitute(total, values)), _added(store, values)
        case _:
            return None
    if summed is None or added is None or added.added != Read(symbol=symbol):
        return None
    loops, into, term, masks = summed
    simple = all(map(is_simple, (*masks, *(bound for loop in loops for bound in _bounds(loop)))))
    reads = effects((term, *masks)).loads
    if into != symbol or not simple or _reads_ahead((total,)) or added.store.tensor in reads:
        return None
    own = (len(loops), len(masks)) if _is_positive_zero(start) else None
    return replace(added, loops=loops, conditions=masks, added=term, between=True, own=own)


@legality
def _reads_ahead(block: Block) -> bool:
    """Whether a sum reads elements before a loop, or a condition, in it, which would not be read without iterations."""
    *heads, last = block
    inner = last.body if isinstance(last, For) else last.then if isinstance(last, If) else ()
    return bool(inner) and (bool(effects(heads).loads) or _reads_ahead(inner))


@legality
def _added(store: Store, values: Mapping[Symbol, Expression]) -> _ProductNest | None:
    """Return what a store adds to its element, in terms of loops and elements; None if it does anything else."""
    store = substitute(store, values)
    match store.value:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "add" and store.combine is None:
            for element, other in ((left, right), (right, left)):
                if not isinstance(element, Load) or (element.tensor, element.indices) != (store.tensor, store.indices):
                    continue
                alone = all(map(is_simple, store.indices)) and store.tensor not in effects(other).loads
                if alone and store.tensor.type.dtype in SUMMED:
                    return _ProductNest((), (), store, element, other)
        case Apply(operator=operator, operands=(left, right)) if operator.name == "sub" and store.combine is None:
            # What is taken away is added with the other sign, which is exact.
            negative = build.mul(build.constant(-1, right.dtype), right)
            return _added(replace(store, value=build.add(left, negative)), {})
        case _:
            pass
    return None
