"""Where all warnings are born: at the user's line, never at one of ours.

`tell` warns at the line that called brickwork, `tell_at` at a line of an operator's source. Both take a warning through
Python's filters as if that line had given it, so that a filter by module, and "once for a line", mean the user's.
"""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from types import FrameType

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import BrickworkWarning
from brickwork.diagnostics.render import warning_text

_OWN = Path(__file__).parents[1].as_posix() + "/"
_SHOWN = _OWN + "ops/"
_PACKAGES = ("torch", "importlib", "contextlib", "functools", "threading")
"""What may stand between a user's line and ours."""
_MADE = ("<frozen ", "<eval_with_key>")
"""How files begin that nobody has written."""


def is_own(file: str) -> bool:
    """Return whether a file is part of brickwork, and no source of operators."""
    return file.startswith(_OWN) and not file.startswith(_SHOWN)


def tell(found: Diagnostic | str, category: type[Warning] = BrickworkWarning) -> None:
    """Warn at the line that called brickwork, be it by way of PyTorch; the outermost line where there is none."""
    text = found if isinstance(found, str) else warning_text(found)
    frame = inspect.currentframe()
    while frame is not None and frame.f_back is not None and _is_between(frame):
        frame = frame.f_back
    if frame is None:
        warnings.warn_explicit(text, category, "<unknown>", 1)
        return
    space = frame.f_globals
    registry = space.setdefault("__warningregistry__", {})
    name = str(space.get("__name__") or "<string>")
    warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def tell_at(found: Diagnostic) -> None:
    """Warn at the place of a diagnostic in the source of an operator."""
    warnings.warn_explicit(warning_text(found), BrickworkWarning, found.loc.file, found.loc.line)


def _is_between(frame: FrameType) -> bool:
    file = frame.f_code.co_filename.replace("\\", "/")
    module = str(frame.f_globals.get("__name__")).partition(".")[0]
    return is_own(file) or module in _PACKAGES or file.startswith(_MADE)
