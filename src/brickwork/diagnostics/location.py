"""Where something stands in the user's source: the one record that every node, error and check carries.

Lines count from 1 and columns from 0, as in `ast`; `end_column` is exclusive. A location inside a helper that was
compiled inline has the place of the call in `call_site`, so that a chain of calls can be shown. A cell of a notebook,
which IPython compiles as a file that nobody has seen, is called what the notebook calls it. That file is named for the
process and for the text of the cell: what is kept for other processes means the cell of that text.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterable

from brickwork.records import dataclass

_CELL = r"[^\s:]*ipykernel_\d+[/\\](\d+)\.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A span of the user's source."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    call_site: Location | None = None

    def __str__(self) -> str:
        """Return `file:line`, as tracebacks and editors write it, or `Cell In[3], line 2`, as notebooks do."""
        cell = cell_of(self.file)
        return f"{cell}, line {self.line}" if cell else f"{self.file}:{self.line}"

    def is_within(self, other: Location) -> bool:
        """Return whether all of this place is part of another one."""
        begins = (other.line, other.column) <= (self.line, self.column)
        ends = (self.end_line, self.end_column) <= (other.end_line, other.end_column)
        return self.file == other.file and begins and ends


NOWHERE = Location(file="<brickwork>", line=1, column=0, end_line=1, end_column=0, function="<brickwork>")
"""The location of nodes that no user wrote, such as those that tests build by hand."""


def chain(loc: Location) -> str:
    """Return a place in one line; one in a helper with the calls that lead to it."""
    if loc.call_site is None:
        return str(loc)
    return f"{loc} in {loc.function}, called at {chain(loc.call_site)}"


def cell_of(file: str) -> str:
    """Return what IPython calls the cell that it compiled as `file`, or nothing if it is no cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", _none)()
    named: Callable[[str], tuple[str, str] | None] = getattr(getattr(shell, "compile", None), "format_code_name", _none)
    return " ".join(named(file) or ())


def in_any_session(file: str) -> str:
    """Return a file's name; that of a cell without the process that compiled it."""
    return re.sub(_CELL, r"cell \1", file)


def in_this_session(file: str) -> str:
    """Return a file's name; for a cell that another process compiled, that of the cell with this text here."""
    cell = re.fullmatch(_CELL, file)
    if cell is None or file in linecache.cache:
        return file
    return next((each for each in linecache.cache if in_any_session(each) == f"cell {cell[1]}"), file)


def with_files(text: str, files: Iterable[str]) -> str:
    """Return a text that calls cells by their files: their numbers may be others in another session."""
    for file in files:
        cell = cell_of(file)
        text = text.replace(f"{cell}, line ", f"{file}:") if cell else text
    return text


def with_cells(text: str) -> str:
    """Return a text of `with_files`, perhaps of another session, with cells called what this one calls them."""

    def called(found: re.Match[str]) -> str:
        cell = cell_of(in_this_session(found["file"]))
        return f"{cell}, line {found['line']}" if cell else found[0]

    return re.sub(rf"(?P<file>{_CELL}):(?P<line>\d+)", called, text)


def _none(*_: object) -> None:
    """Stand for what is not there."""
