"""Findings as files: a Python module with the program, its arguments, and what was seen; and back to a case.

`python -m tests.fuzz --replay FILE` examines the case in such a file again.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from support.fuzz.case import Argument, Case, NumberArgument, TensorArgument

_MARK = "# The arguments of `generated`, for `python -m tests.fuzz --replay`."


def write(case: Case, folder: Path, kind: str, text: str) -> Path:
    """Write a case down with what was seen; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    words = "-".join("".join(letter if letter.isalnum() else " " for letter in kind).split())
    path = folder / f"{words}-{case.seed}.py"
    comment = "\n".join(f"# {line}".rstrip() for line in f"seed {case.seed}: {text}".splitlines())
    arguments = "".join(f"    {item!r},\n" for item in case.arguments)
    path.write_text(
        f"{case.source}\n\n{_MARK}\nARGUMENTS = (\n{arguments})\nSEED = {case.seed}\n\n{comment}\n", encoding="utf-8"
    )
    return path


def read(path: Path) -> Case:
    """Return the case of a file."""
    source, _, rest = path.read_text(encoding="utf-8").partition(_MARK)
    arguments, seed = (item.value for item in ast.parse(rest).body if isinstance(item, ast.Assign))
    assert isinstance(arguments, ast.Tuple)
    return Case(source.rstrip() + "\n", tuple(map(_argument, arguments.elts)), ast.literal_eval(seed))


def _argument(node: ast.expr) -> Argument:
    assert isinstance(node, ast.Call)
    fields: dict[str, Any] = {item.arg or "": ast.literal_eval(item.value) for item in node.keywords}
    return TensorArgument(**fields) if "dtype" in fields else NumberArgument(**fields)
