"""The boxed entry of a specialisation: `void @entry(ptr %stack, i64 %inputs, i64 %outputs)`, called by the dispatcher.

It tests whether the arguments are of its specialisation (else it jumps to the next entry), runs the host program, and
leaves the results on the stack. It owns the handles on the stack once it has matched. See docs/internals/native-abi.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from brickwork.codegen.builder import FailureSite, Module
from brickwork.ir.nodes import Program
from brickwork.target.target import Target

ENTRY = "entry"
"""The name of the function that `emit_entry` writes."""


@dataclass(frozen=True, slots=True)
class EntryDescription:
    """What Python needs of an emitted entry: pickled into the cache beside the object."""

    operator: str
    """`Program.name`, for messages."""
    symbol: str
    """The entry function's name in the object: `ENTRY`."""
    failures: tuple[FailureSite, ...]
    """What each number in `RECORD_SITE` means: a copy of `Module.failures`."""


def emit_entry(module: Module, program: Program, kernels: Mapping[str, str], target: Target) -> EntryDescription:
    """Write the entry of `program` into `module`, after its kernels; `kernels` maps Kernel.name to the function.

    The stack holds the parameters in order, then, for an out variant, one tensor for each `given` allocation in the
    order of `Return`. Results that are the caller's tensors are returned only if the schema has outputs.
    """
    raise NotImplementedError((module, program, kernels, target, EntryDescription))
