"""Arguments as users pass them: names, defaults, layouts, sizes; and the words for those that cannot be taken."""

import inspect

import pytest
import torch

import brickwork as bw
from support.gpu import settled
from support.operators import copy_scaled, halves, noise, scale_, square, timex, torch_timex, total, transposed

pytestmark = pytest.mark.usefixtures("device")


def test_names_and_defaults_are_those_of_the_function():
    w, k = torch.randn(2, 4), torch.randn(1, 2, 4)
    expected = torch_timex(w, k, 0.5)
    torch.testing.assert_close(timex(w, eps=0.5, k=k), expected)
    torch.testing.assert_close(torch.ops.bwtest.timex(w, k, 0.5), expected)
    torch.testing.assert_close(timex(w, k, 1), torch_timex(w, k, 1.0))
    assert list(inspect.signature(timex).parameters) == ["w", "k", "eps"]
    assert (timex.__name__, timex.__doc__) == ("timex", "Causal depthwise convolution.")
    x, into = torch.randn(3), torch.empty(3)
    copy_scaled(x, into, by=2.0, shift=1, flip=True)
    torch.testing.assert_close(into, x.flip(0) * 2 + 1)
    with pytest.raises(TypeError, match=r"takes 2 arguments \(x, into\), not 3"):
        copy_scaled(x, into, 2.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(8)[::2],
        lambda: torch.randn(3, 8)[:, 1],
        lambda: torch.randn(1).expand(5),
        lambda: torch.randn(9)[2:],
        lambda: torch.randn(0),
        lambda: torch.randn(1),
        lambda: torch.randn(40).as_strided((5,), (0,), 3),
        lambda: torch.arange(7),
        lambda: torch.randn(5).to(torch.bfloat16),
        lambda: torch.randn(5).double(),
        lambda: torch.randn(5).half(),
        lambda: torch.arange(100, 120).to(torch.uint8),
    ],
)
def test_any_layout_size_and_element_type(make):
    x = make()
    result = square(x)
    torch.testing.assert_close(result, x * x)
    assert (result.dtype, result.stride()) == (x.dtype, torch.empty_like(x).stride())
    out = torch.empty(2 * len(x), dtype=x.dtype)[::2]
    assert square(x, out=out) is out
    torch.testing.assert_close(out, x * x)


def test_empty_tensors_are_no_ops_with_the_right_shape():
    assert timex(torch.empty(0, 4), torch.empty(2, 0, 4), 0.1).shape == (2, 0, 4)
    assert [each.shape for each in halves(torch.empty(0))] == [(0,), (0,)]
    assert transposed(torch.empty(0, 3)).shape == (3, 0)
    scale_(torch.empty(0))


def test_a_scalar_result_has_no_dimensions():
    assert total(torch.arange(10)).shape == ()
    assert total(torch.arange(10)).dtype == torch.int64
    assert total(torch.ones(4)).dtype == torch.float32


def test_overlapping_arguments_give_the_sequential_answer():
    x = torch.arange(10.0)
    copy_scaled(x[:-1], x[1:], by=2.0)
    expected = torch.arange(10.0)
    for i in range(9):
        expected[i + 1] = expected[i] * 2.0
    torch.testing.assert_close(x, expected)
    y = torch.arange(6.0)
    square(y, out=y)
    torch.testing.assert_close(y, torch.arange(6.0) ** 2)


def test_an_output_that_overlaps_itself_is_refused_before_anything_runs():
    x = torch.zeros(1).expand(5)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="more than one element"):
            scale_(x)
        with pytest.raises(RuntimeError, match="more than one element"):
            square(torch.ones(5), out=x)
    assert x[0] == 0


def test_wrong_buffers_are_refused():
    with pytest.raises((RuntimeError, ValueError), match="shape"):
        square(torch.randn(4), out=torch.empty(5))
    with pytest.raises((RuntimeError, TypeError, bw.CompileError), match=r"dtype|float64"):
        square(torch.randn(4), out=torch.empty(4, dtype=torch.float64))


def test_devices_may_not_be_mixed():
    message = "Expected all tensors to be on the same device, but found at least two devices"
    for arguments in (
        (torch.empty(2, 4), torch.empty(1, 2, 4, device="meta"), 0.1),
        (torch.empty(2, 4, device="meta"), torch.empty(1, 2, 4), 0.1),
    ):
        with pytest.raises(RuntimeError, match=message):
            timex(*arguments)


def test_wrong_ranks_are_refused_at_the_users_line():
    with pytest.raises(bw.CompileError, match=r"causal\.py:\d+: error BW\d+"):
        timex(torch.randn(2, 4), torch.randn(2, 4), 0.1)
    with pytest.raises(bw.CompileError, match="argument `x` of total has 2 dimensions, and 1 is needed"):
        total(torch.randn(2, 4))


def test_elements_that_are_rows_are_rows():
    x = torch.randn(2, 4)
    torch.testing.assert_close(square(x), x * x)


def test_element_types_that_do_not_exist_are_refused_by_name():
    with pytest.raises(bw.CompileError, match=r"argument `k` of timex is torch\.complex32"):
        timex(torch.randn(2, 4), torch.zeros(1, 2, 4, dtype=torch.complex32), 0.1)


def test_a_list_where_a_tensor_goes_is_refused_by_name():
    with pytest.raises(RuntimeError, match="argument 'x'"):
        torch.ops.bwtest.square([1.0, 2.0])
    with pytest.raises(TypeError, match="argument 'eps'"):
        timex(torch.randn(2, 4), torch.randn(1, 2, 4), "much")


def test_failed_asserts_and_indices_name_the_line(device):
    with pytest.raises(AssertionError, match="sizes differ"):
        copy_scaled(torch.randn(3), torch.empty(4))
    with pytest.raises(IndexError, match=r"causal\.py:\d+"):
        settled(device, timex, torch.randn(2, 3), torch.randn(1, 2, 4), 0.1)


def test_a_generator_and_a_key_exclude_one_another():
    with pytest.raises(ValueError, match="not both"):
        noise(torch.zeros(3), 1.0, key=1, generator=torch.Generator())


def test_refusals_leave_the_operator_usable():
    with pytest.raises(bw.CompileError):
        total(torch.randn(2, 2))
    x = torch.randn(4)
    torch.testing.assert_close(total(x), x.sum())
