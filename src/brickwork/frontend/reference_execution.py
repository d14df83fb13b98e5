"""What rewritten code calls while `op.python` runs: elements, stores, calls, loops and the counters of random draws.

One `Execution` belongs to one call of the operator. torch is never imported: tensors are asked for what they are.
"""

from __future__ import annotations

import itertools
import math
import sys
import types
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from brickwork.frontend import reference_complex as complex_numbers
from brickwork.frontend import reference_scalar as numbers
from brickwork.frontend.environment import DRAWS, MADE_ROWS, helper, intrinsic, is_tensor
from brickwork.frontend.given_numbers import fits, overflow_text
from brickwork.frontend.random_sites import SPREAD, SPREAD_BITS, Path, Place
from brickwork.frontend.reference_loops import Nest, Turns, backward, counted, joined, turns_of
from brickwork.frontend.reference_made_rows import made_row
from brickwork.frontend.reference_rows import (
    Reduction,
    RowPlace,
    RowValue,
    as_row,
    combined,
    plain_indices,
    product,
    slices_in,
    unary_of_row,
)
from brickwork.frontend.reference_scalar import Scalar, convert, dtype_of, is_scalar, result, scalar
from brickwork.frontend.reference_values import NOTHING, ReferenceValues
from brickwork.frontend.row_calls import OF_ROWS
from brickwork.frontend.row_forms import REDUCED
from brickwork.frontend.rules import REDUCTIONS
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.value_methods import NO_VALUES, Values
from brickwork.ir import philox
from brickwork.ir.dtypes import FLOAT32, INT64, PARTS, UINT64, value_dtype
from brickwork.ir.scalar_semantics import narrow
from brickwork.language.complex_numbers import Complex
from brickwork.language.math import FOLDED, METHODS, POWER_MODULO, is_of_items
from brickwork.language.pointwise import is_own
from brickwork.records import dataclass

_KEY_LIMIT = 1 << 63


@dataclass(slots=True)
class _Level:
    """One loop that is running: the number of its iteration, how many there are, and whether that is steady."""

    iteration: int
    trips: int
    steady: bool


class Element:
    """An element that is stored into; also the item of a list."""

    def __init__(self, owner: Any, indices: Any, name: str) -> None:
        """Check the index; read nothing yet."""
        self.owner = owner
        self.indices: Any = _indices(owner, indices, name) if is_tensor(owner) else indices
        self.name = name
        if is_tensor(owner) and len(self.indices) != owner.ndim:
            raise IndexError(f"`{name}` has {owner.ndim} dimensions, but {len(self.indices)} indices")

    def __setitem__(self, zero: int, value: Any) -> None:
        """Store."""
        del zero
        if not is_tensor(self.owner):
            self.owner[self.indices] = value
            return
        dtype = dtype_of(self.owner)
        if dtype in PARTS:
            self.owner[self.indices] = complex_numbers.stored(value, dtype)
            return
        if isinstance(value, numbers.GivenInt | numbers.GivenFloat) and not fits(value, dtype):
            raise RuntimeError(overflow_text(dtype))
        stored: Any = narrow(convert(scalar(value), value_dtype(dtype)), dtype)
        if dtype is UINT64 and stored >= _KEY_LIMIT:
            signed = self.owner[self.indices].view(sys.modules["torch"].int64)
            signed.fill_(stored - 2 * _KEY_LIMIT)
        else:
            self.owner[self.indices] = stored


class Held(Element):
    """An element that was read to be stored into: the left side of an augmented assignment."""

    def __init__(self, owner: Any, indices: Any, name: str, combine: Callable[..., Any]) -> None:
        """Check the index and read; `combine` computes."""
        super().__init__(owner, indices, name)
        self.combine = combine
        self.before = _element(owner, self.indices) if is_tensor(owner) else owner[indices]

    def update(self, operator: str, value: Any) -> None:
        """Store what `operator` makes of the element and the value."""
        self[0] = self.combine(operator, self.before, value)


