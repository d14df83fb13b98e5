"""Which nests run as one loop, and under which conditions."""

# pyright: basic
from __future__ import annotations

import pytest

from brickwork.analysis.analyse import analyse
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Break, For, Read
from brickwork.ir.walk import walk
from brickwork.transform.claims import believe_claims
from brickwork.transform.verbs.fuse import Flat, find_flat
from support.kernels_ir import KernelBuilder, apply, size, value

MAKE = KernelBuilder()
X, Z, W = MAKE.tensor("x", 2), MAKE.tensor("z", 2, contiguous=False), MAKE.tensor("w", 2)
Y, AT = MAKE.tensor("y", 1), MAKE.tensor("at", 1, INT64)
I, J, L, S = MAKE.symbol("i"), MAKE.symbol("j"), MAKE.symbol("l"), MAKE.symbol("s", FLOAT32)
K, M, SCALE = MAKE.scalar("k"), MAKE.scalar("m"), MAKE.scalar("scale", FLOAT32)
ONE, HEIGHT, WIDTH = build.constant(1.0, FLOAT32), size(X, 0), size(X, 1)


def put(tensor=X, stored=ONE, at=(I, J)):
    return MAKE.store(tensor, at, stored)


def nest(*body, start=(0, 0), stop=(HEIGHT, WIDTH), claimed=False, after=()):
    inner = MAKE.loop(J, stop[1], *body, start=start[1], claimed=claimed)
    return MAKE.loop(I, stop[0], inner, *after, start=start[0])


def flat(*statements) -> Flat | None:
    """How the first loop runs as one with those inside."""
    kernel = MAKE.kernel(*statements)
    (loop, *_) = [node for node in walk(kernel.body) if isinstance(node, For) and node.index == I]
    return find_flat(loop, believe_claims(kernel, analyse(kernel)))


def conditions(*statements) -> set[str]:
    found = flat(*statements)
    assert found is not None
    assert found.loops == (I, J)
    return set(map(str, found.conditions))


def test_all_elements_of_dense_tensors_are_one_loop():
    assert conditions(nest(put())) == set()
    assert conditions(nest(put(X, apply("mul", MAKE.load(X, I, J), Read(symbol=SCALE))))) == set()
    assert conditions(nest(put(X, MAKE.load(Y, 0)))) == set()
    assert conditions(nest(put()), MAKE.loop(L, K, put(X, ONE, (MAKE.load(AT, L), 0)))) == set()


def test_sizes_are_to_be_those_of_the_nest():
    same = {str(apply("eq", size(W, axis), size(X, axis))) for axis in (0, 1)}
    same |= {str(apply("eq", size(X, axis), size(W, axis))) for axis in (0, 1)}
    found = conditions(nest(put(X, MAKE.load(W, I, J))))
    assert len(found) == 2
    assert found < same
    assert len(conditions(nest(put(), stop=(K, M)))) == 2


TRIANGLE = (HEIGHT, apply("minimum", WIDTH, apply("add", I, 1)))


@pytest.mark.parametrize(
    "statement",
    [
        MAKE.loop(I, HEIGHT, put(Y, ONE, (I,))),
        nest(put(), start=(1, 0)),
        nest(put(), start=(0, 1)),
        nest(put(), start=(1, 1)),
        nest(put(Z)),
        nest(put(X, MAKE.load(Z, I, J))),
        nest(put(X, build.cast(value(I), FLOAT32))),
        nest(put(X, MAKE.load(Y, J))),
        nest(put(), stop=TRIANGLE),
        nest(put(), stop=(HEIGHT, apply("add", I, 1))),
        nest(put(), stop=(HEIGHT, MAKE.load(AT, 0))),
        nest(put(), stop=(apply("mul", K, 2**31), WIDTH)),
        nest(put(), after=(put(Y, ONE, (I,)),)),
        nest(MAKE.branch(apply("gt", value(K), 3), (Break(),)), put()),
        nest(put(Y, MAKE.load(X, I, J), (MAKE.load(AT, 0),)), claimed=True),
        nest(MAKE.assign(S, apply("add", Read(symbol=S), ONE)), stop=(K, M)),
    ],
)
def test_what_is_no_walk_over_all_elements_in_order(statement):
    assert flat(MAKE.assign(S, ONE), statement, put(Y, Read(symbol=S), (0,))) is None
