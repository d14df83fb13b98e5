"""What a device kernel is told: its names, the facts that hold, and which of its arguments are narrow and aligned."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from brickwork.analysis.scalars import NONE, live_before
from brickwork.diagnostics.location import NOWHERE
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Allocate,
    Block,
    Constant,
    Expression,
    Kernel,
    KeyParameter,
    ListParameter,
    Load,
    Program,
    Read,
    ScalarParameter,
    Size,
    Store,
    Symbol,
    Tensor,
    TensorParameter,
)
from brickwork.ir.signature import NARROW_SIZE
from brickwork.ir.walk import read_symbols, walk


@dataclass(frozen=True, slots=True)
class Known:
    """The tensors and integers of a program that are narrow, and its tensors that are aligned.

    Tensors with numbers from `scratch` on are short ones that hold variables between pieces.
    """

    narrow: frozenset[Tensor | Symbol]
    aligned: frozenset[Tensor]
    scratch: int

    def is_narrow(self, item: Tensor | Symbol) -> bool:
        """Whether a tensor or an integer is within the limits."""
        return item in self.narrow or (isinstance(item, Tensor) and item.number >= self.scratch)

    def is_aligned(self, tensor: Tensor) -> bool:
        """Whether a tensor's data begins at a multiple of the widest access."""
        return tensor in self.aligned or tensor.number >= self.scratch


def known_of(program: Program, scratch: int) -> Known:
    """Return what the signature, and the shapes of what the host allocates, say."""
    narrow: set[Tensor | Symbol] = set()
    aligned: set[Tensor] = set()
    for parameter in program.parameters:
        match parameter:
            case TensorParameter(tensor=tensor):
                narrow |= {tensor} if program.narrow else set()
                aligned |= {tensor} if program.aligned else set()
            case ScalarParameter(symbol=symbol):
                narrow |= {symbol} if program.narrow and symbol.dtype is INT64 else set()
            case ListParameter(symbols=symbols):
                narrow |= {item for item in symbols if program.narrow and item.dtype is INT64}
            case KeyParameter():
                pass
    for node in walk(program.body):
        if isinstance(node, Allocate):
            narrow |= {node.tensor} if _is_narrow(node, narrow) else set()
            aligned |= set() if node.given and not program.aligned else {node.tensor}
    return Known(frozenset(narrow), frozenset(aligned), scratch)


def _is_narrow(node: Allocate, narrow: set[Tensor | Symbol]) -> bool:
    """Whether a new tensor's places fit: it has the shape of a narrow one, or one axis that is known to be short."""
    if node.given:
        return False
    if all(isinstance(size, Constant) for size in node.sizes):
        total = 1
        for size in node.sizes:
            total *= max(int(size.value), 1) if isinstance(size, Constant) else 1
        return total < NARROW_SIZE
    first = node.sizes[0]
    if len(node.sizes) == 1:
        return _is_short(first, narrow)
    like = first.tensor if isinstance(first, Size) else None
    same = like is not None and like in narrow and len(node.sizes) == like.type.rank
    return same and all(
        isinstance(size, Size) and size.tensor == like and size.axis == axis for axis, size in enumerate(node.sizes)
    )


def _is_short(size: Expression, narrow: set[Tensor | Symbol]) -> bool:
    match size:
        case Size(tensor=tensor):
            return tensor in narrow
        case Read(symbol=symbol):
            return symbol in narrow
        case Constant(value=value):
            return int(value) < NARROW_SIZE
        case _:
            return False


def make_kernel(name: str, body: Block, facts: Iterable[Expression], known: Known, source: Kernel | None) -> Kernel:
    """Return the kernel with this body; of the `facts` it keeps those about its own names."""
    tensors = tuple(dict.fromkeys(node.tensor for node in walk(body) if isinstance(node, Load | Store | Size)))
    free = live_before(body, NONE)
    reads = (node.symbol for node in walk(body) if isinstance(node, Read))
    scalars = tuple(dict.fromkeys(symbol for symbol in reads if symbol in free))
    kept = [fact for fact in dict.fromkeys(facts) if _speaks_of(fact, tensors, scalars)]
    return Kernel(
        name=name,
        tensors=tensors,
        scalars=scalars,
        facts=tuple(kept),
        body=body,
        may_alias=source is not None and source.may_alias,
        narrow=tuple(item for item in (*tensors, *scalars) if known.is_narrow(item)),
        aligned=tuple(tensor for tensor in tensors if known.is_aligned(tensor)),
        loc=NOWHERE if source is None else source.loc,
    )


def _speaks_of(fact: Expression, tensors: tuple[Tensor, ...], scalars: tuple[Symbol, ...]) -> bool:
    sizes = (node.tensor for node in walk(fact) if isinstance(node, Size))
    return all(tensor in tensors for tensor in sizes) and read_symbols(fact) <= frozenset(scalars)
