"""A device kernel as a PTX kernel `@name`, with one 8-byte parameter for each slot of its context.

Threads find their step of the grid (`thread_iterations.py`) and run its iterations by the emitter that the CPU's
kernels use; blocks that share an iteration are written in `work_sharing.py`. Invariant: a thread touches memory for
iterations of its step alone.
"""

from __future__ import annotations

from dataclasses import replace

from brickwork.codegen import staged_rows, wide_loads
from brickwork.codegen.builder import ANYTHING, Known, Module
from brickwork.codegen.convention import ContextLayout, context_layout
from brickwork.codegen.emitter_state import Frame, Slot, State, parameter
from brickwork.codegen.failures import begin_failure_path, emit_failure_path, weights
from brickwork.codegen.grid import Form, Grid, grid_of
from brickwork.codegen.lane_values import Uniform, scalar_type
from brickwork.codegen.line_information import kernel_lines
from brickwork.codegen.narrowing import NarrowingWriter
from brickwork.codegen.statements import emit_block
from brickwork.codegen.teams import team_of_grid
from brickwork.codegen.thread_iterations import (
    begin_step,
    block_number,
    loop_stop,
    one_by_one,
    step_number,
    table_steps,
)
from brickwork.codegen.tile_cluster import nest_number
from brickwork.codegen.variables import bound_symbols, varying_symbols
from brickwork.codegen.vectors import emit_lanes, lane_state
from brickwork.codegen.work_sharing import crossed_tensors
from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.ir.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Assign, Constant, Expression, For, Kernel, Read, Size, Store, Tensor
from brickwork.ir.signature import ALIGNMENT, NARROW_EXTENT, NARROW_SIZE
from brickwork.ir.walk import statements
from brickwork.legality import legality
from brickwork.target.target import Target
from brickwork.transform.schedule.planner import trip_count

_SIZE = Known(0, 2**48 - 1)
"""More elements than a memory has."""
_NARROW_SIZE = Known(0, NARROW_SIZE - 1)
_NARROW_EXTENT = Known(0, NARROW_EXTENT - 1)
_NARROW_SCALAR = Known(-NARROW_SIZE, NARROW_SIZE)


def device_name(kernel: Kernel) -> str:
    """Return the name that a device kernel has in a module of its own."""
    return f"{kernel.name}_kernel_1"


def shared_bytes(kernel: Kernel) -> int:
    """Return how many bytes of shared memory a launch of a device kernel gives each block."""
    tile = grid_of(kernel).tile
    return 0 if tile is None else tile.shared_bytes


def emit_device_kernel(module: Module, kernel: Kernel, target: Target) -> str:
    """Add a device kernel to the module; return its name."""
    name, grid = module.fresh(f"{kernel.name}.kernel").replace(".", "_"), grid_of(kernel)
    layout = context_layout(kernel, device=True)
    header = f'nounwind "nvvm.maxntid"="{grid.threads}"'
    if grid.least_blocks > 1:
        header += f' "nvvm.minctasm"="{grid.least_blocks}"'
    if grid.tile is not None:
        # All that a thread can have: shared memory leaves no room for the third block that ptxas spills for.
        header += "" if grid.least_blocks > 1 else f' "nvvm.maxnreg"="{grid.tile.registers}"'
    lines = kernel_lines(module, name, _place(kernel)) if module.lines else None
    if lines is not None:
        header += f" {lines.header}"
    writer = NarrowingWriter(module, name, "ptx_kernel void", _parameters(kernel, layout, grid), header)
    writer.note = "" if lines is None else lines.note(_place(kernel))
    state = State(
        module=module,
        target=target,
        kernel=kernel,
        layout=layout,
        writer=writer,
        context="",
        order="0",
        bound=bound_symbols(kernel.body),
        stored=effects(kernel.body).stores,
        crossed=crossed_tensors(kernel),
        parallel=True,
        failure=begin_failure_path(writer),
        lines=lines,
    )
    _learn(state)
    match grid.form:
        case Form.SERIAL:
            _declare(state, grid)
            emit_block(state, grid.body)
        case Form.PARALLEL:
            _emit_parallel(state, grid)
        case Form.BLOCK:
            _emit_team(state, grid)
    writer.terminate("ret void")
    for rows, size in state.shared.items():
        module.globals[rows] = f"@{rows} = internal addrspace(3) global [{size} x i8] poison, align {ALIGNMENT}"
    if state.failure is not None:
        emit_failure_path(state, state.failure)
    writer.close()
    return name


