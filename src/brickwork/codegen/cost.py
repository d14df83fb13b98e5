"""An estimate of the work of a block, in part computed at run time, where the lengths of loops are known.

A unit is about a scalar instruction. Used to decide how many iterations are worth another thread; never for results.
"""

from __future__ import annotations

from collections.abc import Mapping

from brickwork.codegen.emitter_state import State
from brickwork.codegen.expressions import emit_scalar
from brickwork.codegen.lane_values import Uniform
from brickwork.codegen.sleef import FUNCTIONS
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Apply, Block, For, If, Load, Node, Random, Role, Symbol, While
from brickwork.ir.walk import assigned_symbols, children, read_symbols, walk
from brickwork.transform.schedule.planner import DEPTH_WEIGHT


def emit_cost(state: State, block: Block, indices: Mapping[Symbol, tuple[str, str]]) -> str:
    """Return the work of one run of `block` as a double; loop indices around it have these starts and stops."""
    inner = state.inner()
    for symbol, (start, stop) in indices.items():
        _bind_middle(inner, symbol, start, stop)
    for symbol in assigned_symbols(block) - indices.keys():
        inner.values.pop(symbol, None)
        inner.slots.pop(symbol, None)
    return _block_cost(inner, block)


def _bind_middle(state: State, symbol: Symbol, start: str, stop: str) -> None:
    half = state.writer.emit(f"ashr i64 {state.writer.emit(f'sub i64 {stop}, {start}')}, 1")
    state.values[symbol] = Uniform(state.writer.emit(f"add i64 {start}, {half}"), INT64)


def _block_cost(state: State, block: Block) -> str:
    """Return the work of a block: straight code at compile time, loops times their length."""
    straight, parts = 1.0, list[str]()
    for statement in block:
        match statement:
            case For():
                straight += 2.0
                parts.append(_loop_cost(state, statement))
            case If():
                straight += _node_cost(statement.condition)
                arms = (_block_cost(state, statement.then), _block_cost(state, statement.otherwise))
                parts.append(state.writer.emit(f"call double @llvm.maxnum.f64(double {arms[0]}, double {arms[1]})"))
            case While():
                body = _block_cost(state, (*statement.prelude, *statement.body))
                parts.append(state.writer.emit(f"fmul double {body}, {DEPTH_WEIGHT}"))
            case _:
                straight += _node_cost(statement)
    total = f"{straight:.1f}"
    for part in parts:
        total = state.writer.emit(f"fadd double {total}, {part}")
    return total


def _loop_cost(state: State, loop: For) -> str:
    emit, known = state.writer.emit, {*state.values, *state.slots, *state.layout.scalars}
    bounds = (loop.start, loop.stop)
    trips = f"{DEPTH_WEIGHT}"
    inner = state.inner()
    if read_symbols(bounds) <= known:
        start, stop = emit_scalar(state, loop.start), emit_scalar(state, loop.stop)
        size = emit(f"call i64 @llvm.smax.i64(i64 {emit(f'sub i64 {stop}, {start}')}, i64 0)")
        trips = emit(f"sitofp i64 {size} to double")
        _bind_middle(inner, loop.index, start, stop)
    work = emit(f"fmul double {trips}, {_block_cost(inner, loop.body)}")
    if loop.role is not Role.SEQUENTIAL and loop.width > 1:
        work = emit(f"fmul double {work}, 0.125")
    return work


def _node_cost(root: Node) -> float:
    return 1.0 + sum(_own_cost(node) for node in (root, *_below(root)))


def _below(root: Node) -> list[Node]:
    return [node for child in children(root) for node in walk(child)]


def _own_cost(node: Node) -> float:
    match node:
        case Random():
            return 100.0
        case Apply() if node.operator.name in FUNCTIONS:
            return 30.0
        case Load():
            return 3.0
        case _:
            return 1.0
