"""Gradients that read results of the forward pass: saved as torch saves those of its own operators."""

import gc
import math
import weakref

import pytest
import torch
from torch.func import grad, jacfwd, jacrev, vmap
from torch.utils.checkpoint import checkpoint

import brickwork as bw

Tensor = torch.Tensor

pytestmark = pytest.mark.filterwarnings("ignore")


@bw.op("bwsaved::softmax")
def softmax(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        largest = max(x[i, j] for j in range(x.shape[1]))
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - largest) / total
    return out


@bw.op("bwsaved::norm")
def norm(x: Tensor) -> Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        out[i] = math.sqrt(total)
    return out


@bw.op("bwsaved::solve")
def solve(a: Tensor, b: Tensor) -> Tensor:
    out = torch.empty_like(b)
    for i in range(b.shape[0]):
        rest = b[i]
        for j in range(i):
            rest -= a[i, j] * out[j]
        out[i] = rest / a[i, i]
    return out


@bw.op("bwsaved::waves")
def waves(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The place of the largest element, exponentials, and sines."""
    place = torch.zeros(1, dtype=torch.int64)
    grown, bent = torch.empty_like(x), torch.empty_like(x)
    for i in range(x.shape[0]):
        grown[i] = torch.tanh(x[i])
        bent[i] = grown[i] * grown[i]
        if x[i] > x[place[0]]:
            place[0] = i
    return place, grown, bent


@bw.op("bwsaved::grow_")
def grow_(total: Tensor, x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = math.exp(x[i] * total[i])
        total[i] = total[i] + x[i]
    return out


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def check(function, *inputs):
    assert torch.autograd.gradcheck(function, inputs, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(function, inputs, check_fwd_over_rev=True, check_batched_grad=True)


def saved(result):
    return result.grad_fn.saved_tensors


def triangle(n):
    return (torch.randn(n, n, dtype=torch.float64).tril() + 3 * torch.eye(n, dtype=torch.float64)).requires_grad_()


def test_only_the_result_of_a_softmax_is_saved():
    x = numbers(3, 5)
    for _ in range(2):  # the second call does not go by the dispatcher
        result = softmax(x)
        (kept,) = saved(result)
        assert kept.data_ptr() == result.data_ptr()
    check(softmax, x)
    assert "saved by the forward: the result; the sizes of x\n" in softmax.explain("backward", x)


def test_gradients_are_those_of_torch():
    x, y, w = numbers(4, 3), numbers(5), triangle(5)
    check(norm, x)
    check(solve, w, y)
    check(lambda x: waves(x)[1:], y)
    check(lambda total, x: grow_(total.clone(), x), numbers(4), numbers(4))
    again = x.detach().requires_grad_()
    norm(x).square().sum().backward()
    again.norm(dim=1).square().sum().backward()
    torch.testing.assert_close(x.grad, again.grad)


def test_results_are_told_apart():
    x = numbers(4)
    for _ in range(2):
        results = waves(x)
        (kept,) = saved(results[2])
        assert kept.data_ptr() == results[1].data_ptr()
    assert "saved by the forward: result 1; the sizes of x\n" in waves.explain("backward", x)


def test_a_result_that_is_changed_is_refused():
    x = numbers(3, 4)
    for _ in range(2):
        result = softmax(x)
        result.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()
    result = softmax(x)
    assert result.mul(2).sum().backward() is None


def test_what_is_changed_may_be_an_argument_that_is_not_read():
    x = numbers(3, 4)
    copied = x.clone()
    result = softmax(copied)
    copied.zero_()
    weights = torch.randn(3, 4, dtype=torch.float64)
    (found,) = torch.autograd.grad(result, x, weights)
    (wanted,) = torch.autograd.grad(torch.softmax(x, 1), x, weights)
    torch.testing.assert_close(found, wanted)


def test_a_graph_goes_with_its_result():
    x = numbers(3, 4)
    results = [weakref.ref(softmax(x)) for _ in range(2)]
    gc.collect()
    assert [result() for result in results] == [None, None]


def test_function_transforms():
    x, y = numbers(3, 4).detach(), numbers(6).detach()

    def ours(x):
        return (softmax(x) ** 2).sum()

    def theirs(x):
        return (torch.softmax(x, 1) ** 2).sum()

    torch.testing.assert_close(grad(ours)(x), grad(theirs)(x))
    torch.testing.assert_close(jacrev(grad(ours))(x), jacrev(grad(theirs))(x))
    torch.testing.assert_close(jacfwd(grad(ours))(x), jacfwd(grad(theirs))(x))
    batch = torch.stack([x, 2 * x])
    torch.testing.assert_close(vmap(grad(ours))(batch), vmap(grad(theirs))(batch))
    torch.testing.assert_close(jacrev(softmax)(x), jacrev(lambda x: torch.softmax(x, 1))(x))
    torch.testing.assert_close(grad(lambda y: waves(y)[2].sum())(y), grad(lambda y: y.tanh().square().sum())(y))


def test_checkpoints_and_hooks():
    x = numbers(3, 4)
    weights = torch.randn(3, 4, dtype=torch.float64)
    (wanted,) = torch.autograd.grad(softmax(x), x, weights)
    (found,) = torch.autograd.grad(checkpoint(softmax, x, use_reentrant=False), x, weights)
    torch.testing.assert_close(found, wanted)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda item: packed.append(item.shape) or item, lambda item: item):
        result = softmax(x)
    assert packed == [x.shape]
    torch.testing.assert_close(torch.autograd.grad(result, x, weights)[0], wanted)


def test_compiled_graphs():
    x = numbers(3, 4)
    weights = torch.randn(3, 4, dtype=torch.float64)
    (wanted,) = torch.autograd.grad(softmax(x), x, weights)
    compiled = torch.compile(softmax, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(x), x, weights)
    torch.testing.assert_close(found, wanted)


def test_half_types_keep_their_arguments():
    x = torch.randn(3, 4).bfloat16().requires_grad_()
    assert "saved by the forward: x\n" in softmax.explain("backward", x)


def test_a_result_of_other_sizes_is_refused():
    x = numbers(3, 4)
    softmax(x).sum().backward()
    with pytest.raises(ValueError, match="the result `out` has the size 2 on axis 0, not 3"):
        torch.ops.bwsaved.softmax__backward_1_with_0_from_1(x, x, x.detach()[:2])
