"""What holds for all tests: hypothesis has no deadlines, since machines are shared; the disk cache is their own."""

import pytest
import torch
from hypothesis import settings

from brickwork.config import config
from support.gpu import NO_GPU, end_if_lost, settle

settings.register_profile("suite", deadline=None)
settings.load_profile("suite")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    """Keep the user's cache out of the tests, and the tests out of the user's cache."""
    with config.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
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
