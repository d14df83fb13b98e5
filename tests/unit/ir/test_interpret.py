"""The interpreter runs hand-made IR, checks indices and finds races."""

from __future__ import annotations

import pytest

from brickwork.diagnostics.errors import RaceError
from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT8, INT64
from brickwork.ir.interpret import Memory, run_kernel, run_program
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Break,
    Check,
    Constant,
    Continue,
    Failure,
    FailureKind,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Program,
    Read,
    Reduction,
    Return,
    Role,
    ScalarParameter,
    Size,
    Store,
    Symbol,
    Tensor,
    TensorParameter,
    TensorType,
    While,
)
from brickwork.ir.operators import OPERATORS

X = Tensor("x", 0, TensorType(FLOAT32, 1))
Y = Tensor("y", 1, TensorType(FLOAT32, 1))
I, S, N = Symbol("i", 0, INT64), Symbol("s", 1, FLOAT32), Symbol("n", 2, INT64)
LINE = Location(file="k.py", line=7, column=0, end_line=7, end_column=5, function="k")


def vector(*values, dtype=FLOAT32, stride=1):
    data = [0.0] * (len(values) * stride)
    data[::stride] = list(values)
    return Memory(data, (len(values),), (stride,), dtype)


def integer(value):
    return Constant(value=value, dtype=INT64)


def load(tensor, index, access=0):
    return Load(tensor=tensor, indices=(index,), access=access, dtype=FLOAT32, loc=LINE)


def store(tensor, index, value, access=1):
    return Store(tensor=tensor, indices=(index,), value=value, access=access, loc=LINE)


def kernel(*body, scalars=()):
    return Kernel(name="k", tensors=(X, Y), scalars=scalars, facts=(), body=body)


def loop(*body, stop=None, **options):
    return For(index=I, start=integer(0), stop=stop or Size(tensor=X, axis=0), body=body, loc=LINE, **options)


def test_elements_are_found_by_stride_and_offset():
    y = Memory([0.0] * 9, (3,), (-2,), FLOAT32, offset=6)
    run_kernel(kernel(loop(store(Y, Read(symbol=I), load(X, Read(symbol=I))))), [vector(1.0, 2.0, 3.0, stride=2), y])
    assert y.data == [0.0, 0.0, 3.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0]


def test_break_continue_and_while():
    at = Read(symbol=N)
    step = Assign(symbol=N, value=build.apply("add", at, integer(1)))
    body = While(
        prelude=(step,),
        condition=build.apply("lt", at, integer(6)),
        body=(
            If(condition=build.apply("eq", at, integer(2)), then=(Continue(),)),
            If(condition=build.apply("eq", at, integer(5)), then=(Break(),)),
            store(X, at, Constant(value=1.0, dtype=FLOAT32)),
        ),
    )
    x = vector(*[0.0] * 8)
    run_kernel(kernel(Assign(symbol=N, value=integer(-1)), body), [x, vector()])
    assert x.data == [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]


def test_stores_narrow_to_the_element():
    narrow = Tensor("b", 3, TensorType(INT8, 1))
    body = Store(tensor=narrow, indices=(integer(0),), value=integer(300), access=0)
    memory = vector(0, dtype=INT8)
    run_kernel(Kernel(name="k", tensors=(narrow,), scalars=(), facts=(), body=(body,)), [memory])
    assert memory.data == [44]


def test_a_flat_index_counts_elements_whatever_stride_an_axis_of_size_one_has():
    column = Tensor("c", 3, TensorType(FLOAT32, 2, contiguous=True))
    body = Store(tensor=column, indices=(integer(0), integer(2)), value=Constant(value=1.0, dtype=FLOAT32), access=-1)
    memory = Memory([0.0] * 20, (3, 1), (1, 5), FLOAT32, 4)
    run_kernel(Kernel(name="k", tensors=(column,), scalars=(), facts=(), body=(body,)), [memory])
    assert memory.data.index(1.0) == 6


@pytest.mark.parametrize(("index", "given"), [(-1, -4), (3, 3)])
def test_an_index_out_of_range_is_an_index_error(index, given):
    with pytest.raises(IndexError, match=rf"index {given} is out of bounds for dimension 0 of tensor 'x' .*k\.py:7\)"):
        run_kernel(kernel(store(Y, integer(0), load(X, integer(index)))), [vector(1.0, 2.0, 3.0), vector(0.0)])


