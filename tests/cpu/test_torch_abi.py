import pytest
import torch

from brickwork.host.torch_abi import CPLUSPLUS, REGISTRATION, RUNTIME, STABLE, UNDEFINED_TENSOR
from brickwork.pytorch.library import TorchSymbols, dispatch_key, knows_python_error, release


@pytest.mark.parametrize("function", [*STABLE, *REGISTRATION, *CPLUSPLUS, *RUNTIME], ids=lambda f: f.symbol)
def test_the_installed_torch_has_what_is_listed(function):
    assert TorchSymbols()[function.symbol]
    assert function.declaration().startswith(f"declare {function.result} @{function.symbol}(")


def test_data_and_keys_are_found():
    assert TorchSymbols()[UNDEFINED_TENSOR]
    assert TorchSymbols().get("no_such_function_anywhere") is None
    assert dispatch_key("CPU") == int(torch._C.DispatchKey.CPU)


def test_every_function_is_older_than_the_oldest_torch_that_is_supported():
    for function in (*STABLE, *REGISTRATION):
        assert not function.since or tuple(map(int, function.since.split("."))) <= (2, 11)
    assert release() >= (2, 11)
    assert knows_python_error() or release() > (2, 13)
