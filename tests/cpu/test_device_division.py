"""Floor division in device kernels, whose ways depend on what is known of the operands."""

import pytest
import torch

from brickwork.ir.nodes import Role
from cpu.test_device_kernels import narrow
from support.emulated import Emulated
from support.machine import named, scheduled
from support.written import extent, kernel, load, loop, op, store, symbol

BIG = 2**31
NUMBERS = [0, 1, -1, 2, 5, -7, 99, -100, BIG - 1, BIG, -BIG, -BIG - 1, 2**40 + 3, -(2**40) - 3, 2**62, -(2**62)]
DIVISORS = [1, -1, 2, -2, 3, 7, -10, 1000, BIG - 1, -BIG, BIG, 2**33 + 1]


def _kernel(divisor, scalars=()):
    x = torch.tensor(NUMBERS)
    tensors = (named("x", 0, x), named("quotient", 1, x), named("rest", 2, x), named("like", 3, torch.zeros(7)))
    i = symbol("i")
    value = load(tensors[0], i)
    divisor = extent(tensors[3]) if divisor is None else divisor
    body = [store(tensors[1], (i,), op("floordiv", value, divisor)), store(tensors[2], (i,), op("mod", value, divisor))]
    return kernel(tensors, loop(i, 0, extent(tensors[0]), *body), scalars=scalars)


def _run(whole, size, scalars=()):
    x = torch.tensor(NUMBERS)
    tensors = [x, torch.zeros_like(x), torch.zeros_like(x), torch.zeros(size)]
    assert Emulated(whole)(tensors, scalars) is None
    return tensors[1].tolist(), tensors[2].tolist()


@pytest.mark.parametrize("width", [1, 4])
def test_any_integers(width):
    by = symbol("by")
    whole = scheduled(_kernel(by, (by,)), {"i": (Role.PARALLEL, width)})
    for divisor in DIVISORS:
        expected = [number // divisor for number in NUMBERS], [number % divisor for number in NUMBERS]
        assert _run(whole, 7, (divisor,)) == expected


@pytest.mark.parametrize("narrowed", [False, True])
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 32, 1000003])
def test_sizes_have_reciprocals(size, width, narrowed):
    whole = scheduled(_kernel(None), {"i": (Role.PARALLEL, width)})
    whole = narrow(whole) if narrowed else whole
    assert _run(whole, size) == ([number // size for number in NUMBERS], [number % size for number in NUMBERS])


@pytest.mark.parametrize("narrowed", [False, True])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 61])
@pytest.mark.parametrize("down", [False, True])
def test_neighbours_that_wrap(size, width, narrowed, down):
    x, tile = torch.zeros(200), torch.arange(float(size))
    to, tensor = named("out", 0, x), named("tile", 1, tile)
    i, first = symbol("i"), symbol("first")
    place = op("sub", first, i) if down else op("add", first, i)
    value = load(tensor, op("mod", place, extent(tensor)))
    whole = scheduled(
        kernel((to, tensor), loop(i, 0, extent(to), store(to, (i,), value)), scalars=(first,)),
        {"i": (Role.PARALLEL, width)},
    )
    for start in (0, -77, 1000) if narrowed else (0, 2**40, -(2**40)):
        result = x.clone()
        assert Emulated(narrow(whole) if narrowed else whole)([result, tile], (start,)) is None
        assert result.tolist() == [(start - n if down else start + n) % size for n in range(200)]