class Part:
    """An item of a value with parts that is stored into by `__setitem__`."""

    def __init__(self, execution: Execution, owner: Any, indices: Any) -> None:
        """Read nothing yet."""
        self.execution = execution
        self.owner = owner
        self.indices = indices

    def __setitem__(self, zero: int, value: Any) -> None:
        """Store."""
        del zero
        self.execution.put(self.owner, self.indices, value)

    def update(self, operator: str, value: Any) -> None:
        """Store what `operator` makes of the item and the value."""
        before = self.execution.get(self.owner, self.indices, "")
        self[0] = self.execution.binary(operator, before, value, stored=True)


def _indices(tensor: Any, indices: Any, name: str) -> tuple[int, ...]:
    """Return the indices counted from the start; refuse those beyond the sizes."""
    flat = list(_flatten(indices))
    shape = tuple(tensor.shape)
    if len(flat) > len(shape):
        raise IndexError(f"`{name}` has {len(shape)} dimensions, but {len(flat)} indices")
    found: list[int] = []
    for axis, item in enumerate(flat):
        index, size = scalar(item).__index__(), int(shape[axis])
        if not -size <= index < size:
            where = f"dimension {axis} of tensor '{name}' with size {size} (shape {shape})"
            raise IndexError(f"index {index} is out of bounds for {where}")
        found.append(index + size if index < 0 else index)
    return tuple(found)


def _flatten(indices: Any) -> Iterator[Any]:
    if isinstance(indices, tuple):
        for item in cast("tuple[Any, ...]", indices):
            yield from _flatten(item)
    else:
        yield indices


def _element(tensor: Any, indices: tuple[int, ...]) -> Any:
    return complex_numbers.read(tensor[indices].item(), dtype_of(tensor))


