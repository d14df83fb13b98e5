"""What is shown of the machine code of device kernels: its assembly, and what each kernel takes of a GPU.

With a GPU of the architecture here it is the code that runs, made by the driver; else `ptxas` makes it, where a toolkit
or a package brings it.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from brickwork.diagnostics.errors import DeviceError
from brickwork.host.driver import Driver, driver
from brickwork.records import dataclass
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.cuda_toolkit import find_tool
from brickwork.runtime.device_code import Gpu, load_kernel, machine_code
from brickwork.runtime.device_ptx import device_of, ptx_of, ptx_of_kernel
from brickwork.runtime.launches import Argument, launch_table, launches, pieces_of

_HEADER: tuple[str, ...] = (
    "kernel",
    "threads a block",
    "registers",
    "local bytes",
    "spill bytes",
    "shared bytes",
    "blocks a multiprocessor",
)
_ENTRY = re.compile(r"\.entry\s+(\w+)\(.*?\n\{", re.DOTALL)
_ASSEMBLED = re.compile(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """What a kernel takes; None where it is not known."""

    kernel: str
    threads: int | None
    registers: int | None
    local_bytes: int | None
    spill_bytes: int | None
    shared_bytes: int | None
    blocks: int | None = None


def shown(stage: str, artifact: Artifact, gpu: Gpu | None, arguments: Sequence[Argument] | None) -> str:
    """Return one of the stages that are made when they are looked at: `device`, `ptx`, `sass` or `resources`."""
    match stage:
        case "device":
            return device_of(artifact)
        case "ptx":
            return ptx_of(artifact)
        case "sass":
            return sass(artifact, gpu)
        case _:
            return resources(artifact, gpu, arguments)


def sass(artifact: Artifact, gpu: Gpu | None) -> str:
    """Return the kernels' machine code as assembly; DeviceError where no program can show it."""

    def made(name: str) -> bytes:
        if gpu is not None:
            return machine_code(driver(), artifact, name, gpu)
        return _assembled(ptx_of_kernel(artifact, name))[0]

    return "\n".join(disassembly(functools.partial(made, name)) for name in artifact.kernels)


def disassembly(machine_code: Callable[[], bytes]) -> str:
    """Return machine code as assembly; it is asked for once a program is found that can show it."""
    tools: dict[str, tuple[str, ...]] = {"nvdisasm": (), "cuobjdump": ("-sass",)}
    found = next(((tool, options) for name, options in tools.items() if (tool := find_tool(name)) is not None), None)
    if found is None:
        raise DeviceError(
            "no program here shows machine code of GPUs: `nvdisasm` and `cuobjdump` come with CUDA toolkits and with"
            " triton, and are looked for on PATH and below CUDA_HOME"
        )
    tool, options = found
    code = machine_code()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(code)
        return _run([str(tool), *options, str(path)]).stdout


def resources(artifact: Artifact, gpu: Gpu | None, arguments: Sequence[Argument] | None = None) -> str:
    """Return a table of what each kernel takes: registers, memory of a thread, shared memory, and what fits at once.

    With arguments there is another one, of what is launched for them.
    """
    rows = _known_rows(driver(), artifact, gpu) if gpu is not None else _assembled_rows(artifact)
    cells: list[tuple[str, ...]] = [_HEADER]
    for row in rows:
        numbers = (row.threads, row.registers, row.local_bytes, row.spill_bytes, row.shared_bytes, row.blocks)
        cells.append((row.kernel, *("-" if number is None else str(number) for number in numbers)))
    if arguments is None:
        return _table(cells)
    found = launches(pieces_of(artifact), arguments)
    return f"{_table(cells)}\n\n{_table(launch_table(found))}"


def _table(cells: list[tuple[str, ...]]) -> str:
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in lines)


def _known_rows(nvidia: Driver, artifact: Artifact, gpu: Gpu) -> list[Row]:
    """Ask the driver about the code that runs."""
    rows: list[Row] = []
    for name in artifact.kernels:
        threads = _threads(ptx_of_kernel(artifact, name)).get(name)
        kernel = load_kernel(nvidia, artifact, name, [gpu])
        with nvidia.using(gpu.context):
            function = nvidia.function(kernel)
            found = nvidia.resources(function)
            blocks = nvidia.resident_blocks(function, threads or found.threads)
        rows.append(Row(name, threads, found.registers, found.local_bytes, None, found.shared_bytes, blocks))
    return rows


def assembled(ptx: str) -> list[Row]:
    """Return what each kernel of a module takes, as ptxas says; DeviceError where there is none."""
    threads, said = _threads(ptx), _assembled(ptx)[1]

    def number(pattern: str, text: str) -> int | None:
        found = re.search(pattern, text)
        return None if found is None else int(found[1])

    return [
        Row(
            kernel=name,
            threads=threads.get(name),
            registers=number(r"Used (\d+) registers", text),
            local_bytes=number(r"(\d+) bytes stack frame", text),
            spill_bytes=number(r"(\d+) bytes spill stores", text),
            shared_bytes=number(r"(\d+) bytes smem", text) or 0,
        )
        for name, text in _ASSEMBLED.findall(said)
    ]


def _assembled_rows(artifact: Artifact) -> list[Row]:
    """Ask ptxas."""
    return [row for name in artifact.kernels for row in assembled(ptx_of_kernel(artifact, name))]


def _threads(ptx: str) -> dict[str, int]:
    """Return the most threads of a block by kernel, as PTX declares them."""
    found: dict[str, int] = {}
    for entry in _ENTRY.finditer(ptx):
        most = re.search(r"\.maxntid (\d+)", entry[0])
        if most is not None:
            found[entry[1]] = int(most[1])
    return found


def _assembled(ptx: str) -> tuple[bytes, str]:
    """Return machine code by ptxas, and what it says about each kernel."""
    tool = find_tool("ptxas")
    if tool is None:
        raise DeviceError(
            "no GPU of this architecture is here, and no `ptxas` that could make its machine code: it comes with CUDA"
            " toolkits and with triton"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "kernels.ptx", Path(folder) / "kernels.cubin"
        source.write_text(ptx, encoding="utf-8")
        done = _run([str(tool), "-v", f"-arch={_architecture(ptx)}", str(source), "-o", str(result)])
        return result.read_bytes(), done.stderr


def _architecture(ptx: str) -> str:
    found = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)
    return found[1] if found else ""


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # tools found by name
    if done.returncode:
        raise DeviceError(f"{command[0]} failed: {(done.stderr or done.stdout).strip()}")
    return done
