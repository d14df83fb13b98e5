"""The sine of 4096 x N floats, which memory limits; and torch's own sine, as it is and with brickwork in its place.

Before and after overriding are measured one after the other in one process: an override holds for all that runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import brickwork as bw
from benchmarks.lineup import compiled, lineup, paced
from benchmarks.targets import Target, reaching
from brickwork import bench, ops
from brickwork.bench.question import Parts, Run
from brickwork.bench.timers import Call

ROWS = 4096
WIDTHS = (256, 512, 1024, 2048, 4096, 8192, 12672)
OVERRIDDEN = (256, 1024, 4096, 12672)
FEW = {"cpu": 16, "cuda": 1024}
"""So many floats that a call costs what the host makes of it."""
APART = 1e-6
"""How far sines may be apart; both are correct to about the last digit of a float32."""


def tables(run: Run) -> Parts:
    """Return the rates over N, those before and after overriding, and what a small call costs then."""
    return {"rate": lambda: rate(run), "overridden": lambda: overridden(run), "call": lambda: call(run)}


def rate(run: Run) -> bench.Table:
    """Measure the sine into a given tensor, beside copying."""
    rows = run.pick(ROWS, 16)

    def contenders(width: int) -> dict[str, Call]:
        x = torch.randn(rows, width, device=run.device)
        out = torch.empty_like(x)
        ours: dict[str, Call] = {"brickwork": lambda: ops.sin(x, out=out)}
        return {**lineup(run, "sin", x, out, ours=ours), "copy_": lambda: out.copy_(x)}

    table = bench.compare(
        contenders,
        run.pick(WIDTHS, (16, 32)),
        "GB/s",
        x_name="N",
        title=f"sin of {rows} x N floats, into a given tensor",
        moved=f"8 * {rows} * N",
        x_log=True,
        **paced(run, unchecked=("copy_",)),
    )
    return reaching(table, Target(1, "torch"))


# ---------------------------------------------------------------- in place of torch's own


def overridden(run: Run) -> bench.Table:
    """Measure `torch.sin` in eager mode and under torch.compile, without and with brickwork in its place."""
    rows = run.pick(ROWS, 16)

    def contenders(eager: str, graph: str, width: int) -> dict[str, Call]:
        x = torch.randn(rows, width, device=run.device)
        fast = compiled(run, lambda x: torch.sin(x))  # noqa: PLW0108  # a function that torch.compile can look into
        calls: dict[str, Call] = {eager: lambda: torch.sin(x)}
        return calls if fast is None else {**calls, graph: lambda: fast(x)}

    measured = functools.partial(
        bench.compare,
        cases=run.pick(OVERRIDDEN, (16,)),
        metric="GB/s",
        x_name="N",
        title=f"torch.sin of {rows} x N floats, as it is and with brickwork in its place",
        moved=f"8 * {rows} * N",
        x_log=True,
        **paced(run),
    )
    before = measured(functools.partial(contenders, "torch.sin", "torch.compile"))
    said = _same(run)
    with bw.override("aten::sin", ops.sin, device=run.device):
        after = measured(functools.partial(contenders, "brickwork", "brickwork, torch.compile"))
    table = joined(after, before)
    return replace(reaching(table, Target(1, "torch.sin")), protocol={**table.protocol, "overridden": said})


def call(run: Run) -> bench.Table:
    """Measure what the host takes for small calls of `torch.sin`, with callables in its place."""
    x = torch.randn(FEW[run.device], device=run.device)
    out = torch.empty_like(x)

    def python(x: Tensor) -> Tensor:
        return ops.sin(x)

    def contenders(label: str, form: str) -> dict[str, Call]:
        forms: dict[str, Call] = {"sin(x)": lambda: torch.sin(x), "sin(x, out=out)": lambda: torch.sin(x, out=out)}
        return {label: forms[form]}

    def measured(label: str) -> bench.Table:
        return bench.compare(
            functools.partial(contenders, label),
            ("sin(x)", "sin(x, out=out)"),
            "host us",
            x_name="form",
            title=f"a call of torch.sin with {x.numel()} floats, as it is and with callables in its place",
            **paced(run, roofline=False),
        )

    found = [measured("torch.sin")]
    in_place: dict[str, Callable[..., Any]] = {"brickwork": ops.sin, "brickwork, in a Python function": python}
    for label, function in in_place.items():
        with bw.override("aten::sin", function, device=run.device):
            found.append(measured(label))
    table = joined(*found[1:], found[0])
    return reaching(table, Target(1.6, "torch.sin"), at=("sin(x)",)) if run.device == "cpu" else table


def joined(first: bench.Table, *others: bench.Table) -> bench.Table:
    """Return the table of all lines that were measured for the same values of x, one table after the other."""
    cases = tuple(
        replace(
            same[0],
            timings={line: timing for case in same for line, timing in case.timings.items()},
            host={line: timing for case in same for line, timing in case.host.items()},
            notes={line: note for case in same for line, note in case.notes.items()},
            reference=same[-1].reference,
        )
        for same in zip(*(table.record.cases for table in (first, *others)), strict=True)
    )
    lines = (line for table in (first, *others) for line in table.lines)
    return replace(first, record=replace(first.record, cases=cases), lines=tuple(dict.fromkeys(lines)))


def _same(run: Run) -> str:
    """Say how far the sine and its gradient are from torch's with brickwork in its place; fail if they are far."""
    x = torch.randn(run.pick(1 << 20, 1 << 8), device=run.device, requires_grad=True)

    def answers() -> tuple[Tensor, Tensor]:
        y = torch.sin(x)
        return y.detach(), torch.autograd.grad(y.sum(), x)[0]

    before = answers()
    with bw.override("aten::sin", ops.sin, device=run.device):
        after = answers()
    apart = [(now - then).abs().max().item() for now, then in zip(after, before, strict=True)]
    if max(apart) > APART:
        raise RuntimeError(f"overridden, the sine is {apart[0]:.1e} from torch's and its gradient {apart[1]:.1e}")
    return f"results at most {apart[0]:.1e} and gradients at most {apart[1]:.1e} from torch's"
