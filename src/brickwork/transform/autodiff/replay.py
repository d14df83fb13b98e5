"""What tensors held that a kernel stores into: answered from the arguments, from a replay of the kernel, or from tapes.

The replay is the kernel itself, on copies of the arguments that it stores into and on scratch tensors; no adjoint
depends on most of it, and that is taken out afterwards. What is loaded from an element that is stored into before and
after it is kept by the replay: as a part of the tensor before the loops that only read it (`snapshots.py`), or else on
a tape of the load, with an axis for each loop around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

from brickwork.analysis.symbolic import of_other
from brickwork.ir import build
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Check,
    Constant,
    Expression,
    FailureKind,
    For,
    If,
    Load,
    Node,
    Rebind,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
    While,
)
from brickwork.ir.walk import EXPRESSIONS, rebuild, rewrite
from brickwork.records import dataclass
from brickwork.transform.autodiff.adjoints import made_like
from brickwork.transform.autodiff.reaching_stores import Known, ReachingStores
from brickwork.transform.autodiff.recompute import Scope
from brickwork.transform.autodiff.snapshots import Snapshots
from brickwork.transform.autodiff.tapes import Tape, Tapes
from brickwork.transform.autodiff.varying_loads import Around
from brickwork.transform.scratch import Names
from brickwork.transform.tensors import copied


@dataclass(slots=True)
class Replay:
    """The replay of one normalised kernel.

    `allocated` are the tensors that the host makes, `adjoints` the adjoints of tensors, which change places with them,
    `around` the loops around each load, `results` what was saved of tensors as they are after the kernel.
    """

    states: ReachingStores
    tapes: Tapes
    names: Names
    allocated: Mapping[Tensor, Allocate]
    adjoints: Mapping[Tensor, Tensor]
    around: Mapping[int, Around]
    results: Mapping[Tensor, Tensor]
    snapshots: Snapshots = field(init=False)
    copies: dict[Tensor, tuple[Tensor, Allocate]] = field(default_factory=dict[Tensor, tuple[Tensor, Allocate]])
    kept: dict[int, Tape] = field(default_factory=dict[int, Tape])
    lost: dict[Tensor, Load] = field(default_factory=dict[Tensor, Load])
    """Stand for loads that nothing tells the value of."""

    def __post_init__(self) -> None:
        """Begin without a snapshot."""
        self.snapshots = Snapshots(self.states, self.tapes, self.names)

    def load(self, node: Load, indices: tuple[Expression, ...], scope: Scope) -> Expression:
        """Return the value of a load of the source, whose indices are known now."""
        tensor = node.tensor
        if not self.states.changes(tensor):
            return replace(self.names.load(tensor, *indices), loc=node.loc)
        match self.states.known(node):
            case Known.BEGINNING:
                return self.beginning(node, indices, scope)
            case Known.END:
                copy = self.results.get(tensor) or self.copy(tensor)
                return replace(self.names.load(copy, *of_other(indices, tensor, copy)), loc=node.loc)
            case Known.TAPE:
                return self.taped(node, indices, scope)

    def is_taped(self, node: Load) -> bool:
        """Whether the value of a load is kept."""
        return self.states.changes(node.tensor) and self.states.known(node) is Known.TAPE

    def beginning(self, node: Load, indices: tuple[Expression, ...], scope: Scope) -> Expression:
        """Return an element that nothing has stored into before."""
        allocation = self.allocated.get(node.tensor)
        if allocation is None:
            return replace(self.names.load(node.tensor, *indices), loc=node.loc)
        if allocation.fill is None:
            return build.constant(0, node.dtype)
        if isinstance(allocation.fill, Constant):
            return build.cast(allocation.fill, node.dtype)
        return self.taped(node, indices, scope)

    def taped(self, node: Load, indices: tuple[Expression, ...], scope: Scope) -> Expression:
        """Return an element from a snapshot of its tensor, or from the tape of its load."""
        snapshot = self.snapshots.of(node, self.around[node.access])
        if snapshot is not None:
            return self.snapshots.load(snapshot, indices, scope.values)
        if node.access not in self.kept:
            tape = self.tape_of(node, scope)
            if tape is None:
                mark = Tensor(
                    f"{node.tensor.name}_lost", next(self.names.tensors), TensorType(node.tensor.type.dtype, 0)
                )
                self.lost[mark] = node
                return self.names.load(mark)
            self.kept[node.access] = tape
        tape = self.kept[node.access]
        return self.tapes.load(tape, tape.place(scope.values))

    def tape_of(self, node: Load, scope: Scope) -> Tape | None:
        """Return a tape for what a load reads, with an axis for each loop around it; None where there can be none.

        Where the host cannot tell how long one of them is, the loops that do not change what is read have none.
        """
        dtype, around = node.tensor.type.dtype, self.around[node.access]
        moving = around.loops[: around.moving]
        fewer = [loop.index for loop in moving if isinstance(loop, For)]
        tape = None if scope.unbounded else self.tapes.tape(node.tensor.name, dtype, scope.loops)
        if tape is None and len(fewer) == len(moving):
            tape = self.tapes.tape(node.tensor.name, dtype, fewer)
        return tape

    def copy(self, tensor: Tensor) -> Tensor:
        """Return the tensor that the replay uses in place of one that the kernel stores into."""
        if tensor in self.allocated:
            return tensor
        if tensor not in self.copies:
            self.copies[tensor] = made_like(tensor, tensor.name, self.names)
        return self.copies[tensor][0]

    # ------------------------------------------------------------ the kernel once more

    def block(self, block: Block) -> Block:
        """Return the replay of a kernel's body; it is complete once everything has been asked for that is loaded."""
        for tensor in (*self.states.stores, *self.states.exchanged):
            if not tensor.is_local:
                self.copy(tensor)
        begin = tuple(
            statement for tensor, (copy, _) in self.copies.items() for statement in copied(tensor, copy, self.names)
        )
        return (*begin, *self._block(block))

    def _block(self, block: Block) -> Block:
        return tuple(item for statement in block for item in self._statement(statement))

    def _statement(self, statement: Statement) -> Block:
        """Return a statement on the replay's tensors, after what keeps the elements that it loads."""
        if isinstance(statement, Check) and statement.failure.kind is not FailureKind.DIVISION:
            return ()
        before: list[Statement] = []

        def own(node: Node) -> Node:
            return self._expression(node, before) if isinstance(node, EXPRESSIONS) else node

        match statement:
            case If(condition=condition):
                then, otherwise = self._block(statement.then), self._block(statement.otherwise)
                changed = replace(statement, then=then, otherwise=otherwise, condition=own(condition))
            case For(body=body):
                changed = replace(
                    statement, start=own(statement.start), stop=own(statement.stop), body=self._block(body)
                )
            case While(body=body):
                changed = replace(statement, body=self._block(body))
            case Store(tensor=tensor):
                changed = replace(rebuild(statement, own), tensor=self._tensor(tensor))
            case Rebind(targets=targets):
                changed = _exchanged(statement, self._tensor)
                if all(tensor in self.adjoints for tensor in targets):
                    before.append(_exchanged(statement, self.adjoints.__getitem__))
            case _:
                changed = rebuild(statement, own)
        if isinstance(statement, For | While):
            before.extend(self.snapshots.before(statement, self._tensor))
        return (*before, changed)

    def _tensor(self, tensor: Tensor) -> Tensor:
        return self.copies[tensor][0] if tensor in self.copies else tensor

    def _expression(self, root: Node, before: list[Statement]) -> Node:
        def visit(node: Node) -> Node:
            if not isinstance(node, Load):
                return node
            loaded = replace(node, tensor=self._tensor(node.tensor))
            tape = self.kept.get(node.access)
            if tape is None:
                return loaded
            symbol = Symbol(node.tensor.name, next(self.names.symbols), node.dtype)
            before.append(Assign(symbol=symbol, value=loaded, loc=node.loc))
            place = tape.place({index: index for index in tape.loops})
            before.append(self.tapes.store(tape, place, build.read(symbol)))
            return build.read(symbol, node.loc)

        return rewrite(root, visit)


def _exchanged(statement: Rebind, change: Callable[[Tensor], Tensor]) -> Rebind:
    """Return an exchange of other tensors."""
    targets, sources = (tuple(map(change, part)) for part in (statement.targets, statement.sources))
    return replace(statement, targets=targets, sources=sources)
