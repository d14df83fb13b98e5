"""Diagnostics as text: the place, the source line, carets under the span, further places, the chain of calls, help.

    model.py:12: error BW004: `with` is not part of the language
       12 |     with torch.no_grad():
          |     ^^^^^^^^^^^^^^^^^^^^^
       in `smooth`, called at model.py:30 in `step`
    help: move the statement out of the loop

Carets are placed as a terminal shows the line: wide characters take two cells, combining ones none, tabs become spaces.
Nothing in here knows which rules exist.
"""

from __future__ import annotations

import linecache
import unicodedata

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location

_TAB = 4
_GUTTER = 6


def render(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as text without a closing line break."""
    lines = [f"{diagnostic.loc}: error {diagnostic.code}: {diagnostic.message}"]
    lines += snippet(diagnostic.loc)
    lines += _call_chain(diagnostic.loc)
    for note in diagnostic.notes:
        lines.append(f"{note.loc}: {note.message}")
        lines += snippet(note.loc)
        lines += _call_chain(note.loc)
    if diagnostic.help:
        lines.append(f"help: {diagnostic.help}")
    return "\n".join(lines)


def snippet(loc: Location) -> list[str]:
    """Return the source line of a place and the carets under its span; nothing where the source cannot be read."""
    source = linecache.getline(loc.file, loc.line).rstrip("\n")
    if not source.strip():
        return []
    stripped = source.lstrip()
    indent = len(source) - len(stripped)
    start = max(_characters(source, loc.column), indent)
    end = _characters(source, loc.end_column) if loc.end_line == loc.line else len(source)
    end = max(min(end, len(source.rstrip())), start + 1)
    before = cells(_expand(source[indent:start]))
    marked = max(cells(_expand(source[start:end])), 1)
    gutter = " " * _GUTTER
    return [
        f"{loc.line:>{_GUTTER}} |     {_expand(stripped)}",
        f"{gutter} |     {' ' * before}{'^' * marked}",
    ]


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return sum(_cell(character) for character in text)


def _characters(source: str, column: int) -> int:
    """Return how many characters stand before a column, which `ast` counts in bytes of UTF-8."""
    return len(source.encode()[:column].decode(errors="ignore"))


def _cell(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _expand(text: str) -> str:
    return text.replace("\t", " " * _TAB)


def _call_chain(loc: Location) -> list[str]:
    lines: list[str] = []
    inner = loc
    while inner.call_site is not None:
        outer = inner.call_site
        lines.append(f"{' ' * (_GUTTER + 1)}in `{inner.function}`, called at {outer} in `{outer.function}`")
        inner = outer
    return lines
