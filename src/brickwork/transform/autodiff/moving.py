"""Which variables and tensors have a derivative: those that depend on given tensors through floats.

Flow-insensitive, and therefore conservative: what is active anywhere is active everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from brickwork.ir.nodes import (
    Apply,
    Assign,
    Cast,
    Expression,
    Load,
    Node,
    Read,
    Rebind,
    Select,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.rules import RULES


@dataclass(slots=True)
class Active:
    """Variables and tensors that have a derivative."""

    symbols: set[Symbol] = field(default_factory=set[Symbol])
    tensors: set[Tensor] = field(default_factory=set[Tensor])

    def __contains__(self, node: Expression) -> bool:
        """Return whether the value of an expression has a derivative."""
        match node:
            case Read(symbol=symbol):
                return symbol in self.symbols
            case Load(tensor=tensor):
                return tensor in self.tensors
            case Apply(operator=operator, operands=operands):
                rules = RULES[operator.name]
                return any(rule and item in self for rule, item in zip(rules, operands, strict=True))
            case Cast(operand=operand, dtype=dtype):
                return dtype.is_float and operand in self
            case Select(then=then, otherwise=otherwise):
                return then in self or otherwise in self
            case _:
                return False


def activity(root: Node | Iterable[Node], given: Iterable[Tensor]) -> Active:
    """Return what depends on the `given` tensors in a program."""
    active = Active(tensors={*given})
    nodes = [node for node in walk(root) if isinstance(node, Assign | Store | Rebind)]
    while sum(_spread(active, node) for node in nodes):
        pass
    return active


def _spread(active: Active, node: Assign | Store | Rebind) -> bool:
    """Add what one statement makes active; return whether that is new."""
    before = len(active.symbols) + len(active.tensors)
    match node:
        case Assign():
            if node.value in active:
                active.symbols.add(node.symbol)
        case Store():
            if node.tensor.type.dtype.is_float and node.value in active:
                active.tensors.add(node.tensor)
        case Rebind():
            if active.tensors.intersection(node.targets + node.sources):
                active.tensors.update(node.targets + node.sources)
    return len(active.symbols) + len(active.tensors) > before
