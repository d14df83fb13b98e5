"""`python -m brickwork doctor | cache | clear`: what brickwork finds on this machine, and its disk cache."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata

from brickwork.config import config, settings
from brickwork.diagnostics.errors import DeviceError
from brickwork.host.driver import driver
from brickwork.runtime import cache
from brickwork.runtime.toolkit import find_libdevice
from brickwork.target.cpu import host_target
from brickwork.target.cuda import OLDEST, cuda_target


def doctor() -> str:
    """Return versions, the machine as code is made for it, and the settings that are not the defaults."""
    versions = [f"{name} {_version(name)}" for name in ("brickwork", "torch", "llvmlite", "islpy")]
    target = host_target(config.vector_bytes or None)
    changed = [
        f"  {name} = {getattr(config, name)!r} ({setting.variable})"
        for name, setting in settings().items()
        if getattr(config, name) != setting.default
    ]
    lines = [
        f"python {platform.python_version()}, {', '.join(versions)}",
        f"machine: {target.identity}",
        f"vectors: {target.vector_registers} registers of {target.vector_bytes} bytes",
        f"vector functions: {target.vector_library}",
        *_gpus(),
        "settings: all defaults" if not changed else "settings:",
        *changed,
        describe_cache(),
    ]
    return "\n".join(lines)


def _gpus() -> list[str]:
    """Return what there is for GPUs: each one with the PTX made for it, the driver, and libdevice."""
    try:
        nvidia = driver()
        count = nvidia.count()
    except DeviceError as error:
        lines = [f"GPUs: none ({error})"]
    else:
        lines = [f"driver: for CUDA {'.'.join(map(str, nvidia.version))}, {count} GPU{'' if count == 1 else 's'}"]
        for index in range(count):
            capability = nvidia.capability(index)
            words = cuda_target(capability).identity if capability >= OLDEST else "too old for brickwork"
            named = ".".join(map(str, capability))
            lines.append(f"  cuda:{index} {nvidia.name(index)}, compute capability {named}: {words}")
    try:
        return [*lines, f"libdevice: {find_libdevice()}"]
    except DeviceError as error:
        return [*lines, f"libdevice: none ({error})"]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not an installed package)"


def describe_cache() -> str:
    """Return where the disk cache is and what it holds."""
    found = cache.info()
    size = f"{found.bytes / 2**20:.1f} of {found.limit / 2**20:.0f} megabytes"
    return f"cache: {found.entries} entries, {size}, in {found.directory}"


def clear() -> str:
    """Empty the disk cache."""
    cache.clear()
    return describe_cache()


COMMANDS = {"doctor": doctor, "cache": describe_cache, "clear": clear}


def main() -> None:
    """Run the command that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m brickwork", description="What brickwork finds on this machine.")
    parser.add_argument(
        "command", choices=COMMANDS, help="doctor: all there is to know; cache: its state; clear: empty it"
    )
    print(COMMANDS[parser.parse_args().command]())  # noqa: T201  # the commands are for the terminal


if __name__ == "__main__":
    main()
