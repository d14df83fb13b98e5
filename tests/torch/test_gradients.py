"""Gradients of operators through torch's autograd: as of torch's own operators, in every way they are asked for."""

import gc

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import brickwork as bw
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.transform import derive
from support.gradients import numbers
from support.operators import CASES, copy_scaled, halves, noise, scale_, square, timex, torch_timex

pytestmark = pytest.mark.filterwarnings("ignore")


@bw.op("bwgrad::largest")
def largest(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest element of each row, and where it stands."""
    m, n = x.shape
    value = x.new_empty((m,))
    place = torch.empty((m,), dtype=torch.int64)
    for i in range(m):
        best = x[i, 0]
        at = 0
        for j in range(1, n):
            if x[i, j] > best:
                best = x[i, j]
                at = j
        value[i] = best
        place[i] = at
    return value, place


@bw.op("bwgrad::joined")
def joined(xs: list[torch.Tensor], by: float, bias: torch.Tensor | None = None) -> torch.Tensor:
    """The product of two vectors, scaled, and with another one added if there is one."""
    out = torch.empty_like(xs[0])
    for i in range(out.shape[0]):
        s = by * xs[0][i] * xs[1][i]
        if bias is not None:
            s += bias[i]
        out[i] = s
    return out


@bw.op("bwgrad::add_product_")
def add_product_(total: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Multiply a vector by another one in place, and return what it was, squared."""
    old = torch.empty_like(x)
    for i in range(x.shape[0]):
        old[i] = total[i] * total[i]
        total[i] = total[i] * x[i] + x[i]
    return old


@bw.op("bwgrad::expect_positive")
def expect_positive(x: torch.Tensor) -> None:
    """Fail if an element is not positive."""
    for i in range(x.shape[0]):
        assert x[i] > 0.0


def leaves(*shapes, dtype=torch.float64):
    return tuple(torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes)


def check(function, inputs):
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, inputs, check_fwd_over_rev=True)


@pytest.mark.parametrize("length", [1, 2, 31])
def test_timex(device, length):
    w, k = leaves((2, length), (3, 2, length))
    result = timex(w, k, 0.1)
    assert result.grad_fn is not None
    assert w.grad is None
    gradient = torch.randn_like(result)
    ours = torch.autograd.grad(result, (w, k), gradient)
    torch.testing.assert_close(ours, torch.autograd.grad(torch_timex(w, k, 0.1), (w, k), gradient))


@pytest.mark.parametrize("name", ["timex", "square", "total", "halves", "transposed", "weighted"])
def test_gradients_of_gradients(device, name):
    case = CASES[name]
    arguments = [
        value[..., :5].double().requires_grad_() if isinstance(value, torch.Tensor) else value
        for value in case.arguments()
    ]
    places = [place for place, value in enumerate(arguments) if isinstance(value, torch.Tensor)]

    def function(*tensors):
        values = [*arguments]
        for place, tensor in zip(places, tensors, strict=True):
            values[place] = tensor
        return case.op(*values)

    check(function, tuple(arguments[place] for place in places))


def test_only_what_is_wanted_is_computed(device):
    w, k = torch.randn(2, 5, requires_grad=True), torch.randn(3, 2, 5)
    timex(w, k, 0.1).sum().backward()
    assert k.grad is None
    torch.testing.assert_close(w.grad, torch.autograd.grad(torch_timex(w, k, 0.1).sum(), w)[0])
    assert hasattr(torch.ops.bwtest, "timex__backward_10")


def test_results_that_are_not_floats_have_no_gradient(device):
    (x,) = leaves((3, 4))
    value, place = largest(x)
    assert not place.requires_grad
    check(lambda x: largest(x)[0], (x,))
    (gradient,) = torch.autograd.grad(value.sum(), x)
    torch.testing.assert_close(gradient.argmax(1), place)


def test_operators_without_results_take_what_needs_gradients(device):
    x = torch.ones(3, requires_grad=True)
    assert expect_positive(x) is None
    gradient = torch.func.grad(lambda x: (expect_positive(x), x.sum())[1])(x)
    assert torch.equal(gradient, torch.ones(3))


def test_some_results_are_not_used(device):
    (x,) = leaves((5,))
    _, odd = halves(x)
    (gradient,) = torch.autograd.grad(odd.sum(), x)
    torch.testing.assert_close(gradient, torch.tensor([0, 1, 0, 1, 0], dtype=torch.float64))


def test_lists_and_optional_arguments(device):
    first, second, bias = leaves((4,), (4,), (4,))
    check(lambda first, second: joined([first, second], 2.0), (first, second))
    check(lambda first, second, bias: joined([first, second], 2.0, bias), (first, second, bias))
    check(lambda second: joined([first.detach(), second], 2.0), (second,))


def test_what_is_stored_into(device):
    def function(total, x):
        total = total.clone()
        old = add_product_(total, x)
        return total, old

    total, x = leaves((4,), (4,))
    check(function, (total, x))
    ours, old = function(total, x)
    torch.testing.assert_close((ours, old), (total * x + x, total * total))


