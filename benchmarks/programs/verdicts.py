"""What `explain` says of each loop, in one word a line of the source."""

from __future__ import annotations

import re

_LOOP = re.compile(r" *for \S+ at .*?:(?P<line>\d+)(?::\d+)?: (?P<how>.*)")


def verdicts(explanation: str) -> dict[int, str]:
    """Return the verdict of each loop by its line in the source; of loops that were made of one line, all of theirs."""
    found: dict[int, set[str]] = {}
    lines = explanation.split("\n")
    for place, text in enumerate(lines):
        if match := _LOOP.fullmatch(text):
            more = [line.strip() for line in _below(lines, place)]
            found.setdefault(int(match["line"]), set()).add(_verdict(match["how"], more))
    return {line: words.pop() if len(words) == 1 else "distributed" for line, words in sorted(found.items())}


def _below(lines: list[str], place: int) -> list[str]:
    """Return the lines about a loop itself: those after its own, up to the next loop."""
    depth = len(lines[place]) - len(lines[place].lstrip())
    found: list[str] = []
    for text in lines[place + 1 :]:
        if _LOOP.fullmatch(text) or len(text) - len(text.lstrip()) <= depth:
            break
        found.append(text)
    return found


def _verdict(how: str, more: list[str]) -> str:
    if "diagonal" in how or any(text.startswith("its diagonals") for text in more):
        return "wavefront"
    if how.startswith("in pieces"):
        return "copies"
    if how != "in order":
        return "reduction" if any(text.startswith("partial results") for text in more) else "parallel"
    if any(text.startswith("since it accumulates") for text in more):
        return "reduction"
    refused = any(text.startswith(("because", "since arguments may share")) for text in more)
    return "in order" if refused else "parallel"
