"""Vectors and matrices of numbers, as values with parts: plain Python that operators compile inline.

Their length is that of their lists, which the compiler knows: loops over them are written out, and the numbers are
variables. An item that is stored into, `v[i] = x` or `s[i, j] += x`, makes the list an array.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from brickwork.language.formulas import require

Number: TypeAlias = Any
"""A number of the language: Python's, or an element of a tensor."""


class Vector:
    """A vector of numbers; arithmetic is item by item, with another vector or with a number."""

    def __init__(self, items: Sequence[Number]) -> None:
        """Take the items."""
        self.items = list(items)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return items: `v.x`, `v.zyx`."""

    def __repr__(self) -> str:
        """Return how the vector is written."""
        return f"Vector({self.items})"

    # ------------------------------------------------------------ items

    def __len__(self) -> int:
        """Return how many items there are."""
        return len(self.items)

    def __iter__(self) -> Iterator[Number]:
        """Run over the items."""
        return iter(tuple(self.items))

    def __getitem__(self, place: int) -> Number:
        """Return an item."""
        return self.items[place]

    def __setitem__(self, place: int, value: Number) -> None:
        """Store an item."""
        self.items[place] = value

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: Any) -> Vector:
        """Return the sum."""
        others = beside(self.items, other)
        return Vector([a + b for a, b in zip(self.items, others, strict=False)])

    def __radd__(self, other: Any) -> Vector:
        """Return the sum with a number before."""
        return Vector([other + a for a in self.items])

    def __sub__(self, other: Any) -> Vector:
        """Return the difference."""
        others = beside(self.items, other)
        return Vector([a - b for a, b in zip(self.items, others, strict=False)])

    def __rsub__(self, other: Any) -> Vector:
        """Return the difference from a number."""
        return Vector([other - a for a in self.items])

    def __mul__(self, other: Any) -> Vector:
        """Return the product, item by item."""
        others = beside(self.items, other)
        return Vector([a * b for a, b in zip(self.items, others, strict=False)])

    def __rmul__(self, other: Any) -> Vector:
        """Return the product with a number before."""
        return Vector([other * a for a in self.items])

    def __truediv__(self, other: Any) -> Vector:
        """Return the quotient, item by item."""
        others = beside(self.items, other)
        return Vector([a / b for a, b in zip(self.items, others, strict=False)])

    def __rtruediv__(self, other: Any) -> Vector:
        """Return a number divided by each item."""
        return Vector([other / a for a in self.items])

    def __floordiv__(self, other: Any) -> Vector:
        """Return the quotient rounded down, item by item."""
        others = beside(self.items, other)
        return Vector([a // b for a, b in zip(self.items, others, strict=False)])

    def __mod__(self, other: Any) -> Vector:
        """Return the remainder, item by item."""
        others = beside(self.items, other)
        return Vector([a % b for a, b in zip(self.items, others, strict=False)])

    def __pow__(self, other: Any) -> Vector:
        """Return the power, item by item."""
        others = beside(self.items, other)
        return Vector([a**b for a, b in zip(self.items, others, strict=False)])

    def __neg__(self) -> Vector:
        """Return the opposite."""
        return Vector([-a for a in self.items])

    def __pos__(self) -> Vector:
        """Return a vector of the same items."""
        return Vector([+a for a in self.items])

    def __abs__(self) -> Vector:
        """Return the absolute values."""
        return Vector([abs(a) for a in self.items])

    def __matmul__(self, other: Any) -> Number:
        """Return the scalar product."""
        return products(self.items, other.items)

    def __eq__(self, other: object) -> Any:
        """Return whether all items are equal."""
        if not isinstance(other, Vector):
            return NotImplemented
        return tuple(self.items) == tuple(other.items)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # items can be stored into, as those of a list

    # ------------------------------------------------------------ functions

    def dot(self, other: Vector) -> Number:
        """Return the scalar product."""
        return products(self.items, other.items)

    def cross(self, other: Vector) -> Vector:
        """Return the vector product of two vectors of three items."""
        a, b, c = self.items
        p, q, r = other.items
        return Vector([b * r - c * q, c * p - a * r, a * q - b * p])

    def norm_sqr(self) -> Number:
        """Return the square of the length."""
        return products(self.items, self.items)

    def norm(self) -> Number:
        """Return the length."""
        return math.sqrt(products(self.items, self.items))

    def normalized(self) -> Vector:
        """Return the vector of that direction and length 1."""
        return self * (1 / math.sqrt(products(self.items, self.items)))

    def outer_product(self, other: Vector) -> Matrix:
        """Return the matrix of all products."""
        return Matrix([[a * b for b in other.items] for a in self.items])

    def sum(self) -> Number:
        """Return the sum of the items."""
        return total(self.items)

    def min(self) -> Number:
        """Return the least item."""
        return min(self.items)

    def max(self) -> Number:
        """Return the greatest item."""
        return max(self.items)


class Matrix:
    """A matrix of numbers; arithmetic is item by item, and `@` is the product of matrices."""

    def __init__(self, rows: Sequence[Sequence[Number]]) -> None:
        """Take the rows."""
        self.rows = [list(row) for row in rows]

    def __repr__(self) -> str:
        """Return how the matrix is written."""
        return f"Matrix({self.rows})"

    # ------------------------------------------------------------ items

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        """Return `s[i, j]`, an item, or `s[i]`, a row."""
        if isinstance(place, tuple):
            return self.rows[place[0]][place[1]]
        return Vector(self.rows[place])

    def __setitem__(self, place: tuple[int, int], value: Number) -> None:
        """Store an item."""
        self.rows[place[0]][place[1]] = value

    # ------------------------------------------------------------ arithmetic

    def __add__(self, other: Any) -> Matrix:
        """Return the sum."""
        others = under(self.rows, other)
        return Matrix(
            [[a + b for a, b in zip(row, by, strict=False)] for row, by in zip(self.rows, others, strict=False)]
        )

    def __radd__(self, other: Any) -> Matrix:
        """Return the sum with a number before."""
        return Matrix([[other + a for a in row] for row in self.rows])

    def __sub__(self, other: Any) -> Matrix:
        """Return the difference."""
        others = under(self.rows, other)
        return Matrix(
            [[a - b for a, b in zip(row, by, strict=False)] for row, by in zip(self.rows, others, strict=False)]
        )

    def __rsub__(self, other: Any) -> Matrix:
        """Return the difference from a number."""
        return Matrix([[other - a for a in row] for row in self.rows])

    def __mul__(self, other: Any) -> Matrix:
        """Return the product, item by item."""
        others = under(self.rows, other)
        return Matrix(
            [[a * b for a, b in zip(row, by, strict=False)] for row, by in zip(self.rows, others, strict=False)]
        )

    def __rmul__(self, other: Any) -> Matrix:
        """Return the product with a number before."""
        return Matrix([[other * a for a in row] for row in self.rows])

    def __truediv__(self, other: Any) -> Matrix:
        """Return the quotient, item by item."""
        others = under(self.rows, other)
        return Matrix(
            [[a / b for a, b in zip(row, by, strict=False)] for row, by in zip(self.rows, others, strict=False)]
        )

    def __neg__(self) -> Matrix:
        """Return the opposite."""
        return Matrix([[-a for a in row] for row in self.rows])

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a matrix, or with a vector, which is a column."""
        if isinstance(other, Vector):
            return Vector([products(row, other.items) for row in self.rows])
        columns = exchanged(other.rows)
        return Matrix([[products(row, column) for column in columns] for row in self.rows])

    def __eq__(self, other: object) -> Any:
        """Return whether all items are equal."""
        if not isinstance(other, Matrix):
            return NotImplemented
        return tuple(tuple(row) for row in self.rows) == tuple(tuple(row) for row in other.rows)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # items can be stored into, as those of a list

    # ------------------------------------------------------------ functions

    def transpose(self) -> Matrix:
        """Return the matrix with rows and columns exchanged."""
        return Matrix(exchanged(self.rows))

    def trace(self) -> Number:
        """Return the sum of the diagonal."""
        return total([row[k] for k, row in enumerate(self.rows)])

    def determinant(self) -> Number:
        """Return the determinant of a square matrix."""
        return determinant(self.rows)

    def inverse(self) -> Matrix:
        """Return the inverse of a square matrix, by its adjugate."""
        return Matrix(adjugate(self.rows)) * (1 / determinant(self.rows))


