"""What a derived program costs beside its loops: what it computes again, and the memory that it needs meanwhile.

recomputed   variables of the source that the derived kernel sets as well
kept         tensors that the host allocates and does not return: tapes, copies, adjoints of what is in between
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from brickwork.ir import build
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Constant,
    Expression,
    Kernel,
    Program,
    Read,
    Return,
    Size,
    Tensor,
)
from brickwork.ir.walk import statements


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
        return spelled(self.bytes)


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


# ---------------------------------------------------------------- in words

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_CALLS = {"minimum": "min", "maximum": "max"}


def spelled(node: Expression) -> str:
    """Return an expression over sizes and arguments as a user writes it."""
    match node:
        case Constant(value=value):
            return str(value)
        case Read(symbol=symbol):
            return symbol.name
        case Size(tensor=tensor, axis=axis):
            return f"{tensor.name}.shape[{axis}]"
        case Apply(operator=operator, operands=(left, right)) if operator.name in _SIGNS:
            return f"{_operand(left, operator.name)} {_SIGNS[operator.name]} {_operand(right, operator.name)}"
        case Apply(operator=operator, operands=(one, Constant(value=0))) if operator.name == "maximum":
            return spelled(one)  # A length, and not one below 0.
        case Apply(operator=operator, operands=operands) if operator.name in _CALLS:
            return f"{_CALLS[operator.name]}({', '.join(map(spelled, operands))})"
        case _:
            return "..."


def _operand(node: Expression, around: str) -> str:
    """Return an operand, in parentheses where it needs them."""
    text = spelled(node)
    sums = " + " in text or " - " in text
    return f"({text})" if (sums and around != "add") or (" " in text and around in {"floordiv", "mod"}) else text
