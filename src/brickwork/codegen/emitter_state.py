"""Where an emitter stands: the function being written, the lanes and their mask, and what the variables are worth.

Emitters are functions that take the state. A region (kernel, parallel body, vector loop, branch) gets a copy of its
parent's state with its own values, so that nothing defined in a region is seen after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from brickwork.codegen.builder import FunctionWriter, Module
from brickwork.codegen.convention import ContextLayout
from brickwork.codegen.lane_values import Uniform, Value
from brickwork.codegen.line_information import KernelLines
from brickwork.ir.dtypes import INT64, DType
from brickwork.ir.nodes import Block, For, Kernel, Load, Symbol, Tensor
from brickwork.records import dataclass
from brickwork.target.target import Target


@dataclass(frozen=True, slots=True)
class Slot:
    """Stack memory of a variable that is assigned more than once: one scalar, or a vector of lanes.

    A `reduction` outlives the iteration: masked lanes of a last vector leave it alone.
    """

    address: str
    dtype: DType
    varying: bool
    reduction: bool = False


@dataclass(frozen=True, slots=True)
class Array:
    """Memory of a local: of `width` lanes, each of which has its own, or one for all; `pointer` is its type."""

    address: str
    width: int
    pointer: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The loop that `break` and `continue` refer to.

    `outside` is the mask with which the body begins. `broken` and `skipped` are the addresses of masks: the lanes that
    have left the loop, and those that have ended this iteration; None where no such statement stands under a mask.
    """

    break_label: str
    continue_label: str
    outside: str | None
    broken: str | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class FailurePath:
    """Where threads of a device kernel go when a check fails: a block, and slots for what it records."""

    label: str
    order: str
    site: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Team:
    """The threads that run an iteration together: those of a block, of a warp, or of a part of one.

    `thread` is the number of this one and `size` that of all, as i64, `most` how many they are at most. `warp` is
    whether they are of one warp, as i1; then they are a power of two, `first` is the lane of the first one and `mask`
    has a bit for the lane of each, as i32. `alone` says that this code is run for an iteration of a THREAD loop, and so
    not by all threads with the same values. `repeated` says that it may run again. `blocks` are those of a cluster that
    are one team, as i64.
    """

    thread: str
    size: str
    warp: str
    most: int
    first: str = "0"
    mask: str = "-1"
    alone: bool = False
    repeated: bool = False
    blocks: str = "1"


@dataclass(frozen=True, slots=True)
class StagedRow:
    """What a thread has of a tensor in shared memory: neighbours in a row, which the first `axes` indices say.

    `address` is where they lie, and `first` how many elements of the row are before them, as i64.
    """

    address: str
    axes: int
    first: str


