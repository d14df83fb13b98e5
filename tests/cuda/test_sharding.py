"""Operators on DTensors of two GPUs, through NCCL."""

import pytest

from support.gpu import GPU, two_gpus
from support.sharded import NAMES, run_all

pytestmark = [*GPU, two_gpus]


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """Run all calls in two processes, once."""
    return run_all(str(tmp_path_factory.mktemp("sharding") / "store"), 2, "cuda")


@pytest.mark.parametrize("name", NAMES)
def test_call_on_two_gpus(name, problems):
    assert not problems[name], problems[name]
