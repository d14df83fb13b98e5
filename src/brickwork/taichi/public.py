"""`ti.Matrix` and `ti.Vector`: what makes values, and the makers of fields and arrays that hang on their names."""

from __future__ import annotations

from typing import Any

from brickwork.taichi import fields, matrix, ndarrays


class _Made(type):
    """The class of names whose calls make a matrix, and that all matrices are instances of."""

    def __instancecheck__(cls, instance: object) -> bool:
        """Return whether something is a matrix."""
        return isinstance(instance, matrix.Matrix)

    def __call__(cls, rows: Any, dt: Any = None, **_: Any) -> Any:
        """Make a matrix of rows, or a vector of numbers."""
        return matrix.Matrix(rows, dt)


class Matrix(matrix.Matrix, metaclass=_Made):
    """A vector or a matrix of numbers; `Matrix.field` and `Matrix.ndarray` make many."""

    field = staticmethod(fields.matrix_field)
    ndarray = staticmethod(ndarrays.matrix_ndarray)


class Vector(matrix.Matrix, metaclass=_Made):
    """A vector of numbers; `Vector.field` and `Vector.ndarray` make many."""

    field = staticmethod(fields.vector_field)
    ndarray = staticmethod(ndarrays.vector_ndarray)
