"""The loop programs of the benchmarks: each gives what Python gives, and each loop runs as is expected of it.

`REFUSED` and `UNPROVED` name what is not reached; such a test fails once it is.
"""

# pyright: basic
import functools

import pytest
import torch

import brickwork as bw
from benchmarks.programs import PROGRAMS, loop_lines
from benchmarks.programs.verdicts import verdicts
from support.gpu import moved, results_of, settle
from support.tensors import copy

BY_NAME = {program.name: program for program in PROGRAMS}
REFUSED = {
    "heat_swap": "two tensors do not change places between time steps",
}
UNPROVED = {
    "bicg": "two accumulations in one nest are not distributed",
    "seidel_2d": "no wavefronts",
}


def marked(reasons, more=()):
    """Return the programs' names as parameters; those with a reason must fail."""
    every = {**reasons, **dict(more)}
    marks = {name: [pytest.mark.xfail(reason=reason, strict=True)] for name, reason in every.items()}
    return [pytest.param(name, marks=marks.get(name, [])) for name in BY_NAME]


@functools.cache
def operator(name):
    return bw.op(f"programs::{name}")(BY_NAME[name].function)


def test_each_name_is_used_once():
    assert len(BY_NAME) == len(PROGRAMS)


@pytest.mark.parametrize("name", BY_NAME)
def test_loops_are_listed(name):
    program = BY_NAME[name]
    assert [index for _, index in loop_lines(program.function)] == [loop.index for loop in program.loops]


@pytest.mark.parametrize("name", marked(REFUSED))
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


@pytest.mark.parametrize("name", [name for name, program in BY_NAME.items() if program.reference])
def test_python_is_the_reference(name):
    program = BY_NAME[name]
    reference = program.reference
    assert reference is not None
    for sizes in program.small:
        arguments = program.arguments(*sizes)
        wanted = results_of(reference(*map(copy, arguments)), ())
        found = results_of(program.function(*arguments), ()) or [arguments[-1]]
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, check_dtype=False)


@pytest.mark.parametrize("name", marked(UNPROVED, REFUSED))
def test_loops_run_as_expected(name):
    program = BY_NAME[name]
    found = verdicts(operator(name).explain(*program.arguments(*program.small[-1])))
    said = {line: found.get(line, "not compiled") for line, _ in loop_lines(program.function)}
    for (line, index), loop in zip(loop_lines(program.function), program.loops, strict=True):
        assert loop.allows(said[line]), f"{index} at line {line}: {said[line]}, not {loop.verdict}"
