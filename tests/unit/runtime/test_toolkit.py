"""Where NVIDIA's files are looked for, in trees made for it."""

import pytest

from brickwork.diagnostics.errors import DeviceError
from brickwork.runtime import toolkit


def put(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    return path


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Give the finder nothing but a tree of our own: CUDA_HOME, packages, and a system without toolkits."""
    packages = {name: (tmp_path / "site" / name,) for name in ("triton", "nvidia")}
    monkeypatch.setattr(toolkit, "_package_folders", packages.__getitem__)
    monkeypatch.setattr(toolkit, "_USUAL", ("usr/local/cuda-*",))
    real = toolkit.roots
    monkeypatch.setattr(toolkit, "roots", lambda environment: real(environment, tmp_path / "system"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    toolkit.libdevice_identity.cache_clear()
    yield tmp_path
    toolkit.libdevice_identity.cache_clear()


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
    assert toolkit.find_libdevice() == path
    assert toolkit.libdevice_identity().startswith("libdevice 1 ")


def test_what_the_user_names_comes_first(places, monkeypatch):
    put(places / "site/triton/backends/nvidia/lib/libdevice.10.bc")
    path = put(places / "own/nvvm/libdevice/libdevice.10.bc")
    monkeypatch.setenv("CUDA_HOME", str(places / "own"))
    assert toolkit.find_libdevice() == path


def test_the_newest_toolkit_comes_first(places):
    put(places / "system/usr/local/cuda-12.4/nvvm/libdevice/libdevice.10.bc")
    path = put(places / "system/usr/local/cuda-13.0/nvvm/libdevice/libdevice.10.bc")
    assert toolkit.find_libdevice() == path


def test_a_missing_libdevice_is_told_with_what_brings_it(places):
    with pytest.raises(DeviceError, match=r"triton.*nvidia-nvvm.*CUDA_HOME"):
        toolkit.find_libdevice()
    assert toolkit.libdevice_identity() == "no libdevice"


def test_tools_are_found_on_path_and_in_packages(places):
    assert toolkit.find_tool("ptxas") is None
    inside = put(places / "site/triton/backends/nvidia/bin/ptxas")
    assert toolkit.find_tool("ptxas") == inside
    first = put(places / "bin/ptxas")
    first.chmod(0o755)
    assert toolkit.find_tool("ptxas") == first
