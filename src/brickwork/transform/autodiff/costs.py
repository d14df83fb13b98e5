"""What a derived program costs beside its loops: what it computes again, and the memory that it needs meanwhile.

recomputed   variables of the source that the derived kernel sets as well
kept         tensors that the host allocates and does not return: tapes, copies, adjoints of what is in between
"""

from __future__ import annotations

from functools import reduce

from brickwork.ir import build
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Constant,
    Expression,
    Kernel,
    Node,
    Program,
    Return,
    Tensor,
)
from brickwork.ir.walk import rewrite, statements
from brickwork.records import dataclass
from brickwork.transform.spelling import spelled


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that a derived program needs while it runs, and how many bytes it has, from sizes and arguments."""

    tensor: Tensor
    bytes: Expression

    @property
    def name(self) -> str:
        """What it is called."""
        return self.tensor.name

    @property
    def formula(self) -> str:
        """The bytes in the user's words, such as `8 * x.shape[0]`."""
        return spelled(_unlimited(self.bytes))


@dataclass(frozen=True, slots=True)
class Costs:
    """What a derived program computes again, by the user's names, and what it keeps."""

    recomputed: tuple[str, ...]
    kept: tuple[Kept, ...]


def costs(source: Program, derived: Program) -> Costs:
    """Return what a program that is derived from `source` costs."""
    returned = {tensor for node in derived.body if isinstance(node, Return) for tensor in node.tensors}
    made = (node for node in statements(derived.body) if isinstance(node, Allocate) and node.tensor not in returned)
    return Costs(
        recomputed=tuple(name for name in _assigned(source) if name in _assigned(derived)),
        kept=tuple(Kept(node.tensor, _bytes(node)) for node in made),
    )


def _assigned(program: Program) -> dict[str, None]:
    """Return the names of the variables that kernels set."""
    kernels = (node for node in statements(program.body) if isinstance(node, Kernel))
    return dict.fromkeys(
        node.symbol.name for kernel in kernels for node in statements(kernel) if isinstance(node, Assign)
    )


def _bytes(node: Allocate) -> Expression:
    return reduce(build.mul, node.sizes, build.integer(node.tensor.type.dtype.size))


def _unlimited(node: Expression) -> Expression:
    """Return `a` for `max(a, 0)`: a length that is never less."""

    def visit(item: Node) -> Node:
        match item:
            case Apply(operator=operator, operands=(length, Constant(value=0))) if operator.name == "maximum":
                return length
            case _:
                return item

    return rewrite(node, visit)
