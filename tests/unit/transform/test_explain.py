"""What is said of loops on a grid of threads."""

import re

import pytest
import torch

from brickwork.ir.dtypes import DTYPES
from brickwork.ir.nodes import If, Store, TensorType
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.explain import explain
from brickwork.transform.explanation import from_json, to_json
from support.scheduling import AVX2
from support.shared import define, lower, schedule_program

MATRIX = TensorType(DTYPES["float32"], 2, contiguous=True, unit_axis=1)


def told(function):
    """Return what is said of each loop by the name of its index: how it runs, and the line after."""
    signature = Signature((MATRIX,), device="cuda", narrow=True, aligned=True)
    _, (scheduled,) = schedule_program(lower(define(function), signature), cuda_target((9, 0)))
    lines = [line.strip() for line in explain(scheduled).text().splitlines()]
    loops = {
        line.split()[1]: (line.split(": ")[-1], after)
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("for ")
    }
    return {name: text for name, text in loops.items() if len(name) == 1}


def centred(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    for i in range(x.shape[0]):
        m = 0.0
        for k in range(3):
            m += x[i, k]
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] - m
        out[i] = s
    return out


def test_loops_between_shared_ones_are_run_by_all_threads():
    said = told(centred)
    assert said["i"][0] == "a block of threads an iteration"
    assert said["k"] == ("in order", "by all threads of a block in lockstep")
    assert said["j"][0] == "shared out among the threads of a block"


def column_sums(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[1])
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i, j]
        out[j] = s
    return out


def test_loops_inside_of_a_thread():
    said = told(column_sums)
    assert said["j"][0].startswith("one thread")
    assert said["i"][0] == "in order, or in pieces if there are few iterations around it"


