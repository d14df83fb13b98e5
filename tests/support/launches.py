"""Interprets what is launched on a GPU as a GPU runs it: after a check that fails, all else goes on.

The thread that the check stands in ends, or its block. Other threads and later launches run, and the host hears of the
failure at the end. New memory holds anything. What is accessed must have been checked or proved all the same: an index
out of range, which the interpreter finds in any case, is no failure of the program here but `OutsideError`, of the
compiler.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from brickwork.ir import interpret
from brickwork.ir.dtypes import DType
from brickwork.ir.interpret import Memory
from brickwork.ir.nodes import Block, For, Launch, Node, Role, Statement
from brickwork.ir.scalar_semantics import Number, narrow

THREADS = frozenset({Role.PARALLEL, Role.VECTOR, Role.BLOCK})
"""The loops whose iterations are for a thread or a block each."""


class OutsideError(Exception):
    """A thread accesses what is no element of a tensor, and no check before it says so."""


def as_launched(run: Callable[..., Any], failures: tuple[type[Exception], ...]) -> Callable[..., Any]:
    """Return a function that interprets a program as a GPU runs it; at its end it raises the first of the failures."""

    def launched(*arguments: Any, **named: Any) -> Any:
        found: list[Exception] = []
        bodies: dict[int, Block] = {}
        statement, block, outside, new = interpret._statement, interpret._block, interpret._outside, interpret._new

        def of_statement(node: Statement) -> Any:
            match node:
                case For(role=role, body=body) if role in THREADS:
                    bodies[id(body)] = body
                case Launch(kernel=kernel):
                    bodies[id(kernel.body)] = kernel.body
                case _:
                    pass
            return statement(node)

        def of_block(inner: Block) -> Any:
            step = block(inner)
            return _ending(step, failures, found) if bodies.get(id(inner)) is inner else step

        def told(node: Node, *rest: Any) -> Exception:
            return OutsideError(str(outside(node, *rest)))

        def unknown(*where: Any) -> Memory:
            memory = new(*where)
            memory.data[:] = [_unknown(memory.dtype)] * len(memory.data)
            return memory

        with patch.multiple(interpret, _statement=of_statement, _block=of_block, _outside=told, _new=unknown):
            result = run(*arguments, **named)
        if found:
            raise found[0]
        return result

    return launched


def _unknown(dtype: DType) -> Number:
    """Return what new memory may hold: a number that shows where it is read."""
    return math.nan if dtype.is_float else narrow(2**63 - 1, dtype) if dtype.is_integer else True


def _ending(step: Any, failures: tuple[type[Exception], ...], found: list[Exception]) -> Any:
    """Return what ends where a check fails, and notes that, while what comes after it goes on."""

    def run(state: Any) -> Any:
        depth = 0 if state.detector is None else len(state.detector.watches)
        try:
            return step(state)
        except failures as error:
            found.append(error)
            if state.detector is not None:
                state.detector.leave_to(depth)
            return interpret._NEXT

    return run
