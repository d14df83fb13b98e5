"""The exceptions of Taichi, with its names and bases, and the place in the user's source that they are raised with."""

from __future__ import annotations

import linecache

from brickwork.diagnostics.location import Location
from brickwork.diagnostics.render import cells, characters


class TaichiCompilationError(Exception):
    """A kernel breaks a rule of the language."""


class TaichiSyntaxError(TaichiCompilationError, SyntaxError):
    """A statement or a form that kernels lack."""


class TaichiNameError(TaichiCompilationError, NameError):
    """A name that stands for nothing."""


class TaichiIndexError(TaichiCompilationError, IndexError):
    """An index that cannot be right."""


class TaichiTypeError(TaichiCompilationError, TypeError):
    """Operands of types that do not go together."""


class TaichiRuntimeError(RuntimeError):
    """A kernel that cannot run."""


class TaichiAssertionError(TaichiRuntimeError, AssertionError):
    """An assertion of a kernel that does not hold."""


class TaichiRuntimeTypeError(TaichiRuntimeError, TypeError):
    """An argument, or a result, that is not of the type that was declared."""


class TaichiOutOfBoundsError(TaichiAssertionError, IndexError):
    """An access beyond the end of a field or an array."""


class TaichiDivisionError(TaichiRuntimeError, ZeroDivisionError):
    """An integer divided by zero."""


TAB = 4
"""Spaces between the stops of tabs in lines that are shown, as Taichi shows them."""


def argument_error(place: int | str, needed: object, given: object) -> TaichiRuntimeTypeError:
    """Return the error for an argument of a wrong type."""
    return TaichiRuntimeTypeError(f"Argument ({place},) (type={given}) cannot be converted into required type {needed}")


def unsupported(what: str, instead: str = "") -> TaichiCompilationError:
    """Return the error for a part of Taichi that brickwork has not."""
    return TaichiCompilationError(f"{what} is not supported by brickwork.taichi{': ' if instead else ''}{instead}")


def placed(error: Exception, loc: Location) -> TaichiCompilationError:
    """Return an error of the same class that shows the calls that lead to it; others become compilation errors."""
    kind = type(error) if isinstance(error, TaichiCompilationError) else TaichiCompilationError
    said = str(error) if isinstance(error, TaichiCompilationError) else f"{type(error).__name__}: {error}"
    frames: list[str] = []
    place: Location | None = loc
    while place is not None:
        line = linecache.getline(place.file, place.line).rstrip("\n")
        start = characters(line, place.column)
        end = characters(line, place.end_column) if place.end_line == place.line else len(line)
        before, until = (cells(line[:each].expandtabs(TAB)) for each in (start, end))
        mark = " " * before + "^" * max(1, until - before)
        line = line.expandtabs(TAB)
        frames.insert(0, f'File "{place.file}", line {place.line}, in {place.function}:\n{line}\n{mark}\n')
        place = place.call_site
    return kind("\n" + "".join(frames) + said)
