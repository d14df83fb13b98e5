"""What the GPU's benchmarks share: contenders that may be absent, wrong or failing, and the comparison as a case."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from types import ModuleType

import torch

from brickwork.bench import answers
from brickwork.bench.device_timers import measure
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

Progress = Callable[[str], None]


def triton() -> ModuleType | None:
    """Return the contenders in Triton, or None where it is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    return importlib.import_module("benchmarks.peers.triton_loops")


def compare(
    title: str,
    contenders: dict[str, Call],
    *,
    reference: str,
    progress: Progress,
    target: str = "",
    at_most: float = 0.0,
    as_fast_as: str = "",
    moved: int = 0,
    same: bool = True,
    rounds: int = 50,
) -> Case:
    """Time the contenders and return the case; `same` asks that they compute the same numbers as the reference.

    brickwork may take `at_most` seconds, or as long as the contender `as_fast_as` did.
    """
    progress(title)
    notes = differing(contenders, reference) if same else {}
    kept = {name: call for name, call in contenders.items() if name == "brickwork" or name not in notes}
    found = measure(kept, rounds=rounds)
    notes |= {name: f"failed: {why}" for name, why in found.failures.items()}
    if not found.timings:
        raise RuntimeError("; ".join(f"{name}: {why}" for name, why in notes.items()))
    chosen = reference if reference in found.timings else next(iter(found.timings))
    if as_fast_as in found.timings:
        at_most = found.timings[as_fast_as].median
    return Case(
        title=title,
        timings=found.timings,
        reference=chosen,
        target=target,
        notes=notes,
        device="cuda",
        at_most=at_most,
        moved=moved,
    )


def gathered(makers: dict[str, Callable[[], Case]]) -> list[Case]:
    """Return the case of each maker; of one that fails, a case without timings that says why."""
    found: list[Case] = []
    for title, make in makers.items():
        torch._dynamo.reset()  # noqa: SLF001  # the compiler keeps only so many variants of one function
        try:
            found.append(make())
        except Exception as error:  # noqa: BLE001  # one case that fails does not hide the others
            why = f"{type(error).__name__}: {error}".strip().splitlines()[0]
            found.append(Case(title=title, timings={}, reference="", notes={"failed": why}, device="cuda"))
    return found


def differing(contenders: dict[str, Call], reference: str) -> dict[str, str]:
    """Return the contenders whose results are not the reference's, and by how much."""
    expected = answers.kept(contenders[reference]())
    wrong: dict[str, str] = {}
    for name, call in contenders.items():
        try:
            words = answers.difference(answers.kept(call()), expected, None)
        except Exception as error:  # noqa: BLE001  # one contender that fails does not hide the others
            wrong[name] = f"failed: {type(error).__name__}: {error}".splitlines()[0]
            continue
        if words:
            wrong[name] = f"{words} from {reference}"
    return wrong
