"""Programs for one value of a rate: the value stands where the argument is read.

The program is lowered for any value first, so that what is refused, and of which type a result is, depends on no value.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.nodes import (
    Apply,
    Check,
    Constant,
    Kernel,
    Node,
    Parameter,
    Program,
    Read,
    ScalarParameter,
    Statement,
    Symbol,
)
from brickwork.ir.signature import ArgumentType, ScalarType, Signature
from brickwork.ir.walk import rewrite, rewrite_statements


def with_rates(program: Program, rates: Collection[str], signature: Signature) -> Program:
    """Return the program for the values that a signature says; on a GPU its other rates are none of the small ones."""
    if not rates or signature.device == "cpu":
        return program
    kinds = (*signature.arguments, *(None for _ in program.parameters[len(signature.arguments) :]))
    parameters = tuple(_told(*pair, rates) for pair in zip(program.parameters, kinds, strict=True))
    values = {
        each.symbol: each.value for each in parameters if isinstance(each, ScalarParameter) and each.value is not None
    }
    told = replace(program, parameters=parameters)
    return _with_values(told, values) if values else told


def _told(parameter: Parameter, kind: ArgumentType | None, rates: Collection[str]) -> Parameter:
    match parameter, kind:
        case ScalarParameter(symbol=symbol), ScalarType(value=value) if symbol.name in rates:
            return replace(parameter, value=value, rate=value is None)
        case _:
            return parameter


def _with_values(program: Program, values: dict[Symbol, int]) -> Program:
    def change(node: Node) -> Node:
        match node:
            case Read(symbol=symbol) if symbol in values:
                return build.integer(values[symbol], node.loc)
            case Apply(operator=operator, operands=operands):
                return build.apply(operator.name, *operands, loc=node.loc)
            case Kernel(scalars=scalars, facts=facts):
                left = tuple(each for each in facts if not isinstance(each, Constant))
                return replace(node, scalars=tuple(each for each in scalars if each not in values), facts=left)
            case _:
                return node

    def without(statement: Statement) -> tuple[Statement, ...]:
        holds = isinstance(statement, Check) and build.is_constant(statement.condition, value=True)
        return () if holds else (statement,)

    made = rewrite(program, change)
    return replace(made, body=rewrite_statements(made.body, without))
