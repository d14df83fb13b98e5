"""Gives each statement of a derived kernel a location in the user's source, for explanations and failed checks.

A statement that came from none in the source has that of the loop or branch around it.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.ir.nodes import Block, For, If, Node, Statement, While
from brickwork.ir.walk import rewrite


def with_locations(block: Block, loc: Location) -> Block:
    """Return a block, which stands in what is at `loc`, with places for all that has none."""
    return tuple(_located(statement, loc) for statement in block)


def _located(statement: Statement, around: Location) -> Statement:
    loc = around if statement.loc is NOWHERE else statement.loc
    match statement:
        case For(body=body):
            return replace(statement, body=with_locations(body, loc), loc=loc)
        case If(then=then, otherwise=otherwise):
            return replace(statement, then=with_locations(then, loc), otherwise=with_locations(otherwise, loc), loc=loc)
        case While(prelude=prelude, body=body):
            return replace(statement, prelude=with_locations(prelude, loc), body=with_locations(body, loc), loc=loc)
        case _:

            def visit(node: Node) -> Node:
                return replace(node, loc=loc) if node.loc is NOWHERE else node

            return rewrite(statement, visit)
