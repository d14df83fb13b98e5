"""What is said of overrides: one warning when one takes effect, and which ones are in place."""

import warnings

import pytest
import torch

import brickwork as bw
from brickwork import ops


def doubled(x):
    return 2 * x


def test_one_warning_says_that_it_took_effect(device):
    with pytest.warns(bw.BrickworkWarning) as told:
        handle = bw.override("aten::sin", doubled, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.sin(torch.randn(2))
        handle.remove()
    assert [str(each.message) for each in told] == [
        f"aten::sin on {device} now runs doubled, until this override is removed"
    ]
    assert told[0].filename == __file__
    with bw.config.override(warn=0), warnings.catch_warnings():
        warnings.simplefilter("error")
        bw.override("aten::sin", doubled, device=device).remove()


def test_a_warning_that_is_an_error_leaves_nothing_in_place(device):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bw.BrickworkWarning, match="now runs doubled"):
            bw.override("aten::sin", doubled, device=device)
    assert bw.override.active() == ()
    assert torch.equal(torch.sin(torch.zeros(2)), torch.zeros(2))


def test_what_is_in_place_is_listed(device):
    assert bw.override.active() == ()
    first = bw.override("aten::sin", doubled, device=device)
    second = bw.override("aten::cos", ops.sin, device=device)
    third = bw.override("aten::sin", torch.cos, device=device)
    found = bw.override.active()
    assert set(found) == {first, second, third}
    assert found.index(first) < found.index(third)
    assert [(each.name, each.function) for each in found if each is second] == [("aten::cos", ops.sin)]
    first.remove()
    assert set(bw.override.active()) == {second, third}
    for each in bw.override.active():
        each.remove()
    assert bw.override.active() == ()