@pytest.mark.parametrize(
    ("kind", "exception"), [(kind, getattr(__import__("builtins"), kind.value)) for kind in FailureKind]
)
def test_a_failed_check_raises_the_exception_of_its_kind(kind, exception):
    check = Check(
        condition=build.apply("lt", Read(symbol=I), integer(2)),
        failure=Failure(kind, "i is {}"),
        values=(Read(symbol=I),),
        loc=LINE,
    )
    x = vector(0.0, 0.0, 0.0)
    with pytest.raises(exception, match=r"i is 2 \(.*k\.py:7\)"):
        run_kernel(kernel(loop(check, store(X, Read(symbol=I), Constant(value=1.0, dtype=FLOAT32)))), [x, vector()])
    assert x.data == [1.0, 1.0, 0.0]


SHIFTED = store(X, build.apply("add", Read(symbol=I), integer(1)), load(X, Read(symbol=I)))
STOP = build.apply("sub", Size(tensor=X, axis=0), integer(1))


@pytest.mark.parametrize("options", [{"role": Role.PARALLEL}, {"role": Role.VECTOR, "width": 4}, {"claimed": True}])
def test_the_detector_names_both_iterations_and_the_element(options):
    body = kernel(loop(SHIFTED, stop=STOP, **options))
    with pytest.raises(RaceError, match=r"iterations i=0 and i=1 .* writes x\[1\], the other reads x\[1\]"):
        run_kernel(body, [vector(1.0, 2.0, 3.0), vector()], check=True)


def test_the_detector_leaves_plain_and_independent_loops_alone():
    memories = [vector(1.0, 2.0, 3.0), vector(0.0, 0.0, 0.0)]
    run_kernel(kernel(loop(SHIFTED, stop=STOP)), memories, check=True)
    copy = store(Y, Read(symbol=I), load(X, Read(symbol=I)))
    run_kernel(kernel(loop(copy, role=Role.PARALLEL)), memories, check=True)
    assert memories[1].data == [1.0, 1.0, 1.0]


def test_the_detector_sees_two_tensors_that_share_memory():
    data = [1.0, 2.0, 3.0, 4.0]
    x, y = Memory(data, (3,), (1,), FLOAT32), Memory(data, (3,), (1,), FLOAT32, offset=1)
    body = kernel(loop(store(Y, Read(symbol=I), load(X, Read(symbol=I))), role=Role.PARALLEL))
    with pytest.raises(RaceError):
        run_kernel(body, [x, y], check=True)


def test_reductions_keep_their_value_and_private_variables_lose_it():
    total = Assign(symbol=S, value=build.apply("add", Read(symbol=S), load(X, Read(symbol=I))))
    begin = Assign(symbol=S, value=Constant(value=0.0, dtype=FLOAT32))
    end = store(Y, integer(0), Read(symbol=S))
    reduced = loop(total, role=Role.PARALLEL, reductions=(Reduction(S, OPERATORS["add"]),))
    y = vector(0.0)
    run_kernel(kernel(begin, reduced, end), [vector(1.0, 2.0, 3.0), y], check=True)
    assert y.data == [6.0]
    with pytest.raises(UnboundLocalError, match="`s`"):
        run_kernel(kernel(begin, loop(total, role=Role.PARALLEL), end), [vector(1.0, 2.0, 3.0), y], check=True)


def program(like, given=False):
    body = Allocate(
        tensor=Y,
        sizes=(Size(tensor=X, axis=0),),
        fill=Constant(value=2.0, dtype=FLOAT32),
        like=X if like else None,
        given=given,
    )
    copy = loop(store(Y, Read(symbol=I), load(X, Read(symbol=I))), stop=Read(symbol=N))
    launch = Launch(kernel=kernel(copy, scalars=(N,)))
    return Program(
        name="p", parameters=(TensorParameter(X), ScalarParameter(N)), body=(body, launch, Return(tensors=(Y,)))
    )


def test_a_program_allocates_launches_and_returns():
    (y,) = run_program(program(like=False), [vector(5.0, 6.0, 7.0), 2])
    assert (y.data, y.sizes, y.strides) == ([5.0, 6.0, 2.0], (3,), (1,))


def test_a_given_result_is_filled_in_place_and_its_shape_is_checked():
    out = vector(0.0, 0.0, 0.0)
    (y,) = run_program(program(like=False, given=True), [vector(5.0, 6.0, 7.0), 2], out=[out])
    assert y is out
    assert out.data == [5.0, 6.0, 2.0]
    with pytest.raises(ValueError, match="shape"):
        run_program(program(like=False, given=True), [vector(5.0, 6.0, 7.0), 2], out=[vector(0.0)])
