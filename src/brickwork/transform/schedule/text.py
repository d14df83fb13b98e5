"""Schedules as text, as users write and read them: a verb a line, with loops and tensors by name.

    split(j, 64)                     the loop over the chunks of j is called j_chunk
    reorder(i, j_chunk, k, j)        `i:2` is the second loop over an i, in the order of the source
    bind(i, pool)

What is printed can be read again. Whether it is legal is asked in `transform/verbs/`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NoReturn

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition
from brickwork.ir.nodes import For, Kernel, Symbol, Tensor
from brickwork.ir.walk import statements
from brickwork.transform.schedule.schedule import (
    ATOMIC,
    CONTRACT_COUNTS,
    CONTRACT_NOTES,
    Bind,
    Contract,
    Fuse,
    Level,
    Reorder,
    Rfactor,
    Schedule,
    Split,
    Unroll,
    Verb,
    chunk_of,
    named,
    spell,
)
from brickwork.transform.scratch import ONCE

FORMS = {
    "split": "split(i, 64)",
    "fuse": "fuse(i, j)",
    "reorder": "reorder(i, k, j)",
    "bind": "bind(i, pool), or bind(j, lane, 8)",
    "unroll": "unroll(k, 4), or unroll(i, 4, jam)",
    "rfactor": "rfactor(k, lane, 32), rfactor(i, atomic, h) or rfactor(i, pool, h)",
    "contract": "contract(i, j, k, 64 x 64 x 32)",
}
"""How each verb is written."""
_LINE = re.compile(r"(\w+)\s*\((.*)\)")


class ScheduleError(CompileError):
    """A schedule that a user has given cannot be read, or is illegal."""


class UnreadableError(ValueError):
    """A line of a schedule that says nothing; the message says why, and what to write instead."""


def lines_of(text: str) -> list[str]:
    """Return the verbs of a text: one a line, or several with `;` between them; what follows a `#` is a comment."""
    parts = (part.strip() for line in text.splitlines() for part in line.partition("#")[0].split(";"))
    return [part for part in parts if part]


def refuse_unreadable(text: str, definition: Definition) -> None:
    """Refuse a schedule that is none, or that has no loops in compiled code, when the operator is defined."""
    try:
        for line in lines_of(text):
            word_of(line)
    except UnreadableError as error:
        raise ScheduleError(Diagnostic(code="BW202", message=f"{error}", loc=definition.loc)) from None
    if lines_of(text) and definition.host == "python":
        message = f"a schedule is for operators with a native host part: this one's runs in Python, {definition.reason}"
        help_text = "keep the host part to shapes, numbers and allocations, or leave the schedule out"
        raise ScheduleError(Diagnostic(code="BW202", message=message, loc=definition.loc, help=help_text))


def word_of(line: str) -> tuple[str, list[str]]:
    """Return the verb of a line and its arguments, as they are written."""
    found = _LINE.fullmatch(line)
    if found is None or found[1] not in FORMS:
        raise UnreadableError(f"'{line}' is no verb of a schedule; write {', '.join(FORMS)}: {FORMS['bind']}")
    return found[1], [part.strip() for part in found[2].split(",") if part.strip()]


class Names:
    """What the loops and the tensors of a program's kernels are called in the text of a schedule."""

    def __init__(self, *kernels: Kernel) -> None:
        """Number the loops over indices of one name."""
        self.loops: dict[str, Symbol] = {}
        self.tensors: Mapping[str, Tensor] = {item.name: item for kernel in kernels for item in kernel.tensors}
        self.nodes: dict[Symbol, For] = {}
        for node in (node for kernel in kernels for node in statements(kernel.body)):
            if isinstance(node, For) and node.index.name != ONCE:
                self.nodes.setdefault(node.index, node)
        often = Counter(index.name for index in self.nodes)
        met = Counter[str]()
        for index in self.nodes:
            met[index.name] += 1
            mark = f":{met[index.name]}" if often[index.name] > 1 else ""
            self.loops.setdefault(f"{index.name}_chunk{mark}", chunk_of(index))
            self.loops[f"{index.name}{mark}"] = index
        self._called = {loop: name for name, loop in self.loops.items()}

    def called(self, item: Symbol | Tensor) -> str:
        """Return the name of a loop or a tensor."""
        return self._called.get(item, item.name) if isinstance(item, Symbol) else item.name

    def text(self, schedule: Schedule) -> str:
        """Return a schedule as text."""
        return "\n".join(spell(verb, self.called) for verb in schedule.verbs)

    def read(self, text: str) -> Schedule:
        """Return the schedule of a text."""
        return Schedule(tuple(self.verb(line) for line in lines_of(text)))

    def knows(self, verb: Verb) -> bool:
        """Whether the loops that a verb names are of the program, and none that a transform has made."""
        return all(index in self._called for index in named(verb))

    def verb(self, line: str) -> Verb:
        """Return the verb of a line."""
        word, parts = word_of(line)

        def wrong() -> NoReturn:
            raise UnreadableError(f"'{line}' cannot be read; write {FORMS[word]}")

        if not parts:
            wrong()
        return _Reader(self, parts, wrong).verb(word)

    def loop(self, name: str) -> Symbol:
        """Return the loop of a name."""
        if name in self.loops:
            return self.loops[name]
        if alike := self._alike(name):
            where = ", ".join(f"'{each}' at line {self.nodes[self.loops[each]].loc.line}" for each in alike)
            raise UnreadableError(f"there are several loops over '{name}': write {where}")
        known = ", ".join(f"'{self.called(index)}'" for index in self.nodes)
        raise UnreadableError(f"there is no loop over '{name}'; there are {known}")

    def _alike(self, name: str) -> list[str]:
        return [each for each, index in self.loops.items() if index in self.nodes and each.partition(":")[0] == name]


