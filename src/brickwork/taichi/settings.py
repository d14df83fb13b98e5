"""`ti.init`, `ti.reset` and the names of machines and options that kernels are written with."""

from __future__ import annotations

from typing import Any

import torch

from brickwork.taichi import state
from brickwork.taichi.errors import unsupported
from brickwork.taichi.fields import scalar_type
from brickwork.taichi.sequences import is_sequence


class Arch:
    """A kind of machine."""

    def __init__(self, name: str, device: str | None) -> None:
        """Be called `name`; torch calls it `device`, or has none."""
        self.name, self.device = name, device

    def __repr__(self) -> str:
        """Return Taichi's name."""
        return f"Arch.{self.name}"

    def __deepcopy__(self, memo: Any) -> Arch:
        """Return the machine itself."""
        return self


cpu = Arch("x64", "cpu")
x64 = cpu
arm64 = Arch("arm64", "cpu")
cuda = Arch("cuda", "cuda")
vulkan, metal, opengl = Arch("vulkan", None), Arch("metal", None), Arch("opengl", None)
gles, amdgpu, dx11, dx12 = Arch("gles", None), Arch("amdgpu", None), Arch("dx11", None), Arch("dx12", None)
gpu = (cuda, vulkan, metal, opengl, gles, amdgpu)


class Extension:
    """Names of what some machines have."""

    sparse, quant, quant_basic, data64, adstack = "sparse", "quant", "quant_basic", "data64", "adstack"
    bls, assertion, extfunc, mesh, dynamic_index = "bls", "assertion", "extfunc", "mesh", "dynamic_index"


extension = Extension


def init(
    arch: Any = None, default_fp: Any = None, default_ip: Any = None, _test_mode: bool = False,
    enable_fallback: bool = True, require_version: Any = None, *, debug: bool = False, random_seed: int | None = None,
    races: str = "warn", **others: Any,
) -> None:  # fmt: skip
    """Begin: where fields are, and the types of literals. What is set besides has no effect, or is refused."""
    del _test_mode, enable_fallback, require_version
    chosen: Any = arch[0] if is_sequence(arch) else arch
    device: str | None = "cpu" if chosen is None else chosen.device
    if device is None:
        raise unsupported(f"the machine {chosen}", "there are ti.cpu and ti.cuda")
    if device == "cuda" and not torch.cuda.is_available():
        device, chosen = "cpu", cpu
    settings = state.Settings(debug=debug, device=device, arch=chosen or cpu, races=races, others=others)
    if default_fp is not None:
        settings.default_fp = scalar_type(default_fp)
    if default_ip is not None:
        settings.default_ip = scalar_type(default_ip)
    state.set_settings(settings)
    settings.generator.manual_seed(random_seed or 0)


def reset() -> None:
    """Forget all fields and settings."""
    state.set_settings(state.Settings())


def sync() -> None:
    """Wait until all kernels have run."""
    if state.settings().device == "cuda":
        torch.cuda.synchronize()


def set_logging_level(level: str) -> None:
    """Take a level of messages, which has no effect."""
    del level


TRACE, DEBUG, INFO, WARN, ERROR, CRITICAL = "trace", "debug", "info", "warn", "error", "critical"
