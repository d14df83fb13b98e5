"""Recurrences that stand alone get a loop of one iteration around them, so that they are cut into chunks.

    s = 0                                   for once in range(1):
    for t in range(n):                          own = s
        s += x[t]                               for t in range(n):
        y[t] = s                   ->               own += x[t]
    total[0] = s                                    y[t] = own
                                                end[0] = own
                                            s_end = end[0]
                                            total[0] = s_end

For grids (`split_recurrences.py`): running sums, places of what is kept (`if x[i] > 0: y[m] = x[i]; m += 1`, after
`ranks.py`). Invariant: a loop changes only if it can be cut.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from brickwork.analysis.analyse import analyse
from brickwork.analysis.carrying_loops import carrying_loops
from brickwork.analysis.scalars import NONE, live_before, reduction_of
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Allocate, Assign, Block, Expression, For, Kernel, Launch, Statement, Symbol
from brickwork.ir.walk import assigned_symbols, free_tensors, read_symbols, substitute_block
from brickwork.legality import legality
from brickwork.target.target import Target
from brickwork.transform.argument_checks import without_argument_checks
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.carried_elements import with_carried_elements
from brickwork.transform.free_variables import with_body
from brickwork.transform.nests_apart import Changed, each_launch
from brickwork.transform.recurrences import reads_as_before, without_stores
from brickwork.transform.scratch import ONCE, Names, names_of, with_variables
from brickwork.transform.slopes import Item, with_slopes


@each_launch("grid")
def with_nests_of_one(launch: Launch, names: Names, _: Target) -> Changed | None:
    """Return the launch of the kernel with nests of one iteration around recurrences that stand alone."""
    if not (wanted := recurrences_alone(launch.kernel)):
        return None
    other, made = _changed(launch.kernel, wanted, names)
    return (*made, replace(launch, kernel=other)), {}


# ---------------------------------------------------------------- which loops


def recurrences_alone(kernel: Kernel) -> frozenset[Symbol]:
    """Return the indices of the loops of a kernel that can be cut once they have a loop around them."""
    kernel = with_carried_elements(kernel, lambda: analyse(kernel))
    body = without_argument_checks(kernel)[0].body
    found = [
        node
        for place, node in enumerate(body)
        if isinstance(node, For) and may_be_cut(node, live_before(body[place + 1 :], NONE))
    ]
    if kernel.may_alias or not found:
        return frozenset()
    wrapped, _ = _changed(
        kernel, {node.index for node in found}, names_of((kernel,), 1 + max(tensor.number for tensor in kernel.tensors))
    )
    carrying = carrying_loops(wrapped, analyse(wrapped))
    return frozenset(node.index for node in found if node.index in carrying)


@legality
def may_be_cut(loop: For, after: frozenset[Symbol]) -> bool:
    """Whether a loop has none in it, and passes on what can be computed in chunks; variables `after` are read later.

    How iterations meet on elements is not asked here.
    """
    done, assigned = effects(loop), assigned_symbols(loop.body)
    if done.depth > 1 or done.fails or done.rebinds or done.draws or done.declares:
        return False
    carried = live_before(loop.body, NONE) & assigned
    states = {symbol for symbol in carried if reduction_of(loop.body, symbol) is None}
    if not states or after & assigned - carried:
        return False
    return _is_linear(loop, states)


@legality
def _is_linear(loop: For, states: set[Symbol]) -> bool:
    """Whether what is computed of the states is linear in them, and reads nothing that the loop stores."""
    names = names_of((loop,), 1 + max((tensor.number for tensor in free_tensors((loop,))), default=-1))
    ends = [names.tensor(symbol.name, symbol.dtype, 1) for symbol in states]
    stores = (
        names.store(end, build.integer(0), build.read(state)) for state, (end, _) in zip(states, ends, strict=True)
    )
    kept = without_dead((*without_stores((loop,)), *stores), {end for end, _ in ends})
    if not reads_as_before(kept, loop):
        return False
    alone = cast("For", kept[0])
    items: frozenset[Item] = frozenset(states)
    return with_slopes(alone, items, names) is not None


# ---------------------------------------------------------------- the change


def _changed(kernel: Kernel, wanted: frozenset[Symbol] | set[Symbol], names: Names) -> tuple[Kernel, list[Allocate]]:
    """Return a kernel with loops around these, and the tensors in which they leave variables."""
    made: list[Allocate] = []
    body, waiting = list[Statement](), list[Assign]()
    rest = kernel.body
    while rest:
        statement, rest = rest[0], rest[1:]
        wanted_now = read_symbols(statement) | assigned_symbols(statement)
        body += (each for each in waiting if each.symbol in wanted_now)
        waiting = [each for each in waiting if each.symbol not in wanted_now]
        if isinstance(statement, For) and statement.index in wanted:
            nest, given, rest = _alone(statement, rest, names, made)
            body.append(nest)
            waiting += given
        else:
            body.append(statement)
    facts = (build.apply("eq", build.size(each.tensor, 0), build.integer(1)) for each in made)
    return with_body(kernel, tuple(body), (*kernel.facts, *facts)), made


def _alone(loop: For, rest: Block, names: Names, made: list[Allocate]) -> tuple[For, list[Assign], Block]:
    """Return a loop in a nest with variables of its own, what gives those that are read later, and what reads them."""
    assigned, zero, one = assigned_symbols(loop.body), build.integer(0), build.integer(1)
    carried = sorted(live_before(loop.body, NONE) & assigned, key=lambda item: item.number)
    own = {symbol: names.symbol(symbol.name, symbol.dtype) for symbol in carried}
    starts = (Assign(symbol=mine, value=build.read(symbol), loc=loop.loc) for symbol, mine in own.items())
    stores, given, later = list[Statement](), list[Assign](), dict[Symbol, Expression]()
    for symbol in (item for item in carried if item in live_before(rest, NONE)):
        cell, allocate = names.tensor(f"{symbol.name}_end", symbol.dtype, 1)
        made.append(allocate)
        stores.append(names.store(cell, zero, build.read(own[symbol])))
        new = symbol if symbol in assigned_symbols(rest) else names.symbol(symbol.name, symbol.dtype)
        given.append(Assign(symbol=new, value=names.load(cell, zero), loc=loop.loc))
        later[symbol] = build.read(new)
    body = (*starts, with_variables(loop, own), *stores)
    nest = For(index=names.symbol(ONCE, INT64), start=zero, stop=one, body=body)
    return nest, given, substitute_block(rest, later)
