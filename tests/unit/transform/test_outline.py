"""The suite, scheduled for a GPU and cut into pieces, means what the source says; races are watched for."""

import contextlib
import functools

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import If, Launch
from brickwork.ir.parse import parse_program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.walk import walk
from brickwork.target.cuda import cuda_target
from brickwork.transform import outline
from support.forms import SIZES, forms
from support.kernels import SUITE
from support.launches import OutsideError, as_launched
from support.shared import define, lower, schedule_program, verify_program
from support.sweep import sampled
from support.tensors import LAYOUTS, argument_type, to_memory, to_tensor

GPU = cuda_target((9, 0))
KEY = 123456789012345


def arguments_of(case, size, layout):
    mutated = definition(case.name).mutated
    names = [parameter.name for parameter in definition(case.name).parameters]
    change = LAYOUTS[layout]
    made = []
    for name, value in zip(names, case.arguments(size), strict=True):
        keep = not isinstance(value, torch.Tensor) or (layout == "expanded" and name in mutated)
        made.append(value if keep else change(value))
    return made


@functools.cache
def definition(name):
    return define(SUITE[name].function)


@functools.cache
def programs(name, types):
    program = lower(definition(name), Signature(types, device="cuda", narrow=True, aligned=True))
    return program, schedule_program(program, GPU)[0]


def run(program, arguments, check):
    memories = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    results = run_program(program, memories, key=KEY, check=check)
    after = [to_tensor(item) for item in memories if not isinstance(item, bool | int | float | list | tuple)]
    return [*map(to_tensor, results), *after]


@pytest.mark.parametrize(("name", "size", "layout"), sampled(forms(), 2))
def test_the_suite_in_pieces_means_what_the_source_says(name, size, layout):
    case = SUITE[name]
    arguments = arguments_of(case, SIZES[size], layout)
    program, pieces = programs(name, tuple(map(argument_type, arguments)))
    verify_program(pieces)
    for one, other in zip(run(program, arguments, False), run(pieces, arguments, True), strict=True):
        torch.testing.assert_close(
            one, other, rtol=0 if case.exact else 1e-5, atol=0 if case.exact else 1e-5, equal_nan=True
        )


@pytest.mark.parametrize("name", sorted(SUITE))
def test_pieces_are_printed_and_come_back(name):
    _, pieces = programs(name, tuple(map(argument_type, SUITE[name].arguments(7))))
    text = print_program(pieces)
    assert print_program(parse_program(text)) == text


def halved(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        s = max(s * 0.5, y[i])
    for i in range(x.shape[0]):
        out[i] = x[i] + s


def halved_at(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
    s = 0.0
    for i in range(x.shape[0]):
        s = max(s * 0.5, y[int(x[i])])
    for i in range(x.shape[0]):
        out[i] = x[i] + s


def read_again(a: torch.Tensor, x: torch.Tensor, m: int) -> None:
    for i in range(x.shape[0]):
        x[i] = 0.0
    q = int(a[0])
    x[m % x.shape[0]] = a[q]
    if m > 3:
        for i in range(x.shape[0]):
            x[i] += 1.0
    x[1] = a[q] + 1.0


def test_what_one_thread_runs_after_what_another_checks_asks_for_failed_checks():
    """The host checks sizes between two launches of one thread, of which the second reads what the first checked."""
    x = argument_type(torch.zeros(3))
    signature = Signature((x, x, argument_type(3)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(read_again), signature), GPU)
    (choice,) = [node for node in pieces.body if isinstance(node, If)]
    for branch in (choice.then, choice.otherwise):
        kernels = [node.kernel for node in walk(branch) if isinstance(node, Launch)]
        assert all("passed" in {tensor.name for tensor in kernel.tensors} for kernel in kernels)


def read_beside(a: torch.Tensor, x: torch.Tensor, p: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        x[i] = a[p[i]]


def launched(function, *arguments):
    """Run the pieces of a program as a GPU does; return the memory of the tensors, and whether a check failed."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    given = [to_memory(item) if isinstance(item, torch.Tensor) else item for item in arguments]
    try:
        as_launched(run_program, (IndexError,))(pieces, given, check=True)
    except IndexError:
        return given, True
    return given, False


@pytest.mark.parametrize(("first", "result"), [(1.0, [1.0, 3.0, 3.0]), (7.0, None), (-4.0, None)])
def test_launches_after_a_check_that_failed_access_nothing_that_it_was_for(first, result, monkeypatch):
    arguments = torch.tensor([first, 2.0, 3.0]), torch.zeros(3), 5
    given, failed = launched(read_again, *arguments)
    assert to_tensor(given[1]).tolist() == (result or [0.0, 0.0, 0.0])
    assert failed == (result is None)
    monkeypatch.setattr(outline, "outlives_check", lambda block, places: False)
    with pytest.raises(OutsideError) if failed else contextlib.nullcontext():
        launched(read_again, *arguments)


def test_threads_beside_one_that_failed_go_on():
    given, failed = launched(read_beside, torch.tensor([1.0, 2.0]), torch.zeros(4), torch.tensor([1, 5, 0, 1]))
    assert failed
    assert to_tensor(given[1]).tolist() == [2.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize(("function", "fast"), [(halved, False), (halved_at, True)])
def test_branches_ask_for_failed_checks_only_if_they_check_something(function, fast):
    x = torch.tensor([0.0, 2.0, 1.0])
    signature = Signature((argument_type(x),) * 3, device="cuda", narrow=True, aligned=True)
    pieces, _ = schedule_program(lower(define(function), signature), GPU)
    verify_program(pieces)
    (choice,) = [node for node in pieces.body if isinstance(node, If)]
    for branch, asks in ((choice.then, fast), (choice.otherwise, True)):
        tensors = [tensor.name for node in walk(branch) if isinstance(node, Launch) for tensor in node.kernel.tensors]
        assert ("passed" in tensors) is asks
    arguments = [to_memory(each) for each in (x, x.clone(), torch.zeros(3))]
    run_program(pieces, arguments, check=True)
    assert torch.equal(to_tensor(arguments[-1]), x + (2.0 if fast else 1.0))
