"""Floor division in device kernels, whose ways depend on what is known of the operands."""

import random
from dataclasses import replace

import pytest
import torch

from brickwork.ir.build import cast
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Role
from cpu.test_device_kernels import narrow
from support.emulated import Emulated
from support.machine import named, scheduled
from support.pairs import pairwise
from support.written import extent, kernel, load, loop, op, store, symbol, when

BIG = 2**31
NUMBERS = [0, 1, -1, 2, 5, -7, 99, -100, BIG - 1, BIG, -BIG, -BIG - 1]
NUMBERS += [2**40 + 3, -(2**40) - 3, 2**62, -(2**62), 2**63 - 1]
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


def test_long_naturals():
    """Sizes of more than 32 bits, of which numbers near multiples are divided."""
    made = Emulated(scheduled(_kernel(None), {"i": (Role.PARALLEL, 1)}))
    chosen = random.Random(0)
    sizes = [2**31, 2**32 - 1, 2**33 + 1, 2**52 - 1, 2**53 + 1, 2**62, 2**63 - 1]
    sizes += [chosen.randrange(2**bits, 2 ** (bits + 1)) for bits in range(31, 63)]
    for size in sizes:
        most = (2**63 - 1) // size
        multiples = [size * chosen.randrange(1, most + 1) for _ in range(3)] + [size * most]
        numbers = [near for each in multiples for near in (each - 1, each, min(each + 1, 2**63 - 1), -each, 1 - each)]
        x = torch.tensor(numbers)
        tensors = [x, torch.zeros_like(x), torch.zeros_like(x), torch.zeros(1).expand(size)]
        assert made(tensors) is None
        assert tensors[1].tolist() == [number // size for number in numbers], size
        assert tensors[2].tolist() == [number % size for number in numbers], size


@pytest.mark.parametrize("at", [(0, 0), (2**33 + 4, 2**20 + 2), (2**31 + 7, 5), (4_321_987_654, 999_999)])
def test_threads_of_long_grids_find_their_places(at):
    rows, columns = torch.zeros(1).expand(2**33 + 5), torch.zeros(1).expand(2**20 + 3)
    tensors = (named("rows", 0, rows), named("columns", 1, columns), named("out", 2, torch.zeros(2).long()))
    i, j, u, row, column = (symbol(name) for name in ("i", "j", "u", "row", "column"))
    found = (store(tensors[2], (0,), i), store(tensors[2], (1,), j))
    here = when(op("eq", i, row), (when(op("eq", j, column), found),))
    inner = loop(j, 0, extent(tensors[1]), loop(u, 0, 1, here))
    whole = kernel(tensors, loop(i, 0, extent(tensors[0]), inner), scalars=(row, column))
    made = Emulated(scheduled(whole, {"i": (Role.PARALLEL, 1), "j": (Role.PARALLEL, 1)}))
    out = torch.full((2,), -1)
    context = made.context([rows, columns, out], at)
    across, _, threads, teams = made.geometry(context)
    block = (at[0] * columns.numel() + at[1]) // threads
    made.run_block((block % across, block // across), (across, 1), (threads, teams), context)
    assert tuple(out.tolist()) == at


@pytest.mark.parametrize(("size", "width", "narrowed"), pairwise([1, 2, 3, 7, 32, 1000003], [1, 4], [False, True]))
def test_sizes_have_reciprocals(size, width, narrowed):
    whole = scheduled(_kernel(None), {"i": (Role.PARALLEL, width)})
    whole = narrow(whole) if narrowed else whole
    assert _run(whole, size) == ([number // size for number in NUMBERS], [number % size for number in NUMBERS])


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize(("limit", "least"), [("ge", 1), ("gt", 2), ("ge", -5)])
def test_facts_tell_which_numbers_are_natural(limit, least, width):
    """Neighbours that go up in steps are divided by a product with a reciprocal, where a fact tells of one."""
    by, out = symbol("by"), torch.zeros(2, 41, dtype=torch.int64)
    to, i = named("out", 0, out), symbol("i")
    place = op("add", op("mul", i, 3), 1)
    body = (store(to, (row, i), op(name, place, by)) for row, name in enumerate(("floordiv", "mod")))
    whole = narrow(kernel((to,), loop(i, 0, extent(to, 1), *body), scalars=(by,)))
    made = Emulated(scheduled(replace(whole, facts=(op(limit, by, least),)), {"i": (Role.PARALLEL, width)}))
    assert (" sdiv " in made.text) == (least < 0)
    for divisor in {max(least + (limit == "gt"), 1), 3, 7, 1000, *([-3] if least < 0 else [])}:
        assert made([out], (divisor,)) is None
        assert out.tolist() == [[(3 * n + 1) // divisor for n in range(41)], [(3 * n + 1) % divisor for n in range(41)]]


@pytest.mark.parametrize(
    ("size", "width", "narrowed", "down"),
    pairwise([1, 2, 3, 4, 5, 16, 61], [1, 2, 4, 8], [False, True], [False, True]),
)
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


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 1000, BIG, 2**33 + 1, 2**62])
def test_literals_that_are_positive(divisor, width):
    whole = scheduled(_kernel(divisor), {"i": (Role.PARALLEL, width)})
    assert _run(whole, 7) == ([number // divisor for number in NUMBERS], [number % divisor for number in NUMBERS])


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_bits_of_small_integers(dtype, width):
    """What is computed of a few bits takes 32, whatever is shifted by."""
    limits = torch.iinfo(dtype)
    numbers = [limits.min, limits.max, 0, 1, 100, limits.min // 3, limits.max // 3, 77]
    shifts = [0, 1, 4, 7, 31, 32, 40, 63, 64, 70]
    pairs = [(number, shift) for number in numbers for shift in shifts]
    x, by = torch.tensor([one for one, _ in pairs], dtype=dtype), torch.tensor([other for _, other in pairs])
    out, real = torch.zeros(4, len(pairs), dtype=torch.int64), torch.zeros(2, len(pairs))
    given, amount, to, wide = (named(*each) for each in zip(("x", "by", "to", "wide"), range(4), (x, by, out, real)))
    i = symbol("i")
    moved, steady = op("shift_right", load(given, i), load(amount, i)), op("shift_right", load(given, i), 4)
    values = [moved, op("bit_and", moved, 15), op("sub", op("bit_and", steady, 15), 8), op("mul", steady, 3)]
    body = [store(to, (row, i), value) for row, value in enumerate(values)]
    body += [store(wide, (row, i), cast(values[place], FLOAT32)) for row, place in enumerate((0, 2))]
    whole = kernel((given, amount, to, wide), loop(i, 0, extent(given), *body))
    assert Emulated(scheduled(whole, {"i": (Role.PARALLEL, width)}))([x, by, out, real]) is None
    found = [number >> shift for number, shift in pairs]
    few = [(number >> 4 & 15) - 8 for number, _ in pairs]
    products = [(number >> 4) * 3 for number, _ in pairs]
    assert out.tolist() == [found, [number & 15 for number in found], few, products]
    assert torch.equal(real, torch.tensor([found, few]).float())
