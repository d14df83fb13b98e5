"""Entries of programs for CUDA, with a driver that is played in Python; see `support/fake_cuda.py`."""

import ctypes
import struct
from dataclasses import replace
from itertools import count

import pytest
import torch

from brickwork.codegen.builder import FailureSite
from brickwork.codegen.convention import context_layout
from brickwork.diagnostics.location import NOWHERE
from brickwork.host.layout import Placement, is_narrow
from brickwork.ir.build import apply, constant, integer, read
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Break,
    Cast,
    Check,
    Continue,
    Failure,
    FailureKind,
    For,
    If,
    KeyParameter,
    ListParameter,
    Load,
    Program,
    Return,
    Role,
    ScalarParameter,
    Store,
    Symbol,
    TensorParameter,
    TensorType,
    While,
)
from brickwork.ir.signature import NARROW_EXTENT
from brickwork.pytorch.gate import ArgumentKind
from support.entries import kernel, size, tensor, type_of
from support.fake_cuda import CONTEXTS, DRAWN, STREAMS, CudaRig

T, KEY, INT, FLOAT, FLAG, INTS = (
    ArgumentKind.TENSOR,
    ArgumentKind.OPTIONAL_TENSOR,
    ArgumentKind.INT,
    ArgumentKind.FLOAT,
    ArgumentKind.BOOL,
    ArgumentKind.INT_LIST,
)
numbers = count(5000)


def symbol(name, dtype=INT64):
    return Symbol(name, next(numbers), dtype)


def shared_loop(target, value, *, start=None):
    """Return a PARALLEL loop that stores `value(index)` into a tensor of rank 1."""
    index = symbol("i")
    store = Store(tensor=target, indices=(read(index),), value=value(index), access=1)
    first = integer(0) if start is None else start
    return (For(index=index, start=first, stop=size(target, 0), body=(store,), role=Role.PARALLEL),)


def loaded(source, index, access=0):
    return Load(tensor=source, indices=(read(index),), access=access, dtype=FLOAT32)


def adding(x, *, name="add", narrow=True, aligned=True, amount=1.0):
    """Return `out = x + amount`."""
    source, out = tensor("x", type_of(x)), tensor("out", type_of(torch.empty(3)))
    body = shared_loop(out, lambda i: apply("add", loaded(source, i), constant(amount, FLOAT32)))
    return Program(
        name="adding",
        parameters=(TensorParameter(source),),
        body=(
            Allocate(tensor=out, sizes=(size(source, 0),)),
            kernel(name, body, (source, out)),
            Return(tensors=(out,)),
        ),
        device="cuda",
        narrow=narrow,
        aligned=aligned,
    )


@pytest.fixture
def add():
    rig = CudaRig([T])
    rig.add(adding(torch.empty(3)))
    return rig


def test_a_kernel_is_launched_on_torchs_stream_in_the_devices_context(add):
    x = torch.arange(1000.0)
    (y,) = add.call(x)
    assert torch.equal(y, x + 1)
    (launch,) = add.gpu.launches
    assert (launch.grid, launch.block) == ((32, 1, 1), (32, 1, 1))
    assert (launch.stream, launch.context) == (STREAMS[0], CONTEXTS[0])
    assert add.gpu.contexts == [CONTEXTS[0]]
    assert add.gpu.allocated == [(1, 0)]
    assert add.gpu.handles == 0
    assert add.missed == 0


def test_the_context_is_the_record_the_owner_and_what_the_kernel_names(add):
    x = torch.arange(5.0)
    add.record_on_device.value = 0xDE71CE
    (y,) = add.call(x)
    words = add.gpu.launches[0].words
    assert words == (0xDE71CE, add.next, x.data_ptr(), 5, 1, y.data_ptr(), 5, 1)


@pytest.mark.parametrize("current", [[], [CONTEXTS[0]], [0xBAD]])
def test_another_devices_context_is_made_current_for_the_launch_alone(add, current):
    x = add.place(torch.arange(3.0), 1, 1)
    add.gpu.contexts[:] = current
    (y,) = add.call(x)
    assert y.tolist() == [1, 2, 3]
    assert add.gpu.launches[0].context == CONTEXTS[1]
    assert add.gpu.launches[0].stream == STREAMS[1]
    assert add.gpu.contexts == current
    assert add.gpu.allocated == [(1, 1)]


