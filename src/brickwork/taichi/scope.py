"""Names of one function while it is compiled: variables live from their first assignment to the end of the block."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from brickwork.taichi.arithmetic import convert, is_number, lift
from brickwork.taichi.compound import Struct
from brickwork.taichi.matrix import Matrix, made
from brickwork.taichi.sequences import is_sequence
from brickwork.taichi.source import Source
from brickwork.taichi.values import Scalar, Variable, current
from brickwork.taichi.views import MOST_VARIABLES, local


class Scope:
    """The blocks that are open, each with its names; free names are the source's."""

    def __init__(self, source: Source, names: dict[str, Any]) -> None:
        """Begin with the parameters."""
        self.source = source
        self.blocks: list[dict[str, Any]] = [names]

    @contextmanager
    def block(self) -> Generator[None]:
        """Open a block."""
        self.blocks.append({})
        try:
            yield
        finally:
            self.blocks.pop()

    def holds(self, name: str) -> bool:
        """Return whether a name is one of the function's own here."""
        return any(name in each for each in self.blocks)

    def find(self, name: str) -> Any:
        """Return what a name means here."""
        for each in reversed(self.blocks):
            if name in each:
                return each[name]
        return self.source.captured(name)

    def bind(self, name: str, value: Any) -> None:
        """Let a name stand for something in the innermost block."""
        self.blocks[-1][name] = value

    def rebind(self, name: str, value: Any) -> None:
        """Let a name that has a meaning stand for something else."""
        for each in reversed(self.blocks):
            if name in each:
                each[name] = value
                return

    def declare(self, name: str, value: Any) -> None:
        """Make a variable of the value's type, or of variables of the types of its parts."""
        self.bind(name, variable(name, value, steady=name not in self.source.reassigned))


def variable(name: str, value: Any, *, steady: bool) -> Any:
    """Return a variable, or what holds variables, with this value; a `steady` one is assigned in one place."""
    if isinstance(value, Scalar) or is_number(value):
        scalar = lift(value)
        ir = scalar.ir if steady or not scalar.type.wraps else scalar.value
        read = current().keep(ir, name)
        fits = scalar.fits if steady else False
        return Variable(read.symbol, scalar.type, fits=fits, index=steady and scalar.index)
    if isinstance(value, Matrix):
        kind = value.scalar_type
        if len(value.entries) > MOST_VARIABLES:
            return local(name, value)
        converted = [convert(entry, kind) for entry in value.entries]
        return made([variable(name, each, steady=steady) for each in converted], value.shape, kind)
    if isinstance(value, Struct):
        result = Struct({key: variable(f"{name}.{key}", each, steady=steady) for key, each in value.items})
        result.__dict__.update(methods=value.__dict__["methods"], type=value.__dict__["type"])
        return result
    if getattr(value, "shape", ()) and hasattr(value, "dtype") and hasattr(value, "tolist"):
        lift(value)  # which says that it is an array
    if is_sequence(value):
        items = [variable(name, each, steady=steady) for each in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value
