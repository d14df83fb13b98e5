"""Arithmetic on i32 offsets that folds what is known: operands are numbers or names of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from brickwork.codegen.builder import FunctionWriter
from brickwork.records import dataclass

Word: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class Words:
    """Writes i32 arithmetic of values that are not negative."""

    writer: FunctionWriter

    def add(self, *words: Word) -> Word:
        """Return a sum."""
        known = sum(word for word in words if isinstance(word, int))
        result: Word = 0
        for word in (*(word for word in words if isinstance(word, str)), known):
            result = word if result == 0 else result if word == 0 else self._emit("add", result, word)
        return result

    def mul(self, left: Word, right: int) -> Word:
        """Return a product."""
        if isinstance(left, int):
            return left * right
        return left if right == 1 else self._emit("mul", left, right)

    def div(self, left: Word, right: int) -> Word:
        """Return a quotient."""
        return self._folded("udiv", left, right, lambda a, b: a // b)

    def rem(self, left: Word, right: int) -> Word:
        """Return what a division leaves."""
        return self._folded("urem", left, right, lambda a, b: a % b)

    def both(self, left: Word, right: int) -> Word:
        """Return the bits that both have."""
        return self._folded("and", left, right, lambda a, b: a & b)

    def xor(self, left: Word, right: Word) -> Word:
        """Return the bits that one has."""
        return left if right == 0 else self._folded("xor", left, right, lambda a, b: a ^ b)

    def left(self, word: Word, bits: int) -> Word:
        """Return a word times a power of two."""
        return self._folded("shl", word, bits, lambda a, b: a << b)

    def right(self, word: Word, bits: int) -> Word:
        """Return a word by a power of two."""
        return self._folded("lshr", word, bits, lambda a, b: a >> b)

    def wide(self, word: Word) -> str:
        """Return a word as an i64."""
        return str(word) if isinstance(word, int) else self.writer.emit(f"zext i32 {word} to i64")

    def _folded(self, operation: str, left: Word, right: Word, fold: Callable[[int, int], int]) -> Word:
        if isinstance(left, int) and isinstance(right, int):
            return fold(left, right)
        return self._emit(operation, left, right)

    def _emit(self, operation: str, left: Word, right: Word) -> str:
        return self.writer.emit(f"{operation} i32 {left}, {right}")
