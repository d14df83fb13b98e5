"""One message to the user, as data: what it says, where, and what to write instead.

How it looks is in `render.py`; which codes exist is in `catalogue.py`. A diagnostic names the user's things only.
"""

from __future__ import annotations

from collections.abc import Iterable

from brickwork.diagnostics.location import Location
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A secondary place, with a label such as `also written here`."""

    loc: Location
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """A message with a code of the catalogue, a primary place, further places and one line of help."""

    code: str
    message: str
    loc: Location
    notes: tuple[Note, ...] = ()
    help: str = ""

    @property
    def is_warning(self) -> bool:
        """Whether it is told without anything being refused."""
        return self.code.startswith("BW4")


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return diagnostics in the source's order, those in helpers where they are called; one for each place."""
    first: dict[Location, Diagnostic] = {}
    for each in diagnostics:
        first.setdefault(each.loc, each)
    return tuple(sorted(first.values(), key=_place))


def _place(diagnostic: Diagnostic) -> list[tuple[int, int]]:
    """Return where the chain of calls to a diagnostic stands, outermost first."""
    places: list[tuple[int, int]] = []
    loc: Location | None = diagnostic.loc
    while loc is not None:
        places.insert(0, (loc.line, loc.column))
        loc = loc.call_site
    return places
