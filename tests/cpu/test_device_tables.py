"""Nests of parallel loops whose threads lie along rows and columns, for every shape of table and every grid."""

from dataclasses import replace

import pytest
import torch

from brickwork.codegen import launch_dimensions
from brickwork.ir.nodes import For, Role
from brickwork.ir.walk import rewrite_statements
from cpu.test_device_kernels import narrow
from support.emulated import Emulated
from support.machine import named, scheduled
from support.written import extent, kernel, load, loop, op, store, symbol

SHAPES = [(3, 5, 7), (1, 1, 1), (0, 3, 4), (4, 0, 3), (4, 2, 0), (5, 1, 300), (2, 200, 4), (2, 3, 5), (1, 40, 33)]


def _nest(x, out):
    tensor, to = named("x", 0, x), named("out", 1, out)
    i, j, k = symbol("i"), symbol("j"), symbol("k")
    # Counts on each element, so that one that is visited twice or never is seen.
    value = op("add", load(to, i, j, k), load(tensor, k, i, j))
    nest = loop(
        i,
        0,
        extent(to),
        loop(j, 0, extent(to, 1), loop(k, 0, extent(to, 2), store(to, (i, j, k), value))),
    )
    return kernel((tensor, to), nest)


def _across(whole, threads):
    def change(statement):
        if isinstance(statement, For) and statement.index.name == "k":
            return (replace(statement, across=threads),)
        return (statement,)

    return replace(whole, body=rewrite_statements(whole.body, change))


def _agrees(whole, x, out):
    result = out.clone()
    assert Emulated(whole)([x, result]) is None
    torch.testing.assert_close(result, out + x.permute(1, 2, 0), rtol=0, atol=0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("across", [0, 8])
def test_every_step_is_run_once(shape, width, across):
    x = torch.rand(shape).permute(2, 0, 1).contiguous()
    out = torch.rand(shape)
    roles = {"i": (Role.PARALLEL, 1), "j": (Role.PARALLEL, 1), "k": (Role.PARALLEL, width)}
    whole = _across(scheduled(_nest(x, out), roles), across)
    _agrees(whole, x, out)
    _agrees(narrow(whole), x, out)


@pytest.mark.parametrize("shape", SHAPES[-3:])
@pytest.mark.parametrize(("rows", "blocks", "steps"), [(2, 2**31 - 1, 2**19), (3, 1, 2**19), (65535, 2, 8)])
def test_small_grids_take_several_steps(monkeypatch, shape, rows, blocks, steps):
    monkeypatch.setattr(launch_dimensions, "MOST_ROWS", rows)
    monkeypatch.setattr(launch_dimensions, "MOST_BLOCKS", blocks)
    monkeypatch.setattr(launch_dimensions, "MANY_STEPS", steps)
    x = torch.rand(shape).permute(2, 0, 1).contiguous()
    out = torch.rand(shape)
    whole = scheduled(_nest(x, out), {name: (Role.PARALLEL, 1) for name in "ijk"})
    for each in (whole, narrow(whole), _across(whole, 4)):
        _agrees(each, x, out)
