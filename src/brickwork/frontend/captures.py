"""Whether what an operator has captured still means the same outside: the numbers, lists and helpers of its source.

An operator keeps what its names meant when it was decorated. A `Watch` looks at each call whether they mean something
else by now: by identity first, since calls wait for it. Lists are compared with the copies that were kept, whose items
are the same objects, which takes a nanosecond an item; long ones at some calls only. A helper that was defined again
with the same code counts as the same.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import cast

from brickwork.frontend.environment import (
    MISSING,
    constant_items,
    helper,
    intrinsic,
    is_number,
    number_of_numpy,
    torch_dtype,
)
from brickwork.frontend.source import SourceFunction, bound_values
from brickwork.frontend.value_classes import attributes_of, is_value
from brickwork.records import dataclass

_ITEMS_PER_CALL = 64
"""Items of lists that are compared at a call, on average."""
_MOST_ATTRIBUTES = 256
"""How many captured values and attributes of such are looked at: objects may hold one another in a circle."""
_ERRORS = (AttributeError, RuntimeError, TypeError, ValueError)
"""What comparing with another value may raise, such as a tensor, and looking where there is none any more."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A name, where its value is found, the object that this was when it was captured, and the value that was kept.

    It is found in a space under a key, or, for `path`, by these attributes of what is found there.
    """

    name: str
    space: Mapping[str, object] | types.CellType
    key: str
    path: str
    found: object
    value: object

    @property
    def changed(self) -> str | None:
        """Say what has become of the name if it means something else now."""
        try:
            now = self.look()()
        except _ERRORS:
            now = MISSING
        if now is not self.found and not _same(now, self.value):
            return "changed" if self.path else "rebound"
        return "changed" if now is self.found and self.is_list and _differ(now, self.value) else None

    @property
    def is_list(self) -> bool:
        """Whether a copy was kept of what others may change in place."""
        return self.found is not self.value and isinstance(self.found, list | tuple | dict)

    def look(self) -> Callable[[], object]:
        """Return what gives the value that the name has now, or raises one of `_ERRORS`."""
        if isinstance(self.space, types.CellType):
            root = functools.partial(getattr, self.space, "cell_contents")
        else:
            root = functools.partial(self.space.get, self.key, MISSING)
        if not self.path:
            return root
        follow = attrgetter(self.path)
        return lambda: follow(root())


class Watch:
    """Looks after the captured values of functions; false if there are none that may change."""

    def __init__(self, sources: Iterable[SourceFunction] = ()) -> None:
        """Keep the objects that the names mean now."""
        self._probes = tuple(probe for source in sources for probe in _probes(source))
        self._names = tuple((probe.look(), probe.found) for probe in self._probes)
        self._lists = tuple((probe.found, probe.value) for probe in self._probes if probe.is_list)
        self._calls_each = sum(_length(value) for _, value in self._lists) // _ITEMS_PER_CALL
        self._calls_left = 0

    def __bool__(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self._probes)

    def is_quiet(self) -> bool:
        """Whether all is as it was, as far as a call looks."""
        try:
            for now, found in self._names:
                if now() is not found:
                    return False
            if not self._lists:
                return True
            self._calls_left -= 1
            if self._calls_left >= 0:
                return True
            self._calls_left = self._calls_each
            return not any(found != value for found, value in self._lists)
        except _ERRORS:
            return False

    def changes(self) -> str:
        """Say which names mean something else now; empty if none."""
        found = {probe.name: said for probe in self._probes if (said := probe.changed)}
        groups = [[f"`{name}`" for name, said in found.items() if said == kind] for kind in ("rebound", "changed")]
        said = zip(groups, ("rebound", "changed"), strict=True)
        return " and ".join(f"{', '.join(names)} was {kind}" for names, kind in said if names)


def originals(source: SourceFunction) -> dict[str, object]:
    """Return the lists of which a copy was captured, which Python code of the function shares with others."""
    return {probe.name: probe.found for probe in _probes(source) if probe.found is not probe.value}


def is_described(sources: Sequence[SourceFunction]) -> bool:
    """Whether the fingerprint of functions tells their captured values apart, or all that they take of them."""
    functions = {id(source.function) for source in sources}
    for source in sources:
        taken = {name.rpartition(".")[0] for name in source.captured}
        for name, value in source.captured.items():
            if not (name in taken or id(value) in functions or _has_name(value)):
                return False
    return True


def _has_name(value: object) -> bool:
    """Whether a value is written, or has a name that nothing else in any process has."""
    if value is None or is_number(value) or isinstance(value, str | types.ModuleType) or torch_dtype(value):
        return True
    if constant_items(value) is not None or intrinsic(value) is not None or is_value(value) or _is_dict(value):
        return True
    return isinstance(value, type) and "<" not in value.__qualname__


def _probes(source: SourceFunction) -> Iterator[Probe]:
    function = cast("types.FunctionType", source.around or source.function)
    inner = {item.name for item in source.inner.values()}
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    bound = bound_values(source.function)
    for name, value, around in _attributes(source.captured):
        is_fixed = is_number(value) or isinstance(value, str) or constant_items(value) is not None or _is_dict(value)
        if bound_values(value) or name in inner or not (is_fixed or helper(value)):
            continue
        owner, _, key = name.rpartition(".")
        module = source.captured.get(owner, around)
        if isinstance(module, types.ModuleType):
            yield _probe(name, vars(module), key, "", value)
            continue
        root, _, path = name.partition(".")
        if path and not (is_fixed and _is_stored(module, key)):
            continue
        if root in bound:
            if path:
                yield _probe(name, bound, root, path, value)
        elif root in cells:
            yield _probe(name, cells[root], root, path, value)
        elif root in function.__globals__:
            yield _probe(name, function.__globals__, root, path, value)


def _attributes(captured: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    """Yield captured values and the attributes of those with parts, by dotted names, with what they belong to."""
    waiting: list[tuple[str, object, object]] = [(name, value, None) for name, value in captured.items()]
    for name, value, around in waiting:
        yield name, value, around
        if is_value(value) and len(waiting) < _MOST_ATTRIBUTES:
            known = attributes_of(value).items()
            waiting += [(f"{name}.{key}", item, value) for key, item in known if f"{name}.{key}" not in captured]


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


def _is_stored(owner: object, name: str) -> bool:
    """Whether an attribute is a value that the object holds, not one that code of the user's computes."""
    found = inspect.getattr_static(owner, name, None)
    return isinstance(found, types.MemberDescriptorType) or getattr(found, "__get__", None) is None


def _probe(name: str, space: Mapping[str, object] | types.CellType, key: str, path: str, value: object) -> Probe:
    probe = Probe(name, space, key, path, value, value)
    try:
        now = probe.look()()
    except _ERRORS:
        now = MISSING
    return Probe(name, space, key, path, now if _same(now, value) else value, value)


def _same(one: object, other: object) -> bool:
    one = number_of_numpy(one)
    if isinstance(one, types.FunctionType) and isinstance(other, types.FunctionType):
        return _plain(one.__code__) == _plain(other.__code__) and one.__defaults__ == other.__defaults__
    return type(one) is type(other) and not _differ(one, other)


def _differ(one: object, other: object) -> bool:
    try:
        return bool(one != other)
    except _ERRORS:
        return True


def _length(value: object) -> int:
    """Return how many items a list has, with those of the lists in it."""
    return 1 + sum(map(_length, cast("Sequence[object]", value))) if isinstance(value, list | tuple) else 1


def _plain(code: types.CodeType) -> types.CodeType:
    """Return code without where it stands."""
    return code.replace(co_filename="", co_firstlineno=1, co_linetable=b"")
