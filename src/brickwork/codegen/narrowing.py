"""A writer that computes 64-bit integers in 32 bits where their values are known to fit.

Every i64 that is written is noted with its bounds and a power of two that divides it, as far as its operands tell.
Where operands and result fit an i32, the operation is done in 32 bits and its result extended; what nobody reads of
this LLVM removes. Invariant: the value of each name is what plain arithmetic would give, except inside `modular`,
where it is right modulo 2**32 and extended by its sign.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from math import gcd

from brickwork.codegen.builder import ANYTHING, FunctionWriter, Known, Module
from brickwork.legality import legality

_LEAST, _MOST = -(2**31), 2**31 - 1
_BITS = 64
_LARGEST = 1 << 20
"""Constants up to this keep offsets into narrow tensors within 32 bits, wherever in a sum they are added."""
_BINARY = re.compile(
    r"(add|sub|mul|sdiv|udiv|srem|urem|shl|ashr|and) (?:nsw |nuw |exact )*(i64|<\d+ x i64>) (.+), "
    r"(splat \(i64 -?\d+\)|[^\s>]+)$"
)
_COMPARE = re.compile(r"icmp (\w+) i64 (\S+), (\S+)$")
_SELECT = re.compile(r"select i1 (\S+), i64 (\S+), i64 (\S+)$")
_EXTREME = re.compile(r"call i64 @llvm\.([su])(min|max)\.i64\(i64 (\S+), i64 (\S+)\)$")
_EXTEND = re.compile(r"(zext|sext) (i1|i8|i16|i32) (\S+) to i64$")
_FLOAT = re.compile(r"sitofp (i64|<\d+ x i64>) (\S+) to (.+)$")
_LANES_EXTEND = re.compile(r"(zext|sext) <\d+ x (i8|i16|i32)> (\S+) to <\d+ x i64>$")
_LANES_LEAST = re.compile(r"call <\d+ x i64> @llvm\.umin\.v\d+i64\(<\d+ x i64> \S+, <\d+ x i64> splat \(i64 (\d+)\)\)$")
_SPLAT = re.compile(r"splat \(i64 (-?\d+)\)$")
_SIMPLE = {"add", "sub", "mul"}


class NarrowingWriter(FunctionWriter):
    """A `FunctionWriter` that narrows what it is told to write."""

    def __init__(
        self, module: Module, name: str, result: str, parameters: Sequence[tuple[str, str]], header: str = ""
    ) -> None:
        """Begin a function of which nothing is known."""
        super().__init__(module, name, result, parameters, header)
        self._known: dict[str, Known] = {}
        self._words: dict[str, str] = {}
        self._modular = False
        self.is_folding = False
        self._parts: dict[str, tuple[str, int]] = {}
        self._negated: dict[str, str] = {}
        self._apart: dict[tuple[str, str], int] = {}

    def learn(self, text: str, known: Known) -> None:
        """Note what is known of an i64, on top of what was."""
        old = self.known(text)
        self._known[text] = Known(max(old.low, known.low), min(old.high, known.high), max(old.multiple, known.multiple))

    def known(self, text: str) -> Known:
        """Return what is known of an i64."""
        if _is_number(text):
            return _exactly(int(text))
        if match := _SPLAT.match(text):
            return _exactly(int(match[1]))
        return self._known.get(text, ANYTHING)

    @contextmanager
    def modular(self, *, narrow: bool = True) -> Generator[None]:
        """Write sums and products modulo 2**32, if `narrow`."""
        before, self._modular = self._modular, narrow
        yield
        self._modular = before

    @contextmanager
    def supposing(self, known: Mapping[str, Known]) -> Generator[None]:
        """Write code that is run only where this holds of some i64."""
        before = dict(self._known)
        for text, more in known.items():
            self.learn(text, more)
        yield
        self._known = {**self._known, **{text: before.get(text, ANYTHING) for text in known}}

    @contextmanager
    def folding(self) -> Generator[None]:
        """Write sums so that constants are added last: what differs by constants alone is computed once."""
        before, self.is_folding = self.is_folding, True
        yield
        self.is_folding = before

    @contextmanager
    def apart(self, greater: str, smaller: str, distance: int) -> Generator[None]:
        """Write code where an i64 is greater than another one by so much at least."""
        before, self._apart = self._apart, {**self._apart, (greater, smaller): distance}
        yield
        self._apart = before

    def parts(self, text: str) -> tuple[str, int]:
        """Return an i64 as another one and a constant, which add up to it; modulo 2**32 where that one is."""
        return ("0", int(text)) if _is_number(text) else self._parts.get(text, (text, 0))

    def word(self, text: str) -> str:
        """Return the low half of an i64 as an i32."""
        if _is_number(text):
            return str((int(text) + 2**31) % 2**32 - 2**31)
        if text in self._words:
            return self._words[text]
        return super().emit(f"trunc i64 {text} to i32")

    def emit(self, text: str) -> str:
        """Append an instruction, in 32 bits if that is enough; return the name of its result."""
        if "i64" not in text:
            return super().emit(text)
        if match := _BINARY.match(text):
            name = self._binary(text, *match.groups())
            if match[1] == "mul" and match[4] == "-1":
                self._negated[name] = match[3]
            return name
        if match := _COMPARE.match(text):
            return self._compare(text, *match.groups())
        if match := _SELECT.match(text):
            return self._select(text, *match.groups())
        if match := _EXTREME.match(text):
            return self._extreme(text, *match.groups())
        if match := _EXTEND.match(text):
            return self._extend(text, *match.groups())
        if match := _FLOAT.match(text):
            return self._float(text, *match.groups())
        if match := _LANES_EXTEND.match(text):
            return self._extend(text, *match.groups())
        if match := _LANES_LEAST.match(text):
            return self._noted(super().emit(text), Known(0, int(match[1])))
        return super().emit(text)

    def _binary(self, text: str, operation: str, kind: str, left: str, right: str) -> str:
        if kind != "i64":
            return self._lanes(text, operation, kind, left, right)
        if self.is_folding and operation in _SIMPLE and (folded := self._folded(operation, left, right)):
            return folded
        first, second = self.known(left), self.known(right)
        result = self._nearer(operation, left, right, _result(operation, first, second))
        if operation in _SIMPLE and (self._modular or (_fits(first, second) and _fits(result))):
            return self._extended(f"{operation} i32 {self.word(left)}, {self.word(right)}", result)
        if operation == "and" and _is_mask(second):
            return self._extended(f"and i32 {self.word(left)}, {self.word(right)}", result)
        if not (_fits(first, second, result)):
            return self._noted(super().emit(text), result)
        if operation in {"sdiv", "udiv", "srem", "urem"}:
            return self._division(text, operation, left, right, result)
        if operation == "and":
            return self._extended(f"and i32 {self.word(left)}, {self.word(right)}", result)
        if operation == "ashr" and second.low >= 0:
            amount = super().emit(f"call i32 @llvm.umin.i32(i32 {self.word(right)}, i32 31)")
            return self._extended(f"ashr i32 {self.word(left)}, {amount}", result)
        return self._noted(super().emit(text), result)

    def _nearer(self, operation: str, left: str, right: str, found: Known) -> Known:
        """Return what is known of a result, also by how far its operands are apart."""
        smaller = right if operation == "sub" else self._negated.get(right, "") if operation == "add" else ""
        least = self._apart.get((left, smaller))
        return found if least is None else Known(max(found.low, least), found.high, found.multiple)

    def _folded(self, operation: str, left: str, right: str) -> str | None:
        """Return a sum, difference or multiple with its constant added last, where it has one."""
        (first, before), (second, after) = self.parts(left), self.parts(right)
        if operation == "mul":
            total = before * after if second == "0" and first != "0" else 0
        else:
            total = before + after if operation == "add" else before - after
        if not (before or after) or abs(total) > _LARGEST or (operation == "mul" and not total):
            return None
        with self._plain():
            root = self._root(operation, first, second, after)
            result = self.emit(f"add i64 {root}, {total}") if total else root
        if not _is_number(result):
            self._parts[result] = (root, total)
        return result

    def _root(self, operation: str, first: str, second: str, constant: int) -> str:
        """Return what is left of an operation without the constants of its operands."""
        if operation == "mul":
            return self.emit(f"mul i64 {first}, {constant}")
        if second == "0":
            return first
        if first == "0" and operation == "add":
            return second
        return self.emit(f"{operation} i64 {first}, {second}")

    @contextmanager
    def _plain(self) -> Generator[None]:
        before, self.is_folding = self.is_folding, False
        yield
        self.is_folding = before

    def _division(self, text: str, operation: str, left: str, right: str, result: Known) -> str:
        first, second = self.known(left), self.known(right)
        if first.low >= 0 and second.low >= 0:
            operation = "u" + operation[1:]
        elif operation[0] == "u" or second.low <= 0 <= second.high or (first.low == _LEAST and second.low < 0):
            return self._noted(super().emit(text), result)
        return self._extended(f"{operation} i32 {self.word(left)}, {self.word(right)}", result)

    def _lanes(self, text: str, operation: str, kind: str, left: str, right: str) -> str:
        """Write an operation on lanes in 32 bits if that is enough."""
        first, second = self.known(left), self.known(right)
        result, narrow = _result(operation, first, second), kind.replace("i64", "i32")
        summed = operation in _SIMPLE and (self._modular or _fits(first, second, result))
        shifted = operation == "ashr" and _fits(first, result) and 0 <= second.low <= second.high < _BITS
        if not (summed or shifted or (operation == "and" and _is_mask(second))):
            return super().emit(text)
        one, other = (self._lane_words(kind, narrow, each) for each in (left, right))
        if shifted:
            suffix = f"v{narrow[1:].split()[0]}i32"
            other = super().emit(f"call {narrow} @llvm.umin.{suffix}({narrow} {other}, {narrow} splat (i32 31))")
        name = super().emit(f"{operation} {narrow} {one}, {other}")
        wide = super().emit(f"sext {narrow} {name} to {kind}")
        self._words[wide] = name
        return self._noted(wide, result if _fits(result) else Known(_LEAST, _MOST))

    def _lane_words(self, kind: str, narrow: str, text: str) -> str:
        if text in self._words:
            return self._words[text]
        if match := _SPLAT.match(text):
            return f"splat (i32 {self.word(match[1])})"
        return super().emit(f"trunc {kind} {text} to {narrow}")

    def _float(self, text: str, kind: str, operand: str, result: str) -> str:
        if not _fits(self.known(operand)):
            return super().emit(text)
        narrow = kind.replace("i64", "i32")
        word = self.word(operand) if kind == "i64" else self._lane_words(kind, narrow, operand)
        return super().emit(f"sitofp {narrow} {word} to {result}")

    def _compare(self, text: str, predicate: str, left: str, right: str) -> str:
        first, second = self.known(left), self.known(right)
        if _fits(first, second):
            return super().emit(f"icmp {predicate} i32 {self.word(left)}, {self.word(right)}")
        return super().emit(text)

    def _select(self, text: str, condition: str, left: str, right: str) -> str:
        first, second = self.known(left), self.known(right)
        result = Known(min(first.low, second.low), max(first.high, second.high), min(first.multiple, second.multiple))
        if _fits(result):
            return self._extended(f"select i1 {condition}, i32 {self.word(left)}, i32 {self.word(right)}", result)
        return self._noted(super().emit(text), result)

    def _extreme(self, text: str, sign: str, which: str, left: str, right: str) -> str:
        first, second = self.known(left), self.known(right)
        multiple = min(first.multiple, second.multiple)
        if sign == "u" and (first.low < 0 or second.low < 0):
            return super().emit(text)
        pick = min if which == "min" else max
        result = Known(pick(first.low, second.low), pick(first.high, second.high), multiple)
        if _fits(first, second):
            words = f"i32 {self.word(left)}, i32 {self.word(right)}"
            return self._extended(f"call i32 @llvm.{sign}{which}.i32({words})", result)
        return self._noted(super().emit(text), result)

    def _extend(self, text: str, operation: str, kind: str, operand: str) -> str:
        bits = int(kind[1:])
        signed = operation == "sext"
        known = Known(-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1)
        name = self._noted(super().emit(text), known)
        if kind == "i32" and signed:
            self._words[name] = operand
        return name

    def _extended(self, text: str, known: Known) -> str:
        """Write an operation in 32 bits and extend its result."""
        name = super().emit(text)
        wide = super().emit(f"{'zext nneg' if _fits(known) and known.low >= 0 else 'sext'} i32 {name} to i64")
        self._words[wide] = name
        return self._noted(wide, known if _fits(known) else Known(_LEAST, _MOST, known.multiple))

    def _noted(self, name: str, known: Known) -> str:
        if known != ANYTHING:
            self._known[name] = known
        return name


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


@legality
def _is_mask(known: Known) -> bool:
    """Whether a number has no bits but the lower ones of 31."""
    return 0 <= known.low == known.high <= _MOST


def _exactly(value: int) -> Known:
    multiple = value & -value if value else _LARGEST
    return Known(value, value, min(multiple, _LARGEST))


@legality
def _fits(*items: Known) -> bool:
    return all(item.low >= _LEAST and item.high <= _MOST for item in items)


def _result(operation: str, left: Known, right: Known) -> Known:
    """Return what is known of the result of an operation; `ANYTHING` where it may wrap."""
    low, high, multiple = ANYTHING.low, ANYTHING.high, 1
    match operation:
        case "add":
            low, high, multiple = left.low + right.low, left.high + right.high, gcd(left.multiple, right.multiple)
        case "sub":
            low, high, multiple = left.low - right.high, left.high - right.low, gcd(left.multiple, right.multiple)
        case "mul":
            corners = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
            low, high = min(corners), max(corners)
            multiple = min(left.multiple * right.multiple, _LARGEST)
        case "sdiv" | "udiv" if left.low >= 0 and right.low >= 0:
            low, high = left.low // max(right.high, 1), left.high // max(right.low, 1)
        case "sdiv" if left.low > ANYTHING.low:
            most = max(abs(left.low), abs(left.high))
            low, high = -most, most
        case "srem" | "urem" if left.low >= 0 and right.low >= 0:
            low, high, multiple = 0, max(min(left.high, right.high - 1), 0), gcd(left.multiple, right.multiple)
        case "and" if right.low == right.high >= 0:
            low, high, multiple = 0, right.high, max(right.multiple, left.multiple)
        case "ashr" if 0 <= right.low <= right.high < _BITS:
            corners = [end >> bits for end in (left.low, left.high) for bits in (right.low, right.high)]
            low, high = min(corners), max(corners)
        case _:
            pass
    if low < ANYTHING.low or high > ANYTHING.high:
        low, high = ANYTHING.low, ANYTHING.high
    return Known(low, high, multiple)