class Execution:
    """The state of one run of `op.python`, and what its rewritten code calls."""

    def __init__(
        self,
        name: str,
        helpers: Mapping[types.FunctionType, types.FunctionType],
        sites: Mapping[Path, int],
        key: Any,
        generator: Any,
        values: Values = NO_VALUES,
        sources: Mapping[types.FunctionType, SourceFunction] | None = None,
    ) -> None:
        """Begin outside of every loop."""
        self.name = name
        self._values = ReferenceValues(values, sources or {}, self._inner)
        self._helpers = helpers
        self._sites = sites
        self._key: Any = key
        self._generator = generator
        self._path: Path = ()
        self._levels: list[_Level] = []
        self._turns: int | None = None

    # ------------------------------------------------------------ values

    def binary(self, name: str, left: Any, right: Any, *, stored: bool = False) -> Any:
        """Return `left <name> right`; lists keep Python's own operators; `stored`: the left side is assigned to."""
        left, right = complex_numbers.plain(left), complex_numbers.plain(right)
        if self._values.has(left, right) and not (_has_row(left, right) and _has_complex(left, right)):
            found = self._values.binary(name, left, right, stored=stored)
            if found is not NOTHING:
                return found
        if stored and name == "add" and isinstance(left, list):
            items = cast("list[Any]", left)
            items.extend(self.loop(True, self.items(right)))
            return items
        if stored and _is_whole(left):
            self._row_place(left, (), "row").update(name, right)
            return left
        if name == "matmul" and _has_row(left, right):
            found = product(partial(self.binary, "mul"), self._sum, left, right)
            return (left @ right) if found is None else found
        row = combined(partial(self.binary, name), left, right) if _has_row(left, right) else None
        if row is not None:
            return row
        if isinstance(left, list | tuple | str) or isinstance(right, list | tuple | str):
            one, other = cast("Any", left), cast("Any", right)
            return one * other if name == "mul" else one + other
        return numbers.binary(name, left, right)

    def unary(self, name: str, operand: Any) -> Any:
        """Return a unary operator applied."""
        operand = complex_numbers.plain(operand)
        if self._values.has(operand):
            return self._values.special(operand, {"neg": "__neg__", "pos": "__pos__", "bit_not": "__invert__"}[name])
        row = unary_of_row(self.unary, name, operand)
        return numbers.unary(name, operand) if row is None else row

    def compare(self, name: str, left: Any, right: Any) -> Any:
        """Return a comparison."""
        left, right = complex_numbers.plain(left), complex_numbers.plain(right)
        if self._values.has(left, right):
            found = self._values.compare(name, left, right)
            if found is not NOTHING:
                return found
            left, right = self._values.parts(left), self._values.parts(right)
        if isinstance(left, list | tuple) and isinstance(right, list | tuple):
            return self._compare_items(name, cast("Sequence[Any]", left), cast("Sequence[Any]", right))
        row = combined(partial(self.compare, name), left, right) if _has_row(left, right) else None
        return numbers.compare(name, left, right) if row is None else row

    def _compare_items(self, name: str, left: Sequence[Any], right: Sequence[Any]) -> Any:
        for one, other in zip(left, right, strict=False):
            if not self.compare("eq", one, other):
                return name == "ne" or (name != "eq" and self.compare(name, one, other))
        return numbers.compare(name, len(left), len(right))

    def contains(self, item: Any, items: Any) -> bool:
        """Return `item in items`."""
        found = self._values.special(items, "__contains__", item)
        if found is not NOTHING:
            return self.truth(found)
        return any(self.truth(self.compare("eq", item, one)) for one in self._values.items(items))

    def truth(self, value: Any) -> bool:
        """Return whether the value holds."""
        value = complex_numbers.plain(value)
        if self._values.has(value):
            return self._values.truth(value)
        return bool(scalar(value)) if is_scalar(value) else bool(value)

    def get(self, owner: Any, indices: Any, name: str) -> Any:
        """Return an element as a value, a view of lower rank, or the item of a list."""
        if not is_tensor(owner):
            found = self._values.special(owner, "__getitem__", indices)
            return owner[indices] if found is NOTHING else found
        if slices_in(indices):
            part = self.part(owner, indices)
            return part if part.ndim else _element(part, ())
        found = _indices(owner, indices, name)
        return _element(owner, found) if len(found) == owner.ndim else owner[found]

    def part(self, owner: Any, indices: Any) -> Any:
        """Return what slices leave of a tensor, as a tensor."""
        return owner[plain_indices(indices)]

    def place(self, owner: Any, indices: Any, name: str) -> Element | Part | RowPlace:
        """Return an element to store into."""
        if self._is_part(owner, indices, name):
            return self._row_place(owner, indices, name)
        return Part(self, owner, indices) if self._values.has(owner) else Element(owner, indices, name)

    def _is_part(self, owner: Any, indices: Any, name: str) -> bool:
        """Return whether indices leave axes of a tensor."""
        return is_tensor(owner) and (slices_in(indices) or len(_indices(owner, indices, name)) < owner.ndim)

    def _row_place(self, owner: Any, indices: Any, name: str) -> RowPlace:
        found = plain_indices(indices) if slices_in(indices) else _indices(owner, indices, name)

        def store(part: Any, place: tuple[int, ...], value: Any) -> None:
            Element(part, place, name)[0] = value

        return RowPlace(owner[found], store, self.binary)

    def held(self, owner: Any, indices: Any, name: str) -> Held | Part | RowPlace:
        """Return an element to update."""
        if self._is_part(owner, indices, name):
            return self._row_place(owner, indices, name)
        return Part(self, owner, indices) if self._values.has(owner) else Held(owner, indices, name, self.binary)

    def attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute."""
        if complex_numbers.is_number(owner):
            return complex_numbers.attribute(owner, name)
        return self._values.attribute(owner, name)

    def put(self, owner: Any, indices: Any, value: Any) -> None:
        """Store an item of a value with parts."""
        if self._values.special(owner, "__setitem__", indices, value) is NOTHING:
            owner[indices] = value

    def given(self, value: Any) -> Any:
        """Return a number marked as one that the operator was given."""
        return numbers.given(value)

    def item(self, value: Any) -> Any:
        """Return `value.item()`: the number itself, in its type; of anything else, what its method gives."""
        if not is_scalar(value):
            return value.item()
        found = scalar(value)
        return result(found.value, found.dtype, weak=found.weak)

    # ------------------------------------------------------------ calls

    def call(self, function: Any, place: Place, /, *arguments: Any, **named: Any) -> Any:
        """Call a function: a draw, a function with a ruling, a helper, or anything of the host."""
        name = intrinsic(function)
        if name in DRAWS:
            return self._draw(name, (*self._path, place), arguments)
        if name is not None and name.removeprefix("brickwork.") in MADE_ROWS:
            return made_row(name.removeprefix("brickwork."), arguments)
        has_rows = any(isinstance(item, RowValue) for item in (*arguments, *named.values()))
        if name is not None and name.startswith("torch.") and any(map(_is_whole, arguments)) and not has_rows:
            return function(*arguments, **named)
        if self._is_of_rows(function, name, [*arguments, *named.values()]):
            return self._of_rows(function, place, arguments, named)
        if name is not None:
            arguments = tuple(map(complex_numbers.plain, arguments))
            found = self._of_complex(name, place, arguments, named)
            if found is not NOTHING:
                return found
        if name in FOLDED and len(arguments) != 2:
            return self._folded(function, place, arguments, FOLDED[name])
        if self._values.is_class(function):
            with self._within(place):
                return self._values.construct(function, arguments, named)
        owner = getattr(function, "__self__", None)
        if self._values.has(owner) and getattr(function, "__func__", None) in self._helpers:
            with self._within(place):
                return self._inner(function.__func__, owner, *arguments, **named)
        if self._values.has(function):
            return self._values.special(function, "__call__", *arguments)
        reduced = self._reduction(function, owner)
        if reduced is not None and (reduced.name not in {"min", "max"} or not arguments):
            return self._reduced(reduced, place, arguments, named)
        if name is not None:
            found = self._values.builtin(name, arguments, named)
            if found is not NOTHING:
                return found
        if name in {"builtins.min", "builtins.max"} and len(arguments) == 1 and not is_tensor(arguments[0]):
            given = [*arguments[0]]
            arguments = (given,)
            if given and isinstance(given[0], tuple):
                return self._extreme_items("lt" if name == "builtins.min" else "gt", given)
        if name == "builtins.sorted":
            return self._in_order(self.loop(True, self.items(arguments[0])), **named)
        if isinstance(owner, list) and (called := getattr(function, "__name__", "")) in {"sort", "remove", "index"}:
            return self._search_list(cast("list[Any]", owner), called, arguments, named)
        formula = METHODS.get(getattr(function, "__name__", "")) if is_scalar(cast("Any", owner)) else None
        if formula is not None:
            return self._helpers[formula](self, owner)
        if name == "builtins.pow" and len(arguments) == 3:
            return self._helpers[POWER_MODULO](self, *arguments)
        ruled = numbers.known(name) if name is not None and not _has_complex(*arguments) else None
        if ruled is not None:
            if name in REDUCTIONS and len(arguments) == 1 and is_tensor(arguments[0]):
                arguments = (self.loop(True, self.items(arguments[0])),)
            return ruled(*arguments, **named)
        inner = helper(function)
        if inner is not None and inner in self._helpers:
            with self._within(place):
                return self._along(inner, arguments, named)
        named = {key: complex_numbers.as_python(item) for key, item in named.items()}
        return function(*map(complex_numbers.as_python, arguments), **named)

    def _of_complex(self, name: str, place: Place, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the call of a function that makes or takes complex numbers; NOTHING of another one."""
        if name == "builtins.complex":
            parts = (*arguments, *(named[part] for part in ("real", "imag")[len(arguments) :] if part in named))
            return complex_numbers.construct(partial(self.binary, "add"), partial(self.binary, "mul"), parts)
        formula = complex_numbers.formula(name, arguments)
        if formula is not None:
            with self._within(place):
                return self._inner(formula, *arguments, **named)
        if name == "brickwork.row_of":
            return RowValue((len(arguments[0]),), tuple(arguments[0]))
        if name in {"builtins.sum", "math.prod"}:
            items = self.loop(True, self.items(arguments[0])) if is_tensor(arguments[0]) else arguments[0]
            fold = self._sum if name == "builtins.sum" else self._product
            return fold(items, *arguments[1:], **named)
        return NOTHING

    def _of_rows(self, function: Any, place: Place, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Call a function of elements for each item of rows."""

        def one(*items: Any) -> Any:
            given = dict(zip(named, items[len(arguments) :], strict=True))
            return self.call(function, place, *items[: len(arguments)], **given)

        return combined(one, *arguments, *named.values())

    @contextmanager
    def _within(self, place: Place) -> Generator[None]:
        before, self._path = self._path, (*self._path, place)
        try:
            yield
        finally:
            self._path = before

    def _inner(self, function: types.FunctionType, /, *arguments: Any, **named: Any) -> Any:
        """Run a rewritten function."""
        return self._helpers[function](self, *arguments, **named)

    def _is_of_rows(self, function: Any, name: str | None, given: Sequence[Any]) -> bool:
        """Return whether a function is computed item by item, as it is given rows."""
        if is_own(function):
            return _has_row(*given)
        has_rows = any(isinstance(item, RowValue) for item in given)
        return has_rows and is_of_items(name) and (name not in REDUCTIONS or len(given) > 1)

    def _along(self, function: types.FunctionType, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
        """Call a helper; a function of rows, for each row along the axis that is named."""
        axis = named.pop("dim", 0) if function in OF_ROWS else 0
        row = as_row(arguments[0]) if function in OF_ROWS else None
        if row is None or row.ndim < 2:
            return self._inner(function, *arguments, **named)
        return row.map_along(int(axis), lambda part: self._inner(function, part, *arguments[1:], **named))

    def _reduction(self, function: Any, owner: Any) -> Reduction | None:
        """Return what `x[i].sum` reduces, be it a row or a part of a tensor."""
        if isinstance(function, Reduction):
            return function
        called = getattr(function, "__name__", "")
        row = as_row(owner) if is_tensor(owner) and called in REDUCED else None
        return None if row is None else Reduction(row, called)

    def _reduced(self, reduction: Reduction, place: Place, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        if reduction.name not in REDUCED:
            function = getattr(sys.modules["torch"], reduction.name)
            return self._of_rows(function, place, (reduction.row, *arguments), named)
        name = REDUCED[reduction.name]

        def reduce(row: RowValue) -> Any:
            if name in {"sum", "prod"}:
                found = (self._sum if name == "sum" else self._product)(iter(row))
                return found if reduction.name != "mean" else self.binary("truediv", found, len(row))
            odd = next((item for item in row if name in {"min", "max"} and math.isnan(scalar(item).value)), None)
            ruled = numbers.known(f"builtins.{name}")
            return odd if odd is not None else ruled(iter(row)) if ruled is not None else None

        return reduction.along(reduce, arguments, named)

    def _search_list(self, items: list[Any], name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the call of a method that compares the items."""
        if name == "sort":
            items[:] = self._in_order(items, **named)
            return None
        places = (place for place, item in enumerate(items) if self.truth(self.compare("eq", item, arguments[0])))
        place = next(places, None)
        if place is None:
            raise ValueError("what is looked for is not in list")
        if name == "remove":
            items.pop(place)
        return place if name == "index" else None

    def _extreme_items(self, name: str, items: Sequence[Any]) -> Any:
        found = items[0]
        for item in items[1:]:
            found = item if self.compare(name, item, found) else found
        return found

    def _in_order(self, items: Iterable[Any], *, reverse: Any = False) -> list[Any]:
        """Return items sorted by insertion."""
        found = [*items]
        for start in range(1, len(found)):
            item, place = found[start], start
            while place and self.compare("lt", *((found[place - 1], item) if reverse else (item, found[place - 1]))):
                found[place] = found[place - 1]
                place -= 1
            found[place] = item
        return found

    def _sum(self, items: Any, start: Any = 0) -> Any:
        for item in items:
            start = self.binary("add", start, item)
        return start

    def _product(self, items: Any, *, start: Any = 1) -> Any:
        for item in items:
            start = self.binary("mul", start, item)
        return start

    def _folded(self, function: Any, place: Place, arguments: Sequence[Any], neutral: float) -> Any:
        found = arguments[0] if arguments else neutral
        for item in arguments[1:] or (neutral,):
            found = self.call(function, place, found, item)
        return found

    # ------------------------------------------------------------ loops

    def head(self, function: Any, /, *arguments: Any, **named: Any) -> Turns | Nest:
        """Return what a loop runs over: `range` and its like, and `enumerate`, `zip` and `reversed` of items."""
        match intrinsic(function):
            case "brickwork.indices":
                return Nest([range(int(size)) for size in arguments[0].shape], tuples=True)
            case "brickwork.ndrange":
                parts: list[Any] = [item if isinstance(item, tuple) else (item,) for item in arguments]
                return Nest([_range(cast("Sequence[Any]", item)) for item in parts], tuples=len(parts) > 1)
            case "builtins.enumerate":
                inner, *start = arguments
                return counted(inner, scalar(named.get("start", start[0] if start else 0)).__index__())
            case "builtins.zip":
                return joined(arguments, strict=bool(named.get("strict")))
            case "builtins.reversed":
                return backward(arguments[0])
            case "builtins.tuple" | "builtins.list":
                return arguments[0]
            case _:
                return turns_of(_range(arguments))

    def items(self, value: Any) -> Turns:
        """Return the items of a tensor or a tuple; an element is read when its iteration begins."""
        if is_tensor(value):
            return Turns(int(value.shape[0]), lambda turn: self.get(value, turn, "tensor"))
        return turns_of(self._values.items(value))

    def loop(self, steady: bool, head: Turns | Nest) -> Iterator[Any]:
        """Run over items, keeping count."""
        if isinstance(head, Nest):
            return self._iterate([turns_of(axis) for axis in head.axes], steady, tuples=head.tuples)
        return self._iterate([head], steady, tuples=False)

    def _iterate(self, axes: Sequence[Turns], steady: bool, *, tuples: bool) -> Generator[Any]:
        depth = len(self._levels)
        levels = [_Level(0, axis.count, steady) for axis in axes]
        try:
            for places in itertools.product(*(range(axis.count) for axis in axes)):
                for level, iteration in zip(levels, places, strict=True):
                    level.iteration = iteration
                self._levels[depth:] = levels
                found = tuple(axis.item(iteration) for axis, iteration in zip(axes, places, strict=True))
                yield found if tuples else found[0]
        finally:
            del self._levels[depth:]

    @contextmanager
    def turns(self) -> Generator[None]:
        """Count the iterations of the outermost `while`."""
        outermost = self._turns is None
        if outermost:
            self._turns = 0
        try:
            yield
        finally:
            if outermost:
                self._turns = None

    def turn(self) -> None:
        """Begin an iteration of a `while`."""
        self._turns = (self._turns or 0) + 1

    # ------------------------------------------------------------ random draws

    def _draw(self, name: str, path: Path, arguments: tuple[Any, ...]) -> Any:
        place = self._random_key(), self._counter(), self._turns or 0, self._sites[path]
        if name == "brickwork.rand":
            return Scalar(philox.uniform(*place), FLOAT32, weak=True)
        if name == "brickwork.randn":
            return Scalar(philox.normal(*place), FLOAT32, weak=True)
        low, high = (int(convert(scalar(item), INT64)) for item in arguments)
        if low >= high:
            raise ValueError(f"randint: low {low} is not below high {high}")
        return result(philox.integer(*place, (low, high)), INT64, weak=True)

    def _counter(self) -> int:
        number, irregular = 0, False
        for position, level in enumerate(self._levels):
            irregular = irregular or (position > 0 and not level.steady)
            number = number * SPREAD & SPREAD_BITS if irregular else number * level.trips
            number += level.iteration
        return number

    def _random_key(self) -> int:
        if self._key is None:
            torch = sys.modules["torch"]
            self._key = torch.randint(0, _KEY_LIMIT - 1, (), generator=self._generator, dtype=torch.int64)
        if is_tensor(self._key):
            self._key = self._key.item()
        return int(self._key)


def _has_row(*found: Any) -> bool:
    return any(isinstance(item, RowValue) or _is_whole(item) for item in found)


def _has_complex(*found: Any) -> bool:
    return any(isinstance(item, Complex) for item in found)


def _is_whole(value: Any) -> bool:
    return is_tensor(value) and value.ndim > 0


def _range(arguments: Sequence[Any]) -> range:
    return range(*(item.__index__() if isinstance(item, Scalar) else scalar(item).__index__() for item in arguments))
