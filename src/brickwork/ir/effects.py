"""What statements may do besides computing: fail, jump, draw, and which variables and elements they touch.

A pass asks the record of a statement or a block; it does not walk for kinds of statements itself. Each node remembers
its record, and that of a compound statement is joined from those in it, so a tree is gone through once however many
passes ask. Nothing here follows values: what passes from one iteration to the next is known to `analysis/scalars.py`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from brickwork.ir.nodes import (
    Apply,
    Assign,
    Break,
    Check,
    Continue,
    FailureKind,
    For,
    Load,
    Local,
    Node,
    Random,
    Rebind,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.operators import FLOATS
from brickwork.ir.walk import EXPRESSIONS, children, read_symbols, walk
from brickwork.legality import legality
from brickwork.records import dataclass

_FAILURES = frozenset[FailureKind]()
_SYMBOLS = frozenset[Symbol]()
_TENSORS = frozenset[Tensor]()
_INTEGER_ONLY = frozenset({"pow", "mod", "floordiv"})


@dataclass(frozen=True, slots=True)
class Effects:
    """What a tree may do, and whatever stands in it."""

    fails: frozenset[FailureKind] = _FAILURES  # what its checks raise
    draws: bool = False  # a random number
    functions: bool = False  # of floats: all but sums, products, quotients and comparisons
    breaks: bool = False  # out of the loop around it
    continues: bool = False  # with the loop around it
    jumps: bool = False  # it has a `break` or `continue`, of whichever loop
    depth: int = 0  # loops that stand in one another, itself included
    whiles: bool = False
    loads: frozenset[Tensor] = _TENSORS
    stores: frozenset[Tensor] = _TENSORS
    rebinds: frozenset[Tensor] = _TENSORS  # tensors that stand for others afterwards
    declares: frozenset[Tensor] = _TENSORS  # locals, and tables
    assigns: frozenset[Symbol] = _SYMBOLS  # indices of loops, too
    reads: frozenset[Symbol] = _SYMBOLS

    @property
    def loops(self) -> bool:
        """Whether there is a loop in it, or it is one."""
        return self.depth > 0

    @property
    def leaves(self) -> bool:
        """Whether it may leave the loop around it, or end that loop's iteration."""
        return self.breaks or self.continues

    @property
    def plain(self) -> bool:
        """Whether its values depend on variables and sizes alone: computed again, they are the same."""
        return not self.loads and not self.draws

    @property
    @legality
    def simple(self) -> bool:
        """Whether it does nothing but assign, store and choose, and runs loops to their ends."""
        return not (self.fails or self.jumps or self.whiles or self.rebinds or self.declares)

    def made_of(self, symbols: Container[Symbol]) -> bool:
        """Whether its values are made of sizes and these variables alone."""
        return self.plain and all(symbol in symbols for symbol in self.reads)

    @property
    def changes(self) -> frozenset[Tensor]:
        """The tensors whose elements may be others afterwards."""
        return self.stores | self.rebinds


NOTHING = Effects()


def effects(root: Node | Iterable[Node]) -> Effects:
    """Return what a node, or a block, may do."""
    if not isinstance(root, Node):
        return _joined([effects(node) for node in root])
    known = getattr(root, "known", None)
    if isinstance(known, Effects):
        return known
    found = _computed((root,)) if isinstance(root, EXPRESSIONS) else _of_statement(root)
    object.__setattr__(root, "known", found)
    return found


def _computed(expressions: Sequence[Node]) -> Effects:
    """Return what it means to compute expressions."""
    draws, functions, loads = False, False, set[Tensor]()
    for node in walk(expressions):
        if isinstance(node, Load):
            loads.add(node.tensor)
        elif isinstance(node, Random):
            draws = True
        elif isinstance(node, Apply):
            functions = functions or _is_function(node)
    reads = read_symbols(expressions)
    if not (draws or functions or loads or reads):
        return NOTHING
    return Effects(draws=draws, functions=functions, loads=frozenset(loads), reads=reads)


def _is_function(node: Apply) -> bool:
    operator = node.operator
    if operator.operands == FLOATS:
        return operator.name != "truediv"
    return operator.name in _INTEGER_ONLY and node.operands[0].dtype in FLOATS


def _of_statement(statement: Node) -> Effects:
    parts = [*children(statement)]
    inner = [effects(part) for part in parts if not isinstance(part, EXPRESSIONS)]
    whole = _joined([_computed([part for part in parts if isinstance(part, EXPRESSIONS)]), *inner])
    match statement:
        case Assign(symbol=symbol):
            return replace(whole, assigns=frozenset((symbol,)))
        case Store(tensor=tensor):
            return replace(whole, stores=frozenset((tensor,)))
        case Local(tensor=tensor):
            return replace(whole, declares=frozenset((tensor,)))
        case Rebind(targets=targets):
            return replace(whole, rebinds=frozenset(targets))
        case Check(failure=failure):
            return replace(whole, fails=frozenset((failure.kind,)))
        case Break():
            return replace(whole, breaks=True, jumps=True)
        case Continue():
            return replace(whole, continues=True, jumps=True)
        case For(index=index):
            return replace(whole, breaks=False, continues=False, depth=whole.depth + 1, assigns=whole.assigns | {index})
        case While():
            return replace(whole, breaks=False, continues=False, depth=whole.depth + 1, whiles=True)
        case _:
            return whole


def _joined(parts: Sequence[Effects]) -> Effects:
    parts = [part for part in parts if part is not NOTHING]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    return Effects(
        fails=_FAILURES.union(*(part.fails for part in parts)),
        draws=any(part.draws for part in parts),
        functions=any(part.functions for part in parts),
        breaks=any(part.breaks for part in parts),
        continues=any(part.continues for part in parts),
        jumps=any(part.jumps for part in parts),
        depth=max(part.depth for part in parts),
        whiles=any(part.whiles for part in parts),
        loads=_TENSORS.union(*(part.loads for part in parts)),
        stores=_TENSORS.union(*(part.stores for part in parts)),
        rebinds=_TENSORS.union(*(part.rebinds for part in parts)),
        declares=_TENSORS.union(*(part.declares for part in parts)),
        assigns=_SYMBOLS.union(*(part.assigns for part in parts)),
        reads=_SYMBOLS.union(*(part.reads for part in parts)),
    )
