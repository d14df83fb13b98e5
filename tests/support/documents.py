"""The documents and the blocks of code in them; what runs them is in `tests/torch/test_documents.py`."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCED = re.compile(r'^```(\w*)(?: title="(\w+)")?\n(.*?)^```\n', re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}.*\n(?:\n+(?= {4}))?)+", re.MULTILINE)
_ACTS = (ast.Call, ast.Assign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.For, ast.With)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code in a document."""

    language: str
    """What stands behind the fence; "" for a plain or an indented block."""
    title: str
    """The system that a program is for, if it is another one."""
    text: str

    @property
    def python(self) -> bool:
        """Return whether this is Python, marked as such or not."""
        return self.language == "python" or (not self.language and _acts(self.text))


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a document in their order, the indented ones last."""
    text = path.read_text(encoding="utf-8")
    fenced = [Block(*found) for found in _FENCED.findall(text)]
    indented = [Block("", "", textwrap.dedent(found)) for found in _INDENTED.findall(_FENCED.sub("\n", text))]
    return [*fenced, *indented]


def program(path: Path) -> str:
    """Return the program that a document's blocks of Python make up."""
    return "\n".join(block.text for block in blocks(path) if block.language == "python" and not block.title)


def outputs(path: Path) -> list[str]:
    """Return the plain blocks that stand right behind one of Python: what that prints."""
    follows = re.compile(r"^```python\n.*?^```\n\n+```\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
    return follows.findall(path.read_text(encoding="utf-8"))


def prose(path: Path) -> str:
    """Return a document without its fenced blocks."""
    return _FENCED.sub("", path.read_text(encoding="utf-8"))


def _acts(text: str) -> bool:
    """Return whether a text is Python that does something: a diagram or a table hardly ever is."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, _ACTS) for node in ast.walk(tree))