class _Reader:
    """Reads the arguments of one verb; `wrong` refuses the line."""

    def __init__(self, names: Names, parts: list[str], wrong: Callable[[], NoReturn]) -> None:
        self.names, self.parts, self.wrong = names, parts, wrong

    def verb(self, word: str) -> Verb:
        match word:
            case "split":
                loop, size, *scaled = self.of(2, 3)
                return Split(self.loop(loop), self.number(size), self.loop(scaled[0]) if scaled else None)
            case "fuse":
                loop, *inner = map(self.loop, self.of(2, len(self.parts)))
                return Fuse(loop, tuple(inner))
            case "reorder":
                order = tuple(map(self.loop, self.of(2, len(self.parts))))
                return Reorder(order) if len({*order}) == len(order) else self.wrong()
            case "bind":
                return self.bind(*self.of(2, 3))
            case "unroll":
                return self.unroll(*self.of(2, 4))
            case "rfactor":
                return self.rfactor(*self.of(2, 3))
            case _:
                return self.contract(*self.of(4, 4 + len(CONTRACT_NOTES) + len(CONTRACT_COUNTS)))

    def of(self, least: int, most: int) -> list[str]:
        """Return the arguments, if they are as many."""
        return self.parts if least <= len(self.parts) <= most else self.wrong()

    def loop(self, name: str) -> Symbol:
        return self.names.loop(name)

    def number(self, text: str) -> int:
        return int(text) if text.isdecimal() and int(text) > 0 else self.wrong()

    def level(self, text: str) -> Level:
        return next((level for level in Level if level.value == text), None) or self.wrong()

    def bind(self, loop: str, level: str, width: str = "") -> Verb:
        at, size = self.level(level), self.number(width) if width else 0
        if bool(size) is not (at is Level.LANE) and not (size and at is Level.GRID):
            self.wrong()
        if at is Level.LANE:
            return Bind(self.loop(loop), at, size)
        return Bind(self.loop(loop), at, beside=size)

    def unroll(self, loop: str, factor: str, jam: str = "", then: str = "") -> Verb:
        if jam not in {"", "jam"}:
            self.wrong()
        return Unroll(self.loop(loop), self.number(factor), bool(jam), self.number(then) if then else 0)

    def rfactor(self, loop: str, level: str, last: str = "") -> Verb:
        at = None if level == ATOMIC else self.level(level)
        if last.isdecimal() and at is not None:
            return Rfactor(self.loop(loop), at, self.number(last))
        if not last and at in {Level.GRID, Level.WARP, Level.THREAD}:
            return Rfactor(self.loop(loop), at)
        if last not in self.names.tensors or at not in {None, Level.POOL}:
            self.wrong()
        return Rfactor(self.loop(loop), at, tensor=self.names.tensors[last])

    def contract(self, rows: str, columns: str, depth: str, sizes: str, *notes: str) -> Verb:
        height, width, staged, *more = (self.number(part) for part in sizes.split(" x "))
        groups = [tuple(map(self.loop, group.split(" x "))) for group in (rows, columns)]
        every = {*groups[0], *groups[1]}
        outermost = next(index for index in self.names.nodes if index in every)
        named = {note.partition(" ")[2]: note for note in notes}
        counts = {name: note for name, note in named.items() if name in CONTRACT_COUNTS}
        if len(more) not in {0, 2} or not {*notes} <= {*CONTRACT_NOTES, *counts.values()}:
            self.wrong()
        stages, blocks = (self.number(counts[name].split()[0]) if name in counts else 0 for name in CONTRACT_COUNTS)
        down, across = more or (0, 0)
        left, right, together = (note in notes for note in CONTRACT_NOTES)
        sides = groups[0], groups[1], self.loop(depth)
        return Contract(outermost, *sides, height, width, staged, down, across, (left, right), together, stages, blocks)
