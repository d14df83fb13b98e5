"""The intermediate representation: expressions, statements, kernels and the host program that launches them.

Every node is an immutable record with the user's location; equality ignores locations. Expressions are typed, strict
and free of side effects: whatever needs control flow (short-circuit, conditional reads) is lowered to statements.
Symbols and tensors are told apart by number, never by name. Loops run from `start` to `stop` (exclusive) by one: other
steps are normalised away before they get here. Indices that can be negative are resolved by explicit Select nodes.

Not in here: constructors that infer types (`build.py`), traversal (`walk.py`), meaning (`interpret.py`).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.ir.dtypes import BOOL, INT64, DType
from brickwork.ir.operators import Operator
from brickwork.ir.tensor_types import TensorType
from brickwork.records import dataclass


class _Remembering:
    """Has room for what was found out about a node, which is no part of its value: by `effects`, `walk`, `analysis`."""

    __slots__ = ("accesses", "analyses", "assigns", "known", "reads", "updates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(_Remembering):
    """What every node has: its place in the user's source."""

    loc: Location = field(default=NOWHERE, compare=False, repr=False)


# ---------------------------------------------------------------- names


@dataclass(frozen=True, slots=True)
class Symbol:
    """A scalar variable. `number` is unique in its program."""

    name: str
    number: int
    dtype: DType

    def __hash__(self) -> int:
        """Return the number: sets of variables are made often."""
        return self.number


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument, one that the host part allocates, or a `Local`. `number` is unique in its program.

    `sizes` are the extents of a `Local`, and empty for all others. `added` of the first axes are a transform's, of
    which messages do not speak.
    """

    name: str
    number: int
    type: TensorType
    sizes: tuple[int, ...] = ()
    added: int = 0

    def __hash__(self) -> int:
        """Return the number, made so that variables have others."""
        return ~self.number

    @property
    def is_local(self) -> bool:
        """Whether a `Local` declares it."""
        return bool(self.sizes)


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Node):
    """A literal of a value type."""

    value: bool | int | float
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Node):
    """The value of a scalar variable."""

    symbol: Symbol

    @property
    def dtype(self) -> DType:
        """The symbol's type."""
        return self.symbol.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Size(Node):
    """The extent of a tensor along an axis, in elements; never negative."""

    tensor: Tensor
    axis: int

    @property
    def dtype(self) -> DType:
        """int64."""
        return INT64


FLAT_ACCESS = -1
"""The number of an access to a dense tensor whose last index counts on into the next rows (the others are 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Node):
    """An element, widened to its value type. `access` numbers the place in the source, unique in its kernel."""

    tensor: Tensor
    indices: tuple[Expression, ...]
    access: int
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply(Node):
    """A scalar operator applied to operands of one value type."""

    operator: Operator
    operands: tuple[Expression, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast(Node):
    """A conversion between value types. float to int truncates and saturates, NaN gives 0; to bool compares with 0."""

    operand: Expression
    dtype: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Select(Node):
    """`then` where `condition` holds, else `otherwise`; both are evaluated."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def dtype(self) -> DType:
        """The type that both branches share."""
        return self.then.dtype


class Draw(Enum):
    """The distribution of a random number."""

    UNIFORM = "uniform"  # float32 in [0, 1), 24 bits
    NORMAL = "normal"  # float32, Box-Muller
    INTEGER = "integer"  # int64 in [low, high), by multiplication of 32 (or 64) random bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Random(Node):
    """A random number from the counter-based generator (Philox4x32-10, see `ir/philox.py`).

    It is word `counter % 4` of the block with the 128-bit counter (counter // 4 low, counter // 4 high, extra, site)
    under the 64-bit `key`. `bounds` are (low, high) of an INTEGER, else empty.
    """

    draw: Draw
    key: Expression
    counter: Expression
    extra: Expression
    site: int
    bounds: tuple[Expression, ...] = ()
    dtype: DType


Expression: TypeAlias = Constant | Read | Size | Load | Apply | Cast | Select | Random


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Node):
    """Sets a scalar variable; the value has the symbol's type.

    Every read is preceded by an assignment on every path (the frontend refuses the rest). A loop index is never
    assigned. A variable assigned in a PARALLEL or VECTOR loop is private to the iteration, or one of its `reductions`.
    """

    symbol: Symbol
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(Node):
    """Writes an element; the value has the element type's value type and is narrowed (integers wrap).

    With `combine` the element becomes combine(element, value) in one indivisible step (`add`, `mul`, `minimum`,
    `maximum`): a schedule writes it where updates of one element may come from several threads in any order.
    """

    tensor: Tensor
    indices: tuple[Expression, ...]
    value: Expression
    access: int
    combine: Operator | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class If(Node):
    """Two-way branch on a bool.

    Where a transform chooses between versions of the same statements, `version` names the one that `then` is.
    """

    condition: Expression
    then: Block
    otherwise: Block = ()
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Local(Node):
    """Declares an array of `tensor.sizes` elements that belongs to this execution of the block around it.

    It is made anew each time and known until the end of the block; an element is stored before it is loaded. It is of
    a value type, at least one element, row-major. With `values` (row-major) it is a table that nothing stores into.
    Expressions say its sizes as constants (`build.size`); `Kernel.tensors` does not hold it. Iterations of loops in
    the block share it, but that each thread of a BLOCK has a copy: no THREAD loop stores into one from outside.
    """

    tensor: Tensor
    values: tuple[bool | int | float, ...] = ()


