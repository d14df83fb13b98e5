"""Texts with values that are known only when the kernel runs: of f-strings, `format` and `%`."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from brickwork.taichi.errors import TaichiSyntaxError, TaichiTypeError
from brickwork.taichi.values import Scalar

_PERCENT = re.compile(r"%([-+ #0]*)(\d*)(\.\d+)?([diouxXeEfFgGs%])")


class Formatted:
    """A value of a text, with how it is written."""

    def __init__(self, value: Any, spec: str) -> None:
        """Keep both."""
        self.value, self.spec = value, spec


class Text:
    """A text with values that are known only at run time."""

    def __init__(self, parts: list[Any]) -> None:
        """Keep the parts in order."""
        self.parts = parts

    def plain(self) -> str:
        """Return the text, if all of it is known."""
        said: list[str] = []
        for each in self.parts:
            value = each.value if isinstance(each, Formatted) else each
            if isinstance(value, Scalar):
                raise TaichiSyntaxError("this text must be known while the kernel is compiled")
            said.append(format(value, each.spec) if isinstance(each, Formatted) else str(value))
        return "".join(said)


class Formatter:
    """The method `format` of a text, with values that are known only at run time."""

    def __init__(self, text: str) -> None:
        """Be that of a text."""
        self.text = text

    def __call__(self, *args: Any, **named: Any) -> Text:
        """Return the text with values in it."""
        parsed = [*string.Formatter().parse(self.text)]
        numbers = iter(range(len(parsed)))
        places = [None if name is None else name or str(next(numbers)) for _, name, _, _ in parsed]
        wanted = 1 + max((int(each) for each in places if each and each.isdigit()), default=-1)
        if wanted != len(args):
            raise TaichiSyntaxError(f"Expected {wanted} positional argument(s), but received {len(args)} instead.")
        given = {str(number): value for number, value in enumerate(args)} | named
        for problem, names in (("found", {*places} - {None, *given}), ("used", given.keys() - {*places})):
            for name in names:
                raise TaichiSyntaxError(f"Keyword '{name}' not {problem}.")
        parts: list[Any] = []
        for (before, _, spec, _), place in zip(parsed, places, strict=True):
            parts += [before] if place is None else [before, Formatted(given[place], spec or "")]
        return Text(parts)


def percent(text: str, values: Sequence[Any]) -> Text:
    """Return `text % values`."""
    given = [*values]
    parts: list[Any] = []
    end = 0
    for found in _PERCENT.finditer(text):
        parts.append(text[end : found.start()])
        end = found.end()
        flags, width, precision, letter = found.groups()
        if letter == "%":
            parts.append("%")
        elif not given:
            raise TaichiTypeError("not enough arguments for format string")
        else:
            side = "" if "-" not in flags or not width else "<"
            kept = "".join(each for each in flags if each != "-")
            letter = {"s": "", "i": "d", "u": "d"}.get(letter, letter)
            parts.append(Formatted(given.pop(0), f"{side}{kept}{width}{precision or ''}{letter}"))
    if given:
        raise TaichiTypeError("not all arguments converted during string formatting")
    return Text([*parts, text[end:]])