# ---------------------------------------------------------------- of lists


def beside(items: Sequence[Number], other: Any) -> Sequence[Number]:
    """Return what each item of a vector is combined with: that of another vector, or one number."""
    if isinstance(other, Vector):
        require(len(items) == len(other.items), "two vectors differ in length")
        return other.items
    return [other for _ in items]


def under(rows: Sequence[Sequence[Number]], other: Any) -> Sequence[Sequence[Number]]:
    """Return what each item of a matrix is combined with: that of another matrix, or one number."""
    if isinstance(other, Matrix):
        require((len(rows), len(rows[0])) == (len(other.rows), len(other.rows[0])), "two matrices differ in size")
        return other.rows
    return [[other for _ in row] for row in rows]


def products(left: Sequence[Number], right: Sequence[Number]) -> Number:
    """Return the sum of the products of items."""
    require(len(left) == len(right), "two vectors of a product differ in length")
    return total([a * b for a, b in zip(left, right, strict=False)])


def total(items: Sequence[Number]) -> Number:
    """Return the sum of items, from the first to the last."""
    first, *rest = items
    return sum(rest, first)


def exchanged(rows: Sequence[Sequence[Number]]) -> list[list[Number]]:
    """Return the columns of a matrix."""
    return [[row[k] for row in rows] for k in range(len(rows[0]))]


