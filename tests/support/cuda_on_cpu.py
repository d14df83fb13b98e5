"""Operators of CUDA C++ run on a CPU, a thread after the other: for tests of their index arithmetic without a GPU.

The geometry is what the operator's own `launch` says. Kernels may use what `cuda_on_cpu.h` has, and blocks along x.
"""

# It looks inside operators.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch

import brickwork as bw

_HEADER = Path(__file__).with_suffix(".h")
_UNITS = {"float": ctypes.c_float, "int": ctypes.c_int}


class Emulated:
    """Operators compiled by the C++ compiler of this machine."""

    def __init__(self, operators: Sequence[bw.CudaOp], folder: Path) -> None:
        """Compile the operators together."""
        texts = {operator._text.source.text: f"text{at}" for at, operator in enumerate(operators)}
        parts = [f'#include "{_HEADER}"']
        parts += [f"namespace {name} {{\n{_plain(text)}\n}}" for text, name in texts.items()]
        self._parameters: dict[str, list[str]] = {}
        for operator in operators:
            types = self._parameters[operator.name] = _parameters(operator)
            names = [f"a{at}" for at in range(len(types))]
            taken = "".join(f", {kind} {name}" for kind, name in zip(types, names, strict=True))
            call = f"{texts[operator._text.source.text]}::{operator._entry}({', '.join(names)})"
            parts.append(
                f'extern "C" void {_symbol(operator)}(const unsigned* grid, unsigned block, unsigned shared{taken})'
                f" {{ run_grid(grid, block, shared, [=] {{ {call}; }}); }}"
            )
        source, library = folder / "kernels.cpp", folder / "kernels.so"
        source.write_text("\n".join(parts), encoding="utf-8")
        command = ["g++", "-std=c++17", "-w", "-shared", "-fPIC", str(source), "-o", str(library)]
        subprocess.run(command, check=True)
        self._library = ctypes.CDLL(str(library))

    def __call__(self, operator: bw.CudaOp, *arguments: object) -> torch.Tensor:
        """Call an operator with one result, and return it; nothing may be written beside it."""
        (result,) = operator._made(arguments) if operator.declared.results else (arguments[1],)
        assert isinstance(result, torch.Tensor)
        margin = 64
        around = torch.full((result.numel() + 2 * margin,), float("nan"))
        inside = around[margin:-margin].view(result.shape)
        given = [inside if value is result else value for value in arguments]
        everything = given if not operator.declared.results else [*given, inside]
        grid, block, shared, values = operator._launch(*operator._for_launch(everything))
        assert values is not None
        extents = (ctypes.c_uint * 3)(*(*(grid if isinstance(grid, tuple) else (grid,)), 1, 1)[:3])
        words = [
            ctypes.c_void_p(value.data_ptr()) if isinstance(value, torch.Tensor) else _UNITS[kind](value)
            for value, kind in zip(values, self._parameters[operator.name], strict=True)
        ]
        getattr(self._library, _symbol(operator))(extents, block, shared, *words)
        assert around[:margin].isnan().all()
        assert around[-margin:].isnan().all()
        return inside.clone()


def _plain(text: str) -> str:
    """Return a text in which names are those of its namespace, but for the shared memory, which the header has."""
    return text.replace('extern "C" ', "").replace("extern __shared__ float4 memory[];", "")


def _symbol(operator: bw.CudaOp) -> str:
    return operator.name.replace("::", "_")


def _parameters(operator: bw.CudaOp) -> list[str]:
    """Return the types of a kernel's parameters, from its text."""
    text, name = operator._text.source.text, operator._entry.partition("<")[0]
    start = text.index(f" {name}(") + len(name) + 2
    listed = " ".join(text[start : text.index(")", start)].split()).split(", ")
    return [each.rpartition(" ")[0] for each in listed]
