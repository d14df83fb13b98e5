"""Every kernel of the suite as it goes to a GPU, with a driver that is played in Python: cut, launched, interpreted."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest
import torch

from brickwork.frontend.definition import Definition
from brickwork.frontend.reference import python_function
from brickwork.host.layout import Placement, is_aligned, may_alias
from brickwork.ir.nodes import KeyParameter, ListParameter, Program, Return, ScalarParameter, TensorParameter
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.pytorch.arguments import with_values
from brickwork.pytorch.gate import ArgumentKind
from brickwork.runtime.launches import Argument, launches
from brickwork.transform.outline import is_nondeterministic
from support.emulated import emulated_target
from support.fake_cuda import CudaRig, Launched
from support.forms import SIZES, USUAL, forms
from support.kernels import SUITE, Case
from support.shared import define, lower, schedule_program
from support.sweep import sampled
from support.tensors import LAYOUTS, argument_type, copy

KEY = 123456789012345
KINDS = {"int64": ArgumentKind.INT_LIST, "float64": ArgumentKind.FLOAT_LIST, "bool": ArgumentKind.BOOL_LIST}


@functools.cache
def definition(name: str) -> Definition:
    return define(SUITE[name].function)


def arguments_of(case: Case, size: int, layout: str) -> tuple[Any, ...]:
    mutated = definition(case.name).mutated
    names = [parameter.name for parameter in definition(case.name).parameters]
    made: list[Any] = []
    for name, value in zip(names, case.arguments(size), strict=True):
        keep = not isinstance(value, torch.Tensor) or (layout == "expanded" and name in mutated)
        made.append(value if keep else LAYOUTS[layout](value))
    return tuple(made)


def placement(data: torch.Tensor) -> Placement:
    return Placement(data.data_ptr(), tuple(data.shape), data.stride(), data.element_size())


def program_of(case: Case, arguments: tuple[Any, ...]) -> Program:
    places = [placement(item) for item in arguments if isinstance(item, torch.Tensor)]
    names = [parameter.name for parameter in definition(case.name).parameters]
    tensors = [name for name, item in zip(names, arguments, strict=True) if isinstance(item, torch.Tensor)]
    written = [number for number, name in enumerate(tensors) if name in definition(case.name).mutated]
    kinds = with_values(definition(case.name), [*map(argument_type, arguments)], arguments, "cuda")
    signature = Signature(
        tuple(kinds),
        may_alias=may_alias(places, written),
        device="cuda",
        narrow=True,
        aligned=is_aligned(places),
    )
    program, _ = schedule_program(lower(definition(case.name), signature), emulated_target())
    return program


def kind_of(parameter: object) -> ArgumentKind:
    match parameter:
        case TensorParameter():
            return ArgumentKind.TENSOR
        case KeyParameter():
            return ArgumentKind.OPTIONAL_TENSOR
        case ListParameter(symbols=symbols):
            return KINDS[symbols[0].dtype.name]
        case ScalarParameter(symbol=symbol):
            return ArgumentKind.FLOAT if symbol.dtype.is_float else ArgumentKind.INT
        case _:
            raise TypeError(parameter)


def run(case: Case, arguments: tuple[Any, ...], *, optimised: bool) -> list[torch.Tensor]:
    program = program_of(case, arguments)
    rig = CudaRig([kind_of(parameter) for parameter in program.parameters])
    rig.add(program, nondeterministic=is_nondeterministic(program), optimised=optimised)
    returned = next((node.tensors for node in walk(program.body) if isinstance(node, Return)), ())
    key = (rig.place(torch.tensor([KEY]), 0, -1),) if case.draws else ()
    results = rig.call(*arguments, *key, outputs=len(returned))
    assert results is not None, "an entry does not take what it was made for"
    assert rig.gpu.handles == 0
    assert_told(program, arguments, rig.gpu.launches)
    return [*results, *(item for item in arguments if isinstance(item, torch.Tensor))]


def assert_told(program: Program, arguments: tuple[Any, ...], launched: list[Launched]) -> None:
    """Compare what is said of launches with what the entry asks the driver for."""
    sizes: list[Argument] = []
    for item in arguments:
        sizes.append(
            tuple(item.shape) if isinstance(item, torch.Tensor) else [*item] if isinstance(item, tuple) else item
        )
    found = [(item.kernel, item.blocks, item.threads) for item in launches(program, sizes) if item.blocks]
    assert found == [(item.kernel.name, math.prod(item.grid), math.prod(item.block)) for item in launched]


def expected(case: Case, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    named = {"key": KEY} if case.draws else {}
    returned = python_function(definition(case.name))(*arguments, **named)
    results = [] if returned is None else list(returned) if isinstance(returned, tuple | list) else [returned]
    return [*results, *(item for item in arguments if isinstance(item, torch.Tensor))]


@pytest.mark.parametrize(("name", "size", "layout"), sampled(forms(), 3))
def test_what_is_launched_computes_what_the_source_says(name: str, size: str, layout: str) -> None:
    case = SUITE[name]
    arguments = arguments_of(case, SIZES[size], layout)
    if not any(isinstance(item, torch.Tensor) for item in arguments):
        pytest.skip("without tensors a call is the CPU's")
    wanted = expected(case, tuple(map(copy, arguments)))
    found = run(case, tuple(map(copy, arguments)), optimised=(size, layout) == USUAL)
    for left, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-5, atol=1e-5, equal_nan=True)
