"""The only door to LLVM's compiler: text in, optimised code out.

Invariant: text is verified before any pass sees it, so that a mistake is an `InternalError` and never ends the process.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from brickwork.diagnostics.errors import InternalError
from brickwork.target.target import Target


def compile_module(text: str, target: Target) -> bytes:
    """Return the relocatable object of a module."""
    machine = _machine(target)
    return machine.emit_object(_optimise(text, machine))


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


def _optimise(text: str, machine: Any) -> Any:
    llvm = _binding()
    module = _parse(text, machine)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def _parse(text: str, machine: Any) -> Any:
    llvm = _binding()
    try:
        module = llvm.parse_assembly(text)
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
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    triple = target.triple or llvm.get_process_triple()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="small"
    )


def _binding() -> Any:
    import llvmlite.binding as llvm

    return llvm
