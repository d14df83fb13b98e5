"""`print` in kernels: values go into a log while the kernel runs, and from there to the standard output after it."""

from __future__ import annotations

import re
from typing import Any

import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.taichi import state
from brickwork.taichi.arithmetic import is_number, type_of
from brickwork.taichi.compound import Struct
from brickwork.taichi.errors import TaichiTypeError, unsupported
from brickwork.taichi.matrix import Matrix
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.sequences import is_sequence, items_of
from brickwork.taichi.texts import Formatted, Text
from brickwork.taichi.values import Scalar, current

ROOM = 1 << 16
"""Numbers in the log of one kernel, 1 MiB in all: what is beyond is dropped, since nobody reads so much on a screen."""


class Log:
    """The log of a kernel: how much is in it, whether more was dropped; whole numbers, floats at the same places."""

    def __init__(self) -> None:
        """Begin empty."""
        self.sites: list[tuple[list[Any], str, str]] = []
        self.count = _Buffer(torch.zeros(2, dtype=torch.int64))
        self.integers = _Buffer(torch.zeros(ROOM, dtype=torch.int64))
        self.floats = _Buffer(torch.zeros(ROOM, dtype=torch.float64))

    def show(self) -> None:
        """Print what is in the log, and empty it."""
        used, dropped, at = int(self.count.data[0]), bool(self.count.data[1]), 0
        self.count.data.zero_()
        while at < used:
            parts, sep, end = self.sites[int(self.integers.data[at])]
            said: list[str] = []
            for part in parts:
                text, at = self._text(part, at)
                said.append(text)
            at += 1
            print(*said, sep=sep, end=end)
        if dropped:
            print("...")

    def _text(self, part: Any, at: int) -> tuple[str, int]:
        """Return a part as text, and the last place that was read."""
        if isinstance(part, str):
            return part, at
        if isinstance(part, list):
            texts: list[str] = []
            for each in items_of(part):
                text, at = self._text(each, at)
                texts.append(text)
            return "".join(texts), at
        kind, spec = part
        at += 1
        if kind.is_real:
            return (spec or "%f") % self.floats.data[at].item(), at
        return (spec or "%d") % int(kind.number(self.integers.data[at].item())), at


class _Buffer:
    """A tensor that kernels name."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data


def emit(values: list[Any], sep: str, end: str) -> None:
    """Write values into the log."""
    builder = current()
    if state.settings().device != "cpu":
        raise unsupported("print in kernels on GPUs")
    builder.in_order = True
    builder.log = builder.log or Log()
    log: Log = builder.log
    scalars: list[Scalar] = []
    parts = [_part(each, scalars) for each in values]
    log.sites.append((parts, str(sep), str(end)))
    count = builder.tensor("printed", INT64, 1, log.count, "data")
    integers = builder.tensor("printed_integers", INT64, 1, log.integers, "data")
    floats = builder.tensor("printed_floats", FLOAT64, 1, log.floats, "data")
    zero, one = (build.integer(0),), (build.integer(1),)
    at = builder.keep(builder.load(count, zero, INT64), "at")
    with builder.inside() as block:
        builder.store(integers, (at,), build.integer(len(log.sites) - 1))
        for number, each in enumerate(scalars, 1):
            place = (build.add(at, build.integer(number)),)
            value = each.value
            buffer, kind = (floats, FLOAT64) if value.dtype.is_float else (integers, INT64)
            builder.store(buffer, place, build.cast(value, kind))
        builder.store(count, zero, build.add(at, build.integer(len(scalars) + 1)))
    with builder.inside() as full:
        builder.store(count, one, build.integer(1))
    room = build.apply("lt", build.add(at, build.integer(len(scalars))), build.integer(ROOM))
    builder.branch(room, block, full)


def _part(value: Any, scalars: list[Scalar], spec: str = "") -> Any:
    """Return how a value is written, and note its scalars."""
    if isinstance(value, Formatted):
        return _part(value.value, scalars, value.spec)
    if isinstance(value, Text):
        return [_part(each, scalars) for each in value.parts]
    if isinstance(value, Scalar):
        scalars.append(value)
        return (value.type, _printf(spec, value.type))
    if isinstance(value, Matrix):
        return _listed([_part(each, scalars, spec) for each in value.to_list()])
    if isinstance(value, Struct):
        members = [[f"{name}=", _part(each, scalars)] for name, each in value.items]
        return ["{", *_between(members), "}"]
    if is_sequence(value):
        return _listed([_part(each, scalars, spec) for each in value])
    return _printf(spec, type_of(value)) % value if spec and is_number(value) else str(value)


def _printf(spec: str, kind: ScalarType) -> str:
    """Return a format of C's `printf`, as which Taichi reads it; refuse one for other types."""
    letters = "fFeEgGaA" if kind.is_real else "di" if kind.is_signed else "uxXo"
    found = re.fullmatch(r"([-+ #0]*\d*(?:\.\d+)?)([a-zA-Z]*)", spec)
    if found is None or (found[2] and found[2] not in letters) or len(found[2]) > 1:
        raise TaichiTypeError(f"'{spec}' doesn't match '{kind}'.")
    if not spec:
        return ""
    letter = found[2] or ("f" if kind.is_real else "d")
    return f"%{found[1]}{'d' if letter in 'iu' else letter}"


def _listed(parts: list[Any]) -> list[Any]:
    return ["[", *_between(parts), "]"]


def _between(parts: list[Any]) -> list[Any]:
    found: list[Any] = []
    for number, each in enumerate(parts):
        found += [", ", each] if number else [each]
    return found
