"""Random kernels: the scheduled form gives the answer and the IndexErrors of the source, and has no race."""

import math
import random
from dataclasses import replace

import pytest

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.interpret import Memory, run_kernel
from brickwork.ir.nodes import Read
from brickwork.target.target import Target
from brickwork.transform.pipeline import schedule_kernel
from support.kernels_ir import KernelBuilder, apply, size, wrapped
from support.lowering import strides

AVX2 = Target(name="cpu", identity="test", vector_bytes=32, vector_registers=16, vector_library="none")


class Generator:
    """Draws a nest of loops over small tensors, with indices of every shape that analyses have a rule for."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.make = KernelBuilder()
        self.tensors = [self.make.tensor("x", 1), self.make.tensor("y", 2), self.make.tensor("z", 1)]
        self.index = self.make.tensor("index", 1, INT64)
        self.scalars = [self.make.scalar("n"), self.make.scalar("m")]
        self.indices = []

    def extent(self):
        tensor = self.draw.choice(self.tensors)
        return size(tensor, self.draw.randrange(tensor.type.rank))

    def integer(self, depth=2):
        kind = self.draw.randrange(12 if depth else 4)
        if kind < 3 and self.indices:
            return Read(symbol=self.draw.choice(self.indices))
        if kind == 3 or not depth:
            return build.integer(self.draw.randrange(-1, 3))
        if kind == 4:
            return Read(symbol=self.draw.choice(self.scalars))
        if kind == 5:
            return self.extent()
        inner = self.integer(depth - 1)
        if kind == 6:
            return apply("mul", inner, self.draw.choice([2, 3, -1]))
        if kind == 7:
            return apply(self.draw.choice(["floordiv", "mod"]), inner, self.draw.choice([2, 3]))
        if kind == 8:
            return apply("mod", inner, apply("maximum", self.extent(), 1))
        if kind == 9 and depth == 2:
            return self.make.load(self.index, apply("mod", inner, apply("maximum", size(self.index, 0), 1)))
        name = self.draw.choice(["add", "add", "sub", "minimum", "maximum", "mul"])
        return apply(name, inner, self.integer(depth - 1))

    def place(self, tensor):
        places = []
        for axis in range(tensor.type.rank):
            inner = self.integer()
            if self.draw.random() < 0.5:
                inner = Read(symbol=self.draw.choice(self.indices))
            places.append(wrapped(inner, tensor, axis) if self.draw.random() < 0.5 else inner)
        return places

    def load(self):
        tensor = self.draw.choice(self.tensors)
        return self.make.load(tensor, *self.place(tensor))

    def statement(self, depth):
        kind = self.draw.randrange(6)
        if kind == 0 and depth:
            return self.loop(depth - 1)
        if kind == 1:
            condition = apply(self.draw.choice(["lt", "ge", "eq"]), self.integer(), self.integer(1))
            return self.make.branch(condition, (self.statement(0),))
        tensor = self.draw.choice(self.tensors)
        place = self.place(tensor)
        value = build.add(self.load(), self.load() if kind == 2 else build.constant(1.0, FLOAT32))
        if kind == 3:
            value = build.add(self.make.load(tensor, *place), self.load())
        return self.make.store(tensor, tuple(place), value)

    def loop(self, depth):
        index = self.make.symbol(f"i{len(self.indices)}")
        stop = self.extent() if self.draw.random() < 0.7 else self.integer(1)
        start = self.draw.choice([0, 0, 0, 1])
        self.indices.append(index)
        count = 1 if self.draw.random() < 0.6 else 2
        body = [self.loop(depth - 1) if depth and self.draw.random() < 0.6 else self.statement(depth)]
        body += [self.statement(depth) for _ in range(count - 1)]
        self.indices.pop()
        return self.make.loop(index, stop, *body, start=start)

    def kernel(self):
        return self.make.kernel(self.loop(2))

    def memories(self):
        rows, columns, n = (self.draw.randrange(4) for _ in range(3))
        x = self.memory((self.draw.choice([n, rows, rows * columns]),), FLOAT32, range(9))
        y = self.memory((rows, columns), FLOAT32, range(9))
        z = self.memory((n,), FLOAT32, range(9))
        index = self.memory((3,), INT64, range(-1, 4))
        return [x, y, z, index], [self.draw.randrange(-1, 4) for _ in range(2)]

    def memory(self, sizes, dtype, values):
        data = [type(0.0 if dtype.is_float else 0)(self.draw.choice(values)) for _ in range(math.prod(sizes))]
        return Memory(data, sizes, strides(sizes), dtype)


def outcome(kernel, memories, scalars, check):
    copies = [replace(item, data=list(item.data)) for item in memories]
    try:
        run_kernel(kernel, copies, scalars, check=check)
    except IndexError:
        return "IndexError"
    return [item.data for item in copies]


@pytest.mark.parametrize("seed", range(80))
def test_scheduled_kernels_mean_what_the_source_says(seed):
    generator = Generator(seed)
    kernel = generator.kernel()
    scheduled = schedule_kernel(kernel, AVX2).kernel
    for _ in range(6):
        memories, scalars = generator.memories()
        expected = outcome(kernel, memories, scalars, check=False)
        assert outcome(scheduled, memories, scalars, check=True) == expected
