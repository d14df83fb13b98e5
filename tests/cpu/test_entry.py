import pytest
import torch

from brickwork.codegen.support import DTYPE_NUMBERS
from brickwork.ir.build import apply, constant, integer, read
from brickwork.ir.dtypes import BOOL, DTYPES, FLOAT64, INT64, value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Break,
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
    ScalarParameter,
    Store,
    Symbol,
    TensorParameter,
    TensorType,
    While,
)
from brickwork.pytorch.gate import ArgumentKind
from brickwork.pytorch.libtorch import libraries
from support.entries import Operator, elementwise, kernel, size, tensor, type_of

T, KEY, INT, FLOAT, FLAG = (
    ArgumentKind.TENSOR,
    ArgumentKind.OPTIONAL_TENSOR,
    ArgumentKind.INT,
    ArgumentKind.FLOAT,
    ArgumentKind.BOOL,
)


def doubling(*, like: bool = True):
    def factory(values):
        x = tensor("x", type_of(values[0]))
        rank = x.type.rank
        dense = TensorType(x.type.dtype, rank, contiguous=True, unit_axis=rank - 1 if rank else None)
        unknown = TensorType(x.type.dtype, rank)
        out = tensor("out", dense if x.type.contiguous or not like else unknown)
        body = elementwise(x, out, lambda value, _: apply("add", value, value))
        sizes = tuple(size(x, axis) for axis in range(x.type.rank))
        made = Allocate(tensor=out, sizes=sizes, like=x if like else None)
        return Program(
            name="doubling",
            parameters=(TensorParameter(x),),
            body=(made, kernel("double", body, (x, out)), Return(tensors=(out,))),
        )

    return Operator("Tensor x", "Tensor", [T], factory)


@pytest.fixture(scope="module")
def double():
    return doubling()


def layouts():
    base = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
    return [
        base,
        base[0],
        base[0, 0, 0],
        base[0, 0, 0, 0],
        base.transpose(0, 3),
        base.permute(2, 0, 3, 1),
        base.to(memory_format=torch.channels_last),
        base[:, ::2],
        base[..., ::3],
        base[:, 1:, 2:, 3:].transpose(1, 2),
        base[:1].transpose(0, 2),
        base[:0],
        base[:, :0].transpose(1, 2),
        torch.ones(3, 1).expand(3, 4),
        torch.ones(1, 4, 1).expand(3, 4, 5),
        base.as_strided((2, 3), (1, 1)),
        base.as_strided((2, 3, 4), (3, 1, 2)),
        torch.ones(1).expand(7),
    ]


@pytest.mark.parametrize("number", range(18))
def test_results_are_right_and_laid_out_as_torch_does(double, number):
    x = layouts()[number]
    y = double(x)
    torch.testing.assert_close(y, x + x, rtol=0, atol=0)
    assert y.stride() == torch.empty_like(x).stride()


def test_one_entry_serves_all_arguments_of_its_kind():
    double = doubling()
    for length in (0, 1, 5, 1000):
        x = torch.randn(length)
        torch.testing.assert_close(double(x), x * 2)
    assert len(double.compiled) == 1
    double(torch.randn(6)[::2])
    double(torch.randn(2, 3))
    double(torch.randn(3, dtype=torch.float64))
    assert len(double.compiled) == 4
    double(torch.randn(9))
    assert len(double.compiled) == 4


def test_an_entry_for_empty_tensors_takes_what_torch_calls_contiguous(double):
    x = torch.empty(3, 0).t()
    assert double(x).shape == (0, 3)


def test_handles_are_given_back():
    double = doubling()
    x = torch.randn(8)

    def views():
        return torch._C._storage_Use_Count(x.untyped_storage()._cdata)

    before = views()
    for _ in range(3):
        double(x[:])
        double(x[::2])
    assert views() == before


def test_the_numbers_of_element_types_are_torchs():
    for name, number in DTYPE_NUMBERS.items():
        assert getattr(libraries()[0], f"aoti_torch_dtype_{name}")() == number


