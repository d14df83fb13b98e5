"""After every test on a GPU: nothing that went wrong on the device is left for the next one to report."""

import pytest
import torch

from support.gpu import end_if_lost, settle


@pytest.fixture(autouse=True)
def nothing_left_behind():
    yield
    end_if_lost()
    if torch.cuda.is_available():
        settle("cuda")