def test_an_empty_grid_is_not_launched(add):
    (y,) = add.call(torch.empty(0))
    assert y.shape == (0,)
    assert not add.gpu.launches
    assert add.gpu.handles == 0


def test_other_devices_and_other_architectures_miss(add):
    x = add.place(torch.ones(3), 0, 0)
    assert add.call(x) is None
    y = add.place(torch.ones(3), 1, 2)
    assert add.call(y) is None
    add.devices[1] = 80
    assert add.call(torch.ones(3)) is None
    assert add.call(add.place(torch.ones(3), 1, 1)) is not None
    add.devices[1], add.devices[2] = 90, 0
    assert add.call(torch.ones(3)) is None
    assert add.missed == 4
    assert add.gpu.handles == 0


def two_tensors(*, aligned=True):
    rig = CudaRig([T, T])
    x, y, out = (tensor(name, type_of(torch.empty(3))) for name in ("x", "y", "out"))
    body = shared_loop(out, lambda i: apply("mul", loaded(x, i), loaded(y, i, 2)))
    program = Program(
        name="two",
        parameters=(TensorParameter(x), TensorParameter(y)),
        body=(Allocate(tensor=out, sizes=(size(x, 0),)), kernel("mul", body, (x, y, out)), Return(tensors=(out,))),
        device="cuda",
        narrow=True,
        aligned=aligned,
    )
    rig.add(program)
    return rig


def test_all_tensors_have_to_be_on_one_device():
    rig = two_tensors()
    here, there = rig.place(torch.ones(3), 1, 0), rig.place(torch.ones(3), 1, 1)
    assert rig.call(here, there) is None
    assert rig.call(there, here) is None
    assert rig.call(there, rig.place(torch.ones(3), 1, 1))[0].tolist() == [1, 1, 1]


# ---------------------------------------------------------------- narrow and aligned


def test_aligned_and_other_calls_have_entries_of_their_own():
    rig = CudaRig([T])
    rig.add(adding(torch.empty(3)))
    x = torch.zeros(9)
    assert rig.call(x) is not None
    assert rig.call(x[4:]) is not None
    assert rig.call(x[1:]) is None
    assert rig.call(x[1:1]) is not None
    rig.add(adding(torch.empty(3), aligned=False, amount=5.0))
    assert rig.call(x[1:])[0][0] == 5
    assert rig.call(x)[0][0] == 1


def test_a_call_is_aligned_if_all_tensors_are():
    x = torch.zeros(9)
    for aligned, fits in ((True, [True, False, False, False]), (False, [False, True, True, True])):
        rig = two_tensors(aligned=aligned)
        calls = [(x, x), (x, x[1:]), (x[1:], x), (x[1:], x[2:])]
        assert [rig.call(one[:5], two[:5]) is not None for one, two in calls] == fits


@pytest.mark.parametrize(
    ("sizes", "strides", "fits"),
    [
        ((2, 3), (1, 1), True),
        ((2, 3), (NARROW_EXTENT - 3, 1), True),
        ((2, 3), (NARROW_EXTENT - 2, 1), False),
        ((0, 3), (NARROW_EXTENT - 1, 1), True),
        ((0, 3), (NARROW_EXTENT, 1), False),
        ((0, (1 << 28) - 1), (1, 1), True),
        ((0, 1 << 28), (1, 1), False),
        ((0, 1 << 27), (1, 1 << 30), True),
        ((1 << 16, 1 << 15), (0, 0), False),
        ((1 << 16, 0, (1 << 15) - (1 << 9)), (0, 0, 0), True),
        ((1 << 16, 0, 1 << 15), (0, 0, 0), False),
        (((1 << 28) - 1,) * 9, (0,) * 9, False),
        ((1, 1 << 27), (1, 1 << 30), False),
        ((), (), True),
    ],
)
def test_narrow_tensors_are_those_that_python_takes_for_narrow(sizes, strides, fits):
    rig = CudaRig([T])
    block = (ctypes.c_int64 * (1 + 2 * len(sizes)))(0, *sizes, *strides)
    native = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64)(rig.symbols["bw_narrow"])
    assert native(ctypes.addressof(block), len(sizes)) is fits
    assert is_narrow([Placement(0, sizes, strides, 8)], ()) is fits


