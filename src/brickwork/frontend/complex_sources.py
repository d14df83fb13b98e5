"""The class of complex numbers and its functions as sources to inline.

They are parsed when a program first needs them: that tensors are complex is known when an operator is called.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from functools import lru_cache

from brickwork.frontend.check import find_helpers
from brickwork.frontend.source import SourceFunction, parse
from brickwork.frontend.value_classes import initialiser
from brickwork.frontend.value_methods import constructors, parsed_method
from brickwork.language.complex_numbers import HELPERS, Complex


class Helpers(Mapping[types.FunctionType, SourceFunction]):
    """The functions that an operator may run: its own, and those of complex numbers."""

    def __init__(self, own: Mapping[types.FunctionType, SourceFunction]) -> None:
        """Take the operator's own."""
        self._own = own

    def __getitem__(self, function: types.FunctionType) -> SourceFunction:
        """Return the parsed form of a function."""
        found = self._own.get(function)
        return complex_sources()[function] if found is None else found

    def __iter__(self) -> Iterator[types.FunctionType]:
        """Run over the operator's own."""
        return iter(self._own)

    def __len__(self) -> int:
        """Return how many of its own there are."""
        return len(self._own)


@lru_cache(maxsize=1)
def complex_sources() -> Mapping[types.FunctionType, SourceFunction]:
    """Return the parsed methods of complex numbers, and their functions, with what those call."""
    found: dict[types.FunctionType, SourceFunction] = {}
    made = constructors(Complex)
    found |= made[0] if made is not None else {}
    methods = [item for item in vars(Complex).values() if isinstance(item, types.FunctionType)]
    for function in methods:
        if function is not initialiser(Complex):
            found[function] = parsed_method(function, Complex)[0]
    for function in HELPERS:
        found.setdefault(function, parse(function))
    for source in [*found.values()]:
        found |= {inner: parsed for inner, parsed in find_helpers(source)[0].items() if inner not in found}
    return found
