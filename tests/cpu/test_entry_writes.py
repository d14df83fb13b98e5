import pytest
import torch

from brickwork.host.layout import Placement, is_injective, may_alias
from brickwork.ir.build import apply, constant
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Allocate, Program, Return, TensorParameter
from brickwork.pytorch.gate import ArgumentKind
from support.entries import Operator, elementwise, kernel, size, tensor, type_of

T = ArgumentKind.TENSOR


def placement(data):
    return Placement(data.data_ptr(), tuple(data.shape), tuple(data.stride()), data.element_size())


def adding():
    """`y += x`, with the order of loops in the kernel when they may overlap."""

    def factory(values):
        x, y = tensor("x", type_of(values[0])), tensor("y", type_of(values[1]))
        alias = may_alias([placement(value) for value in values], [1])
        body = elementwise(x, y, lambda value, _: apply("add", value, value))
        return Program(
            name="adding",
            parameters=(TensorParameter(x), TensorParameter(y, mutated=True)),
            body=(kernel("add", body, (x, y), may_alias=alias),),
            may_alias=alias,
        )

    return Operator("Tensor x, Tensor(a!) y", "()", [T, T], factory)


def test_a_program_without_kernels_is_for_tensors_that_share_memory_if_it_says_so():
    def factory(values):
        tensors = [tensor(name, type_of(value)) for name, value in zip("xy", values, strict=True)]
        parameters = (TensorParameter(tensors[0]), TensorParameter(tensors[1], mutated=True))
        alias = may_alias([placement(value) for value in values], [1])
        return Program(name="nothing", parameters=parameters, body=(), may_alias=alias)

    nothing = Operator("Tensor x, Tensor(a!) y", "()", [T, T], factory)
    x = torch.randn(5)
    nothing(x, torch.randn(5))
    nothing(x[1:], x[:-1])
    nothing(x, torch.randn(5))


@pytest.fixture
def add():
    return adding()


def test_writes_are_told_to_autograd(add):
    x, y = torch.randn(5), torch.zeros(5)
    before = y._version, x._version
    assert add(x, y) is None
    assert torch.equal(y, x + x)
    assert (y._version, x._version) == (before[0] + 1, before[1])


def test_a_write_breaks_the_gradient_that_needs_the_old_value(add):
    w = torch.ones(3, requires_grad=True)
    y = torch.ones(3)
    z = (w * y).sum()
    add(torch.ones(3), y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_expanded_tensors_are_not_written(add):
    y = torch.zeros(1).expand(4)
    with pytest.raises(RuntimeError, match=r"more than one element of the written-to tensor 'y'"):
        add(torch.ones(4), y)
    assert y[0] == 0
    add(torch.ones(0, 4), torch.zeros(1).expand(0, 4))


def test_inference_tensors_are_written_in_inference_mode_only(add):
    with torch.inference_mode():
        y = torch.zeros(3)
        add(torch.ones(3), y)
        assert y.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="inference tensor 'y' outside InferenceMode"):
        add(torch.ones(3), y)
    assert y.tolist() == [2, 2, 2]


def test_overlapping_arguments_have_an_entry_of_their_own(add):
    x = torch.arange(8.0)
    add(x[:4], x[4:])
    assert len(add.compiled) == 1
    assert x.tolist() == [0, 1, 2, 3, 0, 2, 4, 6]
    x = torch.ones(5)
    add(x[:4], x[1:])
    assert x.tolist() == [1, 2, 4, 8, 16]
    assert len(add.compiled) == 2
    x = torch.ones(4)
    add(x, x)
    assert x.tolist() == [2] * 4
    add(torch.ones(4), torch.ones(4))
    assert len(add.compiled) == 2


def test_a_tensor_that_may_overlap_itself_has_an_entry_of_its_own(add):
    memory = torch.zeros(20)
    add(torch.ones(2, 3), memory.as_strided((2, 3), (5, 1)))
    first = len(add.compiled)
    add(torch.ones(2, 3), memory.as_strided((2, 3), (2, 1)))
    assert len(add.compiled) == first + 1


def test_python_and_machine_code_agree_on_overlap():
    generator = torch.Generator().manual_seed(1)

    def number(high):
        return int(torch.randint(high, (), generator=generator))

    add, memory = adding(), torch.zeros(200)
    for _ in range(200):
        rank = 1 + number(3)
        shape = [number(4) for _ in range(rank)]
        views = [memory.as_strided(shape, [1 + number(5) for _ in range(rank)], number(40)) for _ in range(2)]
        add(*views)  # Operator raises if an entry that was made for these arguments does not take them.
    assert len(add.compiled) > 20


def test_disjoint_addresses_are_seen():
    assert is_injective((2, 3), (3, 1))
    assert is_injective((2, 3), (1, 2))
    assert is_injective((1, 3), (0, 1))
    assert not is_injective((2, 3), (2, 1))
    assert not is_injective((2, 2), (1, 1))
    assert not is_injective((2, 2), (0, 1))
    assert is_injective((0, 2), (0, 0))


def into(results):
    """`op(x, *, out)`: doubles into the caller's buffer."""

    def factory(values):
        x, out = tensor("x", type_of(values[0])), tensor("out", type_of(values[1]))
        alias = may_alias([placement(value) for value in values], [1])
        body = elementwise(x, out, lambda value, _: apply("add", value, value))
        sizes = tuple(size(x, axis) for axis in range(x.type.rank))
        made = Allocate(tensor=out, sizes=sizes, given=True, fill=constant(3.0, FLOAT32))
        return Program(
            name="into",
            parameters=(TensorParameter(x),),
            body=(made, kernel("double", body, (x, out), may_alias=alias), Return(tensors=(out,))),
            may_alias=alias,
        )

    return Operator("Tensor x, *, Tensor(a!) out", results, [T, T], factory)


@pytest.mark.parametrize("results", ["()", "Tensor(a!)"])
def test_a_callers_buffer_takes_the_result(results):
    double = into(results)
    x, out = torch.randn(3, 4), torch.empty(3, 4)
    given = double(x, out=out)
    assert given is (out if results != "()" else None)
    assert torch.equal(out, x * 2)
    assert out._version == 1
    strided = torch.zeros(3, 8)[:, ::2]
    double(x, out=strided)
    assert torch.equal(strided, x * 2)
    with pytest.raises(ValueError, match=r"expected out of shape \[3, 4\], but it has shape \[4, 3\] \(into\)"):
        double(x, out=torch.empty(4, 3))
    assert torch._C._storage_Use_Count(out.untyped_storage()._cdata) == 2


def test_one_tensor_may_be_returned_twice():
    def factory(values):
        x = tensor("x", type_of(values[0]))
        out, unused = tensor("out", type_of(torch.empty(2))), tensor("unused", type_of(torch.empty(2)))
        return Program(
            name="twice",
            parameters=(TensorParameter(x),),
            body=(
                Allocate(tensor=out, sizes=(size(x, 0),), fill=constant(1.0, FLOAT32)),
                Allocate(tensor=unused, sizes=(size(x, 0),)),
                Return(tensors=(out, out)),
            ),
        )

    twice = Operator("Tensor x", "(Tensor, Tensor)", [T], factory)
    first, second = twice(torch.empty(3))
    assert first is second
    assert first.tolist() == [1, 1, 1]
