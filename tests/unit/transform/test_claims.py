"""A claim is believed where the analysis cannot decide, and nowhere else."""

# pyright: basic
from __future__ import annotations

import pytest

from brickwork.analysis.analyse import analyse
from brickwork.diagnostics.errors import RaceError
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Break
from brickwork.transform.claims import believe_claims, take_claims
from support.kernels_ir import KernelBuilder, apply, size, value


def made(kind: str, *, claimed: bool = True):
    """A kernel with a loop in which a scatter, a shift, a break or an alias is in the way, or nothing."""
    make = KernelBuilder()
    x, y, at, i = make.tensor("x", 1), make.tensor("y", 1), make.tensor("at", 1, INT64), make.symbol("i")
    copy = make.store(y, (i,), make.load(x, i))
    body = {
        "scatter": make.store(x, (make.load(at, i),), build.cast(make.load(at, i), FLOAT32)),
        "shift": make.store(x, (apply("add", i, 1),), make.load(x, i)),
        "leave": make.branch(apply("gt", value(i), 3), (Break(),)),
        "alias": copy,
        "nothing": copy,
    }[kind]
    kernel = make.kernel(make.loop(i, apply("sub", size(x, 0), 1), body, claimed=claimed), may_alias=kind == "alias")
    return i, kernel, analyse(kernel)


@pytest.mark.parametrize("kind", ["scatter", "shift", "leave", "alias", "nothing"])
def test_claims_that_are_believed(kind: str):
    index, kernel, analysis = made(kind)
    believed = kind in {"scatter", "nothing"}
    assert analysis.loops[index].independent is (kind == "nothing")
    assert believe_claims(kernel, analysis).loops[index].independent is believed
    if kind == "shift":
        with pytest.raises(RaceError):
            take_claims(kernel, analysis)
    else:
        assert take_claims(kernel, analysis).loops[index].independent is believed


@pytest.mark.parametrize("kind", ["scatter", "shift"])
def test_loops_that_are_not_claimed_stay_as_they_were(kind: str):
    index, kernel, analysis = made(kind, claimed=False)
    assert not take_claims(kernel, analysis).loops[index].independent
