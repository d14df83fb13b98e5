"""What is said of loops on a grid of threads."""

import torch

from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import DTYPES
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import Signature
from brickwork.target.cuda import cuda_target
from brickwork.transform.explain import explain
from brickwork.transform.pipeline import schedule_program

MATRIX = TensorType(DTYPES["float32"], 2, contiguous=True, unit_axis=1)


def told(function):
    """Return what is said of each loop by the name of its index: how it runs, and the line after."""
    signature = Signature((MATRIX,), device="cuda", narrow=True, aligned=True)
    _, (scheduled,) = schedule_program(lower(define(function), signature), cuda_target((9, 0)))
    lines = [line.strip() for line in explain(scheduled).text().splitlines()]
    loops = {
        line.split()[1]: (line.split(": ")[-1], after) for line, after in zip(lines, [*lines[1:], ""], strict=True)
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