def determinant(rows: Sequence[Sequence[Number]]) -> Number:
    """Return the determinant of a matrix of at most 4 rows."""
    require(len(rows) == len(rows[0]) and len(rows) < 5, "only square matrices of at most 4 rows have one here")
    if len(rows) == 1:
        return rows[0][0]
    if len(rows) == 2:
        return minor(rows, 0, 1, 0, 1)
    if len(rows) == 3:
        a, b, c = rows[2]
        return a * minor(rows, 0, 1, 1, 2) - b * minor(rows, 0, 1, 0, 2) + c * minor(rows, 0, 1, 0, 1)
    upper, lower = minors(rows, 0, 1), minors(rows, 2, 3)
    s, c = upper, lower
    return s[0] * c[5] - s[1] * c[4] + s[2] * c[3] + s[3] * c[2] - s[4] * c[1] + s[5] * c[0]


def minor(rows: Sequence[Sequence[Number]], i: int, j: int, k: int, m: int) -> Number:
    """Return the determinant of rows i and j and columns k and m."""
    return rows[i][k] * rows[j][m] - rows[i][m] * rows[j][k]


def minors(rows: Sequence[Sequence[Number]], i: int, j: int) -> tuple[Number, ...]:
    """Return the determinants of two rows and each pair of four columns."""
    return (
        minor(rows, i, j, 0, 1),
        minor(rows, i, j, 0, 2),
        minor(rows, i, j, 0, 3),
        minor(rows, i, j, 1, 2),
        minor(rows, i, j, 1, 3),
        minor(rows, i, j, 2, 3),
    )


def adjugate(rows: Sequence[Sequence[Number]]) -> list[list[Number]]:
    """Return the inverse of a matrix of at most 4 rows, times its determinant."""
    if len(rows) == 1:
        return [[1]]
    if len(rows) == 2:
        return [[rows[1][1], -rows[0][1]], [-rows[1][0], rows[0][0]]]
    if len(rows) == 3:
        return [
            [minor(rows, 1, 2, 1, 2), -minor(rows, 0, 2, 1, 2), minor(rows, 0, 1, 1, 2)],
            [-minor(rows, 1, 2, 0, 2), minor(rows, 0, 2, 0, 2), -minor(rows, 0, 1, 0, 2)],
            [minor(rows, 1, 2, 0, 1), -minor(rows, 0, 2, 0, 1), minor(rows, 0, 1, 0, 1)],
        ]
    s, c = minors(rows, 0, 1), minors(rows, 2, 3)
    return exchanged(
        [
            expanded(rows[1], c),
            [-item for item in expanded(rows[0], c)],
            expanded(rows[3], s),
            [-item for item in expanded(rows[2], s)],
        ]
    )


