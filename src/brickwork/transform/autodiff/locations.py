"""Gives each statement of a derived kernel a location in the user's source, for explanations and failed checks.

A statement that came from none in the source has that of the loop or branch around it.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.ir.nodes import Block, Statement
from brickwork.ir.walk import blocks_in, rewrite, with_blocks


def with_locations(block: Block, loc: Location) -> Block:
    """Return a block, which stands in what is at `loc`, with places for all that has none."""
    return tuple(_located(statement, loc) for statement in block)


def _located(statement: Statement, around: Location) -> Statement:
    loc = around if statement.loc is NOWHERE else statement.loc
    if blocks_in(statement):
        return replace(with_blocks(statement, lambda block: with_locations(block, loc)), loc=loc)
    return rewrite(statement, lambda node: replace(node, loc=loc) if node.loc is NOWHERE else node)
