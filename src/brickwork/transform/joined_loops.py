"""Parts of one loop of the source that compute the same are one loop again, where the guards hold.

    for j in range(n):                          for j in range(n):
        s += exp(x[j] - m) * g[j]                   v = exp(x[j] - m)
    a[0] += s                           ->          s += v * g[j]
    for k in range(n):                              t += v * h[j]
        t += exp(x[k] - m) * h[k]               a[0] += s
    a[1] += t                                   a[1] += t

So gradients by several elements, such as the coordinates of a point, compute again what they need once for all of them.
Invariant: what is joined touches no element that the other loop stores into but in the same iteration, and what stands
between the loops stays in order with all that touches the same. Sums add what they added, in the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import cast

from brickwork.analysis.contractions import SUMMED, find_contraction, grouped, may_sum
from brickwork.analysis.scalars import NONE, live_after_loops, live_before
from brickwork.analysis.searches import without_numbers
from brickwork.analysis.symbolic import as_written
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Node,
    Select,
    Statement,
    Store,
    Symbol,
)
from brickwork.ir.walk import (
    EXPRESSIONS,
    accesses_in,
    assigned_symbols,
    operands_of,
    read_symbols,
    rebuild,
    rewrite_statements,
    statements,
    straight,
    substitute,
    walk,
)
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform.guard import guards
from brickwork.transform.schedule.shared_work import operation_cost
from brickwork.transform.scratch import Names, names_of, with_variables


def joined_loops(kernel: Kernel, analysis: Analysis) -> Kernel:
    """Return the kernel with loops joined, for arguments that satisfy the guards of its analysis; or as it is."""
    if kernel.may_alias or not may_be_joined(kernel):
        return kernel
    held = frozenset(part for each in (*kernel.facts, *guards(analysis)) for part in operands_of(each, "logical_and"))
    names = names_of(kernel)
    body = rewrite_statements(_without_held(kernel.body, held), lambda statement: _with_named(statement, names))
    body = _with_own_variables(body, names)
    checked = frozenset(number for (number, _), verdict in analysis.bounds.items() if verdict.bound is Bound.CHECKED)
    once = Counter(node.symbol for node in statements(body) if isinstance(node, Assign))
    products = frozenset(_contractions(kernel.body, ()))
    joiner = _Joiner(checked, products, frozenset(symbol for symbol, times in once.items() if times == 1))
    joined = joiner.block(body)
    return replace(kernel, body=joined) if joiner.loops else kernel


def may_be_joined(kernel: Kernel) -> bool:
    """Whether a block has two parts of a loop of one range and depth, so that the kernel's analysis is worth making."""
    blocks = (kernel.body, *(node.body for node in statements(kernel.body) if isinstance(node, For)))
    for block in blocks:
        loops = (node for node in straight(block) if isinstance(node, For))
        kinds = Counter((loop.loc, loop.start, loop.stop, effects(loop).depth) for loop in loops)
        if any(times > 1 for times in kinds.values()):
            return True
    return False


def _contractions(block: Block, around: tuple[Symbol, ...]) -> Iterator[Symbol]:
    """Yield the loops that sum up products of two factors, each with loops around of its own: they have tiles alone."""
    for loop in straight(block):
        if isinstance(loop, For):
            groups = grouped((loop,), around) if may_sum(loop) else None
            if groups is not None and find_contraction((loop,), *groups, dtypes=SUMMED | {FLOAT64}) is not None:
                yield loop.index
            yield from _contractions(loop.body, (*around, loop.index))


def _without_held(block: Block, held: frozenset[Expression]) -> Block:
    """Return the block with what stands under conditions that hold, without these."""

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, If):
            return (statement,)
        holds = all(_holds(part, held) for part in operands_of(statement.condition, "logical_and"))
        return statement.then if holds else (statement,)

    return rewrite_statements(block, visit)


@legality
def _holds(condition: Expression, held: frozenset[Expression]) -> bool:
    """Whether a condition is among those that hold, or asks that something is at least a smaller number."""
    match condition:
        case Apply(operator=operator, operands=(value, Constant(value=least))) if operator.name == "ge":
            asked = (each.operands for each in held if isinstance(each, Apply) and each.operator == operator)
            return any(one == value and isinstance(more, Constant) and more.value >= least for one, more in asked)
        case _:
            return condition in held


def _with_named(statement: Statement, names: Names) -> Block:
    """Return a statement with variables for what takes many instructions in it, and is computed whatever is chosen."""
    if not isinstance(statement, Assign | Store):
        return (statement,)
    named: list[Statement] = []

    def visit(node: Expression, *, outermost: bool) -> Expression:
        if isinstance(node, Select) or node.dtype is BOOL:
            return node
        found = rebuild(node, lambda child: visit(cast("Expression", child), outermost=False))
        if outermost or operation_cost(found) == 1 or not isinstance(found, Apply):
            return found
        variable = names.symbol(found.operator.name, found.dtype)
        named.append(Assign(symbol=variable, value=found, loc=statement.loc))
        return build.read(variable)

    value = visit(statement.value, outermost=isinstance(statement, Assign))
    return (*named, replace(statement, value=value))


