"""Every setting: its type, default, environment variable, and whether generated code depends on it.

`brickwork.config` is the one instance. A field can be set at run time (`bw.config.vector_bytes = 32`) or for a while
(`with bw.config.override(check="interpret"):`). Environment variables are read once, when brickwork is imported; a
wrong one is ignored with a warning. Nothing else in brickwork reads the environment, but for where toolkits are.
"""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, fields
from pathlib import Path
from typing import TypeAlias, TypeVar

from brickwork.diagnostics.warn import tell
from brickwork.records import dataclass

Value: TypeAlias = str | int
_Value = TypeVar("_Value", str, int)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of a field of `Config` besides its name and type."""

    default: Value
    variable: str
    """The environment variable that sets it."""
    explanation: str
    affects_code: bool = False
    """Whether code compiled under one value must not be used under another."""
    choices: tuple[Value, ...] = ()
    """The values allowed; empty if any value of the type is."""


def _field(
    default: _Value, variable: str, explanation: str, *, affects_code: bool = False, choices: tuple[Value, ...] = ()
) -> _Value:
    return field(default=default, metadata={"setting": Setting(default, variable, explanation, affects_code, choices)})


@dataclass(kw_only=True)
class Config:
    """The settings. An unknown name or a value that is not allowed is refused when it is set."""

    cache_dir: str = _field(
        "", "BRICKWORK_CACHE_DIR", "Folder of the disk cache; empty: `brickwork` in the user's cache."
    )
    cache_size: int = _field(512, "BRICKWORK_CACHE_SIZE", "Megabytes that the disk cache may take; 0 turns it off.")
    vector_bytes: int = _field(
        0,
        "BRICKWORK_VECTOR_BYTES",
        "Width of a vector in bytes; 0: what the machine does best; 4: no vectors.",
        affects_code=True,
        choices=(0, 4, 16, 32, 64),
    )
    check: str = _field(
        "",
        "BRICKWORK_CHECK",
        "`interpret`: operators defined under it run in the checking interpreter, which finds races on real data.",
        choices=("", "interpret"),
    )
    line_info: int = _field(
        0,
        "BRICKWORK_LINE_INFO",
        "1: code for GPUs says which lines of Python it was made of, as profilers show it.",
        affects_code=True,
        choices=(0, 1),
    )
    dump_dir: str = _field(
        "", "BRICKWORK_DUMP", "Folder that takes each stage of each specialisation as text; empty: none."
    )
    override_dir: str = _field(
        "",
        "BRICKWORK_OVERRIDE",
        "Folder like that of `dump_dir` whose files take the place of stages; empty: none.",
    )
    frames: int = _field(0, "BRICKWORK_FRAMES", "1: tracebacks show brickwork's own frames, too.", choices=(0, 1))
    warn: int = _field(1, "BRICKWORK_WARN", "0: no warnings about operators.", choices=(0, 1))
    log: int = _field(
        0,
        "BRICKWORK_LOG",
        "1: say on standard error what is compiled, and why the cache did not have it.",
        choices=(0, 1),
    )

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field, checked against its type and choices."""
        known = settings()
        if name not in known:
            raise AttributeError(f"brickwork has no setting `{name}`; there are: {', '.join(known)}")
        setting = known[name]
        if type(value) is not type(setting.default):
            raise TypeError(
                f"brickwork.config.{name} takes {type(setting.default).__name__}, not {type(value).__name__}"
            )
        if setting.choices and value not in setting.choices:
            allowed = ", ".join(repr(choice) for choice in setting.choices)
            raise ValueError(f"brickwork.config.{name} is one of {allowed}, not {value!r}")
        object.__setattr__(self, name, value)

    @contextmanager
    def override(self, **values: Value) -> Generator[Config]:
        """Set fields for the time of a `with` block."""
        before = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def code_key(self) -> str:
        """Return the settings that generated code depends on, as text for cache keys."""
        return ",".join(f"{name}={getattr(self, name)}" for name, setting in settings().items() if setting.affects_code)

    def cache_path(self) -> Path:
        """Return the folder of the disk cache, which need not exist; a temporary one for a user without a home."""
        try:
            if self.cache_dir:
                return Path(self.cache_dir).expanduser()
            return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "brickwork"
        except RuntimeError:
            return temporary_cache()


def settings() -> dict[str, Setting]:
    """Return the description of each field, by name."""
    return {each.name: each.metadata["setting"] for each in fields(Config)}


def from_environment(environment: Mapping[str, str]) -> Config:
    """Return the settings that environment variables ask for; a wrong value is ignored with a warning."""
    result = Config()
    for name, setting in settings().items():
        text = environment.get(setting.variable, "")
        if not text:
            continue
        try:
            setattr(result, name, int(text) if isinstance(setting.default, int) else text)
        except ValueError as error:
            tell(f"{setting.variable}={text} is ignored: {error}", RuntimeWarning)
    return result


@functools.cache
def temporary_cache() -> Path:
    """Return a folder for the cache among the temporary files, with one warning in the life of the process.

    It holds machine code: nobody but the user may write to it. It is the same in every process, unless somebody else
    has taken its name.
    """
    try:
        folder = _own_folder()
    except OSError:
        folder = Path(os.devnull) / "brickwork"
    tell(f"brickwork finds no home folder of the user: its cache is in {folder}; BRICKWORK_CACHE_DIR names another one")
    return folder


def _own_folder() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir()) / f"brickwork-{user}"
    if user is None:
        return folder
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="brickwork-"))


config = from_environment(os.environ)
"""The settings in force."""
