"""Vectors and matrices: in Python's scope of numbers, in kernels of scalars, with one algebra for both.

The entries of a matrix in a kernel are values, or variables and elements, which can be assigned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch

from brickwork.ir import build
from brickwork.ir.nodes import Expression, FailureKind, Tensor
from brickwork.pytorch.dtypes import to_torch
from brickwork.taichi import algebra, arithmetic, state
from brickwork.taichi.arithmetic import convert, is_number, is_scalar, lift, type_of
from brickwork.taichi.errors import (
    TaichiCompilationError,
    TaichiIndexError,
    TaichiRuntimeError,
    TaichiSyntaxError,
    TaichiTypeError,
)
from brickwork.taichi.scalars import ScalarType, join, named, plain
from brickwork.taichi.sequences import is_sequence, items_of
from brickwork.taichi.swizzles import LETTERS, LONGEST, swizzle
from brickwork.taichi.values import Scalar, current


def settled(value: Any) -> Any:
    """Return a value that is used several times so that it is computed once."""
    return value.mapped(algebra.settled) if isinstance(value, Matrix) else algebra.settled(value)


class Pick(Scalar):
    """An entry of a matrix whose place is known only at run time."""

    __slots__ = ("matrix", "place")

    def __init__(self, matrix: Matrix, place: Expression) -> None:
        """Be the entry at a place, counted row by row."""
        self.matrix, self.place = matrix, place
        self.type = matrix.scalar_type

    @property
    def ir(self) -> Expression:
        """The value now."""
        return self._among(0, [convert(entry, self.type).value for entry in self.matrix.entries])

    def _among(self, start: int, entries: list[Expression]) -> Expression:
        """Return the one of the entries from `start` on that is meant: halves keep the expression shallow."""
        if len(entries) == 1:
            return entries[0]
        half = len(entries) // 2
        below = build.apply("lt", self.place, build.integer(start + half))
        return build.select(below, self._among(start, entries[:half]), self._among(start + half, entries[half:]))


class Matrix:
    """A vector (one axis) or a matrix (two) of numbers."""

    __array_ufunc__ = None
    entries: list[Any]
    shape: tuple[int, ...]
    dtype: ScalarType | None
    at: tuple[Tensor, tuple[Expression, ...]] | None
    """In a kernel, the tensor that has the entries in its last axes, and the indices before those."""

    def __init__(self, rows: Any, dt: Any = None, *, suppress_warning: bool = False) -> None:
        """Take the entries from a list of numbers, or of rows."""
        del suppress_warning
        entries, shape = _flattened(rows)
        kind = _kind(dt) if dt is not None else None
        self.set_all(entries, shape, kind)
        if kind is not None:
            self.entries = [_converted(entry, kind) for entry in entries]
        elif state.builder() is not None and any(isinstance(entry, Scalar) for entry in entries):
            common = self.scalar_type
            self.entries = [convert(entry, common) for entry in entries]

    def set_all(self, entries: list[Any], shape: tuple[int, ...], kind: ScalarType | None) -> None:
        """Be a matrix of these entries, row by row."""
        for name, value in (("entries", entries), ("shape", shape), ("dtype", kind), ("at", None)):
            object.__setattr__(self, name, value)

    # ------------------------------------------------------------ what it is

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.shape[0]

    @property
    def m(self) -> int:
        """The number of columns."""
        return self.shape[1] if self.ndim == 2 else 1

    @property
    def scalar_type(self) -> ScalarType:
        """The type that all entries join to."""
        if self.dtype is not None:
            return self.dtype
        found = type_of(self.entries[0]) if self.entries else state.settings().default_ip
        for entry in self.entries[1:]:
            found = join(found, type_of(entry))
        return found

    def element(self, places: Sequence[Expression]) -> Scalar:
        """Return the entry at a place that is known at run time, of a matrix that lies in a tensor."""
        raise NotImplementedError

    def get_shape(self) -> tuple[int, ...]:
        """Return the lengths of the axes."""
        return self.shape

    def row(self, number: int) -> list[Any]:
        """Return the entries of a row."""
        return self.entries[number * self.m : (number + 1) * self.m]

    def column(self, number: int) -> list[Any]:
        """Return the entries of a column."""
        return self.entries[number :: self.m]

    def mapped(self, change: Callable[[Any], Any]) -> Matrix:
        """Return a matrix of the changed entries."""
        return made([change(entry) for entry in self.entries], self.shape)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.n

    def __iter__(self) -> Iterator[Any]:
        """Yield the entries of a vector, the rows of a matrix."""
        if self.ndim == 1:
            return iter(self.entries)
        return iter([made(self.row(number), (self.m,)) for number in range(self.n)])

    def to_list(self) -> list[Any]:
        """Return the entries, or the rows, as lists."""
        return list(self.entries) if self.ndim == 1 else [self.row(number) for number in range(self.n)]

    def to_numpy(self, *_: Any, **__: Any) -> Any:
        """Return a NumPy array of the entries."""
        return torch.tensor(self.to_list(), dtype=to_torch(self.scalar_type.element)).numpy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Return a NumPy array of the entries."""
        del copy
        found = self.to_numpy()
        return found if dtype is None else found.astype(dtype)

    def __repr__(self) -> str:
        """Return the entries as lists."""
        return str(self.to_list())

    __str__ = __repr__
    __hash__ = object.__hash__

    # ------------------------------------------------------------ entries

    def __getitem__(self, index: Any) -> Any:
        """Return an entry, a row, or a part."""
        return subscript(self, items_of(index) if isinstance(index, tuple) else [index])

    def __setitem__(self, index: Any, value: Any) -> None:
        """Set an entry, in Python's scope."""
        places = items_of(index) if isinstance(index, tuple) else [index]
        if len(places) < self.ndim:
            for column, entry in enumerate(value):
                self.entries[places[0] * self.m + column] = _as(entry, self.dtype)
            return
        place = _place(self, _from_start(places, self.shape))
        self.entries[place] = _as(value, self.dtype)

    def __call__(self, *indices: Any) -> Any:
        """Return an entry."""
        return subscript(self, indices)

    def __getattr__(self, name: str) -> Any:
        """Return entries by their letters."""
        places = swizzle(name, self.shape)
        if places is None:
            raise AttributeError(f"'Matrix' object has no attribute '{name}'")
        if len(places) == 1:
            return self.entries[places[0]]
        return made([self.entries[place] for place in places], (len(places),), self.dtype)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set entries by their letters."""
        places = swizzle(name, self.shape)
        if places is None:
            self.refuse_letters(name)
            object.__setattr__(self, name, value)
            return
        several = isinstance(value, list | tuple | Matrix)
        given = [value] if len(places) == 1 else items_of(value) if several else None
        if given is None or len(given) != len(places):
            raise TaichiRuntimeError(f"value len does not match the swizzle pattern={name}")
        for place, each in zip(places, given, strict=True):
            self.entries[place] = _as(each, self.dtype)

    def refuse_letters(self, name: str) -> None:
        """Refuse letters of entries that a vector has not."""
        if swizzle(name, (LONGEST,)) is not None and self.ndim == 1:
            own = next(letters for letters in LETTERS if name[0] in letters)[: self.n]
            raise TaichiSyntaxError(f"vec{self.n} only has attributes={tuple(own)}, got={tuple(name)}")

    # ------------------------------------------------------------ algebra

    def __matmul__(self, other: Any) -> Any:
        """Return the product of matrices."""
        return matmul(self, other)

    def sum(self) -> Any:
        """Return the sum of all entries."""
        return algebra.folded("add", self.entries)

    def max(self) -> Any:
        """Return the greatest entry."""
        return algebra.folded("maximum", self.entries)

    def min(self) -> Any:
        """Return the least entry."""
        return algebra.folded("minimum", self.entries)

    def any(self) -> Any:
        """Return whether an entry is not zero."""
        return algebra.folded("bit_or", [arithmetic.is_true(entry) for entry in self.entries])

    def all(self) -> Any:
        """Return whether no entry is zero."""
        return algebra.folded("bit_and", [arithmetic.is_true(entry) for entry in self.entries])

    def norm_sqr(self) -> Any:
        """Return the sum of the squares."""
        own = settled(self)
        return algebra.folded("add", [arithmetic.binary("mul", entry, entry) for entry in own.entries])

    def norm(self, eps: Any = None) -> Any:
        """Return the root of the sum of the squares."""
        total = self.norm_sqr()
        return arithmetic.unary("sqrt", total if eps is None else arithmetic.binary("add", total, eps))

    def norm_inv(self, eps: Any = None) -> Any:
        """Return 1 / the norm."""
        return arithmetic.binary("truediv", 1.0, self.norm(eps))

    def normalized(self, eps: Any = 0) -> Matrix:
        """Return the vector of length 1."""
        own = settled(self)
        scale = settled(arithmetic.binary("truediv", 1.0, arithmetic.binary("add", own.norm(), eps)))
        return made([arithmetic.binary("mul", entry, scale) for entry in own.entries], own.shape)

    def dot(self, other: Any) -> Any:
        """Return the sum of the products."""
        _same(self, other, "dot")
        return algebra.folded(
            "add", [arithmetic.binary("mul", a, b) for a, b in zip(self.entries, other.entries, strict=True)]
        )

    def cross(self, other: Any) -> Any:
        """Return the cross product of vectors with two or three entries."""
        _same(self, other, "cross")
        a, b = settled(self).entries, settled(other).entries

        def minor(i: int, j: int) -> Any:
            one, two = arithmetic.binary("mul", a[i], b[j]), arithmetic.binary("mul", a[j], b[i])
            return arithmetic.binary("sub", one, two)

        if self.shape == (3,):
            return made([minor(1, 2), minor(2, 0), minor(0, 1)], (3,))
        if self.shape == (2,):
            return minor(0, 1)
        raise TaichiTypeError("Cross product is only supported between pairs of 2D/3D vectors")

    def outer_product(self, other: Any) -> Matrix:
        """Return the matrix of the products of two vectors' entries."""
        if self.ndim != 1 or getattr(other, "ndim", 0) != 1:
            raise TaichiTypeError("outer_product takes two vectors")
        a, b = settled(self).entries, settled(other).entries
        entries = [arithmetic.binary("mul", one, two) for one, two in itertools.product(a, b)]
        return made(entries, (len(a), len(b)))

    def transpose(self) -> Matrix:
        """Return the matrix with rows and columns exchanged."""
        if self.ndim == 1:
            raise TaichiTypeError(
                "`transpose()` cannot apply to a vector. If you want something like `a @ b.transpose()`, write"
                " `a.outer_product(b)` instead."
            )
        return made([entry for number in range(self.m) for entry in self.column(number)], (self.m, self.n))

    def trace(self) -> Any:
        """Return the sum of the diagonal."""
        self._square("trace")
        return algebra.folded("add", self.entries[:: self.m + 1])

    def determinant(self) -> Any:
        """Return the determinant of a square matrix, up to 4 x 4."""
        self._square("determinant")
        return algebra.determinant(settled(self).to_list())

    def inverse(self) -> Matrix:
        """Return the inverse of a square matrix, up to 4 x 4."""
        self._square("inverse")
        return made(algebra.inverse(settled(self).to_list()), (self.n, self.n))

    def _square(self, what: str) -> None:
        if self.ndim != 2 or self.n != self.m:
            raise TaichiTypeError(f"{what}: expected a square matrix, got shape {self.shape}")
        if what != "trace" and self.n > 4:
            raise TaichiCompilationError(f"{what} of matrices larger than 4 x 4 is not supported")

    def cast(self, dtype: Any) -> Matrix:
        """Return the matrix with entries of another type."""
        kind = _kind(dtype) or state.settings().default_fp
        return made([_converted(entry, kind) for entry in self.entries], self.shape, kind)

    def fill(self, value: Any) -> None:
        """Set all entries, in Python's scope."""
        object.__setattr__(self, "entries", [_as(value, self.dtype) for _ in self.entries])

    # ------------------------------------------------------------ makers

    @staticmethod
    def zero(dt: Any, n: int, m: int | None = None) -> Matrix:
        """Return a matrix of zeros."""
        return _filled(0, dt, n, m)

    @staticmethod
    def one(dt: Any, n: int, m: int | None = None) -> Matrix:
        """Return a matrix of ones."""
        return _filled(1, dt, n, m)

    @staticmethod
    def identity(dt: Any, n: int) -> Matrix:
        """Return the identity."""
        return Matrix([[int(row == column) for column in range(n)] for row in range(n)], dt)

    @staticmethod
    def unit(n: int, i: int, dt: Any = None) -> Matrix:
        """Return the vector with a one at a place."""
        if not 0 <= i < n:
            raise TaichiCompilationError(f"{i} is no place of a vector of {n}")
        return Matrix([int(place == i) for place in range(n)], dt or state.settings().default_ip)

    @staticmethod
    def diag(dim: int, val: Any) -> Matrix:
        """Return a matrix with a value on its diagonal."""
        return Matrix([[val if row == column else 0 for column in range(dim)] for row in range(dim)])

    @staticmethod
    def rows(rows: Any) -> Matrix:
        """Return the matrix of these rows."""
        return Matrix([list(row) for row in rows])

    @staticmethod
    def cols(cols: Any) -> Matrix:
        """Return the matrix of these columns."""
        return Matrix([list(column) for column in cols]).transpose()


