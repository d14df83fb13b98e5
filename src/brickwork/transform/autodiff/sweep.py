"""The way back of reverse mode: the adjoints of a block's statements, in reverse order.

For a block B of a normalised kernel, `Sweep.block` writes F(B) (`recompute.py`) and then R(B). A variable s of the
source has one adjoint variable; R(S) takes the adjoints of what holds after a statement S to those of what holds before
it. An active tensor has a tensor of adjoints, an active local a local. Loops and branches in B are computed in F(B) for
what comes after them, and once more in R(B), where their own blocks are swept: what nothing needs is taken out
afterwards.

Invariant: R(S) begins with recomputed locals as they are after S, and leaves them as they were before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from brickwork.analysis.scalars import NONE, Symbols, live_before
from brickwork.analysis.symbolic import of_other
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Local,
    Rebind,
    Statement,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.records import dataclass
from brickwork.transform.autodiff.locations import with_locations
from brickwork.transform.autodiff.pullbacks import Contributions, Element, Evaluator, continues, pulled, total
from brickwork.transform.autodiff.recompute import (
    Assigned,
    Branched,
    Declared,
    Looped,
    Recompute,
    Scope,
    Step,
    Stored,
)
from brickwork.transform.autodiff.single_exit import leaving
from brickwork.transform.tensors import filled


@dataclass(frozen=True, slots=True)
class Sweep:
    """Writes R of blocks of one kernel.

    `adjoints` are the tensors of adjoints. The adjoint of an element is set to 0 by the stores in `overwriting`; after
    the others nothing reads it. Those of tensors that are `owned` begin as 0 in each iteration of the loop with the
    index. In the loops with indices in `meeting` adjoints of iterations may meet, whatever was claimed of those.
    `turned` takes the indices of the loops that are written to run backwards.
    """

    recompute: Recompute
    adjoints: Mapping[Tensor, Tensor]
    overwriting: frozenset[int]
    owned: Mapping[Symbol, Sequence[Tensor]] = field(default_factory=dict[Symbol, Sequence[Tensor]])
    meeting: Collection[Symbol] = ()
    turned: set[Symbol] = field(default_factory=set[Symbol])
    variables: dict[Symbol, Symbol] = field(default_factory=dict[Symbol, Symbol])
    arrays: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])

    def block(self, block: Block, scope: Scope, out: list[Statement], after: Symbols) -> None:
        """Write F(block) and R(block); `after` are the variables that may be read after the block."""
        lives: list[Symbols] = []
        live = after
        for statement in reversed(block):
            lives.append(live)
            live = live_before((statement,), live, after, after)
        steps: list[list[Step]] = []
        for statement in block:
            steps.append([])
            self.recompute.statement(statement, scope, out, steps[-1])
        for symbol in sorted(assigned_symbols(block) - after, key=lambda item: item.number):
            if symbol in self.recompute.activity.found:
                zero = build.constant(0.0, symbol.dtype)
                out.append(Assign(symbol=self.variable(symbol), value=zero))
        for step in (each for found in steps for each in found):
            if isinstance(step, Declared) and step.node.tensor in self.recompute.activity.found:
                self.declare(step.node.tensor, out)
        for found, following in zip(reversed(steps), lives, strict=True):
            for step in reversed(found):
                self.step(step, out, following)

    def variable(self, symbol: Symbol) -> Symbol:
        """Return the adjoint of a variable."""
        if symbol not in self.variables:
            self.variables[symbol] = self.recompute.names.symbol(f"{symbol.name}_adjoint", symbol.dtype)
        return self.variables[symbol]

    def declare(self, tensor: Tensor, out: list[Statement]) -> None:
        """Declare the adjoints of a local, all 0."""
        local = replace(self.recompute.local(tensor), name=f"{tensor.name}_adjoint")
        self.arrays[tensor] = local
        zero = build.constant(0.0, local.type.dtype)
        out.append(Local(tensor=local))
        out.extend(self.recompute.over(local.sizes, lambda at: self.recompute.names.store(local, *at, zero)))

    def step(self, step: Step, out: list[Statement], live: Symbols) -> None:
        """Write R of a statement; `live` are the variables that may be read after it."""
        match step:
            case Assigned() | Stored():
                code: list[Statement] = []
                if isinstance(step, Assigned):
                    self.assigned(step, code)
                else:
                    self.stored(step, code)
                out += with_locations(tuple(code), step.node.loc)
            case Branched():
                self.branched(step, out, live)
            case Looped():
                self.looped(step, out, live)
            case Rebind(targets=targets, sources=sources):
                self.exchanged(step, targets, sources, out)
            case Declared():
                pass

    # ------------------------------------------------------------ adjoints

    def writer(self, out: list[Statement]) -> Evaluator:
        """Return what writes expressions of adjoints."""
        return self.recompute.evaluator(Scope(), out)

    def element(self, element: Element) -> tuple[Tensor, tuple[Expression, ...]]:
        """Return where the adjoint of an element is."""
        tensor = element.tensor
        if tensor.is_local:
            return self.arrays[tensor], element.indices
        return self.adjoints[tensor], of_other(element.indices, tensor, self.adjoints[tensor])

    def load(self, element: Element) -> Expression:
        """Return the adjoint of an element."""
        tensor, indices = self.element(element)
        return self.recompute.names.load(tensor, *indices)

    def give(self, contributions: Contributions, out: list[Statement]) -> None:
        """Add to the adjoints of leaves."""
        for leaf, values in contributions.items():
            added = total(values)
            if isinstance(leaf, Symbol):
                symbol = self.variable(leaf)
                out.append(Assign(symbol=symbol, value=build.add(build.read(symbol), added), loc=added.loc))
            else:
                tensor, indices = self.element(leaf)
                summed = build.add(self.load(leaf), added)
                out.append(replace(self.recompute.names.store(tensor, *indices, summed), loc=added.loc))

    # ------------------------------------------------------------ statements

    def assigned(self, step: Assigned, out: list[Statement]) -> None:
        """Write R of an assignment."""
        source = step.node.symbol
        if source not in self.recompute.activity.found:
            return
        symbol, writer = self.variable(source), self.writer(out)
        if continues(step.term, source):
            self.give(pulled(step.term, build.read(symbol), writer, skipped=source), out)
            return
        adjoint = writer.kept(build.read(symbol), "a")
        if self.recompute.activity.is_active(step.node.value):
            taken = self.recompute.assign(symbol, adjoint, out)
            out.append(Assign(symbol=symbol, value=build.constant(0.0, symbol.dtype)))
            self.give(pulled(step.term, build.read(taken), writer), out)
        else:
            out.append(Assign(symbol=symbol, value=build.constant(0.0, symbol.dtype)))

    def stored(self, step: Stored, out: list[Statement]) -> None:
        """Write R of a store."""
        node, writer = step.node, self.writer(out)
        if step.local is not None and step.old is not None:
            out.append(self.recompute.names.store(step.local, *step.indices, step.old))
        if node.tensor not in self.recompute.activity.found:
            return
        element = Element(node.tensor, step.indices)
        updates = node.combine is not None or continues(step.term, element)
        adjoint = writer.kept(self.load(element), "a")
        if not updates and (node.tensor.is_local or node.access in self.overwriting):
            tensor, indices = self.element(element)
            zero = build.constant(0.0, value_dtype(tensor.type.dtype))
            out.append(self.recompute.names.store(tensor, *indices, zero))
        if self.recompute.activity.is_active(node.value):
            self.give(pulled(step.term, adjoint, writer, skipped=element if updates else None), out)

    def branched(self, step: Branched, out: list[Statement], live: Symbols) -> None:
        """Write R of a branch: each of its blocks is computed anew and swept."""
        for tensor, copy in step.saved.items():
            out.extend(self.recompute.moved(copy, step.scope.arrays[tensor]))
        blocks: list[Block] = []
        for block in (step.node.then, step.node.otherwise):
            code: list[Statement] = []
            self.block(block, step.scope.branch(), code, live)
            blocks.append(tuple(code))
        then, otherwise = blocks
        out.append(If(condition=step.condition, then=then, otherwise=otherwise, loc=step.node.loc))

    def exchanged(
        self, node: Rebind, targets: Sequence[Tensor], sources: Sequence[Tensor], out: list[Statement]
    ) -> None:
        """Write R of an exchange: the adjoints go back to their places."""
        if any(tensor in self.recompute.activity.found for tensor in targets):
            before = tuple(self.adjoints[tensor] for tensor in sources)
            after = tuple(self.adjoints[tensor] for tensor in targets)
            out.append(replace(node, targets=before, sources=after))

    # ------------------------------------------------------------ loops

    def looped(self, step: Looped, out: list[Statement], live: Symbols) -> None:
        """Write R of a loop: its iterations from the last to the first, each computed anew and swept."""
        node = step.node
        scope, code = step.scope.inside(node), list[Statement]()
        index = self.recompute.names.symbol(node.index.name if isinstance(node, For) else "turn", INT64)
        turned = self.recompute.names.symbol(index.name, INT64)
        forwards = self.recompute.any_order(node)
        if not forwards:
            last = build.sub(build.add(step.start, step.stop), build.integer(1))
            code.append(Assign(symbol=index, value=build.sub(last, build.read(turned))))
            self.turned.add(turned)
        if isinstance(node, For):
            scope.values[node.index] = index
            self.recompute.results.ranges[index] = (step.start, step.stop)
        began = [
            item for tensor, copy in step.saved.items() for item in self.recompute.moved(copy, scope.arrays[tensor])
        ]
        if forwards:
            out.extend(began)
        self.carried(step, scope, index, code)
        if isinstance(node, For):
            self.begun(node.index, code)
        body = node.body[:-1] if isinstance(node, For) and leaving(node) is not None else node.body
        head = live | live_before(node.body, live, live, live)
        around = head | live_before(node.body, head, live, head) | _asked(node)
        self.block(body, scope, code, around)
        out.append(
            For(
                index=index if forwards else turned,
                start=step.start,
                stop=step.stop,
                body=tuple(code),
                claimed=isinstance(node, For) and node.claimed and node.index not in self.meeting,
                loc=node.loc,
            )
        )
        if forwards and step.tapes is None:
            out.extend(began)

    def begun(self, index: Symbol, code: list[Statement]) -> None:
        """Write that no adjoint of what belongs to an iteration comes from another one."""
        for tensor in self.owned.get(index, ()):
            if (adjoint := self.adjoints.get(tensor)) is not None:
                zero = build.constant(0.0, value_dtype(adjoint.type.dtype))
                code.extend(filled(adjoint, zero, self.recompute.names))

    def carried(self, step: Looped, scope: Scope, index: Symbol, code: list[Statement]) -> None:
        """Write what an iteration finds: from tapes, or computed from the loop's beginning."""
        recompute = self.recompute
        if step.tapes is not None:
            for symbol in step.carried:
                tape = step.tapes[symbol]
                value = recompute.tapes.load(tape, tape.place(scope.values))
                scope.values[symbol] = recompute.assign(symbol, value, code)
            for tensor, tape in step.tapes.items():
                if isinstance(tensor, Tensor):
                    code.extend(recompute.restored(scope.arrays[tensor], tape, scope))
            return
        for tensor, copy in step.saved.items():
            code.extend(recompute.moved(copy, scope.arrays[tensor]))
        around = step.scope.branch()
        recompute.iterations(step.node, around, code, step.start, build.read(index), None, again=True)
        for symbol in step.carried:
            scope.values[symbol] = around.values[symbol]


def _asked(node: For | While) -> Symbols:
    """Return the variables that a `while` asks before each iteration."""
    return NONE if isinstance(node, For) else read_symbols(node.condition)
