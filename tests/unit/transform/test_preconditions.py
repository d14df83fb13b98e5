"""What the host part has checked before a launch."""

from __future__ import annotations

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import (
    Assign,
    Cast,
    Check,
    Draw,
    Expression,
    Failure,
    FailureKind,
    Load,
    Random,
    Rebind,
    Size,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.transform.preconditions import Preconditions, preconditions_of, strictest

n, m = Symbol("n", 1, INT64), Symbol("m", 2, INT64)
x, y = (Tensor(name, number, TensorType(FLOAT32, 1)) for number, name in enumerate("xy"))
r, z = Symbol("r", 3, FLOAT32), Tensor("z", 2, TensorType(INT64, 1))
HEIGHT = Size(tensor=x, axis=0)


def check(condition: Expression) -> Check:
    return Check(condition=condition, failure=Failure(FailureKind.VALUE, ""))


def most(limit: int, number: Expression) -> Expression:
    return build.apply("ge", build.integer(limit), number)


def least(limit: int, number: Expression) -> Expression:
    return build.apply("ge", build.add(build.integer(limit), number), build.integer(0))


def test_stricter_limits_imply_wider_ones() -> None:
    known = Preconditions(frozenset({most(10, HEIGHT), least(4, build.read(n))}))
    assert known.holds(most(10, HEIGHT))
    assert known.holds(most(11, HEIGHT))
    assert not known.holds(most(9, HEIGHT))
    assert known.holds(least(5, build.read(n)))
    assert not known.holds(least(3, build.read(n)))
    assert not known.holds(most(4, build.read(n)))
    assert not known.holds(most(10, build.read(n)))


def test_numbers_of_all_kinds_have_limits() -> None:
    for number in (HEIGHT, build.read(n), Cast(operand=build.read(r), dtype=INT64)):
        assert Preconditions(frozenset({most(10, number)})).holds(most(11, number))
        assert Preconditions(frozenset({least(4, number)})).holds(least(5, number))


def test_what_is_like_a_limit_is_none() -> None:
    number, ten = build.read(n), build.integer(10)
    for name in ("le", "eq", "ne"):
        assert not Preconditions(frozenset({build.apply(name, ten, number)})).holds(most(11, number))
        below = build.apply(name, build.add(ten, number), build.integer(0))
        assert not Preconditions(frozenset({below})).holds(least(11, number))
    for total, end in (
        (build.sub(ten, number), 0),
        (build.mul(ten, number), 0),
        (build.add(ten, number), -7),
        (build.mul(ten, number), -7),
    ):
        known = Preconditions(frozenset({build.apply("ge", total, build.integer(end))}))
        assert not known.holds(least(11, number))


def test_of_what_is_no_limit_only_the_same_is_known() -> None:
    same, other = (build.apply("eq", build.read(n), build.integer(value)) for value in (3, 4))
    known = Preconditions(frozenset({same, most(10, HEIGHT)}))
    assert known.holds(same)
    assert not known.holds(other)


def test_a_limit_is_asked_for_once() -> None:
    limits = [most(9, HEIGHT), most(8, HEIGHT), least(3, build.read(n)), least(3, build.read(n))]
    assert [*strictest(limits, Preconditions())] == [most(8, HEIGHT), least(3, build.read(n))]
    assert [*strictest(limits, Preconditions(frozenset({most(2, HEIGHT)})))] == [least(3, build.read(n))]


def test_divisors_that_were_checked_are_not_0() -> None:
    nonzero = build.apply("ne", build.read(n), build.integer(0))
    assert preconditions_of((check(nonzero),), ()).nonzero == {build.read(n)}
    for name, value in (("ne", 3), ("eq", 0), ("gt", 0), ("eq", 3)):
        other = build.apply(name, build.read(n), build.integer(value))
        assert not preconditions_of((check(other),), ()).nonzero


def test_what_is_read_or_drawn_may_be_other_in_the_kernel() -> None:
    element = Load(tensor=z, indices=(build.integer(0),), access=0, dtype=INT64)
    number = build.read(n)
    draw = Random(draw=Draw.INTEGER, key=number, counter=number, extra=number, site=0, dtype=INT64)
    for unknown in (element, draw):
        assert not preconditions_of((check(most(10, unknown)),), ()).conditions


def test_what_is_changed_after_the_check_is_not_known() -> None:
    limit = most(10, build.read(n))
    change = Assign(symbol=n, value=build.integer(20))
    assert preconditions_of((check(limit),), ()).holds(limit)
    assert preconditions_of((change, check(limit)), ()).holds(limit)
    assert not preconditions_of((check(limit), change), ()).holds(limit)
    assert not preconditions_of((check(limit),), (change,)).holds(limit)
    assert preconditions_of((check(limit), Rebind(targets=(x,), sources=(y,))), ()).holds(limit)
    assert not preconditions_of((check(most(10, HEIGHT)), Rebind(targets=(x,), sources=(y,))), ()).holds(
        most(10, HEIGHT)
    )
