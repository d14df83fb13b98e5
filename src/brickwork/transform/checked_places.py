"""Where a scheduled kernel of a processor checks indices: which of them a test before a loop stands for."""

from __future__ import annotations

from collections.abc import Iterator

from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import Block, Check, FailureKind, For, If, Tensor, While
from brickwork.ir.walk import statements
from brickwork.transform.explanation import GUARDS

Places = frozenset[tuple[Location, str]]
"""Statements with what their checks say first: which dimension of which tensor."""


def place_of(loc: Location, tensor: Tensor, axis: int) -> tuple[Location, str]:
    """Return the place of the check of an index."""
    return loc, f"dimension {axis} of {'list' if tensor.is_local else 'tensor'} '{tensor.name}' "


def hoisted_checks(block: Block) -> Places:
    """Return the places that are tested before a loop, and not checked in it where the test holds."""
    fast = next((node.then for node in block if isinstance(node, If) and node.version == GUARDS), block)
    gone, left = set[tuple[Location, str]](), set[tuple[Location, str]]()
    _sort(fast, gone, left)
    return frozenset(gone - left)


def _sort(block: Block, gone: set[tuple[Location, str]], left: set[tuple[Location, str]]) -> None:
    """Sort the checks of a block into those that a version of a loop does without, and others."""
    for statement in block:
        match statement:
            case If(then=(For() as one,), otherwise=(For() as other,), version="") if one.index == other.index:
                kept = {*_checks((one,))}
                left |= kept
                gone |= {*_checks((other,))} - kept
            case If(then=then, otherwise=otherwise):
                _sort((*then, *otherwise), gone, left)
            case For(body=body):
                _sort(body, gone, left)
            case While(prelude=prelude, body=body):
                _sort((*prelude, *body), gone, left)
            case _:
                left |= {*_checks((statement,))}


def _checks(block: Block) -> Iterator[tuple[Location, str]]:
    for node in statements(block):
        if isinstance(node, Check) and node.failure.kind is FailureKind.INDEX:
            yield node.loc, f"dimension {node.failure.message.partition('dimension ')[2].partition('with')[0]}"
