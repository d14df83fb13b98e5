"""Which handles have a name, or had it, and what they are called once another definition has taken it over.

A kept name is `ns::name__<hash>` of what the operator is made of. It means one code in every process. Where a hash does
not tell all (a captured object of the user's), definitions are counted: `ns::name__<hash>_2`.
"""

from __future__ import annotations

import weakref
from dataclasses import field
from typing import Protocol, runtime_checkable

from brickwork.records import dataclass


@runtime_checkable
class Held(Protocol):
    """What a user holds: it keeps its code when its name is taken over."""

    left: bool
    """Whether that has happened."""

    @property
    def kept(self) -> str:
        """The kept name."""
        ...

    def leave(self) -> None:
        """Go by the kept name from now on."""
        ...

    def expect(self) -> None:
        """Tell of the first call: a handle that lives has left the name."""
        ...

    def appear(self) -> None:
        """Be registered by the kept name, too."""
        ...


@dataclass(frozen=True, slots=True)
class KeptNames:
    """The names of all handles; whoever asks holds the lock of the registry."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    """How many definitions that a hash does not tell apart there were, by kept names."""
    handles: dict[str, list[weakref.ref[Held]]] = field(default_factory=dict[str, "list[weakref.ref[Held]]"])
    """The handles by the names that users gave them, oldest first."""
    first: dict[str, str] = field(default_factory=dict[str, str])
    """The kept names of the first definitions."""
    called: dict[str, set[str]] = field(default_factory=dict[str, "set[str]"])
    """The kept names of the handles that are called since one left the name."""
    told: set[str] = field(default_factory=set[str])
    """The names of which it was told that handles of several definitions are called."""

    def count(self, kept: str) -> str:
        """Return the kept name of one more definition that its hash does not tell apart from others."""
        count = self.counts[kept] = self.counts.get(kept, 0) + 1
        return kept if count == 1 else f"{kept}_{count}"

    def take_over(self, name: str, handle: Held) -> None:
        """Let the handles with other code leave a name."""
        self.first.setdefault(name, handle.kept)
        living = [found for each in self.handles.get(name, ()) if (found := each()) is not None]
        leaving = [each for each in living if not each.left and each.kept != handle.kept]
        for each in leaving:
            each.leave()
            self.called.get(name, set[str]()).discard(each.kept)
        if leaving:
            handle.expect()
        self.handles[name] = [*map(weakref.ref[Held], (*living, handle))]

    def find(self, kept: str) -> Held | None:
        """Return the handle that lives and has this kept name, the newest of several."""
        for each in reversed(self.handles.get(kept.rpartition("__")[0], ())):
            handle = each()
            if handle is not None and handle.kept == kept:
                return handle
        return None

    def note_call(self, kept: str) -> str | None:
        """Note that a handle is called of a name that one has left.

        If others of the name are called, too, return the kept name of one that has left it; once for a name.
        """
        name = kept.rpartition("__")[0]
        called = self.called.setdefault(name, set())
        called.add(kept)
        if len(called) == 1 or name in self.told:
            return None
        self.told.add(name)
        handles = (each() for each in self.handles[name])
        return next((each.kept for each in handles if each is not None and each.left and each.kept in called), None)
