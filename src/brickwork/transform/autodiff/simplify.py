"""Puts the variables of reverse mode that are read once where they are read, and takes out copies and sums with 0.

    v = x[i]
    a = g[i]                        y[i] = y[i] + g[i] * x[i]
    s = 0.0                 ->
    s = s + a
    y[i] = y[i] + s * v

Invariant: no expression passes a store into what it loads, or an assignment of what it reads, and none is moved into a
loop or a branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import partial

from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Block,
    Check,
    Expression,
    For,
    Node,
    Read,
    Statement,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import EXPRESSIONS, assigned_symbols, rebuild, walk, with_blocks
from brickwork.records import dataclass
from brickwork.transform.autodiff.fold_zero_sums import fold_zero_sums
from brickwork.transform.canonical.copies import propagate_copies
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.canonical.local_copies import without_local_copies
from brickwork.transform.preconditions import Preconditions


def simplified(block: Block, results: Collection[Tensor], before: Preconditions) -> Block:
    """Return a block that leaves the same in `results`, with fewer variables; `before` was checked before it."""
    while True:
        # A sum that begins with 0 is folded before the 0 is known to be one.
        changed = without_local_copies(propagate_copies(fold_zero_sums(block)))
        changed = without_dead(_without_checks(changed, assigned_symbols(block), before.conditions), results, before)
        changed = _with_values(changed, _counts(changed))
        if changed == block:
            return block
        block = changed


@dataclass(frozen=True, slots=True)
class _Counts:
    """How often each variable is assigned and read in a kernel."""

    assigned: Counter[Symbol]
    read: Counter[Symbol]


def _counts(block: Block) -> _Counts:
    assigned, read = Counter[Symbol](), Counter[Symbol]()
    for node in walk(block):
        match node:
            case Assign(symbol=symbol):
                assigned[symbol] += 1
            case For(index=index):
                assigned[index] += 1
            case Read(symbol=symbol):
                read[symbol] += 1
            case _:
                pass
    return _Counts(assigned, read)


def _without_checks(block: Block, bound: AbstractSet[Symbol], passed: frozenset[Expression]) -> Block:
    """Return the block without checks that have been `passed` before; `bound` are the variables that change."""
    result: list[Statement] = []
    for statement in block:
        match statement:
            case Check(condition=condition):
                if condition in passed:
                    continue
                if not effects(condition).reads & bound and not effects(condition).loads:
                    passed |= {condition}
                result.append(statement)
            case _:
                result.append(with_blocks(statement, partial(_without_checks, bound=bound, passed=passed)))
    return tuple(result)


# ---------------------------------------------------------------- one block after the other


@dataclass(slots=True)
class _Waiting:
    """What is written of a block so far, and assignments of variables that are read once, still to be written."""

    values: dict[Symbol, Assign] = field(default_factory=dict[Symbol, Assign])
    out: list[Statement] = field(default_factory=list[Statement])

    def write(self, symbols: Iterable[Symbol]) -> None:
        """Write the assignments of these variables after all."""
        self.out.extend([self.values.pop(symbol) for symbol in symbols])

    def taken(self, statement: Statement) -> Statement:
        """Return a statement with values in place of what it reads itself.

        A `while` reads again in each iteration; bounds of a loop read no elements, and nothing that the loop assigns.
        """
        changing = assigned_symbols(statement) if isinstance(statement, For) else None

        def may_move(value: Expression) -> bool:
            return changing is None or (effects(value).plain and not effects(value).reads & changing)

        def visit(node: Node) -> Node:
            if isinstance(node, Read) and node.symbol in self.values and may_move(self.values[node.symbol].value):
                return self.values.pop(node.symbol).value
            return rebuild(node, visit) if isinstance(node, EXPRESSIONS) else node

        return rebuild(statement, visit) if self.values and not isinstance(statement, While) else statement

    def disturbed(self, statement: Statement) -> list[Symbol]:
        """Return the variables that have to be written before a statement."""
        if not self.values:
            return []
        by = effects(statement)

        def is_disturbed(symbol: Symbol, value: Expression) -> bool:
            own = effects(value)
            moved = own.loads and (by.rebinds or own.loads & by.stores)
            return bool(symbol in by.reads or moved or own.reads & by.assigns)

        return [symbol for symbol, node in self.values.items() if is_disturbed(symbol, node.value)]


def _with_values(block: Block, counts: _Counts) -> Block:
    waiting = _Waiting()
    for statement in block:
        changed = _inner(waiting.taken(statement), counts)
        if isinstance(changed, Assign):
            symbol = changed.symbol
            if counts.assigned[symbol] == 1 and counts.read[symbol] == 1:
                waiting.values[symbol] = changed
                continue
        waiting.write(waiting.disturbed(changed))
        waiting.out.append(changed)
    waiting.write([*waiting.values])
    return tuple(waiting.out)


def _inner(statement: Statement, counts: _Counts) -> Statement:
    return with_blocks(statement, lambda block: _with_values(block, counts))
