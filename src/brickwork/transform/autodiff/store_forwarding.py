"""Elements whose values a recomputation has in variables: what was just stored or loaded needs no tape.

    x[s] = a * x[s] + b                        v = tape[t, s]
    y += x[s] * c[s]                 ->        w = a * v + b
                                               y += w * c[s]

What a loop sums up is dear to compute again, and is not forwarded. Invariant: an element is known here as long as
nothing was stored into its tensor since.
"""

from __future__ import annotations

from dataclasses import field

from brickwork.analysis.scalars import NONE, live_before
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Expression, For, Node, Store, Symbol, Tensor, While
from brickwork.ir.walk import assigned_symbols, read_symbols, statements
from brickwork.legality import legality
from brickwork.records import dataclass


@dataclass(slots=True)
class Elements:
    """The elements that are known at a place of a recomputation, by their tensors and their indices there."""

    values: dict[tuple[Tensor, tuple[Expression, ...]], Expression] = field(
        default_factory=dict[tuple[Tensor, tuple[Expression, ...]], Expression]
    )

    def copy(self) -> Elements:
        """Return elements that change on their own."""
        return Elements(dict(self.values))

    def after(self, root: Node) -> Elements:
        """Return what is still known when a statement has run, or any of the iterations of one."""
        changed = effects(root).changes
        return Elements({place: value for place, value in self.values.items() if place[0] not in changed})

    def stored(self, tensor: Tensor, indices: tuple[Expression, ...], value: Expression | None) -> None:
        """Note that an element was stored, and what, where that is the value that is loaded."""
        for place in [place for place in self.values if place[0] == tensor]:
            del self.values[place]
        if value is not None:
            self.values[tensor, indices] = value


@legality
def is_exact(store: Store) -> bool:
    """Whether a load finds the very value that was stored: it is not rounded, and nothing is added to it."""
    dtype = store.tensor.type.dtype
    return store.combine is None and value_dtype(dtype) is dtype is store.value.dtype


def summed_symbols(block: Block) -> frozenset[Symbol]:
    """Return the variables whose values may depend on more than one iteration of a loop."""
    nodes = [*statements(block)]
    assigns = [node for node in nodes if isinstance(node, Assign)]
    loops = (node for node in nodes if isinstance(node, For | While))
    found = frozenset(symbol for loop in loops for symbol in live_before(loop.body, NONE) & assigned_symbols(loop.body))
    while True:
        more = {node.symbol for node in assigns if read_symbols(node.value) & found} - found
        if not more:
            return found
        found |= more
