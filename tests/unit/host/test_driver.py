"""The driver behind checked calls, with libcuda played in Python."""

import ctypes

import pytest

from brickwork.diagnostics.errors import BrickworkError, DeviceError
from brickwork.host import driver as room
from brickwork.host.driver import Driver, driver
from support.fake_driver import FakeLibrary

PTX = ".version 7.8\n.target sm_90\n.address_size 64\n"


def test_errors_of_devices_are_brickworks_and_runtime_errors():
    assert issubclass(DeviceError, BrickworkError)
    assert issubclass(DeviceError, RuntimeError)


def test_a_missing_driver_is_told(monkeypatch):
    def nothing():
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(room, "open_library", nothing)
    driver.cache_clear()
    with pytest.raises(DeviceError, match=r"NVIDIA's driver is not to be found .*libcuda\.so\.1"):
        driver()


def test_a_driver_that_is_too_old_is_told_with_versions():
    with pytest.raises(DeviceError, match=r"for CUDA 11\.8, and brickwork needs one for CUDA 12\.0"):
        Driver(FakeLibrary(version=11080))


def test_a_driver_that_lacks_a_function_is_told_by_its_name():
    class Lacking(FakeLibrary):
        cuLibraryLoadData = property()

    with pytest.raises(DeviceError, match="lacks cuLibraryLoadData"):
        Driver(Lacking()).load(b"x")


def test_devices_are_described():
    nvidia = Driver(FakeLibrary(capabilities=((9, 0), (8, 6))))
    assert nvidia.version == (13, 0)
    assert nvidia.count() == 2
    assert (nvidia.name(1), nvidia.capability(1), nvidia.multiprocessors(1)) == ("GPU 1", (8, 6), 132)
    assert nvidia.primary_context(1) == 0x1001
    with pytest.raises(DeviceError, match=r"cuDeviceGet: .*CUDA_ERROR_INVALID_DEVICE"):
        nvidia.capability(2)


def test_ptx_becomes_machine_code_in_the_current_context():
    library = FakeLibrary()
    nvidia = Driver(library)
    with nvidia.using(0x1000):
        assert nvidia.assemble(PTX, "GPU 0") == b"cubin:" + PTX.encode()
    assert library.contexts == []
    assert library.calls[-1] == "cuLinkDestroy"


def test_lines_are_kept_in_machine_code_where_ptx_has_them():
    library = FakeLibrary()
    nvidia = Driver(library)
    for more, kept in (("", False), ("\t.loc\t1 3 0\n", True)):
        with nvidia.using(0x1000):
            nvidia.assemble(PTX + more, "GPU 0")
        assert library.line_info is kept


def test_what_the_driver_refuses_is_told_with_driver_ptx_gpu_and_log():
    library = FakeLibrary(version=12010, log=b"ptxas fatal: Unsupported .version 8.8")
    nvidia = Driver(library)
    with nvidia.using(0x1000), pytest.raises(DeviceError) as caught:
        nvidia.assemble(PTX, "GPU 0 (compute capability 9.0)")
    said = str(caught.value)
    for part in ("CUDA 12.1", "PTX 7.8 for sm_90", "GPU 0 (compute capability 9.0)", "UNSUPPORTED_PTX", "ptxas fatal"):
        assert part in said
    assert library.calls[-1] == "cuLinkDestroy"
    assert library.contexts == []


def test_kernels_are_found_and_loaded_in_a_context():
    library = FakeLibrary()
    nvidia = Driver(library)
    with nvidia.using(0x1000):
        kernel = nvidia.kernel(nvidia.load(b"code"), "add")
        function = nvidia.function(kernel)
    assert library.capture_mode == 0
    assert library.loaded == [b"code"]
    assert library.functions == [(0x1000, kernel)]
    found = nvidia.resources(function)
    assert (found.registers, found.local_bytes, found.shared_bytes, found.threads) == (41, 31, 11, 1)
    assert nvidia.resident_blocks(function, 256) == 8


def test_pinned_memory_is_zeroed():
    nvidia = Driver(FakeLibrary())
    with nvidia.using(0x1000):
        host, device = nvidia.pinned(64)
    assert host == device
    assert [*(ctypes.c_uint64 * 8).from_address(host)] == [0] * 8
