"""`torch.vmap` over operators: one call a sample, random numbers as its `randomness` says, and no writes."""

import warnings

import pytest
import torch
from torch.autograd.functional import hessian, jacobian

import brickwork as bw
from support.operators import copy_scaled, noise, scale_, square

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("axis", [0, 1])
def test_samples_along_any_axis(axis):
    x = torch.randn(3, 4)
    torch.testing.assert_close(torch.vmap(square, in_dims=axis, out_dims=axis)(x), x * x)


def test_levels_within_levels():
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(torch.vmap(torch.vmap(square))(x), x * x)


def test_operators_write_into_samples():
    x = torch.randn(2, 3)

    def scaled(row):
        row = row.clone()
        scale_(row)
        return row

    torch.testing.assert_close(torch.vmap(scaled)(x), x * 2.0)


def test_what_has_no_samples_cannot_take_samples():
    shared = torch.zeros(3)
    with pytest.raises(RuntimeError, match="vmap"):
        torch.vmap(lambda row: copy_scaled(row, shared))(torch.randn(2, 3))


@pytest.mark.parametrize("batched", [True, False])
def test_random_numbers_follow_the_randomness_of_vmap(batched):
    x = torch.zeros(3, 50)

    def draw(row):
        return noise(row if batched else torch.zeros(50), 1.0) + row

    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(draw)(x)
    same = torch.vmap(draw, randomness="same")(x)
    assert torch.equal(same[0], same[1])
    assert same.std() > 0.5
    different = torch.vmap(draw, randomness="different")(x)
    assert not torch.equal(different[0], different[1])
    torch.manual_seed(1)
    again = torch.vmap(draw, randomness="different")(x)
    torch.manual_seed(1)
    assert torch.equal(torch.vmap(draw, randomness="different")(x), again)


def test_a_given_key_is_no_draw():
    x = torch.zeros(3, 5)
    drawn = torch.vmap(lambda row: noise(row, 1.0, key=torch.tensor(7)))(x)
    assert torch.equal(drawn[1], noise(x[1], 1.0, key=7))


@bw.op("bwvmap::sum_of_squares")
def sum_of_squares(xs: list[torch.Tensor]) -> torch.Tensor:
    out = torch.empty_like(xs[0])
    for i in range(out.shape[0]):
        out[i] = xs[0][i] * xs[0][i] + 2.0 * xs[1][i] * xs[1][i] * xs[1][i]
    return out


def python_sum_of_squares(xs):
    return xs[0] * xs[0] + 2.0 * xs[1] * xs[1] * xs[1]


@pytest.fixture
def no_fallback():
    """Let torch's older vmap complain of calling an operator once a sample."""
    torch._C._debug_only_display_vmap_fallback_warnings(True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", r".* the batching rule for bw\w+::")
        yield
    torch._C._debug_only_display_vmap_fallback_warnings(False)


@pytest.mark.usefixtures("no_fallback")
def test_gradients_for_samples_of_gradients():
    for _ in range(2):  # By the dispatcher, then past it.
        a, b = (torch.randn(3, requires_grad=True) for _ in range(2))
        found = torch.autograd.grad(sum_of_squares([a, b]), (a, b), torch.eye(3), is_grads_batched=True)
        torch.testing.assert_close(found, (torch.diag(2 * a.detach()), torch.diag(6 * b.detach() ** 2)))
        (found,) = torch.autograd.grad(square(a), a, torch.eye(3), is_grads_batched=True)
        torch.testing.assert_close(found, torch.diag(2 * a.detach()))


@pytest.mark.usefixtures("no_fallback")
@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_jacobians_and_hessians_at_once(strategy):
    x = torch.randn(3)
    found, expected = (
        (
            jacobian(lambda x: operator([x, x.sin()]), x, vectorize=True, strategy=strategy),
            hessian(lambda x: operator([x, x.sin()]).sum(), x, vectorize=True, outer_jacobian_strategy=strategy),
        )
        for operator in (sum_of_squares, python_sum_of_squares)
    )
    torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("no_fallback")
def test_older_levels_within_older_levels():
    older = torch._vmap_internals._vmap
    x, y = torch.randn(2, 3, 4), torch.randn(2, 4)
    expected = x * x + 2.0 * y[:, None] ** 3
    torch.testing.assert_close(older(older(lambda x, y: sum_of_squares([x, y]), in_dims=(0, None)))(x, y), expected)
    with pytest.raises(RuntimeError, match="over no samples at all"):
        older(square)(torch.randn(0, 3))
