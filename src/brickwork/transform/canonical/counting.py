"""Loops that count get an index, and variables that count along become sums with it.

    k = a                                    for u in range(a, n):
    while k < n:                                 y[p + (u - a) * 2] = x[u]
        y[p] = x[k]                  ->      k = max(a, n)
        k += 1                               p = p + max(n - a, 0) * 2
        p += 2

    while h < n:                             for u in range(bit_length((max(n, 1) - 1) // max(h, 1))):
        y[h] = x[h]                              level = h << u
        h *= 2                       ->          y[level] = x[level]
                                             h = h << bit_length(...)

A counter that is doubled or halved is the number that it begins with, shifted. A variable counts along if each
iteration adds the same integer to it, once, in the body of the loop itself. So does one that has two values in turn
(`now = 1 - now`, `now, then = then, now`), by the parity of the index. Invariant: a loop that gets an index ends after
as many iterations as it counts, or because something fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.analysis.scalars import NONE, Symbols, live_after_loops
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Assign, Block, Constant, Expression, For, Statement, While
from brickwork.ir.walk import rewrite_statements, statements
from brickwork.legality import legality
from brickwork.transform.canonical.copies import substituted
from brickwork.transform.canonical.steps import SCALING, SHIFTING, Step, is_fixed, limits, step_of, turns_of
from brickwork.transform.scratch import Names


def count(block: Block, names: Names, *, may_alias: bool) -> Block:
    """Return the block with indices in place of the variables that count.

    `may_alias`: an element may change with one of another tensor.
    """
    if not any(isinstance(node, For | While) and _may_count(node) for node in statements(block)):
        return block
    live = live_after_loops(block)

    def visit(statement: Statement) -> Block:
        if isinstance(statement, While):
            ahead, loop = ((), statement) if may_alias else _with_limit(statement, names)
            if (made := _with_index(loop, names)) is not None:
                made, *rest = made
                counted = _counted(made, NONE, names) if isinstance(made, For) else (made,)
                return (*ahead, *counted, *rest)
        return _counted(statement, live[statement.index], names) if isinstance(statement, For) else (statement,)

    return rewrite_statements(block, visit)


def _may_count(loop: For | While) -> bool:
    return any(isinstance(item, Assign) and item.symbol.dtype is INT64 for item in loop.body)


# ---------------------------------------------------------------- variables that count along


@legality
def _counted(loop: For, live: Symbols, names: Names) -> Block:
    """Return a loop with sums with its index in place of the variables that count along.

    `live` are variables that are read after it. Where it may be left, no sum is known of them.
    """
    if loop.claimed:
        return (loop,)
    left = effects(loop.body).breaks
    after: list[Statement] = []
    for symbol in dict.fromkeys(item.symbol for item in loop.body if isinstance(item, Assign)):
        one = step_of(loop, symbol) if symbol.dtype is INT64 else None
        steps = turns_of(loop, symbol) if one is None and symbol.dtype is INT64 else (one,) if one else ()
        if steps and not (left and any(step.symbol in live for step in steps)):
            after += _totals(loop, steps, names)
            begun = build.sub(build.read(loop.index), loop.start)
            loop = replace(loop, body=_summed(loop.body, *((step, *_sums(step, begun)) for step in steps)))
    return (loop, *after)


def _totals(loop: For, steps: Sequence[Step], names: Names) -> Block:
    """Return the statements that give variables what they are after all iterations."""
    number = build.iterations(loop.start, loop.stop)
    *swapped, last = steps
    copies = {step.symbol: names.symbol(step.symbol.name, INT64) for step in swapped}
    return (
        *(Assign(symbol=copies[step.symbol], value=step.value(number), loc=loop.loc) for step in swapped),
        Assign(symbol=last.symbol, value=last.value(number), loc=loop.loc),
        *(Assign(symbol=symbol, value=build.read(copy), loc=loop.loc) for symbol, copy in copies.items()),
    )


def _summed(body: Block, *steps: tuple[Step, Expression, Expression]) -> Block:
    """Return a body without these steps, and with what the variables are before and after them."""
    places = {step.place for step, _, _ in steps}
    return tuple(
        substituted(item, {step.symbol: before if at < step.place else after for step, before, after in steps})
        for at, item in enumerate(body)
        if at not in places
    )


def _sums(step: Step, begun: Expression) -> tuple[Expression, Expression]:
    """Return what a variable is before and after its step where so many iterations have been."""
    return step.value(begun), step.value(build.add(begun, build.integer(1)))


# ---------------------------------------------------------------- loops that get an index


@legality
def _with_limit(loop: While, names: Names) -> tuple[Block, While]:
    """Return a `while` up to an element that stays the same in it, and what reads that once, as the condition does."""
    stored, changed = effects(loop).stores | effects(loop).rebinds, effects(loop).assigns
    for counter, compare, limit in limits(loop.condition):
        found = effects(limit)
        if found.loads and stored.isdisjoint(found.loads) and changed.isdisjoint(found.reads):
            end = names.symbol("end", INT64)
            condition = build.apply(compare, build.read(counter), build.read(end))
            return (Assign(symbol=end, value=limit, loc=loop.loc),), replace(loop, condition=condition)
    return (), loop


@legality
def _with_index(loop: While, names: Names) -> Block | None:
    """Return a `while` that only its counter ends as a `for`, and what the counter is after it; None if it is not."""
    if loop.prelude or effects(loop.body).breaks:
        return None
    for counter, compare, limit in limits(loop.condition):
        step = step_of(loop, counter) if is_fixed(limit, loop) else None
        if step is None or not isinstance(step.by, Constant):
            continue
        by, way = int(step.by.value), 1 if compare in {"lt", "le"} else -1
        if by * way > 0:
            beyond = way if compare in {"le", "ge"} else 0
            return _for(loop, step, by, build.add(limit, build.integer(beyond)), names)
    return _shifted(loop, names)


@legality
def _shifted(loop: While, names: Names) -> Block | None:
    """Return a `while` that a counter ends which is multiplied or divided by a power of two; None if it is not."""
    for counter, compare, limit in limits(loop.condition):
        if not is_fixed(limit, loop) or (step := step_of(loop, counter, SCALING | SHIFTING)) is None:
            continue
        bits, most = _bits(step), _most(step, compare, limit)
        if bits is None or most is None:
            continue
        places = build.add(build.apply("bit_length", most), build.integer(bits - 1))
        turns = build.apply("floordiv", places, build.integer(bits))
        way = "shift_left" if step.operator in {"mul", "shift_left"} else "shift_right"
        index, level = names.symbol("turn", INT64), names.symbol(counter.name, INT64)

        def shifted(value: Expression, places: Expression, way: str = way, bits: int = bits) -> Expression:
            return build.apply(way, value, build.mul(places, build.integer(bits)))

        # Counters that are less than 1 never come to an end by being doubled, and end those that are halved.
        first = shifted(build.read(counter), build.read(index))
        first = Assign(symbol=level, value=_maximum(first, build.integer(1)), loc=loop.loc)
        after = shifted(build.read(level), build.integer(1))
        made = For(
            index=index,
            start=build.integer(0),
            stop=turns,
            body=(first, *_summed(loop.body, (step, build.read(level), after))),
            loc=loop.loc,
        )
        return (made, Assign(symbol=counter, value=shifted(build.read(counter), turns), loc=loop.loc))
    return None


@legality
def _bits(step: Step) -> int | None:
    """Return by how many places a step shifts a variable; None if it does not, or not by a literal."""
    if not isinstance(step.by, Constant):
        return None
    by = int(step.by.value)
    places = by if step.operator in SHIFTING else by.bit_length() - 1 if by & (by - 1) == 0 else 0
    return places if places > 0 else None


@legality
def _most(step: Step, compare: str, limit: Expression) -> Expression | None:
    """Return the integer that has as many bits as the counter is shifted until the condition fails, one by one.

    `h << u <= m` is `2 ** u <= m // h`, and `h >> u >= m` is `2 ** u <= h // m`, for positive integers.
    """
    counter, zero, one = build.read(step.symbol), build.integer(0), build.integer(1)
    if step.operator in {"mul", "shift_left"} and compare in {"lt", "le"}:
        last = build.sub(_maximum(limit, one), one) if compare == "lt" else _maximum(limit, zero)
        return build.apply("floordiv", last, _maximum(counter, one))
    if step.operator in {"floordiv", "shift_right"} and compare in {"gt", "ge"} and isinstance(limit, Constant):
        least = int(limit.value) + (1 if compare == "gt" else 0)
        return build.apply("floordiv", _maximum(counter, zero), build.integer(least)) if least > 0 else None
    return None


def _maximum(left: Expression, right: Expression) -> Expression:
    return build.apply("maximum", left, right)


def _for(loop: While, step: Step, by: int, limit: Expression, names: Names) -> Block:
    """Return the loop that counts to a limit, which it does not reach, and what its counter is then."""
    counter, index = build.read(step.symbol), names.symbol(step.symbol.name, INT64)
    made = For(index=index, start=build.integer(0), stop=limit, body=(), loc=loop.loc)
    if by == 1:
        made = replace(made, start=counter)
        before, after = build.read(index), build.add(build.read(index), build.integer(1))
    else:
        way = build.sub(limit, counter) if by > 0 else build.sub(counter, limit)
        turns = build.apply("floordiv", build.add(way, build.integer(abs(by) - 1)), build.integer(abs(by)))
        made = replace(made, stop=turns)
        before, after = _sums(step, build.read(index))
    return (replace(made, body=_summed(loop.body, (step, before, after))), *_totals(made, (step,), names))
