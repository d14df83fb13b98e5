"""A question that takes more steps of isl than it is allowed has no answer, wherever in it the allowance ends."""

# pyright: basic

from __future__ import annotations

from unittest.mock import patch

from brickwork.analysis import isl

KNOWN = "[a, b] -> { [i, j] : 0 <= i < a and 0 <= j < b }"
ASKED = "[a, b] -> { [i, j] : 0 <= i < a and 0 <= j < b and 3 i + j >= a + b and 2 j > i + 1 }"


def answer(steps: int) -> object:
    with patch.object(isl, "OPERATION_LIMIT", steps):
        return isl._parameters_where.__wrapped__(ASKED, KNOWN)


def test_no_number_of_steps_is_a_fault() -> None:
    whole = answer(isl.OPERATION_LIMIT)
    answers = [answer(steps) for steps in range(2800, 3800)]
    assert whole is not None
    assert {None, whole} == {*answers}
