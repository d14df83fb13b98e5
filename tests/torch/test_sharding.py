"""Operators on DTensors of two processes, through gloo: what is shared out, what is summed, what has to be moved."""

import pytest

from support.sharded import NAMES, run_all


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """Run all calls in two processes, once."""
    return run_all(str(tmp_path_factory.mktemp("sharding") / "store"), 2, "cpu")


@pytest.mark.parametrize("name", NAMES)
def test_call_on_two_machines(name, problems):
    assert not problems[name], problems[name]
