"""What is known of the sizes and the alignment of a program's arguments, from its signature and its host part.

Invariant: what is said here holds for every call that the program serves. What more may hold is a condition, which the
host tests (`narrow_conditions`).
"""

from __future__ import annotations

import math

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    AbsentParameter,
    Allocate,
    Apply,
    Constant,
    Expression,
    Kernel,
    KeyParameter,
    ListParameter,
    Program,
    Read,
    Rebind,
    ScalarParameter,
    Size,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TextParameter,
    parameter_tensors,
)
from brickwork.ir.signature import NARROW_EXTENT, NARROW_SIZE
from brickwork.ir.walk import statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class ArgumentFacts:
    """The tensors and integers of a program that are narrow, and its tensors that are aligned.

    `short` are the axes of allocated tensors that are within the limit of a size. Tensors with numbers from `scratch`
    on hold variables between pieces; they are small. `asked` says that the signature is narrow.
    """

    narrow: frozenset[Tensor | Symbol]
    aligned: frozenset[Tensor]
    short: frozenset[tuple[Tensor, int]]
    asked: bool
    scratch: int

    def is_narrow(self, item: Tensor | Symbol) -> bool:
        """Whether a tensor or an integer is within the limits."""
        return item in self.narrow or (isinstance(item, Tensor) and item.number >= self.scratch)

    def is_aligned(self, tensor: Tensor) -> bool:
        """Whether a tensor's data begins at a multiple of the widest access."""
        return tensor in self.aligned or tensor.number >= self.scratch


def argument_facts_of(program: Program) -> ArgumentFacts:
    """Return what the signature, and the shapes of what the host allocates, say."""
    narrow: set[Tensor | Symbol] = set()
    aligned: set[Tensor] = set()
    short: set[tuple[Tensor, int]] = set()
    for parameter in program.parameters:
        match parameter:
            case TensorParameter(tensor=tensor):
                narrow |= {tensor} if program.narrow else set()
                aligned |= {tensor} if program.aligned else set()
            case ScalarParameter(symbol=symbol):
                narrow |= {symbol} if program.narrow and symbol.dtype is INT64 else set()
            case ListParameter(symbols=symbols):
                narrow |= {item for item in symbols if program.narrow and item.dtype is INT64}
            case TensorListParameter(tensors=tensors):
                narrow |= set(tensors) if program.narrow else set()
                aligned |= set(tensors) if program.aligned else set()
            case AbsentParameter() | TextParameter() | KeyParameter():
                pass
    for node in walk(program.body):
        if isinstance(node, Allocate):
            narrow |= {node.tensor} if _is_narrow(node, narrow) else set()
            aligned |= set() if node.given and not program.aligned else {node.tensor}
            short |= {(node.tensor, axis) for axis, size in enumerate(node.sizes) if _most(size, narrow)}
        elif isinstance(node, Rebind):
            narrow |= set(node.targets) if narrow.issuperset(node.sources) else set()
            aligned |= set(node.targets) if aligned.issuperset(node.sources) else set()
    return ArgumentFacts(
        frozenset(narrow), frozenset(aligned), frozenset(short), program.narrow, first_scratch(program)
    )


@legality
def _is_narrow(node: Allocate, narrow: set[Tensor | Symbol]) -> bool:
    """Whether a new tensor's places fit: it is small for all sizes, or has the shape of a narrow one."""
    if node.given:
        return False
    most = [_most(size, narrow) for size in node.sizes]
    if all(most) and math.prod(most) < NARROW_EXTENT:
        return True
    match node.sizes[0]:
        case Size(tensor=like) if like in narrow:
            return node.sizes == tuple(Size(tensor=like, axis=axis) for axis in range(like.type.rank))
        case _:
            return False


@legality
def _most(size: Expression, narrow: set[Tensor | Symbol]) -> int:
    """Return the most that a size can be (at least 1), or 0 where that is not known."""
    match size:
        case Size(tensor=tensor) if tensor in narrow:
            return NARROW_SIZE
        case Read(symbol=symbol) if symbol in narrow:
            return NARROW_SIZE
        case Constant(value=value) if int(value) < NARROW_SIZE:
            return max(int(value), 1)
        case _:
            return 0


def narrow_conditions(tensor: Tensor, known: ArgumentFacts) -> tuple[Expression, ...]:
    """Return what must hold so that a tensor is narrow: nothing for one that is, or that may lie in any way."""
    if not known.asked or known.is_narrow(tensor) or not tensor.type.contiguous or not tensor.type.rank:
        return ()
    sizes = [Size(tensor=tensor, axis=axis) for axis in range(tensor.type.rank)]
    limit = build.integer(NARROW_SIZE)
    found = [build.apply("lt", size, limit) for size in sizes if (tensor, size.axis) not in known.short]
    total: Expression = sizes[0]
    for size in sizes[1:]:
        total = build.mul(total, size)
        found.append(build.apply("lt", total, build.integer(NARROW_EXTENT)))
    return tuple(found)


@legality
def holds(condition: Expression, known: ArgumentFacts) -> bool:
    """Whether a comparison holds for all sizes and integers that are known to be narrow."""
    if not isinstance(condition, Apply) or condition.operator.name != "ge":
        return False
    left, right = (_interval(operand, known) for operand in condition.operands)
    return left is not None and right is not None and left[0] >= right[1]


@legality
def _interval(expression: Expression, known: ArgumentFacts) -> tuple[int, int] | None:
    match expression:
        case Constant(value=value):
            return int(value), int(value)
        case Read(symbol=symbol) if symbol in known.narrow:
            return -NARROW_SIZE, NARROW_SIZE
        case Size(tensor=tensor, axis=axis) if known.is_narrow(tensor) or (tensor, axis) in known.short:
            return 0, NARROW_SIZE
        case Apply(operator=operator, operands=(first, second)) if operator.name in {"add", "mul"}:
            left, right = _interval(first, known), _interval(second, known)
            if left is None or right is None:
                return None
            if operator.name == "add":
                return left[0] + right[0], left[1] + right[1]
            corners = [one * other for one in left for other in right]
            return min(corners), max(corners)
        case _:
            return None


def first_scratch(program: Program) -> int:
    """Return the number from which no tensor of a program has one."""
    parameters = parameter_tensors(program.parameters)
    made = [node.tensor for node in statements(program.body) if isinstance(node, Allocate)]
    places = [tensor for node in statements(program.body) if isinstance(node, Rebind) for tensor in node.targets]
    return 1 + max((tensor.number for tensor in (*parameters, *made, *places)), default=-1)


def narrow_kernel(kernel: Kernel, known: ArgumentFacts | None) -> tuple[Expression, ...]:
    """Return what must hold so that the tensors of a kernel are narrow."""
    return () if known is None else tuple(item for each in kernel.tensors for item in narrow_conditions(each, known))