def _with_own_variables(block: Block, names: Names) -> Block:
    """Return the block with own variables for iterations that pass none on, each assigned once where that can be."""
    live, made = live_after_loops(block), set[Symbol]()

    def fresh(symbol: Symbol) -> Symbol:
        made.add(new := names.symbol(symbol.name, symbol.dtype))
        return new

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, For):
            return (statement,)
        body, result = statement.body, list[Statement]()
        own = assigned_symbols(body) - live_before(body, NONE) - live.get(statement.index, NONE) - made
        own -= {node.index for node in statements(body) if isinstance(node, For)}
        inside = own & assigned_symbols(node for node in body if not isinstance(node, Assign))
        new = {symbol: fresh(symbol) for symbol in inside}
        for node in body:
            if isinstance(node, Assign) and node.symbol in own:
                value = with_variables(node.value, new)
                new[node.symbol] = new[node.symbol] if node.symbol in inside else fresh(node.symbol)
                result.append(replace(node, symbol=new[node.symbol], value=value))
            else:
                result.append(with_variables(node, new))
        return (replace(statement, body=tuple(result)),)

    return rewrite_statements(block, visit)


# ---------------------------------------------------------------- which loops, and where


@dataclass(slots=True)
class _Joiner:
    """Joins the loops of one kernel.

    `checked` are accesses that may fail, `products` loops that are contractions, `once` variables assigned once.
    `values` has for variables that are left out those that hold the same, `loops` how many loops were joined.
    """

    checked: frozenset[int]
    products: frozenset[Symbol]
    once: frozenset[Symbol]
    values: dict[Symbol, Expression] = field(default_factory=dict[Symbol, Expression])
    loops: int = 0

    def block(self, block: Block) -> Block:
        """Return a block with the loops in it joined, inner ones first."""
        result: list[Statement] = []
        for statement in block:
            match substitute(statement, self.values) if self.values else statement:
                case For(body=body) as loop:
                    result = self._with_loop(result, replace(loop, body=self.block(body)))
                case If(then=then, otherwise=otherwise) as choice:
                    result.append(replace(choice, then=self.block(then), otherwise=self.block(otherwise)))
                case other:
                    result.append(other)
        return tuple(result)

    def _with_loop(self, before: list[Statement], loop: For) -> list[Statement]:
        """Return statements with a loop after them, or in one of them."""
        for place, (one, (early, late)) in enumerate(zip(before, _parted(before, loop), strict=True)):
            # Loops that the user tells apart stay so, as what is said of one is no answer to what is asked of another.
            if not isinstance(one, For) or (one.loc, one.start, one.stop) != (loop.loc, loop.start, loop.stop):
                continue
            if any(_meet(statement, one) for statement in early) or not self._may_join(one, loop):
                continue
            joined = self._joined(one, loop)
            if joined is not None:
                self.loops += 1
                return [*before[:place], *early, joined, *late]
        return [*before, loop]

    @legality
    def _may_join(self, one: For, other: For) -> bool:
        """Whether no two iterations of different numbers of two loops of one range have to stay in order."""
        if one.claimed or other.claimed or not self.products.isdisjoint((one.index, other.index)):
            return False
        if not effects((one, other)).simple:
            return False
        first, second = assigned_symbols(one), assigned_symbols(other)
        if first & (second | read_symbols(other)) or second & read_symbols(one):
            return False
        ours, theirs = accesses_in(one), accesses_in(other)
        if any(node.access in self.checked for node in (*ours, *theirs)):
            return False
        index = {one.index: build.read(other.index)}
        return all(
            _apart(mine, its) or _at_one_iteration(substitute(mine, index), its, other.index)
            for mine in ours
            for its in theirs
            if mine.tensor == its.tensor and (isinstance(mine, Store) or isinstance(its, Store))
        )

    # ------------------------------------------------------------ what is gained

    def _joined(self, one: For, other: For) -> For | None:
        """Return one loop for two, if what the other computes is mostly what this one does; else None."""
        mine, its = one.body, tuple(substitute(node, {other.index: build.read(one.index)}) for node in other.body)
        inner = [sum(isinstance(node, For) for node in body) for body in (mine, its)]
        kept, loops = dict(self.values), self.loops
        if inner == [1, 1]:
            body = self.block((*mine, *its))
            if sum(isinstance(node, For) for node in body) == 1:
                self.loops = loops
                return replace(one, body=body)
        elif inner == [0, 0] and effects(one).depth == effects(other).depth == 1:
            changing = assigned_symbols((one, *its))
            own = {one.index} | changing & self.once - live_before(mine, NONE) - live_before(its, NONE)
            merge = _Merge(frozenset(own), changing, self.values)
            body = merge.merged(mine, its, {})
            if merge.saved and merge.saved >= merge.added:
                return replace(one, body=body)
        self.values, self.loops = kept, loops
        return None