def expanded(row: Sequence[Number], c: Sequence[Number]) -> list[Number]:
    """Return the cofactors of the row beside this one, from the minors of the other two rows."""
    return [
        row[1] * c[5] - row[2] * c[4] + row[3] * c[3],
        -row[0] * c[5] + row[2] * c[2] - row[3] * c[1],
        row[0] * c[4] - row[1] * c[2] + row[3] * c[0],
        -row[0] * c[3] + row[1] * c[1] - row[2] * c[0],
    ]


# ---------------------------------------------------------------- swizzles


def _swizzle(places: tuple[int, ...]) -> property:
    """Return the attribute that picks items of a vector: `v.x` is a number, `v.zyx` a vector."""
    first = places[0]

    def component(self: Vector) -> Number:
        return self.items[first]

    def components(self: Vector) -> Vector:
        return Vector([self.items[place] for place in places])

    return property(component if len(places) == 1 else components)


def _swizzles() -> Iterator[tuple[str, property]]:
    for letters in ("xyzw", "rgba"):
        for length in range(1, 5):
            for places in itertools.product(range(4), repeat=length):
                yield "".join(letters[place] for place in places), _swizzle(places)


for _name, _property in _swizzles():
    setattr(Vector, _name, _property)


# ---------------------------------------------------------------- making


def _vector(count: int, /, *given: Any) -> Vector:
    """Return a vector of numbers, of other vectors' items, or of one number."""
    parts: Any = given
    if len(parts) == count:
        return Vector(parts)
    if len(parts) == 1 and not isinstance(parts[0], (Vector, tuple, list)):
        return Vector([parts[0] for _ in range(count)])
    found: Any = ()
    for part in parts:
        found = (*found, *part) if isinstance(part, (Vector, tuple, list)) else (*found, part)
    require(len(found) == count, "a vector is given too few or too many items")
    return Vector(found)


def _matrix(height: int, width: int, /, *given: Any) -> Matrix:
    """Return a matrix of rows, of its items row by row, or of one number."""
    parts: Any = given
    if len(parts) == height * width and not isinstance(parts[0], (Vector, tuple, list)):
        return Matrix([[parts[i * width + j] for j in range(width)] for i in range(height)])
    if len(parts) == 1 and not isinstance(parts[0], (Vector, tuple, list)):
        return Matrix([[parts[0] for _ in range(width)] for _ in range(height)])
    rows: Any = parts[0] if len(parts) == 1 else parts
    require(len(rows) == height, "a matrix is given too few or too many rows")
    require(len(tuple(rows[0])) == width, "a matrix is given rows of another length")
    return Matrix([tuple(row) for row in rows])


def vector(count: int) -> Callable[..., Vector]:
    """Return what makes vectors of that many items: `Vec6 = bw.vector(6)`, then `Vec6(0.0)`, `Vec6(a, b, ...)`."""
    return functools.partial(_vector, count)


def matrix(height: int, width: int) -> Callable[..., Matrix]:
    """Return what makes matrices of that size: `Tile = bw.matrix(8, 4)`, then `Tile(0.0)`, or `Tile` of rows."""
    return functools.partial(_matrix, height, width)


def vec2(*parts: Any) -> Vector:
    """Return a vector of two items."""
    return _vector(2, *parts)


def vec3(*parts: Any) -> Vector:
    """Return a vector of three items."""
    return _vector(3, *parts)


def vec4(*parts: Any) -> Vector:
    """Return a vector of four items."""
    return _vector(4, *parts)


def mat2(*parts: Any) -> Matrix:
    """Return a matrix of two rows and columns."""
    return _matrix(2, 2, *parts)


def mat3(*parts: Any) -> Matrix:
    """Return a matrix of three rows and columns."""
    return _matrix(3, 3, *parts)


def mat4(*parts: Any) -> Matrix:
    """Return a matrix of four rows and columns."""
    return _matrix(4, 4, *parts)
