"""`python -m benchmarks.registers`: write what the ready operators take of each kind of GPU, as `ptxas` says.

No GPU is needed. An operator's kernels are those for contiguous, aligned tensors of ordinary size; of several the most
counts. The record is `benchmarks/results/ptxas/registers.json`, which the tests hold later code to.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from brickwork.ops import sample_normal, sin, timex, timex_padded
from brickwork.ops.brick_pad import brick_pad_colour, brick_pad_plane
from brickwork.runtime.cuda_toolkit import find_tool
from brickwork.runtime.inspection import assembled
from brickwork.runtime.kernel_texts import separated

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
PATH = Path(__file__).parent / "results" / "ptxas" / "registers.json"


@dataclass(frozen=True, slots=True)
class Needs:
    """What an operator's kernels take at most: registers of a thread, bytes that did not fit, bytes of a block."""

    registers: int
    spilled: int
    shared: int


@dataclass(frozen=True, slots=True)
class Registers:
    """The needs by operator and architecture, and what they were found with."""

    ptxas: str
    date: str
    needs: dict[str, dict[str, Needs]]


def measured(architecture: str) -> dict[str, Needs]:
    """Return what each ready operator needs; DeviceError where there is no `ptxas`."""
    shifts = (9, 9, [0, 0], [6, 0], [2, 5])
    with torch.device("meta"):
        calls: dict[str, tuple[Any, ...]] = {
            "brick_pad": (brick_pad_plane, torch.empty(5, 6), *shifts),
            "brick_pad, colour": (brick_pad_colour, torch.empty(5, 6, 3), *shifts),
            "sin": (sin, torch.empty(8, 8)),
            "sample_normal": (sample_normal, torch.empty(5), torch.empty(5), 8),
            "timex": (timex, torch.empty(4, 8), torch.empty(3, 4, 8), 0.5),
            "timex_padded": (timex_padded, torch.empty(4, 1, 8), torch.empty(3, 4, 15), 0.5),
        }
    return {
        name: _needs(operator.inspect("ptx", *rest, device=architecture)) for name, (operator, *rest) in calls.items()
    }


def _needs(ptx: str) -> Needs:
    rows = [row for module in separated(ptx).values() for row in assembled(module)]
    return Needs(
        registers=max(row.registers or 0 for row in rows),
        spilled=max(row.spill_bytes or 0 for row in rows),
        shared=max(row.shared_bytes or 0 for row in rows),
    )


def load() -> Registers:
    """Read the record."""
    data = json.loads(PATH.read_text(encoding="utf-8"))
    needs = {name: {each: Needs(**found) for each, found in row.items()} for name, row in data.pop("needs").items()}
    return Registers(needs=needs, **data)


def markdown(record: Registers) -> str:
    """Return the record as a table, a row for each operator, with a line on what it was found with."""
    lines = ["| | " + " | ".join(ARCHITECTURES) + " |", "|---" * (len(ARCHITECTURES) + 1) + "|"]
    for name, row in record.needs.items():
        lines.append(f"| {name} | " + " | ".join(_cell(row[each]) for each in ARCHITECTURES) + " |")
    return "\n".join([*lines, "", f"ptxas {record.ptxas}; {record.date}."])


def _cell(needs: Needs) -> str:
    more = [f"{number} {word}" for number, word in ((needs.spilled, "spilled"), (needs.shared, "shared")) if number]
    return f"{needs.registers} ({', '.join(more)})" if more else str(needs.registers)


def main() -> None:
    """Measure all, and write the record."""
    tool = find_tool("ptxas")
    if tool is None:
        raise SystemExit("there is no ptxas here: it comes with CUDA toolkits and with triton")
    said = subprocess.run([str(tool), "--version"], capture_output=True, text=True, check=True).stdout  # noqa: S603  # a tool found by name
    version = re.search(r"V(\d[\d.]*)", said)
    found = {each: measured(each) for each in ARCHITECTURES}
    needs = {name: {each: found[each][name] for each in ARCHITECTURES} for name in found[ARCHITECTURES[0]]}
    record = Registers(version[1] if version else "", datetime.now(UTC).strftime("%Y-%m-%d"), needs)
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")
    print(markdown(record))


if __name__ == "__main__":
    main()
