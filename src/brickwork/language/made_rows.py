"""Rows that loops make, as the compiler has them: `torch.zeros(n)`, `torch.cat([x[i], y])`, `x[i][:, None]`.

These are names alone. Compiled code has their meaning from `frontend/made_rows.py`, `op.python` from
`frontend/reference_made_rows.py`; nobody calls them here.
"""

from __future__ import annotations

from typing import Any


def filled(value: Any, sizes: Any, kind: Any = None) -> Any:
    """Return a row of these sizes whose items are one number, of torch's dtype `kind` or of the number's own type."""
    raise _uncalled(filled, value, sizes, kind)


def filled_like(value: Any, row: Any, kind: Any = None) -> Any:
    """Return a row as long as another one whose items are one number, of the type of the other one or of `kind`."""
    raise _uncalled(filled_like, value, row, kind)


def counted_up(start: Any, stop: Any, step: Any, kind: Any = None) -> Any:
    """Return the ints of a range as a row."""
    raise _uncalled(counted_up, start, stop, step, kind)


def joined_rows(rows: Any, axis: int = 0) -> Any:
    """Return rows, one behind the other along an axis that they have."""
    raise _uncalled(joined_rows, rows, axis)


def stacked_rows(rows: Any, axis: int = 0, kind: Any = None) -> Any:
    """Return rows or numbers, one behind the other along an axis of their own."""
    raise _uncalled(stacked_rows, rows, axis, kind)


def widened(row: Any, axis: int) -> Any:
    """Return a row, or a number, with an axis of one item more."""
    raise _uncalled(widened, row, axis)


def turned(row: Any, one: int = -2, other: int = -1) -> Any:
    """Return a row with two axes exchanged."""
    raise _uncalled(turned, row, one, other)


def converted(row: Any, kind: Any) -> Any:
    """Return a row, or a number, in another of torch's dtypes."""
    raise _uncalled(converted, row, kind)


def _uncalled(function: Any, *arguments: Any) -> TypeError:
    return TypeError(f"{function.__name__} of {len(arguments)} arguments is compiled, and not called")
