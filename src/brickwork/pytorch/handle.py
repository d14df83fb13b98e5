"""Handles: operators as users hold them. Each keeps its code, also when another definition takes its name over.

A handle whose name is taken over goes by its kept name from then on. It is registered by that name when it is first
needed: most such handles are never called again, as those of a cell of a notebook that was run again.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Self

from brickwork.config import config
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import NOWHERE
from brickwork.diagnostics.warn import tell
from brickwork.pytorch.register import by_name, kept_name, lock, note_call
from brickwork.pytorch.scripted import hide_from_scripts
from brickwork.pytorch.untraced import run_by_tracers

_DIGITS = 12
"""Hexadecimal digits of a hash in a name."""


class Handle(ABC):
    """What calls, pickles, copies and graphs of an operator begin with."""

    left = False
    """Whether another definition has taken the name over."""
    pending = False
    """Whether the next call is to `settle` first."""
    _at = ""
    """The name that it is registered by."""
    _direct: Callable[..., Any]
    """What calls go to."""
    _usual: Callable[..., Any]
    """The same once nothing is pending."""

    def __init__(self, name: str, parts: Iterable[str], *, tells_all: bool) -> None:
        """Be `name` (`ns::name`); `parts` say what it is made of, and whether that is all."""
        self.name = name
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]
        self.kept = kept_name(name, digest, tells_all=tells_all)

    @abstractmethod
    def _connect(self) -> None:
        """Register by `name`; `_usual` is what calls go to from then on."""

    def _register(self) -> None:
        """Make the operator known to torch."""
        self._at = self.name
        self._connect()
        self._direct = self._first_call if self.pending else self._usual

    def leave(self) -> None:
        """Go by the kept name from now on: another definition takes the name over."""
        self.name, self.left = self.kept, True
        hide_from_scripts(self)
        self.expect()

    def expect(self) -> None:
        """Let the next call settle first."""
        self.pending = True
        self._direct = self._first_call

    def appear(self) -> None:
        """Be registered by the kept name: as it is, or beside the handle that has the name, which may leave it."""
        if self.left:
            self.be_registered()
            return
        twin = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(twin, name, value)
        twin.name, twin.left, twin.pending = self.kept, True, False
        twin._register()

    def be_registered(self) -> None:
        """Be registered by the kept name if the other one is taken over."""
        with lock():
            if self._at != self.name:
                self._register()

    @run_by_tracers
    def settle(self) -> None:
        """Be registered, and tell if handles of several definitions of one name are called."""
        with lock():
            self.be_registered()
            self.pending, self._direct = False, self._usual
        other = note_call(self.kept)
        if other is not None and config.warn:
            name = other.rpartition("__")[0]
            message = (
                f"{name} was defined again, and operators of both definitions are called: the last one has the name"
            )
            message += f", and the one before keeps its code as {other}"
            tell(Diagnostic(code="BW403", message=message, loc=NOWHERE, help="give each a name of its own"))

    def _first_call(self, *arguments: Any, **named: Any) -> Any:
        self.settle()
        return self._direct(*arguments, **named)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        """Pickle by name."""
        return by_name, (self.name, str(self.__module__))

    def __copy__(self) -> Self:
        """Return the operator itself, as for a function."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the operator itself, as for a function."""
        return self
