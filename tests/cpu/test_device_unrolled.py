"""Unrolled loops of device kernels compute what they compute turn by turn, also where rows are no whole chunks."""

import re
from dataclasses import replace

import pytest
import torch

from brickwork.ir.build import cast, integer
from brickwork.ir.nodes import For, Kernel, Node, Role
from brickwork.ir.walk import rewrite
from support.emulated import Emulated
from support.machine import interpreted, named, scheduled
from support.written import extent, kernel, let, load, loop, op, store, symbol

LENGTHS = [1, 4, 8, 11, 16]


def numbers(*shape, dtype):
    count = torch.Size(shape).numel()
    return (torch.arange(count).reshape(shape) % 7 - 3).to(dtype)


def accumulated(value):
    """Return a sum that is begun, and the statement that adds a value to it."""
    s = symbol("s", value.dtype)
    return s, let(s, cast(integer(0), value.dtype)), let(s, op("add", s, value))


def looking_back(length, dtype):
    """A causal convolution: rows of `w` are read from behind, by lanes that end one after the other."""
    data = numbers(2, length, dtype=dtype), numbers(3, length, dtype=dtype), torch.zeros(3, length, dtype=dtype)
    w, k, out = (named(name, place, each) for place, (name, each) in enumerate(zip(("w", "k", "out"), data)))
    b, t, u = symbol("b"), symbol("t"), symbol("u")
    place = op("add", op("sub", op("sub", extent(k, 1), 1), t), u)
    s, begin, add = accumulated(op("mul", load(w, 1, place), load(k, b, u)))
    row = loop(t, 0, extent(k, 1), begin, loop(u, 0, op("add", t, 1), add), store(out, (b, t), s))
    return kernel((w, k, out), loop(b, 0, extent(k), row)), data


def looking_forward(length, dtype):
    """Its gradient: lanes begin one after the other."""
    data = numbers(2, length, dtype=dtype), numbers(3, length, dtype=dtype), torch.zeros(3, length, dtype=dtype)
    w, g, out = (named(name, place, each) for place, (name, each) in enumerate(zip(("w", "g", "out"), data)))
    b, t, u = symbol("b"), symbol("t"), symbol("u")
    place = op("add", op("sub", op("sub", extent(g, 1), 1), u), t)
    s, begin, add = accumulated(op("mul", load(w, 1, place), load(g, b, u)))
    row = loop(t, 0, extent(g, 1), begin, loop(u, t, extent(g, 1), add), store(out, (b, t), s))
    return kernel((w, g, out), loop(b, 0, extent(g), row)), data


def gathered(length, dtype):
    """The gradient of the weights of a causal convolution: rows are read from what neither index alone says."""
    data = numbers(3, length, dtype=dtype), numbers(3, length, dtype=dtype), torch.zeros(3, length, dtype=dtype)
    g, k, out = (
        named(name, place, each) for place, (name, each) in enumerate(zip(("g", "k", "out"), data, strict=True))
    )
    b, t, u = symbol("b"), symbol("t"), symbol("u")
    place = op("sub", op("add", extent(g, 1), u), op("add", t, 1))
    s, begin, add = accumulated(op("mul", load(g, b, place), load(k, b, u)))
    row = loop(t, 0, extent(k, 1), begin, loop(u, 0, op("add", t, 1), add), store(out, (b, t), s))
    return kernel((g, k, out), loop(b, 0, extent(g), row)), data


def turned(length, dtype):
    """A causal convolution, of which lanes read rows of `k` upwards and iterations downwards."""
    data = numbers(2, length, dtype=dtype), numbers(3, length, dtype=dtype), torch.zeros(3, length, dtype=dtype)
    w, k, out = (named(name, place, each) for place, (name, each) in enumerate(zip(("w", "k", "out"), data)))
    b, t, u = symbol("b"), symbol("t"), symbol("u")
    s, begin, add = accumulated(op("mul", load(w, 1, u), load(k, b, op("sub", t, u))))
    row = loop(t, 0, extent(k, 1), begin, loop(u, 0, op("add", t, 1), add), store(out, (b, t), s))
    return kernel((w, k, out), loop(b, 0, extent(k), row)), data


def product(length, dtype):
    """A matrix product, of which one factor has rows of any length and the other one whole chunks."""
    data = numbers(3, length, dtype=dtype), numbers(length, 8, dtype=dtype), torch.zeros(3, 8, dtype=dtype)
    a, b, out = (named(name, place, each) for place, (name, each) in enumerate(zip(("a", "b", "out"), data)))
    i, j, k = symbol("i"), symbol("j"), symbol("k")
    s, begin, add = accumulated(op("mul", load(a, i, k), load(b, k, j)))
    row = loop(j, 0, extent(b, 1), begin, loop(k, 0, extent(a, 1), add), store(out, (i, j), s))
    return kernel((a, b, out), loop(i, 0, extent(a), row)), data


def running(length, dtype):
    """A running sum, whose steps store beside one another."""
    data = numbers(3, length, dtype=dtype), torch.zeros(3, length, dtype=dtype)
    x, out = (named(name, place, each) for place, (name, each) in enumerate(zip(("x", "out"), data, strict=True)))
    b, u = symbol("b"), symbol("u")
    s, begin, add = accumulated(load(x, b, u))
    return kernel((x, out), loop(b, 0, extent(x), begin, loop(u, 0, extent(x, 1), add, store(out, (b, u), s)))), data