def scaled(dtype=INT64):
    """Return `out = x * n` for an int, narrow."""
    x, out, n = tensor("x", type_of(torch.empty(3))), tensor("out", type_of(torch.empty(3))), symbol("n", dtype)
    body = shared_loop(out, lambda i: apply("mul", loaded(x, i), constant(2.0, FLOAT32)))
    return Program(
        name="scaled",
        parameters=(TensorParameter(x), ScalarParameter(n)),
        body=(Allocate(tensor=out, sizes=(size(x, 0),)), kernel("scale", body, (x, out), (n,)), Return(tensors=(out,))),
        device="cuda",
        narrow=True,
        aligned=True,
    )


def test_narrow_and_other_calls_have_entries_of_their_own():
    far, near = torch.ones(1).expand(1 << 28), torch.ones(1).expand(2)
    rig = CudaRig([T], execute=lambda _: None)
    rig.add(adding(far))
    assert rig.call(far) is None
    assert rig.call(near) is not None
    rig.add(adding(far, name="wide", narrow=False))
    assert rig.call(near) is not None
    assert rig.call(far) is not None
    assert [launch.kernel.name for launch in rig.gpu.launches] == ["add", "add", "wide"]


def test_an_integer_makes_a_call_wide():
    rig = CudaRig([T, INT])
    rig.add(replace(scaled(), narrow=False))
    assert rig.call(torch.ones(3), (1 << 28) - 1) is None
    assert rig.call(torch.ones(3), -(1 << 40)) is not None


_FARTHEST = [(0, True), ((1 << 28) - 1, True), (1 - (1 << 28), True), (1 << 28, False), (-(1 << 28), False)]


@pytest.mark.parametrize(("value", "fits"), _FARTHEST)
def test_integers_of_narrow_calls_are_small(value, fits):
    rig = CudaRig([T, INT])
    rig.add(scaled())
    assert (rig.call(torch.ones(3), value) is not None) is fits
    for far in (-(1 << 63), (1 << 63) - 1):
        assert rig.call(torch.ones(3), far) is None


# ---------------------------------------------------------------- scalars and loops of the host


def test_scalars_are_words_and_float32_its_bits():
    x, out = tensor("x", type_of(torch.empty(3))), tensor("out", type_of(torch.empty(3)))
    n, s, single, flag = symbol("n"), symbol("s", FLOAT64), symbol("single", FLOAT32), symbol("flag", BOOL)
    body = shared_loop(out, lambda i: apply("mul", loaded(x, i), read(single)))
    program = Program(
        name="scalars",
        parameters=(TensorParameter(x), *(ScalarParameter(each) for each in (n, s, flag, single))),
        body=(
            Allocate(tensor=out, sizes=(size(x, 0),)),
            kernel("k", body, (x, out), (n, s, single, flag)),
            Return(tensors=(out,)),
        ),
        device="cuda",
        narrow=True,
        aligned=True,
    )
    rig = CudaRig([T, INT, FLOAT, FLAG, FLOAT])
    rig.add(program)
    (y,) = rig.call(torch.ones(2), -7, 2.5, True, 0.5)
    assert y.tolist() == [0.5, 0.5]
    launch = rig.gpu.launches[0]
    layout = context_layout(launch.kernel, device=True)
    words = [launch.words[layout.scalars[each]] for each in (n, s, single, flag)]
    bits = struct.unpack("<Q", struct.pack("<d", 2.5))[0], struct.unpack("<I", struct.pack("<f", 0.5))[0]
    assert words == [2**64 - 7, bits[0], bits[1], 1]


