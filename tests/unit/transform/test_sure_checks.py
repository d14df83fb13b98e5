"""Checks go that cannot fail: of lengths in iterations of their loops, and of what remainders make."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Assign, Check, Expression, For, Statement, Symbol
from brickwork.ir.operators import OPERATORS
from brickwork.ir.walk import walk
from brickwork.transform.canonical.divisors import LARGE_BITS, without_sure_checks
from support.lowering import memory
from support.scheduling import kernel_of

I = build.read(Symbol("i", 90, INT64))


def asserting(x: torch.Tensor) -> None:
    for t in range(x.shape[0]):
        assert x[t] > 0.0


KERNEL = kernel_of(asserting, memory([1.0]))
CHECK = next(node for node in walk(KERNEL) if isinstance(node, Check))


def of(name: str, one: Expression, other: Expression | int) -> Expression:
    other = build.integer(other) if isinstance(other, int) else other
    return Apply(operator=OPERATORS[name], operands=(one, other), dtype=INT64)


def is_sure(condition: Expression) -> bool:
    return without_sure_checks((replace(CHECK, condition=condition),)) == ()


def is_not_negative(number: Expression, limit: int = 0) -> bool:
    return is_sure(build.apply("ge", number, build.integer(limit)))


SMALL = of("mod", I, 8)
WIDE = of("mod", I, 1 << (LARGE_BITS - 1))
"""Of as many bits, less one, as what may wrap."""
SURE = [SMALL, WIDE, of("add", SMALL, 0), of("add", SMALL, SMALL), of("mul", SMALL, 5), of("mul", WIDE, 1)]
SURE += [of("mod", I, 1), of("add", of("mod", I, 1 << 40), of("mod", I, 1 << 40))]
UNSURE = [I, of("mod", I, -8), of("mod", I, I), of("floordiv", I, 8), of("sub", SMALL, SMALL), of("add", SMALL, -1)]
UNSURE += [of("add", SMALL, I), of("add", I, SMALL), of("mul", SMALL, I), of("mul", I, SMALL), of("mul", WIDE, 3)]
UNSURE += [of("mod", I, 0), of("add", WIDE, of("add", WIDE, 3)), of("mod", I, (1 << LARGE_BITS - 1) + 1)]


@pytest.mark.parametrize("number", SURE)
def test_what_remainders_make_is_not_negative(number):
    assert is_not_negative(number)
    assert not is_not_negative(number, 1)


@pytest.mark.parametrize("number", UNSURE)
def test_other_integers_may_be_negative(number):
    assert not is_not_negative(number)


def test_other_checks_stay():
    assert not is_sure(CHECK.condition)
    for name in ("gt", "eq", "ne"):
        assert not is_sure(build.apply(name, SMALL, build.integer(0)))
    assert without_sure_checks(KERNEL.body) == KERNEL.body


def in_loop(start: int | Expression, stop: int | Expression, *body: Statement) -> For:
    first, last = (build.integer(end) if isinstance(end, int) else end for end in (start, stop))
    return For(index=I.symbol, start=first, stop=last, body=body)


def checking(number: Expression) -> Check:
    return replace(CHECK, condition=build.apply("ge", number, build.integer(0)))


@pytest.mark.parametrize(
    ("start", "stop", "number", "sure"),
    [
        (0, 8, of("mul", I, 4), True),
        (3, 8, I, True),
        (3, 2, I, True),
        (-1, 8, I, False),
        (I, 8, I, False),
        (0, I, I, False),
        (0, 8, of("sub", I, 1), False),
        (0, 1 << LARGE_BITS, of("add", I, 1), False),
        (0, 1 << (LARGE_BITS - 1), of("mul", I, 3), False),
    ],
)
def test_indices_from_0_to_a_literal_are_not_negative(start, stop, number, sure):
    loop = in_loop(start, stop, checking(number), CHECK)
    assert without_sure_checks((loop,)) == ((replace(loop, body=(CHECK,)),) if sure else (loop,))


def test_an_index_is_known_in_its_loop_alone():
    loop = in_loop(0, 8, CHECK)
    assert without_sure_checks((checking(I), loop, checking(I))) == (checking(I), loop, checking(I))


def test_variables_are_what_they_were_given_unless_that_is_twice():
    own = Symbol("s", 91, INT64)
    given, twice = Assign(symbol=own, value=of("mul", SMALL, 4)), Assign(symbol=own, value=I)
    check = checking(build.read(own))
    assert without_sure_checks((check, given, check)) == (check, given)
    assert without_sure_checks((given, check, twice, check)) == (given, check, twice, check)
    assert without_sure_checks((twice, check)) == (twice, check)
    assert without_sure_checks((in_loop(0, 8, given), check)) == (in_loop(0, 8, given), check)
