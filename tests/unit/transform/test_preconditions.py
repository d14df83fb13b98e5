"""What the host part has checked before a launch."""

from __future__ import annotations

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Assign, Check, Expression, Failure, FailureKind, Rebind, Size, Symbol, Tensor, TensorType
from brickwork.transform.preconditions import Preconditions, preconditions_of, strictest

n, m = Symbol("n", 1, INT64), Symbol("m", 2, INT64)
x, y = (Tensor(name, number, TensorType(FLOAT32, 1)) for number, name in enumerate("xy"))
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


def test_a_limit_is_asked_for_once() -> None:
    limits = [most(9, HEIGHT), most(8, HEIGHT), least(3, build.read(n)), least(3, build.read(n))]
    assert [*strictest(limits, Preconditions())] == [most(8, HEIGHT), least(3, build.read(n))]
    assert [*strictest(limits, Preconditions(frozenset({most(2, HEIGHT)})))] == [least(3, build.read(n))]


def test_divisors_that_were_checked_are_not_0() -> None:
    nonzero = build.apply("ne", build.read(n), build.integer(0))
    assert preconditions_of((check(nonzero),), ()).nonzero == {build.read(n)}


def test_what_is_changed_after_the_check_is_not_known() -> None:
    limit = most(10, build.read(n))
    change = Assign(symbol=n, value=build.integer(20))
    assert preconditions_of((check(limit),), ()).holds(limit)
    assert preconditions_of((change, check(limit)), ()).holds(limit)
    assert not preconditions_of((check(limit), change), ()).holds(limit)
    assert not preconditions_of((check(limit),), (change,)).holds(limit)
    assert not preconditions_of((check(most(10, HEIGHT)), Rebind(targets=(x,), sources=(y,))), ()).holds(
        most(10, HEIGHT)
    )
