"""The first call of an operator on a GPU with a cold and with a warm cache, each in a process of its own."""

from __future__ import annotations

import tempfile

from benchmarks.contenders import Progress
from benchmarks.first_call import seconds_of
from brickwork.bench.record import Case
from brickwork.bench.timers import summary

_PROGRAM = """
import time, torch
from brickwork import ops
x = {arguments}
(torch.empty(2, device="cuda") * 2).sum().item()
start = time.perf_counter()
ops.{name}(*x)
torch.cuda.synchronize()
print(time.perf_counter() - start)
"""
_OPERATORS = {
    "sin": '(torch.randn(16, device="cuda"),)',
    "timex": '(torch.randn(2, 8, device="cuda"), torch.randn(2, 2, 8, device="cuda"), 0.1)',
    "sample_normal": '(torch.randn(4, device="cuda"), torch.rand(4, device="cuda"), 8)',
}
COLD, WARM = 0.35, 0.03


def cases(progress: Progress, *, rounds: int = 3) -> list[Case]:
    """Return the first calls, cold and warm."""
    return [case for name in _OPERATORS for case in _cases(name, rounds, progress)]


def _cases(name: str, rounds: int, progress: Progress) -> list[Case]:
    program = _PROGRAM.format(name=name, arguments=_OPERATORS[name])
    seconds: dict[str, list[float]] = {"cold": [], "warm": []}
    for number in range(rounds):
        progress(f"first call of {name}: round {number + 1} of {rounds}")
        with tempfile.TemporaryDirectory() as folder:
            for passed in seconds.values():
                passed.append(seconds_of(program, folder))
    found: list[Case] = []
    for state, limit in (("cold", COLD), ("warm", WARM)):
        found.append(
            Case(
                title=f"first call of {name}, {state} cache",
                timings={"brickwork": summary(seconds[state], 1)},
                reference="brickwork",
                target=f"{limit} s",
                device="cuda",
                at_most=limit,
            )
        )
    return found
