"""Names what is computed of sizes and arguments where a loop multiplies by it: it is a size like any other then.

    m = x.shape[0] // groups                       m = x.shape[0] // groups
    kernel: x[g * (x.shape[0] // groups) + c]  ->  kernel, given m: x[g * m + c]

The host computes it once. Analyses take products of indices and arguments apart, and ask of `m` what they need to know
by a test before the loops. A division by zero is refused by a check, which may stand in the kernel: until then the
host divides by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    Kernel,
    Launch,
    Node,
    Read,
    Size,
    Statement,
    Symbol,
)
from brickwork.ir.walk import read_symbols, rewrite, rewrite_statements, walk
from brickwork.legality import legality
from brickwork.transform.free_variables import with_body
from brickwork.transform.scratch import Names

_DIVISIONS = frozenset({"floordiv", "mod"})
_COMPUTED = _DIVISIONS | {"pow", "shift_left", "shift_right"}
"""Operators whose results are no polynomials of their operands."""
_LINEAR = frozenset({"add", "sub", "neg", "mul"})


def name_sizes(block: Block, names: Names) -> Block:
    """Return a program's statements with such sizes computed before the launches that use them."""

    def visit(statement: Statement) -> Block:
        if not isinstance(statement, Launch):
            return (statement,)
        kernel, sizes = _with_names(statement.kernel, names)
        assigns = (Assign(symbol=symbol, value=_safe(value), loc=value.loc) for value, symbol in sizes.items())
        return (*assigns, replace(statement, kernel=kernel)) if sizes else (statement,)

    return rewrite_statements(block, visit)


def _with_names(kernel: Kernel, names: Names) -> tuple[Kernel, dict[Apply, Symbol]]:
    """Return a kernel that is given sizes, and what these are."""
    given = frozenset(kernel.scalars)
    found = dict.fromkeys(size for node in walk(kernel.body) for size in _multiplied(node, given))
    if not found:
        return kernel, {}
    sizes = {size: names.symbol("size", INT64) for size in found}

    def visit(node: Node) -> Node:
        return build.read(sizes[node], node.loc) if isinstance(node, Apply) and node in sizes else node

    body = tuple(rewrite(statement, visit) for statement in kernel.body)
    facts = (rewrite(fact, visit) for fact in kernel.facts)
    told = (build.apply("eq", build.read(symbol), size) for size, symbol in sizes.items())
    return with_body(kernel, body, (*facts, *told)), sizes


def _multiplied(node: Node, given: frozenset[Symbol]) -> Iterator[Apply]:
    """Yield the computed sizes that a product multiplies something else with."""
    match node:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "mul" and node.dtype is INT64:
            for one, other in ((left, right), (right, left)):
                if read_symbols(other) - given:
                    yield from _terms(one, given)
        case _:
            pass


def _terms(expression: Expression, given: frozenset[Symbol]) -> Iterator[Apply]:
    """Yield the computed sizes that sums and products consist of."""
    match expression:
        case Apply(operator=operator) if operator.name in _COMPUTED and _is_size(expression, given):
            yield expression
        case Apply(operator=operator, operands=operands) if operator.name in _LINEAR:
            for operand in operands:
                yield from _terms(operand, given)
        case _:
            pass


@legality
def _is_size(expression: Expression, given: frozenset[Symbol]) -> bool:
    """Whether an integer is computed of sizes and arguments alone."""
    kinds = all(isinstance(node, Constant | Size | Read | Apply) and node.dtype is INT64 for node in walk(expression))
    return kinds and read_symbols(expression) <= given


def _safe(size: Expression) -> Expression:
    """Return a size as it can be computed whatever the arguments are."""

    def visit(node: Node) -> Node:
        match node:
            case Apply(operator=operator, operands=(top, bottom)) if operator.name in _DIVISIONS:
                if isinstance(bottom, Constant) and bottom.value:
                    return node
                divisor = build.select(build.apply("eq", bottom, build.integer(0)), build.integer(1), bottom)
                return build.apply(operator.name, top, divisor, loc=node.loc)
            case _:
                return node

    return rewrite(size, visit)
