"""Bad operators and what the user is told of them: one file for each code in `tests/errors/cases`.

A file holds cases, each the source of a module and, below a line of dashes, the exact text of the error or warning that
running it gives. `HEAD` stands before every source. As a command, this writes the texts and the pages of `docs/errors`
anew: look at what changed before committing it.
"""

from __future__ import annotations

import contextlib
import linecache
import warnings
from dataclasses import dataclass
from pathlib import Path

import brickwork as bw
from brickwork.diagnostics.catalogue import CATALOGUE
from brickwork.runtime import cache

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "errors" / "cases"
PAGES = ROOT / "docs" / "errors"
HEAD = "import torch\nimport brickwork as bw\n\n\n"
FILE = "model.py"
_BETWEEN = "\n" + "=" * 40 + "\n"
_SAYS = "\n" + "-" * 40 + "\n"


@dataclass(frozen=True, slots=True)
class Case:
    """The source of a bad operator, and what the user is told."""

    code: str
    source: str
    text: str


def cases(code: str) -> list[Case]:
    """Return the cases of a code."""
    found: list[Case] = []
    for part in (CASES / f"{code}.txt").read_text(encoding="utf-8").split(_BETWEEN):
        source, _, text = part.strip("\n").partition(_SAYS)
        found.append(Case(code, source, text))
    return found


def codes() -> list[str]:
    """Return the codes that have cases."""
    return sorted(path.stem for path in CASES.glob("*.txt"))


def told(case: Case) -> str:
    """Run a case; return what the user is told."""
    source = HEAD + case.source + "\n"
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    cache.forget()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", bw.BrickworkWarning)
        said: list[str] = []
        try:
            exec(compile(source, FILE, "exec"), {"__name__": "model"})
        except bw.CompileError as error:
            said.append(str(error).lstrip("\n"))
        own = [item for item in warned if issubclass(item.category, bw.BrickworkWarning)]
        said += [warnings.formatwarning(each.message, each.category, each.filename, each.lineno) for each in own]
    with contextlib.suppress(KeyError):
        del linecache.cache[FILE]
    return "\n\n".join(said).strip()


def page(code: str) -> str:
    """Return the page of a code."""
    rule = CATALOGUE[code]
    parts = [f"# {code}: {rule.title}", rule.explanation]
    for case in cases(code):
        parts += [f"```\n{case.source}\n```", f"```\n{case.text}\n```"]
    return "\n\n".join(parts) + "\n"


def index() -> str:
    """Return the page that lists all codes."""
    lines = [f"| [{code}]({code}.md) | {rule.title} |" for code, rule in CATALOGUE.items()]
    head = (
        "# What brickwork says\n\n"
        "Each message has a code, which keeps its meaning. How to read one: [errors](../guide/errors.md). Made by"
        " `make errors` from the catalogue and from the cases in `tests/errors/cases`, before each of which stands\n\n"
        f"```\n{HEAD.strip()}\n```\n\n| code | |\n|---|---|\n"
    )
    return head + "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Return all pages by file name."""
    return {"index.md": index(), **{f"{code}.md": page(code) for code in codes()}}


def write() -> None:
    """Write the texts of all cases, and all pages."""
    for code in codes():
        parts = [f"{case.source}{_SAYS}{told(case)}" for case in cases(code)]
        (CASES / f"{code}.txt").write_text(_BETWEEN.join(parts) + "\n", encoding="utf-8")
    PAGES.mkdir(exist_ok=True)
    for path in PAGES.glob("*.md"):
        path.unlink()
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
