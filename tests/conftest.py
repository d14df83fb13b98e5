"""What holds for all tests.

The disk cache is their own. Inductor compiles in the process that asks, and all tests share what it has built.
"""

import gc
import os

import pytest
import torch

from brickwork.config import config
from support import shared
from support.gpu import NO_GPU, end_if_lost, settle


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Look for garbage only among what tests make: torch and the tests' own modules have millions of objects."""
    shared.keep_answers()
    gc.disable()
    found = yield
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()
    return found


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep the user's cache out of the tests, and the tests out of the user's cache."""
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_inductor(tmp_path_factory):
    """Let processes of one run share what Inductor builds: headers and the test of vectors take longer than code."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
        patch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
        yield


@pytest.fixture(autouse=True)
def known_patches(request):
    """Let tests share what steps of the compiler make, where they patch the same."""
    shared.begin([request.getfixturevalue("monkeypatch")] if "monkeypatch" in request.fixturenames else [])


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Run a test on the CPU, and again where new tensors are on a GPU; afterwards nothing may have gone wrong there."""
    if request.param == "cpu":
        yield "cpu"
        return
    if not torch.cuda.is_available():
        pytest.skip(NO_GPU)
    with torch.device("cuda"):
        yield "cuda"
    end_if_lost()
    settle("cuda")
