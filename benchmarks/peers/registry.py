"""Which other systems there are, and what each brings for a kernel: contenders by label, for one case's tensors.

Each system has a module `<system>_loops.py` beside this one, with a function for each kernel that it has, named like
the kernel and called with the case's arguments. It returns calls without arguments by label; nothing is compiled
before the first call, which is where a contender may fail. Calls answer what brickwork answers:

    pad(tile, image, origin, shift_x, shift_y)   fills the image (height, width), and answers it
    timex(w, k, eps)                             answers a new tensor (B, C, T)
    timex_backward(w, k, gradient)               answers new gradients of w and of k
    sin(x, out)                                  fills out, and answers it
    sample(mu, sigma, n)                         answers a new tensor (d, n), other draws at each call
    sample_shared(mu, sigma, z)                  answers a new tensor (d, n), z (n,) being the same for all d
    launch(tensors)                              answers a new tensor, the sum of vectors of one length

Tensors are of float32 and contiguous. Not in here: what is measured, and how.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from brickwork.bench.timers import Call

KERNELS = ("pad", "timex", "timex_backward", "sin", "sample", "sample_shared", "launch")


@dataclass(frozen=True, slots=True)
class System:
    """A system: the package that it comes in, and the kinds of device that it makes code for."""

    name: str
    package: str
    devices: tuple[str, ...]
    lacks: Callable[[str], str] = lambda _device: ""
    """What else is missing for a device, in words, or nothing."""

    def absence(self, device: str) -> str:
        """Return why there are no contenders of this system for a device, or nothing if there are."""
        if device not in self.devices:
            return f"{self.name} makes no code for {device}"
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed"
        return self.lacks(device)


def _compiler(device: str) -> str:
    """Return what torch.compile lacks: it makes C++ for CPUs and Triton for GPUs."""
    if device == "cpu" and not any(shutil.which(name) for name in ("g++", "c++", "clang++")):
        return "torch.compile needs a C++ compiler"
    if device == "cuda" and importlib.util.find_spec("triton") is None:
        return "torch.compile needs triton"
    return ""


def _helion(_device: str) -> str:
    """Return what Helion lacks: Triton, or the PyTorch that it was made for."""
    return failure_of_import("helion") if importlib.util.find_spec("triton") else "helion needs triton"


@functools.cache
def failure_of_import(package: str) -> str:
    """Return why a package cannot be imported, or nothing if it can."""
    try:
        importlib.import_module(package)
    except Exception as error:  # noqa: BLE001  # whatever it is, the package is of no use here
        return f"{package} cannot be imported: {type(error).__name__}: {error}".splitlines()[0]
    return ""


SYSTEMS = {
    system.name: system
    for system in (
        System("torch", "torch", ("cpu", "cuda")),
        System("torch.compile", "torch", ("cpu", "cuda"), _compiler),
        System("numba", "numba", ("cpu",)),
        System("taichi", "taichi", ("cpu", "cuda")),
        System("quadrants", "quadrants", ("cpu", "cuda")),
        System("warp", "warp", ("cpu", "cuda")),
        System("triton", "triton", ("cuda",)),
        System("helion", "helion", ("cuda",), _helion),
        System("cuda", "torch", ("cuda",)),
    )
}
"""By the name that the command line takes; the last word of it stands in the name of the module."""


def contenders(kernel: str, *arguments: object, peers: frozenset[str] | None = None) -> dict[str, Call]:
    """Return the contenders for a kernel by label: of the systems that are named, or of all that there are.

    A system that is not installed, has no code for the device of the tensors or does not have the kernel is left out.
    One whose module fails is a contender that fails when it is called.
    """
    if kernel not in KERNELS:
        raise ValueError(f"there is no kernel {kernel!r}; there are: {', '.join(KERNELS)}")
    unknown = sorted((peers or frozenset()) - SYSTEMS.keys())
    if unknown:
        raise ValueError(f"there is no peer {unknown[0]!r}; there are: {', '.join(SYSTEMS)}")
    device = next(_tensors(arguments)).device.type
    found: dict[str, Call] = {}
    for name, system in SYSTEMS.items():
        if (peers is None or name in peers) and not system.absence(device):
            found |= _of_one(name, kernel, arguments)
    return found


def absent(device: str) -> dict[str, str]:
    """Return the systems that have no contenders for a device, and why."""
    reasons = {name: system.absence(device) for name, system in SYSTEMS.items()}
    return {name: why for name, why in reasons.items() if why}


def _of_one(name: str, kernel: str, arguments: tuple[object, ...]) -> dict[str, Call]:
    try:
        make = getattr(importlib.import_module(f"benchmarks.peers.{name.rpartition('.')[2]}_loops"), kernel, None)
        return {} if make is None else make(*arguments)
    except Exception as error:  # noqa: BLE001  # a system that fails does not hide the others
        return {name: functools.partial(_fail, error)}


def _fail(error: Exception) -> None:
    raise error


def _tensors(arguments: Sequence[object]) -> Iterator[torch.Tensor]:
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from _tensors(argument)
