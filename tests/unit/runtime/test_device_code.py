"""PTX into loaded kernels: machine code is made once a driver and capability, and GPUs of two kinds share PTX."""

import pytest

from brickwork.codegen.entry_description import EntryDescription
from brickwork.config import config
from brickwork.host.driver import Driver
from brickwork.runtime import cache
from brickwork.runtime.artifact import Artifact, from_entry, to_entry
from brickwork.runtime.cache import decode, encode
from brickwork.runtime.device_code import Gpu, function_on, load_kernel, machine_code
from brickwork.runtime.kernel_texts import joined, separated
from brickwork.transform.explanation import Explanation
from support.fake_driver import FakeLibrary

PTX = ".version 7.8\n.target sm_90\n"
HERE, THERE = Gpu("GPU 0", (9, 0), 0x1000), Gpu("GPU 1", (9, 0), 0x1001)


def artifact(*kernels, ptx=PTX):
    """An artifact whose PTX stands in for what would be compiled."""
    description = EntryDescription("ns::op", "entry", ())
    stages = {"ptx": joined(dict.fromkeys(kernels, ptx), "//"), "ir": "program"}
    keys = {name: cache.key_of((ptx, name)) for name in kernels}
    return Artifact(b"object", description, Explanation(), stages, kernels=keys, architecture="sm_90")


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(cache_dir=str(tmp_path / "cache")):
        cache.forget()
        yield
    cache.forget()


def count(library):
    return library.calls.count("cuLinkCreate")


def test_artifacts_keep_their_kernels_in_the_cache():
    made = artifact("a", "b")
    entry = decode(encode(to_entry(made)))
    assert entry is not None
    found = from_entry(entry)
    assert (dict(found.kernels), found.architecture) == (made.kernels, "sm_90")
    assert [*found.kernels] == ["a", "b"]
    assert found.stages["ptx"] == made.stages["ptx"]
    assert dict(from_entry(to_entry(artifact())).kernels) == {}


def test_machine_code_is_made_once():
    library = FakeLibrary()
    nvidia = Driver(library)
    for gpu in (HERE, THERE) * 2:
        assert machine_code(nvidia, artifact("a"), "a", gpu) == b"cubin:" + PTX.encode()
    assert count(library) == 1
    cache.forget()
    machine_code(nvidia, artifact("a"), "a", HERE)
    assert count(library) == 1


def test_machine_code_belongs_to_its_driver_capability_and_source():
    library = FakeLibrary()
    machine_code(Driver(library), artifact("a"), "a", HERE)
    machine_code(Driver(library), artifact("a"), "a", Gpu("GPU 2", (10, 0), 0x1002))
    machine_code(Driver(library), artifact("a", ptx=f"{PTX}.address_size 64\n"), "a", HERE)
    assert count(library) == 3
    newer = FakeLibrary(version=13010)
    machine_code(Driver(newer), artifact("a"), "a", HERE)
    assert count(newer) == 1


def test_a_kernel_is_loaded_on_every_gpu_that_is_ready():
    library = FakeLibrary()
    nvidia = Driver(library)
    kernel = load_kernel(nvidia, artifact("a", "bb"), "bb", (HERE, THERE))
    assert library.loaded == [b"cubin:" + PTX.encode()]
    assert library.functions == [(gpu.context, kernel) for gpu in (HERE, THERE)]
    function_on(nvidia, kernel, Gpu("GPU 3", (9, 0), 0x1003))
    assert library.functions[-1] == (0x1003, kernel)


def test_gpus_that_differ_get_ptx():
    library = FakeLibrary()
    load_kernel(Driver(library), artifact("a"), "a", (HERE,), alike=False)
    assert library.loaded == [PTX.encode()]
    assert count(library) == 0


def test_the_modules_of_kernels_are_told_apart():
    modules = {"a": "x\n; kernel of b\n", "b_2": ".version 8.0\n// kernel\n"}
    assert separated(joined(modules, ";")) == modules
    assert separated("") == {}
