"""The types of values during lowering: a value type and whether it is weak, and how two of them join.

Weak are Python's own numbers (literals, scalar arguments, loop indices, sizes): beside a value that comes from a tensor
they take its type. Division of integers gives a weak float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, TypeAlias

from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.frontend.random_sites import Path
from brickwork.ir.build import add, integer, mul
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, UINT64, DType
from brickwork.ir.nodes import Expression, Tensor
from brickwork.records import dataclass

Site: TypeAlias = tuple[Path, str]
"""A place in the source, as it is reached by calls, and what is meant there."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """A value type; `weak` says that it yields to the other operand's."""

    dtype: DType
    weak: bool

    def __str__(self) -> str:
        """Return how messages call the type."""
        if not self.weak:
            return self.dtype.name
        return "a Python float" if self.dtype.is_float else "a Python int" if self.dtype.is_integer else "bool"


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar expression with its type."""

    expression: Expression
    weak: bool = False
    given: bool = field(default=False, compare=False)
    """Whether this is a number as the operator was given it: a literal, an argument, a number of the host part."""

    @property
    def dtype(self) -> DType:
        """The expression's type."""
        return self.expression.dtype

    @property
    def type(self) -> ValueType:
        """The type with its weakness."""
        return ValueType(self.dtype, self.weak)


@dataclass(frozen=True, slots=True)
class View:
    """A tensor with its first axes indexed; the indices are resolved and do not change.

    `indexed` tells `x[()]`, an element, from a zero-dimensional `x` itself.
    """

    tensor: Tensor
    indices: tuple[Expression, ...] = ()
    indexed: bool = False

    @property
    def is_element(self) -> bool:
        """Whether every axis is indexed, so that this is read as a value."""
        return self.indexed and self.rank == 0

    @property
    def rank(self) -> int:
        """How many axes are left."""
        return self.tensor.type.axes - len(self.indices)


@dataclass(frozen=True, slots=True)
class Items:
    """A tuple or a list of known length; `site` tells of a list where it is made, as it may have to be an array."""

    items: tuple[Operand, ...]
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class Grown:
    """A list that grows: an array for each number of an item, and a variable for the length.

    `form` is that of an item; None where no item is known yet.
    """

    name: str
    site: Site
    tensors: tuple[Tensor, ...]
    form: Operand | None
    depth: int
    """How many loops are around the place where it is made."""
    axes: int = 0
    """How many axes an item has, where that is a row of numbers."""


@dataclass(frozen=True, slots=True)
class Maybe:
    """What may be None: whether it is there, and what it is then."""

    there: Operand
    inner: Operand
    forgotten: bool = field(default=False, compare=False)
    """Whether None comes of a helper that ends without a `return`."""


@dataclass(frozen=True, slots=True)
class Record:
    """A value with parts: an instance of a class, and what each of its attributes is."""

    kind: type[Any]
    names: tuple[str, ...]
    parts: tuple[Operand, ...]

    @property
    def is_tuple(self) -> bool:
        """Whether this is a NamedTuple."""
        return issubclass(self.kind, tuple)

    def part(self, name: str) -> Operand | None:
        """Return what an attribute is, or None if it has not been set."""
        return self.parts[self.names.index(name)] if name in self.names else None


@dataclass(frozen=True, slots=True)
class Along:
    """An axis that a row runs along: where it begins, how long it is, the begin as a literal, and the step."""

    start: Expression
    size: Expression
    literal: int | None = None
    step: int = 1

    def place(self, item: Expression, loc: Location = NOWHERE) -> Expression:
        """Return where an item lies."""
        return add(self.start, mul(item, integer(self.step, loc), loc), loc)