class Role(Enum):
    """How a loop is run; the frontend writes SEQUENTIAL, a schedule changes it."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"  # iterations are shared out among threads
    VECTOR = "vector"  # each lane of a SIMD vector runs an iteration
    BLOCK = "block"  # each iteration is run by a block of threads, in lockstep and with the same values
    THREAD = "thread"  # inside BLOCK: iterations, of several such nested loops together, are shared out among the
    # block's threads; a barrier follows
    WARP = "warp"  # inside BLOCK: the same for warps, or equal parts of them; each runs its iterations as a block does,
    # and shares THREAD loops inside out among its threads
    TILE = "tile"  # inside BLOCK: rows, or columns, of a tile of a contraction, `width` at most
    CHUNKED_TILE = (
        "chunked_tile"  # the same; rows of what its factor reads along memory begin at multiples of 16 staged bytes
    )
    CONTRACT = "contract"  # inside TILE: the depth of a contraction, of which `width` iterations are staged at once
    CONTRACT_GROUPS = "contract_groups"  # the same; groups of four warps multiply what is staged

    @property
    def is_tile(self) -> bool:
        """Whether iterations are rows, or columns, of a tile."""
        return self in {Role.TILE, Role.CHUNKED_TILE}


@dataclass(frozen=True, slots=True)
class Reduction:
    """A variable that a loop accumulates into with an associative operator (`add`, `mul`, `minimum`, `maximum`).

    In a search, variables go `along` with the least or greatest value: they are what the iteration gave them that found
    it. The first of them, right after the value, is the place: the index of that iteration. Its operator says which of
    several iterations with equal values it is: the first (`minimum`) or the last (`maximum`).
    """

    symbol: Symbol
    operator: Operator
    along: Symbol | None = None

    def renamed(self, names: Mapping[Symbol, Symbol]) -> Reduction:
        """Return the same of other variables, where `names` has some."""
        along = None if self.along is None else names.get(self.along, self.along)
        return Reduction(names.get(self.symbol, self.symbol), self.operator, along)


@dataclass(frozen=True, slots=True, kw_only=True)
class For(Node):
    """`for index in range(start, stop)`. The bounds read no element, and nothing that the body assigns.

    `claimed` is the user's word (`prange`) that iterations are independent. `role`, `width` (lanes) and `reductions`
    belong to the schedule, and so does `across`: of a parallel nest's innermost loop, how many threads of a block lie
    along it (0 leaves that to its length), of the depth of a contraction, how many stages there are at once, and of a
    BLOCK nest's innermost loop, how many blocks are wanted: where there are fewer, several may run an iteration.
    `unrolled` iterations of a loop in order are written out one after the other.
    """

    index: Symbol
    start: Expression
    stop: Expression
    body: Block
    claimed: bool = False
    role: Role = Role.SEQUENTIAL
    width: int = 1
    across: int = 0
    unrolled: int = 1
    reductions: tuple[Reduction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class While(Node):
    """Runs `prelude`, then leaves unless `condition` holds, then `body`; and again. `continue` goes to the prelude."""

    prelude: Block
    condition: Expression
    body: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Break(Node):
    """Leaves the innermost For or While."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue(Node):
    """Ends this iteration of the innermost For or While."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebind(Node):
    """Lets tensors change places: from here on each of `targets` stands for what its source stood for, all at once.

    In a kernel the sources are the targets in another order, of one type and with equal sizes. In the host program the
    targets may be new names, places that kernels then exchange; who owns a tensor stays as it was.
    """

    targets: tuple[Tensor, ...]
    sources: tuple[Tensor, ...]


class FailureKind(Enum):
    """The Python exception that a failed check raises."""

    ASSERTION = "AssertionError"
    INDEX = "IndexError"
    DIVISION = "ZeroDivisionError"
    VALUE = "ValueError"
    RUNTIME = "RuntimeError"
    MEMORY = "MemoryError"
    TYPE = "TypeError"
    KEY = "KeyError"
    OVERFLOW = "OverflowError"
    ARITHMETIC = "ArithmeticError"
    NOT_IMPLEMENTED = "NotImplementedError"

    @property
    def exception(self) -> type[Exception]:
        """The class of the exception."""
        return getattr(builtins, self.value)


@dataclass(frozen=True, slots=True)
class Failure:
    """What to say when a check fails: `message` is a `str.format` template over the check's recorded values."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Node):
    """Ends the iteration with `failure` unless `condition` holds. `values` (at most 8, numbers) go into the message."""

    condition: Expression
    failure: Failure
    values: tuple[Expression, ...] = ()


