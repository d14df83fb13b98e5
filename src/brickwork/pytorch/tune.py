"""`op.tune`: measures an operator by its default schedule and by others, and tells which is fastest.

A schedule counts only if it gives the bits of the default, on these arguments as well as by proof. It stands in for the
default only if it is faster by more than what two runs of the same code differ by.
"""

from __future__ import annotations

import hashlib
import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias, cast

import torch

from brickwork.codegen.entry_description import Sizes
from brickwork.codegen.rounding import Rounding
from brickwork.config import config
from brickwork.frontend.definition import Definition
from brickwork.ir.signature import Signature
from brickwork.pytorch.arguments import signature_of_call
from brickwork.pytorch.gate import ArgumentKind
from brickwork.pytorch.register import DEFAULT
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.records import dataclass
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.compile import Compilation
from brickwork.runtime.tuned import recall, remember
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined

Call: TypeAlias = Callable[[], object]
Measure: TypeAlias = Callable[[Sequence[Call]], Sequence[float]]
"""Returns the seconds that each of some calls takes."""
MOST = 8
"""Most schedules that are measured beside the default."""
GAIN = 0.05
"""The part of its time that another schedule must save: twice the spread of least times on a quiet machine."""
ROUNDS = 9
"""Samples of each schedule, taken in turns: the least of so many is steady."""
_DIGITS = 12
"""Hexadecimal digits that tell schedules apart in names."""
SAMPLE = 0.002
"""Least seconds of a sample."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What `op.tune` found: seconds of one call by each schedule, the default (an empty text) first."""

    name: str
    signature: Signature
    sizes: Sizes
    seconds: Mapping[str, float]
    chosen: str

    def __str__(self) -> str:
        """Return a table, fastest first, with the chosen schedule marked."""
        lines = [f"{self.name} for sizes {', '.join(map(str, self.sizes))}; no schedule changes a bit of the result"]
        for text, seconds in sorted(self.seconds.items(), key=lambda item: item[1]):
            mark = "*" if text == self.chosen else " "
            lines.append(f"{mark} {seconds * 1e6:10.1f} us  {'; '.join(text.splitlines()) or 'the default'}")
        return "\n".join(lines)


