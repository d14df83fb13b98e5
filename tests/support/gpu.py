"""What tests on GPUs share: marks that skip with the reason, moved arguments, and scripts in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import brickwork as bw

NO_GPU = "needs an NVIDIA GPU: torch.cuda.is_available() is False"
NO_SECOND = "needs two NVIDIA GPUs: torch.cuda.device_count() is less than 2"
GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)]
"""The marks of a module whose tests need a GPU."""
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason=NO_SECOND)
only_cpu = pytest.mark.parametrize("device", ["cpu"], indirect=True)
"""For a test that asks something of the CPU alone, in a module whose tests run on either device."""


def moved(arguments: Sequence[Any], device: str) -> tuple[Any, ...]:
    """Return the arguments with tensors on a device: same layouts, and memory that was shared still is."""
    blocks: dict[int, torch.Tensor] = {}

    def move(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        place = storage.data_ptr() if storage.nbytes() else id(tensor)
        if place not in blocks:
            count = storage.nbytes() // tensor.element_size()
            blocks[place] = tensor.as_strided((count,), (1,), 0).to(device, copy=True)
        return blocks[place].view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    return tuple(move(item) if isinstance(item, torch.Tensor) else item for item in arguments)


def results_of(returned: Any, arguments: Sequence[Any]) -> list[torch.Tensor]:
    """Return what a call returned and the tensors that it was given, on the CPU."""
    results = cast("Sequence[Any]", returned) if isinstance(returned, tuple | list) else (returned,)
    return [item.cpu() for item in (*results, *arguments) if isinstance(item, torch.Tensor)]


def settle(device: str) -> None:
    """Wait for what runs on the device, and raise what it found wrong."""
    if device != "cpu":
        bw.check_errors()


def end_if_lost() -> None:
    """End a worker of pytest-xdist whose context of a GPU is lost, so that a fresh one runs the tests to come."""
    if not torch.cuda.is_initialized() or "PYTEST_XDIST_WORKER" not in os.environ:
        return
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(error, file=sys.__stderr__, flush=True)
        os._exit(3)


def settled(device: str, function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function, and raise what it did wrong on the device, too."""
    function(*arguments)
    settle(device)


def script(folder: Path, source: str, *arguments: str, cache: Path | None = None) -> str:
    """Run a program in a process of its own and return what it printed; its cache is its own unless given."""
    path = folder / "script.py"
    path.write_text(source, encoding="utf-8")
    folders = (Path(bw.__file__).parents[1], Path(__file__).parents[1], os.environ.get("PYTHONPATH", ""))
    sources = os.pathsep.join(map(str, folders))
    environment = {**os.environ, "PYTHONPATH": sources, "BRICKWORK_CACHE_DIR": str(cache or folder / "cache")}
    command = [sys.executable, str(path), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
