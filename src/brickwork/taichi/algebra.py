"""Sums, determinants and inverses of lists of scalars: written once, for Python's scope and for kernels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from brickwork.ir import build
from brickwork.taichi import arithmetic, state
from brickwork.taichi.values import Scalar, Variable, kept

LONGEST_SUM = 64
"""Operators in one expression of a long sum: passes over the IR recurse, and 200 overflow Python's own stack."""


def settled(value: Any) -> Any:
    """Return a scalar that is used several times so that it is computed once."""
    simple = not isinstance(value, Scalar) or isinstance(value, Variable)
    if simple or isinstance(value.ir, build.Constant | build.Read) or state.builder() is None:
        return value
    return kept(value)


def folded(name: str, entries: Sequence[Any]) -> Any:
    """Return an operator applied between all entries, from the left."""
    result = entries[0]
    for number, entry in enumerate(entries[1:], 1):
        result = arithmetic.binary(name, result, entry)
        if number % LONGEST_SUM == 0:
            result = settled(result)
    return result


def determinant(rows: Sequence[Sequence[Any]]) -> Any:
    """Return the determinant of a square matrix, by its first row."""
    first = rows[0]
    if len(rows) == 1:
        return first[0]
    terms: list[Any] = []
    for column, entry in enumerate(first):
        minor = settled(determinant([[*row[:column], *row[column + 1 :]] for row in rows[1:]]))
        terms.append(arithmetic.binary("mul", entry, minor))
    result = terms[0]
    for number, term in enumerate(terms[1:], 1):
        result = arithmetic.binary("sub" if number % 2 else "add", result, term)
    return result


def inverse(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the entries of the inverse of a square matrix, by its cofactors."""
    size = len(rows)
    scale = settled(arithmetic.binary("truediv", 1.0, determinant(rows)))
    if size == 1:
        return [scale]
    entries: list[Any] = []
    for row, column in itertools.product(range(size), range(size)):
        rest = [[*each[:row], *each[row + 1 :]] for number, each in enumerate(rows) if number != column]
        minor = determinant(rest)
        signed = arithmetic.unary("neg", minor) if (row + column) % 2 else minor
        entries.append(arithmetic.binary("mul", scale, signed))
    return entries


def refuse_size(what: str) -> None:
    """Refuse a matrix that is not 2 x 2 or 3 x 3."""
    raise ValueError(f"{what} only supports 2D and 3D matrices.")
