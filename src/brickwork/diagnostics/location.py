"""Where something stands in the user's source: the one record that every node, error and check carries.

Lines count from 1 and columns from 0, as in `ast`; `end_column` is exclusive. A location inside a helper that was
compiled inline has the place of the call in `call_site`, so that a chain of calls can be shown. A cell of a notebook,
which IPython compiles as a file that nobody has seen, is called what the notebook calls it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass


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


def _none(*_: object) -> None:
    """Stand for what is not there."""
