"""Which checks and which negative indices are left in the two bodies of a kernel."""

# pyright: basic
from __future__ import annotations

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32
from brickwork.ir.nodes import Check, Select
from brickwork.ir.walk import walk
from brickwork.transform.guard import careful_body, fast_body
from support.kernels_ir import KernelBuilder, apply, size, wrapped


def count(kind, block):
    return sum(isinstance(node, kind) for node in walk(block))


def test_indices_that_are_not_negative_are_not_resolved():
    make = KernelBuilder()
    x, i = make.tensor("x", 1), make.symbol("i")
    copy = make.store(x, (wrapped(i, x, 0),), make.load(x, wrapped(i, x, 0)))
    kernel = make.kernel(make.loop(i, size(x, 0), copy))
    assert (count(Select, kernel.body), count(Select, fast_body(kernel.body, analyse(kernel)))) == (2, 0)


def test_proofs_that_assume_are_worth_nothing_where_that_does_not_hold():
    make = KernelBuilder()
    x, i, k = make.tensor("x", 1), make.symbol("i"), make.scalar("k")
    body = make.store(x, (i,), build.constant(1.0, FLOAT32))
    for stop, checks in ((size(x, 0), 0), (apply("minimum", size(x, 0), k), 1)):
        kernel = make.kernel(make.loop(i, stop, body))
        analysis = analyse(kernel)
        assert {verdict.bound for verdict in analysis.bounds.values()} == {Bound.PROVED}
        assert count(Check, careful_body(kernel.body, analysis)) == checks
        assert count(Check, fast_body(kernel.body, analysis)) == 0
