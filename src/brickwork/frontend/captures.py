"""Whether what an operator has captured still means the same outside: the numbers and helpers of its source.

An operator keeps what its names meant when it was decorated. `probes` says where to look; `rebound` looks, by
identity first, since calls wait for it. A helper that was defined again with the same code counts as the same.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from brickwork.frontend.environment import constant_items, helper, is_number
from brickwork.frontend.source import SourceFunction, bound_values
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Probe:
    """A name, where its value is found, the object that this was when it was captured, and the value that was kept."""

    name: str
    space: Mapping[str, object] | types.CellType
    key: str
    found: object
    value: object

    def now(self) -> object:
        """Return what the name means now; None if nothing."""
        if isinstance(self.space, types.CellType):
            try:
                return self.space.cell_contents
            except ValueError:
                return None
        return self.space.get(self.key)


def probes(sources: Iterable[SourceFunction]) -> tuple[Probe, ...]:
    """Return where the captured numbers, texts and helpers of functions are found."""
    return tuple(probe for source in sources for probe in _probes(source))


def rebound(found: Iterable[Probe]) -> list[str]:
    """Return the names that mean something else now."""
    return [probe.name for probe in found if (now := probe.now()) is not probe.found and not _same(now, probe.value)]


def originals(source: SourceFunction) -> dict[str, object]:
    """Return the lists of which a copy was captured, which Python code of the function shares with others."""
    return {probe.name: probe.found for probe in _probes(source) if probe.found is not probe.value}


def _probes(source: SourceFunction) -> Iterator[Probe]:
    function = cast("types.FunctionType", source.around or source.function)
    inner = {item.name for item in source.inner.values()}
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, value in source.captured.items():
        if not (is_number(value) or isinstance(value, str) or constant_items(value) is not None or helper(value)):
            continue
        if bound_values(value) or name in inner:
            continue
        owner, _, key = name.rpartition(".")
        module = source.captured.get(owner)
        if isinstance(module, types.ModuleType):
            yield _probe(name, vars(module), key, value)
        elif name in cells:
            yield _probe(name, cells[name], name, value)
        elif name in function.__globals__:
            yield _probe(name, function.__globals__, name, value)


def _probe(name: str, space: Mapping[str, object] | types.CellType, key: str, value: object) -> Probe:
    now = Probe(name, space, key, value, value).now()
    return Probe(name, space, key, now if _same(now, value) else value, value)


def _same(one: object, other: object) -> bool:
    if isinstance(one, types.FunctionType) and isinstance(other, types.FunctionType):
        return _plain(one.__code__) == _plain(other.__code__) and one.__defaults__ == other.__defaults__
    return type(one) is type(other) and one == other


def _plain(code: types.CodeType) -> types.CodeType:
    """Return code without where it stands."""
    return code.replace(co_filename="", co_firstlineno=1, co_linetable=b"")
