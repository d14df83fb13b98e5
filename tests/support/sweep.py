"""Which of many parameters a test takes each time: a sample. The others run with `pytest -m sweep`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest


def sampled(cases: Iterable[Any], every: int = 2) -> list[Any]:
    """Return cases as parameters, of which each so many-th runs always; tuples are several arguments.

    Of a product of lists take a number that has no common divisor with their lengths: each item comes up then.
    """
    arguments = (cast("tuple[Any, ...]", case) if isinstance(case, tuple) else (case,) for case in cases)
    return [pytest.param(*each, marks=pytest.mark.sweep if at % every else ()) for at, each in enumerate(arguments)]
