"""What an operator launches for given arguments: the grid of each kernel, and how many bytes and flops it asks for.

The host part of the program is run on sizes and numbers alone. Bytes are those of all accesses, wherever caches serve
them; flops count each floating-point operator and function as one. A loop whose bounds depend on an outer index counts
as often as in the middle of the outer loop; what depends on data is not known (None).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from enum import Enum
from functools import lru_cache
from math import prod
from typing import TypeAlias

from brickwork.codegen.grid import (
    CLUSTER_STEPS,
    LONE_THREADS,
    MOST_BLOCKS,
    MOST_ROWS,
    MOST_THREADS,
    PARALLEL_THREADS,
    TEAM_THREADS,
    Form,
    Grid,
    grid_of,
)
from brickwork.codegen.launch_dimensions import (
    COLUMNS_EACH,
    FEW_COLUMNS,
    MANY_STEPS,
    STEPS_EACH,
    UNKNOWN_STEPS,
    shared_loops,
)
from brickwork.codegen.tile_cluster import blocks_of
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Cast,
    Constant,
    Continue,
    Expression,
    For,
    If,
    Kernel,
    KeyParameter,
    Launch,
    ListParameter,
    Load,
    Node,
    Program,
    Read,
    Rebind,
    ScalarParameter,
    Select,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
    While,
)
from brickwork.ir.parse import parse_program
from brickwork.ir.scalar_semantics import Number, cast, evaluate
from brickwork.ir.walk import statements, walk
from brickwork.records import dataclass
from brickwork.runtime.artifact import Artifact
from brickwork.target.target import BUSY_THREADS, LEAST_TEAM, PROCESSORS, WARP

Argument: TypeAlias = tuple[int, ...] | list["Argument"] | int | float | None
"""The sizes of a tensor, the items of a list, a number, or what is absent."""

MOST_LAUNCHES = 1000
"""Launches that are told of, of a program that loops."""


@dataclass(frozen=True, slots=True)
class LaunchFigures:
    """One launch: blocks, threads of a block, and what all threads ask for.

    `form` says what threads take, `atomic` names the tensors whose elements are updated atomically, and so many blocks
    as `parts` says add up the sums of each tile.
    """

    kernel: str
    blocks: int | None
    threads: int | None
    bytes: int | None
    flops: int | None
    form: Form = Form.SERIAL
    atomic: tuple[str, ...] = ()
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Followed:
    """The launches of a program for some arguments, and the choices on the way to them, by the versions' names.

    If `complete`, there are no others: sizes and numbers told all.
    """

    launches: list[LaunchFigures]
    taken: dict[str, bool]
    complete: bool


class _Flow(Enum):
    """How a statement of the host program ends."""

    NEXT = "next"
    BREAK = "break"
    CONTINUE = "continue"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class _Work:
    """Bytes and flops of a block."""

    bytes: int = 0
    flops: int = 0

    def plus(self, other: _Work, times: int = 1) -> _Work:
        return _Work(self.bytes + times * other.bytes, self.flops + times * other.flops)


@dataclass(slots=True)
class _Known:
    """What is known where a statement runs, until so many launches as `most` are found."""

    most: int = MOST_LAUNCHES
    sizes: dict[tuple[Tensor, int], int] = field(default_factory=dict[tuple[Tensor, int], int])
    values: dict[Symbol, Number] = field(default_factory=dict[Symbol, Number])
    found: list[LaunchFigures] = field(default_factory=list[LaunchFigures])
    taken: dict[str, set[bool]] = field(default_factory=dict[str, set[bool]])


def pieces_of(artifact: Artifact) -> Program:
    """Return the program that launches the kernels of an artifact."""
    return _parsed(artifact.stages["pieces"])


@lru_cache(maxsize=1)
def _parsed(pieces: str) -> Program:
    """Return a program; the last one is kept, as it is followed, and then its kernels are made one after the other."""
    return parse_program(pieces)


def followed(program: Program, arguments: Sequence[Argument]) -> Followed:
    """Return what a program of pieces launches for the arguments of its parameters, and by which choices."""
    known = _begun(program, arguments)
    complete = _run(known, program.body) is _Flow.NEXT
    # What is chosen again and again, now this way and now that, is no choice of the arguments.
    taken = {name: True in found for name, found in known.taken.items() if len(found) == 1}
    return Followed(known.found, taken, complete)


def launches(program: Program, arguments: Sequence[Argument], most: int = MOST_LAUNCHES) -> list[LaunchFigures]:
    """Return the launches of a program of pieces for the arguments of its parameters, `most` of them."""
    known = _begun(program, arguments, most)
    _run(known, program.body)
    return known.found


def bytes_allocated(program: Program, arguments: Sequence[Argument]) -> dict[Tensor, int]:
    """Return how many bytes the tensors have that the host part allocates, as far as that is known."""
    known = _begun(program, arguments)
    _run(known, tuple(statement for statement in program.body if not isinstance(statement, Launch)))
    sizes = {
        node.tensor: [known.sizes.get((node.tensor, axis)) for axis in range(node.tensor.type.rank)]
        for node in statements(program.body)
        if isinstance(node, Allocate)
    }
    return {
        tensor: prod(size for size in found if size is not None) * tensor.type.dtype.size
        for tensor, found in sizes.items()
        if None not in found
    }


def _begun(program: Program, arguments: Sequence[Argument], most: int = MOST_LAUNCHES) -> _Known:
    """Return what is known of the arguments."""
    known = _Known(most)
    parameters = [item for item in program.parameters if not isinstance(item, KeyParameter)]
    for parameter, argument in zip(parameters, arguments, strict=False):
        match parameter:
            case TensorParameter(tensor=tensor) if isinstance(argument, tuple):
                known.sizes |= {(tensor, axis): size for axis, size in enumerate(argument)}
            case ListParameter(symbols=symbols) if isinstance(argument, list):
                for symbol, item in zip(symbols, argument, strict=True):
                    if isinstance(item, int | float):
                        known.values[symbol] = item
            case TensorListParameter(tensors=tensors) if isinstance(argument, list):
                for tensor, shape in zip(tensors, argument, strict=True):
                    sizes = shape if isinstance(shape, tuple) else ()
                    known.sizes |= {(tensor, axis): size for axis, size in enumerate(sizes)}
            case ScalarParameter(symbol=symbol) if isinstance(argument, int | float):
                known.values[symbol] = cast(argument, symbol.dtype)
            case _:
                pass
    return known


# ---------------------------------------------------------------- the host part


def _run(known: _Known, block: Block) -> _Flow:
    for statement in block:
        flow = _step(known, statement)
        if flow is not _Flow.NEXT:
            return flow
    return _Flow.NEXT


def _step(known: _Known, statement: Statement) -> _Flow:
    match statement:
        case Allocate():
            for axis, size in enumerate(statement.sizes):
                number = _value(known, size)
                if number is not None:
                    known.sizes[statement.tensor, axis] = int(number)
        case Assign():
            _assign(known, statement.symbol, _value(known, statement.value))
        case If():
            condition = _value(known, statement.condition)
            if condition is None:
                return _Flow.STOP
            if statement.version:
                known.taken.setdefault(statement.version, set()).add(bool(condition))
            return _run(known, statement.then if condition else statement.otherwise)
        case For():
            return _loop(known, statement)
        case While():
            return _while(known, statement)
        case Break():
            return _Flow.BREAK
        case Continue():
            return _Flow.CONTINUE
        case Rebind():
            for target, source in zip(statement.targets, statement.sources, strict=True):
                if (source, 0) in known.sizes and target != source:
                    known.sizes |= {(target, axis): known.sizes[source, axis] for axis in range(source.type.rank)}
        case Launch():
            known.found.append(_figures(known, statement.kernel))
            return _Flow.STOP if len(known.found) >= known.most else _Flow.NEXT
        case _:
            pass
    return _Flow.NEXT


def _assign(known: _Known, symbol: Symbol, value: Number | None) -> None:
    if value is None:
        known.values.pop(symbol, None)
    else:
        known.values[symbol] = value


def _loop(known: _Known, loop: For) -> _Flow:
    start, stop = _value(known, loop.start), _value(known, loop.stop)
    if start is None or stop is None:
        return _Flow.STOP
    for index in range(int(start), int(stop)):
        known.values[loop.index] = index
        flow = _run(known, loop.body)
        if flow is _Flow.BREAK:
            break
        if flow is _Flow.STOP:
            return flow
    return _Flow.NEXT


def _while(known: _Known, loop: While) -> _Flow:
    while True:
        flow = _run(known, loop.prelude)
        condition = _value(known, loop.condition) if flow is _Flow.NEXT else None
        if condition is None:
            return _Flow.STOP
        if not condition:
            return _Flow.NEXT
        flow = _run(known, loop.body)
        if flow is _Flow.BREAK:
            return _Flow.NEXT
        if flow is _Flow.STOP:
            return flow


# ---------------------------------------------------------------- kernels


def _figures(known: _Known, kernel: Kernel) -> LaunchFigures:
    grid = grid_of(kernel)
    lengths = [_length(known, loop) or 0 for loop in grid.loops]
    if lengths:
        lengths[-1] = -(-lengths[-1] // grid.width)
    steps = prod(lengths)
    work = _block(known, kernel.body)
    total = (None, None) if work is None else (work.bytes, work.flops)
    updated = (node.tensor.name for node in statements(kernel.body) if isinstance(node, Store) and node.combine)
    what = (grid.form, tuple(dict.fromkeys(updated)))
    match grid.form:
        case Form.SERIAL:
            return LaunchFigures(kernel.name, 1, 1, *total, *what)
        case Form.PARALLEL if grid.table:
            blocks = _table(grid, prod(lengths[:-1]), lengths[-1])
            return LaunchFigures(kernel.name, blocks, grid.threads, *total, *what)
        case Form.PARALLEL:
            each = min(max(steps // PROCESSORS, WARP), grid.threads)
            each = 1 << (each.bit_length() - 1)
            return LaunchFigures(kernel.name, -(-steps // each), each, *total, *what)
        case Form.BLOCK if grid.tile is not None:
            parts = int(_value(known, blocks_of(grid.loops, grid.tile)) or 1)
            return LaunchFigures(kernel.name, steps * parts, grid.threads, *total, *what, parts)
        case Form.BLOCK:
            threads = _threads(known, kernel, steps)
            several = 1 << (max(steps // PROCESSORS, 1).bit_length() - 1)
            teams = min(max(threads * several, WARP), TEAM_THREADS) // threads if threads <= WARP else 1
            longest = _longest(known, kernel)
            parts = 1 if longest < CLUSTER_STEPS else min(longest // LONE_THREADS, grid.cluster)
            parts = 1 << (parts.bit_length() - 1)
            return LaunchFigures(kernel.name, -(-steps // teams) * parts, threads * teams, *total, *what, parts)


def _table(grid: Grid, rows: int, columns: int) -> int:
    """Return the blocks for a table of steps, as `codegen.geometry` has them."""
    few = columns <= FEW_COLUMNS
    each = FEW_COLUMNS if few else min(max(rows * columns // MANY_STEPS, 1), COLUMNS_EACH)
    along = max(columns // each, min(columns, WARP), 1)
    wide = 1 if few else min(1 << (along - 1).bit_length(), PARALLEL_THREADS)
    if across := grid.loops[-1].across:
        wide, each = grid.threads // min(grid.threads // across, 1 << (max(rows, 1) - 1).bit_length()), 1
    return min(-(-columns // (wide * each)), MOST_BLOCKS) * min(-(-rows * wide // grid.threads), MOST_ROWS)


def _threads(known: _Known, kernel: Kernel, total: int) -> int:
    """Return the threads that share one of `total` iterations out, as `codegen.geometry` has them."""
    longest = _longest(known, kernel)
    share = BUSY_THREADS // max(total, 1)
    wanted = max(-(-longest // STEPS_EACH), min(share, longest), 1)
    most = max(min(share // 2, grid_of(kernel).threads), MOST_THREADS)
    wanted = min(wanted, most)
    if longest <= WARP // 2:
        return 1 << (max(wanted, LEAST_TEAM) - 1).bit_length()
    return -(-wanted // WARP) * WARP


def _longest(known: _Known, kernel: Kernel) -> int:
    """Return the steps of the longest shared loop of a kernel."""
    lengths = [
        (None if loop.length is None else _value(known, loop.length), loop.step) for loop in shared_loops(kernel)
    ]
    return max((1, *(UNKNOWN_STEPS if length is None else -(-int(length) // step) for length, step in lengths)))


def _length(known: _Known, loop: For) -> int | None:
    start, stop = _value(known, loop.start), _value(known, loop.stop)
    return None if start is None or stop is None else max(int(stop) - int(start), 0)


def _block(known: _Known, block: Block) -> _Work | None:
    """Return the work of a block in a kernel."""
    total = _Work()
    for statement in block:
        work = _statement(known, statement)
        if work is None:
            return None
        total = total.plus(work)
    return total


def _statement(known: _Known, statement: Statement) -> _Work | None:
    match statement:
        case For():
            length, start = _length(known, statement), _value(known, statement.start)
            if length is None or start is None:
                return None
            known.values[statement.index] = int(start) + length // 2
            body = _block(known, statement.body)
            return None if body is None else _Work().plus(body, length)
        case If():
            arms = (_block(known, statement.then), _block(known, statement.otherwise))
            condition = _value(known, statement.condition)
            if condition is not None:
                return arms[0 if condition else 1]
            works = [arm for arm in arms if arm is not None]
            return max(works, key=lambda work: work.bytes + work.flops) if len(works) == 2 else None
        case While():
            return None
        case Assign():
            _assign(known, statement.symbol, _value(known, statement.value))
            return _straight(statement)
        case _:
            return _straight(statement)


def _straight(statement: Node) -> _Work:
    """Return the work of a statement without blocks of its own."""
    size = flops = 0
    for node in walk(statement):
        match node:
            case Load():
                size += node.tensor.type.dtype.size
            case Store():
                size += node.tensor.type.dtype.size * (1 if node.combine is None else 2)
            case Apply() if node.dtype.is_float:
                flops += 1
            case _:
                pass
    return _Work(size, flops)


def _value(known: _Known, expression: Expression) -> Number | None:
    """Return an expression over sizes and known variables."""
    match expression:
        case Constant():
            return expression.value
        case Read():
            return known.values.get(expression.symbol)
        case Size():
            return known.sizes.get((expression.tensor, expression.axis))
        case Cast():
            inner = _value(known, expression.operand)
            return None if inner is None else cast(inner, expression.dtype)
        case Select():
            condition = _value(known, expression.condition)
            return None if condition is None else _value(known, expression.then if condition else expression.otherwise)
        case Apply():
            operands = [_value(known, operand) for operand in expression.operands]
            numbers = [operand for operand in operands if operand is not None]
            if len(numbers) < len(operands):
                return None
            with suppress(ArithmeticError):
                return evaluate(expression.operator, numbers, expression.operands[0].dtype)
            return None
        case _:
            return None


def launch_table(found: Sequence[LaunchFigures]) -> list[tuple[str, ...]]:
    """Return the launches as lines of a table, with its header."""
    lines: list[tuple[str, ...]] = [("launch", "blocks", "threads", "bytes", "flops")]
    for each in found:
        numbers = (each.blocks, each.threads, each.bytes, each.flops)
        lines.append((each.kernel, *("-" if number is None else str(number) for number in numbers)))
    return lines
