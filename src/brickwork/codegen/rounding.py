"""What an operator lets generated code do with the rounding of floats, as its decorator says it.

Invariant: the text of a `Rounding` is part of the key of all code that is made under it.
"""

from __future__ import annotations

from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Rounding:
    """How generated code may round otherwise than the operations of the source do, one by one."""

    fast_math: bool = False
    """Whether arithmetic may be rewritten in ways that change its last digits."""
    fused: bool = True
    """Whether a multiplication and an addition may become one operation, which rounds once."""
    blocked: bool = True
    """Whether a sum of products may be taken in blocks, in another order than that of the source."""

    @property
    def matrices(self) -> bool:
        """Whether matrix instructions may be used: these round products and sums together, block by block."""
        return self.fused and self.blocked


SOURCE = Rounding()
"""What holds unless the user asks for something else: IEEE operations, and fused multiply-adds."""


def rounding_of(order: str, *, fast_math: bool, fused: bool) -> Rounding:
    """Return what a decorator says; ValueError for an order of sums that there is not."""
    if order not in {"", "source"}:
        raise ValueError(f"order is 'source' or left out, not {order!r}")
    return Rounding(fast_math, fused, blocked=not order)
