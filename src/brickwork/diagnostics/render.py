"""Diagnostics as text: the place, the source line, carets under the span, further places, the chain of calls, help.

    model.py:12: error BW004: `with` is not part of the language
       12 |     with torch.no_grad():
          |     ^^^^^^^^^^^^^^^^^^^^^
       in `smooth`, called at model.py:30 in `step`
    help: move the statement out of the loop

Carets are placed as a terminal shows the line: wide characters take two cells, combining ones none, tabs become spaces.
Of a span of several lines the first few are shown; of a statement with a body, its head.
Nothing in here knows which rules exist.
"""

from __future__ import annotations

import linecache
import unicodedata

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location

_TAB = 4
_GUTTER = 6
_MOST_LINES = 5


def render(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as text without a closing line break."""
    kind = "warning" if diagnostic.is_warning else "error"
    lines = [f"{diagnostic.loc}: {kind} {diagnostic.code}: {diagnostic.message}"]
    lines += snippet(diagnostic.loc)
    lines += _call_chain(diagnostic.loc)
    for note in diagnostic.notes:
        lines.append(f"{note.loc}: {note.message}")
        lines += snippet(note.loc)
        lines += _call_chain(note.loc)
    if diagnostic.help:
        lines.append(f"help: {diagnostic.help}")
    return "\n".join(lines)


def warning_text(diagnostic: Diagnostic) -> str:
    """Return a diagnostic in one line without its place, which Python shows of a warning itself."""
    return f"{diagnostic.code}: {diagnostic.message}; {diagnostic.help}"


def snippet(loc: Location) -> list[str]:
    """Return the source lines of a place, each with carets under its span; nothing where the source cannot be read."""
    sources = _span_lines(loc)
    if not sources or not sources[0].strip():
        return []
    indent = min(len(source) - len(source.lstrip()) for source in sources if source.strip())
    whole = loc.line + len(sources) - 1 >= loc.end_line
    lines: list[str] = []
    for number, source in enumerate(sources, loc.line):
        start = characters(source, loc.column) if number == loc.line else 0
        end = characters(source, loc.end_column) if number == loc.end_line else len(source)
        lines += _marked(number, source, indent, start, end)
    return lines if whole or sources[-1].endswith(":") else [*lines, f"{' ' * _GUTTER} |     ..."]


def _span_lines(loc: Location) -> list[str]:
    """Return the lines of a span that are shown: of a statement with a body, those of its head."""
    lines: list[str] = []
    for number in range(loc.line, max(loc.end_line, loc.line) + 1):
        lines.append(linecache.getline(loc.file, number).rstrip())
        if len(lines) == _MOST_LINES or (number < loc.end_line and lines[-1].endswith(":")):
            break
    return lines


def _marked(number: int, source: str, indent: int, start: int, end: int) -> list[str]:
    """Return a line of the source, and under it carets from `start` to `end`."""
    start = max(start, len(source) - len(source.lstrip()))
    end = max(min(end, len(source)), start + 1)
    before = cells(_expand(source[indent:start]))
    marked = max(cells(_expand(source[start:end])), 1)
    line = f"{number:>{_GUTTER}} |     {_expand(source[indent:])}"
    return [line, f"{' ' * _GUTTER} |     {' ' * before}{'^' * marked}"] if source.strip() else [line.rstrip()]


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return sum(_cell(character) for character in text)


def characters(source: str, column: int) -> int:
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
