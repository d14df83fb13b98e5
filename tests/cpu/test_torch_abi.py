import pytest
import torch

from brickwork.codegen.llvm import translate_module
from brickwork.host.support import support_text
from brickwork.host.torch_abi import (
    CPLUSPLUS,
    CUDA_CPLUSPLUS,
    CUDA_STABLE,
    DRIVER,
    REGISTRATION,
    RUNTIME,
    STABLE,
    UNDEFINED_TENSOR,
)
from brickwork.pytorch.libtorch import TorchSymbols, dispatch_key, knows_python_error, release
from brickwork.runtime.elf import undefined
from brickwork.target.cpu import host_target


@pytest.mark.parametrize(
    "function", [*STABLE, *REGISTRATION, *CPLUSPLUS, *CUDA_CPLUSPLUS, *RUNTIME], ids=lambda f: f.symbol
)
def test_the_installed_torch_has_what_is_listed(function):
    assert TorchSymbols()[function.symbol]
    assert function.declaration().startswith(f"declare {function.result} @{function.symbol}(")


def test_without_cuda_no_gate_needs_names_of_cuda():
    cuda = {function.symbol for function in (*CUDA_STABLE, *CUDA_CPLUSPLUS, *DRIVER)}
    needed, more = (set(undefined(translate_module(support_text(cuda=flag), host_target()))) for flag in (False, True))
    assert not cuda & needed
    assert more - needed == cuda | {"bw_devices", "bw_cuda_load"}


def test_data_and_keys_are_found():
    assert TorchSymbols()[UNDEFINED_TENSOR]
    assert TorchSymbols().get("no_such_function_anywhere") is None
    assert dispatch_key("CPU") == int(torch._C.DispatchKey.CPU)


def test_every_function_is_older_than_the_oldest_torch_that_is_supported():
    for function in (*STABLE, *CUDA_STABLE, *REGISTRATION):
        assert not function.since or tuple(map(int, function.since.split("."))) <= (2, 11)
    assert release() >= (2, 11)
    assert knows_python_error() or release() > (2, 13)
