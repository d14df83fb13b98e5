"""What a run of the questions shows in a terminal: a bar over its tables, what is being measured, the time left.

rich enters here. Where the output is no terminal, tables and messages are printed, and no bar.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from brickwork.bench import views

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID


class Display:
    """A bar over tables, with what is being done beside it; what is printed stands above."""

    def __init__(self, progress: Progress, bar: TaskID) -> None:
        """Keep the bar, which `shown` makes."""
        self._progress, self._bar = progress, bar
        self._done = 0

    def tell(self, text: str) -> None:
        """Say what is being done."""
        self._progress.update(self._bar, description=text)

    def advance(self, part: float) -> None:
        """Say how much of the table is done, from 0 to 1."""
        self._progress.update(self._bar, completed=self._done + min(1.0, part))

    def finish(self) -> None:
        """Count the table as done, whether it was measured or not."""
        self._done += 1
        self._progress.update(self._bar, completed=self._done)

    def print(self, what: RenderableType, style: str = "") -> None:
        """Print above the bar: text, in which no markup is looked for, or what rich prints."""
        text = isinstance(what, str)
        self._progress.console.print(what, style=style or None, highlight=False, markup=False, soft_wrap=text)


@contextmanager
def shown(tables: int) -> Generator[Display]:
    """Show a bar for as many tables while the block runs."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    console = views.console()
    columns = (
        SpinnerColumn(),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden, speed_estimate_period=3600) as progress:
        yield Display(progress, progress.add_task("", total=tables))
