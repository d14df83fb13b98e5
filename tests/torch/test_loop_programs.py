"""The loop programs of the benchmarks: each gives what Python gives, and each loop runs as is expected of it.

`UNPROVED` names what is not reached; such a test fails once it is.
"""

# pyright: basic
import dataclasses
import functools

import pytest
import torch

import brickwork as bw
from benchmarks import loop_programs
from benchmarks.loop_programs import NUMBA, OURS, WRONG, compiled, everything_proved, same
from benchmarks.programs import PROGRAMS, loop_lines
from benchmarks.programs.numpy_form import as_numpy, numpy_form, source
from benchmarks.programs.verdicts import verdicts
from support.gpu import moved, results_of, settle
from support.tensors import copy

BY_NAME = {program.name: program for program in PROGRAMS}

WAVE = "diagonals of nests that are not rectangles, or that keep their indices"
UNPROVED = {
    "nussinov": WAVE,
}


def marked(reasons):
    """Return the programs' names as parameters; those with a reason must fail."""
    marks = {name: [pytest.mark.xfail(reason=reason, strict=True)] for name, reason in reasons.items()}
    return [pytest.param(name, marks=marks.get(name, [])) for name in BY_NAME]


@functools.cache
def operator(name):
    return bw.op(f"loop_programs::{name}")(BY_NAME[name].function)


def test_each_name_is_used_once():
    assert len(BY_NAME) == len(PROGRAMS)


@pytest.mark.parametrize("name", BY_NAME)
def test_loops_are_listed(name):
    program = BY_NAME[name]
    assert [index for _, index in loop_lines(program.function)] == [loop.index for loop in program.loops]


@pytest.mark.parametrize("name", BY_NAME)
def test_compiled_is_python(name, device):
    program = BY_NAME[name]
    for sizes in program.small:
        arguments = program.arguments(*sizes)
        expected, given = [copy(item) for item in arguments], moved(arguments, device)
        wanted = results_of(operator(name).python(*expected), expected)
        found = results_of(operator(name)(*given), given)
        settle(device)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("name", BY_NAME)
def test_numpy_form_is_the_reference(name):
    """The form on NumPy's arrays is what Python makes of the source."""
    program = BY_NAME[name]
    function = numpy_form(program)
    for sizes in program.small:
        arguments = program.arguments(*sizes)
        given, expected = list(map(copy, arguments)), list(map(copy, arguments))
        returned = function(*as_numpy(given))
        returned = returned if isinstance(returned, tuple) else (returned,) if returned is not None else ()
        if program.reference is not None:
            wanted = results_of(program.reference(*expected), ())
            found = [torch.as_tensor(item) for item in returned] or [given[-1]]
        else:
            wanted = results_of(operator(name).python(*expected), expected)
            found = results_of(tuple(torch.as_tensor(item) for item in returned), given)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, check_dtype=False)


@pytest.mark.parametrize("name", marked(UNPROVED))
def test_loops_run_as_expected(name):
    program = BY_NAME[name]
    found = verdicts(operator(name).explain(*program.arguments(*program.small[-1])))
    said = {line: found.get(line, "not compiled") for line, _ in loop_lines(program.function)}
    for (line, index), loop in zip(loop_lines(program.function), program.loops, strict=True):
        assert loop.allows(said[line]), f"{index} at line {line}: {said[line]}, not {loop.verdict}"


# ---------------------------------------------------------------- what the benchmark stands on


def test_marked_loops_alone_run_over_prange():
    text = source(BY_NAME["gemver"])
    assert text.count("in prange(n)") == 4
    assert text.count("in range(n)") == 3
    assert "torch" not in text


EXPLANATION = """histogram(float64[1])
kernel histogram
  for a at program.py:1: in parallel, vectorised by 8
    for b at program.py:2: in order
      since it accumulates, and a loop around it runs in parallel
  for c at program.py:3: in parallel
    partial results of 's' are joined by +
  for d at program.py:4: in order
    because 's', assigned at line 5, is used by the next iteration
  for e at program.py:6: in order
    since it is short
  for f at program.py:7: in parallel
  for f at program.py:7: in order
    because 's', assigned at line 5, is used by the next iteration
  program.py:8: index 0 of 'x' read is checked at each execution"""


def test_verdicts_are_read_from_explanations():
    assert verdicts(EXPLANATION) == {
        1: "parallel",
        2: "reduction",
        3: "reduction",
        4: "in order",
        6: "parallel",
        7: "distributed",
    }


def test_checks_are_left_out_only_where_their_cost_is_measured():
    program = BY_NAME["histogram"]
    with everything_proved():
        unchecked = compiled(program, "unchecked")
    checked = compiled(program, "checked_again")
    arguments = program.arguments(20)
    assert "is out of bounds" not in unchecked.inspect("schedule", *arguments)
    assert "is out of bounds" in checked.inspect("schedule", *arguments)


@pytest.mark.parametrize(("wrong", "noted"), [(0.0, None), (1e-3, WRONG)])
def test_a_peer_whose_answer_is_not_ours_has_no_time(monkeypatch, wrong, noted):
    program = dataclasses.replace(BY_NAME["prefix_sum"], large=(50,))
    monkeypatch.setattr(loop_programs.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(loop_programs, "_in_numba", lambda _, work: lambda: work[0].cumsum(0).numpy() + wrong)
    (case,) = [loop_programs._case(program, 1)]
    assert case.notes.get(NUMBA) == noted
    assert {OURS, NUMBA} - case.timings.keys() == ({NUMBA} if noted else set())


def test_answers_are_compared_but_for_rounding():
    one = torch.tensor([1e6, 0.0, float("nan"), float("inf")], dtype=torch.float64)
    assert same([one], [one + 0.1])
    assert not same([one], [one + 10])
    assert not same([one], [one, one])
    assert not same([torch.tensor([9])], [torch.tensor([0])])
    assert not same([one], [one.nan_to_num()])