def _place(kernel: Kernel) -> Location:
    """Return the first place in the user's source that a kernel was made of."""
    return next((node.loc for node in statements(kernel.body) if node.loc is not NOWHERE), NOWHERE)


def _parameters(kernel: Kernel, layout: ContextLayout, grid: Grid) -> tuple[tuple[str, str], ...]:
    """Return the types and names of the parameters, by slot."""
    kinds = ["i64"] * layout.length
    kinds[layout.record] = "ptr noalias"
    written = {node.tensor for node in statements(kernel.body) if isinstance(node, Store)}
    loaded, block = effects(kernel.body).loads, grid.form is Form.BLOCK
    narrow = {item for item in kernel.narrow if isinstance(item, Tensor)}
    for tensor, slots in layout.tensors.items():
        shared = block or (grid.form is Form.PARALLEL and tensor in loaded)
        kinds[slots.data] = _pointer(kernel, tensor, stored=tensor in written, shared=shared)
        # Strides have no range: where a size is 1 they may be anything.
        for slot in slots.sizes:
            kinds[slot] = _ranged(_NARROW_SIZE if tensor in narrow else _SIZE)
    for symbol, slot in layout.scalars.items():
        if symbol.dtype is FLOAT64:
            kinds[slot] = "double"
        elif symbol in kernel.narrow:
            kinds[slot] = _ranged(_NARROW_SCALAR)
    return tuple((kind, parameter(slot)) for slot, kind in enumerate(kinds))


def _pointer(kernel: Kernel, tensor: Tensor, *, stored: bool, shared: bool) -> str:
    """Return the type of a tensor's data.

    What threads of a block or of a warp store and others load after a barrier is not `noalias`: that would let LLVM
    keep values across the barrier.
    """
    text = "ptr addrspace(1)"
    if not kernel.may_alias and not (stored and shared):
        text += " noalias"
    if not stored:
        text += " readonly"
    if tensor in kernel.aligned:
        text += f" align {ALIGNMENT}"
    return text


def _ranged(known: Known) -> str:
    if known == ANYTHING:
        return "i64"
    return f"i64 range(i64 {known.low}, {known.high + 1})"


def _learn(state: State) -> None:
    """Tell the writer what the parameters are known to be, and what the facts say of divisors."""
    kernel, writer, layout = state.kernel, state.writer, state.layout
    for tensor, slots in layout.tensors.items():
        narrow = tensor in kernel.narrow
        for slot in slots.sizes:
            writer.learn(state.slot_value(slot), _NARROW_SIZE if narrow else _SIZE)
    for symbol, slot in layout.scalars.items():
        if symbol in kernel.narrow and symbol.dtype not in {BOOL, FLOAT32, FLOAT64}:
            writer.learn(state.slot_value(slot), _NARROW_SCALAR)
    for fact in kernel.facts:
        if (divided := _divided(fact)) is not None:
            number, divisor = divided
            if (text := _slot(state, number)) is not None:
                writer.learn(text, Known(multiple=divisor & -divisor))
        if (limited := _limited(fact)) is not None and (text := _slot(state, limited[0])) is not None:
            writer.learn(text, limited[1])
    # What is known of one size is known of those that equal it, and then of those that equal these.
    for fact in (*kernel.facts, *kernel.facts):
        if isinstance(fact, Apply) and fact.operator.name == "eq":
            texts = [text for operand in fact.operands if (text := _slot(state, operand)) is not None]
            if len(texts) == 2:
                both = Known(multiple=max(writer.known(text).multiple for text in texts))
                for text in texts:
                    writer.learn(text, both)


def _divided(fact: Expression) -> tuple[Expression, int] | None:
    """Return x and c of the fact x % c == 0."""
    match fact:
        case Apply(
            operator=equal,
            operands=(Apply(operator=modulo, operands=(number, Constant(value=divisor))), Constant(value=0)),
        ) if equal.name == "eq" and modulo.name == "mod" and divisor > 0:
            return number, int(divisor)
        case _:
            return None


@legality
def _limited(fact: Expression) -> tuple[Expression, Known] | None:
    """Return an integer and what a fact says it is not below, if it says so."""
    match fact:
        case Apply(operator=operator, operands=(number, Constant(value=int(value), dtype=dtype))) if dtype is INT64:
            limits = {"ge": Known(low=value), "gt": Known(low=value + 1)}
            return (number, limits[operator.name]) if operator.name in limits else None
        case _:
            return None


