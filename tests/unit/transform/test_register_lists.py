"""Lists whose length is a size, in the registers of a thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.nodes import Constant, For, If
from brickwork.ir.walk import statements
from brickwork.transform.privatise import ROOM
from brickwork.transform.register_lists import FEW, LENGTHS
from support.lowering import memory
from support.ptx import assemble, program_for_gpu, ptx_of
from support.scheduling import GPU, same
from support.shared import schedule_program

Tensor = torch.Tensor


def scan(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        for t in range(x.shape[1]):
            y = 0.0
            for j in range(w.shape[0]):
                s[j] = s[j] * w[j] + x[b, t]
                y += s[j]
            x[b, t] = y


def until(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [1.0] * w.shape[0]
        for t in range(x.shape[1]):
            for j in range(w.shape[0]):
                if w[j] > 0.5:
                    continue
                s[j] += x[b, t]
                if s[j] > 3.0:
                    break
        for j in range(w.shape[0]):
            x[b, 0] += s[j] * w[j]


def anywhere(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        for t in range(x.shape[1]):
            s[t % w.shape[0]] += x[b, t]
        for j in range(w.shape[0]):
            x[b, 0] += s[j] * w[j]


def from_the_second(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        for t in range(x.shape[1]):
            for j in range(1, w.shape[0]):
                s[j] += s[j - 1] + x[b, t]
        for j in range(w.shape[0]):
            x[b, 0] += s[j] * w[j]


def triangle(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * (b + 1)
        for j in range(b + 1):
            s[j] = w[j % w.shape[0]] * x[b, 0]
        for j in range(b + 1):
            x[b, j % x.shape[1]] += s[j]


def as_long_as_data_say(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        n = 1
        if x[b, 0] > 0.5:
            n = w.shape[0]
        for t in range(x.shape[1]):
            for j in range(n):
                s[j] = s[j] * 0.5 + x[b, t]
        for j in range(n):
            x[b, 0] += s[j] * w[j]


def as_long_as_an_element_says(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        for t in range(x.shape[1]):
            for j in range(int(w[0] * 2.0)):
                s[j] = s[j] * 0.5 + x[b, t]
        for j in range(int(w[0] * 2.0)):
            x[b, 0] += s[j]


def one_of_two(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        r = [0.0] * w.shape[0]
        for t in range(x.shape[1]):
            r[t % w.shape[0]] += x[b, t]
            for j in range(w.shape[0]):
                s[j] = s[j] * w[j] + x[b, t]
        for j in range(w.shape[0]):
            x[b, 0] += s[j] * r[j]


def moved_by_a_number(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        for t in range(x.shape[1]):
            for j in range(w.shape[0] - 1):
                s[(j + t) % 2 + j - j] += x[b, t]
            for j in range(w.shape[0]):
                s[j] = s[j] * w[j]
        for j in range(w.shape[0]):
            x[b, 0] += s[j]


MEMORY = [
    anywhere,
    from_the_second,
    triangle,
    as_long_as_data_say,
    as_long_as_an_element_says,
    moved_by_a_number,
]
"""Their lists stay in memory."""


def arguments(rows: int, items: int) -> tuple[Tensor, Tensor]:
    return torch.arange(1.0, 3 * rows + 1).reshape(rows, 3) / 8, torch.arange(1.0, items + 1) / (items + 1)


@pytest.mark.parametrize("items", [1, 2, FEW - 1, FEW, FEW + 1, ROOM - 1, ROOM, ROOM + 1])
@pytest.mark.parametrize("function", [scan, until, one_of_two, *MEMORY])
def test_lists_of_all_lengths(function: Callable[..., object], items: int) -> None:
    x, w = arguments(2, items)
    same(function, memory(x.tolist()), memory(w.tolist()))


def versions(function: Callable[..., object]) -> set[str]:
    program, _ = schedule_program(program_for_gpu(function, *arguments(2, 3)), GPU)
    return {node.version for node in statements(program.body) if isinstance(node, If)} - {""}


@pytest.mark.parametrize("function", [scan, until])
def test_some_lengths_have_versions(function: Callable[..., object]) -> None:
    named = {f"{'' if exact else 'at most '}{items} items of s" for items, exact in LENGTHS if items <= ROOM}
    assert named <= versions(function)


@pytest.mark.parametrize("function", MEMORY)
def test_places_that_are_no_literals_and_lengths_of_their_own_need_memory(function: Callable[..., object]) -> None:
    assert not any("items" in version for version in versions(function))


def test_the_lists_are_in_registers(tmp_path: Path) -> None:
    found = assemble(ptx_of([program_for_gpu(scan, *arguments(2, 3))], GPU), GPU, tmp_path)
    stacks = sorted(each.stack for each in found.values() if each.registers > 16)
    assert stacks[:3] == [0, 0, 0]
    assert stacks[-1] == 4 * ROOM


def with_other_loops(x: Tensor, w: Tensor) -> None:
    for b in range(x.shape[0]):
        s = [0.0] * w.shape[0]
        for t in range(x.shape[1]):
            y = 0.0
            for j in range(w.shape[0]):
                y = y * w[j] + x[b, t]
            for j in range(w.shape[0]):
                s[j] = s[j] * w[j] + y
                y = y * 0.5 + s[j]
            for j in range(1, w.shape[0]):
                y = y * y + w[j]
            x[b, t] = y


@pytest.mark.parametrize("items", [1, 3, FEW, ROOM])
def test_other_loops_of_that_length_end_so_too(items: int) -> None:
    x, w = arguments(2, items)
    same(with_other_loops, memory(x.tolist()), memory(w.tolist()))
    program, _ = schedule_program(program_for_gpu(with_other_loops, *arguments(2, 3)), GPU)
    chosen = {node.version: node.then for node in statements(program.body) if isinstance(node, If)}
    for version, most in ((f"{FEW} items of s", FEW), (f"at most {FEW} items of s", None)):
        loops = [node for node in statements(chosen[version]) if isinstance(node, For) and node.index.name == "j"]
        ends = {node.stop.value if isinstance(node.stop, Constant) else None for node in loops[:2]}
        assert ends == {most, FEW}
        assert not any(isinstance(node.stop, Constant) for node in loops if node.start != build.integer(0))
