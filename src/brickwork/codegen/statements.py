"""LLVM for statements. Control flow on which lanes differ becomes masks.

Invariants: code under a mask runs only while a lane of it is active, so scalar code in it stands for a real iteration;
a lane that is masked out changes neither memory nor a variable that is read later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from brickwork.codegen import arrays, lanes, loops, work_sharing
from brickwork.codegen.atomics import emit_update
from brickwork.codegen.contraction import emit_contraction
from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_all, emit_expression
from brickwork.codegen.failures import emit_checks, may_be_tested_together
from brickwork.codegen.lane_values import Uniform, Value, scalar_type, vector_type
from brickwork.codegen.memory import element_store, pair_store
from brickwork.codegen.pair_access import is_pair
from brickwork.codegen.parallel import emit_parallel
from brickwork.codegen.rebind import emit_rebind
from brickwork.codegen.row_updates import emit_row, is_row
from brickwork.codegen.variables import leaves, moves_by_itself
from brickwork.codegen.vectors import emit_vector
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Break,
    Check,
    Continue,
    For,
    If,
    Launch,
    Local,
    Rebind,
    Return,
    Role,
    Statement,
    Store,
    Symbol,
    While,
)
from brickwork.ir.walk import statements


def emit_block(state: State, block: Block) -> None:
    """Emit statements in order; where lanes have left the loop or the iteration, the rest runs without them."""
    writer, end = state.writer, None
    for number, statement in enumerate(block):
        if isinstance(statement, Check):
            if not _follows_check(block, number):
                emit_checks(state, [*_checks(block, number)])
            continue
        if number and is_pair(state, block[number - 1], statement):
            continue
        if number + 1 < len(block) and is_pair(state, statement, block[number + 1]):
            _emit_pair(state, statement, block[number + 1])
            continue
        emit_statement(state, statement)
        if writer.terminated or isinstance(statement, Break | Continue):
            break
        if number + 1 < len(block) and state.frame and state.frame.broken and leaves(statement):
            end = end or writer.label("end")
            state = loops.still_active(state, end)
    if end is not None:
        writer.place(end)


def _follows_check(block: Block, number: int) -> bool:
    """Whether a check is tested with the one before it."""
    check, before = block[number], block[number - 1] if number else None
    return isinstance(check, Check) and isinstance(before, Check) and may_be_tested_together(check)


def _checks(block: Block, number: int) -> Iterator[Check]:
    """Yield a check, and those after it that are tested with it."""
    for place in range(number, len(block)):
        check = block[place]
        if not isinstance(check, Check) or (place > number and not _follows_check(block, place)):
            return
        yield check


def emit_statement(state: State, statement: Statement) -> None:
    """Emit one statement, with its line where lines are noted."""
    if state.lines is None:
        _emit(state, statement)
        return
    with state.lines.at(state.writer, statement.loc):
        _emit(state, statement)


def _emit(state: State, statement: Statement) -> None:
    match statement:
        case Assign():
            assign(state, statement.symbol, emit_expression(state, statement.value))
        case Store():
            _emit_store(state, statement)
        case Local():
            arrays.declare(state, statement)
        case If():
            _emit_if(state, statement)
        case For():
            _emit_for(state, statement)
        case While():
            state = replace(state, apart=True)
            loops.emit_while(work_sharing.in_repeated_code(state), statement, emit_block)
        case Break() | Continue():
            loops.emit_leave(state, stop=isinstance(statement, Break))
        case Check():
            emit_checks(state, (statement,))
        case Rebind():
            emit_rebind(state, statement)
        case Allocate() | Launch() | Return():
            msg = f"{type(statement).__name__} belongs to the host program"
            raise TypeError(msg)
        case _:
            assert_never(statement)


def assign(state: State, symbol: Symbol, value: Value) -> None:
    """Set a variable in the active lanes."""
    if symbol in state.bound:
        state.values[symbol] = value
        return
    slot, writer = state.slots[symbol], state.writer
    if not slot.varying:
        if not isinstance(value, Uniform):
            msg = f"lanes may disagree on {symbol.name}"
            raise TypeError(msg)
        writer.store(scalar_type(symbol.dtype), value.text, slot.address)
        return
    kind, text = vector_type(scalar_type(symbol.dtype), state.width), lanes.vector(state, value)
    if state.mask is not None and (state.divergent or slot.reduction):
        old = writer.load(kind, slot.address)
        text = writer.emit(f"select <{state.width} x i1> {state.mask}, {kind} {text}, {kind} {old}")
    writer.store(kind, text, slot.address)


def _emit_store(state: State, statement: Store) -> None:
    indices = emit_all(state, statement.indices)
    value = emit_expression(state, statement.value)
    with work_sharing.by_one_thread(state, statement):
        if statement.combine is None:
            element_store(state, statement.tensor, indices, value)
        else:
            apart = state.beside is None or any(moves_by_itself(index, state.beside) for index in statement.indices)
            emit_update(state, statement.tensor, indices, value, statement.combine, together=not apart)


def _emit_pair(state: State, first: Statement, second: Statement) -> None:
    """Emit two stores, of the parts of one complex element, as one."""
    if isinstance(first, Store) and isinstance(second, Store):
        indices = emit_all(state, first.indices)
        parts = emit_expression(state, first.value), emit_expression(state, second.value)
        pair_store(state, first.tensor, indices, parts)


def _emit_for(state: State, loop: For) -> None:
    if loop.role is not Role.PARALLEL and any(isinstance(node, If | While) for node in statements(loop.body)):
        state = replace(state, apart=True)
    if loop.role.is_tile:
        emit_contraction(state, loop, emit_block)
    elif state.width == 1 and not state.parallel and loop.role is Role.PARALLEL:
        emit_parallel(state, loop, emit_block)
    elif state.team is not None and not state.team.alone and loop.role in {Role.THREAD, Role.WARP}:
        work_sharing.emit_work_sharing(state, state.team, loop, emit_block)
    elif state.target.grid and is_row(state, loop):
        emit_row(state, loop)
    elif state.target.grid:
        loops.emit_for(work_sharing.in_repeated_code(state), loop, emit_block)
    elif state.width == 1 and loop.width > 1 and loop.role is not Role.SEQUENTIAL:
        emit_vector(state, loop, emit_all(state, (loop.start, loop.stop)), emit_block)
    else:
        loops.emit_for(state, loop, emit_block)


def _emit_if(state: State, statement: If) -> None:
    writer, condition = state.writer, emit_expression(state, statement.condition)
    if isinstance(condition, Uniform):
        then, otherwise, after = writer.label("then"), writer.label("else"), writer.label("after")
        writer.branch_if(condition.text, then, otherwise)
        for label, block in ((then, statement.then), (otherwise, statement.otherwise)):
            writer.place(label)
            emit_block(state.inner(), block)
            writer.branch(after)
        writer.place(after)
        return
    flags = lanes.vector(state, condition)
    opposite = writer.emit(f"xor <{state.width} x i1> {flags}, splat (i1 true)")
    for mask, block in ((flags, statement.then), (opposite, statement.otherwise)):
        if block:
            _emit_masked(state.under(lanes.both(state, state.mask, mask)), block)


def _emit_masked(state: State, block: Block) -> None:
    """Emit a block for the lanes of the state's mask, if there are any."""
    if state.mask is None or all(isinstance(item, Assign) and not effects(item).loads for item in block):
        emit_block(state, block)
        return
    with state.writer.when(lanes.any_lane(state, state.mask)):
        emit_block(state, block)
