"""Python under the rule that a local has one type: whole numbers that are given to a local of floats become floats.

Python has a local as an int until it is given a float; in compiled code it is a float from the beginning, so integers
beyond 2**53 are rounded in it, and sums in it do not wrap.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from brickwork.frontend.definition import define
from brickwork.frontend.reference import python_function as in_python
from brickwork.ir.dtypes import FLOAT64, DType
from brickwork.ir.nodes import Assign, Cast, Constant, Expression, Program
from brickwork.ir.walk import walk
from support.fuzz.case import NAME, Case, TensorArgument
from support.fuzz.execute import Outcome, outcome

ZERO = "zero_"
"""A float32 tensor of zeros: what is less one of its elements is the same number as a float32."""


def with_one_type(case: Case, program: Program) -> Outcome | None:
    """Return how a case ends in Python where each of its locals has one type; None if that is so as it is written."""
    types = _rounding(program)
    if not types:
        return None
    module = ast.parse(case.source)
    function = next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == NAME)
    _Converted(types).visit(function)
    function.args.args.append(ast.arg(arg=ZERO, annotation=ast.parse("torch.Tensor", mode="eval").body))
    source = ast.unparse(ast.fix_missing_locations(module))
    changed = replace(
        case, source=source, arguments=(*case.arguments, TensorArgument(ZERO, "float32", (1,), data="zeros"))
    )
    with tempfile.TemporaryDirectory() as folder:
        found = outcome(in_python(define(changed.function(Path(folder)))), changed)
    return replace(found, memory=found.memory[:-1])


def _rounding(program: Program) -> dict[str, DType]:
    """Return the types of locals that are floats, and are given integers."""
    assigned = [node for node in walk(program) if isinstance(node, Assign)]
    types = {node.symbol.name: node.symbol.dtype for node in assigned if _was_whole(node.value)}
    clear = (
        name for name in types if {node.symbol.dtype for node in assigned if node.symbol.name == name} == {types[name]}
    )
    return {name: types[name] for name in clear if types[name].is_float}


def _was_whole(value: Expression) -> bool:
    """Whether a float was made of an integer: of a literal without a fraction, or by a conversion."""
    match value:
        case Constant(value=number):
            return float(number).is_integer()
        case Cast(operand=operand):
            return operand.dtype.is_integer
        case _:
            return False


class _Converted(ast.NodeTransformer):
    """Makes floats of what names are given."""

    def __init__(self, types: Mapping[str, DType]) -> None:
        self.types = types

    def visit_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        return self._followed(node, node.targets)

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        return self._followed(node, [node.target])

    def _followed(self, node: ast.stmt, targets: list[ast.expr]) -> list[ast.stmt]:
        stored = [item for target in targets for item in ast.walk(target) if isinstance(item, ast.Name)]
        given = sorted({item.id for item in stored if isinstance(item.ctx, ast.Store)} & self.types.keys())
        values = (f"{name} * 1.0" if self.types[name] is FLOAT64 else f"{name} - {ZERO}[0]" for name in given)
        return [node, *(ast.parse(f"{name} = {value}").body[0] for name, value in zip(given, values, strict=True))]
