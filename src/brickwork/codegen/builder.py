"""A small writer of LLVM assembly: modules, functions, blocks and fresh names.

It knows nothing of brickwork's IR. Values are strings (`%12`, `i64 0` without the type); types are LLVM's spelling.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.diagnostics.location import Location
from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import Failure
from brickwork.records import dataclass

_ARITHMETIC = ("fadd ", "fsub ", "fmul ", "fdiv ", "frem ", "fneg ")
_FAST = "reassoc nsz arcp afn"
_PLAIN = frozenset(range(0x20, 0x7F)).difference(b'"\\')
"""Bytes that stand for themselves in a constant."""


@dataclass(frozen=True, slots=True)
class Known:
    """What holds of an i64: its bounds, inclusive, and a power of two that divides it."""

    low: int = -(2**63)
    high: int = 2**63 - 1
    multiple: int = 1


ANYTHING = Known()


@dataclass(frozen=True, slots=True)
class FailureSite:
    """A check in the emitted code: what it raises, the types of the values that it records, and its place."""

    failure: Failure
    values: tuple[DType, ...]
    loc: Location


@dataclass(slots=True)
class Module:
    """An LLVM module under construction: declarations, globals, function texts and failure sites."""

    declarations: dict[str, str] = field(default_factory=dict[str, str])
    globals: dict[str, str] = field(default_factory=dict[str, str])
    functions: list[str] = field(default_factory=list[str])
    failures: list[FailureSite] = field(default_factory=list[FailureSite])
    rounding: Rounding = SOURCE
    lines: bool = False
    """Whether device kernels say which lines they were made of."""
    _names: int = 0
    _shared: dict[str, str] = field(default_factory=dict[str, str])
    """The names of strings and of metadata nodes, by their text."""
    _nodes: int = 0

    def declare(self, name: str, result: str, parameters: Sequence[str], attributes: str = "") -> str:
        """Declare an external function once; return its name with the sigil."""
        self.declarations[name] = f"declare {result} @{name}({', '.join(parameters)}) {attributes}".rstrip()
        return f"@{name}"

    def string(self, text: str) -> str:
        """Add a zero-terminated constant; return its name with the sigil."""
        data = text.encode() + b"\0"
        body = "".join(chr(byte) if byte in _PLAIN else f"\\{byte:02X}" for byte in data)
        definition = f'private unnamed_addr constant [{len(data)} x i8] c"{body}"'
        if definition not in self._shared:
            name = self._shared[definition] = f"@{self.fresh('text')}"
            self.globals[name] = f"{name} = {definition}"
        return self._shared[definition]

    def metadata(self, body: str) -> str:
        """Return the name of a metadata node with this text, adding it if need be."""
        if body not in self._shared:
            name = self._shared[body] = self.fresh_node()
            self.globals[name] = f"{name} = {body}"
        return self._shared[body]

    def fresh_node(self) -> str:
        """Return the name of a metadata node that is not in use."""
        self._nodes += 1
        return f"!{self._nodes - 1}"

    def site(self, failure: FailureSite) -> int:
        """Register a failure site; return its index."""
        self.failures.append(failure)
        return len(self.failures) - 1

    def fresh(self, stem: str) -> str:
        """Return a module-level name that is not in use."""
        self._names += 1
        return f"{stem}.{self._names}"

    def text(self) -> str:
        """Return the module as LLVM assembly."""
        return "\n".join((*self.declarations.values(), *self.globals.values(), *self.functions, ""))


class FunctionWriter:
    """Writes one function, block by block; `close` adds it to the module."""

    def __init__(
        self, module: Module, name: str, result: str, parameters: Sequence[tuple[str, str]], header: str = ""
    ) -> None:
        """Begin `define <result> @<name>(<type %name>...) <header>`."""
        self.module = module
        self.name = name
        self._head = (
            f"define {result} @{name}({', '.join(f'{kind} %{label}' for kind, label in parameters)}) {header}".rstrip()
        )
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._once: dict[str, str] = {}
        self._counter = 0
        self.block = "start"
        self.terminated = False
        self.note = ""
        """What stands behind each instruction: the line that it was made of."""

    def fresh(self, stem: str = "v") -> str:
        """Return a new local name without the sigil."""
        self._counter += 1
        return f"{stem}.{self._counter}"

    def emit(self, text: str) -> str:
        """Append an instruction with a result; return the result's name."""
        rounding = self.module.rounding
        if rounding.fast_math and text.startswith(_ARITHMETIC):
            operation, _, operands = text.partition(" ")
            text = f"{operation} {_FAST}{' contract' * rounding.fused} {operands}"
        return self.exactly(text)

    def exactly(self, text: str) -> str:
        """Append an instruction that rounds as IEEE 754 says, whatever the operator allows."""
        name = f"%{self.fresh()}"
        self._lines.append(f"  {name} = {text}{self.note}")
        return name

    def effect(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {text}{self.note}")

    def once(self, text: str) -> str:
        """Write an instruction at the function's start, once for each text; return its result's name.

        Its operands are parameters, constants and results of `once`.
        """
        if text not in self._once:
            name = f"%{self.fresh('once')}"
            self._entry.append(f"  {name} = {text}")
            self._once[text] = name
        return self._once[text]

    def alloca(self, kind: str, count: int = 1, align: int | None = None) -> str:
        """Reserve stack memory in the entry block; return its address."""
        name = f"%{self.fresh('slot')}"
        size = f", i64 {count}" if count != 1 else ""
        alignment = f", align {align}" if align is not None else ""
        self._entry.append(f"  {name} = alloca {kind}{size}{alignment}")
        return name

    def label(self, stem: str = "block") -> str:
        """Return a fresh block label, not yet placed."""
        return self.fresh(stem)

    def place(self, label: str) -> None:
        """Start the block `label`, falling into it if the current one is open."""
        if not self.terminated:
            self.branch(label)
        self._lines.append(f"{label}:")
        self.block = label
        self.terminated = False

    def branch(self, label: str) -> None:
        """End the block with a jump."""
        self.terminate(f"br label %{label}")

    def branch_if(self, condition: str, then: str, otherwise: str, weights: str = "") -> None:
        """End the block with a conditional jump."""
        self.terminate(f"br i1 {condition}, label %{then}, label %{otherwise}{weights}")

    def terminate(self, text: str) -> None:
        """End the block with any terminator; nothing is written if it has ended already."""
        if not self.terminated:
            self._lines.append(f"  {text}{self.note}")
        self.terminated = True

    @contextmanager
    def when(self, condition: str) -> Generator[None]:
        """Write the body so that it runs only where `condition` (i1) holds."""
        then, after = self.label("then"), self.label("after")
        self.branch_if(condition, then, after)
        self.place(then)
        yield
        self.place(after)

    @contextmanager
    def count(self, begin: str, end: str) -> Generator[str]:
        """Write the body for each i64 from `begin` to `end`; gives the number."""
        counter = self.alloca("i64")
        head, body, after = (self.label(stem) for stem in ("count", "run", "done"))
        self.store("i64", begin, counter)
        self.place(head)
        number = self.load("i64", counter)
        self.branch_if(self.emit(f"icmp slt i64 {number}, {end}"), body, after)
        self.place(body)
        yield number
        self.store("i64", self.emit(f"add nsw i64 {number}, 1"), counter)
        self.branch(head)
        self.place(after)

    def learn(self, text: str, known: Known) -> None:
        """Hear what is known of an i64 wherever it is used from here on; a plain writer has no use for it."""

    def known(self, text: str) -> Known:
        """Return what is known of an i64."""
        del text
        return ANYTHING

    @contextmanager
    def modular(self, *, narrow: bool = True) -> Generator[None]:
        """Write arithmetic of which, if `narrow`, the last result fits 32 bits, whatever happens on the way."""
        del narrow
        yield

    @contextmanager
    def supposing(self, known: Mapping[str, Known]) -> Generator[None]:
        """Write code that is run only where this holds of some i64; a plain writer has no use for it."""
        del known
        yield

    @contextmanager
    def apart(self, greater: str, smaller: str, distance: int) -> Generator[None]:
        """Write code where an i64 is greater than another one by so much at least; a plain writer has no use for it."""
        del greater, smaller, distance
        yield

    is_folding = False
    """Whether constants are added last."""

    @contextmanager
    def folding(self) -> Generator[None]:
        """Write sums so that constants are added last, and known as `parts`; a plain writer leaves them as they are."""
        yield

    def parts(self, text: str) -> tuple[str, int]:
        """Return an i64 as another one and a constant, which add up to it."""
        return text, 0

    def load(self, kind: str, address: str, note: str = "", *, pointer: str = "ptr") -> str:
        """Emit a load."""
        return self.emit(f"load {kind}, {pointer} {address}{note}")

    def store(self, kind: str, value: str, address: str, note: str = "", *, pointer: str = "ptr") -> None:
        """Emit a store."""
        self.effect(f"store {kind} {value}, {pointer} {address}{note}")

    def slot(self, base: str, index: int) -> str:
        """Return the address of the 8-byte slot `index` of an array."""
        return self.emit(f"getelementptr inbounds i64, ptr {base}, i64 {index}") if index else base

    def call(self, result: str, function: str, arguments: Sequence[str], note: str = "") -> str:
        """Emit a call; `arguments` are `type value` pairs as text. Returns "" for void."""
        text = f"call {result} {function}({', '.join(arguments)}){note}"
        if result == "void":
            self.effect(text)
            return ""
        return self.emit(text)

    def close(self) -> None:
        """Finish the function and add it to the module."""
        lines = "\n".join((f"{self._head} {{", "start:", *self._entry, *self._lines, "}"))
        self.module.functions.append(lines)


def float_constant(value: float, kind: str) -> str:
    """Return an LLVM literal of `kind` (`float`, `double`): hexadecimal, so that every value is exact."""
    if kind == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) <= 3.4028235677973366e38 else value
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def float_lanes(value: float, width: int, kind: str = "float") -> str:
    """Return an LLVM literal with a float in so many lanes."""
    return splat(kind, float_constant(value, kind), width)


def integer_lanes(value: int, width: int, kind: str = "i32") -> str:
    """Return an LLVM literal with an integer in so many lanes."""
    return splat(kind, str(value), width)


def splat(kind: str, text: str, width: int) -> str:
    """Return an LLVM literal with a literal of `kind` in so many lanes."""
    return text if width == 1 else f"splat ({kind} {text})"
