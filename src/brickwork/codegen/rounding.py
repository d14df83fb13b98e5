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


SOURCE = Rounding()
"""What holds unless the user asks for something else: IEEE operations, and fused multiply-adds."""
