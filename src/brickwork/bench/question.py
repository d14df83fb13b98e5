"""What a set of benchmarks answers: questions, each of several tables, and how a run of them is asked for.

The questions of brickwork are in the repository, `benchmarks/questions.py`; `python -m brickwork bench` asks them.
Each table of a question is made by a function of its own, so that one that fails does not hide the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from brickwork.bench.plan import Options
from brickwork.bench.table import Table
from brickwork.records import dataclass

Device: TypeAlias = Literal["cpu", "cuda"]
Parts: TypeAlias = Mapping[str, Callable[[], Table]]
"""The tables of a question by a short name, in order; each is measured when it is called."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How the questions are asked."""

    device: Device = "cpu"
    peers: frozenset[str] | None = None
    """The peers beside PyTorch itself that are wanted; None: all that are installed."""
    progress: Callable[[str], None] | None = None
    """What is told what is being done."""
    advance: Callable[[float], None] | None = None
    """What is told how much of a table is done, from 0 to 1."""
    seconds: float = 0.5
    """About how long to measure a contender for one value of x."""
    small: bool = False
    """Whether the sizes are those of tests: it shows that everything runs, and measures nothing."""

    @property
    def how(self) -> Options:
        """What `compare` and `Benchmark.run` are told: `compare(..., **run.how)`."""
        return Options(
            device=self.device,
            seconds=self.seconds,
            precision=math.inf if self.small else 0.01,
            roofline=not self.small,
            progress=self.progress,
            advance=self.advance,
        )

    def wants(self, peer: str) -> bool:
        """Whether a peer is asked for."""
        return self.peers is None or peer in self.peers

    def pick(self, full: _T, small: _T) -> _T:
        """Return the sizes that are measured, or those of tests."""
        return small if self.small else full

    def watched(self, progress: Callable[[str], None], advance: Callable[[float], None]) -> Run:
        """Return the same run, which tells these what it does."""
        return replace(self, progress=progress, advance=advance)

    def tell(self, text: str) -> None:
        """Say what is being done, where it is not `compare` that does."""
        if self.progress is not None:
            self.progress(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that tables answer."""

    name: str
    """As the command line has it."""
    asks: str
    """The question, a sentence."""
    tables: Callable[[Run], Parts]
    devices: tuple[Device, ...] = ("cpu", "cuda")
    """Where it can be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The questions that can be asked, by name, and the peers."""

    questions: Mapping[str, Question]
    peers: tuple[str, ...] = ()
    absent: Callable[[str], Mapping[str, str]] = lambda _device: {}
    """Returns the peers that are not there for a device, and why."""
    records: Path | None = None
    """Where the records are kept from which documents are made, in a folder for each kind of machine."""
