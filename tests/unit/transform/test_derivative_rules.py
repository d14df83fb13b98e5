"""The derivative of each operator is torch's, at ordinary and at special points, in both widths."""

import itertools
import math

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64
from brickwork.ir.interpret import Memory, run_kernel
from brickwork.ir.nodes import Assign, Kernel, Store
from brickwork.ir.operators import OPERATORS
from brickwork.transform.autodiff.rules import RULES, Point, chain
from support.kernels_ir import KernelBuilder

OUTER = 0.75
ORDINARY = (0.3, -0.6, 0.9, 1.7, -2.4, 5.5, 31.0)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, math.inf, -math.inf, math.nan)
ELSEWHERE = {
    "truediv": torch.div,
    "mod": torch.remainder,
    "cbrt": lambda x: x.sign() * x.abs().pow(1 / 3),
    "gamma": lambda x: x.lgamma().exp() * torch.where((x < 0) & (x.floor() % 2 != 0), -1.0, 1.0),
    "minimum": lambda a, b: torch.where(b < a, b, a),
    "maximum": lambda a, b: torch.where(b > a, b, a),
}
"""Operators that torch has under another name, or only as a formula."""
SKIPPED = {"cbrt": "0 inf", "gamma": "0 -1 inf", "copysign": "inf nan"}
"""Numbers at which the formula above is not the function, or torch says NaN where there is a sign."""

CURVED = [name for name, rule in RULES.items() if any(rule) and name not in {"nextafter", "to_float16", "to_bfloat16"}]


def derivatives(name, operands, dtype):
    """Return `OUTER` times the derivative by each operand, computed by the interpreter."""
    builder = KernelBuilder()
    symbols = [builder.scalar(f"x{number}", dtype) for number in range(len(operands))]
    out, result = builder.tensor("out", 1, dtype), builder.symbol("result", dtype)
    reads = tuple(build.read(symbol) for symbol in symbols)
    point = Point(reads, build.read(result))
    body = [Assign(symbol=result, value=build.apply(name, *reads))]
    for number, partial in enumerate(RULES[name]):
        value = build.constant(0.0, dtype) if partial is None else chain(partial, build.constant(OUTER, dtype), point)
        body.append(Store(tensor=out, indices=(build.integer(number),), value=value, access=number))
    memory = Memory([0.0] * len(operands), (len(operands),), (1,), dtype)
    kernel = Kernel(name=name, tensors=(out,), scalars=tuple(symbols), facts=(), body=tuple(body))
    run_kernel(kernel, [memory], operands)
    return list(memory.data)


def in_torch(name, operands, dtype):
    """Return the same by torch's autograd; zero where the operand has no derivative there."""
    leaves = [torch.tensor(value, dtype=dtype, requires_grad=True) for value in operands]
    function = ELSEWHERE.get(name) or getattr(torch, name)
    gradients = torch.autograd.grad(function(*leaves), leaves, torch.tensor(OUTER, dtype=dtype), allow_unused=True)
    return [0.0 if gradient is None else gradient.item() for gradient in gradients]


def points(name, values):
    skipped = {float(text) for text in SKIPPED.get(name, "").split()}
    for operands in itertools.product(values, repeat=OPERATORS[name].arity):
        if not any(str(abs(value)) == str(abs(other)) for value in operands for other in skipped):
            yield operands


def test_every_operator_has_a_rule_for_each_operand():
    assert {name: len(rule) for name, rule in RULES.items()} == {
        name: operator.arity for name, operator in OPERATORS.items()
    }


def test_only_operators_that_take_and_give_floats_have_derivatives():
    for name in CURVED:
        assert FLOAT64 in OPERATORS[name].operands
        assert OPERATORS[name].result.name == "SAME"


@pytest.mark.parametrize("name", CURVED)
@pytest.mark.parametrize(
    ("dtype", "theirs", "close"), [(FLOAT64, torch.float64, 1e-12), (FLOAT32, torch.float32, 2e-5)]
)
def test_it_is_torchs_derivative(name, dtype, theirs, close):
    for operands in points(name, ORDINARY):
        operands = [torch.tensor(value, dtype=theirs).item() for value in operands]
        expected = in_torch(name, operands, theirs)
        assert derivatives(name, operands, dtype) == pytest.approx(expected, rel=close, abs=close, nan_ok=True), (
            operands
        )


@pytest.mark.parametrize("name", CURVED)
def test_it_is_torchs_derivative_at_special_points(name):
    for operands in points(name, SPECIAL):
        expected = in_torch(name, operands, torch.float64)
        assert derivatives(name, operands, FLOAT64) == pytest.approx(expected, rel=1e-12, nan_ok=True), operands


def test_a_neighbour_moves_with_its_number():
    assert derivatives("nextafter", [1.5, 3.0], FLOAT64) == [OUTER, 0.0]


@pytest.mark.parametrize("name", ["to_float16", "to_bfloat16"])
def test_a_rounded_number_moves_with_the_number(name):
    assert derivatives(name, [0.3], FLOAT32) == [OUTER]
