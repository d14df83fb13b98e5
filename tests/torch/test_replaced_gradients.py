"""`@op.backward`: a gradient that the user has written, in place of the derived one."""

import pytest
import torch

import brickwork as bw
from support.operators import copy_scaled

pytestmark = pytest.mark.filterwarnings("ignore")


@bw.op("bwreplaced::square")
def square(x: torch.Tensor, by: float = 1.0) -> torch.Tensor:
    """Square of each element."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = by * x[i] * x[i]
    return out


@square.backward
def _(x, by, grad):
    return 3 * by * x * grad, None


@bw.op("bwreplaced::join")
def join(xs: list[torch.Tensor], y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sums and differences."""
    total, difference = torch.empty_like(y), torch.empty_like(y)
    for i in range(y.shape[0]):
        total[i] = xs[0][i] + xs[1][i] + y[i]
        difference[i] = xs[0][i] - y[i]
    return total, difference


def _keep(ctx, inputs, output):
    xs, y = inputs
    ctx.save_for_backward(*xs, y, *output)
    ctx.needs = ctx.needs_input_grad


@join.backward(setup_context=_keep)
def _(ctx, total, difference):
    first, _, y, given, _ = ctx.saved_tensors
    torch.testing.assert_close(given - y - first, ctx.saved_tensors[1])
    assert ctx.needs == ([True, False], True)
    return [total + difference, None], total - difference


def test_the_gradient_is_the_one_that_is_given(device):
    x = torch.randn(5, requires_grad=True)
    square(x, 2.0).sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())
    gradient = torch.func.grad(lambda x: square(x).sum())
    torch.testing.assert_close(gradient(x.detach()), 3 * x.detach())
    torch.testing.assert_close(torch.vmap(gradient)(x.detach()[None]), 3 * x.detach()[None])
    torch.testing.assert_close(torch.func.grad(lambda x: torch.vmap(square)(x).sum())(x[None]), 3 * x[None])
    second = torch.func.jacrev(torch.func.jacrev(lambda x: square(x).sum()))
    torch.testing.assert_close(second(x.detach()), 3 * torch.eye(5))


def test_it_is_differentiated_through_torch(device):
    x = torch.randn(5, requires_grad=True)
    (first,) = torch.autograd.grad(square(x).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, torch.full((5,), 3.0))


def test_with_a_context(device):
    first, second, y = torch.randn(3, requires_grad=True), torch.randn(3), torch.randn(3, requires_grad=True)
    total, difference = join([first, second], y)
    (total * 2 + difference).sum().backward()
    torch.testing.assert_close(first.grad, torch.full((3,), 3.0))
    torch.testing.assert_close(y.grad, torch.full((3,), 1.0))


def test_forward_mode_is_refused():
    x = torch.randn(3)
    with pytest.raises(NotImplementedError, match="has no forward mode"):
        torch.func.jvp(square, (x,), (x,))


def test_what_is_returned_is_checked():
    @bw.op("bwreplaced::wrong")
    def wrong(x: torch.Tensor, by: float) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * by
        return out

    @wrong.backward
    def gradient(x, by, grad):
        return grad

    with pytest.raises(RuntimeError, match="gradient, the gradient of bwreplaced::wrong, returned 1 values for 2"):
        wrong(torch.randn(3, requires_grad=True), 2.0).sum().backward()

    @wrong.backward
    def _(x, by, grad):
        return grad, 1.0 * by

    with pytest.raises(RuntimeError, match="is a Tensor or None, not float"):
        wrong(torch.randn(3, requires_grad=True), 2.0).sum().backward()


def test_what_is_stored_into_is_given_as_it_was():
    @bw.op("bwreplaced::double_")
    def double_(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            x[i] = x[i] * x[i]

    seen = []

    @double_.backward
    def _(x, grad):
        seen.append(x)
        return 2 * x * grad

    leaf = torch.randn(4, requires_grad=True)
    x = leaf.clone()
    double_(x)
    x.sum().backward()
    torch.testing.assert_close(seen[0], leaf)
    torch.testing.assert_close(leaf.grad, 2 * leaf.detach())
    with pytest.raises(RuntimeError, match="leaf Variable"):
        double_(leaf)


def test_shared_memory_is_refused_where_a_gradient_is_asked_for():
    x = torch.randn(4, requires_grad=True).clone()
    with pytest.raises(RuntimeError, match="shares memory"):
        copy_scaled(x, x)
    with torch.no_grad():
        copy_scaled(x, x)
