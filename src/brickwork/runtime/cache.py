"""Compiled code in memory and on disk, found by a key over everything that it depends on.

An entry is JSON metadata and named blobs. On disk each entry is one file that is never changed: it is written under
another name and moved into place, so that a reader in any process sees all of it or nothing. A checksum stands before
the content; a damaged, cut or vanished file counts as absent. A folder that cannot be written costs one warning.

    magic | SHA-256 of the rest | length of the header | header: JSON | blobs, one after the other

What an entry means is not known here: see `artifact.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from brickwork.config import config
from brickwork.diagnostics.warn import tell
from brickwork.records import dataclass

MAGIC = b"brickwork entry 1\n"
_DIGEST = hashlib.sha256().digest_size
_LENGTH = 8
_SUFFIX = ".entry"
_MEGABYTE = 1 << 20
_UNSEEN = 1 / 64
"""The part of the limit that a process writes before it looks whether there is too much: a look asks for each file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept under a key: facts that JSON can hold, and bytes by name."""

    metadata: Mapping[str, Any]
    blobs: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The state of the cache: its folder, what lies in it, and how often this process found what it asked for."""

    directory: Path
    entries: int
    bytes: int
    limit: int
    memory_hits: int
    disk_hits: int
    misses: int


@dataclass(slots=True)
class _State:
    """What this process holds; the one lock guards all of it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    making: dict[str, threading.RLock] = field(default_factory=dict[str, threading.RLock])
    memory_hits: int = 0
    disk_hits: int = 0
    misses: int = 0
    warned: bool = False
    written: float = math.inf
    """Bytes that were written since the folder was last looked through."""


_state = _State()


def key_of(parts: Iterable[str]) -> str:
    """Return the key over all `parts`, in order; the parts cannot run into one another."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(_LENGTH, "little"))
        digest.update(data)
    return digest.hexdigest()


def peek(key: str) -> Entry | None:
    """Return the entry under `key`, or None, which is no miss: nothing is made for it."""
    with _state.lock:
        entry = _state.entries.get(key)
    return entry or (_read(_path(key)) if config.cache_size else None)


def get(key: str) -> Entry | None:
    """Return the entry under `key`, or None."""
    with _state.lock:
        entry = _state.entries.get(key)
        if entry is not None:
            _state.memory_hits += 1
            return entry
    entry = _read(_path(key)) if config.cache_size else None
    with _state.lock:
        if entry is None:
            _state.misses += 1
            return None
        _state.disk_hits += 1
        _state.entries[key] = entry
    return entry


def put(key: str, entry: Entry) -> None:
    """Keep an entry under `key`, in memory and on disk; a full or read-only disk is no error."""
    with _state.lock:
        _state.entries[key] = entry
    if not config.cache_size:
        return
    path, data = _path(key), encode(entry)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(path, data)
    except OSError as error:
        _warn(f"brickwork cannot write to its cache ({error}); code is compiled again in each process")
        return
    limit = config.cache_size * _MEGABYTE
    with _state.lock:
        _state.written += len(data)
        if _state.written < limit * _UNSEEN:
            return
        _state.written = 0
    _trim(config.cache_path(), limit, keep=path)


def obtain(key: str, make: Callable[[], Entry]) -> tuple[Entry, bool]:
    """Return the entry under `key` and whether it was there; else `make` it, once even if several threads ask."""
    with _state.lock:
        making = _state.making.setdefault(key, threading.RLock())
    with making:
        entry = get(key)
        if entry is not None:
            return entry, True
        entry = make()
        put(key, entry)
        return entry, False


def info() -> CacheInfo:
    """Return the state of the cache."""
    files = _files(config.cache_path())
    with _state.lock:
        return CacheInfo(
            directory=config.cache_path(),
            entries=len(files),
            bytes=sum(size for _, size, _ in files),
            limit=config.cache_size * _MEGABYTE,
            memory_hits=_state.memory_hits,
            disk_hits=_state.disk_hits,
            misses=_state.misses,
        )


def clear() -> None:
    """Forget every entry, in memory and on disk. Code that is loaded stays loaded."""
    forget()
    for _, _, path in _files(config.cache_path()):
        with suppress(OSError):
            path.unlink()


def forget() -> None:
    """Forget the entries in memory; those on disk stay."""
    with _state.lock:
        _state.entries.clear()


def encode(entry: Entry) -> bytes:
    """Return an entry as the content of a file."""
    layout = {"metadata": entry.metadata, "blobs": [[name, len(blob)] for name, blob in entry.blobs.items()]}
    header = json.dumps(layout, separators=(",", ":")).encode()
    content = b"".join((len(header).to_bytes(_LENGTH, "little"), header, *entry.blobs.values()))
    return MAGIC + hashlib.sha256(content).digest() + content


def decode(data: bytes) -> Entry | None:
    """Return the entry in a file's content, or None if it is damaged."""
    start = len(MAGIC) + _DIGEST
    content = data[start:]
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(content).digest() != data[len(MAGIC) : start]:
        return None
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    layout = cast("dict[str, Any]", json.loads(content[_LENGTH:end]))
    blobs: dict[str, bytes] = {}
    for name, length in layout["blobs"]:
        blobs[name] = content[end : end + length]
        end += length
    return Entry(layout["metadata"], blobs)


def _path(key: str) -> Path:
    return config.cache_path() / key[:2] / f"{key}{_SUFFIX}"


def _read(path: Path) -> Entry | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    entry = decode(data)
    if entry is None:
        _warn(f"brickwork found a damaged entry in its cache and compiles it again: {path}")
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):
        os.utime(path)  # the time of use, by which entries are trimmed
    return entry


def _write(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _trim(directory: Path, limit: int, keep: Path) -> None:
    """Remove the entries that were not used for longest until three quarters of the limit are taken."""
    files = _files(directory)
    total = sum(size for _, size, _ in files)
    if total <= limit:
        return
    for _, size, path in sorted(files):
        if total <= limit * 3 // 4:
            return
        if path != keep:
            with suppress(OSError):
                path.unlink()
            total -= size


def _files(directory: Path) -> list[tuple[float, int, Path]]:
    """Return time of use, size and path of every entry."""
    found: list[tuple[float, int, Path]] = []
    for path in directory.glob(f"??/*{_SUFFIX}"):
        with suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    return found


def _warn(message: str) -> None:
    """Warn once in the life of the process."""
    with _state.lock:
        first, _state.warned = not _state.warned, True
    if first:
        tell(message)
