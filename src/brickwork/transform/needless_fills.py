"""Fills of new tensors that a kernel overwrites whole: where the sizes say so, nothing is filled.

    out = zeros(n, 2 * m)                           out = empty(n, 2 * m)
    for i in range(n):                              for i in range(n):
        for j in range(m):                 ->           for j in range(m):
            out[i, j] = x[i, j] * g[i, j]                   out[i, j] = x[i, j] * g[i, j]
            out[i, m + j] = x[i, j]                         out[i, m + j] = x[i, j]

The stores of a kernel are pieces of each axis, which have to lie one after the other from 0 to its size. The host asks
whether they end there. What only has sizes, as the results of an operator have in its gradient, is not filled either.
Where a check of the kernel could fail, the tensor is filled: what was not stored is seen then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from brickwork.analysis.parameter_expressions import parameter_expression
from brickwork.analysis.polyhedral_model import Access, Axis, Floor, Model, is_fixed, is_parameter
from brickwork.analysis.polynomial import Atom, IndexAtom, Polynomial, number
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    TRUE,
    Allocate,
    Expression,
    Kernel,
    Launch,
    Load,
    Node,
    Program,
    Rebind,
    Return,
    Store,
    Tensor,
)
from brickwork.ir.walk import walk
from brickwork.legality import legality
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class LateFill:
    """A tensor that is filled before the kernel that overwrites it, unless a condition on sizes holds."""

    made: Allocate
    fill: Expression
    needless: Expression


@dataclass(frozen=True, slots=True)
class Overwriting:
    """A kernel that a program launches, and what is known of it where all `guards` hold."""

    kernel: Kernel
    analysis: Analysis
    guards: tuple[Expression, ...]


def without_needless_fills(
    program: Program, launched: Mapping[str, Overwriting]
) -> tuple[Program, dict[str, tuple[LateFill, ...]]]:
    """Return the program without fills that may be needless, and those that are left, by the kernels they are for."""
    late: dict[str, tuple[LateFill, ...]] = {}
    body = [*program.body]
    for place, statement in enumerate(body):
        if not isinstance(statement, Allocate) or statement.fill is None or statement.given:
            continue
        using = next((item for item in body[place + 1 :] if _uses(item, statement.tensor)), None)
        if using is None:
            body[place] = replace(statement, fill=None)
        if not isinstance(using, Launch) or using.kernel.name not in launched:
            continue
        found = _needless(launched[using.kernel.name], statement.tensor)
        if found is not None:
            name = using.kernel.name
            late[name] = (*late.get(name, ()), LateFill(statement, statement.fill, found))
            body[place] = replace(statement, fill=None)
    return replace(program, body=tuple(body)), late


def _uses(statement: Node, tensor: Tensor) -> bool:
    """Whether a statement of a host part touches the elements of a tensor, or gives them to others."""
    for node in walk(statement):
        match node:
            case Kernel(tensors=tensors) | Return(tensors=tensors):
                found = tensors
            case Rebind(sources=sources, targets=targets):
                found = (*sources, *targets)
            case Load(tensor=only) | Store(tensor=only):
                found = (only,)
            case _:
                continue
        if tensor in found:
            return True
    return False


@legality
def _needless(item: Overwriting, tensor: Tensor) -> Expression | None:
    """Return where a kernel stores each element of a tensor whatever it held; None where that is not known."""
    found, checked = effects(item.kernel.body), (each.bound is Bound.CHECKED for each in item.analysis.bounds.values())
    if item.kernel.may_alias or tensor in found.loads | found.rebinds or found.fails or any(checked):
        return None
    if any(isinstance(node, Store) and node.combine is not None for node in walk(item.kernel.body)):
        return None
    stores = [access for access in item.analysis.accesses if access.tensor == tensor and _is_sure(access)]
    ends = _covered(stores, 0, tensor.type.rank)
    if ends is None:
        return None
    conditions = [*item.guards]
    for end, size in ends:
        condition = _same(item.analysis.model, end, size)
        if condition is None:
            return None
        conditions.append(condition)
    return reduce(lambda one, two: build.apply("logical_and", one, two), conditions, TRUE)


@legality
def _is_sure(access: Access) -> bool:
    """Whether a store is made in each iteration of its loops, of which each goes along an axis of its own."""
    along = [loop for axis in access.axes for loop in access.loops if loop.atom in axis.value.atoms()]
    bounds = (atom for loop in access.loops for atom in loop.start.atoms().union(loop.stop.atoms()))
    return (
        not access.conditions
        and not any(loop.leaves for loop in access.loops)
        and all(map(is_fixed, bounds))
        and len(along) == len({*along}) == len(access.loops)
    )


# ---------------------------------------------------------------- pieces of an axis


@dataclass(frozen=True, slots=True)
class _Piece:
    """Elements of an axis: each `stride`-th from `begin` to before `end`."""

    begin: Polynomial
    end: Polynomial
    stride: int = 1


@legality
def _covered(stores: Sequence[Access], place: int, rank: int) -> list[tuple[Polynomial, Polynomial]] | None:
    """Return the ends of pieces and sizes that have to be equal, so that stores cover the axes from a place on."""
    if place == rank:
        return [] if stores else None
    groups: dict[_Piece, list[Access]] = {}
    for access in stores:
        if (piece := _piece(access, access.axes[place])) is not None:
            groups.setdefault(piece, []).append(access)
    inner = {piece: found for piece, group in groups.items() if (found := _covered(group, place + 1, rank)) is not None}
    end, needed = number(0), list[tuple[Polynomial, Polynomial]]()
    left = _whole(inner)
    while (piece := next((item for item in left if item.begin == end), None)) is not None:
        needed += left.pop(piece)
        end = piece.end
    return [*needed, (end, stores[0].axes[place].size)] if end.terms else None


def _whole(
    pieces: Mapping[_Piece, list[tuple[Polynomial, Polynomial]]],
) -> dict[_Piece, list[tuple[Polynomial, Polynomial]]]:
    """Return pieces of neighbours: `stride` pieces of which each begins one element after another one are one."""
    found: dict[_Piece, list[tuple[Polynomial, Polynomial]]] = {}
    for piece, needed in pieces.items():
        offsets = [number(each) for each in range(1, piece.stride)]
        others = [replace(piece, begin=piece.begin + each, end=piece.end + each) for each in offsets]
        if all(other in pieces for other in others):
            found[replace(piece, stride=1)] = [*needed, *(item for other in others for item in pieces[other])]
    return found


def _piece(access: Access, axis: Axis) -> _Piece | None:
    """Return the elements of an axis that an access goes along; None where they are others."""
    loops = [loop for loop in access.loops if loop.atom in axis.value.atoms()]
    if not all(is_fixed(atom) for atom in axis.value.atoms() if not isinstance(atom, IndexAtom)) or len(loops) > 1:
        return None
    if not loops:
        return _Piece(axis.value, axis.value + number(1))
    (loop,) = loops
    stride = axis.value.factor((loop.atom,))
    first, end = (axis.value.substitute({loop.atom: item}) for item in (loop.start, loop.stop))
    if stride == -1:
        return _Piece(end + number(1), first + number(1))
    straight = end - first == (loop.stop - loop.start).scale(stride)
    return _Piece(first, end, stride) if stride > 0 and straight else None


# ---------------------------------------------------------------- conditions


def _same(model: Model, left: Polynomial, right: Polynomial) -> Expression | None:
    """Return that two numbers are equal, for the host; None where it cannot ask."""
    if left == right:
        return TRUE
    one, two = (_expression(model, item) for item in (left, right))
    return None if one is None or two is None else build.apply("eq", one, two)


def _expression(model: Model, polynomial: Polynomial) -> Expression | None:
    total: Expression = build.integer(0)
    for monomial, factor in polynomial.terms:
        value: Expression = build.integer(factor)
        for atom in monomial:
            operand = _atom(model, atom)
            if operand is None:
                return None
            value = build.mul(value, operand)
        total = build.add(total, value)
    return total


def _atom(model: Model, atom: Atom) -> Expression | None:
    if is_parameter(atom):
        return parameter_expression(atom)
    origin = model.origins.get(atom)
    if not isinstance(origin, Floor):
        return None
    dividend, by = _expression(model, origin.dividend), origin.divisor
    if dividend is None or not by.is_constant or by.constant <= 0:
        return None
    return build.apply("mod" if origin.remainder else "floordiv", dividend, build.integer(by.constant))