@dataclass(frozen=True, slots=True)
class State:
    """The place of emission; `mask` is None where all lanes are active.

    `tail` is the number of active lanes (i64) where the mask is that of a last, incomplete vector and nothing else.
    `divergent` says that lanes which take part in this iteration may be masked out here.
    """

    module: Module
    target: Target
    kernel: Kernel
    layout: ContextLayout
    writer: FunctionWriter
    context: str
    order: str
    width: int = 1
    mask: str | None = None
    tail: str | None = None
    divergent: bool = False
    values: dict[Symbol, Value] = field(default_factory=dict[Symbol, Value])
    slots: dict[Symbol, Slot] = field(default_factory=dict[Symbol, Slot])
    arrays: dict[Tensor, Array] = field(default_factory=dict[Tensor, Array])
    """Locals that are known here."""
    stored: frozenset[Tensor] = frozenset()
    """Tensors that a device kernel stores into."""
    crossed: frozenset[Tensor] = frozenset()
    """Those of which what it stores at one place may be loaded or stored at another."""
    reserved: dict[tuple[Tensor, int], str] = field(default_factory=dict[tuple[Tensor, int], str])
    """Stack memory of this function's locals, by their lanes."""
    bound: frozenset[Symbol] = frozenset()
    """Variables with one assignment that dominates all reads: values, without memory."""
    varying: frozenset[Symbol | Tensor] = frozenset()
    """Variables and locals that may differ between lanes."""
    frame: Frame | None = None
    parallel: bool = False
    """Whether this code runs on torch's threads, or on those of a grid, already."""
    failure: FailurePath | None = None
    """For device kernels."""
    lines: KernelLines | None = None
    """For device kernels whose lines are noted."""
    neighbours: frozenset[Symbol | Tensor] | None = None
    """Variables and locals that may differ between neighbouring threads, whose iterations of a loop are neighbours."""
    beside: Symbol | None = None
    """The index of the loop whose neighbouring iterations are for neighbouring threads."""
    apart: bool = False
    """Whether threads of a warp may have taken different ways here, in a loop where they meet again."""
    team: Team | None = None
    read: Mapping[Load, tuple[str, ...]] = field(default_factory=dict[Load, tuple[str, ...]])
    """Elements that lanes read in this iteration and that are in registers (`windows.py`)."""
    rows: Mapping[Tensor, StagedRow] = field(default_factory=dict[Tensor, StagedRow])
    """What is accessed in shared memory here (`staged_rows.py`)."""
    row_bytes: int = 0
    """Bytes of shared memory that the rows of a warp take here."""
    shared: dict[str, int] = field(default_factory=dict[str, int])
    """Shared memory of this kernel, with its bytes."""
    moving: Mapping[int, str] = field(default_factory=dict[int, str])
    """Where the function that exchanges tensors keeps the slots of the context that change with that."""

    @property
    def pointer(self) -> str:
        """Return the LLVM type of an address in a tensor."""
        return "ptr addrspace(1)" if self.target.grid else "ptr"

    def inner(self) -> State:
        """Return a state for a region of its own."""
        return replace(self, values=dict(self.values), slots=dict(self.slots), arrays=dict(self.arrays))

    def at(self, loop: For, place: str) -> State:
        """Return a state for an iteration of a loop."""
        inner = self.inner()
        inner.values[loop.index] = Uniform(place, INT64)
        return inner

    def under(self, mask: str | None) -> State:
        """Return a state for a region in which only lanes of `mask` are active."""
        return replace(self.inner(), mask=mask, tail=None, divergent=mask is not None)

    def slot_value(self, index: int, kind: str = "i64") -> str:
        """Return a slot of the kernel's context; read once a function. A device kernel has it as a parameter."""
        if self.target.grid:
            return f"%{parameter(index)}"
        if index in self.moving:
            return self.writer.load(kind, self.moving[index])
        note = "" if index in self.layout.moving() else f", !invariant.load {empty_metadata(self.module)}"
        return self.writer.once(f"load {kind}, ptr {self.slot_address(index)}{note}")

    def slot_address(self, index: int) -> str:
        """Return the address of a slot of the context."""
        if not index:
            return self.context
        return self.writer.once(f"getelementptr inbounds i64, ptr {self.context}, i64 {index}")


EmitBlock: TypeAlias = Callable[[State, Block], None]
"""Emits statements: what emitters of loops are handed."""


def parameter(index: int) -> str:
    """Return the name of a device kernel's parameter for a slot of the context."""
    return f"slot{index}"


def is_parameter(text: str) -> bool:
    """Return whether a value is what a slot of a device kernel's context holds."""
    return text.startswith("%slot") and text[5:].isdigit()


def empty_metadata(module: Module) -> str:
    """Return the name of the empty metadata node."""
    return module.metadata("!{}")


def full_unroll(module: Module) -> str:
    """Return the note of a loop's last branch that all its iterations are to be written out."""
    return _unroll(module, "full")


def no_unroll(module: Module) -> str:
    """Return the note of a loop's last branch that none of its iterations are to be written out."""
    return _unroll(module, "disable")


def _unroll(module: Module, how: str) -> str:
    wish = module.metadata(f'!{{!"llvm.loop.unroll.{how}"}}')
    name = module.fresh_node()
    module.globals[name] = f"{name} = distinct !{{{name}, {wish}}}"
    return f", !llvm.loop {name}"


def unlikely(module: Module) -> str:
    """Return the note of a branch that hardly ever takes its first target."""
    name = module.metadata('!{!"branch_weights", i32 1, i32 1000000}')
    return f", !prof {name}"
