"""Where NVIDIA's files are looked for, in trees made for it."""

import pytest

from brickwork.diagnostics.errors import DeviceError
from brickwork.runtime import cuda_toolkit


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Give the finder nothing but a tree of our own: CUDA_HOME, packages, and a system without toolkits."""
    packages = {name: (tmp_path / "site" / name,) for name in ("triton", "nvidia")}
    monkeypatch.setattr(cuda_toolkit, "_package_folders", packages.__getitem__)
    monkeypatch.setattr(cuda_toolkit, "_USUAL", ("usr/local/cuda-*",))
    real = cuda_toolkit.roots
    monkeypatch.setattr(cuda_toolkit, "roots", lambda environment: real(environment, tmp_path / "system"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    cuda_toolkit.libdevice_identity.cache_clear()
    yield tmp_path
    cuda_toolkit.libdevice_identity.cache_clear()


@pytest.mark.parametrize(
    "place",
    [
        "site/triton/backends/nvidia/lib/libdevice.10.bc",
        "site/nvidia/nvvm/libdevice/libdevice.10.bc",
        "site/nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc",
        "site/nvidia/cu13/nvvm/libdevice/libdevice.10.bc",
        "system/usr/local/cuda-13.0/nvvm/libdevice/libdevice.10.bc",
    ],
)
def test_libdevice_is_found_in_packages_and_toolkits(places, place):
    path = put(places / place)
    assert cuda_toolkit.find_libdevice() == path
    assert cuda_toolkit.libdevice_identity().startswith("libdevice 1 ")


def test_what_the_user_names_comes_first(places, monkeypatch):
    put(places / "site/triton/backends/nvidia/lib/libdevice.10.bc")
    path = put(places / "own/nvvm/libdevice/libdevice.10.bc")
    monkeypatch.setenv("CUDA_HOME", str(places / "own"))
    assert cuda_toolkit.find_libdevice() == path


def test_the_newest_toolkit_comes_first(places):
    put(places / "system/usr/local/cuda-12.4/nvvm/libdevice/libdevice.10.bc")
    path = put(places / "system/usr/local/cuda-13.0/nvvm/libdevice/libdevice.10.bc")
    assert cuda_toolkit.find_libdevice() == path


def test_nvrtc_is_that_of_torchs_version_of_cuda_if_there_is_one(places):
    old = put(places / "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
    new = put(places / "site/nvidia/cu13/lib/libnvrtc.so.13")
    toolkits = put(places / "system/usr/local/cuda-13.0/lib64/libnvrtc.so.13")
    assert [*cuda_toolkit.nvrtc_files(13)][:2] == [str(new), str(toolkits)]
    assert next(cuda_toolkit.nvrtc_files(12)) == str(old)
    assert [*cuda_toolkit.nvrtc_files(12)][-1] == "libnvrtc.so.12"
    assert {str(old), str(new)} <= {*cuda_toolkit.nvrtc_files(None)}


def test_headers_are_those_beside_nvrtc(places):
    nvrtc = put(places / "site/nvidia/cu13/lib/libnvrtc.so.13")
    assert cuda_toolkit.header_folders(str(nvrtc)) == ()
    other = put(places / "site/triton/backends/nvidia/include/cuda_fp16.h").parent
    assert cuda_toolkit.header_folders(str(nvrtc)) == (other,)
    beside = put(places / "site/nvidia/cu13/include/cuda_fp16.h").parent
    put(beside / "cccl/cuda/std/array")
    assert cuda_toolkit.header_folders(str(nvrtc)) == (beside, beside / "cccl")


def test_a_missing_libdevice_is_told_with_what_brings_it(places):
    with pytest.raises(DeviceError, match=r"triton.*nvidia-nvvm.*CUDA_HOME"):
        cuda_toolkit.find_libdevice()
    assert cuda_toolkit.libdevice_identity() == "no libdevice"


def test_tools_are_found_on_path_and_in_packages(places):
    assert cuda_toolkit.find_tool("ptxas") is None
    inside = put(places / "site/triton/backends/nvidia/bin/ptxas")
    assert cuda_toolkit.find_tool("ptxas") == inside
    first = put(places / "bin/ptxas")
    first.chmod(0o755)
    assert cuda_toolkit.find_tool("ptxas") == first
