"""Where float64 of tiles lie in shared memory: threads read what was staged, terms of both factors in one order."""

from itertools import product
from types import SimpleNamespace

import pytest

from brickwork.analysis.contractions import Along
from brickwork.codegen import tile_places, tile_products
from brickwork.codegen.tile_places import Places
from brickwork.codegen.tile_products import Warp
from brickwork.ir.dtypes import FLOAT64

EACH, TERMS, CHUNK = 8, 16, 2


class Writer:
    """Gives addresses for loads, and of a pair both addresses."""

    def load(self, kind, address, *_, **__):
        return (address, address + EACH) if kind.startswith("<") else address

    def emit(self, text):
        pair, item = text.removeprefix("extractelement <2 x double> (").split("), i32 ")
        return int(pair.split(",")[int(item)])


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    for module in (tile_places, tile_products):
        monkeypatch.setattr(module, "shared", lambda _, at: at)


def tile(threads, *, spread):
    return SimpleNamespace(dtype=FLOAT64, bytes_each=EACH, staged=TERMS, chunk=CHUNK, threads=threads, spread=spread)


def staged(side, whole):
    """Return which row and term lies at an address."""
    found = {}
    for thread in range(whole.threads):
        places = Places(SimpleNamespace(writer=None), whole, side, thread, "")
        for number, item in product(range(places.count), range(CHUNK)):
            across, along = int(places.across(number)), int(places.first_along) + item * places.stride
            pair = (across, along) if side.along is Along.DEPTH else (along, across)
            found[places.address(0, number) + EACH * item] = pair
    return found


def read(side, whole):
    """Return the addresses that the lanes of a warp read at once, by the first row, the step and the number."""
    state = SimpleNamespace(writer=Writer())
    warps = [Warp(state, whole, lane, 0, 0, ()) for lane in range(32)]
    return {
        (first, step): [warp._line(side, 0, first, step) for warp in warps]
        for first, step in product(range(0, side.size, 8), range(2))
    }


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize("spread", [False, True])
def test_lanes_read_their_rows_and_both_factors_the_same_terms(threads, spread):
    whole, size = tile(threads, spread=spread), threads // 2
    orders = []
    for along, turned in ((Along.DEPTH, False), (Along.DEPTH, True), (Along.SIDE, False)):
        side = SimpleNamespace(along=along, size=size, turned=turned, offset=0, part_bytes=size * 128)
        there, terms = staged(side, whole), {}
        assert len(there) == size * TERMS
        for (first, step), lanes in read(side, whole).items():
            for lane, (number, address) in product(range(32), enumerate(zip(*lanes, strict=True))):
                row, term = there[address[lane]]
                assert row == first + lane // 4
                assert terms.setdefault((step, lane % 4, number), term) == term
            together = [address for pair in lanes for address in pair] if along is Along.DEPTH else None
            for number, half in product(range(2), range(2)):
                few = [pair[number] for pair in lanes[16 * half : 16 * half + 16]]
                banks = few if together is None else together[16 * (2 * number + half) : 16 * (2 * number + half) + 16]
                assert len({address // EACH % 16 for address in banks}) == 16
        assert sorted(terms.values()) == [*range(TERMS)]
        orders.append(terms)
    assert orders[0] == orders[1] == orders[2]
