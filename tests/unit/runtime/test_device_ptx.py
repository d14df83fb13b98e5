"""Kernels that cannot fail become LLVM when they are asked for, of the text of the program that launches them."""

import pytest

from brickwork.codegen import device
from brickwork.codegen.builder import Module
from brickwork.codegen.device import device_name, emit_device_kernel, shared_bytes
from brickwork.codegen.rounding import Rounding
from brickwork.config import config
from brickwork.diagnostics.errors import InternalError
from brickwork.ir.nodes import Launch
from brickwork.ir.walk import statements
from brickwork.runtime import device_stages
from brickwork.runtime.artifact import from_entry, to_entry
from brickwork.runtime.device_ptx import device_of, device_text, rounded
from brickwork.runtime.kernel_texts import separated
from brickwork.runtime.stage_files import StageFiles
from brickwork.target.cpu import host_target
from brickwork.target.cuda import cuda_target
from brickwork.transform.pipeline import schedule_program
from support.kernels import SUITE
from support.ptx import program_for_gpu

GPU = cuda_target((9, 0))
PARTED = Rounding(fused=False)


def made(name, rounding, **edited):
    case = SUITE[name]
    program = program_for_gpu(case.function, *case.arguments(4))
    artifact, _ = device_stages.emit(program, GPU, host_target(None), StageFiles(edited), rounding=rounding)
    scheduled, _ = schedule_program(program, rounded(GPU, rounding))
    launches = [node.kernel for node in statements(scheduled.body) if isinstance(node, Launch)]
    return from_entry(to_entry(artifact)), launches


@pytest.mark.parametrize("rounding", [Rounding(), PARTED])
@pytest.mark.parametrize("name", ["softmax", "matrix_product"])
def test_they_are_the_code_of_the_kernels_in_the_program(name, rounding):
    artifact, launches = made(name, rounding)
    assert [*artifact.kernels] == [*map(device_name, launches)]
    sure = [kernel for kernel in launches if not device_stages.can_fail(kernel)]
    assert sure
    assert {device_name(kernel) for kernel in sure}.isdisjoint(separated(artifact.stages["device"]))
    for kernel in sure:
        module = Module(rounding=rounding)
        emit_device_kernel(module, kernel, rounded(GPU, rounding))
        assert device_text(artifact, device_name(kernel)) == module.text()
    assert separated(device_of(artifact)).keys() == artifact.kernels.keys()
    assert artifact.shared == {device_name(kernel): size for kernel in launches if (size := shared_bytes(kernel))}


def test_keys_tell_kernels_and_how_they_round_apart():
    kept, parted = (made("softmax", rounding)[0].kernels for rounding in (Rounding(), PARTED))
    assert len({*kept.values()}) == len(kept)
    assert set(kept.values()).isdisjoint(parted.values())


def test_those_that_can_fail_are_made_with_the_entry_that_knows_their_failures(monkeypatch):
    artifact, launches = made("softmax", Rounding())
    failing = {device_name(kernel) for kernel in launches if device_stages.can_fail(kernel)}
    assert separated(artifact.stages["device"]).keys() == failing
    with config.override(line_info=1):
        assert separated(made("softmax", Rounding())[0].stages["device"]).keys() == artifact.kernels.keys()
    sure = next(name for name in artifact.kernels if name not in failing)
    monkeypatch.setattr("brickwork.runtime.device_ptx.emit_device_kernel", fails)
    with pytest.raises(InternalError, match=f"the kernel {sure} has failures"):
        device_text(artifact, sure)


def fails(module, kernel, target):
    module.failures.append(None)
    return device.device_name(kernel)


def test_edited_code_stands_in_for_it():
    artifact, _ = made("softmax", Rounding())
    name = next(name for name in artifact.kernels if name not in separated(artifact.stages["device"]))
    edited, _ = made("softmax", Rounding(), device=f"; kernel {name}\nanother\n")
    assert device_text(edited, name).strip() == "another"
    assert edited.kernels[name] != artifact.kernels[name]
