"""Finds a text given to brickwork (CUDA C++) as a literal of the Python source, so that errors name its lines.

A text is found as the string literal with its content, be it the literal's own, or what `textwrap.dedent` makes of it.
One that is put together at run time, from an f-string or a file, stands nowhere: it gets a name of its own.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from types import FrameType

from brickwork.diagnostics.location import Location
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class GivenText:
    """A text in another language, and the place of its first character."""

    text: str
    name: str
    """What it is called in messages."""
    file: str
    line: int = 1
    first_column: int = 0
    """Bytes that stand before the text in its first line."""
    column: int = 0
    """Bytes that stand before it in each other line."""

    def location(self, line: int, column: int, end_column: int | None = None) -> Location:
        """Return the place of a span of line `line` (from 1) of the text; columns count bytes from 0."""
        before = self.first_column if line == 1 else self.column
        at = self.line + line - 1
        end = column + 1 if end_column is None else end_column
        return Location(
            file=self.file,
            line=at,
            column=before + column,
            end_line=at,
            end_column=before + end,
            function=self.name,
        )

    def whole_line(self, line: int) -> Location:
        """Return the place of a line of the text without the blanks around it."""
        lines = self.text.split("\n")
        found = lines[line - 1] if 0 < line <= len(lines) else ""
        start = len(found.encode()) - len(found.lstrip().encode())
        return self.location(line, start, max(len(found.rstrip().encode()), start + 1))


def given_text(text: str, name: str, file: str | None) -> GivenText:
    """Return a text with its place: a literal's in the file that it was given in, or one of its own."""
    found = None if file is None else _literal(text, name, file)
    if found is not None:
        return found
    own = f"<{name}>"
    linecache.cache[own] = (len(text), None, text.splitlines(keepends=True), own)
    return GivenText(text, name, own)


def _literal(text: str, name: str, file: str) -> GivenText | None:
    """Return the text with the place of the first literal in a file that has its content."""
    source = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno is not None):
            continue
        dedented = "\n" in text and node.value != text and textwrap.dedent(node.value) == text
        if not (dedented or node.value == text):
            continue
        head = source.splitlines()[node.lineno - 1].encode()[node.col_offset :].decode(errors="ignore")
        column = _indentation(node.value) if dedented else 0
        match node.end_lineno - node.lineno - node.value.count("\n"):
            case 0:
                return GivenText(text, name, file, node.lineno, node.col_offset + _opening(head), column)
            case 1 if head.endswith("\\"):  # the first line is empty, and no part of the text
                return GivenText(text, name, file, node.lineno + 1, column, column)
            case _:
                continue
    return None


def _opening(literal: str) -> int:
    """Return how long the prefix and the quotes are that a literal begins with."""
    prefix = len(literal) - len(literal.lstrip("rRbBuU"))
    return prefix + (3 if literal[prefix : prefix + 3] in {'"""', "'" * 3} else 1)


def _indentation(text: str) -> int:
    """Return the width of the blanks that `textwrap.dedent` takes away."""
    lines = [line for line in text.split("\n") if line.strip()]
    return min((len(line) - len(line.lstrip()) for line in lines), default=0)


def calling_file() -> str | None:
    """Return the file that called brickwork."""
    frame = _caller()
    return None if frame is None else frame.f_code.co_filename


def calling_module() -> str:
    """Return the name of the module that called brickwork."""
    frame = _caller()
    return "__main__" if frame is None else str(frame.f_globals.get("__name__", "__main__"))


def _caller() -> FrameType | None:
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "brickwork":
        frame = frame.f_back
    return frame
