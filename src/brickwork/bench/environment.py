"""What a measurement happens in: modes that falsify it, the clocks, the load of the machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from brickwork.config import config
from brickwork.records import dataclass

_BUSY = 0.1
"""What part of the cores' time others may take beside the measurement, before it is said that the machine is busy."""
_STAT = Path("/proc/stat")
"""Where Linux says what its processors have done since it began."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds up to a moment: of all processors at work, of this process and those it has waited for, of the clock."""

    everyone: float
    own: float
    clock: float


def spent() -> Spent | None:
    """Return what was spent up to now; None where the system does not say."""
    if not _STAT.exists():
        return None
    first = _STAT.read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, *interrupted = map(int, first)
    everyone = (user + nice + system + sum(interrupted)) / os.sysconf("SC_CLK_TCK")
    return Spent(everyone, sum(os.times()[:4]), time.perf_counter())


def taken_by_others(since: Spent | None) -> float:
    """Return how many cores other processes kept busy since then, on average; 0 where the system does not say."""
    now = spent()
    if since is None or now is None or now.clock <= since.clock:
        return 0.0
    return max(now.everyone - since.everyone - (now.own - since.own), 0.0) / (now.clock - since.clock)


def warnings_for(device: str, since: Spent | None = None) -> tuple[str, ...]:
    """Return, a sentence each, what makes figures of this process unfit to be kept; they were measured `since` then."""
    cores, others = os.cpu_count() or 1, taken_by_others(since)
    found = {
        "operators defined under `config.check = 'interpret'` run in the interpreter": config.check == "interpret",
        "`config.vector_bytes = 4` turns vectors off": config.vector_bytes == 4 and device == "cpu",
        "files take the place of compiled stages (`config.override_dir`)": bool(config.override_dir),
        "a debugger or a coverage tool traces Python": sys.gettrace() is not None,
        "autograd looks for anomalies": torch.is_anomaly_enabled(),
        "CUDA_LAUNCH_BLOCKING makes every launch wait": device == "cuda"
        and os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in {"", "0"},
        "deterministic algorithms are asked for, which fill new tensors": torch.are_deterministic_algorithms_enabled(),
        f"the machine was busy: others took {others:.1f} of {cores} cores": device == "cpu" and others > _BUSY * cores,
    }
    return tuple(text for text, holds in found.items() if holds)


def machine(device: str) -> str:
    """Return a name of the kind of machine, for folders: the GPU's, or how many cores there are."""
    if device == "cpu":
        return f"cpu-{os.cpu_count() or 1}core"
    current: Any = torch.cuda
    return re.sub(r"[^a-z0-9]+", "-", current.get_device_name().lower()).strip("-")


def clocks(device: str) -> str:
    """Return how fast the device's clocks run now, in words; nothing where the system does not say."""
    if device == "cpu":
        path = Path("/proc/cpuinfo")
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        rates = [float(line.split(":")[1]) for line in lines if line.startswith("cpu MHz")]
        return f"{min(rates):.0f} to {max(rates):.0f} MHz" if rates else ""
    current: Any = torch.cuda
    identity = f"GPU-{getattr(current.get_device_properties(), 'uuid', '')}"
    fields = "clocks.sm,clocks.max.sm,clocks.mem,temperature.gpu,power.draw"
    command = ["nvidia-smi", "-i", identity, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603  # no input
    except (OSError, subprocess.SubprocessError):
        return ""
    words = [word.strip() for word in said.stdout.splitlines()[0].split(",")]
    if len(words) != 5:
        return ""
    multiprocessors, most, memory, temperature, power = words
    return f"{multiprocessors} MHz of {most}, memory {memory} MHz, {temperature} °C, {power} W"