def known_rows(whole: Kernel, multiple: int) -> Kernel:
    """Return a kernel that is run where all rows are multiples of something."""
    facts = (op("eq", op("mod", extent(each, each.type.rank - 1), multiple), 0) for each in whole.tensors)
    return replace(whole, facts=tuple(facts))


def unrolled(whole: Kernel, width: int, factor: int) -> Kernel:
    names = {"b": (Role.PARALLEL, 1), "i": (Role.PARALLEL, 1), "t": (Role.PARALLEL, width), "j": (Role.PARALLEL, width)}
    made = scheduled(whole, names)

    def visit(node: Node) -> Node:
        inner = isinstance(node, For) and node.role is Role.SEQUENTIAL
        return replace(node, unrolled=factor) if inner else node

    made = rewrite(made, visit)
    return replace(made, narrow=(*made.tensors, *made.scalars), aligned=made.tensors)


@pytest.mark.parametrize("make", [looking_back, looking_forward, gathered, turned, product])
@pytest.mark.parametrize(
    ("dtype", "width", "factor"),
    [
        (torch.float32, 1, 4),
        (torch.float32, 4, 8),
        (torch.float32, 8, 16),
        (torch.float32, 16, 16),
        (torch.float64, 2, 4),
    ],
)
def test_unrolled_loops_agree(make, dtype, width, factor):
    emulated = None
    for length in (*LENGTHS, *((33, 48) if width > 4 else ())):
        whole, data = make(length, dtype)
        expected = interpreted(whole, data, ())[-1]
        emulated = emulated or Emulated(unrolled(whole, width, factor))
        assert emulated(data) is None
        torch.testing.assert_close(data[-1], expected, rtol=0, atol=0)


@pytest.mark.parametrize(("dtype", "factor"), [(torch.float32, 4), (torch.float32, 8), (torch.float64, 2)])
def test_steps_that_store_beside_one_another_agree(dtype, factor):
    emulated = None
    for length in LENGTHS:
        whole, data = running(length, dtype)
        expected = interpreted(whole, data, ())[-1]
        emulated = emulated or Emulated(unrolled(whole, 1, factor), optimised=True)
        assert emulated(data) is None
        torch.testing.assert_close(data[-1], expected, rtol=0, atol=0)
    assert f"align {16}" in emulated.text


@pytest.mark.parametrize("make", [looking_back, looking_forward, gathered, turned])
@pytest.mark.parametrize(("dtype", "width"), [(torch.float32, 8), (torch.float32, 16), (torch.float16, 16)])
def test_lanes_that_end_in_chunks_agree(make, dtype, width):
    """Iterations that only some lanes run are written out, and read whole chunks, too."""
    emulated = None
    for length in (16, 32, 48):
        whole, data = make(length, dtype)
        expected = interpreted(whole, data, ())[-1]
        emulated = emulated or Emulated(known_rows(unrolled(whole, width, 16), 16))
        assert emulated(data) is None
        torch.testing.assert_close(data[-1], expected, rtol=0, atol=0)
    masks = re.findall(r"<i1 (?:true|false)(?:, i1 (?:true|false))*>", emulated.text)
    assert len(dict.fromkeys(masks)) == width - 1


@pytest.mark.parametrize("make", [looking_back, gathered])
def test_lanes_that_end_one_after_the_other_have_no_masks_at_run_time(make):
    whole, _ = make(8, torch.float32)
    text = Emulated(unrolled(whole, 4, 4)).text
    assert "<i1 false, i1 true, i1 true, i1 true>" in text
    assert "<i1 false, i1 false, i1 false, i1 true>" in text


@pytest.mark.parametrize("make", [looking_back, looking_forward, gathered])
def test_unrolled_loops_read_whole_chunks_and_nothing_else(make):
    whole, _ = make(8, torch.float32)
    turn = Emulated(unrolled(whole, 4, 4)).text.split("\nturn.")[1].split("\ndone.")[0]
    assert turn.count("load <4 x float>, ptr addrspace(1)") == 20
    assert turn.count("align 16") == 20
    assert "align 4" not in turn
    assert "\nturn." not in Emulated(unrolled(whole, 4, 1)).text


@pytest.mark.parametrize("make", [looking_back, looking_forward, gathered, turned])
@pytest.mark.parametrize(("dtype", "kept"), [(torch.float32, 4), (torch.float16, 2)])
def test_chunks_that_two_turns_have_in_common_are_read_once(make, dtype, kept):
    """Of 31 neighbours a turn reads 16 anew, beside one element that all lanes share in each of its iterations."""
    whole, _ = make(16, dtype)
    text = Emulated(known_rows(unrolled(whole, 16, 16), 16)).text
    before, turn = text.split("\nturn.")[0], text.split("\nturn.")[1].split("\ndone.")[0]
    chunk = rf"load <{16 // kept} x \w+>, ptr addrspace\(1\)"
    assert len(re.findall(chunk, before)) == kept
    assert len(re.findall(chunk, turn)) == kept + 16
