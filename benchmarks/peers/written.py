"""Kernels of k arguments, written out: systems that compile the source of a function want every argument in it.

The text becomes a module of its own in a file, as these systems read the file in which a function stands.
"""

from __future__ import annotations

import functools
import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


@functools.cache
def written(name: str, text: str) -> Callable[..., Any]:
    """Return the function `name` of a module with this text."""
    path = Path(_folder().name) / f"{name}_{abs(hash(text)):x}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"benchmarks_written_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="brickwork_peers_")


def names(count: int) -> list[str]:
    """Return the names of `count` arguments."""
    return [f"x{at}" for at in range(count)]