def _dunder(name: str, *, swapped: bool = False) -> Callable[[Matrix, Any], Any]:
    def operate(self: Matrix, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return NotImplemented
        return broadcast(name, other, self) if swapped else broadcast(name, self, other)

    return operate


def _unary_dunder(name: str) -> Callable[[Matrix], Matrix]:
    def operate(self: Matrix) -> Matrix:
        return made([arithmetic.unary(name, entry) for entry in self.entries], self.shape)

    return operate


for _name, _dunders in {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "truediv", "floordiv": "floordiv", "mod": "mod", "pow": "pow",
    "bit_and": "and", "bit_or": "or", "bit_xor": "xor", "shift_left": "lshift", "shift_right": "rshift",
}.items():  # fmt: skip
    setattr(Matrix, f"__{_dunders}__", _dunder(_name))
    setattr(Matrix, f"__r{_dunders}__", _dunder(_name, swapped=True))
for _name in arithmetic.COMPARISONS:
    setattr(Matrix, f"__{_name}__", _dunder(_name))
for _name, _dunders in {"neg": "neg", "abs": "abs", "bit_not": "invert"}.items():
    setattr(Matrix, f"__{_dunders}__", _unary_dunder(_name))


def made(entries: Sequence[Any], shape: tuple[int, ...], kind: ScalarType | None = None) -> Matrix:
    """Return a matrix of entries, row by row."""
    result = Matrix.__new__(Matrix)
    result.set_all(list(entries), shape, kind)
    return result


def Vector(entries: Any, dt: Any = None) -> Matrix:
    """Return a vector of numbers."""
    return Matrix(entries, dt)


def _kind(dtype: Any) -> ScalarType | None:
    """Return the type that is meant, `int` and `float` of Python too."""
    if dtype is int:
        return state.settings().default_ip
    return state.settings().default_fp if dtype is float else named(dtype)


def _filled(value: int, dt: Any, n: int, m: int | None) -> Matrix:
    shape = (n,) if m is None else (n, m)
    kind = _kind(dt) or state.settings().default_ip
    return made([_converted(value, kind)] * (n * (m or 1)), shape, kind)


def _flattened(rows: Any) -> tuple[list[Any], tuple[int, ...]]:
    if isinstance(rows, Matrix):
        return list(rows.entries), rows.shape
    if hasattr(rows, "tolist"):
        rows = rows.tolist()
    if not is_sequence(rows):
        raise TaichiTypeError("a vector or a matrix is made of a list of numbers, or of rows")
    items = [list(item) if _is_row(item) else item for item in rows]
    if items and isinstance(items[0], list):
        widths = {len(cast("list[Any]", item)) if isinstance(item, list) else -1 for item in items}
        if len(widths) != 1 or -1 in widths:
            raise TaichiCompilationError("the rows of a matrix must have one length")
        return [entry for item in items for entry in item], (len(items), widths.pop())
    if any(isinstance(item, list) for item in items):
        raise TaichiCompilationError("the rows of a matrix must have one length")
    return items, (len(items),)


def _is_row(item: Any) -> bool:
    return isinstance(item, list | tuple | Matrix) or (hasattr(item, "tolist") and getattr(item, "shape", ()) != ())


def _converted(value: Any, kind: ScalarType) -> Any:
    return convert(value, kind) if isinstance(value, Scalar) else kind.number(plain(value))


def _as(value: Any, kind: ScalarType | None) -> Any:
    return value if kind is None else _converted(value, kind)


def _same(one: Matrix, other: Any, what: str) -> None:
    if not isinstance(other, Matrix) or one.shape != other.shape:
        raise TaichiTypeError(f"{what} takes two vectors of one length")


# ---------------------------------------------------------------- element by element


def broadcast(name: str, *operands: Any) -> Any:
    """Return an operator of scalars applied to the entries of matrices of one shape, and to scalars."""
    if not any(isinstance(each, Matrix | list | tuple) for each in operands):
        return arithmetic.binary(name, *operands)
    return mapped(lambda *each: arithmetic.binary(name, *each), operands)


def mapped(function: Callable[..., Any], operands: Sequence[Any]) -> Matrix:
    """Return a function of scalars applied to the entries of matrices of one shape, and to scalars."""
    given = [Matrix(each) if is_sequence(each) else each for each in operands]
    shapes = list(dict.fromkeys(each.shape for each in given if isinstance(each, Matrix)))
    if len(shapes) != 1:
        raise TaichiCompilationError(
            f"Cannot broadcast tensor to tensor: shapes {' and '.join(map(str, shapes))} differ"
        )
    for each in given:
        if not isinstance(each, Matrix) and not is_scalar(each):
            raise TaichiTypeError(f"unsupported operand type(s): 'Matrix' and '{type(each).__name__}'")
    count = math.prod(shapes[0])
    columns = [each.entries if isinstance(each, Matrix) else [settled(each)] * count for each in given]
    return made([function(*row) for row in zip(*columns, strict=True)], shapes[0])


def matmul(left: Any, right: Any) -> Any:
    """Return the product of matrices, of a matrix and a vector, or of two vectors."""
    if not isinstance(left, Matrix) or not isinstance(right, Matrix):
        raise TaichiTypeError("unsupported operand type(s) for '@': only matrices and vectors have a product")
    left, right = settled(left), settled(right)
    if left.ndim == 1 and right.ndim == 1:
        return left.dot(right)
    if left.ndim == 1:  # a row
        left = made(left.entries, (1, left.n))
        return made(matmul(left, right).entries, (right.m,))
    if left.m != right.n:
        raise TaichiTypeError(f"matrices of {left.n} x {left.m} and {right.n} x {right.m} have no product")
    rows = [left.row(number) for number in range(left.n)]
    columns = [right.column(number) for number in range(right.m)]
    entries = [
        algebra.folded("add", [arithmetic.binary("mul", a, b) for a, b in zip(row, column, strict=True)])
        for row, column in itertools.product(rows, columns)
    ]
    return made(entries, (left.n,) if right.ndim == 1 else (left.n, right.m))


# ---------------------------------------------------------------- entries


def _place(matrix: Matrix, indices: Sequence[int]) -> int:
    return indices[0] if matrix.ndim == 1 else indices[0] * matrix.m + indices[1]


def _from_start(indices: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return indices that count from the start: in Python's scope a negative one counts from the end."""
    return [range(size)[index] for index, size in zip(indices, shape, strict=True)]


def subscript(matrix: Matrix, indices: Sequence[Any]) -> Any:
    """Return an entry, a row or a part of a matrix."""
    if len(indices) == 1 and isinstance(indices[0], Matrix):
        indices = indices[0].entries
    if len(indices) > matrix.ndim:
        raise TaichiCompilationError(f"Expected {matrix.ndim} indices, got {len(indices)}.")
    given = [_known(index) for index in indices]
    if len(given) < matrix.ndim and state.builder() is not None:
        raise TaichiCompilationError(f"Expected {matrix.ndim} indices, got {len(indices)}.")
    if len(given) < matrix.ndim:
        given.append(slice(None))
    if any(isinstance(index, slice) for index in given):
        return _part(matrix, given)
    if all(isinstance(index, int) for index in given):
        for index, size in zip(given, matrix.shape, strict=True):
            if not (0 if state.builder() is not None else -size) <= index < size:
                raise _beyond(index, size)
        given = _from_start(given, matrix.shape)
    return _entry(matrix, given)


def _beyond(index: int, size: int) -> Exception:
    if state.builder() is None:
        return IndexError(f"index {index} is out of range for {size} entries")
    return TaichiIndexError(f"Index {index} of a matrix is out of range: it has {size} entries along this axis")


def _known(index: Any) -> Any:
    """Return an index as an int where it is known, else as a scalar."""
    if isinstance(index, slice):
        return cast("Any", index)
    if isinstance(index, Scalar):
        if index.type.is_real:
            raise TaichiTypeError("The type of indices must be integers: indices must be integers")
        return index.ir.value if isinstance(index.ir, build.Constant) else index
    if is_number(index) and not isinstance(index, float):
        return int(index)
    raise TaichiTypeError("indices must be integers")


def _part(matrix: Matrix, indices: Sequence[Any]) -> Matrix:
    """Return rows and columns of a matrix."""
    places: list[list[Any]] = []
    for index, size in zip(indices, matrix.shape, strict=True):
        if isinstance(index, slice):
            bounds = cast("Any", index)
            parts = [None if each is None else _known(each) for each in (bounds.start, bounds.stop, bounds.step)]
            if any(isinstance(each, Scalar) for each in parts):
                raise TaichiCompilationError("Taichi does not support variables in slice now")
            if state.builder() is not None and any(isinstance(each, int) and each < 0 for each in parts):
                raise TaichiSyntaxError("Negative indices are not supported in Taichi kernels.")
            places.append(list(range(size)[slice(*parts)]))
        else:
            places.append([range(size)[index] if isinstance(index, int) else index])
    shape = tuple(len(place) for place, index in zip(places, indices, strict=True) if isinstance(index, slice))
    entries = [_entry(matrix, place) for place in itertools.product(*places)]
    return made(entries, shape, matrix.dtype)


def _entry(matrix: Matrix, indices: Sequence[Any]) -> Any:
    if all(isinstance(index, int) for index in indices):
        return matrix.entries[_place(matrix, indices)]
    return _picked(matrix, indices)


def _picked(matrix: Matrix, indices: Sequence[Any]) -> Any:
    builder = current()
    places: list[Expression] = []
    for index, size in zip(indices, matrix.shape, strict=True):
        place = settled(lift(index)).compared
        inside = build.apply("logical_and", build.apply("ge", place, build.integer(0)),
                             build.apply("lt", place, build.integer(size)))  # fmt: skip
        if matrix.at is None:
            message = f"Out of bound access: index {{}} of a matrix of {matrix.n} x {matrix.m}"
            builder.check(inside, FailureKind.INDEX, message, place)
        places.append(place)
    if matrix.at is not None:
        return matrix.element(places)
    flat = places[0]
    if len(places) == 2:
        flat = build.add(build.mul(places[0], build.integer(matrix.m)), places[1])
    return Pick(matrix, builder.keep(flat))