def _slot(state: State, expression: Expression) -> str | None:
    """Return the parameter that an expression is, if it is one."""
    match expression:
        case Size():
            return state.slot_value(state.layout.tensors[expression.tensor].sizes[expression.axis])
        case Read() if expression.symbol in state.layout.scalars:
            return state.slot_value(state.layout.scalars[expression.symbol])
        case _:
            return None


def _emit_parallel(state: State, grid: Grid) -> None:
    _declare(state, grid)
    if grid.width == 1 and not grid.loops[-1].across:
        innermost = next((loop for loop in reversed(grid.loops) if trip_count(loop) != 1), grid.loops[-1])
        state = replace(state, neighbours=varying_symbols(innermost), beside=innermost.index)
    if grid.table:
        with table_steps(state, grid) as inner:
            _emit_step(inner, grid)
        return
    _emit_step(begin_step(state, grid, step_number(state, grid)), grid)


def _emit_step(state: State, grid: Grid) -> None:
    """Emit the iterations of a step: one, or the innermost loop's lanes, of which the last step may have fewer."""
    writer = state.writer
    if grid.width == 1:
        _emit_iteration(state, grid)
        return
    loop, width = grid.loops[-1], grid.width
    first = _text(state, loop)
    stop = loop_stop(state, loop)
    beyond = writer.emit(f"add i64 {first}, {width}")
    if writer.known(first).multiple % width == 0 and writer.known(stop).multiple % width == 0:
        _emit_lanes(state, loop, first)
        return
    whole, tail, over = writer.label("whole"), writer.label("tail"), writer.label("over")
    writer.branch_if(writer.emit(f"icmp sle i64 {beyond}, {stop}"), whole, tail, weights(state))
    writer.place(whole)
    _emit_lanes(state, loop, first)
    writer.branch(over)
    writer.place(tail)
    known = Known(writer.known(first).low, writer.known(stop).high)
    one_by_one(state, loop, (first, stop), known, emit_block)
    writer.place(over)


def _emit_team(state: State, grid: Grid) -> None:
    writer = state.writer
    _declare(state, grid)
    team, row, rows = team_of_grid(state, grid)
    number = block_number(state) if grid.tile is None and grid.cluster == 1 else nest_number(state)
    first = writer.emit(f"mul i64 {number}, {rows}")
    inner = begin_step(state, grid, writer.emit(f"add i64 {first}, {row}"))
    _emit_iteration(replace(inner, team=team), grid)


def _text(state: State, loop: For) -> str:
    value = state.values[loop.index]
    return value.text if isinstance(value, Uniform) else ""


def _emit_lanes(state: State, loop: For, first: str) -> None:
    """Emit `width` iterations of a loop as lanes."""
    inner = lane_state(state, loop)
    after = inner.writer.label("next")
    with state.writer.apart(loop_stop(state, loop), first, loop.width):
        emit_lanes(inner, loop, first, after, emit_block)
    inner.writer.place(after)


def _emit_iteration(state: State, grid: Grid) -> None:
    """Emit an iteration, with short rows in shared memory, or read in chunks, where sizes say that they can be."""
    writer = state.writer
    after = writer.label("next")
    inner = replace(state, frame=Frame(after, after, None))
    if found := staged_rows.staged_records(state, grid.body):
        together, alone = writer.label("together"), writer.label("alone")
        staged_rows.branch_if_together(state, found, together, alone)
        writer.place(together)
        with staged_rows.records_staged(inner, found) as staged:
            emit_block(staged, grid.body)
        writer.branch(after)
        writer.place(alone)
    if rows := wide_loads.records(state, grid.body):
        whole, other = writer.label("whole"), writer.label("other")
        writer.branch_if(wide_loads.are_whole(state, rows), whole, other)
        writer.place(whole)
        with wide_loads.read_whole(state, rows):
            emit_block(inner.inner(), grid.body)
        writer.branch(after)
        writer.place(other)
    emit_block(inner, grid.body)
    writer.place(after)


def _declare(state: State, grid: Grid) -> None:
    """Give memory to the variables that need it."""
    assigned = {node.symbol for node in statements(grid.body) if isinstance(node, Assign)}
    assigned |= {item.symbol for node in statements(grid.body) if isinstance(node, For) for item in node.reductions}
    for symbol in sorted(assigned - state.bound, key=lambda symbol: symbol.number):
        state.slots[symbol] = Slot(state.writer.alloca(scalar_type(symbol.dtype)), symbol.dtype, varying=False)
