"""Tangents of expressions and of the statements of a kernel: forward mode without the program around it.

    s = x[i] * w[j]     ->     a = x[i]; b = w[j]
                               s' = x'[i] * b + w'[j] * a
                               s = a * b

The control flow stays as it is. A variable's tangent is assigned right before it, so that wherever the one has a value
the other has, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import assert_never

from brickwork.diagnostics.errors import InternalError
from brickwork.ir import build
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Cast,
    Check,
    Constant,
    Continue,
    Expression,
    For,
    If,
    Launch,
    Load,
    Local,
    Read,
    Rebind,
    Return,
    Select,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import read_counts, substitute
from brickwork.records import dataclass
from brickwork.transform.autodiff.activity import Activity
from brickwork.transform.autodiff.rules import RULES, Point, chain
from brickwork.transform.scratch import Names


@dataclass(slots=True)
class Tangents:
    """The tangents of active names; those of variables and locals are made when they are first met."""

    active: Activity
    names: Names
    tensors: dict[Tensor, Tensor]
    symbols: dict[Symbol, Symbol] = field(default_factory=dict[Symbol, Symbol])

    def of_symbol(self, symbol: Symbol) -> Symbol:
        """Return the tangent of a variable."""
        if symbol not in self.symbols:
            self.symbols[symbol] = self.names.symbol(f"{symbol.name}_tangent", symbol.dtype)
        return self.symbols[symbol]

    def of_tensor(self, tensor: Tensor) -> Tensor:
        """Return the tangent of a tensor."""
        if tensor not in self.tensors and tensor.is_local:
            self.tensors[tensor] = replace(tensor, name=f"{tensor.name}_tangent", number=next(self.names.tensors))
        return self.tensors[tensor]


def with_tangents(block: Block, tangents: Tangents) -> Block:
    """Return the statements, each with the tangent of what it does before it."""
    result: list[Statement] = []
    for statement in block:
        _statement(statement, tangents, result)
    return tuple(result)


def _statement(node: Statement, tangents: Tangents, block: list[Statement]) -> None:
    active = tangents.active.found
    match node:
        case Assign() if node.symbol in active:
            value, tangent = _Expressions(tangents, block).split(node.value)
            block.append(replace(node, symbol=tangents.of_symbol(node.symbol), value=_or_zero(tangent, value)))
            block.append(replace(node, value=value))
        case Store() if node.tensor in active:
            _store(node, tangents, block)
        case Local() if node.tensor in active:
            block += [replace(node, tensor=tangents.of_tensor(node.tensor)), node]
        case Rebind() if active.intersection(node.targets):
            targets, sources = (tuple(map(tangents.of_tensor, part)) for part in (node.targets, node.sources))
            block += [replace(node, targets=targets, sources=sources), node]
        case If(then=then, otherwise=otherwise):
            block.append(
                replace(node, then=with_tangents(then, tangents), otherwise=with_tangents(otherwise, tangents))
            )
        case For(body=body):
            block.append(replace(node, body=with_tangents(body, tangents)))
        case While(prelude=prelude, body=body):
            block.append(replace(node, prelude=with_tangents(prelude, tangents), body=with_tangents(body, tangents)))
        case Assign() | Store() | Local() | Rebind() | Break() | Continue() | Check():
            block.append(node)
        case Allocate() | Launch() | Return():
            raise InternalError(f"{node.loc}: a statement of the host in a kernel")
        case _:
            assert_never(node)


def _store(node: Store, tangents: Tangents, block: list[Statement]) -> None:
    if node.combine is not None and node.combine.name != "add":
        raise InternalError(f"{node.loc}: an update by `{node.combine}` before there is a schedule")
    value, tangent = _Expressions(tangents, block).split(node.value)
    twin, access = tangents.of_tensor(node.tensor), next(tangents.names.accesses)
    block.append(replace(node, tensor=twin, value=_or_zero(tangent, value), access=access))
    block.append(replace(node, value=value))


def _or_zero(tangent: Expression | None, value: Expression) -> Expression:
    return build.constant(0.0, value.dtype) if tangent is None else tangent


@dataclass(slots=True)
class _Expressions:
    """Takes expressions apart; what is needed twice becomes a variable, assigned in `block`."""

    tangents: Tangents
    block: list[Statement]

    def split(self, node: Expression) -> tuple[Expression, Expression | None]:
        """Return the value and the tangent of an expression; None where that is 0."""
        if not self.tangents.active.is_active(node):
            return node, None
        match node:
            case Read():
                return node, build.read(self.tangents.of_symbol(node.symbol), node.loc)
            case Load():
                access = next(self.tangents.names.accesses)
                return node, replace(node, tensor=self.tangents.of_tensor(node.tensor), access=access)
            case Cast():
                value, tangent = self.split(node.operand)
                cast = None if tangent is None else build.cast(tangent, node.dtype, node.loc)
                return replace(node, operand=value), cast
            case Select():
                return self._select(node)
            case Apply():
                return self._apply(node)
            case _:
                raise InternalError(f"{node.loc}: {type(node).__name__} has no tangent")

    def _kept(self, value: Expression) -> Expression:
        """Return an expression that can be repeated."""
        return self.tangents.names.kept(value, "t", self.block)

    def _select(self, node: Select) -> tuple[Expression, Expression | None]:
        condition = self._kept(node.condition)
        then, its_tangent = self.split(node.then)
        otherwise, other_tangent = self.split(node.otherwise)
        chosen = build.select(condition, _or_zero(its_tangent, then), _or_zero(other_tangent, otherwise), node.loc)
        return build.select(condition, then, otherwise, node.loc), chosen

    def _apply(self, node: Apply) -> tuple[Expression, Expression | None]:
        parts = [self.split(operand) for operand in node.operands]
        if node.operator.name in {"minimum", "maximum"}:
            return self._extreme(node, parts)
        operands = tuple(self._stand_in(value) for value, _ in parts)
        outers = tuple(None if tangent is None else self._stand_in(tangent) for _, tangent in parts)
        point = Point(operands, self._stand_in(node))
        rules = zip(RULES[node.operator.name], outers, strict=True)
        terms = [chain(rule, outer, point) for rule, outer in rules if rule is not None and outer is not None]
        tangent = terms[0]
        for term in terms[1:]:
            tangent = build.add(tangent, term, node.loc)
        uses = read_counts(tangent)
        values = tuple(self._settled(name, value, uses) for name, (value, _) in zip(operands, parts, strict=True))
        inlined = self._inlined(zip(outers, (tangent for _, tangent in parts), strict=True), uses)
        value = self._settled(point.result, replace(node, operands=values), uses)
        return value, substitute(tangent, inlined)

    def _stand_in(self, value: Expression) -> Expression:
        """Return what is repeated in place of an expression: itself, or a variable that may get its value."""
        if isinstance(value, Constant | Read):
            return value
        return build.read(self.tangents.names.symbol("t", value.dtype), value.loc)

    def _settled(self, stand_in: Expression, value: Expression, uses: Mapping[Symbol, int]) -> Expression:
        """Return a value; the variable that stands in for it gets it if that is used."""
        if stand_in is value or not isinstance(stand_in, Read) or not uses.get(stand_in.symbol):
            return value
        self.block.append(Assign(symbol=stand_in.symbol, value=value, loc=value.loc))
        return stand_in

    def _inlined(
        self, pairs: Iterable[tuple[Expression | None, Expression | None]], uses: Mapping[Symbol, int]
    ) -> dict[Symbol, Expression]:
        """Return what to put in for variables that are used once; the others are assigned."""
        result: dict[Symbol, Expression] = {}
        for stand_in, value in pairs:
            if stand_in is value or value is None or not isinstance(stand_in, Read):
                continue
            if uses.get(stand_in.symbol) == 1:
                result[stand_in.symbol] = value
            else:
                self._settled(stand_in, value, uses)
        return result

    def _extreme(
        self, node: Apply, parts: list[tuple[Expression, Expression | None]]
    ) -> tuple[Expression, Expression | None]:
        left, right = (self._kept(value) for value, _ in parts)
        ahead, behind = (_or_zero(tangent, value) for value, tangent in parts)
        second = build.apply("lt" if node.operator.name == "minimum" else "gt", right, left, loc=node.loc)
        return replace(node, operands=(left, right)), build.select(second, behind, ahead, node.loc)
