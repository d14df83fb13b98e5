"""How much the compiler does for programs that are longer: calls and questions are counted, not timed."""

import importlib
import importlib.util
import sys
from collections import Counter

import pytest
import torch

from brickwork.analysis import atomic_updates
from brickwork.analysis.analyse import analyse
from brickwork.ir.build import integer
from brickwork.ir.nodes import Assign, For
from brickwork.target.cuda import cuda_target
from brickwork.transform.host_device_partition import Partition
from brickwork.transform.pipeline import schedule_kernel
from brickwork.transform.privatise import OwnerFinder
from support.gradients import derived
from support.lowering import memory, program_of
from support.scheduling import AVX2, GPU, kernel_of
from support.shared import schedule_program
from support.written import symbol

GROWTH = 3.0
"""Calls for a program twice as long, of those for the shorter one: 2.4 where passes go through it once, 3.7 where each
step of a pass goes through all of it."""


def sums(count, folder):
    """Return a function with so many sums, one in terms of the other, in each row."""
    lines = ["import torch", "def sums(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:"]
    lines += ["    out = torch.empty_like(x)", "    for i in range(x.shape[0]):"]
    for place in range(count):
        before = f" + s{place - 1}" if place else ""
        lines += [f"        s{place} = 0.0", "        for j in range(x.shape[1]):"]
        lines += [f"            s{place} += x[i, j] * w[{place}, j]{before}"]
    lines += [
        "        for j in range(x.shape[1]):",
        f"            out[i, j] = x[i, j] * s{count - 1}",
        "    return out",
    ]
    path = folder / f"sums_{count}.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.sums


def calls_of(work):
    """Return how many functions are called, and what came of it."""
    count = 0

    def note(frame, event, argument):  # as the interpreter calls it
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("target", [AVX2, cuda_target((9, 0))], ids=lambda item: item.cpu)
def test_scheduling_grows_with_the_program(target, tmp_path):
    counts = []
    for length in (7, 14):
        arguments = [torch.ones(2, 3), torch.ones(length, 3)]
        program = derived(sums(length, tmp_path), arguments)
        counts.append(calls_of(lambda program=program: schedule_program(program, target)))
    assert counts[1] < GROWTH * counts[0]


def test_a_statement_is_placed_once_however_deep_it_stands(monkeypatch):
    asked = []
    answer = Partition._may_be_host
    monkeypatch.setattr(Partition, "_may_be_host", lambda self, item: asked.append(item) or answer(self, item))
    inner = Assign(symbol=symbol("s"), value=integer(1))
    for _ in range(12):
        inner = For(index=symbol("t"), start=integer(0), stop=integer(9), body=(inner,))
    assert Partition(frozenset()).is_host(inner)
    assert len(asked) == 13


def lists(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        first, second, third = [0.0] * x.shape[1], [0.0] * x.shape[1], [0.0] * x.shape[1]
        for j in range(x.shape[1]):
            first[j] = x[i, j]
            second[j] = first[j] + 1
            third[j] = second[j] * first[j]
        for j in range(x.shape[1]):
            y[i, j] += third[j] * second[j]


def arguments():
    return memory([[1.0, 2.0], [3.0, 4.0]]), memory([[1.0, 2.0], [3.0, 4.0]])


def test_a_loop_is_asked_once_whether_it_owns_scratch_tensors_and_what_it_updates(monkeypatch):
    asked, kept = Counter(), []
    owner, operators = OwnerFinder._is_owner, atomic_updates._operators
    monkeypatch.setattr(
        OwnerFinder,
        "_is_owner",
        lambda self, node: kept.append(self) or asked.update([(self.tensors, id(self), id(node))]) or owner(self, node),
    )
    monkeypatch.setattr(
        atomic_updates, "_operators", lambda node: kept.append(node) or asked.update([id(node)]) or operators(node)
    )
    schedule_program(program_of(lists, *arguments()), GPU)
    assert len(asked) > 2
    assert {*asked.values()} == {1}


def test_a_kernel_that_is_known_is_not_analysed_again_for_a_grid(monkeypatch):
    room = importlib.import_module("brickwork.analysis.analyse")
    kernel, made = kernel_of(lists, *arguments()), []
    answer = room._analysed
    analyse(kernel)
    monkeypatch.setattr(room, "_analysed", lambda node, **how: made.append(node) or answer(node, **how))
    schedule_kernel(kernel, GPU)
    assert kernel not in made
