"""Tracebacks as users see them: their own frames and torch's, none of ours. `config.frames` shows them all.

A bare `raise` (or leaving a `with`) takes the traceback from the exception and adds no frame, so that a function which
sets it there does not appear itself. Frames of `brickwork.ops` are the source of operators and stay.
"""

from __future__ import annotations

from types import TracebackType

from brickwork.config import config
from brickwork.diagnostics.errors import InternalError
from brickwork.diagnostics.warn import is_own

_BETWEEN = ("/torch/_ops.py", "/contextlib.py")
"""What our frames call on the way to further ones of ours; told from the user's own calls by who called it."""


class OwnFramesHidden:
    """A context manager that takes brickwork's own frames out of the tracebacks of exceptions that leave it."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hide the frames of what is raised."""
        if error is not None:
            hide_frames(error)


def hide_frames(error: BaseException) -> None:
    """Take our frames out of the traceback of an exception, and of those that led to it."""
    if config.frames:
        return
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = _without_own(each.__traceback__)
        if isinstance(each, InternalError):  # what led to it is in its bundle
            each.__cause__ = each.__context__ = None
        waiting += (each.__cause__, each.__context__)


def _without_own(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    hidden = False
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename.replace("\\", "/")
        hidden = is_own(file) or (hidden and file.endswith(_BETWEEN))
        if not hidden:
            kept.append(trace)
        trace = trace.tb_next
    result: TracebackType | None = None
    for item in reversed(kept):
        result = TracebackType(result, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return result
