"""What holds for all tests.

Hypothesis has no deadlines, since machines are shared. The disk cache is their own. Programs keep the rules of the IR
whenever one is scheduled. Inductor compiles in the process that asks, and all tests share what it has built.
"""

import os

import pytest
import torch
from hypothesis import settings

from brickwork.config import config
from brickwork.ir.verify import verify_program
from brickwork.runtime import device_stages, stages
from support.gpu import NO_GPU, end_if_lost, settle

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep the user's cache out of the tests, and the tests out of the user's cache."""
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


@pytest.fixture(scope="session", autouse=True)
def programs_keep_the_rules():
    """Verify each program that is scheduled: passes rely on the rules of the IR."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (stages, device_stages):
            patch.setattr(module, "schedule_program", _verified(module.schedule_program))
        yield


def _verified(schedule):
    def schedule_program(program, target):
        verify_program(program)
        return schedule(program, target)

    return schedule_program


@pytest.fixture(scope="session", autouse=True)
def shared_inductor(tmp_path_factory):
    """Let processes of one run share what Inductor builds: headers and the test of vectors take longer than code."""
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
        patch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
        yield


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
