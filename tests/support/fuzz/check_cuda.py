"""What must hold of every case on a GPU: it gives what Python gives, or fails where Python does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import brickwork as bw
from brickwork.config import config
from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.lower import lower
from brickwork.frontend.reference import python_function as in_python
from support.fuzz.case import Case
from support.fuzz.check import FoundError, agreed_outcome, compare, is_small
from support.fuzz.check_torch import end_if_lost
from support.fuzz.execute import Outcome, operator_of, outcome, signature_of
from support.fuzz.guarded import GuardedDevice


def examine_on_cuda(case: Case, folder: Path) -> Counter[str]:
    """Run a case on the GPU; return what it was, or raise FoundError."""
    seen: Counter[str] = Counter(programs=1)
    try:
        definition = define(case.function(folder))
        program = lower(definition, signature_of(case, may_alias=case.shares))
    except CompileError:
        seen["refused"] += 1
        return seen
    expected = outcome(in_python(definition), case)
    seen[f"fails with {expected.failure.__name__}" if expected.failure else "succeeds"] += 1
    agreed = agreed_outcome(case, program, expected, seen) if is_small(expected, case) else None
    if agreed is None:
        return seen
    expected = agreed
    try:
        found = outcome_on_gpu(case, definition)
    except RaceError as error:
        if not case.claims:
            raise FoundError("refused without a claim", str(error)) from None
        seen["claims refuted"] += 1
        return seen
    compare("GPU", found, expected, case)
    seen["compared"] += 1
    seen["IndexErrors agreed upon"] += expected.failure is IndexError
    return seen


def outcome_on_gpu(case: Case, definition: Definition) -> Outcome:
    """Return how a case's operator ends on the GPU; the process ends if the GPU is lost to it."""
    try:
        with config.override(cache_size=0):
            operator = operator_of(definition)
            return _on_cpu(outcome(_waiting(operator), case, GuardedDevice(f"cuda:{torch.cuda.current_device()}")))
    except RaceError:
        raise
    except Exception:
        end_if_lost("cuda")
        raise


def _waiting(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs an operator on the GPU and waits for its failures."""

    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return operator(*arguments, **named)
        finally:
            bw.check_errors()

    return run


def _on_cpu(found: Outcome) -> Outcome:
    def fetch(tensors: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return tuple(item.cpu() for item in tensors)

    return Outcome(found.failure, found.words, fetch(found.memory), fetch(found.results), found.outside)
