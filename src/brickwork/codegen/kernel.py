"""A scheduled kernel as an LLVM function `void @name(ptr %context)`; the context is laid out in `convention.py`."""

from __future__ import annotations

from dataclasses import replace

from brickwork.codegen import rebind
from brickwork.codegen.attributes import attributes
from brickwork.codegen.builder import FunctionWriter, Module
from brickwork.codegen.convention import context_layout
from brickwork.codegen.emitter_state import Slot, State
from brickwork.codegen.lane_values import scalar_type
from brickwork.codegen.statements import emit_block
from brickwork.codegen.variables import bound_symbols
from brickwork.ir.nodes import Assign, For, Kernel
from brickwork.ir.walk import statements
from brickwork.target.target import Target


def emit_kernel(module: Module, kernel: Kernel, target: Target) -> str:
    """Add the function of a kernel, and those that it needs, to the module; return its name with the sigil."""
    name = module.fresh(f"{kernel.name}.kernel")
    # Not inlined: loads of the context are marked invariant, which they are only after the caller has filled it.
    header = f"noinline {attributes(target)}"
    writer = FunctionWriter(module, name, "void", (("ptr", "context"),), header)
    state = State(
        module=module,
        target=target,
        kernel=kernel,
        layout=context_layout(kernel),
        writer=writer,
        context="%context",
        order="0",
        bound=bound_symbols(kernel.body),
    )
    assigned = {node.symbol for node in statements(kernel.body) if isinstance(node, Assign)}
    assigned |= {item.symbol for node in statements(kernel.body) if isinstance(node, For) for item in node.reductions}
    for symbol in sorted(assigned - state.bound, key=lambda symbol: symbol.number):
        state.slots[symbol] = Slot(writer.alloca(scalar_type(symbol.dtype)), symbol.dtype, varying=False)
    if not target.grid:
        state = replace(state, moving=rebind.keep_slots(state))
    emit_block(state, kernel.body)
    writer.terminate("ret void")
    writer.close()
    return f"@{name}"
