"""The suite, scheduled for a GPU and cut into pieces, means what the source says; races are watched for."""

import functools

import pytest
import torch

from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.interpret import run_program
from brickwork.ir.parse import parse_program
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.verify import verify_program
from brickwork.target.cuda import cuda_target
from brickwork.transform.pipeline import schedule_program
from support.forms import SIZES, forms
from support.kernels import SUITE
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


@pytest.mark.parametrize(("name", "size", "layout"), forms(), ids="-".join)
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
