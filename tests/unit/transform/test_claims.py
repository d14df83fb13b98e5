"""A claim is believed where the analysis cannot decide, and nowhere else."""

# pyright: basic
from __future__ import annotations

import pytest
import torch

import brickwork as bw
from brickwork.analysis.analyse import analyse
from brickwork.diagnostics.errors import RaceError
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Break, For, Launch
from brickwork.ir.walk import walk
from brickwork.transform.claims import believe_claims, take_claims
from brickwork.transform.pipeline import schedule_program
from brickwork.transform.privatise import scratch_of
from support.kernels_ir import KernelBuilder, apply, size, value
from support.lowering import memory, program_of
from support.scheduling import AVX2


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


def scattered(x: torch.Tensor, at: torch.Tensor):
    out = torch.zeros_like(x)
    for i in bw.prange(x.shape[0]):
        s = torch.empty(x.shape[1], dtype=torch.float64)
        for j in range(x.shape[1]):
            s[at[j]] = x[i, j]
        for j in range(x.shape[1]):
            out[i, j] = s[at[j]]
    return out


def shared(x: torch.Tensor, at: torch.Tensor):
    out = torch.zeros_like(x)
    s = torch.empty(x.shape[0], dtype=torch.float64)
    for i in bw.prange(x.shape[0]):
        s[at[i]] = x[i, 0]
        out[at[i], 0] = s[at[i]]
    out[0, 1] = s[0]
    return out


@pytest.mark.parametrize(("function", "believed"), [(scattered, False), (shared, True)])
def test_no_claim_is_about_what_iterations_make_for_themselves(function, believed: bool):
    x, at = memory([[1.0, 2.0], [3.0, 4.0]]), memory([1, 0], INT64)
    program = program_of(function, x, at)
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    analysis = analyse(kernel)
    (index,) = [node.index for node in walk(kernel.body) if isinstance(node, For) and node.claimed]
    assert not analysis.loops[index].independent
    assert believe_claims(kernel, analysis, scratch_of(program)).loops[index].independent is believed
    assert take_claims(kernel, analysis, scratch_of(program)).loops[index].independent is believed


def carried(x: torch.Tensor):
    out = torch.zeros_like(x)
    for i in bw.prange(x.shape[0]):
        s = torch.zeros(x.shape[1], dtype=torch.float64)
        for j in range(1, x.shape[1]):
            s[j] = s[j - 1] + x[i, j]
        for j in range(x.shape[1]):
            out[i, j] = s[j]
    return out


def test_what_iterations_make_for_themselves_refutes_no_claim():
    program = program_of(carried, memory([[1.0, 2.0], [3.0, 4.0]]))
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    analysis = analyse(kernel)
    (index,) = [node.index for node in walk(kernel.body) if isinstance(node, For) and node.claimed]
    conflict = analysis.loops[index].conflict
    assert conflict is not None
    assert conflict.refuted
    assert not take_claims(kernel, analysis, scratch_of(program)).loops[index].independent
    with pytest.raises(RaceError):
        take_claims(kernel, analysis)


def added_up(x: torch.Tensor, at: torch.Tensor):
    out = torch.zeros(x.shape[1])
    for i in bw.prange(x.shape[0]):
        s = torch.zeros(x.shape[1], dtype=torch.float64)
        for j in range(x.shape[1]):
            s[at[j]] += x[i, j]
        for j in range(x.shape[1]):
            out[j] += s[j]
    return out


def test_a_claim_beside_what_iterations_make_for_themselves_is_refuted_in_the_users_words():
    program = program_of(added_up, memory([[1.0, 2.0], [3.0, 4.0]]), memory([1, 0], INT64))
    with pytest.raises(RaceError, match=r"iterations of 'i' are not independent: .* stores into out"):
        schedule_program(program, AVX2)


def carried_beside(x: torch.Tensor):
    out = torch.zeros_like(x)
    p = 0.0
    for i in bw.prange(x.shape[0]):
        s = torch.zeros(x.shape[1], dtype=torch.float64)
        for j in range(x.shape[1]):
            s[j] = x[i, j]
        out[i, 0] = s[0] + p
        p = x[i, 1]
    return out


def test_a_variable_that_is_carried_refutes_a_claim_beside_tensors_of_an_iteration():
    program = program_of(carried_beside, memory([[1.0, 2.0], [3.0, 4.0]]))
    kernel = next(node.kernel for node in walk(program) if isinstance(node, Launch))
    with pytest.raises(RaceError):
        take_claims(kernel, analyse(kernel), scratch_of(program))
