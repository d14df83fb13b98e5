"""Sums of products of whole numbers by tiles: those that bfloat16 has, and so many that a word has room for the sum."""

import random

import pytest
import torch

from brickwork.ir.nodes import Apply, Constant, For, Size
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform.pipeline import schedule_program
from support.fuzz.check_contractions import few_rows
from support.fuzz.execute import in_interpreter
from support.scheduling import GPU
from support.shared import define, lower, verify_program
from support.tensors import argument_type

Tensor = torch.Tensor


def product(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            y[i, j] = s


def in_place(a: Tensor, b: Tensor, y: Tensor) -> None:
    for k in range(a.shape[1]):
        for i in range(a.shape[0]):
            for j in range(b.shape[1]):
                y[i, j] += a[i, k] * b[k, j]


def masked(a: Tensor, b: Tensor, y: Tensor) -> None:
    """A mask, a number that the sum is taken times, and a statement after the sum."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 7
            for k in range(a.shape[1]):
                if k <= i:
                    s += 3 * a[i, k] * b[k, j]
            y[i, j] = s - j if s > 0 else s


def shifted(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0
            for k in range(a.shape[1]):
                s += (a[i, k] - 3) * b[k, j]
            y[i, j] = s


def twice(a: Tensor, b: Tensor, y: Tensor) -> None:
    """A factor goes beyond 256, and bfloat16 has not all of its numbers."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0
            for k in range(a.shape[1]):
                s += (a[i, k] + a[i, k] + a[i, k]) * b[k, j]
            y[i, j] = s


def at_the_end_of_floats(a: Tensor, b: Tensor, out: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += float(a[i, k]) * float(b[k, j]) * 1e305
            out[i, j] = s


def in_floats(a: Tensor, b: Tensor, y: Tensor) -> None:
    """A sum of whole numbers that begins with a float, and so is a float64."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.5
            for k in range(a.shape[1]):
                s -= a[i, k] * b[k, j]
            y[i, j] = s / 2.0 if s > 0.0 else s


def scaled_ahead(a: Tensor, b: Tensor, y: Tensor) -> None:
    """What scales each product may be infinite, and some products 0."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            f = y[i, j] + 1.0
            s = 0.0
            for k in range(a.shape[1]):
                s -= a[i, k] * b[k, j] * f
            y[i, j] = s


def scaled_whole(a: Tensor, b: Tensor, y: Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            f = y[i, j] + 1
            s = 0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j] * f
            y[i, j] = s


def scheduled(function, left, right, result=torch.int64):
    given = (torch.zeros(8, 8, dtype=dtype) for dtype in (left, right, result))
    types = tuple(map(argument_type, given))
    program = lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))
    with few_rows():
        pieces, kernels = schedule_program(program, GPU)
    verify_program(pieces)
    return pieces, kernels


def has_tiles(pieces):
    return any(isinstance(node, For) and node.role.is_tile for node in walk(pieces))


@pytest.mark.parametrize(
    "types", [(torch.int8, torch.int8), (torch.int8, torch.uint8), (torch.uint8, torch.uint8)], ids=str
)
@pytest.mark.parametrize("function", [product, in_place, masked, shifted, scaled_whole, twice])
def test_sums_of_whole_numbers_are_those_of_plain_python(function, types):
    pieces, _ = scheduled(function, *types)
    assert has_tiles(pieces) is (function is not twice)
    run, source = in_interpreter(pieces), random.Random(function.__name__)
    for _ in range(8):
        rows, terms, columns = (source.choice(sizes) for sizes in ((1, 2, 7), (1, 4, 9), (1, 4, 8)))
        a, b = (
            torch.randint(torch.iinfo(dtype).min, torch.iinfo(dtype).max + 1, shape, dtype=dtype)
            for dtype, shape in zip(types, ((rows, terms), (terms, columns)), strict=True)
        )
        found = torch.randint(-5, 5, (rows, columns))
        wanted = found.clone()
        run(a, b, found)
        function(a.long(), b.long(), wanted)
        assert torch.equal(found, wanted)


@pytest.mark.parametrize("types", [(torch.int8, torch.int8), (torch.uint8, torch.int8)], ids=str)
def test_sums_of_whole_numbers_may_be_floats(types):
    pieces, _ = scheduled(in_floats, *types, torch.float64)
    assert has_tiles(pieces)
    for rows, terms, columns in ((1, 1, 1), (7, 9, 8), (2, 4, 4)):
        a, b = (
            torch.randint(torch.iinfo(dtype).min, torch.iinfo(dtype).max + 1, shape, dtype=dtype)
            for dtype, shape in zip(types, ((rows, terms), (terms, columns)), strict=True)
        )
        found, wanted = torch.zeros(2, rows, columns, dtype=torch.float64)
        in_interpreter(pieces)(a, b, found)
        in_floats(a.long(), b.long(), wanted)
        assert torch.equal(found, wanted)


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (in_floats, (torch.float64, torch.float64)),
        (in_floats, (torch.bfloat16, torch.float64)),
        (in_floats, (torch.int16, torch.int8)),
        (scaled_ahead, (torch.int8, torch.int8)),
        (at_the_end_of_floats, (torch.int8, torch.int8)),
    ],
)
def test_other_numbers_have_sums_in_float64(function, types):
    """The tiles are those of float64, whose sums may have any length."""
    pieces, kernels = scheduled(function, *types, torch.float64)
    assert has_tiles(pieces)
    asked = [node for kernel in kernels for each in kernel.versions for node in walk(each.conditions)]
    assert {node.value for node in asked if isinstance(node, Constant)}.isdisjoint({(2**31 - 1) // 2**14})
    a, b = (torch.randint(-9, 9, shape).to(dtype) for shape, dtype in zip(((7, 9), (9, 8)), types, strict=True))
    found, wanted = torch.zeros(2, 7, 8, dtype=torch.float64)
    in_interpreter(pieces)(a, b, found)
    function(a.double(), b.double(), wanted)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("types", [(torch.int16, torch.int8), (torch.int8, torch.int64)], ids=str)
def test_wider_numbers_are_none_that_bfloat16_has(types):
    assert not has_tiles(scheduled(product, *types)[0])


@pytest.mark.parametrize(("dtype", "most"), [(torch.int8, (2**31 - 1) // 2**14), (torch.uint8, (2**31 - 1) // 255**2)])
def test_a_word_has_room_for_the_sum(dtype, most):
    """The host asks how long the sum is before tiles are launched."""
    _, kernels = scheduled(product, dtype, dtype)
    asked = [
        int(limit.value)
        for kernel in kernels
        for version in kernel.versions
        for condition in version.conditions
        for node in (condition,)
        if isinstance(node, Apply)
        and node.operator.name == "le"
        and isinstance(node.operands[0], Size)
        and isinstance(limit := node.operands[1], Constant)
    ]
    assert most in asked