def stepping():
    """Return a program whose host loop launches: steps double, are left out, and stop early."""
    x, out, n = tensor("x", type_of(torch.empty(3))), tensor("out", type_of(torch.empty(3))), symbol("n")
    t, u = symbol("t"), symbol("u")
    start = shared_loop(out, lambda i: loaded(x, i))
    plus = shared_loop(out, lambda i: apply("add", loaded(out, i), _float(t)))
    minus = shared_loop(out, lambda i: apply("sub", loaded(out, i, 3), constant(1.0, FLOAT32)))
    loop = For(
        index=t,
        start=integer(1),
        stop=read(n),
        body=(
            If(condition=apply("eq", read(t), integer(2)), then=(Continue(),)),
            If(condition=apply("eq", read(t), integer(5)), then=(Break(),)),
            kernel("plus", plus, (out,), (t,)),
        ),
    )
    countdown = While(
        prelude=(),
        condition=apply("gt", read(u), integer(0)),
        body=(kernel("minus", minus, (out,)), Assign(symbol=u, value=apply("sub", read(u), integer(1)))),
    )
    return Program(
        name="stepping",
        parameters=(TensorParameter(x), ScalarParameter(n)),
        body=(
            Allocate(tensor=out, sizes=(size(x, 0),)),
            kernel("start", start, (x, out)),
            loop,
            Assign(symbol=u, value=read(n)),
            countdown,
            Return(tensors=(out,)),
        ),
        device="cuda",
        narrow=True,
        aligned=True,
    )


def _float(value):
    return Cast(operand=read(value), dtype=FLOAT32)


@pytest.mark.parametrize(
    ("n", "names"),
    [
        (0, ["start"]),
        (2, ["start", "plus", "minus", "minus"]),
        (3, ["start", "plus", *["minus"] * 3]),
        (4, ["start", "plus", "plus", *["minus"] * 4]),
        (9, ["start", "plus", "plus", "plus", *["minus"] * 9]),
    ],
)
def test_host_loops_launch_in_order(n, names):
    rig = CudaRig([T, INT])
    rig.add(stepping())
    rig.gpu.contexts.clear()
    (y,) = rig.call(torch.zeros(4), n)
    assert [launch.kernel.name for launch in rig.gpu.launches] == names
    steps = [t for t in range(1, min(n, 5)) if t != 2]
    assert y.tolist() == [sum(steps) - n] * 4
    assert rig.gpu.contexts == []
    assert rig.gpu.handles == 0


def test_launches_after_branches_that_did_not_launch():
    x, out, flag = tensor("x", type_of(torch.empty(3))), tensor("out", type_of(torch.empty(3))), symbol("flag", BOOL)
    first = kernel("first", shared_loop(out, lambda i: loaded(x, i)), (x, out))
    second = kernel("second", shared_loop(out, lambda i: apply("neg", loaded(x, i))), (x, out))
    program = Program(
        name="branching",
        parameters=(TensorParameter(x), ScalarParameter(flag)),
        body=(
            Allocate(tensor=out, sizes=(size(x, 0),)),
            If(condition=read(flag), then=(first, Return(tensors=(out,)))),
            second,
            Return(tensors=(out,)),
        ),
        device="cuda",
        narrow=True,
        aligned=True,
    )
    rig = CudaRig([T, FLAG])
    rig.add(program)
    rig.gpu.contexts[:] = [0xBAD]
    assert rig.call(torch.ones(2), True)[0].tolist() == [1, 1]
    assert rig.gpu.contexts == [0xBAD]
    assert rig.call(torch.ones(2), False)[0].tolist() == [-1, -1]
    assert rig.gpu.contexts == [0xBAD]


def test_scratch_tensors_of_a_loop_are_given_up():
    x, out, scratch = (tensor(name, type_of(torch.empty(3))) for name in ("x", "out", "scratch"))
    t = symbol("t")
    body = (
        Allocate(tensor=scratch, sizes=(size(x, 0),)),
        kernel("fill", shared_loop(scratch, lambda i: loaded(x, i)), (x, scratch)),
        kernel("copy", shared_loop(out, lambda i: loaded(scratch, i)), (scratch, out)),
    )
    program = Program(
        name="scratching",
        parameters=(TensorParameter(x),),
        body=(
            Allocate(tensor=out, sizes=(size(x, 0),)),
            For(index=t, start=integer(0), stop=integer(4), body=body),
            Return(tensors=(out,)),
        ),
        device="cuda",
        narrow=True,
        aligned=True,
    )
    rig = CudaRig([T])
    rig.add(program)
    assert rig.call(torch.ones(2))[0].tolist() == [1, 1]
    assert len(rig.gpu.allocated) == 5
    assert rig.gpu.handles == 0


