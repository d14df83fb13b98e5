"""The way forward of reverse mode: a block computed anew with variables of its own, so that old values stay readable.

`Recompute.block` writes F(B) for a block B of a normalised kernel: every assignment sets a new variable, and tensors
are not stored into. What is read of a tensor that the kernel stores into is answered by `loads`. Locals are recomputed
in place, as new locals.

With `steps`, F(B) leaves a record for the sweep back (`sweep.py`): what each statement computed, and for a loop tapes
of what passes from one iteration to the next. What nothing needs is taken out afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Check,
    Constant,
    Continue,
    Expression,
    FailureKind,
    For,
    If,
    Launch,
    Load,
    Local,
    Rebind,
    Return,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, statements
from brickwork.records import dataclass
from brickwork.transform.autodiff.activity import Activity
from brickwork.transform.autodiff.pullbacks import Evaluator, Term
from brickwork.transform.autodiff.saved_results import Equations, SavedResults
from brickwork.transform.autodiff.single_exit import leaving
from brickwork.transform.autodiff.store_forwarding import Elements, is_exact
from brickwork.transform.autodiff.tapes import Tape, Tapes
from brickwork.transform.scratch import Names
from brickwork.transform.tensors import nest


@dataclass(slots=True)
class Scope:
    """What holds at a place of a recomputation: the variables and locals that stand for those of the source.

    `elements` are those of tensors that are in variables, `loops` the indices of the loops around it in the source;
    `unbounded` says that a `while` is among these loops, `known` what results tell in the block.
    """

    values: dict[Symbol, Symbol] = field(default_factory=dict[Symbol, Symbol])
    arrays: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])
    loops: tuple[Symbol, ...] = ()
    unbounded: bool = False
    elements: Elements = field(default_factory=Elements)
    known: Equations = field(default_factory=Equations)

    def copy(self) -> Scope:
        """Return a scope that changes on its own, for the same block."""
        return replace(self, values=dict(self.values), arrays=dict(self.arrays), elements=self.elements.copy())

    def branch(self) -> Scope:
        """Return a copy for a block that may be left out."""
        return replace(self.copy(), known=Equations(self.known))

    def inside(self, loop: For | While) -> Scope:
        """Return a copy for the body of a loop."""
        loops = self.loops if isinstance(loop, While) else (*self.loops, loop.index)
        unbounded = self.unbounded or isinstance(loop, While)
        return Scope(
            dict(self.values), dict(self.arrays), loops, unbounded, self.elements.after(loop), Equations(self.known)
        )


# ---------------------------------------------------------------- what is left for the sweep


@dataclass(frozen=True, slots=True)
class Assigned:
    """An assignment and its value."""

    node: Assign
    term: Term


@dataclass(frozen=True, slots=True)
class Stored:
    """A store, where, and its value; of one into a local, which one that is here, and the element that was there."""

    node: Store
    indices: tuple[Expression, ...]
    term: Term
    local: Tensor | None = None
    old: Expression | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a local that is no table."""

    node: Local


@dataclass(frozen=True, slots=True)
class Branched:
    """A branch, what held before it, and copies of the locals that it stores into."""

    node: If
    condition: Expression
    scope: Scope
    saved: dict[Tensor, Tensor]


@dataclass(frozen=True, slots=True)
class Looped:
    """A loop, what held before it, and its iterations, numbered from `start` to `stop`.

    `tapes` keep what passes from one iteration to the next; where there are none (None), it is computed anew from the
    loop's beginning, when the locals that it stores into were `saved`. `carried` are the variables that pass. Locals
    do not pass where iterations may run in any order: they are as before the loop for each of them, and `saved`, too.
    """

    node: For | While
    start: Expression
    stop: Expression
    scope: Scope
    carried: tuple[Symbol, ...]
    tapes: dict[Symbol | Tensor, Tape] | None
    saved: dict[Tensor, Tensor]


Step: TypeAlias = Assigned | Stored | Declared | Branched | Looped | Rebind


# ---------------------------------------------------------------- F


