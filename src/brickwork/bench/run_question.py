"""Asking a question: its tables are measured one by one, and one that fails does not hide the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from brickwork.bench.plan import why
from brickwork.bench.question import Question, Run
from brickwork.bench.question_results import Findings
from brickwork.bench.table import Table

LOST = "the context of the GPU is lost: what has not run needs a process of its own"


def ask(question: Question, run: Run, begin: Callable[[str], None]) -> Iterator[tuple[Findings, Table | None]]:
    """Measure a question's tables; after each return all that was found so far, and the new table if there is one.

    `begin` is told the name of each table before it is measured.
    """
    found = Findings(question=question.name, asks=question.asks)
    lost = False
    for name, measure in question.tables(run).items():
        begin(name)
        table = LOST if lost else _measured(measure)
        if isinstance(table, str):
            found = replace(found, failures={**found.failures, name: table})
            yield found, None
        else:
            found = replace(found, tables={**found.tables, name: table})
            yield found, table
        lost = lost or (run.device == "cuda" and not _gives_memory_back())


def _measured(measure: Callable[[], Table]) -> Table | str:
    """Return the table, or in one line that and why there is none."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001  # one table that fails does not hide the others
        return why(error)


def _gives_memory_back() -> bool:
    """Give the memory of a GPU back that nothing uses any more; return whether the GPU still answers."""
    device: Any = torch.cuda
    try:
        device.synchronize()
        device.empty_cache()
    except RuntimeError:
        return False
    return True