# ---------------------------------------------------------------- the host program


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocate(Node):
    """Makes a tensor of `sizes` on the device of the first tensor argument.

    `like` gives the strides by `torch.empty_like`'s rule (dense inputs keep their order); without it the result is
    contiguous. `fill` is the initial value (None: uninitialised). A `given` tensor is the caller's (`out=`): its shape
    is checked instead.
    """

    tensor: Tensor
    sizes: tuple[Expression, ...]
    fill: Expression | None = None
    like: Tensor | None = None
    given: bool = False


@dataclass(frozen=True, slots=True)
class Ascending:
    """That along the last axis of a tensor no element is greater than the next; all are from 0 to each of `most`.

    With `last` it is said of rows that the tensor begins, at places that both have: each ends at the element of `last`,
    or is as long as that if `counted`. Both elements, and their sum if `counted`, are from 0 to each of `most`, and no
    row that has elements begins before the end of an earlier one.
    """

    tensor: Tensor
    most: tuple[Size, ...]
    last: Tensor | None = None
    counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Node):
    """A lifted piece of the body: what one launch runs.

    `tensors` and `scalars` are all free names of the body in order of first use; what a `Local` declares is not free.
    `facts` are bool expressions over sizes and scalars that hold whenever the kernel runs. `may_alias`: two tensors may
    share memory and one is written.
    `ascending` is what the elements of tensors are known to be that nothing in it stores into, `alone` are accesses
    by which no two iterations of all loops touch the same element, `launched` are loops in order that stay around
    others, as what is in them is launched for each of their iterations.
    `narrow` are the tensors and integer scalars within the limits of `signature.NARROW_SIZE`, `aligned` the tensors
    whose data begins at a multiple of 16 bytes; both are known for device kernels only.
    """

    name: str
    tensors: tuple[Tensor, ...]
    scalars: tuple[Symbol, ...]
    facts: tuple[Expression, ...]
    body: Block
    may_alias: bool = False
    ascending: tuple[Ascending, ...] = ()
    alone: frozenset[int] = frozenset()
    launched: frozenset[Symbol] = frozenset()
    narrow: tuple[Tensor | Symbol, ...] = ()
    aligned: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch(Node):
    """Runs a kernel on the tensors and scalars that it names."""

    kernel: Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Return(Node):
    """Ends the host program with these results."""

    tensors: tuple[Tensor, ...]


Statement: TypeAlias = (
    Assign | Store | Local | If | For | While | Break | Continue | Check | Rebind | Allocate | Launch | Return
)
Block: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A tensor argument; `mutated` if a kernel stores into it, `optional` if it could be None."""

    tensor: Tensor
    mutated: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """An int, float or bool argument; `optional` if it could be None.

    `value` is what it is in every call that the program serves, where that is known: nothing reads it then. A `rate`
    without one is not between 1 and MOST_RATE.
    """

    symbol: Symbol
    optional: bool = False
    value: int | None = None
    rate: bool = False


@dataclass(frozen=True, slots=True)
class AbsentParameter:
    """An optional argument that is None in every call that the program serves."""

    name: str


@dataclass(frozen=True, slots=True)
class TextParameter:
    """A text that is this one in every call that the program serves."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ListParameter:
    """A list of ints, floats or bools of known length, one symbol an item."""

    name: str
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True, slots=True)
class TensorListParameter:
    """A list of tensors of known length; `mutated` if a kernel may store into them."""

    name: str
    tensors: tuple[Tensor, ...]
    mutated: bool = False


@dataclass(frozen=True, slots=True)
class KeyParameter:
    """The optional explicit random key (`key=`), else drawn from torch's generator; last of the parameters.

    Device kernels read it from `cell`, a tensor of one int64, and not as a scalar.
    """

    symbol: Symbol
    cell: Tensor | None = None


Parameter: TypeAlias = (
    TensorParameter
    | ScalarParameter
    | AbsentParameter
    | TextParameter
    | ListParameter
    | TensorListParameter
    | KeyParameter
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program(Node):
    """An operator specialised for the types of its arguments: parameters in schema order, and the host part.

    `device`, `narrow`, `aligned` and `may_alias` are the signature's (`ir/signature.py`).
    """

    name: str
    parameters: tuple[Parameter, ...]
    body: Block
    device: str = "cpu"
    narrow: bool = False
    aligned: bool = False
    may_alias: bool = False


def parameter_tensors(parameters: Iterable[Parameter], *, mutated: bool = False) -> tuple[Tensor, ...]:
    """Return the tensors among parameters, items of lists too; with `mutated` only those that are stored into."""
    found: list[Tensor] = []
    for parameter in parameters:
        match parameter:
            case TensorParameter(tensor=tensor, mutated=written) if written or not mutated:
                found.append(tensor)
            case TensorListParameter(tensors=tensors, mutated=written) if written or not mutated:
                found.extend(tensors)
            case _:
                pass
    return tuple(found)


TRUE = Constant(value=True, dtype=BOOL)


def joined_together(reductions: Iterable[Reduction]) -> Iterator[tuple[Reduction, ...]]:
    """Yield the reductions of a loop: each by itself, or with those that go along with it."""
    group: tuple[Reduction, ...] = ()
    for item in reductions:
        if item.along is None and group:
            yield group
            group = ()
        group = (*group, item)
    if group:
        yield group
