"""`torch.vmap` over operators: one call a sample, random numbers as its `randomness` says, and no writes."""

import pytest
import torch

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