def test_a_leaf_is_not_written():
    (x,) = leaves((4,))
    before = x.detach().clone()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        scale_(x)
    torch.testing.assert_close(x.detach(), before)
    with torch.no_grad():
        scale_(x, 3.0)
    torch.testing.assert_close(x.detach(), 3 * before)


def test_what_is_written_into_a_view(device):
    (x,) = leaves((2, 4))
    y = x.clone()
    scale_(y[1], 3.0)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([[1.0] * 4, [3.0] * 4], dtype=torch.float64))


def test_what_is_written_becomes_differentiable(device):
    (x,) = leaves((4,))
    into = torch.empty(4, dtype=torch.float64)
    copy_scaled(x, into, by=3.0)
    into.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((4,), 3.0, dtype=torch.float64))


def test_random_numbers_are_constants(device):
    (x,) = leaves((4,), dtype=torch.float32)
    torch.manual_seed(3)
    result = noise(x, 2.0)
    torch.manual_seed(3)
    torch.testing.assert_close(result, noise(x.detach(), 2.0))
    result.sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(4))


def test_repeated_backward(device):
    x = torch.randn(3, requires_grad=True)
    result = square(x).sum()
    result.backward(retain_graph=True)
    result.backward()
    torch.testing.assert_close(x.grad, 4 * x.detach())
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()


@pytest.mark.parametrize(
    "gradient", [lambda: torch.ones(()).expand(6), lambda: torch.randn(12)[::2], lambda: -torch.randn(6)]
)
def test_any_strides_of_gradients(device, gradient):
    x, gradient = torch.randn(6, requires_grad=True), gradient()
    (ours,) = torch.autograd.grad(square(x), x, gradient)
    torch.testing.assert_close(ours, 2 * x.detach() * gradient)


def test_without_gradients_nothing_is_recorded(device):
    x = torch.randn(3, requires_grad=True)
    with torch.no_grad():
        assert not square(x).requires_grad
    with torch.inference_mode():
        assert square(torch.randn(3)).is_inference()
    assert not square(x.detach()).requires_grad
    out = torch.empty(3)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        square(x, out=out)


def test_a_saved_tensor_that_is_written_is_found(device):
    x = torch.randn(3, requires_grad=True).clone()
    result = square(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_what_gradients_do_not_read_is_not_kept():
    @bw.op("bwgrad::shifted")
    def shifted(x: torch.Tensor, by: float) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * by + 1.0
        return out

    x = torch.randn(3, requires_grad=True)
    result = shifted(x, 2.0)
    assert result.grad_fn.saved_tensors == ()
    result.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 2.0))


def test_what_has_no_gradient_says_so_when_it_is_asked_for(monkeypatch):
    @bw.op("bwgrad::undifferentiable")
    def undifferentiable(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * 3.0
        return out

    def refuse(program, *_):
        raise CompileError(Diagnostic(code="BW901", message="no gradient", loc=program.loc, help="none"))

    monkeypatch.setattr(derive, "backward", refuse)
    x = torch.full((3,), 3.0, requires_grad=True)
    result = undifferentiable(x)
    with pytest.raises(CompileError, match=r"test_gradients.py.*no gradient"):
        result.sum().backward()
    assert x.grad is None


def test_memory_does_not_grow():
    x = torch.randn(64, requires_grad=True)

    def step():
        x.grad = None
        square(x).sum().backward()

    step()
    gc.collect()
    before = sum(isinstance(item, torch.Tensor) for item in gc.get_objects())
    for _ in range(100):
        step()
    gc.collect()
    assert sum(isinstance(item, torch.Tensor) for item in gc.get_objects()) <= before + 1


def test_dual_numbers(device):
    x, tangent = torch.randn(3), torch.randn(3)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, tangent)
        result = torch.autograd.forward_ad.unpack_dual(square(dual))
        torch.testing.assert_close(result.tangent, 2 * x * tangent)
        y = torch.autograd.forward_ad.make_dual(x.clone(), tangent.clone())
        scale_(y, 3.0)
        torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(y).tangent, 3 * tangent)


class Seen(TorchDispatchMode):
    """Notes the strides of the last argument of each derived operator that is called."""

    def __init__(self):
        super().__init__()
        self.strides = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "__backward" in str(func):
            self.strides.append(args[-1].stride())
        return func(*args, **(kwargs or {}))


def test_a_gradient_that_lies_across_is_turned_once_and_one_that_repeats_stays(device):
    w, k = numbers(3, 8).to(device).requires_grad_(), numbers(2, 3, 8).to(device).requires_grad_()
    upstream = numbers(2, 8, 3).to(device).transpose(1, 2)
    out = timex(w, k, 0.1)
    with Seen() as seen:
        across = torch.autograd.grad(out, (w, k), upstream, retain_graph=True)
        along = torch.autograd.grad(out, (w, k), upstream.contiguous(), retain_graph=True)
        repeated = torch.autograd.grad(out, (w, k), torch.ones((), dtype=out.dtype, device=device).expand(2, 3, 8))
    assert seen.strides == [(24, 8, 1), (24, 8, 1), (0, 0, 0)]
    torch.testing.assert_close(across, along)
    torch.testing.assert_close(repeated, torch.autograd.grad(timex(w, k, 0.1), (w, k), torch.ones_like(k)))
