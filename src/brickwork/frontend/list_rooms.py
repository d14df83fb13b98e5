"""How much room lists have that grow, settled once the whole function has been lowered.

It is what the loops around each `append` can add, as shapes and arguments say it; what `bw.bounded(n)` says; and the
room of lists whose items it gets. Where that is not known, as in a `while`, it is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping

from brickwork.frontend.lowering_state import ITEM_BYTES, LARGEST, State
from brickwork.frontend.typing import Site
from brickwork.ir.build import add, apply, integer
from brickwork.ir.nodes import Allocate, Apply, Constant, Expression, Node, Size, Statement, Tensor
from brickwork.ir.walk import rewrite, walk
from brickwork.records import dataclass

IN_LOOP = 2048 // ITEM_BYTES
"""Room of a list in a loop that a `while` fills: 2 KiB a number, which a GPU reserves for each thread that may run."""
OUTSIDE = LARGEST // ITEM_BYTES
"""Room of a list outside of loops that a `while` fills: as much as a list in a loop may take."""


@dataclass(frozen=True)
class Room:
    """The most items that there may be in a list, or a guess of it."""

    most: Expression
    guessed: bool


def allocate_grown(state: State, facts: list[Expression]) -> list[Statement]:
    """Settle how much room each list needs; return the allocations of those that the host makes."""
    keys = {(site[0], f"{site[1]}[0]"): site for site in state.bounds}
    owners = {tensor: keys[array.key] for tensor, array in state.lists.items() if array.key in keys}
    found: dict[Site, Room] = {}
    room = {site: _room(state, owners, found, site).most for site in state.bounds}
    for site, total in room.items():
        most = int(total.value) if isinstance(total, Constant) else None
        if most != state.growth[site].most:
            state.growth[site].most = most
            state.changed = True
    made: list[Statement] = []
    for tensor, site, loc, others in state.pending:
        made.append(Allocate(tensor=tensor, sizes=(room[site], *others), loc=loc))
        facts.append(apply("eq", Size(tensor=tensor, axis=0, loc=loc), room[site], loc=loc))
    return made


def _room(state: State, owners: Mapping[Tensor, Site], found: dict[Site, Room], site: Site) -> Room:
    """Return the room of a list; `owners` are the lists whose rooms may be in bounds, `found` the rooms so far.

    A list whose items come from a loop over a list of guessed room has a guessed one, as great at least: a product of
    guesses would be memory without need. Lists that get the items of one another begin with a guess.
    """
    if site in found:
        return found[site]
    guess: Expression = integer(IN_LOOP if site in state.inner else OUTSIDE)
    found[site] = Room(guess, guessed=True)
    total, guessed, unknown = integer(0), False, False
    for bound in state.bounds[site]:
        nodes = () if bound is None else walk(bound)
        rooms = {
            node: _room(state, owners, found, owners[node.tensor])
            for node in nodes
            if isinstance(node, Size) and node.tensor in owners
        }
        for room in rooms.values():
            guessed |= room.guessed
            guess = apply("maximum", guess, room.most) if room.guessed else guess
        if bound is None or (bound not in rooms and any(room.guessed for room in rooms.values())):
            unknown = True
        else:
            total = add(total, _with_rooms(bound, rooms))
    found[site] = Room(guess, guessed=True) if unknown else Room(total, guessed)
    return found[site]


def _with_rooms(bound: Expression, rooms: Mapping[Size, Room]) -> Expression:
    def visit(node: Node) -> Node:
        if isinstance(node, Size) and node in rooms:
            return rooms[node].most
        return apply(node.operator.name, *node.operands, loc=node.loc) if isinstance(node, Apply) else node

    return rewrite(bound, visit)