@dataclass(frozen=True, slots=True)
class Slab:
    """A part of a tensor: for each axis an index, or how the part runs along it."""

    tensor: Tensor
    axes: tuple[Expression | Along, ...]
    anywhere: bool = False
    """Whether each item is computed of all of it."""

    @property
    def along(self) -> tuple[Along, ...]:
        """The axes that are left."""
        return tuple(axis for axis in self.axes if isinstance(axis, Along))


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A formula for each item of a part of a tensor: its sizes, the item at some indices, and what it reads.

    `view`: it is such a part itself. `dear`: an item is computed by a loop, and should be computed once.
    """

    sizes: tuple[Expression, ...]
    item: Callable[[tuple[Expression, ...]], Value | Record]
    reads: tuple[Slab, ...]
    view: bool = False
    dear: bool = False

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(self.sizes)


@dataclass(frozen=True, slots=True)
class ElementType:
    """A dtype as a value: `x.dtype`, `torch.float32`."""

    dtype: DType


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that can only be handed on: `None`, a device, a text (then with its value)."""

    what: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """What the call of a helper gives that returns nothing."""

    function: str


@dataclass(frozen=True, slots=True)
class Absent:
    """An optional argument that is None in the calls that are compiled for."""

    name: str


Operand: TypeAlias = Value | View | Items | Grown | Maybe | Record | Row | ElementType | Opaque | Nothing | Absent

PART = Opaque("a number")
"""What stands for a number in the form of an operand."""


def with_parts(found: Operand, change: Callable[[Operand], Operand], *, keep_sites: bool = True) -> Operand:
    """Return a tuple, list or value with parts with each item changed; anything else as it is."""
    match found:
        case Items():
            return Items(tuple(map(change, found.items)), found.site if keep_sites else None)
        case Record():
            return Record(found.kind, found.names, tuple(map(change, found.parts)))
        case Maybe():
            return Maybe(change(found.there), change(found.inner), found.forgotten)
        case _:
            return found


def parts_of(found: object) -> tuple[Operand, ...]:
    """Return what a tuple, list or value with parts is made of; nothing for anything else."""
    if isinstance(found, Maybe):
        return found.there, found.inner
    return found.items if isinstance(found, Items) else found.parts if isinstance(found, Record) else ()


def numbers_of(found: Operand) -> Iterator[Value]:
    """Yield the numbers that an operand holds, in order."""
    if isinstance(found, Value):
        yield found
    for part in parts_of(found):
        yield from numbers_of(part)


def form_of(found: Operand) -> Operand:
    """Return an operand without its numbers: two of one form differ in numbers alone."""
    return PART if isinstance(found, Value) else with_parts(found, form_of, keep_sites=False)


def count_of(form: Operand) -> int:
    """Return how many numbers an operand of this form has."""
    return 1 if form == PART else sum(map(count_of, parts_of(form)))


def with_numbers(found: Operand, numbers: Iterator[Value], *, keep_sites: bool = True) -> Operand:
    """Return an operand of this form with other numbers."""
    if isinstance(found, Value) or found == PART:
        return next(numbers)
    return with_parts(found, lambda part: with_numbers(part, numbers, keep_sites=keep_sites), keep_sites=keep_sites)


def is_none(operand: Operand | None) -> bool:
    """Return whether an operand is Python's None."""
    return isinstance(operand, Absent) or operand == Opaque("None")


def join(left: ValueType, right: ValueType) -> ValueType | None:
    """Return the type in which two values meet, or None where they do not (uint64 with a signed element).

    >>> from brickwork.ir.dtypes import FLOAT32
    >>> str(join(ValueType(FLOAT64, weak=True), ValueType(FLOAT32, weak=False)))
    'float32'
    """
    if left == right:
        return left
    one, other = sorted((left, right), key=lambda item: _rank(item.dtype))
    if _rank(one.dtype) < _rank(other.dtype) or one.dtype is BOOL:
        return other
    if one.weak != other.weak:
        return other if one.weak else one
    if {one.dtype, other.dtype} == {INT64, UINT64}:
        return None
    return one if one.dtype.bits > other.dtype.bits else other


def _rank(dtype: DType) -> int:
    return 0 if dtype is BOOL else 2 if dtype.is_float else 1


def number(kind: ValueType) -> ValueType:
    """Return the type in which arithmetic on `kind` is done: a bool counts as an int."""
    return ValueType(INT64, weak=True) if kind.dtype is BOOL else kind


def floating(kind: ValueType) -> ValueType:
    """Return the type in which a function of real numbers computes: integers become weak float64."""
    return kind if kind.dtype.is_float else ValueType(FLOAT64, weak=True)
