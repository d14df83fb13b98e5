"""Rates: which arguments they are, and programs for one value of them."""

from dataclasses import replace

import pytest
import torch

from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Check, ScalarParameter
from brickwork.ir.parse import parse_program
from brickwork.ir.signature import ScalarType, Signature
from brickwork.ir.text import print_program
from brickwork.ir.walk import read_symbols, walk
from brickwork.target.cuda import cuda_target
from brickwork.transform.derivation import Backward, Derived
from brickwork.transform.derive import program_of
from brickwork.transform.pipeline import schedule_program
from support.tensors import argument_type, to_memory


def enlarged(x: torch.Tensor, f: torch.Tensor, up: int, shift: int) -> torch.Tensor:
    out = torch.zeros(x.shape[0] * up)
    for i in range(x.shape[0] * up):
        first = min(max((i + shift) // up, 0), x.shape[0])
        last = min(max((i + shift + f.shape[0]) // up, 0), x.shape[0])
        s = 0.0
        for j in range(first, last):
            s += x[j] * f[i + shift + f.shape[0] - (j + 1) * up]
        out[i] = s
    return out


def windows(x: torch.Tensor, kernel: int, stride: int, pad: int, base: int, power: int) -> torch.Tensor:
    half, twice = kernel // 2, base * 2
    out = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        at = i - half
        at *= stride
        for j in range(0, kernel, pad):
            out[i] = out[i] + x[i] * power + at % twice
    return out


def strided(x: torch.Tensor, n: int, add: int, step: int) -> torch.Tensor:
    out = torch.zeros(n)
    for i in range(n):
        v = x[i] * add
        out[i] = v + x[(i >> step) + add]
    return out


@pytest.mark.parametrize(
    ("function", "found"),
    [(enlarged, {"up"}), (windows, {"stride", "pad", "base"}), (strided, {"step"})],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_scales_the_places_of_a_loop_is_a_rate(function, found):
    assert define(function).rates == found


def arguments(up):
    return torch.arange(1.0, 6.0), torch.tensor([1.0, 2.0, 4.0]), up, 1


def program(up, *, value=None, device="cuda"):
    types = [argument_type(each) for each in arguments(up)]
    types[2] = ScalarType(INT64, value)
    return lower(define(enlarged), Signature(tuple(types), device=device, narrow=True, aligned=True))


def scalars(made):
    return [each for each in made.parameters if isinstance(each, ScalarParameter)]


def test_a_program_for_one_rate_computes_the_same_and_reads_it_nowhere():
    given = [to_memory(each) if isinstance(each, torch.Tensor) else each for each in arguments(3)]
    any_rate, one_rate = program(3), program(3, value=3)
    assert run_program(any_rate, given)[0].data == run_program(one_rate, given)[0].data
    up, shift = scalars(one_rate)
    assert (up.value, up.rate, shift.value, shift.rate) == (3, False, None, False)
    assert up.symbol not in read_symbols(one_rate.body)
    with pytest.raises(TypeError, match="does not take int"):
        run_program(one_rate, [*given[:2], 2, 1])


def test_other_rates_are_for_programs_of_their_own_on_gpus_alone():
    assert [each.rate for each in scalars(program(9))] == [True, False]
    assert [(each.rate, each.value) for each in scalars(program(3, value=3, device="cpu"))] == [(False, None)] * 2


def test_where_a_rate_is_known_checks_are_proved():
    def checks(made):
        scheduled, _ = schedule_program(made, cuda_target((9, 0)))
        return sum(isinstance(node, Check) and "out of bounds" in node.failure.message for node in walk(scheduled.body))

    assert checks(program(2)) > 0
    assert checks(program(2, value=2)) == 0


def test_programs_say_what_their_rates_are():
    for made in (program(3), program(3, value=3)):
        assert parse_program(print_program(made)).parameters == made.parameters


def test_gradients_are_made_for_the_rate_of_the_forward():
    defined = define(enlarged)
    made = Derived(defined, Backward((True, False, False, False)), (True,), (1, 1, 0, 0), (True,) * 4)
    assert made.rates == {"up"}
    types = (*map(argument_type, arguments(2)), argument_type(torch.zeros(10)))
    signature = Signature((*types[:2], ScalarType(INT64, 2), *types[3:]), device="cuda", narrow=True, aligned=True)
    (up, _) = scalars(program_of(made, signature))
    assert (up.value, up.symbol in read_symbols(program_of(made, signature).body)) == (2, False)
    generic = program_of(made, replace(signature, arguments=types))
    assert [each.rate for each in scalars(generic)] == [True, False]
