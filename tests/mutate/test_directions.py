"""Mutants that only refuse more are left out; whether a function's answer allows or forbids is said by its mark."""

import pytest

from tests.mutate.mutants import marked_functions, mutants

TRUTH = """
@MARK
def answers(loop, nodes) -> bool:
    if loop.claimed or any(node > 0 for node in nodes):
        return ANSWER
    return not (loop.width < 4 and isinstance(loop, For | While))
"""
VALUE = """
@legality
def found(loop, nodes):
    if loop.claimed:
        return None
    if loop.width in {2, 4}:
        return loop
    return nodes[0] if loop.fits else None
"""
CASES = """
@legality
def changed(block):
    def change(statement):
        match statement:
            case Store() | Local() if statement.plain:
                return ()
            case If() if statement.kept:
                return statement
            case _:
                return statement
    match block:
        case (For(),) if block[0].claimed:
            return None
        case (If(),) if block[0].plain and block[0].short:
            return change(block[0])
        case _:
            return None
"""


def pairs(tmp_path, source):
    (tmp_path / "judge.py").write_text(source)
    (function,) = marked_functions(tmp_path)
    return {(item.before, item.after) for item in mutants(function)}


@pytest.mark.parametrize(("mark", "answer"), [("legality", "False"), ("hazard", "True")])
def test_a_guard_is_dropped_and_never_made_stricter(tmp_path, mark, answer):
    found = pairs(tmp_path, TRUTH.replace("MARK", mark).replace("ANSWER", answer))
    guard = "loop.claimed or any((node > 0 for node in nodes))"
    assert {after for before, after in found if before == guard} == {
        "False", "loop.claimed", "any((node > 0 for node in nodes))"
    }  # fmt: skip
    assert not any(before == "node > 0" and after == "node >= 0" for before, after in found)


def test_an_answer_is_never_made_stricter(tmp_path):
    kinds = {("For | While", "For"), ("For | While", "While")}
    both = "loop.width < 4 and isinstance(loop, For | While)"
    allowing = pairs(tmp_path, TRUTH.replace("MARK", "legality").replace("ANSWER", "False"))
    assert kinds <= allowing
    assert (both, "loop.width < 4") not in allowing
    forbidding = pairs(tmp_path, TRUTH.replace("MARK", "hazard").replace("ANSWER", "True"))
    assert not kinds & forbidding
    assert (both, "loop.width < 4") in forbidding


def test_nothing_and_what_was_given_are_refusals(tmp_path):
    found = pairs(tmp_path, VALUE)
    assert ("loop.claimed", "False") in found
    assert ("loop.claimed", "True") not in found
    assert ("{2, 4}", "{2}") in found
    assert ("loop.fits", "True") in found
    assert ("loop.fits", "False") not in found


def test_cases_before_one_that_refuses_are_never_made_stricter(tmp_path):
    found = pairs(tmp_path, CASES)
    both = "block[0].plain and block[0].short"
    assert {after for before, after in found if before == both} == {"True", "block[0].plain", "block[0].short"}
    assert {after for before, after in found if before == "block[0].claimed"} == {"False"}
    assert {after for before, after in found if before == "statement.plain"} == {"True"}
    assert {after for before, after in found if before == "statement.kept"} == {"False"}
    assert not any(before == "Store() | Local()" for before, _ in found)
