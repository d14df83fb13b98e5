"""Neighbouring threads go along what elements say no place of: rows that are looked up are read along memory."""

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.ir.nodes import For, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.canonical.form import canonical
from brickwork.transform.schedule.grid import GridPlanner
from brickwork.transform.schedule.lengths import lengths_in
from support.shared import define, lower
from support.tensors import argument_type

GPU = cuda_target((9, 0))


def last_of(function, *arguments):
    """The loop of the first nest whose neighbouring iterations are for neighbouring threads."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program = canonical(lower(define(function), signature), sizes=True)
    (kernel,) = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    nest = next(node for node in statements(kernel.body) if isinstance(node, For))
    planner = GridPlanner(analyse(kernel), GPU, lengths_in((nest,)))
    return planner.innermost([*planner.band(nest)]).index.name


def looked_up(w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for e in range(at.shape[0]):
        for o in range(w.shape[2]):
            for s in range(at.shape[1]):
                a = 0.0
                for i in range(w.shape[1]):
                    a += w[at[e, s], i, o]
                out[e, o, s] = a


def looked_up_by_both(w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for e in range(at.shape[0]):
        for o in range(w.shape[2]):
            for s in range(at.shape[1]):
                a = 0.0
                for i in range(w.shape[1]):
                    a += w[at[o, s], i, o]
                out[e, o, s] = a


def looked_up_by_quotients(w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for e in range(at.shape[0]):
        for o in range(w.shape[2]):
            for s in range(at.shape[1]):
                a = 0.0
                for i in range(w.shape[1]):
                    a += w[(at.shape[1] * e + s) // 7 % 8, i, o]
                out[e, o, s] = a


def of_what_changes(w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for e in range(at.shape[0]):
        for o in range(w.shape[2]):
            for s in range(at.shape[1]):
                a = 0.0
                for i in range(w.shape[1]):
                    a += w[int(out[e, o, s]), i, o]
                out[e, o, s] = a


@pytest.mark.parametrize(
    ("function", "last"),
    [(looked_up, "o"), (looked_up_by_quotients, "o"), (looked_up_by_both, "e"), (of_what_changes, "s")],
)
def test_rows_that_are_looked_up_are_read_along_memory(function, last):
    at = torch.ones(64, 8, dtype=torch.int64)
    assert last_of(function, torch.ones(8, 8, 8), at, torch.ones(64, 8, 8)) == last
