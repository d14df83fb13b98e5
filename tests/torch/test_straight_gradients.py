"""Calls with a gradient that skip the dispatcher: which do, and that modes, tracers and transforms still see theirs."""

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import brickwork as bw
from brickwork.pytorch.autograd import Differentiation

Tensor = torch.Tensor


@bw.op("bwstraight::scaled")
def scaled(x: Tensor, factor: float, offset: Tensor | None = None) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i] * factor
    return out


@bw.op("bwstraight::extreme")
def extreme(x: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    largest, place, product = x.new_zeros(()), torch.zeros((), dtype=torch.int64), torch.empty_like(x)
    for i in range(x.shape[0]):
        product[i] = x[i] * other[i]
        if i == 0 or x[i] > largest[()]:
            largest[()] = x[i]
            place[()] = i
    return largest, place, product


@bw.op("bwstraight::accumulate")
def accumulate(x: Tensor, total: Tensor) -> None:
    for i in range(x.shape[0]):
        total[i] = total[i] * x[i]


@pytest.fixture
def served(monkeypatch):
    return calls_of_the_dispatcher(scaled, (leaf(), 2.0, None), monkeypatch)


def calls_of_the_dispatcher(operator, arguments, monkeypatch):
    operator(*arguments)
    calls = []
    native = operator._native

    def counting(*arguments):
        calls.append(arguments)
        return native(*arguments)

    monkeypatch.setattr(operator, "_native", counting)
    return calls


def leaf():
    return torch.randn(3, requires_grad=True)


def test_a_plain_call_skips_the_dispatcher(served):
    x = leaf()
    result = scaled(x, 2.0, None)
    assert not served
    result.sum().backward()
    torch.testing.assert_close(x.grad, 4 * x.detach())
    scaled(torch.nn.Parameter(torch.randn(3)), 2, None)
    assert not served


def test_a_gradient_that_is_differentiated_again_does_too(monkeypatch):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def third():
        (first,) = torch.autograd.grad(scaled(x, 2.0, None).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad((first * x * x).sum(), x, create_graph=True)
        return torch.autograd.grad(second.sum(), x)[0]

    third()
    others = []
    called = Differentiation.__call__
    monkeypatch.setattr(Differentiation, "__call__", lambda *args: others.append(args) or called(*args))
    torch.testing.assert_close(third(), 24 * x.detach())
    assert not others


def test_several_results_of_which_not_all_are_floats(monkeypatch):
    served = calls_of_the_dispatcher(extreme, (leaf(), leaf()), monkeypatch)
    x, other = leaf(), leaf()
    largest, place, product = extreme(x, other)
    assert not served
    assert (largest.requires_grad, place.requires_grad, product.requires_grad) == (True, False, True)
    (largest * 2).backward(retain_graph=True)
    torch.testing.assert_close(x.grad, 2 * torch.nn.functional.one_hot(place, 3).float())
    assert not other.grad.any()
    (largest + product.sum()).backward()
    torch.testing.assert_close(other.grad, x.detach())


def test_what_is_stored_into(monkeypatch):
    served = calls_of_the_dispatcher(accumulate, (leaf(), leaf() * 1), monkeypatch)
    x, begin = leaf(), leaf()
    total = begin * 1
    version = total._version
    accumulate(x, total)
    assert not served
    assert total._version > version
    total.sum().backward()
    torch.testing.assert_close((x.grad, begin.grad), (begin.detach(), x.detach()))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        accumulate(x, leaf())


def test_strides_of_gradients_do_not_matter():
    x = torch.randn(3, 2, requires_grad=True)
    rows = square_rows(x)
    for grad in (torch.randn(2, 3).T, torch.randn(()).expand(3, 2), torch.randn(6, 4)[::2, ::2]):
        torch.testing.assert_close(torch.autograd.grad(rows, x, grad, retain_graph=True)[0], 2 * x * grad)


@bw.op("bwstraight::square_rows")
def square_rows(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * x[i, j]
    return out


def test_others_do_not(served):
    x = leaf()
    scaled(x.detach(), 2.0, None)
    with torch.no_grad():
        assert not scaled(x, 2.0, None).requires_grad
    assert scaled(x, 2.0).requires_grad  # A default is the dispatcher's matter.
    assert scaled(x, torch.tensor(2.0), None).requires_grad
    with torch._C._AutoDispatchBelowAutograd():
        assert not scaled(x, 2.0, None).requires_grad
    assert len(served) == 5
    with pytest.raises(TypeError, match="argument 'factor' must be float, not str"):
        scaled(x, "2", None)


def test_modes_see_their_calls(served):
    seen = []

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    class Called(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append("called")
            return function(*args, **(kwargs or {}))

    with Dispatched():
        scaled(leaf(), 2.0, None)
    assert "bwstraight.scaled.default" in seen
    seen.clear()
    with Called():
        scaled(leaf(), 2.0, None)
    assert "called" in seen
    assert len(served) == 2


def test_transforms_and_tracers_see_their_calls(served):
    x = leaf()
    torch.testing.assert_close(torch.func.grad(lambda x: scaled(x, 2.0, None).sum())(x), 4 * x)
    batched = torch.vmap(lambda x: scaled(x, 2.0, None))(torch.randn(2, 3, requires_grad=True))
    assert batched.requires_grad
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones(3))
        result = torch.autograd.forward_ad.unpack_dual(scaled(dual, 2.0, None))
        torch.testing.assert_close(result.tangent, 4 * x)
    traced = torch.jit.trace(lambda x: scaled(x, 2.0, None), x)
    assert "bwstraight::scaled" in str(traced.graph)
    assert len(served) >= 4


def test_what_is_stored_into_takes_its_place_in_the_graph(monkeypatch):
    served = calls_of_the_dispatcher(accumulate, (leaf(), leaf() * 1), monkeypatch)
    x, begin = (torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def scaled_by_square(x, begin):
        total = begin * 1
        accumulate(x, total)
        accumulate(x, total)
        return total

    assert torch.autograd.gradcheck(scaled_by_square, (x, begin))
    assert torch.autograd.gradgradcheck(scaled_by_square, (x, begin))
    served.clear()
    seen = []
    total = begin * 1
    before = total
    total.register_hook(lambda grad: seen.append(("before", grad)))
    accumulate(x, total)
    assert not served
    assert total is before
    assert total.grad_fn.name() == "accumulateBackward"
    total.register_hook(lambda grad: seen.append(("after", grad)))
    total.retain_grad()
    total.backward(torch.ones(3, dtype=torch.float64))
    assert [name for name, _ in seen] == ["after", "before"]
    torch.testing.assert_close([grad for _, grad in seen], [torch.ones_like(x), x.detach()])
    torch.testing.assert_close(total.grad, torch.ones_like(x))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        total.backward(torch.ones(3, dtype=torch.float64))


def test_what_becomes_differentiable_where_it_is_stored_into(monkeypatch):
    served = calls_of_the_dispatcher(accumulate, (leaf(), torch.ones(3)), monkeypatch)
    x, total = leaf(), torch.full((3,), 2.0)
    accumulate(x, total)
    assert not served
    torch.testing.assert_close(torch.autograd.grad(total.sum(), x)[0], torch.full((3,), 2.0))


def test_a_saved_tensor_that_is_stored_into_is_found(monkeypatch):
    served = calls_of_the_dispatcher(accumulate, (leaf(), leaf() * 1), monkeypatch)
    x, total = leaf(), leaf() * 1
    saved = x * 1
    square = saved.square()
    accumulate(x, saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()
    factor = x * 1
    accumulate(factor, total)
    assert not served
    factor.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.sum().backward()


def test_torchs_rules_about_storing(monkeypatch):
    calls_of_the_dispatcher(accumulate, (leaf(), leaf() * 1), monkeypatch)
    x, begin = leaf(), torch.randn(2, 3, requires_grad=True)
    whole = begin * 1
    accumulate(x, whole[0])
    (grad,) = torch.autograd.grad(whole.sum(), begin)
    torch.testing.assert_close(grad, torch.stack([x.detach(), torch.ones(3)]))
    for target in (begin[0], leaf()):
        before = target.detach().clone()
        with pytest.raises(
            RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"
        ):
            accumulate(x, target)
        torch.testing.assert_close(target.detach(), before)
    with torch.inference_mode():
        made = torch.randn(3)
    with pytest.raises(RuntimeError, match="nference tensor"):
        accumulate(x, made)
    total = x * 1
    with pytest.raises(RuntimeError, match="shares memory with another one"):
        accumulate(total, total)


def test_kinds_of_calls_are_told_apart(served):
    served.clear()
    for dtype in (torch.float32, torch.float64):
        for shape in ((3,), (4,)):
            for _ in range(2):
                x = torch.randn(shape, dtype=dtype, requires_grad=True)
                (grad,) = torch.autograd.grad(scaled(x, 3.0, None).sum(), x)
                torch.testing.assert_close(grad, 6 * x.detach())
    assert len(served) <= 1  # The first of another type is found out about.
    x, other = leaf(), leaf()
    for wanted in ((True, False), (False, True), (True, True)):
        for _ in range(2):
            leaves = [item.detach().requires_grad_(need) for item, need in zip((x, other), wanted, strict=True)]
            extreme(*leaves)[2].sum().backward()
            torch.testing.assert_close(
                [item.grad for item in leaves],
                [partner.detach() if need else None for partner, need in zip((other, x), wanted, strict=True)],
            )
