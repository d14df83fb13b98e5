"""PTX into loaded kernels: machine code is made once a driver and capability, and GPUs of two kinds share PTX."""

import pytest

from brickwork.codegen.entry_description import EntryDescription
from brickwork.config import config
from brickwork.host.driver import Driver
from brickwork.runtime import cache
from brickwork.runtime.artifact import Artifact, from_entry, to_entry
from brickwork.runtime.cache import decode, encode
from brickwork.runtime.device_code import Gpu, load_kernels, machine_code, prepare
from support.fake_driver import FakeLibrary

PTX = ".version 7.8\n.target sm_90\n"
HERE, THERE = Gpu("GPU 0", (9, 0), 0x1000), Gpu("GPU 1", (9, 0), 0x1001)


def artifact(*kernels):
    description = EntryDescription("ns::op", "entry", ())
    return Artifact(b"object", description, "said", {"ptx": PTX, "ir": "program"}, kernels=kernels)


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(cache_dir=str(tmp_path / "cache")):
        cache.forget()
        yield
    cache.forget()


def made(library):
    return library.calls.count("cuLinkCreate")


def test_artifacts_keep_their_kernels_in_the_cache():
    entry = decode(encode(to_entry(artifact("a", "b"))))
    assert entry is not None
    found = from_entry(entry)
    assert found.kernels == ("a", "b")
    assert found.stages["ptx"] == PTX
    assert from_entry(to_entry(artifact())).kernels == ()


def test_machine_code_is_made_once():
    library = FakeLibrary()
    nvidia = Driver(library)
    for _ in range(2):
        assert machine_code(nvidia, PTX, HERE) == b"cubin:" + PTX.encode()
        assert machine_code(nvidia, PTX, THERE) == b"cubin:" + PTX.encode()
    assert made(library) == 1
    cache.forget()
    machine_code(nvidia, PTX, HERE)
    assert made(library) == 1


def test_machine_code_belongs_to_its_driver_capability_and_source():
    library = FakeLibrary()
    machine_code(Driver(library), PTX, HERE)
    machine_code(Driver(library), PTX, Gpu("GPU 2", (10, 0), 0x1002))
    machine_code(Driver(library), PTX + " ", HERE)
    assert made(library) == 3
    newer = FakeLibrary(version=13010)
    machine_code(Driver(newer), PTX, HERE)
    assert made(newer) == 1


def test_kernels_are_loaded_on_every_gpu_that_is_ready():
    library = FakeLibrary()
    nvidia = Driver(library)
    kernels = load_kernels(nvidia, artifact("a", "bb"), (HERE, THERE))
    assert library.loaded == [b"cubin:" + PTX.encode()]
    assert library.functions == [(gpu.context, kernel) for gpu in (HERE, THERE) for kernel in kernels]
    prepare(nvidia, kernels, Gpu("GPU 3", (9, 0), 0x1003))
    assert library.functions[-2:] == [(0x1003, kernel) for kernel in kernels]


def test_gpus_that_differ_get_ptx():
    library = FakeLibrary()
    load_kernels(Driver(library), artifact("a"), (HERE,), alike=False)
    assert library.loaded == [PTX.encode()]
    assert made(library) == 0


def test_an_operator_without_kernels_loads_nothing():
    library = FakeLibrary()
    assert load_kernels(Driver(library), artifact(), (HERE,)) == ()
    assert library.loaded == []
