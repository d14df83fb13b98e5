"""How the elements of a window move: with the loops around it, with its places, or with each in an index of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brickwork.ir.nodes import Apply, Constant, Expression, For, Load, Read, Size, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols
from brickwork.transform.autodiff.trip_counts import natural


def slides(load: Load, values: Mapping[Symbol, Expression], around: Sequence[Symbol]) -> bool:
    """Whether an element of a window moves by 1 with loops around: windows overlap, and an index tells which do.

    `values` are those of variables that the window sets, the last of `around` is the loop over it.
    """
    *outer, place = around
    return any(
        place in found and found & {*outer} for index in load.indices if (found := _summed_symbols(index, values))
    ) and all(_summed_symbols(index, values) is not None for index in load.indices)


def is_of(load: Load, values: Mapping[Symbol, Expression], around: Sequence[Symbol]) -> bool:
    """Whether an element is one for each place in the window, in all windows, or one for all places of a window."""
    *outer, place = around
    found = [_summed_symbols(index, values) for index in load.indices]
    moving = [symbols for symbols in found if symbols is not None]
    return len(moving) == len(found) and not (
        any(place in symbols for symbols in moving) and any(symbols & {*outer} for symbols in moving)
    )


def _summed_symbols(index: Expression, values: Mapping[Symbol, Expression]) -> frozenset[Symbol] | None:
    """Return the variables that an index is a sum of; None where a variable is multiplied, or an element is read.

    Of what is divided only the variables count: so the indices of a window are made of its place.
    """
    match natural(index):
        case Read(symbol=symbol):
            return _summed_symbols(values[symbol], values) if symbol in values else frozenset({symbol})
        case Apply(operator=operator, operands=(left, right)) if operator.name in {"add", "sub"}:
            first, second = _summed_symbols(left, values), _summed_symbols(right, values)
            return None if first is None or second is None else first | second
        case Apply(operator=operator, operands=(left, _)) if operator.name in {"floordiv", "mod"}:
            return _summed_symbols(left, values)
        case Constant() | Size():
            return frozenset()
        case _:
            return None


def is_alone(load: Load, loop: For, around: Sequence[Symbol]) -> bool:
    """Whether each loop's index stands in an index of its own, and no variable that the loop assigns in any."""
    inside = assigned_symbols(loop.body)
    found = [[symbol for symbol in around if symbol in read_symbols(index)] for index in load.indices]
    alone = all(len(symbols) <= 1 for symbols in found) and not read_symbols(load.indices) & inside
    return alone and {symbol for symbols in found for symbol in symbols} == {*around}
