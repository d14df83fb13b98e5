"""Few long rows, along which blocks go several times, are shared out among several blocks, and mean the same."""

# pyright: basic
from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT32, INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Check,
    Draw,
    Failure,
    FailureKind,
    For,
    If,
    Launch,
    Load,
    Local,
    Random,
    Rebind,
    Role,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.transform import split_reductions, split_rows
from brickwork.transform.scratch import names_of
from support.scheduling import GPU
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    few = split_reductions.Limits(few=8, least=2, unit=2, enough=12, most=3)
    for name in ("EVEN", "RAGGED"):
        monkeypatch.setattr(split_rows, name, few)
    monkeypatch.setattr(split_rows, "few_iterations", lambda _target: 1)


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        m = -math.inf
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = 0.0
        for j in range(x.shape[1]):
            s += math.exp(x[i, j] - m)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - m) / s
    return out


def centred(x: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(p.shape[0] - 1):
        s = 0.0
        for j in range(p[i], p[i + 1]):
            s += x[j]
        s /= max(p[i + 1] - p[i], 1)
        for j in range(p[i], p[i + 1]):
            out[j] = x[j] - s
    return out


def means(x: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    out = x.new_zeros(p.shape[0] - 1)
    for i in range(p.shape[0] - 1):
        s = 0.0
        for j in range(p[i], p[i + 1]):
            s += x[j]
        out[i] = s / max(p[i + 1] - p[i], 1)
    return out


def lamb(p: torch.Tensor, g: torch.Tensor, starts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose a variable by what was summed, which is assigned before, too."""
    out, update = torch.zeros_like(p), torch.zeros_like(p)
    for k in bw.prange(starts.shape[0] - 1):
        pp, uu = 0.0, 0.0
        for i in range(starts[k], starts[k + 1]):
            update[i] = g[i] + p[i]
            pp += p[i] * p[i]
            uu += update[i] * update[i]
        ratio = 1.0
        if pp > 0.0 and uu > 0.0:
            ratio = pp - uu
        for i in range(starts[k], starts[k + 1]):
            out[i] = p[i] - ratio * update[i]
    return out, update


def from_where_it_is_greatest(x: torch.Tensor) -> torch.Tensor:
    """Search, and go on from the place."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        most, at = -100.0, 0
        for j in range(x.shape[1]):
            if x[i, j] > most:
                most, at = x[i, j], j
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * at + most
    return out


def planes(x: torch.Tensor) -> torch.Tensor:
    """Sum over two axes at once, behind a variable that is computed again."""
    out = torch.zeros_like(x)
    for n in range(x.shape[0]):
        scale = x[n, 0, 0] + 1.0
        s, t = 0.0, 0.0
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                s += x[n, i, j] * scale
        mean = s / 2.0
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                t += abs(x[n, i, j] - mean)
        if t > 3.0:
            mean += scale
            t = 3.0
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                out[n, i, j] = x[n, i, j] * t - mean
    return out


def again(x: torch.Tensor) -> torch.Tensor:
    """Accumulate into one variable twice, and store what it is worth between the loops, and behind."""
    out = x.new_zeros((x.shape[0], 3))
    for i in range(x.shape[0]):
        s = 1.0
        for j in range(x.shape[1]):
            s += x[i, j]
        out[i, 0] = s
        for j in range(1, x.shape[1]):
            s += x[i, j] * 2.0
        out[i, 1] = s
        s *= 2.0
        out[i, 2] = s
    return out


def names_used_again(x: torch.Tensor) -> torch.Tensor:
    """Let each loop have a variable of the same name, which no other reads."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            value = x[i, j] * 2.0
            s += value
        for j in range(x.shape[1]):
            value = x[i, j] + s
            out[i, j] = value
    return out


def in_place(x: torch.Tensor) -> None:
    """Change the row that was read before."""
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        for j in range(x.shape[1]):
            x[i, j] -= s


def first_changes(x: torch.Tensor) -> None:
    """Read first what the row changes: it would be another value if it was read again."""
    for i in range(x.shape[0]):
        first = x[i, 0]
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        for j in range(x.shape[1]):
            x[i, j] -= s * first


def one_after_the_other(x: torch.Tensor) -> torch.Tensor:
    """Do something in order between the loops."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        t = 1.0
        for k in range(3):
            t = t * 0.5 + s
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] - t
    return out


def choices(program):
    return [node for node in walk(program) if isinstance(node, If) and node.version.startswith("pieces of rows")]


def scheduled(function, *arguments):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    verify_program(pieces)
    return pieces


def run(program, arguments):
    memories = [*map(to_memory, arguments)]
    results = run_program(program, memories, check=True)
    return [*map(to_tensor, (*memories, *results))]


def expected(function, arguments):
    """What the program means as it is written."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    return run(lower(define(function), signature), arguments)


def whole(*size):
    return torch.randint(-3, 4, size, generator=torch.Generator().manual_seed(sum(size))).float()


EVEN = [
    (softmax, 5),
    (from_where_it_is_greatest, 3),
    (again, 4),
    (names_used_again, 3),
    (in_place, 3),
]


@pytest.mark.parametrize(("function", "launches"), EVEN)
@pytest.mark.parametrize("size", [(2, 9), (1, 4), (1, 23), (8, 12), (3, 1), (9, 12), (0, 7), (3, 0)])
def test_rows_in_pieces_mean_the_same(function, launches, size):
    program = scheduled(function, whole(*size))
    assert {sum(isinstance(node, Launch) for node in choice.then) for choice in choices(program)} == {launches}
    x = whole(*size)
    for one, other in zip(run(program, [x]), expected(function, [x]), strict=True):
        assert torch.allclose(one, other)


@pytest.mark.parametrize("size", [(2, 3, 5), (1, 1, 9), (1, 9, 1), (9, 3, 3), (2, 1, 1), (2, 4, 4)])
def test_pieces_are_of_all_loops_that_are_shared_out_together(size):
    x = whole(*size)
    program = scheduled(planes, x)
    assert choices(program)
    for one, other in zip(run(program, [x]), expected(planes, [x]), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("function", [centred, means])
@pytest.mark.parametrize(
    "ends", [[0, 20], [0, 3, 3, 18, 20], [2, 2], [0, 1, 2, 3], [5, 9, 19, 20], [0] * 12, [-4, 4], [0, 21], [3, 1, 7]]
)
def test_elements_may_end_rows_that_are_in_pieces(function, ends):
    x, p = whole(20), torch.tensor(ends)
    program = scheduled(function, x, p)
    assert choices(program)
    try:
        wanted = expected(function, [x, p])
    except IndexError:
        with pytest.raises(IndexError):
            run(program, [x, p])
        return
    for one, other in zip(run(program, [x, p]), wanted, strict=True):
        assert torch.allclose(one, other)


def test_variables_pass_from_loop_to_loop():
    p, g, starts = whole(20), whole(20) - 1.0, torch.tensor([0, 0, 12, 20])
    program = scheduled(lamb, p, g, starts)
    assert choices(program)
    for one, other in zip(run(program, [p, g, starts]), expected(lamb, [p, g, starts]), strict=True):
        assert torch.equal(one, other)


def test_a_row_has_pieces_by_sizes_alone():
    """None is for a piece of no iteration, but where a row is shorter than others may be."""
    (choice, *_) = choices(scheduled(in_place, whole(2, 9)))
    made = [node for node in choice.then if isinstance(node, Allocate)]
    assert [item.tensor.name for item in made] == ["s_partial", "s_kept"]


@pytest.mark.parametrize("function", [first_changes, one_after_the_other])
def test_what_cannot_be_computed_again_or_alone_keeps_rows_whole(function):
    x = whole(2, 9)
    program = scheduled(function, x)
    assert not choices(program)
    for one, other in zip(run(program, [x]), expected(function, [x]), strict=True):
        assert torch.equal(one, other)


def changed_behind_a_loop(x: torch.Tensor) -> torch.Tensor:
    """Change a variable that a row keeps where no loop that joins it is: a thread might read it too late."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j]
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] - s
        s *= 2.0
        for j in range(x.shape[1]):
            x[i, j] = s
    return out


def test_what_a_thread_keeps_no_other_may_still_read():
    assert not choices(scheduled(changed_behind_a_loop, whole(2, 9)))


I, P, T, U, V = (Symbol(name, number, FLOAT32 if number > 2 else INT64) for number, name in enumerate("iptuv", 1))
ZERO, ONE = build.integer(0), build.constant(1.0, FLOAT32)
X, Y = (
    Tensor(name, number, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0)) for number, name in ((1, "x"), (2, "y"))
)
ELEMENT = Load(tensor=X, indices=(ZERO,), access=1, dtype=FLOAT32)
LIST = Local(tensor=replace(X, number=3, sizes=(2,)))
DRAWN = Random(draw=Draw.UNIFORM, key=ZERO, counter=ZERO, extra=ZERO, site=0, dtype=FLOAT32)
FAILS = Check(condition=build.constant(True, BOOL), failure=Failure(FailureKind.INDEX, ()))


