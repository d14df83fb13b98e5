"""These tests are about PyTorch's contract, which optimised code and other code keep alike: their code is made quickly.

A file whose tests are about machine code, speed, vectors or rounding has `OPTIMISED = True`.
"""

import pytest

from support.quick_code import quick_code


@pytest.fixture(scope="module", autouse=True)
def quick(request):
    if getattr(request.module, "OPTIMISED", False):
        yield
        return
    with quick_code():
        yield
