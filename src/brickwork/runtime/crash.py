"""What is told of a fault of brickwork itself: an `InternalError`, and a file with all that repeating it takes.

The file (a crash bundle) is JSON: what was compiled for which machine, the source of the functions, the stages that
were reached as text, the traceback, versions and settings. It holds no values of the user's. `replay.py` reads it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.config import config, settings
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import BrickworkError, CompileError, InternalError
from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.frontend.nesting import is_deep
from brickwork.records import dataclass
from brickwork.runtime.compile import versions
from brickwork.target.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What is being compiled; `stages` fills as they are reached."""

    operator: str
    loc: Location = NOWHERE
    signature: str = ""
    sources: tuple[str, ...] = ()
    """The functions, each with its place in a comment before it."""
    targets: tuple[Target, ...] = ()
    """The machine; for a GPU also the processor that launches."""
    rounding: Rounding = SOURCE
    stages: dict[str, str] = field(default_factory=dict[str, str])
    edited: tuple[str, ...] = ()
    """The stages that the user puts in place of ours."""
    function: Callable[..., object] | None = None
    """The operator as the user wrote it."""


@contextmanager
def surprises(attempt: Attempt) -> Generator[None]:
    """Turn what no stage should raise into an InternalError, with a crash bundle where one can be written.

    A RecursionError is the source's only if the source is nested deeply.
    """
    try:
        yield
    except (BrickworkError, MemoryError) as error:
        if isinstance(error, InternalError) and (attempt.edited or error.bundle is None):
            raise _told(attempt, error) from error
        raise
    except RecursionError as error:
        deep = attempt.function is not None and is_deep(attempt.function)
        raise (_too_deep(attempt) if deep else _told(attempt, error)) from error
    except Exception as error:
        raise _told(attempt, error) from error


def _too_deep(attempt: Attempt) -> CompileError:
    message = f"`{attempt.loc.function}` is nested too deeply"
    advice = "assign the parts of long expressions to locals, and move inner blocks into functions"
    return CompileError(Diagnostic(code="BW014", message=message, loc=attempt.loc, help=advice))


def _told(attempt: Attempt, error: Exception) -> BrickworkError:
    """Return what the user is told; a stage that was edited may be at fault itself."""
    if attempt.edited:
        files = ", ".join(f"{stage}.txt" for stage in attempt.edited)
        return BrickworkError(f"{attempt.operator} cannot be compiled from the edited {files}: {failure_text(error)}")
    message = failure_text(error)
    if not isinstance(error, InternalError):
        message = f"{attempt.operator}{attempt.signature} cannot be compiled: {message}"
    return InternalError(message, _write(attempt, error))


def failure_text(error: BaseException) -> str:
    """Return an exception in words, as bundles and replays compare it; where a stack ends is chance."""
    if isinstance(error, RecursionError):
        return "RecursionError: maximum recursion depth exceeded"
    return error.message if isinstance(error, InternalError) else f"{type(error).__name__}: {error}"


def _write(attempt: Attempt, error: Exception) -> str | None:
    """Write the bundle into the cache's folder, else where temporary files are; return its path."""
    content: dict[str, Any] = {
        "operator": attempt.operator,
        "signature": attempt.signature,
        "failure": failure_text(error),
        "traceback": "".join(traceback.format_exception(error)),
        "sources": [*attempt.sources],
        "targets": [asdict(target) for target in attempt.targets],
        "rounding": asdict(attempt.rounding),
        "stages": attempt.stages,
        "versions": [f"python {platform.python_version()}", platform.platform(), *versions()],
        "settings": {name: getattr(config, name) for name in settings()},
    }
    text = json.dumps(content, indent=1)
    plain = re.sub(r"\W+", ".", attempt.operator)
    digest = hashlib.sha256(f"{attempt.operator}{attempt.signature}{content['failure']}".encode()).hexdigest()[:12]
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / f"{plain}-{digest}.json"
            path.write_text(text, encoding="utf-8")
            return str(path)
    return None


def _folders() -> Iterator[Path]:
    yield config.cache_path() / "crashes"
    yield Path(tempfile.gettempdir()) / "brickwork-crashes"
