"""Function transforms over operators, one inside the other: `grad`, `jvp`, `vmap`, and what is made of them."""

import warnings

import pytest
import torch
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import brickwork as bw
from brickwork.pytorch import libtorch
from support.operators import copy_scaled, halves, noise, scale_, timex, torch_timex, transposed

pytestmark = pytest.mark.filterwarnings("error:There is a performance drop")


@bw.op("bwfunc::cube")
def cube(x: torch.Tensor) -> torch.Tensor:
    """The third power of each element."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * x[i] * x[i]
    return out


@bw.op("bwfunc::linear")
def linear(w: torch.Tensor, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """A matrix times a vector, with another one added if there is one."""
    m, n = w.shape
    out = x.new_empty((m,))
    for i in range(m):
        s = 0.0
        for j in range(n):
            s += w[i, j] * x[j]
        if bias is not None:
            s += bias[i]
        out[i] = s
    return out


@bw.op("bwfunc::sum_of")
def sum_of(xs: list[torch.Tensor]) -> torch.Tensor:
    """The weighted sum of two vectors."""
    out = torch.empty_like(xs[0])
    for i in range(out.shape[0]):
        out[i] = xs[0][i] + 2.0 * xs[1][i]
    return out


def total(function):
    return lambda *arguments: function(*arguments).sum()


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


TRANSFORMS = {
    "grad": lambda f, x: grad(total(f))(x),
    "grad of grad": lambda f, x: grad(total(grad(total(f))))(x),
    "third derivative": lambda f, x: grad(total(grad(total(grad(total(f))))))(x),
    "jvp": lambda f, x: jvp(f, (x,), (x + 1,)),
    "jvp of jvp": lambda f, x: jvp(lambda x: jvp(f, (x,), (x,))[1], (x,), (x + 1,)),
    "vjp": lambda f, x: vjp(f, x)[1](x + 1),
    "jacrev": lambda f, x: jacrev(f)(x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "hessian": lambda f, x: hessian(total(f))(x),
    "jvp of vjp": lambda f, x: jvp(lambda x: vjp(f, x)[1](x)[0], (x,), (x + 1,)),
    "vjp of jvp": lambda f, x: vjp(lambda x: jvp(f, (x,), (x,))[1], x)[1](x + 1),
    "vmap": lambda f, x: vmap(f)(torch.stack([x, 2 * x])),
    "vmap of vmap": lambda f, x: vmap(vmap(f))(torch.stack([x, 2 * x, 3 * x])[None]),
    "vmap of grad": lambda f, x: vmap(grad(total(f)))(torch.stack([x, 2 * x])),
    "grad of vmap": lambda f, x: grad(total(vmap(f)))(torch.stack([x, 2 * x])),
    "vmap of hessian": lambda f, x: vmap(hessian(total(f)))(torch.stack([x, 2 * x])),
    "grad of vmap of grad": lambda f, x: grad(total(vmap(grad(total(f)))))(torch.stack([x, 2 * x])),
    "jvp of vmap": lambda f, x: jvp(vmap(f), (torch.stack([x, 2 * x]),), (torch.stack([x, x]),)),
    "vmap of jvp": lambda f, x: vmap(lambda x: jvp(f, (x,), (x,)))(torch.stack([x, 2 * x])),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(device, name):
    x = numbers(4)
    torch.testing.assert_close(TRANSFORMS[name](cube, x), TRANSFORMS[name](lambda x: x**3, x))


@pytest.mark.parametrize("name", ["jvp of vjp", "vmap of grad", "grad of vmap", "hessian", "vmap of vmap"])
def test_transforms_under_compile(device, name):
    if name == "hessian" and device == "cuda" and torch.__version__ < "2.12":
        pytest.skip("Dynamo of torch 2.11 does not trace torch's own hessian under a default device")
    torch._dynamo.reset()
    x = numbers(4)
    compiled = torch.compile(lambda x: TRANSFORMS[name](cube, x), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), TRANSFORMS[name](lambda x: x**3, x))


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (1, 2), (0, 0), (2, -1)])
def test_batches_along_any_axis(device, dims):
    w, k = numbers(2, 5), numbers(3, 2, 5)
    given = [x if dim is None else torch.stack([x, 2 * x, 3 * x], dim) for x, dim in zip((w, k), dims, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = vmap(lambda w, k: timex(w, k, 0.1), dims, out_dims=1)(*given)
    torch.testing.assert_close(ours, vmap(lambda w, k: torch_plain_timex(w, k, 0.1), dims, out_dims=1)(*given))
    gradient = grad(lambda w, k: vmap(lambda w, k: timex(w, k, 0.1), dims)(w, k).square().sum(), (0, 1))
    theirs = grad(lambda w, k: vmap(lambda w, k: torch_plain_timex(w, k, 0.1), dims)(w, k).square().sum(), (0, 1))
    torch.testing.assert_close(gradient(*given), theirs(*given))


def torch_plain_timex(w, k, eps):
    T = k.shape[-1]
    columns = [sum(w[:, T - 1 - t + u] * k[:, :, u] for u in range(t + 1)) + eps for t in range(T)]
    return torch.stack(columns, -1)


def test_optional_arguments_lists_and_several_results(device):
    w, x, bias = numbers(3, 2), numbers(5, 2), numbers(5, 3)
    torch.testing.assert_close(vmap(linear, (None, 0))(w, x), x @ w.T)
    torch.testing.assert_close(vmap(linear, (None, 0, 0))(w, x, bias), x @ w.T + bias)
    weights = vmap(grad(lambda w, x: linear(w, x).sum()), (None, 0))(w, x)
    torch.testing.assert_close(weights, x[:, None].expand(5, 3, 2))
    y = numbers(2)
    torch.testing.assert_close(vmap(lambda x: sum_of([x, y]))(x), x + 2 * y)
    torch.testing.assert_close(vmap(lambda x: sum_of([x, x]))(x), 3 * x)
    gradients = grad(lambda xs: vmap(lambda x: sum_of([x, y]))(xs).sum())(x)
    torch.testing.assert_close(gradients, torch.ones_like(x))
    torch.testing.assert_close(vmap(halves)(bias), (bias[:, ::2], bias[:, 1::2]))
    torch.testing.assert_close(vmap(transposed)(numbers(2, 3, 4)).shape, torch.Size([2, 4, 3]))


def test_what_is_stored_into(device):
    def scaled(x):
        y = x * x
        scale_(y, 3.0)
        return y

    x = numbers(3)
    torch.testing.assert_close(grad(total(scaled))(x), 6 * x)
    torch.testing.assert_close(vmap(grad(total(scaled)))(x[None]), 6 * x[None])
    torch.testing.assert_close(jvp(scaled, (x,), (x,))[1], 6 * x * x)
    torch.testing.assert_close(hessian(total(scaled))(x), 6 * torch.eye(3, dtype=torch.float64))

    def copied(x):
        into = torch.empty_like(x)
        copy_scaled(x, into, by=2.0)
        return into

    torch.testing.assert_close(vmap(copied)(numbers(2, 3)).shape, torch.Size([2, 3]))
    torch.testing.assert_close(grad(total(copied))(x), torch.full_like(x, 2.0))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers(device, randomness):
    x = torch.randn(3, 50)
    gradients = vmap(grad(lambda x: (noise(x, 1.0) * x).sum()), randomness=randomness)(x)
    drawn = (gradients - 2 * x).sort().values
    assert torch.allclose(drawn[0], drawn[1], atol=1e-4) == (randomness == "same")
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(grad(lambda x: noise(x, 1.0).sum()))(x)
    nested = vmap(vmap(lambda x: noise(x, 1.0), randomness=randomness), randomness=randomness)(torch.zeros(2, 2, 9))
    assert (nested.unique(dim=0).shape[0] == 1) == (randomness == "same")
    assert (nested[0].unique(dim=0).shape[0] == 1) == (randomness == "same")


def test_an_empty_batch(device):
    assert vmap(cube)(numbers(0, 3)).shape == (0, 3)


def test_gradients_of_each_sample_of_a_module(device):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(2, 5))

        def forward(self, k):
            return timex(self.w, k, 0.1)

    model, k = Model(), torch.randn(4, 3, 2, 5)
    weights = dict(model.named_parameters())

    def loss(weights, k):
        return functional_call(model, weights, (k,)).square().sum()

    ours = vmap(grad(loss), (None, 0))(weights, k)["w"]
    for sample, each in zip(k, ours, strict=True):
        w = model.w.detach().clone().requires_grad_()
        (expected,) = torch.autograd.grad(torch_timex(w, sample, 0.1).square().sum(), w)
        torch.testing.assert_close(each, expected)


@pytest.mark.parametrize("transform", [vmap, lambda function: grad(lambda x: function(x).sum())])
@pytest.mark.parametrize("offset", [libtorch.key_set_offset, libtorch.autograd_offset])
def test_how_tensors_are_laid_out_is_found_in_a_first_call_under_a_transform(transform, offset):
    found = []

    def first(x):
        with torch.device("meta"):
            found.append(offset.__wrapped__())
        return 2 * x

    transform(first)(torch.zeros(3))
    assert found == [offset()]
    with pytest.raises(RuntimeError, match="requires_grad_"):
        vmap(lambda x: x.clone().requires_grad_())(torch.zeros(3))