@dataclass(frozen=True, slots=True)
class Recompute:
    """Writes F of blocks of one kernel.

    `loads` gives an element of a tensor as it is known when the gradients are computed, `is_taped` tells whether it
    takes a tape for it. `parallel` are the loops whose iterations may run in any order, `summed` the variables that
    more than one iteration of a loop makes; `results` tells what need not be computed again.
    """

    names: Names
    activity: Activity
    tapes: Tapes
    loads: Callable[[Load, tuple[Expression, ...], Scope], Expression]
    is_taped: Callable[[Load], bool]
    parallel: frozenset[Symbol]
    summed: frozenset[Symbol]
    results: SavedResults

    def block(self, block: Block, scope: Scope, out: list[Statement], steps: list[Step] | None) -> None:
        """Write F(block); `scope` is moved on to what holds after it."""
        for statement in block:
            self.statement(statement, scope, out, steps)

    def statement(self, node: Statement, scope: Scope, out: list[Statement], steps: list[Step] | None) -> None:
        """Write F of a statement."""
        self._statement(node, scope, out, steps)
        if not isinstance(node, Store):
            scope.elements = scope.elements.after(node)

    def _statement(self, node: Statement, scope: Scope, out: list[Statement], steps: list[Step] | None) -> None:
        match node:
            case Assign():
                term = self.evaluator(scope, out).term(node.value)
                scope.values[node.symbol] = self.assign(node.symbol, term.value, out)
                if steps is not None:
                    steps.append(Assigned(node, term))
            case Store():
                self.store(node, scope, out, steps)
            case Local():
                local = self.local(node.tensor)
                out.append(replace(node, tensor=local))
                scope.arrays[node.tensor] = local
                if steps is not None and not node.values:
                    steps.append(Declared(node))
            case Check():
                self.check(node, scope, out)
            case Rebind():
                if steps is not None:
                    steps.append(node)
            case If():
                self.branch(node, scope, out, steps)
            case For():
                self.loop(node, scope, out, steps)
            case While():
                self.turns(node, scope, out, steps)
            case Break() | Continue() | Allocate() | Launch() | Return():
                raise TypeError(type(node).__name__)

    def evaluator(self, scope: Scope, out: list[Statement]) -> Evaluator:
        """Return what writes the expressions of one statement."""

        def load(node: Load, indices: tuple[Expression, ...]) -> Expression:
            if node.tensor.is_local:
                return self.names.load(scope.arrays[node.tensor], *indices)
            if not self.is_taped(node):
                return self.loads(node, indices, scope)
            place = node.tensor, indices
            known = scope.elements.values.get(place)
            if known is None:
                known = scope.elements.values[place] = evaluator.kept(self.loads(node, indices, scope), "v")
            return known

        def recalled(node: Apply) -> Expression | None:
            return self.results.recalled(node, scope.known, evaluator)

        evaluator = Evaluator(self.names, self.activity, scope.values, load, out, recalled)
        return evaluator

    def assign(self, source: Symbol, value: Expression, out: list[Statement]) -> Symbol:
        """Return a new variable that stands for one of the source, set to a value."""
        symbol = self.names.symbol(source.name, source.dtype)
        out.append(Assign(symbol=symbol, value=value, loc=value.loc))
        return symbol

    def store(self, node: Store, scope: Scope, out: list[Statement], steps: list[Step] | None) -> None:
        """Write F of a store: of one into a tensor only what it stores."""
        evaluator = self.evaluator(scope, out)
        indices = tuple(evaluator.plain(index) for index in node.indices)
        term = evaluator.term(node.value)
        if not node.tensor.is_local:
            term = self.results.stored(node, indices, term, scope.known, evaluator)
            if steps is not None:
                steps.append(Stored(node, indices, term))
            cheap = is_exact(node) and not read_symbols(node.value) & self.summed
            scope.elements.stored(node.tensor, indices, term.value if cheap else None)
            return
        local = scope.arrays[node.tensor]
        if steps is not None:
            old = evaluator.kept(self.names.load(local, *indices), "old")
            steps.append(Stored(node, indices, term, local, old))
        out.append(self.names.store(local, *indices, term.value))

    def check(self, node: Check, scope: Scope, out: list[Statement]) -> None:
        """Write the check of a divisor: the call that gradients are for has passed all others."""
        if node.failure.kind is FailureKind.DIVISION:
            evaluator = self.evaluator(scope, out)
            values = tuple(evaluator.plain(value) for value in node.values)
            out.append(replace(node, condition=evaluator.plain(node.condition), values=values))

    # ------------------------------------------------------------ branches

    def branch(self, node: If, scope: Scope, out: list[Statement], steps: list[Step] | None) -> None:
        """Write F of a branch; a variable that differs after its two blocks is a new one."""
        evaluator = self.evaluator(scope, out)
        condition = evaluator.kept(evaluator.plain(node.condition), "c")
        if steps is not None:
            steps.append(Branched(node, condition, scope.copy(), self.saved((node,), scope, out)))
        parts: list[tuple[Scope, list[Statement]]] = []
        for block in (node.then, node.otherwise):
            inner, code = scope.branch(), list[Statement]()
            self.block(block, inner, code, None)
            parts.append((inner, code))
        (first, then), (second, otherwise) = parts
        for symbol in _in_order(assigned_symbols((*node.then, *node.otherwise))):
            one, other = first.values.get(symbol), second.values.get(symbol)
            if one is None or other is None:
                scope.values.pop(symbol, None)
                continue
            joined = self.names.symbol(symbol.name, symbol.dtype)
            then.append(Assign(symbol=joined, value=build.read(one)))
            otherwise.append(Assign(symbol=joined, value=build.read(other)))
            scope.values[symbol] = joined
        out.append(replace(node, condition=condition, then=tuple(then), otherwise=tuple(otherwise)))

    # ------------------------------------------------------------ loops

    def loop(self, node: For, scope: Scope, out: list[Statement], steps: list[Step] | None) -> None:
        """Write F of a `for`."""
        evaluator = self.evaluator(scope, out)
        start, stop = (evaluator.plain(bound) for bound in (node.start, node.stop))
        if steps is None:
            self.iterations(node, scope, out, start, stop, None)
            return
        looped = self.looped(node, scope, out, start, stop)
        count = self.iterations(node, scope, out, start, stop, looped.tapes)
        if leaving(node) is not None:
            end = build.apply("minimum", stop, build.add(start, build.read(count)))
            # No less than the start, which is known so: indices from the end are in range then.
            end = end if isinstance(start, Constant) else build.apply("maximum", start, end)
            looped = replace(looped, stop=end)
        steps.append(looped)

    def turns(self, node: While, scope: Scope, out: list[Statement], steps: list[Step] | None) -> None:
        """Write F of a `while`."""
        zero = build.integer(0)
        looped = self.looped(node, scope, out, zero, zero) if steps is not None else None
        count = self.names.symbol("turns", INT64)
        out.append(Assign(symbol=count, value=zero))
        phis = self.phis(node, scope, out)
        inner, code = scope.inside(node), list[Statement]()
        condition = self.evaluator(inner, code).plain(node.condition)
        self.block(node.body, inner, code, None)
        self.pass_on(phis, inner, code)
        code.append(Assign(symbol=count, value=build.add(build.read(count), build.integer(1))))
        out.append(replace(node, condition=condition, body=tuple(code)))
        if steps is not None and looped is not None:
            steps.append(replace(looped, stop=build.read(count)))

    def looped(
        self, node: For | While, scope: Scope, out: list[Statement], start: Expression, stop: Expression
    ) -> Looped:
        """Return the record of a loop that is about to be written."""
        carried = _carried(node, scope)
        stored = () if self.any_order(node) else _stored_locals((node,), scope)
        tapes = self.tapes_of(node, scope, carried, stored)
        saved = {} if tapes is not None and stored else self.saved((node,), scope, out)
        return Looped(node, start, stop, scope.copy(), carried, tapes, saved)

    def any_order(self, node: For | While) -> bool:
        """Whether the iterations of a loop may run in any order: none touches what another one stores into."""
        return isinstance(node, For) and node.index in self.parallel

    def tapes_of(
        self, node: For | While, scope: Scope, carried: Sequence[Symbol], stored: Sequence[Tensor]
    ) -> dict[Symbol | Tensor, Tape] | None:
        """Return tapes of what passes from one iteration to the next, or None where the host cannot tell their size.

        Loops around whose iterations run in order use the same elements again.
        """
        if isinstance(node, While):
            return None
        loops = (*(index for index in scope.loops if index in self.parallel), node.index)
        tapes: dict[Symbol | Tensor, Tape] = {}
        for item in (*carried, *stored):
            dtype = item.dtype if isinstance(item, Symbol) else item.type.dtype
            sizes = () if isinstance(item, Symbol) else item.sizes
            tape = self.tapes.tape(item.name, dtype, loops, sizes, close=True)
            if tape is None:
                return None
            tapes[item] = tape
        return tapes

    def iterations(
        self,
        node: For | While,
        scope: Scope,
        out: list[Statement],
        start: Expression,
        stop: Expression,
        tapes: dict[Symbol | Tensor, Tape] | None,
        *,
        again: bool = False,
    ) -> Symbol:
        """Write the iterations of a loop from `start` to `stop`; return the variable that counts them.

        Those of a `while`, and of a loop that is run `again`, are known to run: they are written as a loop that counts.
        """
        count = self.names.symbol("count", INT64)
        out.append(Assign(symbol=count, value=build.integer(0)))
        phis = self.phis(node, scope, out)
        inner, code = scope.inside(node), list[Statement]()
        index = self.names.symbol("turn" if isinstance(node, While) else node.index.name, INT64)
        if isinstance(node, For):
            inner.values[node.index] = index
        code.append(Assign(symbol=count, value=build.add(build.read(count), build.integer(1))))
        for item, tape in (tapes or {}).items():
            if isinstance(item, Symbol):
                code.append(self.tapes.store(tape, tape.place(inner.values), build.read(inner.values[item])))
            else:
                code.extend(self.copied(inner.arrays[item], tape, inner))
        left = leaving(node) if isinstance(node, For) else None
        self.block(node.body if left is None else node.body[:-1], inner, code, None)
        self.pass_on(phis, inner, code)
        self.results.ranges[index] = (start, stop)
        if left is not None and not again:
            code.append(If(condition=build.read(inner.values[left]), then=(Break(),)))
        elif isinstance(node, For) and left is None:
            self.results.leave(index, code, inner.known, scope.known)
        claimed = isinstance(node, For) and node.claimed
        out.append(For(index=index, start=start, stop=stop, body=tuple(code), claimed=claimed, loc=node.loc))
        return count

    def phis(self, node: For | While, scope: Scope, out: list[Statement]) -> dict[Symbol, Symbol]:
        """Return new variables for those that a loop assigns and that had a value before, set to it."""
        phis: dict[Symbol, Symbol] = {}
        for symbol in _in_order(assigned_symbols(node.body)):
            if symbol in scope.values:
                phis[symbol] = self.assign(symbol, build.read(scope.values[symbol]), out)
        scope.values.update(phis)
        return phis

    def pass_on(self, phis: dict[Symbol, Symbol], inner: Scope, code: list[Statement]) -> None:
        """Set the variables of a loop to what holds at the end of an iteration."""
        for symbol, phi in phis.items():
            if inner.values[symbol] != phi:
                code.append(Assign(symbol=phi, value=build.read(inner.values[symbol])))

    # ------------------------------------------------------------ locals

    def local(self, tensor: Tensor) -> Tensor:
        """Return a new local of the same sizes."""
        return replace(tensor, number=next(self.names.tensors))

    def saved(self, block: Block, scope: Scope, out: list[Statement]) -> dict[Tensor, Tensor]:
        """Write copies of the locals that a block stores into; return them."""
        saved: dict[Tensor, Tensor] = {}
        for tensor in _stored_locals(block, scope):
            saved[tensor] = self.local(tensor)
            out.append(Local(tensor=saved[tensor]))
            out.extend(self.moved(scope.arrays[tensor], saved[tensor]))
        return saved

    def moved(self, source: Tensor, target: Tensor) -> Block:
        """Return the copy of one local into another."""
        return self.over(source.sizes, lambda at: self.names.store(target, *at, self.names.load(source, *at)))

    def copied(self, source: Tensor, tape: Tape, scope: Scope) -> Block:
        """Return the copy of a local into a tape."""
        return self.over(
            source.sizes,
            lambda at: self.tapes.store(tape, tape.place(scope.values, at), self.names.load(source, *at)),
        )

    def restored(self, target: Tensor, tape: Tape, scope: Scope) -> Block:
        """Return the copy of a tape into a local."""
        return self.over(
            target.sizes,
            lambda at: self.names.store(target, *at, self.tapes.load(tape, tape.place(scope.values, at))),
        )

    def over(self, sizes: Sequence[int], body: Callable[[tuple[Expression, ...]], Statement]) -> Block:
        """Return a nest of loops over all elements of an array."""
        indices = [self.names.symbol("item", INT64) for _ in sizes]
        return nest(indices, [*map(build.integer, sizes)], (body(tuple(map(build.read, indices))),))


def _in_order(symbols: frozenset[Symbol]) -> list[Symbol]:
    return sorted(symbols, key=lambda symbol: symbol.number)


def _carried(node: For | While, scope: Scope) -> tuple[Symbol, ...]:
    """Return the variables whose values an iteration may take from the one before."""
    begun = live_before(node.body, NONE)
    needed = live_before(node.body, begun, begun, begun) & assigned_symbols(node.body)
    return tuple(symbol for symbol in _in_order(needed) if symbol in scope.values)


def _stored_locals(block: Block, scope: Scope) -> tuple[Tensor, ...]:
    """Return the locals from before a block that it stores into."""
    stored = dict.fromkeys(
        node.tensor for node in statements(block) if isinstance(node, Store) and node.tensor.is_local
    )
    return tuple(tensor for tensor in stored if tensor in scope.arrays)
