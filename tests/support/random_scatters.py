"""Random programs that add to elements: loops, conditions and indices of every shape that can be turned around."""

from __future__ import annotations

import random
from itertools import count

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Parameter,
    Program,
    Return,
    ScalarParameter,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorParameter,
    TensorType,
)


class Scatter:
    """Draws one program: `x` gets sums of elements of `y`, in places that depend on the integers `n` and `m` too.

    If `fresh`, x is a result that is filled with zeros, else an argument.
    """

    def __init__(self, seed: int) -> None:
        """Draw the shapes."""
        self.draw = random.Random(seed)
        self.symbols, self.accesses = count(10), count()
        rank = self.draw.choice([1, 1, 2, 2, 3])
        self.y = Tensor("y", 1, TensorType(FLOAT32, 2, contiguous=True, unit_axis=1))
        self.x = Tensor("x", 2, TensorType(FLOAT32, rank, contiguous=True, unit_axis=rank - 1))
        self.n, self.m = Symbol("n", 1, INT64), Symbol("m", 2, INT64)
        self.fresh = self.draw.random() < 0.7
        self.sizes = [self.draw.randrange(6) for _ in range(rank)]
        self.indices: list[Symbol] = []

    def program(self) -> Program:
        """Return the program."""
        body = tuple(self.loop(2) for _ in range(self.draw.choice([1, 1, 2])))
        kernel = Kernel(name="scatter", tensors=(self.y, self.x), scalars=(self.n, self.m), facts=(), body=body)
        zero = build.constant(0.0, FLOAT32)
        made = Allocate(tensor=self.x, sizes=tuple(map(build.integer, self.sizes)), fill=zero)
        given: tuple[Parameter, ...] = () if self.fresh else (TensorParameter(self.x, mutated=True),)
        return Program(
            name="scatter",
            parameters=(TensorParameter(self.y), *given, ScalarParameter(self.n), ScalarParameter(self.m)),
            body=(
                *((made,) if self.fresh else ()),
                Launch(kernel=kernel),
                Return(tensors=(self.x,) if self.fresh else ()),
            ),
        )

    # ------------------------------------------------------------ statements

    def loop(self, depth: int) -> For:
        """Return a nest."""
        index = Symbol("i", next(self.symbols), INT64)
        start = build.integer(0) if self.draw.random() < 0.6 else self.bound()
        stop = self.bound()
        self.indices.append(index)
        body = self.block(depth)
        self.indices.pop()
        return For(index=index, start=start, stop=stop, body=body)

    def block(self, depth: int) -> Block:
        """Return a few loops, branches and updates."""
        result: list[Statement] = []
        for _ in range(self.draw.choice([1, 1, 1, 2])):
            kind = self.draw.random()
            if depth and kind < 0.6:
                result.append(self.loop(depth - 1))
            elif depth and kind < 0.7:
                otherwise = self.block(0) if self.draw.random() < 0.4 else ()
                result.append(If(condition=self.condition(), then=self.block(depth - 1), otherwise=otherwise))
            else:
                result.append(self.update())
        return tuple(result)

    def update(self) -> If:
        """Return an update where its indices are in range."""
        place = [self.index(axis) for axis in range(self.x.type.rank)]
        at = [self.inside(axis) for axis in range(2)]
        value: Expression = Load(tensor=self.y, indices=tuple(at), access=next(self.accesses), dtype=FLOAT32)
        before: Block = ()
        if self.draw.random() < 0.4:
            symbol = Symbol("s", next(self.symbols), FLOAT32)
            before = (Assign(symbol=symbol, value=value),)
            value = build.mul(build.read(symbol), build.cast(self.loop_index(), FLOAT32))
        old = Load(tensor=self.x, indices=tuple(place), access=next(self.accesses), dtype=FLOAT32)
        store = Store(tensor=self.x, indices=tuple(place), value=build.add(old, value), access=next(self.accesses))
        condition: Expression = build.constant(True, build.apply("lt", build.integer(0), build.integer(1)).dtype)
        for axis, index in enumerate(place):
            condition = _and(condition, build.apply("le", build.integer(0), index))
            condition = _and(condition, build.apply("lt", index, build.size(self.x, axis)))
        for axis in range(2):
            condition = _and(condition, build.apply("lt", build.integer(0), build.size(self.y, axis)))
        return If(condition=condition, then=(*before, store))

    # ------------------------------------------------------------ expressions

    def index(self, axis: int) -> Expression:
        """Return an index of x, which may count from the end."""
        index = self.loop_index() if self.draw.random() < 0.3 else self.integer()
        if self.draw.random() < 0.3:
            moved = build.add(index, build.size(self.x, axis))
            return build.select(build.apply("lt", index, build.integer(0)), moved, index)
        return index

    def inside(self, axis: int) -> Expression:
        """Return an index of y."""
        index = self.loop_index()
        if self.draw.random() < 0.4:
            index = build.apply("floordiv", index, build.integer(2))
        return build.apply("mod", index, self.positive(axis))

    def positive(self, axis: int) -> Expression:
        """Return a size of y, or 1."""
        return build.apply("maximum", build.size(self.y, axis), build.integer(1))

    def loop_index(self) -> Expression:
        """Return the index of a loop."""
        return build.read(self.draw.choice(self.indices))

    def integer(self, depth: int = 2) -> Expression:
        """Return an integer that is affine for the most part."""
        kind = self.draw.randrange(13)
        if not depth or kind < 4:
            if self.indices and self.draw.random() < 0.8:
                return self.loop_index()
            return build.integer(self.draw.randrange(-1, 3))
        inner = self.integer(depth - 1)
        match kind:
            case 4:
                return build.mul(inner, build.integer(self.draw.choice([2, 3, -1, -2])))
            case 5 | 6:
                name = "floordiv" if kind == 5 else "mod"
                return build.apply(name, inner, build.integer(self.draw.choice([2, 3])))
            case 7:
                return build.mul(inner, build.read(self.draw.choice([self.n, self.m])))
            case 8:
                return build.apply(self.draw.choice(["minimum", "maximum"]), inner, self.integer(depth - 1))
            case 9:
                return build.apply(self.draw.choice(["floordiv", "mod"]), inner, self.positive(0))
            case _:
                return build.apply(self.draw.choice(["add", "add", "sub"]), inner, self.integer(depth - 1))

    def condition(self) -> Expression:
        """Return a comparison."""
        name = self.draw.choice(["lt", "le", "ge", "eq", "gt", "ne"])
        return build.apply(name, self.integer(), self.integer(1))

    def bound(self) -> Expression:
        """Return where a loop begins or ends."""
        kind = self.draw.randrange(6)
        if kind == 0:
            return build.size(self.y, self.draw.randrange(2))
        if kind == 1:
            return build.read(self.draw.choice([self.n, self.m]))
        if kind == 2 and self.indices:
            return build.add(self.loop_index(), build.integer(self.draw.randrange(3)))
        return self.integer(1) if kind == 3 else build.integer(self.draw.randrange(1, 5))


def _and(one: Expression, other: Expression) -> Expression:
    return build.apply("logical_and", one, other)
