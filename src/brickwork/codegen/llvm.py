"""The only door to LLVM's compiler: text in, optimised code out.

Invariant: text is verified before any pass sees it, so that a mistake is an `InternalError` and never ends the process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import string_at
from dataclasses import replace
from functools import cache, partial
from typing import Any

from brickwork.codegen.archive import packed
from brickwork.codegen.assembler_faults import without_faults
from brickwork.codegen.parts import parts
from brickwork.diagnostics.errors import DeviceError, InternalError
from brickwork.target.target import Target

PREFIX = "__nv_"
"""How names of libdevice's functions begin."""
_DECLARED = re.compile(rf"^declare .*@({PREFIX}\w+)\(", re.MULTILINE)
_DEVICE_TRIPLE = "nvptx64-nvidia-cuda"
_GROUPS = "wgmma"
"""Instructions that only the very GPUs of a capability have."""


def compile_module(text: str, target: Target) -> bytes:
    """Return the relocatable object of a module."""
    machine = _machine(target)
    return machine.emit_object(_optimise(text, machine))


def compile_in_parts(text: str, target: Target) -> bytes:
    """Return the relocatable object of a module, or an archive of objects that threads made of parts of it."""
    divided = parts(text, processors())
    if len(divided) == 1:
        return compile_module(text, target)
    _machine(target)
    with ThreadPoolExecutor(len(divided)) as pool:
        return packed([*pool.map(partial(_compile_apart, target=target), divided)])


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def translate_module(text: str, target: Target) -> bytes:
    """Return the relocatable object of a module as it stands, without optimisation: in a few milliseconds."""
    machine = _machine(target, 0)
    return machine.emit_object(_parse(text, machine))


def optimised_ir(text: str, target: Target) -> str:
    """Return a module after optimisation, as LLVM assembly."""
    return str(_optimise(text, _machine(target)))


def assembly(text: str, target: Target) -> str:
    """Return the machine code of a module as assembly."""
    machine = _machine(target)
    return machine.emit_assembly(_optimise(text, machine))


def compile_device(text: str, target: Target, library: bytes | None) -> str:
    """Return the PTX of a module of device kernels; `library` is what `extract` made of libdevice.

    Threads may make that of several kernels beside each other.
    """
    if _GROUPS in text:
        target = replace(target, cpu=f"{target.cpu}a")
    _machine(target)
    context, machine = _binding().create_context(), _make_machine(target)
    module = _parse(text, machine, context)
    if needed := device_functions(text):
        module.link_in(_library(library, needed, machine, context))
    for function in module.functions:
        if not function.is_declaration and function.name.startswith(PREFIX):
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    return without_faults(_emitted_apart(module, machine, 3, as_object=False).decode())


def device_functions(text: str) -> tuple[str, ...]:
    """Return the functions of libdevice that a module declares."""
    return tuple(sorted(set(_DECLARED.findall(text))))


def extract(library: bytes, names: Sequence[str]) -> bytes:
    """Return bitcode of the functions `names` of libdevice, of what they call, and of nothing else."""
    llvm = _binding()
    module = llvm.parse_bitcode(library)
    wanted = set(names)
    if missing := wanted - {function.name for function in module.functions}:
        msg = f"libdevice has no {', '.join(sorted(missing))}"
        raise InternalError(msg)
    for function in module.functions:
        if not function.is_declaration and function.name not in wanted:
            function.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(_DEVICE_TRIPLE).create_target_machine()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))
    return module.as_bitcode()


def _library(library: bytes | None, names: Sequence[str], machine: Any, context: Any) -> Any:
    """Return a module with the functions `names` of libdevice."""
    if library is None:
        wanted = ", ".join(name.removeprefix(PREFIX) for name in names)
        msg = (
            f"the GPU's library of mathematical functions, libdevice, is needed for {wanted} and was not found: "
            "install the package triton or nvidia-nvvm, or a CUDA toolkit"
        )
        raise DeviceError(msg)
    llvm = _binding()
    module = llvm.parse_bitcode(library, context)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return module


def _compile_apart(text: str, target: Target) -> bytes:
    """Return the object of a part of a module, while others compile theirs."""
    context, machine = _binding().create_context(), _make_machine(target)
    return _emitted_apart(_parse(text, machine, context), machine, 2, as_object=True)


def _emitted_apart(module: Any, machine: Any, level: int, *, as_object: bool) -> bytes:
    """Return the object or the assembly of a module whose context and target machine are its own; it is no more then.

    llvmlite lets one thread at a time into LLVM; what takes long is called past its lock, as far as it can be.
    """
    llvm = _binding()
    builder = llvm.create_pass_builder(machine, _options(level))
    _past_lock("LLVMPY_RunNewModulePassManager")(builder.getModulePassManager(), module, builder)
    with llvm.ffi.OutputString() as message:
        buffer = _past_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, int(as_object), message)
        if not buffer:
            raise InternalError(f"LLVM made no code: {message}")
    library = llvm.ffi.lib
    try:
        return string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)
        module.close()


def _past_lock(name: str) -> Any:
    function = getattr(_binding().ffi.lib, name)
    return getattr(function, "_cfn", function)


def _optimise(text: str, machine: Any) -> Any:
    return _optimised(_parse(text, machine), machine, 2)


def _optimised(module: Any, machine: Any, level: int) -> Any:
    builder = _binding().create_pass_builder(machine, _options(level))
    builder.getModulePassManager().run(module, builder)
    return module


def _options(level: int) -> Any:
    options = _binding().create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    return options


def _parse(text: str, machine: Any, context: Any = None) -> Any:
    llvm = _binding()
    try:
        module = llvm.parse_assembly(text, context)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        msg = f"LLVM refused the code that was written for an operator: {error}"
        raise InternalError(msg) from error
    return module


@cache
def _machine(target: Target, level: int = 3) -> Any:
    llvm = _binding()
    if target.grid:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.initialize_native_asmparser()
    return _make_machine(target, level)


def _make_machine(target: Target, level: int = 3) -> Any:
    llvm = _binding()
    triple = target.triple or llvm.get_process_triple()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="small"
    )


def _binding() -> Any:
    import llvmlite.binding as llvm

    return llvm