def filling(value):
    def factory(values):
        x = tensor("x", type_of(values[0]))
        out = tensor("out", type_of(torch.empty(3, 4, dtype=values[0].dtype)))
        made = Allocate(tensor=out, sizes=(integer(300), size(x, 0)), fill=constant(value, _kind(x)))
        return Program(name="filling", parameters=(TensorParameter(x),), body=(made, Return(tensors=(out,))))

    return Operator("Tensor x", "Tensor", [T], factory)


def _kind(x):
    return value_dtype(x.type.dtype)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("value", [0, 1, 117.0])
def test_allocations_are_filled(name, value):
    dtype = getattr(torch, name)
    value = bool(value) if dtype is torch.bool else value if dtype.is_floating_point else int(value)
    for length in (0, 1, 3, 400):
        y = filling(value)(torch.empty(length, dtype=dtype))
        assert torch.equal(y, torch.full((300, length), value, dtype=dtype))


def test_a_fill_that_is_computed_is_rounded_as_torch_does():
    def factory(values):
        x, factor = tensor("x", type_of(values[0])), Symbol("factor", 900, FLOAT64)
        out = tensor("out", type_of(torch.empty(3, dtype=values[0].dtype)))
        made = Allocate(tensor=out, sizes=(integer(5),), fill=read(factor))
        return Program(
            name="fill", parameters=(TensorParameter(x), ScalarParameter(factor)), body=(made, Return(tensors=(out,)))
        )

    fill = Operator("Tensor x, float factor", "Tensor", [T, FLOAT], factory)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for value in (0.1, -1e-3, 3.0, 1e30, float("nan"), float("inf")):
            assert torch.equal(
                fill(torch.empty(1, dtype=dtype), value).nan_to_num(7),
                torch.full((5,), value, dtype=torch.float32).to(dtype).nan_to_num(7)
                if dtype != torch.float64
                else torch.full((5,), value, dtype=dtype).nan_to_num(7),
            )


def sized(rank=1):
    def factory(values):
        x, n = tensor("x", type_of(values[0])), Symbol("n", 901, INT64)
        out = tensor("out", type_of(torch.empty(2)))
        body = (Allocate(tensor=out, sizes=(read(n),), fill=constant(1.0, _kind(x))), Return(tensors=(out,)))
        return Program(name="sized", parameters=(TensorParameter(x), ScalarParameter(n)), body=body)

    return Operator("Tensor x, int n", "Tensor", [T, INT], factory)


def test_sizes_that_cannot_be_are_refused():
    make = sized()
    assert make(torch.empty(1), 3).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match=r"negative dimension: \[-3\] \(sized\)"):
        make(torch.empty(1), -3)
    with pytest.raises(
        RuntimeError, match=r"18446744073709551616 bytes, .* \[4611686018427387904\] of float32 \(sized\)"
    ):
        make(torch.empty(1), 1 << 62)
    assert make(torch.empty(1), 2).tolist() == [1, 1]


def test_scalars_and_branches_of_the_host_program():
    def factory(values):
        x = tensor("x", type_of(values[0]))
        n, s, flag, scale = (
            Symbol(name, 910 + index, kind)
            for index, (name, kind) in enumerate([("n", INT64), ("s", FLOAT64), ("flag", BOOL), ("scale", FLOAT64)])
        )
        out = tensor("out", type_of(torch.empty(2, dtype=torch.float64)))
        negative = apply("lt", read(n), integer(0))
        body = elementwise(x, out, lambda value, _: apply("mul", value, read(scale)))
        return Program(
            name="scalars",
            parameters=(TensorParameter(x), ScalarParameter(n), ScalarParameter(s), ScalarParameter(flag)),
            body=(
                Assign(symbol=scale, value=read(s)),
                If(condition=read(flag), then=(Assign(symbol=scale, value=apply("neg", read(s))),)),
                Allocate(tensor=out, sizes=(size(x, 0),)),
                If(condition=negative, then=(Return(tensors=(out,)),), otherwise=()),
                kernel("scale", body, (x, out), (scale,)),
                Return(tensors=(out,)),
            ),
        )

    scale = Operator("Tensor x, int n, float s, bool flag", "Tensor", [T, INT, FLOAT, FLAG], factory)
    x = torch.randn(5, dtype=torch.float64)
    torch.testing.assert_close(scale(x, 1, 2.5, False), x * 2.5)
    torch.testing.assert_close(scale(x, 1, 2.5, True), x * -2.5)
    assert scale(x, -1, 2.5, True).shape == (5,)
    assert len(scale.compiled) == 1


