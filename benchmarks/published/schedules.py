"""What is launched for each published operator, a line for each size and direction, beside what was launched before.

`schedules.txt` has the lines of the tree that it is committed with. They are those of a GPU that need not be here, for
tensors without data. A line has a word for each nest that runs, of a letter for each loop, and then each kernel with
its blocks and the threads of one: it moves where another version of a kernel runs, or the one with all checks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from benchmarks.published import PUBLISHED
from benchmarks.published.operator import Published, Size
from benchmarks.published.worker import FORWARD, GRADIENT

KEPT = Path(__file__).with_name("schedules.txt")
DEVICE = "sm_90"
SIZES: tuple[Size, ...] = ("small", "large")
_LEVELS = {"one thread": "t", "a block": "b", "shared out": "s", "in order": "o"}
"""The letter of a loop, by how it is said to run; `-` for others."""
_CHECKED = "since what is tested below does not hold"


def lines_of(name: str) -> list[str]:
    """Return the lines of an operator."""
    each = next(item for item in PUBLISHED if item.name == name)
    ways = (FORWARD, GRADIENT) if each.gradient else (FORWARD,)
    return [f"{name}, {size}, {way}: {summary(_explained(each, size, way))}" for way in ways for size in SIZES]


def _explained(each: Published, size: Size, direction: str) -> str:
    arguments = each.arguments(size, "meta")
    if direction == FORWARD:
        return each.op.explain(*arguments, device=DEVICE)
    asked = [key in each.gradient for key in inspect.signature(cast("Any", each.op)).parameters]
    made = (
        value.detach().requires_grad_() if wanted else value for value, wanted in zip(arguments, asked, strict=True)
    )
    return each.op.explain("backward", *made, device=DEVICE)


def summary(text: str) -> str:
    """Return an explanation as a line: the nests that run of each kernel, and what is launched."""
    sections = re.split(r"^(?:kernel |launches )", text, flags=re.MULTILINE)[1:]
    return " | ".join(filter(None, (*map(_nests, sections[:-1]), ", ".join(_launches(sections[-1])))))


def _nests(section: str) -> str:
    """Return a word for each nest of a kernel that runs; in capitals where all is checked."""
    taken, loops = True, list[tuple[int, str]]()
    for line in section.splitlines():
        choice = re.match(r"  (?:if .*|else if .*|else) \((not )?taken\):", line)
        loop = re.match(r"( +)for .* at .*?:\d+: (.*)", line)
        if choice is not None:
            taken = choice[1] is None
        elif loop is not None and taken:
            level = next((short for long, short in _LEVELS.items() if loop[2].startswith(long)), "-")
            several = re.search(r"for (?:up to )?(\d+) ", loop[2])
            loops.append((len(loop[1]), level + ("" if several is None else several[1])))
    outer = min((indent for indent, _ in loops), default=0)
    words = "".join(f"{' ' * (indent == outer)}{level}" for indent, level in loops).strip()
    return words.upper() if _CHECKED in section else words


def _launches(section: str) -> Iterator[str]:
    """Yield what is launched, by the names of kernels without the numbers that they end in."""
    for line in section.splitlines()[1:]:
        name, _, said = line.strip().partition(": ")
        size = re.sub(r" blocks? of (.*?) threads?", r" x \1", said)
        yield f"{re.sub('_[0-9]+$', '', name)} {size}".strip()


def compared(names: Sequence[str], jobs: int, *, write: bool = False) -> list[str]:
    """Return how the lines of operators differ from those that are kept, which are written anew where that is asked."""
    before = KEPT.read_text().splitlines() if KEPT.exists() else []
    chosen = [each.name for each in PUBLISHED if not names or each.name in names]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as processes:
        now, told = moved(before, dict(zip(chosen, processes.map(lines_of, chosen), strict=True)))
    if write:
        KEPT.write_text("\n".join((*now, "")))
    return told


def moved(before: Sequence[str], found: Mapping[str, list[str]]) -> tuple[list[str], list[str]]:
    """Return the lines with those that were found for some operators, and how they differ from those before."""
    kept = {each.name: [line for line in before if line.startswith(f"{each.name}, ")] for each in PUBLISHED}
    now = [line for each in PUBLISHED for line in found.get(each.name, kept[each.name])]
    return now, [*unified_diff(before, now, "kept", "now", n=0, lineterm="")]
