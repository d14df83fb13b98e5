"""Kernels that a first call launches are made before it, beside each other, and no others."""

import threading
from dataclasses import replace

import pytest

from brickwork.codegen.entry_description import EntryDescription
from brickwork.config import config
from brickwork.diagnostics.errors import DeviceError
from brickwork.host.driver import Driver
from brickwork.ir.nodes import Launch
from brickwork.ir.text import print_program
from brickwork.ir.walk import statements
from brickwork.runtime import cache, kernels_ahead
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.device_code import Gpu, machine_code
from brickwork.runtime.kernel_texts import joined
from brickwork.runtime.kernels_ahead import launched, make_ahead
from brickwork.target.cuda import cuda_target
from brickwork.transform.explanation import Explanation
from brickwork.transform.pipeline import schedule_program
from support.fake_driver import FakeLibrary
from support.gradients import lowered
from support.kernels import SUITE

HERE = Gpu("GPU 0", (9, 0), 0x1000)


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(cache_dir=str(tmp_path / "cache")):
        cache.forget()
        yield
    cache.forget()


def normalised():
    """An artifact of a program with more kernels than one call launches, whose PTX stands in for what is compiled."""
    case = SUITE["softmax"]
    program, _ = schedule_program(lowered(case.function, case.arguments(4)), cuda_target((9, 0)))
    names = [f"{node.kernel.name}_kernel_1" for node in statements(program.body) if isinstance(node, Launch)]
    stages = {"pieces": print_program(program), "ptx": joined(dict.fromkeys(names, ".target sm_90"), "//")}
    keys = {name: cache.key_of((name,)) for name in names}
    description = EntryDescription("ns::op", "entry", ())
    return Artifact(b"", description, Explanation(), stages, kernels=keys, architecture="sm_90")


def test_what_sizes_launch_is_known_before_the_call():
    made = normalised()
    few, many = launched(made, [(4, 6)]), launched(made, [(5000, 4096)])
    assert few
    assert many
    assert {*few, *many} < {*made.kernels}
    assert launched(made, [(0, 0)]) == ()


def test_just_these_kernels_are_made(monkeypatch):
    library, made = FakeLibrary(), normalised()
    names = (*made.kernels,)[:2]
    monkeypatch.setattr(kernels_ahead, "launched", lambda artifact, arguments: names)
    make_ahead(Driver(library), made, HERE, [(4, 6)])
    assert library.calls.count("cuLinkCreate") == 2
    for name in names:
        machine_code(Driver(library), made, name, HERE)
    assert library.calls.count("cuLinkCreate") == 2


def test_they_are_made_beside_each_other(monkeypatch):
    met = threading.Barrier(2, timeout=20)
    monkeypatch.setattr(kernels_ahead, "processors", lambda: 2)
    monkeypatch.setattr(kernels_ahead, "launched", lambda artifact, arguments: ("first", "second"))
    monkeypatch.setattr(kernels_ahead, "machine_code", lambda *arguments: met.wait())
    make_ahead(Driver(FakeLibrary()), normalised(), HERE, [])
    assert not met.broken


def test_one_kernel_is_left_to_its_launch(monkeypatch):
    library = FakeLibrary()
    monkeypatch.setattr(kernels_ahead, "launched", lambda artifact, arguments: (*artifact.kernels,)[:1])
    make_ahead(Driver(library), normalised(), HERE, [(4, 6)])
    assert "cuLinkCreate" not in library.calls


def test_what_fails_is_told_by_the_load():
    library, made = FakeLibrary(), normalised()
    made = replace(made, stages={**made.stages, "ptx": joined(dict.fromkeys(made.kernels, "no"), "//")})

    def refuse(*arguments):
        raise DeviceError("no")

    library.cuLinkAddData_v2 = refuse
    make_ahead(Driver(library), made, HERE, [(4, 6)])
    with pytest.raises(DeviceError):
        machine_code(Driver(library), made, next(iter(made.kernels)), HERE)