# ---------------------------------------------------------------- failures


def test_an_earlier_failure_is_raised_first(add):
    add.pending = IndexError("index 7 of an earlier launch")
    add.fail_on_device()
    for _ in range(2):
        x = torch.ones(3)
    with pytest.raises(IndexError, match="earlier launch"):
        add.call(x)
    assert not add.gpu.launches
    assert add.gpu.handles == 0
    assert add.call(x)[0].tolist() == [2, 2, 2]


def test_a_failure_that_another_thread_took_stops_nothing(add):
    add.fail_on_device()
    assert add.call(torch.ones(3))[0].tolist() == [2, 2, 2]
    assert add.asked == 1


def test_a_refused_launch_gives_everything_up(add):
    add.gpu.refused = 719
    add.gpu.contexts.clear()
    with pytest.raises(RuntimeError, match="error 719 in specialisation 0"):
        add.call(torch.ones(3))
    assert add.gpu.handles == 0
    assert add.gpu.contexts == []
    add.gpu.refused = 0
    assert add.call(torch.ones(3))[0].tolist() == [2, 2, 2]


def test_memory_that_torch_does_not_have(add):
    add.gpu.full = True
    add.gpu.contexts.clear()
    with pytest.raises(MemoryError, match=r"allocate 12 bytes, for a tensor of shape \[3\] of float32 \("):
        add.call(torch.ones(3))
    assert add.gpu.handles == 0
    assert not add.gpu.launches


def test_checks_of_the_host_between_launches_fail_at_once():
    x, out, n = tensor("x", type_of(torch.empty(3))), tensor("out", type_of(torch.empty(3))), symbol("n")
    check = Check(
        condition=apply("lt", read(n), size(x, 0)),
        failure=Failure(FailureKind.ASSERTION, "{} is too much"),
        values=(read(n),),
    )
    copy = kernel("copy", shared_loop(out, lambda i: loaded(x, i)), (x, out))
    program = Program(
        name="checking",
        parameters=(TensorParameter(x), ScalarParameter(n)),
        body=(Allocate(tensor=out, sizes=(size(x, 0),)), copy, check, Return(tensors=(out,))),
        device="cuda",
        narrow=True,
        aligned=True,
    )
    rig = CudaRig([T, INT])
    of_the_device = FailureSite(Failure(FailureKind.INDEX, "on the device"), (), NOWHERE)
    rig.add(program, before=[of_the_device])
    rig.gpu.contexts[:] = [0xBAD]
    with pytest.raises(AssertionError, match=r"^5 is too much \(checking\)$"):
        rig.call(torch.ones(3), 5)
    assert rig.gpu.contexts == [0xBAD]
    assert rig.gpu.handles == 0
    assert rig.call(torch.ones(3), 2) is not None


def test_results_that_depend_on_the_order_of_threads_are_refused_where_torch_is_told_to():
    rig = CudaRig([T])
    rig.add(adding(torch.empty(3)), nondeterministic=True)
    assert rig.call(torch.ones(3)) is not None
    rig.gpu.deterministic = True
    with pytest.raises(RuntimeError, match=r"^adding does not have a deterministic implementation, but you set"):
        rig.call(torch.ones(3))
    assert rig.gpu.handles == 0
    rig.gpu.warns = True
    assert rig.call(torch.ones(3)) is not None
    rig.gpu.warns = False
    rig.add(adding(torch.empty(3)))
    assert rig.call(torch.ones(3)) is not None


# ---------------------------------------------------------------- keys