def test_lists():
    def factory(values):
        x = tensor("x", type_of(values[0]))
        items = tuple(Symbol(f"a{index}", 920 + index, INT64) for index in range(len(values[1])))
        factors = tuple(Symbol(f"b{index}", 930 + index, FLOAT64) for index in range(len(values[2])))
        out = tensor("out", type_of(torch.empty((1,) * len(items), dtype=torch.float64)))
        body = elementwise(out, out, lambda *_: read(factors[0]))
        return Program(
            name="lists",
            parameters=(TensorParameter(x), ListParameter("a", items), ListParameter("b", factors)),
            body=(
                Allocate(tensor=out, sizes=tuple(read(item) for item in items)),
                kernel("set", body, (out,), factors[:1]),
                Return(tensors=(out,)),
            ),
        )

    kinds = [T, ArgumentKind.INT_LIST, ArgumentKind.FLOAT_LIST]
    make = Operator("Tensor x, int[] a, float[] b", "Tensor", kinds, factory)
    assert torch.equal(make(torch.empty(1), [2, 3], [1.5]), torch.full((2, 3), 1.5, dtype=torch.float64))
    assert torch.equal(make(torch.empty(1), [4], [2.5, 1.0]), torch.full((4,), 2.5, dtype=torch.float64))
    assert make.compiled[0][1:3] == ([2, 3], [1.5])
    assert make(torch.empty(1), [5, 6], [1.5]).shape == (5, 6)
    assert len(make.compiled) == 2


def keyed():
    def factory(values):
        x, key = tensor("x", type_of(values[0])), Symbol("key", 940, INT64)
        out = tensor("out", type_of(torch.empty(1, dtype=torch.int64)))
        body = (Store(tensor=out, indices=(integer(0),), value=read(key), access=0),)
        return Program(
            name="keyed",
            parameters=(TensorParameter(x), KeyParameter(key)),
            body=(Allocate(tensor=out, sizes=(integer(1),)), kernel("k", body, (out,), (key,)), Return(tensors=(out,))),
        )

    return Operator("Tensor x, *, Tensor? key=None", "Tensor", [T, KEY], factory)


def test_keys_come_from_torchs_generator_or_from_the_caller():
    draw, x = keyed(), torch.empty(1)
    torch.manual_seed(3)
    first, second = draw(x).item(), draw(x).item()
    assert first != second
    torch.manual_seed(3)
    assert draw(x).item() == first
    state = torch.get_rng_state()
    assert draw(x).item() == second
    torch.set_rng_state(state)
    assert draw(x).item() == second
    assert draw(x, key=torch.tensor(-7)).item() == -7
    assert draw(x, key=torch.tensor([11])).item() == 11
    assert len(draw.compiled) == 1
    draw.error = TypeError("the key has to be an int64 tensor of one element")
    with pytest.raises(TypeError, match="int64 tensor"):
        draw(x, key=torch.tensor([1.0]))
    assert len({draw(x).item() for _ in range(100)}) == 100


def checking():
    def factory(values):
        x, n = tensor("x", type_of(values[0])), Symbol("n", 950, INT64)
        small = Check(
            condition=apply("lt", read(n), integer(10)),
            failure=Failure(FailureKind.ASSERTION, "n is {} but x has {} elements, {}"),
            values=(read(n), size(x, 0), constant(0.5, FLOAT64)),
        )
        inside = Check(
            condition=apply("lt", read(n), size(x, 0)),
            failure=Failure(FailureKind.INDEX, "index {} of {}"),
            values=(read(n), size(x, 0)),
        )
        out = tensor("out", type_of(torch.empty(1)))
        value = Load(tensor=x, indices=(read(n),), access=0, dtype=_kind(x))
        body = (inside, Store(tensor=out, indices=(integer(0),), value=value, access=1))
        return Program(
            name="checking",
            parameters=(TensorParameter(x), ScalarParameter(n)),
            body=(
                small,
                Allocate(tensor=out, sizes=(integer(1),)),
                kernel("pick", body, (x, out), (n,)),
                Return(tensors=(out,)),
            ),
        )

    return Operator("Tensor x, int n", "Tensor", [T, INT], factory)


