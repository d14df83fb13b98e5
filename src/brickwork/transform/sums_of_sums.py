"""Sums of partial sums that are scaled, as sums of all terms: contractions of factors that have the scales in them.

    s = 0.0                                            s = 0.0
    for b in range(n):                                 for b in range(n):
        a = 0                                              for k in range(128):
        for k in range(128):                  ->               s += x[i, 128 * b + k] * q[j, 128 * b + k] * u[i, b]
            a += x[i, 128 * b + k] * q[j, 128 * b + k]
        s += a * u[i, b]                               if s is not finite: the sums as they were

Products of integers with a scale for each block of terms are written so. Invariant: sums are the same but for the order
in which they take their terms, and for rounding; what is not finite is summed up as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from brickwork.analysis.contractions import accumulation
from brickwork.analysis.products import is_exact, terms_of
from brickwork.analysis.scalars import NONE, Symbols, live_before
from brickwork.ir import build
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Block, Cast, Constant, Expression, For, If, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, read_symbols, substitute
from brickwork.legality import legality
from brickwork.transform.scratch import Names, copied


def with_whole_sums(statement: Statement, live: Mapping[Symbol, Symbols], names: Names) -> Block:
    """Return a loop with such a sum in its body as one of all terms; `live` are variables read after each loop."""
    if not isinstance(statement, For):
        return (statement,)
    for place, item in enumerate(statement.body):
        before = statement.body[:place]
        found = _flattened(item, live.get(item.index, NONE)) if isinstance(item, For) else None
        begun = None if found is None else _begun(before, item)
        if found is not None and begun is not None:
            loop, total = found
            own = build.read(total)
            finite = build.apply("eq", build.sub(own, own), build.constant(0.0, total.dtype))
            again = If(condition=build.logical_not(finite), then=(begun, copied(item, names)), loc=item.loc)
            body = (*before, copied(loop, names), copied(again, names), *statement.body[place + 1 :])
            return (replace(statement, body=body),)
    return (statement,)


@legality
def _begun(before: Block, loop: Statement) -> Assign | None:
    """Return what the one variable begins with that a loop goes on with, if that is known again behind it."""
    carried = frozenset(live_before((loop,), NONE) & assigned_symbols(loop))
    at = max((at for at, item in enumerate(before) if assigned_symbols(item) & carried), default=None)
    match () if at is None else before[at:]:
        case (Assign(symbol=symbol, value=value) as found, *later) if carried == frozenset((symbol,)):
            plain = all(isinstance(item, Assign) for item in later)
            return found if plain and not read_symbols([value]) & (assigned_symbols(later) | carried) else None
        case _:
            return None


@legality
def _flattened(loop: For, live: Symbols) -> tuple[For, Symbol] | None:
    """Return a loop that adds scaled sums to a variable as one that adds all terms, and the variable.

    Nothing else that it assigns is `live` after it: the partial sums are gone. Terms that are integers are such as
    floats have exactly, and do not wrap around.
    """
    match loop.body:
        case (*ahead, Assign(symbol=part, value=Constant(value=0)), For() as inner, Assign() as last) if (
            all(isinstance(item, Assign) for item in ahead) and last.symbol.dtype.is_float
        ):
            summed = accumulation(inner)
        case _:
            return None
    if summed is None or summed[1] != part:
        return None
    loops, _, term, masks = summed
    value = _scaled(last, part, term)
    own = assigned_symbols((*ahead, inner))
    passed = (live_before(loop.body, NONE) | live) & own
    if value is None or last.symbol in own or passed or effects(loop).changes:
        return None
    # A sum without terms is 0, and NaN with a scale that is not finite.
    if masks or not (part.dtype.is_float or is_exact(term)):
        return None
    block: Block = (replace(last, value=build.add(build.read(last.symbol), value)),)
    for each in reversed(loops):
        block = (replace(each, body=block),)
    return replace(loop, body=(*ahead, *block)), last.symbol


@legality
def _scaled(last: Assign, part: Symbol, term: Expression) -> Expression | None:
    """Return what one term of a partial sum adds to a variable; None if the sum is no factor of what is added."""
    own, sums = build.read(last.symbol), build.read(part)
    match last.value:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "add" and own in (left, right):
            added = right if left == own else left
        case _:
            return None
    factors = [item for item in terms_of(added) if part in read_symbols([item.value])]
    inside = [item.value.operand if isinstance(item.value, Cast) else item.value for item in factors]
    if len(factors) != 1 or inside != [sums] or factors[0].divides:
        return None
    return None if last.symbol in read_symbols([added]) else substitute(added, {part: term})