@legality
def _parted(before: Sequence[Statement], loop: For) -> list[tuple[Block, Block]]:
    """Return for each statement before a loop those between that stay there, and those that may come after it."""
    early, late, found = (), (), list[tuple[Block, Block]]()
    for statement in reversed(before):
        found.append((early, late))
        if any(_meet(statement, other) for other in (loop, *early)):
            early = (statement, *early)
        else:
            late = (statement, *late)
    return found[::-1]


@hazard
def _meet(one: Statement, other: Statement) -> bool:
    """Whether two statements have to stay in order."""
    first, second = effects(one), effects(other)
    if first.assigns & (second.assigns | second.reads) or second.assigns & first.reads:
        return True
    if not (first.simple and second.simple):
        return True
    if not (first.stores & (second.loads | second.stores) or second.stores & first.loads):
        return False
    return not all(
        _apart(mine, its)
        for mine in accesses_in(one)
        for its in accesses_in(other)
        if mine.tensor == its.tensor and (isinstance(mine, Store) or isinstance(its, Store))
    )


@legality
def _apart(one: Load | Store, other: Load | Store) -> bool:
    """Whether two accesses of a tensor have different numbers as an index."""
    pairs = zip(as_written(one), as_written(other), strict=True)
    numbers = (
        (mine.value, its.value) for mine, its in pairs if isinstance(mine, Constant) and isinstance(its, Constant)
    )
    return any(mine != its and mine >= 0 and its >= 0 for mine, its in numbers)


@legality
def _at_one_iteration(one: Load | Store, other: Load | Store, index: Symbol) -> bool:
    """Whether two accesses have the index of a loop as an index, on one axis."""
    here = build.read(index)
    return any(mine == its == here for mine, its in zip(as_written(one), as_written(other), strict=True))


# ---------------------------------------------------------------- bodies

Known = dict[Expression, Symbol]
"""Values that variables hold."""


@dataclass(slots=True)
class _Merge:
    """Puts a body after another one, without what that has computed; `saved` and `added` are what operations cost.

    `own` are the index and the variables that an iteration assigns once, before it reads them, `changing` all that are
    not the same in all iterations.
    `values` has for variables that are left out those that hold the same.
    """

    own: frozenset[Symbol]
    changing: frozenset[Symbol]
    values: dict[Symbol, Expression]
    saved: int = 0
    added: int = 0

    def merged(self, first: Block, second: Block, known: Known) -> Block:
        """Return a block after another one, where it is `known` what variables hold; branches are merged likewise."""
        result, held = [*first], self._after(first, known)
        for written in second:
            statement = substitute(written, self.values)
            if isinstance(statement, Assign) and (same := self._same(statement, held)) is not None:
                self.values[statement.symbol] = build.read(same)
                self.saved += self._cost(statement)
            elif isinstance(statement, If) and (place := self._place(result, statement)) is not None:
                number, one = place
                result[number] = self._merged(one, statement, self._after(result[:number], known))
                self.saved += self._cost(statement.condition)
                held = self._after(result, known)
            else:
                self.added += self._cost(statement)
                result.append(statement)
                held = self._after((statement,), held)
        return tuple(result)

    def _merged(self, one: If, other: If, known: Known) -> If:
        then = self.merged(one.then, other.then, known)
        return replace(one, then=then, otherwise=self.merged(one.otherwise, other.otherwise, known))

    @legality
    def _same(self, statement: Assign, held: Known) -> Symbol | None:
        """Return the variable that holds what a statement would compute once more."""
        return held.get(without_numbers(statement.value)) if statement.symbol in self.own else None

    @legality
    def _place(self, before: Sequence[Statement], choice: If) -> tuple[int, If] | None:
        """Return a choice by the same condition after which nothing has to stay before this one, and its place."""
        condition = without_numbers(choice.condition)
        for place, one in enumerate(before):
            if isinstance(one, If) and without_numbers(one.condition) == condition:
                changed = effects(before[place:]).stores & effects(condition).loads
                if not changed and not any(_meet(later, choice) for later in before[place + 1 :]):
                    return place, one
        return None

    @legality
    def _is_fixed(self, value: Expression) -> bool:
        """Whether an iteration has one value for an expression, but for the elements that it stores into."""
        return not read_symbols(value) & (self.changing - self.own)

    def _after(self, block: Iterable[Statement], known: Known) -> Known:
        """Return what variables hold after a block."""
        held: Known = {**known}
        for statement in block:
            stored = effects(statement).stores
            if stored:
                held = {value: symbol for value, symbol in held.items() if not effects(value).loads & stored}
            match statement:
                case Assign(symbol=symbol, value=value) if symbol in self.own and self._is_fixed(value):
                    held.setdefault(without_numbers(value), symbol)
                case _:
                    pass
        return held

    def _cost(self, root: Node) -> int:
        """Return what is computed in each iteration anew."""
        nodes = (cast("Expression", node) for node in walk(root) if isinstance(node, EXPRESSIONS))
        return sum(operation_cost(node) for node in nodes if read_symbols(node) & self.changing)
