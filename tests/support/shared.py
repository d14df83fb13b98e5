"""Steps of the compiler whose results tests share: what they return is data, and tests ask for the same again.

A call with the same objects gives what it gave before, as long as `monkeypatch` has put the same in place. The newest
results are kept. What else patches a part of a test is not seen, so campaigns of random programs use the steps
themselves; and so do tests that look at warnings, which come with the first call alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from brickwork.analysis import isl
from brickwork.frontend import definition
from brickwork.frontend import lower as lowering
from brickwork.ir import verify
from brickwork.ir.nodes import Program
from brickwork.transform import derive as derivation
from brickwork.transform import pipeline

if TYPE_CHECKING:
    import pytest

KEPT = 64
"""Results of each step: more than tests of one function, with all their parameters, ask for."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_patches: list[pytest.MonkeyPatch] = []
"""That of the test that runs, if it has one."""


def begin(patches: list[pytest.MonkeyPatch]) -> None:
    """Note what the test that begins may have patched."""
    _patches[:] = patches


class _Same:
    """Stands for an object alone, and keeps it."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


def _patched() -> tuple[Hashable, ...]:
    """Return what stands in place of something else now; pytest has no public name for what it was."""
    changes = [item for each in _patches for item in vars(each)["_setattr"]]
    return tuple((_Same(target), name, _Same(getattr(target, name, None))) for target, name, _ in changes)


def shared(step: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a step that remembers its newest results."""
    known: OrderedDict[Hashable, _R] = OrderedDict()

    @wraps(step)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _R:
        alone = (_Same(item) if isinstance(item, Program | definition.Definition) else item for item in arguments)
        key = (tuple(alone), tuple(sorted(named.items())), _patched())
        try:
            hash(key)
        except TypeError:
            return step(*arguments, **named)
        known[key] = found = known.pop(key) if key in known else step(*arguments, **named)
        if len(known) > KEPT:
            known.popitem(last=False)
        return found

    return call


define = shared(definition.define)
lower = shared(lowering.lower)
derive = shared(derivation.derive)
schedule_program = shared(pipeline.schedule_program)
verify_program = shared(verify.verify_program)

ANSWERS = 1 << 16
"""Answers of isl that are kept: kernels of many tests ask the same."""


def keep_answers() -> None:
    """Keep what isl says of sets for all of a run: it knows nothing but their text."""
    for name in ("_left_over", "_is_feasible", "_parameters_where", "_sample"):
        setattr(isl, name, lru_cache(ANSWERS)(getattr(isl, name).__wrapped__))