def given(symbol, value):
    return Assign(symbol=symbol, value=value)


def stored(tensor):
    return Store(tensor=tensor, indices=(ZERO,), value=ONE, access=2)


def loop(*body, role=Role.THREAD):
    return For(index=P, start=ZERO, stop=build.integer(3), body=body, role=role)


@pytest.mark.parametrize(
    ("first", "inside", "behind", "may"),
    [
        ((given(T, ELEMENT),), stored(Y), stored(Y), True),
        ((given(T, ELEMENT),), stored(X), stored(Y), False),
        ((given(T, ELEMENT),), stored(Y), stored(X), False),
        ((stored(Y),), stored(Y), stored(Y), False),
        ((given(T, DRAWN),), stored(Y), stored(Y), False),
        ((given(T, ONE),), given(T, DRAWN), stored(Y), False),
        ((given(T, ONE),), stored(Y), given(T, DRAWN), False),
        ((given(T, ONE),), Rebind(targets=(X, Y), sources=(Y, X)), stored(Y), False),
        ((given(T, ONE),), stored(Y), FAILS, False),
        ((FAILS,), stored(Y), stored(Y), False),
        ((given(T, ONE),), FAILS, stored(Y), True),
        ((given(T, ONE),), stored(Y), LIST, False),
        ((LIST,), stored(Y), stored(Y), False),
        ((given(T, ONE),), LIST, stored(Y), True),
        ((given(T, ONE),), stored(Y), loop(given(T, ONE), role=Role.SEQUENTIAL), False),
        ((loop(given(T, ONE), role=Role.SEQUENTIAL),), stored(Y), stored(Y), False),
    ],
)
def test_what_may_be_computed_again_and_what_stands_alone(first, inside, behind, may):
    phase = split_rows._Phase(loop(inside), (behind,), ZERO, ZERO, ragged=False)
    assert split_rows._may_be_cut(first, [phase]) is may