def test_failures_become_the_exceptions_they_name():
    pick, x = checking(), torch.arange(5.0)
    assert pick(x, 3).tolist() == [3.0]
    with pytest.raises(AssertionError, match=r"^n is 10 but x has 5 elements, 0\.5 \(checking\)$"):
        pick(x, 10)
    with pytest.raises(IndexError, match=r"^index 5 of 5 \(checking\)$"):
        pick(x, 5)
    assert pick(x, 4).tolist() == [4.0]


def test_many_failures_leak_nothing_and_break_nothing():
    pick, x = checking(), torch.arange(5.0)
    before = torch._C._storage_Use_Count(x.untyped_storage()._cdata)
    raised = 0
    for _ in range(10_000):
        for index in (7, 10):
            try:
                pick(x[:], index)
            except (IndexError, AssertionError):
                raised += 1
    assert raised == 20_000
    assert torch._C._storage_Use_Count(x.untyped_storage()._cdata) == before


def looping():
    """Return `out` with n squares: a host loop that skips 1 and stops at 4, then a countdown that negates."""

    def factory(values):
        x, n = tensor("x", type_of(values[0])), Symbol("n", 960, INT64)
        t, left, total = (Symbol(name, 961 + index, INT64) for index, name in enumerate(("t", "left", "total")))
        out = tensor("out", type_of(torch.empty(1, dtype=torch.int64)))
        value = apply("add", Load(tensor=out, indices=(integer(0),), access=0, dtype=INT64), read(total))
        body = (Store(tensor=out, indices=(integer(0),), value=value, access=1),)
        square = (
            If(condition=apply("eq", read(t), integer(1)), then=(Continue(),)),
            If(condition=apply("eq", read(t), integer(4)), then=(Break(),)),
            Assign(symbol=total, value=apply("add", read(total), apply("mul", read(t), read(t)))),
        )
        down = (
            Assign(symbol=left, value=apply("sub", read(left), integer(1))),
            kernel("accumulate", body, (out,), (total,)),
            If(condition=apply("eq", read(left), integer(-100)), then=(Return(tensors=(out,)),)),
        )
        return Program(
            name="looping",
            parameters=(TensorParameter(x), ScalarParameter(n)),
            body=(
                Allocate(tensor=out, sizes=(integer(1),), fill=constant(0, INT64)),
                Assign(symbol=total, value=integer(0)),
                For(index=t, start=integer(0), stop=read(n), body=square),
                Assign(symbol=left, value=read(n)),
                While(prelude=(), condition=apply("gt", read(left), integer(0)), body=down),
                Return(tensors=(out,)),
            ),
        )

    return Operator("Tensor x, int n", "Tensor", [T, INT], factory)


@pytest.mark.parametrize(("n", "total"), [(-3, 0), (0, 0), (1, 0), (3, 4 * 3), (4, 13 * 4), (9, 13 * 9)])
def test_loops_of_the_host_program(n, total):
    assert looping()(torch.empty(1), n).tolist() == [total]


def test_tensors_that_a_host_loop_makes_again_are_given_up():
    def factory(values):
        x, n, t = tensor("x", type_of(values[0])), Symbol("n", 970, INT64), Symbol("t", 971, INT64)
        out = tensor("out", type_of(torch.empty(3)))
        made = Allocate(tensor=out, sizes=(read(t),), fill=constant(2.0, _kind(x)))
        loop = For(index=t, start=integer(1), stop=read(n), body=(made,))
        return Program(
            name="again", parameters=(TensorParameter(x), ScalarParameter(n)), body=(loop, Return(tensors=(out,)))
        )

    again = Operator("Tensor x, int n", "Tensor", [T, INT], factory)
    assert again(torch.empty(1), 5).tolist() == [2.0] * 4
