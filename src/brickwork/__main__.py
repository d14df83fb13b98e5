"""`python -m brickwork bench | doctor | cache | clear | replay`: measuring, the machine, its cache, old failures."""

from __future__ import annotations

import argparse
import platform
import sys
from importlib import metadata

from brickwork.bench import command as measuring
from brickwork.config import config, settings
from brickwork.diagnostics.errors import BrickworkError, DeviceError
from brickwork.host.driver import driver
from brickwork.pytorch.libtorch import cuda_major
from brickwork.runtime import cache
from brickwork.runtime.cuda_source import find_nvrtc
from brickwork.runtime.cuda_toolkit import find_libdevice
from brickwork.runtime.replay import replay
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
        lines.append(f"libdevice: {find_libdevice()}")
    except DeviceError as error:
        lines.append(f"libdevice: none ({error})")
    return [*lines, _nvrtc()]


def _nvrtc() -> str:
    """Return the compiler of CUDA C++ that there is, and the headers beside it."""
    try:
        found, folders = find_nvrtc(cuda_major())
    except DeviceError as error:
        return f"NVRTC: none ({error})"
    headers = f"headers in {folders[0]}" if folders else "no headers of CUDA"
    return f"NVRTC: {'.'.join(map(str, found.version))}, {headers}"


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


def repeat(path: str) -> str:
    """Run the compilation of a crash bundle again; the command fails if it does."""
    try:
        said, fails = replay(path)
    except BrickworkError as error:
        said, fails = str(error), True
    if fails:
        raise SystemExit(said)
    return said


def main() -> None:
    """Run the command that was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m brickwork", description="Measuring brickwork, and what it finds on this machine."
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    for name, (action, explanation) in {
        "doctor": (doctor, "versions, the machine, the settings that are not the defaults, and the cache"),
        "cache": (describe_cache, "where the disk cache is and what it holds"),
        "clear": (clear, "empty the disk cache"),
        "replay": (repeat, "run the compilation of a crash bundle again"),
    }.items():
        command = commands.add_parser(name, help=explanation, description=explanation)
        command.set_defaults(action=action)
        if name == "replay":
            command.add_argument("path", help="the file that the error named")
    bench = commands.add_parser("bench", help=measuring.EXPLANATION, description=measuring.DESCRIPTION)
    measuring.add_arguments(bench)
    given = parser.parse_args()
    if given.command is None:
        parser.print_help(sys.stderr)
        sys.exit(2)
    if given.command == "bench":
        sys.exit(measuring.main(given))
    said = given.action(given.path) if given.command == "replay" else given.action()
    print(said)  # noqa: T201  # the commands are for the terminal


if __name__ == "__main__":
    main()