@pytest.mark.parametrize(
    ("nests", "known", "left"),
    [
        ([("rows", given(U, ONE)), ("piece", given(V, build.read(U)))], (), "u"),
        ([("piece", given(V, build.read(U)))], (U,), ""),
        ([("piece", given(V, build.read(U))), ("rows", given(U, ONE))], (), None),
        ([("piece", given(T, ONE)), ("rows", given(U, build.read(T)))], (T,), None),
        ([("piece", given(T, ONE)), ("piece", given(V, ONE)), ("rows", given(U, build.read(T)))], (T,), None),
        ([("piece", given(T, ONE)), ("piece", given(V, ONE)), ("rows", given(U, build.read(V)))], (V,), None),
        ([("piece", given(T, ONE)), ("rows", given(T, ONE)), ("piece", given(V, build.read(T)))], (), "t"),
    ],
)
def test_variables_that_are_read_later_are_left_by_rows(nests, known, left):
    row = For(index=I, start=ZERO, stop=build.integer(3), body=(), role=Role.BLOCK)
    first = tuple(given(symbol, ONE) for symbol in known)
    cutter = split_rows._Cutter((row,), first, None, names_of((row,), 9), 1, build.integer(3), build.integer(2))
    made = [split_rows._Nest((item,), loop() if kind == "piece" else None) for kind, item in nests]
    assert cutter.joined(made) is (left is not None)
    assert "".join(symbol.name for symbol in cutter.cells) == (left or "")
