"""The exceptions that brickwork raises of itself; which rule was broken is told by the diagnostics' codes.

Failures of a running operator (an index out of range, a failed assert) are Python's own exceptions and not in here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.render import render


class BrickworkError(Exception):
    """Base class of the exceptions that brickwork raises of itself."""


class BrickworkWarning(UserWarning):
    """Category of the warnings that brickwork gives; `BRICKWORK_WARN=0` turns those about operators off."""


class CompileError(BrickworkError):
    """The source breaks a rule of the language; `diagnostics` say which and where."""

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        """Keep the diagnostics; the message is their rendering, the most of them first in the source's order."""
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__(found)

    def __str__(self) -> str:
        """Return all diagnostics as text, one after the other."""
        return "\n" + "\n\n".join(render(diagnostic) for diagnostic in self.diagnostics)


class RaceError(CompileError):
    """A loop that the user called parallel has two iterations that access one element, and one of them writes it."""


class DeviceError(BrickworkError, RuntimeError):
    """A GPU, its driver, or a tool or library for GPU code is missing, too old, or reports an error."""


class InternalError(BrickworkError):
    """A fault of brickwork itself, never of the user's source."""

    def __init__(self, message: str, bundle: str | None = None) -> None:
        """Keep what went wrong, and the file that holds what is needed to repeat it."""
        self.message = message
        self.bundle = bundle
        super().__init__(message, bundle)

    def __str__(self) -> str:
        """Return the message with an apology, where the crash bundle lies, and how to repeat the failure."""
        text = f"{self.message}\nThis is a fault of brickwork, not of your code, and we are sorry for it."
        if self.bundle is None:
            return text
        return (
            f"{text}\nWhat is needed to repeat it is in {self.bundle}; please attach that file to a report."
            f"\nTo repeat it: python -m brickwork replay {shlex.quote(self.bundle)}"
        )