def flagged(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    for t in range(3):
        for k in range(x.shape[0]):
            out[k] = x[k, t]
        if x[0, 0] > 1.0:
            for j in range(x.shape[0]):
                out[j] = x[j, 1]
        while out[0] > 1.0:
            for i in range(x.shape[0]):
                out[i] = out[i] - 1.0
    return out


def checked(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    for t in range(3):
        for k in range(x.shape[0]):
            out[k] = x[k, t]
        while out[0] > 1.0:
            for i in range(x.shape[0]):
                out[i] = x[int(x[i, 0]), 0]
    return out


def test_loops_that_elements_end_are_for_one_block():
    said = told(flagged)
    assert said["t"][0] == "in order"
    assert said["k"][0].startswith("one thread")
    assert said["j"][0].startswith("one thread")
    assert said["i"][0] == "shared out among the threads of one block"


def test_loops_that_elements_end_are_for_one_thread_where_there_are_checks():
    said = told(checked)
    assert said["i"] == ("in order", "by one thread, since the host cannot tell whether it runs")


def smoothed(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros_like(x)
    for t in range(x.shape[0]):
        for i in range(1, x.shape[1] - 1):
            y[0, i] = x[0, i - 1] + x[0, i + 1]
        for i in range(1, x.shape[1] - 1):
            x[0, i] = y[0, i]
    return y


def test_small_loops_are_for_one_block():
    signature = Signature((MATRIX,), device="cuda", narrow=True, aligned=True)
    _, (scheduled,) = schedule_program(lower(define(smoothed), signature), cuda_target((9, 0)))
    assert "or one block of threads runs all iterations, if that is little in each" in explain(scheduled).text()


def on_processor(function, *tensors):
    """Return what is said of a function on a processor, without the file."""
    _, (scheduled,) = schedule_program(lower(define(function), Signature(tensors)), AVX2)
    return re.sub(r" at \S+:\d+| \S+:\d+:", "", explain(scheduled).text())


VECTOR = TensorType(DTYPES["float32"], 1, contiguous=True, unit_axis=0)
PLACES = TensorType(DTYPES["int64"], 1, contiguous=True, unit_axis=0)


def counted(ptr: torch.Tensor, at: torch.Tensor, x: torch.Tensor, h: torch.Tensor) -> None:
    s = 0.0
    for r in range(x.shape[0]):
        s = s * 0.5 + x[r]
        x[r] = s
        for e in range(ptr[r], ptr[r + 1]):
            h[at[e]] += s


def test_copies_are_told_of_where_they_are_made_and_checks_where_they_stand():
    """No copies are made where the host cannot tell how long a loop is."""
    said = on_processor(counted, PLACES, PLACES, VECTOR, VECTOR)
    assert "own copy" not in said
    assert "for e: in order\n" in said
    assert "index 0 of 'at' read is tested before the loop where that is possible, else checked" in said
    assert "index 0 of 'h' stored into is checked at each execution" in said
    assert said.endswith("where one of these does not hold, all loops run in order")


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_empty(a.shape[0], b.shape[1])
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


@pytest.mark.parametrize(
    ("taken", "marks"),
    [
        ({}, ["", "", ""]),
        ({"tiles": True}, [" (taken)", " (not taken)", " (not taken)"]),
        ({"tiles": False}, [" (not taken)", "", ""]),
        ({"tiles": False, "lanes": True}, [" (not taken)", " (taken)", " (not taken)"]),
        ({"tiles": False, "lanes": False}, [" (not taken)", " (not taken)", " (taken)"]),
    ],
)
def test_each_version_stands_under_its_condition(taken, marks):
    signature = Signature((MATRIX, MATRIX), device="cuda", narrow=True, aligned=True)
    _, (scheduled,) = schedule_program(lower(define(product), signature), cuda_target((7, 5)))
    told = explain(scheduled)
    assert from_json(to_json(told)) == told
    text = told.text(taken)
    assert re.findall(r"^  (?:else )?(?:if .*?|else)( \(.*taken\))?:$", text, re.MULTILINE) == marks
    assert re.findall(r"for j at .*: (.*)", text) == [
        "one thread for 8 neighbouring iterations",
        "one thread for 4 neighbouring iterations",
        "one thread an iteration",
    ]
    assert text.count("inside each thread") == 3 - marks.count(" (not taken)")


def balanced(f: torch.Tensor, g: torch.Tensor, c: torch.Tensor) -> None:
    for b in range(f.shape[0]):
        for s in range(9):
            for i in range(f.shape[1]):
                top = -9.0
                for j in range(g.shape[1]):
                    top = max(top, g[b, j] - c[i, j])
                f[b, i] = top
            for j in range(g.shape[1]):
                top = -9.0
                for i in range(f.shape[1]):
                    top = max(top, f[b, i] - c[i, j])
                g[b, j] = top * 0.5


@pytest.mark.parametrize(("steps", "left_out"), [(None, []), (True, ["balanced"]), (False, ["balanced_steps"])])
def test_of_kernels_of_which_one_runs_the_others_are_said_to_be_left_out(steps, left_out):
    signature = Signature((MATRIX, MATRIX, MATRIX), device="cuda", narrow=True, aligned=True)
    program, kernels = schedule_program(lower(define(balanced), signature), cuda_target((9, 0)))
    (branch,) = {item.branches[0][0] for item in kernels}
    assert [item.branches for item in kernels] == [((branch, True),), ((branch, False),)]
    assert len({node.version for node in statements(program.body) if isinstance(node, If)} - {""}) >= 5
    taken = {} if steps is None else {branch: steps}
    texts = {item.kernel.name: explain(item).text(taken) for item in kernels}
    for name, text in texts.items():
        out = text == f"kernel {name} is not launched for these arguments"
        assert out == (name in left_out)
        assert out != ("for i at " in text)


def test_no_two_kernels_of_a_program_have_a_choice_in_common():
    signature = Signature((MATRIX, MATRIX, MATRIX), device="cuda", narrow=True, aligned=True)
    _, (first, second) = schedule_program(lower(define(balanced), signature), cuda_target((9, 0)))
    names = [[item.guarded, *(version.name for version in item.versions if version.name)] for item in (first, second)]
    assert all(len(part) > 1 for part in names)
    assert not {*names[0]} & {*names[1]}
    for item, found in ((first, names[0]), (second, names[1])):
        inside = {node.version for node in statements(item.kernel.body) if isinstance(node, If)}
        assert {*found} <= inside


def test_updates_that_one_thread_makes_are_not_atomic():
    def scattered(x: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            for t in range(at.shape[1]):
                for j in range(3):
                    out[i, int(at[i, j])] += x[i, j]
                x[i, 0] = out[i, t]

    signature = Signature((MATRIX, MATRIX, MATRIX), device="cuda", narrow=True, aligned=True)
    _, (scheduled,) = schedule_program(lower(define(scattered), signature), cuda_target((9, 0)))
    lines = [line for line in explain(scheduled).lines() if line.loop == "j"]
    assert {(line.role, line.atomic) for line in lines} == {("sequential", ())}
    assert "atomic" not in explain(scheduled).text()
    assert not [node for node in walk(scheduled.kernel.body) if isinstance(node, Store) and node.combine is not None]


def products_of_batches(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[1] // x.shape[0]
    out = x.new_empty(x.shape[0], n, n)
    for b in range(x.shape[0]):
        for i in range(n):
            for j in range(n):
                s = 0.0
                for k in range(n):
                    s += x[b, i * n + k] * x[b, k * n + j]
                out[b, i, j] = s
    return out


def test_loops_that_both_factors_of_a_contraction_go_with_have_tiles_of_their_own():
    signature = Signature((MATRIX,), device="cuda", narrow=True, aligned=True)
    _, (scheduled, *_) = schedule_program(lower(define(products_of_batches), signature), cuda_target((9, 0)))
    text = explain(scheduled).text()
    assert "for b" in text.partition("in tiles of")[0].splitlines()[-2]
    assert "for b" in next(line for line in text.splitlines() if "tiles of its own for each iteration" in line)
