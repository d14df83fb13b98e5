"""What a kernel is compiled with: the statements so far, variables, the tensors that it names, and where it stands.

Statements go into the innermost open block. Nothing in here knows Taichi's types.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.frontend.random_sites import SPREAD, SPREAD_BITS
from brickwork.ir import build
from brickwork.ir.dtypes import INT64, DType
from brickwork.ir.nodes import (
    Assign,
    Check,
    Expression,
    Failure,
    FailureKind,
    If,
    Load,
    Random,
    Read,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import read_symbols, walk
from brickwork.records import dataclass


@dataclass(slots=True)
class Bound:
    """A tensor that a kernel names, with the object that it belongs to; `None` for an argument, which is `place`."""

    tensor: Tensor
    owner: Any
    part: str
    place: int = -1

    @property
    def is_gone(self) -> bool:
        """Whether the object is a field whose cells were destroyed."""
        return self.place < 0 and getattr(self.owner, "data", self) is None


class Builder:
    """Collects the statements of one kernel."""

    def __init__(self, serial: frozenset[tuple[int, int]]) -> None:
        """Begin with nothing; `serial` are the places of loops that run in order although the source says parallel."""
        self.block: list[Statement] = []
        self.depth = 0
        self.loc: Location = NOWHERE
        self.serial = serial
        self.bound: dict[tuple[int, str], Bound] = {}
        self.mutated: set[Tensor] = set()
        self.draws = 0
        self.loops: list[Expression] = []
        """The loops around, those of `while` too, each by the number of the iteration."""
        self.in_order = False
        """Whether something in the loop of the top level needs its iterations one after the other."""
        self.log: Any = None
        """What `print` writes into, if there is one."""
        self._numbers = count(1)
        self.key = Symbol("key", 0, INT64)
        self.serialize = False
        """Whether the next loop is told to run in order."""
        self.wants_value = True
        """Whether what the call that is compiled returns is used."""
        self.updates: set[int] = set()
        """The lines that update an element in one step."""
        self.fixed: set[Symbol] = set()
        """Variables that nothing assigns: parameters, and indices of loops."""
        self.shared: list[Tensor] | None = None
        """The arrays that the threads of a block share, in a loop that has blocks."""
        self.waits = self.symbol("waits", INT64)
        """Stands for a wait of all threads of a block: it is assigned where they wait."""
        self.block_dim = 0
        """How many threads a block has, where `loop_config` says it."""
        self._accesses = count()

    # ------------------------------------------------------------ names

    def symbol(self, name: str, dtype: DType) -> Symbol:
        """Return a new variable."""
        return Symbol(name, next(self._numbers), dtype)

    def tensor(self, name: str, element: DType, rank: int, owner: Any, part: str, place: int = -1) -> Tensor:
        """Return the tensor of an object, or of the argument `place`: the same one each time it is named."""
        key = (id(owner) if place < 0 else place, part)
        found = self.bound.get(key)
        if found is None:
            made = Tensor(name, next(self._numbers), TensorType(element, rank))
            found = self.bound[key] = Bound(made, owner, part, place)
        return found.tensor

    def access(self) -> int:
        """Return the number of a new access."""
        return next(self._accesses)

    # ------------------------------------------------------------ statements

    def emit(self, statement: Statement) -> None:
        """Add a statement."""
        self.block.append(statement)

    def keep(self, value: Expression, name: str = "t") -> Read:
        """Return the value as it is now, in a variable of its own."""
        symbol = self.symbol(name, value.dtype)
        self.emit(Assign(symbol=symbol, value=value, loc=self.loc))
        return build.read(symbol, self.loc)

    def assign(self, symbol: Symbol, value: Expression) -> None:
        """Set a variable."""
        self.emit(Assign(symbol=symbol, value=value, loc=self.loc))

    def load(self, tensor: Tensor, indices: tuple[Expression, ...], dtype: DType) -> Load:
        """Return the value of an element."""
        return Load(tensor=tensor, indices=indices, access=self.access(), dtype=dtype, loc=self.loc)

    def store(self, tensor: Tensor, indices: tuple[Expression, ...], value: Expression) -> None:
        """Set an element."""
        if not tensor.is_local:
            self.mutated.add(tensor)
        self.emit(Store(tensor=tensor, indices=indices, value=value, access=self.access(), loc=self.loc))

    def check(self, condition: Expression, kind: FailureKind, message: str, *values: Expression) -> None:
        """Have a condition tested when the kernel runs; nothing for one that is known to hold."""
        if not build.is_constant(condition, 1):
            text = message if values else message.replace("{", "{{").replace("}", "}}")
            self.emit(Check(condition=condition, failure=Failure(kind, text), values=values, loc=self.loc))

    @contextmanager
    def inside(self) -> Generator[list[Statement]]:
        """Collect statements into a block of their own."""
        before, self.block = self.block, []
        self.depth += 1
        try:
            yield self.block
        finally:
            self.block = before
            self.depth -= 1

    def branch(self, condition: Expression, then: list[Statement], otherwise: list[Statement]) -> None:
        """Add a branch; nothing where both ways are empty."""
        if then or otherwise:
            self.emit(If(condition=condition, then=tuple(then), otherwise=tuple(otherwise), loc=self.loc))

    def bound_of(self, value: Expression) -> Expression:
        """Return a loop's bound: a value that reads no element, and that nothing changes."""
        pure = not any(isinstance(each, Load | Random) for each in walk(value))
        return value if pure and read_symbols(value) <= self.fixed else self.keep(value, "bound")

    def new_index(self, name: str) -> Symbol:
        """Return a variable for the index of a loop."""
        made = self.symbol(name, INT64)
        self.fixed.add(made)
        return made

    def iteration(self) -> Expression:
        """Return a number of this iteration of the loops around, by `frontend.random_sites`."""
        number: Expression = build.integer(0)
        for place in self.loops:
            spread = build.mul(number, build.integer(SPREAD))
            number = build.add(build.apply("bit_and", spread, build.integer(SPREAD_BITS)), place)
        return number
