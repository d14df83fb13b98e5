"""The published operators of the benchmarks, written as loops: they and their gradients are what torch computes."""

# pyright: basic
import inspect
from pathlib import Path

import pytest
import torch

from benchmarks.published import PUBLISHED
from support.gpu import settle

BY_NAME = {each.name: each for each in PUBLISHED}
PAGE = Path(__file__).parents[2] / "benchmarks/published/README.md"
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float32: 1e-4}
ONE = {
    "wkv5": "k",
    "wkv6": "w",
    "ms_deform_attn": "places",
    "correlation": "x1",
    "deformable_im2col": "offset",
    "carafe_naive": "x",
    "render_gaussians": "conics",
}
"""The argument whose gradient stands for all on CPUs: deriving them together takes seconds."""


def flat(results):
    return results if isinstance(results, tuple) else (results,)


def asked(values, wanted, dtype=None):
    """Return the arguments as leaves, of another dtype if it is given, and those whose gradients are wanted."""
    made = [value.detach() if isinstance(value, torch.Tensor) else value for value in values]
    floats = [isinstance(value, torch.Tensor) and value.is_floating_point() for value in made]
    made = [value.to(dtype or value.dtype) if each else value for value, each in zip(made, floats)]
    return made, [value.requires_grad_() for value, each in zip(made, wanted) if each]


def same(found, expected):
    """Compare with what was computed in float64 of the same numbers."""
    tolerance = TOLERANCE.get(found.dtype, 0)
    torch.testing.assert_close(found.double(), expected.double(), rtol=tolerance, atol=tolerance)


def test_the_page_lists_them():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "`" not in line]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    chosen = [row for row in rows if len(row) == 6]
    listed = {name: (commit, gradient == "yes") for name, _, commit, *_, gradient in chosen if name in BY_NAME}
    assert len(PUBLISHED) == len(BY_NAME) == 30
    assert {each.name: (each.commit, bool(each.gradient)) for each in PUBLISHED} == listed
    assert len({each.repository for each in PUBLISHED}) == 15


@pytest.mark.parametrize("name", BY_NAME)
def test_loops_are_what_torch_computes(name, device):
    each = BY_NAME[name]
    arguments = each.arguments("tiny", device)
    gradient = (ONE[name],) if device == "cpu" and name in ONE else each.gradient
    wanted = [key in gradient for key in inspect.signature(each.op).parameters]
    given, inputs = asked(arguments, wanted)
    exact, places = asked(arguments, wanted, torch.float64)
    found, expected = flat(each.op(*given)), flat(each.reference(*exact))
    settle(device)
    for ours, theirs in zip(found, expected, strict=True):
        same(ours, theirs)
    if gradient:
        pairs = [pair for pair in zip(found, expected) if pair[0].is_floating_point()]
        weights = [torch.cos(torch.arange(ours.numel())).reshape(ours.shape).to(ours.dtype) for ours, _ in pairs]
        mine = torch.autograd.grad([ours for ours, _ in pairs], inputs, weights)
        settle(device)
        right = torch.autograd.grad([theirs for _, theirs in pairs], places, [item.double() for item in weights])
        for ours, theirs in zip(mine, right, strict=True):
            same(ours, theirs)
