"""What tests observed of conditions, kept in a file, so that runs of one campaign measure each test once.

An entry holds for a test as long as its file stays as it is, and for functions as long as they do. A run that watches
functions that the file does not know begins anew.
"""

from __future__ import annotations

import gzip
import hashlib
import pickle
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.mutate.mutants import Marked


@dataclass(frozen=True, slots=True)
class Measurement:
    """How a test went, how many seconds of processors it took, and what it saw, as numbers of `observed`."""

    state: str
    seconds: float
    seen: array


def observed(function: int, probe: int, value: bool) -> int:
    """Return the number of a truth value that a probe of a function took."""
    return (function << 16 | probe) << 1 | value


def read(path: Path | None, functions: Sequence[Marked], items: Sequence[pytest.Item]) -> dict[int, Measurement]:
    """Return what is known of tests, by their places among the items."""
    if path is None or not path.exists():
        return {}
    watched, tests = pickle.loads(gzip.decompress(path.read_bytes()))
    places = {key: number for number, key in enumerate(watched)}
    if not all(_key(function) in places for function in functions):
        return {}
    numbers = {places[_key(function)]: number for number, function in enumerate(functions)}
    found: dict[int, Measurement] = {}
    for at, item in enumerate(items):
        digest, state, seconds, seen = tests.get(item.nodeid, (None, "", 0.0, ()))
        if digest == _digest(item.path):
            kept = (numbers[each >> 17] << 17 | each & 0x1FFFF for each in seen if each >> 17 in numbers)
            found[at] = Measurement(state, seconds, array("L", kept))
    return found


def write(
    path: Path | None, functions: Sequence[Marked], items: Sequence[pytest.Item], known: dict[int, Measurement]
) -> None:
    """Keep what is known of tests."""
    if path is None:
        return
    tests = {
        items[at].nodeid: (_digest(items[at].path), each.state, each.seconds, each.seen) for at, each in known.items()
    }
    path.write_bytes(gzip.compress(pickle.dumps(([_key(function) for function in functions], tests)), 1))


def _key(function: Marked) -> tuple[str, str, str]:
    return str(function.file.parent.name), f"{function.file.name}::{function.name}", function.digest


@cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