@pytest.fixture
def draw():
    x = tensor("x", type_of(torch.empty(3)))
    cell = tensor("cell", TensorType(INT64, 1, contiguous=True, unit_axis=0))
    out = tensor("out", type_of(torch.empty(1, dtype=torch.int64)))
    value = Load(tensor=cell, indices=(integer(0),), access=0, dtype=INT64)
    body = (Store(tensor=out, indices=(integer(0),), value=value, access=1),)
    program = Program(
        name="keyed",
        parameters=(TensorParameter(x), KeyParameter(symbol("key"), cell)),
        body=(Allocate(tensor=out, sizes=(integer(1),)), kernel("k", body, (cell, out)), Return(tensors=(out,))),
        device="cuda",
        narrow=True,
        aligned=True,
    )
    rig = CudaRig([T, KEY])
    rig.add(program)
    return rig


def test_keys_are_drawn_by_torchs_generator_of_the_device(draw):
    x = draw.place(torch.ones(1), 1, 1)
    assert draw.call(x, None)[0].item() == DRAWN
    assert draw.gpu.allocated == [(1, 1), (1, 1)]
    assert draw.gpu.handles == 0


def test_keys_on_the_device_are_read_in_place(draw):
    key = torch.tensor(-12345678901234)
    assert draw.call(torch.ones(1), key)[0].item() == key.item()
    assert draw.gpu.launches[0].words[2:5] == (key.data_ptr(), 1, 1)
    assert len(draw.gpu.allocated) == 1
    assert draw.gpu.handles == 0


@pytest.mark.parametrize("value", [0, -1, 1 << 40, -(1 << 63) + 5])
def test_keys_on_the_cpu_are_set_by_the_stream(draw, value):
    key = draw.place(torch.tensor([value]), 0, -1)
    draw.gpu.contexts.clear()
    assert draw.call(torch.ones(1), key)[0].item() == value
    assert [word for _, word, _ in draw.gpu.memsets] == [value % 2**32, value >> 32 & 0xFFFFFFFF]
    assert {stream for _, _, stream in draw.gpu.memsets} == {STREAMS[0]}
    assert draw.gpu.handles == 0
    assert draw.gpu.contexts == []


def test_keys_of_another_kind_miss(draw):
    x = torch.ones(1)
    assert draw.call(x, torch.ones(1)) is None
    assert draw.call(x, torch.ones(2, dtype=torch.int64)) is None
    assert draw.call(x, draw.place(torch.ones(1, dtype=torch.int64), 1, 1)) is None
    assert draw.call(x, draw.place(torch.ones(1, dtype=torch.int64), 2, 0)) is None
    assert draw.gpu.handles == 0


def test_keys_that_cannot_be_made(draw):
    draw.gpu.full = True
    draw.gpu.contexts.clear()
    with pytest.raises(RuntimeError, match="error -1"):
        draw.call(torch.ones(1), None)
    draw.gpu.full, draw.gpu.exhausted = False, True
    with pytest.raises(RuntimeError, match="error -2"):
        draw.call(torch.ones(1), None)
    assert draw.gpu.handles == 0
    assert draw.gpu.contexts == []


def test_a_call_that_fails_gives_the_key_up(draw):
    draw.gpu.refused = 2
    with pytest.raises(RuntimeError, match="error 2"):
        draw.call(torch.ones(1), draw.place(torch.tensor([3]), 0, -1))
    with pytest.raises(RuntimeError, match="error 2"):
        draw.call(torch.ones(1), None)
    assert draw.gpu.handles == 0


def test_lists_of_integers():
    x, out, items = tensor("x", type_of(torch.empty(3))), tensor("out", type_of(torch.empty(3))), (symbol("a"),)
    body = shared_loop(out, lambda i: loaded(x, i))
    program = Program(
        name="lists",
        parameters=(TensorParameter(x), ListParameter("a", items)),
        body=(Allocate(tensor=out, sizes=(size(x, 0),)), kernel("k", body, (x, out), items), Return(tensors=(out,))),
        device="cuda",
        narrow=True,
        aligned=True,
    )
    rig = CudaRig([T, INTS])
    rig.add(program)
    assert rig.call(torch.ones(3), [5]) is not None
    assert rig.call(torch.ones(3), [1 << 29]) is None