@dataclass(slots=True)
class Tuner:
    """Tunes one operator. `by` returns it under a name by a schedule, and `given` is the user's, if there is one."""

    name: str
    definition: Definition
    rounding: Rounding
    target: Callable[[], Target]
    compile: Callable[[Defined, Signature, None, str, Sizes], Compilation]
    by: Callable[[str, str], Callable[..., Any]]
    kinds: Callable[[str], tuple[ArgumentKind, ...]]
    given: str = ""
    tried: dict[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])

    def refuse(self, values: Sequence[Any], out: object, device: object) -> None:
        """Raise ValueError where there is nothing to measure."""
        reason = ""
        if self.definition.host == "python":
            reason = "its host part runs in Python"
        elif self.given:
            reason = "it was given a schedule"
        elif config.check == "interpret":
            reason = "operators run in the interpreter"
        elif out is not None or device is not None:
            reason = "pass the arguments alone, without out= and device="
        elif any(item.device.type != "cpu" or item.is_meta for item in tensors_of(values)):
            reason = "schedules are for processors, and these tensors are elsewhere"
        if reason:
            raise ValueError(f"{self.name} cannot be tuned: {reason}")

    def signature(self, values: Sequence[Any]) -> Signature:
        """Return the signature of a call on a processor."""
        return signature_of_call(self.definition, self.kinds(DEFAULT), values, "cpu")

    def note(self, values: Sequence[Any], out: object) -> str:
        """Return what is to be said besides of a call: that it runs by a schedule that was measured, if it does."""
        here = values and out is None and all(item.device.type == "cpu" for item in tensors_of(values))
        if not here or self.given or self.definition.host == "python":
            return ""
        random = [None] * (len(self.kinds(DEFAULT)) - len(values))
        known = recall(self.definition, self.signature([*values, *random]), self.target(), self.rounding)
        schedule = known.get(_sizes(values), "")
        head = "\nop.tune found a faster schedule for tensors of these sizes, with the same bits:"
        return "\n  ".join((head, *schedule.splitlines())) if schedule else ""

    def tune(self, values: Sequence[Any], measure: Measure | None = None) -> Tuning:
        """Measure the schedules for a call, and remember the fastest one."""
        signature = self.signature(values)
        program = importlib.import_module("brickwork.transform.derive").program_of(self.definition, signature)
        tuning = importlib.import_module("brickwork.transform.tuning")
        schedules: list[str] = tuning.schedules_to_try(program, self.target())
        names = [item.name for item in self.definition.parameters]
        written = [place for place, item in enumerate(names) if item in self.definition.mutated]
        random = {"key": values[-1]} if len(values) > len(names) else {}
        runs = {text: partial(self.runs(text), **random) for text in ("", *schedules[:MOST])}
        given = values[: len(names)]
        expected = _left(runs[""], _fresh(given, written), written)
        same = [text for text in runs if not text or _left(runs[text], _fresh(given, written), written) == expected]
        calls = [_call(runs[text], _fresh(given, written)) for text in same]
        seconds = dict(zip(same, (measure or in_turn)(calls), strict=True))
        best = min(seconds, key=lambda text: seconds[text])
        chosen = best if seconds[best] < (1 - GAIN) * seconds[""] else ""
        found = Tuning(self.name, signature, _sizes(values), seconds, chosen)
        where = self.definition, signature, self.target(), self.rounding
        remember(*where, sizes=found.sizes, schedule=chosen)
        return found

    def runs(self, schedule: str) -> Callable[..., Any]:
        """Return the operator by a schedule; the same one each time."""
        if schedule not in self.tried:
            mark = hashlib.sha256(schedule.encode()).hexdigest()[:_DIGITS]
            self.tried[schedule] = self.by(f"{self.name}__by_{mark}", schedule)
        return self.tried[schedule]

    def for_sizes(self, signature: Signature) -> list[Artifact]:
        """Return the code of schedules that were found to be fastest for some sizes."""
        known = {} if self.given else recall(self.definition, signature, self.target(), self.rounding)
        made = (self.compile(self.definition, signature, None, text, sizes) for sizes, text in known.items())
        return [each.artifact for each in made]


def _sizes(values: Sequence[Any]) -> Sizes:
    return tuple(tuple(item.shape) for item in tensors_of(values))


def in_turn(calls: Sequence[Call], clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Return the least seconds of each call, measured turn by turn, so that all meet the same disturbances."""
    often: list[int] = []
    for call in calls:
        call()
        begin = clock()
        call()
        often.append(max(1, round(SAMPLE / max(clock() - begin, 1e-9))))
    least = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for place, call in enumerate(calls):
            begin = clock()
            for _ in range(often[place]):
                call()
            least[place] = min(least[place], (clock() - begin) / often[place])
    return least


def _call(function: Callable[..., Any], arguments: Sequence[Any]) -> Call:
    def call() -> object:
        with torch.no_grad():
            return function(*arguments)

    return call


def _fresh(arguments: Sequence[Any], written: Sequence[int]) -> list[Any]:
    """Return the arguments with copies, of the same strides, of what is stored into."""
    return [_copy(item) if place in written else item for place, item in enumerate(arguments)]


def _copy(item: Any) -> Any:
    if not isinstance(item, torch.Tensor):
        return [_copy(each) for each in cast("Sequence[object]", item)] if isinstance(item, list | tuple) else item
    return torch.empty_strided(item.shape, item.stride(), dtype=item.dtype).copy_(item.detach())


def _left(function: Callable[..., Any], arguments: Sequence[Any], written: Sequence[int]) -> list[bytes]:
    """Return the bits of the results of a call, and of what it has stored into."""
    with torch.no_grad():
        results = function(*arguments)
    return [*map(_bits, tensors_of([results, *(arguments[place] for place in written)]))]


def _bits(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
