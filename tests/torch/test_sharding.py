"""Operators on DTensors of two processes, through gloo: what is shared out, what is summed, what has to be moved."""

import pytest
import torch

from brickwork.ops.timex import timex
from support.sharded import NAMES, centred, noise, product, run_all, shift_


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """Run all calls in two processes, once."""
    return run_all(str(tmp_path_factory.mktemp("sharding") / "store"), 2, "cpu")


@pytest.mark.parametrize("name", NAMES)
def test_call_on_two_machines(name, problems):
    assert not problems[name], problems[name]


def test_explain_says_what_is_possible():
    whole = "w Replicate(), k Replicate() -> out Replicate()"
    assert timex.explain("sharding", torch.randn(4, 6), torch.randn(2, 4, 6), 0.1).splitlines() == [
        "w Shard(0), k Shard(1) -> out Shard(1)",
        "w Replicate(), k Shard(0) -> out Shard(0)",
        whole,
    ]
    text = product.explain("sharding", torch.empty(3, 4, device="meta"), torch.empty(4, 5, device="meta"))
    assert "a Shard(1), b Shard(0) -> out Partial()" in text
    assert shift_.explain("sharding", torch.randn(2, 3)) == "x Shard(1) -> nothing\nx Replicate() -> nothing"
    assert noise.explain("sharding", torch.randn(3)) == "x Replicate() -> out Replicate()"
    assert "Python" in centred.explain("sharding", torch.randn(3))
    with pytest.raises(ValueError, match="called 'shard'"):
        timex.explain("shard")
