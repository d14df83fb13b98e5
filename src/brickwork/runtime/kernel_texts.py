"""The texts of an operator's device kernels, each a module of its own, as one text that can be read and edited."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HEAD = re.compile(r"^(?:;|//) kernel (\w+)\n", re.MULTILINE)
"""A comment of LLVM's assembly or of PTX."""


def joined(modules: Mapping[str, str], comment: str) -> str:
    """Return the modules of kernels, each under a comment with its name.

    >>> print(joined({"a": "x", "b": "y"}, ";"), end="")
    ; kernel a
    x
    ; kernel b
    y
    """
    return "".join(f"{comment} kernel {name}\n{text.strip()}\n" for name, text in modules.items())


def separated(text: str) -> dict[str, str]:
    """Return the modules of kernels by name.

    >>> separated(joined({"a": "x", "b": "y"}, "//"))["b"].strip()
    'y'
    """
    _, *parts = _HEAD.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))
