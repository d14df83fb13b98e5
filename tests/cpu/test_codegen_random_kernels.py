"""Kernels made at random: branches, loops, breaks and gathers in lanes against the interpreter, at every width."""

import random

import pytest
import torch

from brickwork.ir.nodes import Break, Continue, Role
from support.machine import Machine, interpreted, named, scheduled
from support.pairs import in_turn
from support.written import check, extent, kernel, let, load, loop, op, repeat, store, symbol, when

COUNT = 83


class Generator:
    """Writes the body of the loop `i` from a seed."""

    def __init__(self, seed, tensor):
        self.random = random.Random(seed)
        self.tensor = tensor
        self.i = symbol("i")
        self.uniform = symbol("scale")
        self.variables = [symbol(name) for name in "abc"]

    def number(self, names, depth=2):
        pick = self.random.random()
        if depth == 0 or pick < 0.3:
            return self.random.choice([*names, self.random.randint(-9, 9)])
        left, right = self.number(names, depth - 1), self.number(names, depth - 1)
        if pick < 0.4:
            return load(self.tensor, op("mod", op("add", left, 0), self.random.choice([7, 20, COUNT])))
        if pick < 0.5:
            divisor = self.random.choice([1, 3, 8, 17, -5])
            return op(self.random.choice(["floordiv", "mod"]), op("add", left, 0), divisor)
        name = self.random.choice(["add", "sub", "mul", "minimum", "maximum", "add", "sub"])
        return op("mod", op(name, left, right), 1000) if name == "mul" else op(name, left, right)

    def condition(self, names):
        return op(self.random.choice(["lt", "eq", "ge", "ne"]), op("add", self.number(names), 0), self.number(names))

    def block(self, names, depth, inside):
        return tuple(self.statement(names, depth, inside) for _ in range(self.random.randint(1, 3)))

    def statement(self, names, depth, inside):
        pick = self.random.random()
        if depth == 0 or pick < 0.35:
            if inside and self.random.random() < 0.4:
                return when(self.condition(names), (self.random.choice([Break(), Continue()]),))
            return let(self.random.choice(self.variables), self.number(names))
        if pick < 0.55:
            other = self.block(names, depth - 1, inside) if self.random.random() < 0.6 else ()
            return when(self.condition(names), self.block(names, depth - 1, inside), other)
        if pick < 0.85:
            index = symbol("j")
            start, stop = (op("mod", op("add", self.number(names), 0), most) for most in (4, 9))
            return loop(index, start, stop, *self.block([*names, index], depth - 1, inside=True))
        counter = symbol("n")
        body = (let(counter, op("add", counter, 1)), *self.block([*names, counter], depth - 1, inside=True))
        limit = op("mod", op("add", self.number(names), 0), 6)
        return when(op("eq", 0, 0), (let(counter, 0), repeat(op("lt", counter, limit), *body)))

    def body(self, out):
        start = tuple(let(variable, self.number([self.i, self.uniform], 1)) for variable in self.variables)
        names = [self.i, self.uniform, *self.variables]
        last = tuple(store(out, (number, self.i), variable) for number, variable in enumerate(self.variables))
        return (*start, *(self.statement(names, 3, inside=False) for _ in range(3)), *last)


ROLES = ((Role.SEQUENTIAL, 1), (Role.VECTOR, 4), (Role.PARALLEL, 16), (Role.VECTOR, 64))


@pytest.mark.parametrize(("seed", "roles"), in_turn(range(6), [ROLES[:2], ROLES[2:]], 1))
def test_random_kernel(seed, roles):
    x, out = (
        torch.randint(-50, 50, (COUNT,), generator=torch.Generator().manual_seed(seed)),
        torch.zeros(3, COUNT).long(),
    )
    tensor, to = named("x", 0, x), named("out", 1, out)
    made = Generator(seed, tensor)
    body = made.body(to)
    whole = kernel((tensor, to), loop(made.i, 0, extent(tensor), *body), scalars=(made.uniform,))
    expected = interpreted(whole, [x, out], (5,))[-1]
    for role, width in roles:
        result = torch.zeros_like(out)
        assert Machine(scheduled(whole, {"i": (role, width)}))([x, result], (5,)) is None
        torch.testing.assert_close(result, expected, rtol=0, atol=0, msg=f"{role} {width}")


@pytest.mark.parametrize(("seed", "width"), [(0, 1), (0, 16), (1, 4), (2, 64)])
def test_checks_in_random_places_fail_in_lanes_too(seed, width):
    x, out = torch.arange(COUNT), torch.zeros(3, COUNT).long()
    tensor, to = named("x", 0, x), named("out", 1, out)
    made = Generator(seed, tensor)
    failing = when(made.condition([made.i]), (check(op("lt", made.i, 40), "late {0}", op("add", made.i, 0)),))
    late = check(op("lt", made.i, 60), "last {0}", op("add", made.i, 0))
    whole = kernel(
        (tensor, to), loop(made.i, 0, extent(tensor), failing, late, *made.body(to)), scalars=(made.uniform,)
    )
    failed = Machine(scheduled(whole, {"i": (Role.VECTOR, width)}))([x, out], (5,))
    assert failed is not None
    assert 40 <= failed.values[0] <= 60
