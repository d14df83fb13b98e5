"""What `op.explain()` says, as data: lines about loops, and choices that a condition makes when the operator is called.

The text is printed from it, for all arguments or for those that have made some of the choices. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from brickwork.records import dataclass

GUARDS = "guards"
"""The choice between the body without the guarded checks and the one with all of them."""
OTHERWISE = "where that does not hold"
"""What is said of the kernel that runs where the one before it does not."""
IN_ORDER = f"{OTHERWISE}: all runs in order"
"""The same, of one that hardly ever runs."""
_STEP = "  "
_MARKS: Mapping[bool | None, str] = {None: "", True: " (taken)", False: " (not taken)"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text; the first one of a loop says how that loop runs.

    `loop` is the name of its index then and `role` that of the IR's `Role`. A thread, or block, takes `lanes`
    neighbouring iterations and `together` others at a time. `atomic` are the tensors that it updates atomically.
    """

    text: str
    loop: str = ""
    role: str = ""
    lanes: int = 1
    together: int = 1
    atomic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """Two ways to run the same loops, of which a `condition` chooses one; `name` is the version of the `If` in the IR.

    Where the condition is not known, `unknown` is shown in place of both, if it is given.
    """

    name: str
    condition: str
    then: tuple[Part, ...]
    otherwise: tuple[Part, ...]
    unknown: tuple[Part, ...] = ()


Part: TypeAlias = Line | Choice
Taken: TypeAlias = Mapping[str, bool]
"""The choices that arguments make: whether the condition of each holds, by its name."""
NOTHING: Taken = {}


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation."""

    parts: tuple[Part, ...] = ()

    def text(self, taken: Taken = NOTHING) -> str:
        """Return the text, with the versions that are not taken beside those that are."""
        return "\n".join(_shown(self.parts, taken))

    def lines(self, taken: Taken = NOTHING) -> list[Line]:
        """Return the lines of loops for arguments that make these choices."""
        return [line for line in _chosen(self.parts, taken) if line.loop]

    def mapped(self, change: Callable[[str], str]) -> Explanation:
        """Return the explanation with all lines changed."""
        return from_json(to_json(self), change)


def _chosen(parts: Iterable[Part], taken: Taken) -> Iterator[Line]:
    for part in parts:
        match part:
            case Line():
                yield part
            case Choice(name=name):
                known = taken.get(name)
                first, second = (part.unknown, ()) if part.unknown and known is None else (part.then, part.otherwise)
                yield from _chosen((*first, *second) if known is None else first if known else second, taken)


def _shown(parts: Iterable[Part], taken: Taken, indent: str = "") -> Iterator[str]:
    for part in parts:
        match part:
            case Line(text=text):
                yield f"{indent}{text}"
            case Choice(name=name, unknown=unknown):
                known = taken.get(name)
                if unknown:
                    shown = unknown if known is None else part.then if known else part.otherwise
                    yield from _shown(shown, taken, indent)
                else:
                    yield from _versions(part, taken, indent)


def _versions(choice: Choice, taken: Taken, indent: str) -> Iterator[str]:
    """Yield a chain of choices, each version under its condition; of those that do not run, how the loops would."""
    runs: bool | None = True
    word, rest = "if", tuple[Part, ...]((choice,))
    while len(rest) == 1 and isinstance(now := rest[0], Choice) and not now.unknown:
        here = None if runs is None else runs and taken.get(now.name)
        here = False if taken.get(now.name) is False else here
        yield f"{indent}{_STEP}{word} {now.condition}{_MARKS[here]}:"
        yield from _version(now.then, taken, indent, runs=here)
        runs = runs if here is False else False if here else None
        word, rest = "else if", now.otherwise
    yield f"{indent}{_STEP}else{_MARKS[runs]}:"
    yield from _version(rest, taken, indent, runs=runs)


def _version(parts: tuple[Part, ...], taken: Taken, indent: str, *, runs: bool | None) -> Iterator[str]:
    shown = parts if runs is not False else tuple(line for line in _chosen(parts, taken) if line.loop)
    yield from _shown(shown, taken, indent + _STEP)


# ---------------------------------------------------------------- in the cache


def to_json(explanation: Explanation) -> list[Any]:
    """Return an explanation as lists of texts and numbers."""
    return [_part_to_json(part) for part in explanation.parts]


def _part_to_json(part: Part) -> Any:
    match part:
        case Line(text=text, loop=""):
            return text
        case Line(text=text, loop=loop, role=role, lanes=lanes, together=together, atomic=atomic):
            return [text, loop, role, lanes, together, [*atomic]]
        case Choice(name=name, condition=condition):
            blocks = (part.then, part.otherwise, part.unknown)
            return {"name": name, "if": condition, "blocks": [[*map(_part_to_json, block)] for block in blocks]}


def _same(text: str) -> str:
    return text


def from_json(data: list[Any], change: Callable[[str], str] = _same) -> Explanation:
    """Return the explanation of `to_json`; `change` is made to the text of each line."""

    def part_of(item: Any) -> Part:
        match item:
            case str():
                return Line(change(item))
            case [text, loop, role, lanes, together, atomic]:
                return Line(change(text), loop, role, lanes, together, tuple(atomic))
            case _:
                then, otherwise, unknown = (tuple(map(part_of, block)) for block in item["blocks"])
                return Choice(item["name"], item["if"], then, otherwise, unknown)

    return Explanation(tuple(map(part_of, data)))
