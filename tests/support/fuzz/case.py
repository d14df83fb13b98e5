"""A case: the source of a program and what its arguments are made of, as data that can be printed and made smaller.

Tensors lie in larger blocks of memory, whose rest must not change. Arguments are the same ones each time they are made.
Sources are written to a file, as the frontend reads functions from files.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import random
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch

MARGIN = 96
"""Elements before and after each tensor that belong to nobody; even the widest vector does not reach across."""
NAME = "generated"
"""The name of the function under test."""
Layout: TypeAlias = Literal["dense", "transposed", "sliced", "expanded", "beside", "odd"]
Data: TypeAlias = Literal["small", "halves", "wide", "special", "infinite", "index", "rising", "zeros", "smooth"]
_SPECIAL = (math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e-45, 1e-40, 1e-310, 1e300, 65504.0, 3e38)
_NOT_FINITE = (math.inf, -math.inf, math.nan)
_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor: how it lies, and what is in it.

    `data` of "index" and "rising" are integers in [0, limit), with a few beyond where `strays`. If `base` is the name
    of an earlier tensor of the same dtype, this one is a view of its memory that begins `shift` elements after it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    layout: Layout = "dense"
    data: Data = "small"
    limit: int = 0
    strays: bool = False
    seed: int = 0
    base: str | None = None
    shift: int = 0


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """An int, a float, a bool, a list of them, a text, or None for a tensor that may be left out."""

    name: str
    value: Any


Argument: TypeAlias = TensorArgument | NumberArgument


@dataclass(frozen=True, slots=True)
class Case:
    """A program and its arguments."""

    source: str
    arguments: tuple[Argument, ...]
    seed: int = 0

    @property
    def draws(self) -> bool:
        """Whether random numbers are drawn."""
        return "bw.rand" in self.source

    @property
    def claims(self) -> bool:
        """Whether a loop is said to be independent."""
        return "prange" in self.source

    @property
    def shares(self) -> bool:
        """Whether arguments share memory."""
        return any(isinstance(item, TensorArgument) and item.base is not None for item in self.arguments)

    def make(self) -> list[Any]:
        """Return the arguments."""
        made: dict[str, Any] = {}
        for item in self.arguments:
            if isinstance(item, NumberArgument):
                made[item.name] = copy(item.value)
            elif item.base is not None:
                made[item.name] = _view(made[item.base], item)
            else:
                made[item.name] = _tensor(item)
        return list(made.values())

    def function(self, folder: Path) -> Callable[..., Any]:
        """Return the program as a function of a module in `folder`."""
        name = f"{NAME}_{next(_counter)}"
        path = folder / f"{name}.py"
        path.write_text(self.source, encoding="utf-8")
        specification = importlib.util.spec_from_file_location(name, path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return getattr(module, NAME)

    def apart(self) -> Case:
        """Return the case with memory of its own for each argument."""
        parts = (replace(item, base=None) if isinstance(item, TensorArgument) else item for item in self.arguments)
        return replace(self, arguments=tuple(parts))


def block(tensor: torch.Tensor) -> torch.Tensor:
    """Return all of the memory that a tensor lies in."""
    return tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)


def strides_of(item: TensorArgument) -> tuple[tuple[int, ...], int]:
    """Return the strides of a tensor's layout and the elements that it spans."""
    order = list(range(len(item.shape)))
    if item.layout == "transposed":
        order.reverse()
    strides = [0] * len(order)
    step = 1
    for axis in reversed(order):
        size = item.shape[axis]
        if item.layout == "expanded" and axis == 0:
            continue
        strides[axis] = step
        if item.layout == "odd" and size <= 1:
            strides[axis] = 11 + axis
        wide = 2 if item.layout == "sliced" else 1
        strides[axis] *= wide
        step *= wide * max(size, 1) + (1 if item.layout == "sliced" else 0)
    span = 1 + sum(max(size - 1, 0) * stride for size, stride in zip(item.shape, strides, strict=True))
    return tuple(strides), span


def _tensor(item: TensorArgument) -> torch.Tensor:
    strides, span = strides_of(item)
    offset = MARGIN + (1 if item.layout == "beside" else 0)
    return _memory(item, span + 2 * MARGIN + 1).clone().as_strided(item.shape, strides, offset)


@lru_cache(maxsize=64)
def _memory(item: TensorArgument, count: int) -> torch.Tensor:
    """Return what a tensor and its margins begin with; a case is made many times."""
    return torch.tensor(_values(item, count), dtype=getattr(torch, item.dtype))


def _view(base: torch.Tensor, item: TensorArgument) -> torch.Tensor:
    """Return another view of a tensor's memory, moved into the block; a tensor of its own if it is too large."""
    strides, span = strides_of(item)
    room = block(base).numel() - span
    if room < 0:
        return _tensor(item)
    return base.as_strided(item.shape, strides, min(base.storage_offset() + item.shift, room))


def _values(item: TensorArgument, count: int) -> list[Any]:
    source = random.Random(item.seed * 7919 + len(item.name))
    floating = item.dtype.startswith(("float", "bfloat"))
    low = 0 if item.dtype.startswith(("uint", "bool")) else -4
    small = [source.randint(low, 4) for _ in range(count)]
    if floating:
        small = [-0.0 if value == 0 and place % 2 else value for place, value in enumerate(small)]
    match item.data:
        case "zeros":
            return [0] * count
        case "index":
            found = [source.randrange(max(item.limit, 1)) for _ in range(count)]
            if item.strays and low:
                found = [source.choice((-1, -item.limit, value, value, value, item.limit)) for value in found]
            return found
        case "rising":
            return sorted(source.randint(0, max(item.limit, 0)) for _ in range(count))
        case "smooth" if floating:
            return [source.gauss() for _ in small]
        case "halves" if floating:
            return [value / 2 for value in small]
        case "special" if floating:
            limit = torch.finfo(getattr(torch, item.dtype)).max
            special = [value if abs(value) <= limit or not math.isfinite(value) else limit for value in _SPECIAL]
            return [source.choice(special) if source.random() < 0.3 else value for value in small]
        case "infinite" if floating:
            return [
                source.choice((math.inf, -math.inf, math.nan)) if source.random() < 0.01 else value for value in small
            ]
        case "wide" if not floating and item.dtype != "bool":
            limits = torch.iinfo(getattr(torch, item.dtype))
            edges = (limits.min, limits.max, limits.max - 1, 0, 1)
            return [source.choice((source.randint(limits.min, limits.max), source.choice(edges))) for _ in small]
        case _:
            return small
