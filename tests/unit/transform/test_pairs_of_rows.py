"""Rows that pairs of elements begin and end, or count: independent where none meets an earlier one, which is tested."""

# pyright: basic
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.interpret import run_kernel, run_program
from brickwork.ir.nodes import Ascending, Launch, Size
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform import derive
from brickwork.transform.derivation import Backward, Derived
from brickwork.transform.explain import explain
from support.lowering import argument_type, memory, nested
from support.scheduling import GPU, same
from support.shared import define, lower, schedule_program

Function = Callable[..., object]


def ended(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    for i in range(min(len(s), len(t))):
        for e in range(s[i], t[i]):
            x[e] = x[e] * 2 + i


def counted(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    for i in range(min(len(s), len(t))):
        for j in range(t[i]):
            x[s[i] + j] = x[s[i] + j] * 2 + i


def counted_from(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """Go along rows themselves, from the end."""
    for i in range(min(len(s), len(t))):
        for e in range(s[i], s[i] + t[i]):
            x[2 * s[i] + t[i] - 1 - e] = x[2 * s[i] + t[i] - 1 - e] * 2 + i


def left(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """Leave rows early."""
    for i in range(min(len(s), len(t))):
        much = 0.0
        for e in range(s[i], t[i]):
            x[e] = x[e] * 2 + much
            much += x[e]
            if much > 9:
                break


def beyond(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """Store one element after a row."""
    for i in range(min(len(s), len(t))):
        for j in range(t[i] + 1):
            x[s[i] + j] = x[s[i] + j] * 2 + i


def ahead(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """Read the element before a row."""
    for i in range(min(len(s), len(t))):
        for e in range(s[i], t[i]):
            if e > 0:
                x[e] = x[e - 1] * 2 + i


def of_the_next(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """End rows where the next one ends."""
    for i in range(min(len(s), len(t)) - 1):
        for e in range(s[i], t[i + 1]):
            x[e] = x[e] * 2 + i


def one_row(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    for i in range(min(len(s), len(t))):
        for e in range(s[0], t[0]):
            x[e] = x[e] * 2 + i


def made(key: torch.Tensor, s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """Find where rows begin and end before they are gone along."""
    for e in range(len(key)):
        if e == 0 or key[e] != key[e - 1]:
            s[key[e]] = e
        t[key[e]] = e + 1
    for i in range(min(len(s), len(t))):
        for e in range(s[i], t[i]):
            x[e] = x[e] * 2 + i


def passed_on(key: torch.Tensor, s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """Count beforehand what is added."""
    much = 0.0
    for e in range(len(key)):
        s[key[e]] += 1
        much += key[e]
    for i in range(min(len(s), len(t))):
        for e in range(s[i], t[i]):
            x[e] = x[e] * 2 + much


def exchanged(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor):
    """Exchange tensors before rows are gone along."""
    y = torch.zeros_like(x)
    for n in range(3):
        for e in range(len(x)):
            y[e] = x[e] + n
        x, y = y, x
    for i in range(min(len(s), len(t))):
        for e in range(s[i], t[i]):
            x[e] = x[e] * 2 + i
    return x


def added(s: torch.Tensor, t: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
    for i in range(min(len(s), len(t))):
        for j in range(t[i]):
            x[s[i] + j] += y[i]


def transmitted(x: torch.Tensor, s: torch.Tensor, t: torch.Tensor):
    """Weigh the points of rays, as far as light reaches."""
    out = torch.zeros_like(x)
    for i in range(min(len(s), len(t))):
        much = 1.0
        for e in range(s[i], t[i]):
            out[e] = much * x[e]
            much *= 1.0 - x[e]
            if much < 0.3:
                break
    return out


S, T = memory([0, 3, 0, 5], INT64), memory([3, 5, 0, 7], INT64)
LENGTHS = memory([3, 2, 0, 2], INT64)
X = memory([float(i) for i in range(8)], FLOAT64)
CASES = [(ended, T), (counted, LENGTHS), (counted_from, LENGTHS), (left, T)]
OTHERS = [(beyond, LENGTHS), (ahead, T), (of_the_next, T), (one_row, T)]


def independent(function: Function, *, last: str = "t", count: bool) -> bool:
    """Whether rows are independent where it is known of tensors that they begin and end rows which are apart."""
    program = lower(define(function), Signature(tuple(map(argument_type, (S, T, X)))))
    (kernel,) = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    tensors = {tensor.name: tensor for tensor in kernel.tensors}
    known = Ascending(tensors["s"], (Size(tensor=tensors["x"], axis=0),), tensors[last], count)
    loops = analyse(replace(kernel, ascending=(known,))).loops
    return next(verdict.independent for index, verdict in loops.items() if index.name == "i")


def kernels_of(function: Function, *arguments: object) -> list[str]:
    """Return the kernels that a function is run as on a grid."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    return [item.kernel.name for item in schedule_program(lower(define(function), signature), GPU)[1]]


@pytest.mark.parametrize(("function", "last"), CASES)
def test_rows_are_independent_where_they_are_apart(function, last) -> None:
    assert independent(function, count=last is LENGTHS)
    assert last is T or not independent(function, count=False)
    assert not independent(function, last="s", count=last is LENGTHS)


@pytest.mark.parametrize(("function", "last"), OTHERS)
def test_other_places_than_those_of_rows_are_not_independent(function, last) -> None:
    assert not independent(function, count=last is LENGTHS)


@pytest.mark.parametrize(("function", "last"), CASES + OTHERS)
@pytest.mark.parametrize("starts", [[0, 3, 0, 5], [0, 2, 0, 5], [5, 0, 0, 3], [0, 3, 5], [-8, -5, 0, -3], [0, 3, 6, 5]])
def test_rows_are_the_same_whether_they_meet_or_not(function, last, starts) -> None:
    same(function, memory(starts, INT64), last, X)


@pytest.mark.parametrize("function", [ended, counted, counted_from])
@pytest.mark.parametrize(
    ("starts", "ends", "answer"),
    [
        ([0, 3, 5], [3, 5, 8], 0),
        ([0, 3, 0, 5], [3, 5, 0, 8], 0),
        ([0, 3, 8, 5], [3, 5, 8, 8], 0),
        ([1, 4], [3, 6], 0),
        ([], [], 0),
        ([0, 2, 5], [3, 5, 8], 1),
        ([3, 0], [5, 3], 1),
        ([0, 5, 2], [1, 8, 3], 1),
        ([0, 3], [3, 9], 1),
        ([-1, 3], [3, 5], 1),
        ([0, 9], [3, 9], 1),
        ([0, 3, 4], [3, 5], 0),
    ],
)
def test_rows_that_meet_or_are_out_of_range_are_found(function, starts, ends, answer) -> None:
    lengths = [end - start for start, end in zip(starts, ends, strict=False)]
    given = {"s": memory(starts, INT64), "t": memory(ends if function is ended else lengths, INT64), "x": X}
    assert answer_of(function, given) == answer


@pytest.mark.parametrize("length", [-1, 2**62, 2**63 - 1])
def test_lengths_are_compared_before_they_are_added(length) -> None:
    given = {"s": memory([0, 3, 5], INT64), "t": memory([3, length, 2], INT64), "x": X}
    assert answer_of(counted, given) == 1
    given["t"] = memory([3, 2, 2], INT64)
    assert answer_of(counted, given) == 0


@pytest.mark.parametrize(("change", "answer"), [({}, 0), ({700: 699}, 1), ({3: 2}, 1), ({999: 3}, 1), ({256: 255}, 1)])
def test_rows_of_all_chunks_are_compared(change, answer) -> None:
    starts = [change.get(place, place) for place in range(1000)]
    given = {"s": memory(starts, INT64), "t": memory([1] * 1000, INT64), "x": memory([0.0] * 1000, FLOAT64)}
    assert answer_of(counted, given) == answer


def answer_of(function: Function, given: dict[str, object]) -> int:
    """Return what the kernel finds that tests rows."""
    types = tuple(map(argument_type, given.values()))
    program = lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))
    (test,) = [item.source for item in schedule_program(program, GPU)[1] if item.kernel.name.endswith("_rows")]
    rows = min(len(nested(given["s"])), len(nested(given["t"])))
    chunks = 1 + rows // 256
    made = {f"s_{name}": memory([0] * chunks, INT64) for name in ("least", "most")}
    answer = memory([5], INT64)
    memories = given | made | {f"{function.__name__}_broken": answer}
    run_kernel(test, [memories[tensor.name] for tensor in test.tensors])
    return answer.data[0]


def test_only_kernels_with_more_that_is_independent_are_taken_apart() -> None:
    for function, last in CASES:
        name = function.__name__
        found = kernels_of(function, S, last, X)
        assert found[-3:] == [f"{name}_rows", name, f"{name}_in_order"]
    for function, last in OTHERS:
        assert not any(name.endswith("_rows") for name in kernels_of(function, S, last, X))


def test_where_rows_begin_may_be_found_by_nests_before() -> None:
    keys = memory([0, 0, 1, 1, 3, 3, 3], INT64)
    none = memory([0, 0, 0, 0], INT64)
    assert "made_rows" in " ".join(kernels_of(made, keys, none, none, X)).replace("_last_stores", "")
    same(made, keys, none, memory([0, 0, 0, 0], INT64), X)
    same(made, memory([0, 1, 0, 1, 0], INT64), none, memory([0, 0, 0, 0], INT64), X)


@pytest.mark.parametrize("starts", [[0, 3, 0, 5], [0, 2, 0, 5]])
def test_nests_that_pass_something_on_stay_together(starts) -> None:
    same(passed_on, memory([0, 0, 1, 2], INT64), memory(starts, INT64), T, X)
    same(exchanged, memory(starts, INT64), T, X)


def test_updates_are_single_steps_whether_rows_meet_or_not() -> None:
    assert kernels_of(added, S, LENGTHS, X, X) == ["added"]


@pytest.mark.parametrize("starts", [[0, 3, 0, 5], [0, 2, 0, 5]])
def test_gradients_of_rows_that_are_left_are_the_same_whether_they_meet_or_not(starts) -> None:
    points = [0.25, 0.5, 0.125, 0.5, 0.75, 0.25, 0.5, 0.5]
    given = [memory(points, FLOAT64), memory(starts, INT64), T, memory([float(i) for i in range(8)], FLOAT64)]
    made = Derived(define(transmitted), Backward((True, False, False)), (True,), (0, 1, 2), (True, True, True))
    signature = Signature(tuple(map(argument_type, given)), device="cuda", narrow=True, aligned=True)
    program = derive.program_of(made, signature)
    ways, kernels = schedule_program(program, GPU)
    names = [item.kernel.name for item in kernels]
    assert names[-3:] == ["transmitted_rows", "transmitted", "transmitted_in_order"]
    loops = {index.name: verdict for index, verdict in kernels[-2].analysis.loops.items()}
    assert loops["i"].independent
    results = [[nested(item) for item in run_program(each, given, check=each is ways)] for each in (program, ways)]
    assert results[0] == results[1]


def test_what_is_tested_is_said() -> None:
    for function, last, words in ((ended, T, "ends at one of 't'"), (counted, LENGTHS, "is as long as one of 't'")):
        types = tuple(map(argument_type, (S, last, X)))
        program = lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))
        _, order = schedule_program(program, GPU)[1][-2:]
        rows = schedule_program(program, GPU)[1][-2]
        assert words in explain(rows).text()
        assert "where that does not hold: all runs in order" in explain(order).text()
