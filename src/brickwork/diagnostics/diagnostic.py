"""One message to the user, as data: what it says, where, and what to write instead.

How it looks is in `render.py`; which codes exist is in `catalogue.py`. A diagnostic names the user's things only.
"""

from __future__ import annotations

from dataclasses import dataclass

from brickwork.diagnostics.location import Location


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
