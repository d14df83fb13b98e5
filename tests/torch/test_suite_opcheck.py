"""PyTorch's own check of operators, on every kernel of the suite."""

import pytest
import torch

import brickwork as bw
from support.kernels import SUITE
from support.sweep import sampled

UTILITIES = ("test_schema", "test_autograd_registration", "test_faketensor")


@pytest.mark.parametrize("name", sampled(SUITE))
def test_opcheck(name):
    case = SUITE[name]
    operator = bw.op(f"bwsuite::{name}")(case.function)
    results = operator(*case.arguments(4))
    results = results if isinstance(results, tuple) else (results,)
    # opcheck takes a NaN for different from itself.
    undefined = any(each is not None and bool(each.isnan().any()) for each in results)
    traced = () if undefined or case.draws else ("test_aot_dispatch_dynamic",)
    found = torch.library.opcheck(operator._overload, case.arguments(4), test_utils=(*UTILITIES, *traced))
    assert set(found.values()) == {"SUCCESS"}
