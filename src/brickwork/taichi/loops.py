"""What loops of kernels run over, and how: `ndrange`, `grouped`, `static`, `loop_config`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from brickwork.taichi import state
from brickwork.taichi.arithmetic import is_number, lift
from brickwork.taichi.errors import TaichiSyntaxError, TaichiTypeError, unsupported
from brickwork.taichi.matrix import Matrix
from brickwork.taichi.sequences import items_of
from brickwork.taichi.values import Scalar, current


class ndrange:
    """The product of ranges, the last one fastest."""

    def __init__(self, *args: Any) -> None:
        """Take lengths, and pairs of start and stop."""
        self.bounds: list[tuple[Any, Any]] = []
        for each in args:
            pair = items_of(each) if isinstance(each, tuple | list | Matrix) else [0, each]
            if len(pair) != 2:
                raise TaichiSyntaxError(
                    "Every argument of ndrange should be a scalar or a tuple/list like (begin, end)"
                )
            for bound in pair:
                _refuse_float(bound)
            self.bounds.append((pair[0], pair[1]))

    def __iter__(self) -> Iterator[Any]:
        """Yield the indices, in Python's scope."""
        return itertools.product(*[range(int(start), int(stop)) for start, stop in self.bounds])

    def grouped(self) -> Grouped:
        """Return it for one vector of indices."""
        return Grouped(self)


def _refuse_float(bound: Any) -> None:
    if isinstance(bound, Scalar):
        wrong = bound.type.is_real
    else:
        wrong = not is_number(bound) or isinstance(bound, float) or "float" in str(getattr(bound, "dtype", ""))
    if wrong:
        raise TaichiTypeError("Every argument of ndrange should be an integer scalar or a tuple/list of (int, int).")


class Grouped:
    """What a loop runs over with one vector of indices."""

    def __init__(self, over: Any) -> None:
        """Take an ndrange, a field or an array."""
        if isinstance(over, Grouped | Range | range):
            raise TaichiSyntaxError("`ti.grouped` takes an ndrange, a field or an array")
        self.over = over

    def __iter__(self) -> Iterator[Matrix]:
        """Yield the vectors of indices, in Python's scope and in `ti.static`."""
        places = self.over if isinstance(self.over, ndrange) else self.over.indices()
        return (Matrix([*place]) for place in places)


def grouped(x: Any) -> Grouped:
    """Let a loop have one vector of indices: `for I in ti.grouped(x)`."""
    return Grouped(x)


class Range:
    """`range` of a kernel."""

    def __init__(self, *bounds: Any) -> None:
        """Take a stop, or a start and a stop."""
        if len(bounds) not in {1, 2}:
            raise TaichiSyntaxError(f"Range should have 1 or 2 arguments, found {len(bounds)}")
        start, stop = bounds if len(bounds) == 2 else (0, bounds[0])
        self.start, self.stop = lift(start), lift(stop)


def static(x: Any, *more: Any) -> Any:
    """Evaluate when the kernel is compiled: `if ti.static(flag)`, `for i in ti.static(range(n))`."""
    return (x, *more) if more else x


def static_assert(cond: Any, msg: Any = None) -> None:
    """Assert when the kernel is compiled."""
    if isinstance(cond, Scalar):
        raise TaichiTypeError("Static assert with non-static condition")
    if not cond:
        raise AssertionError(msg or "")


def static_print(*args: Any, **named: Any) -> None:
    """Print when the kernel is compiled."""
    print(*args, **named)


def loop_config(
    *, block_dim: int | None = None, serialize: bool = False, parallelize: int | None = None,
    block_dim_adaptive: bool = True, bit_vectorize: bool = False,
) -> None:  # fmt: skip
    """Say how the next loop is run: `serialize=True` in order, `block_dim` threads to a block where they wait."""
    del parallelize, block_dim_adaptive, bit_vectorize
    if state.builder() is not None:
        current().serialize = serialize
        current().block_dim = block_dim or 0


def no_activate(*_: Any) -> None:
    """Do nothing: there are no sparse fields."""


block_local = cache_read_only = mesh_local = no_activate


def assume_in_range(val: Any, base: Any, low: Any, high: Any) -> Any:
    """Return the value: ranges are found by analysis."""
    del base, low, high
    return val


def loop_unique(val: Any, covers: Any = None) -> Any:
    """Return the value: what iterations access is found by analysis."""
    del covers
    return val


def stop_grad(x: Any) -> Any:
    """Refuse: there is no way to cut one field out of a gradient."""
    raise unsupported(f"stop_grad of {x!r}")
