"""A module as LLVM assembly, cut into modules of some of its functions each, that threads can compile at once.

Each part declares the functions that others define. What is internal (helpers, tables, texts) is in every part, and
LLVM leaves out what is not used. Functions that are not internal are known to all parts.
"""

from __future__ import annotations

import re

LEAST = 20_000
"""Characters of a part: fewer are compiled before a thread for them pays."""
_FUNCTION = re.compile(r"^define .*?^}$\n?", re.MULTILINE | re.DOTALL)
_INTERNAL = re.compile(r"define (internal|private) ")


def parts(text: str, most: int) -> tuple[str, ...]:
    """Return modules, `most` at most, of about the same length, that define together what a module defines."""
    functions: list[str] = _FUNCTION.findall(text)
    shared = [each for each in functions if _INTERNAL.match(each)]
    divided = sorted((each for each in functions if not _INTERNAL.match(each)), key=len, reverse=True)
    count = min(most, len(divided), sum(map(len, divided)) // LEAST)
    if count < 2:
        return (text,)
    groups: list[list[str]] = [[] for _ in range(count)]
    for each in divided:
        min(groups, key=lambda group: sum(map(len, group))).append(each)
    head = _FUNCTION.sub("", text)
    return tuple(
        "".join((head, *shared, *group, *(_declaration(each) for each in divided if each not in group)))
        for group in groups
    )


def _declaration(function: str) -> str:
    header = function.partition("\n")[0].removesuffix("{").removeprefix("define")
    return f"declare{header}\n"
