"""How the arguments of a launch become the bytes of a kernel's parameters, and which ones a kernel does not take."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.host.driver import ParameterBuffer
from brickwork.runtime.cuda_parameters import Parameter

_LETTERS = {
    "float32": "f",
    "float64": "d",
    "float16": "e",
    "bfloat16": "H",
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
}
"""What `struct` calls the types that a number can be passed as."""
_FLOATS = frozenset({"float32", "float64", "float16", "bfloat16"})


class Packing:
    """How arguments of certain kinds are packed. Each call is lent a buffer, so that threads do not share one."""

    __slots__ = ("_free", "_into", "_rounded", "_size")

    def __init__(self, layout: struct.Struct, rounded: tuple[int, ...]) -> None:
        """Take the layout, and the places of numbers that become bfloat16."""
        self._into, self._size, self._rounded = layout.pack_into, layout.size, rounded
        self._free: list[ParameterBuffer] = []

    def fill(self, words: list[Any], refuse: Callable[[Exception], NoReturn]) -> ParameterBuffer:
        """Return a buffer with the arguments in it."""
        try:
            buffer = self._free.pop()
        except IndexError:
            buffer = ParameterBuffer(self._size)
        for place in self._rounded:
            words[place] = _bfloat16(words[place])
        try:
            self._into(buffer.memory, 0, *[0 if word is None else word for word in words])
        except (struct.error, OverflowError) as error:
            refuse(error)
        return buffer

    def give_back(self, buffer: ParameterBuffer) -> None:
        """Take a buffer back once the launch is enqueued."""
        self._free.append(buffer)


def packing(
    operator: str,
    kernel: str,
    place: Location,
    parameters: Sequence[Parameter],
    kinds: Sequence[object],
    names: Sequence[str],
) -> Packing:
    """Return how arguments of these kinds (an element type for a tensor, else a type) are packed for a kernel.

    `names` call the arguments in messages, `place` is where the kernel stands.
    """
    if len(parameters) != len(kinds):
        taken = ", ".join(map(str, parameters)) or "none"
        message = (
            f"`{kernel}` takes {len(parameters)} parameters ({taken}), but is launched with {len(kinds)} arguments"
        )
        raise _refusal(message, place, "`Launch(args=(...))` says what a kernel gets, and in which order")
    layout = "<"
    at = 0
    for number, (parameter, kind, name) in enumerate(zip(parameters, kinds, names, strict=True), 1):
        _check(operator, kernel, place, number, parameter, kind, name)
        gap = -at % parameter.alignment
        letter = "Q" if parameter.pointer else _LETTERS.get(parameter.element, f"{parameter.size}s")
        layout += f"{gap}x{letter}" if gap else letter
        at += gap + parameter.size
    rounded = [number for number, each in enumerate(parameters) if each.element == "bfloat16" and not each.pointer]
    return Packing(struct.Struct(layout), tuple(rounded))


def _check(
    operator: str, kernel: str, place: Location, number: int, parameter: Parameter, kind: object, name: str
) -> None:
    """Refuse an argument that a parameter cannot take."""
    if isinstance(kind, torch.dtype):
        if not parameter.pointer:
            message = f"parameter {number} of `{kernel}` is `{parameter}`, but {name} is a tensor"
            raise _refusal(message, place, "a tensor is passed to a pointer; `Launch(args=(...))` says what goes where")
        if not _points_at(parameter.element, kind):
            raise RuntimeError(
                f"{operator}(): {name} is of {kind}, but parameter {number} of `{kernel}` is `{parameter}`:"
                " convert it, or make the kernel a template over the type"
            )
        return
    if parameter.pointer:
        if kind is type(None):
            return
        message = f"parameter {number} of `{kernel}` is `{parameter}`, but {name} is of type {_named(kind)}"
        raise _refusal(message, place, "a pointer takes a tensor, or None; `Launch(args=(...))` says what goes where")
    if kind not in _taken(parameter):
        message = f"parameter {number} of `{kernel}` is `{parameter}`, but {name} is of type {_named(kind)}"
        raise _refusal(message, place, _advice(parameter, kind))


def _taken(parameter: Parameter) -> frozenset[object]:
    """Return the types of what can be passed as a parameter that is no pointer."""
    if parameter.element not in _LETTERS:
        return frozenset({bytes})
    return frozenset({int, bool, float}) if parameter.element in _FLOATS else frozenset({int, bool})


def _advice(parameter: Parameter, kind: object) -> str:
    if parameter.element not in _LETTERS:
        return f"pass its {parameter.size} bytes as `bytes`"
    return "let `launch` pass `int(...)` of it" if kind is float else "a number is passed to it, and nothing else"


def _points_at(element: str, dtype: torch.dtype) -> bool:
    """Whether a pointer to elements of a type may be given a tensor: the same type, or integers of the same size."""
    own = str(dtype).removeprefix("torch.")
    if element in {"", own}:
        return True
    whole = "int" in element and ("int" in own or own == "bool")
    return whole and torch.empty((), dtype=dtype, device="meta").element_size() == _bytes(element)


def _bytes(element: str) -> int:
    return struct.calcsize(_LETTERS[element])


def _named(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _refusal(message: str, place: Location, advice: str) -> CompileError:
    return CompileError(Diagnostic(code="BW303", message=message, loc=place, help=advice))


def _bfloat16(number: float) -> int:
    """Return the bits of the bfloat16 next to a number."""
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    if number != number:  # noqa: PLR0124  # NaN alone
        return 0x7FC0
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF
