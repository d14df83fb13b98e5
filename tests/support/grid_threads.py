"""The threads of a block without a GPU: they take turns on stacks of their own in one thread of this process.

Each runs until it asks for what others have a part in, a barrier or what lanes exchange, and goes on once all have
asked. LLVM makes the code that changes stacks: no frame of Python's is on them.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from brickwork.codegen.llvm import translate_module
from brickwork.runtime.loader import load
from brickwork.target.cpu import host_target

Pair = tuple[int, int]

_REGISTERS = ("tid_x", "tid_y", "ntid_x", "ntid_y", "ctaid_x", "ctaid_y", "nctaid_x", "nctaid_y", "lane")
_FIRST = ("kind", "mask", "value", "lane_from", "answer", "ended", "own", "kernel", "parameters")
_WORDS = {name: place for place, name in enumerate((*_FIRST, *_REGISTERS))}
_KIND, _MASK, _VALUE, _FROM, _ANSWER, _ENDED = range(6)
_SIZE = len(_WORDS)
_BARRIER, _WARP, _DOWN, _IDX, _BFLY, _EQUAL, _VOTES, _ACTIVE = range(8)
_MOST = 1024
"""Threads of a block."""
_ROOM = 256 * 1024
"""Bytes of a thread: its context and its stack."""
_CONTEXT = 8192
"""Bytes that hold a context on any processor; its stack's address and size stand in the words 2 and 4."""
_SOURCES: dict[int, Callable[[int, int], int]] = {
    _DOWN: lambda here, lane: here + lane,
    _IDX: lambda here, lane: here // 32 * 32 + lane,
    _BFLY: lambda here, lane: here ^ lane,
}


def _asks() -> str:
    """Return the functions that kernels call, which ask, and those that read where a thread stands."""
    words = [("barrier", "void", _BARRIER, ("i32",)), ("warp_barrier", "void", _WARP, ("i32",))]
    words += [(f"shuffle_{name}", "i32", kind, ("i32",) * 4) for name, kind in (("down", 2), ("idx", 3), ("bfly", 4))]
    words += [("equal", "i32", _EQUAL, ("i64",)), ("votes", "i32", _VOTES, ("i32",)), ("active", "i32", _ACTIVE, ())]
    text = ""
    for name, result, kind, types in words:
        given = [f"%w{place}" for place in range(len(types))]
        wide = [f"  %w{place} = sext i32 %a{place} to i64" for place, each in enumerate(types) if each == "i32"]
        wide += [f"  %w{place} = add i64 %a{place}, 0" for place, each in enumerate(types) if each == "i64"]
        given = ["-1", *given] if kind in {_EQUAL, _VOTES, _BARRIER} else given
        parameters = ", ".join(f"{each} %a{place}" for place, each in enumerate(types))
        asked = ", ".join(f"i64 {each}" for each in [str(kind), *given, *["0"] * 3][:4])
        end = "  %r = trunc i64 %found to i32\n  ret i32 %r" if result == "i32" else "  ret void"
        body = "\n".join([*wide, f"  %found = call i64 @ask({asked})", end])
        text += f"define {result} @emulated_{name}({parameters}) {{\n{body}\n}}\n"
    for name in _REGISTERS:
        function = "emulated_lane" if name == "lane" else f"emulated_sreg_{name}"
        bits = "  %r = urem i64 %v, 32\n" if name == "lane" else "  %r = add i64 %v, 0\n"
        text += f"define i32 @{function}() {{\n  %slot = load ptr, ptr @current\n{_at('v', name)}"
        text += f"{bits}  %word = trunc i64 %r to i32\n  ret i32 %word\n}}\n"
    return text


def _place(result: str, name: str) -> str:
    return f"  %{result} = getelementptr i64, ptr %slot, i64 {_WORDS[name]}\n"


def _at(result: str, name: str, kind: str = "i64") -> str:
    return f"{_place(f'{result}.at', name)}  %{result} = load {kind}, ptr %{result}.at\n"


def _put(name: str, value: str) -> str:
    return f"{_place(f'{name}.put', name)}  store i64 {value}, ptr %{name}.put\n"


def _code() -> str:
    return f"""
@current = internal global ptr null
@home = internal global [{_CONTEXT} x i8] zeroinitializer, align 64
declare i32 @getcontext(ptr)
declare void @makecontext(ptr, ptr, i32, ...)
declare i32 @swapcontext(ptr, ptr)
define i64 @ask(i64 %kind, i64 %mask, i64 %value, i64 %lane) {{
  %slot = load ptr, ptr @current
{_put("kind", "%kind")}{_put("mask", "%mask")}{_put("value", "%value")}{_put("lane_from", "%lane")}
{_at("own", "own", "ptr")}
  call i32 @swapcontext(ptr %own, ptr @home)
{_at("answer", "answer")}
  ret i64 %answer
}}
define void @begin() {{
  %slot = load ptr, ptr @current
{_at("kernel", "kernel", "ptr")}{_at("parameters", "parameters", "ptr")}
  call void %kernel(ptr %parameters)
{_put("ended", "1")}{_at("own", "own", "ptr")}
  call i32 @swapcontext(ptr %own, ptr @home)
  ret void
}}
define void @prepare(ptr %slot, ptr %stack, i64 %bytes) {{
{_at("own", "own", "ptr")}
  call i32 @getcontext(ptr %own)
  %base = getelementptr i64, ptr %own, i64 2
  store ptr %stack, ptr %base
  %size = getelementptr i64, ptr %own, i64 4
  store i64 %bytes, ptr %size
  call void (ptr, ptr, i32, ...) @makecontext(ptr %own, ptr @begin, i32 0)
  ret void
}}
define void @resume(ptr %slot) {{
  store ptr %slot, ptr @current
{_at("own", "own", "ptr")}
  call i32 @swapcontext(ptr @home, ptr %own)
  ret void
}}
define void @straight(ptr %slot, i64 %row, i64 %size) {{
entry:
  store ptr %slot, ptr @current
{_at("kernel", "kernel", "ptr")}{_at("parameters", "parameters", "ptr")}
  br label %loop
loop:
  %thread = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = urem i64 %thread, %row
  %y = udiv i64 %thread, %row
{_put("tid_x", "%x")}{_put("tid_y", "%y")}{_put("lane", "%thread")}
  call void %kernel(ptr %parameters)
  %next = add i64 %thread, 1
  %more = icmp ult i64 %next, %size
  br i1 %more, label %loop, label %end
end:
  ret void
}}
{_asks()}"""


@dataclass(frozen=True)
class _Machine:
    """The code, and the memory of the threads of one block."""

    addresses: dict[str, int]
    prepare: Any
    resume: Any
    straight: Any
    slots: Any
    room: Any


@cache
def _machine() -> _Machine:
    made = load(translate_module(_code(), host_target(16)), {})
    names = ("barrier", "warp_barrier", "shuffle_down", "shuffle_idx", "shuffle_bfly", "equal", "votes", "active")
    names += ("lane", *(f"sreg_{name}" for name in _REGISTERS[:-1]))
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    return _Machine(
        {f"emulated_{name}": made.address(f"emulated_{name}") for name in names},
        ctypes.PYFUNCTYPE(None, pointer, pointer, number)(made.address("prepare")),
        ctypes.PYFUNCTYPE(None, pointer)(made.address("resume")),
        ctypes.PYFUNCTYPE(None, pointer, number, number)(made.address("straight")),
        (ctypes.c_int64 * (_SIZE * _MOST))(),
        mmap.mmap(-1, _ROOM * _MOST),
    )


def answers() -> dict[str, int]:
    """Return the addresses of what kernels call, by name."""
    return _machine().addresses


def run_straight(kernel: int, parameters: int, at: Pair, grid: Pair, block: Pair) -> None:
    """Run the threads of a block one after another, which ask nothing of one another."""
    machine = _machine()
    words = [0] * 7 + [kernel, parameters, 0, 0, *block, *at, *grid, 0]
    machine.slots[:_SIZE] = words
    machine.straight(ctypes.addressof(machine.slots), block[0], math.prod(block))


@dataclass
class Block:
    """The threads of a block that runs: who is left, and who waits for whom."""

    kernel: int
    parameters: int
    at: Pair
    grid: Pair
    block: Pair
    together: Callable[[], bool]
    """Whether all threads of a warp are together where one asks."""
    order: random.Random = field(default_factory=lambda: random.Random(0))
    """Who goes on first among threads of which none waits for another."""
    left: dict[int, int] = field(default_factory=dict[int, int])
    """The lanes of each warp that have not ended, as a mask."""
    waiting: defaultdict[tuple[int, int, int], list[int]] = field(
        default_factory=lambda: defaultdict[tuple[int, int, int], list[int]](list)
    )
    """The threads that ask for the same: its kind, their warp, and the mask of those that have a part in it."""

    def run(self) -> None:
        """Run all threads to their ends."""
        machine, (row, _) = _machine(), self.block
        slots, first = machine.slots, ctypes.addressof(machine.slots)
        room = ctypes.addressof(ctypes.c_char.from_buffer(machine.room))
        ready = list(range(math.prod(self.block)))
        for thread in ready:
            own = room + thread * _ROOM
            places = [thread % row, thread // row, *self.block, *self.at, *self.grid, thread]
            slots[thread * _SIZE : (thread + 1) * _SIZE] = [0] * 6 + [own, self.kernel, self.parameters, *places]
            machine.prepare(first + thread * _SIZE * 8, own + _CONTEXT, _ROOM - _CONTEXT)
            self.left[thread // 32] = self.left.get(thread // 32, 0) | 1 << thread % 32
        self.order.shuffle(ready)
        while ready:
            thread = ready.pop()
            machine.resume(first + thread * _SIZE * 8)
            if slots[thread * _SIZE + _ENDED]:
                self.left[thread // 32] &= ~(1 << thread % 32)
                for key in [key for key in self.waiting if key[1] in {-1, thread // 32}]:
                    ready += self._met(key)
            else:
                ready += self._asked(thread)
        assert not any(self.left.values()), "all threads of a block meet at its barriers"

    def _asked(self, thread: int) -> list[int]:
        """Note what a thread asks for; return those that have what they asked for by it."""
        slots, at = _machine().slots, thread * _SIZE
        kind, mask = slots[at + _KIND], slots[at + _MASK] & 0xFFFFFFFF
        if kind == _ACTIVE:
            slots[at + _ANSWER] = -1 if self.together() else 0
            return [thread]
        if kind == _BARRIER:
            assert slots[at + _VALUE] == 0
            assert self.block[1] == 1, "warps with iterations of their own do not meet"
            key = (kind, -1, mask)
        else:
            assert mask >> thread % 32 & 1, "a thread is one of those that it names"
            key = (kind, thread // 32, mask)
        self.waiting[key].append(thread)
        return self._met(key)

    def _met(self, key: tuple[int, int, int]) -> list[int]:
        """Return the threads that waited for one another, with their answers, if all are there that are left."""
        kind, warp, mask = key
        threads = self.waiting[key]
        wanted = (
            sum(map(int.bit_count, self.left.values())) if kind == _BARRIER else (self.left[warp] & mask).bit_count()
        )
        if not threads or len(threads) < wanted:
            return []
        del self.waiting[key]
        slots = _machine().slots
        values = {thread: slots[thread * _SIZE + _VALUE] for thread in threads}
        for thread, value in values.items():
            if kind in _SOURCES:
                source = _SOURCES[kind](thread, slots[thread * _SIZE + _FROM])
                value = values.get(source, value)
            elif kind == _EQUAL:
                value = len(set(values.values())) == 1
            elif kind == _VOTES:
                value = sum(1 << other % 32 for other, given in values.items() if given)
            slots[thread * _SIZE + _ANSWER] = value
        return threads
