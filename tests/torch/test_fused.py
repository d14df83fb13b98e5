"""`fused=False`: no multiplication and addition become one operation, on processors, on GPUs, and in gradients."""

import re

import pytest
import torch

import brickwork as bw

OPTIMISED = True


def horner(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        s = c[0]
        for k in range(1, 5):
            s = s * x[i] + c[k]
        out[i] = c[0] - x[i] * s
    return out


either = bw.op("bwfused::either")(horner)
apart = bw.op("bwfused::apart", fused=False)(horner)
fast = bw.op("bwfused::fast", fused=False, fast_math=True)(horner)


def one_by_one(x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Compute with torch, which rounds after each operation."""
    s = c[0]
    for k in range(1, 5):
        s = s * x + c[k]
    return c[0] - x * s


def operations(ptx: str) -> set[str]:
    return set(re.findall(r"\b((?:fma|mul|add|sub)\S*)\.f32", ptx))


def test_operations_round_one_by_one():
    x, c = torch.linspace(-3, 3, 1000), torch.linspace(0.1, 0.7, 5)
    assert torch.equal(apart(x, c), one_by_one(x, c))
    assert torch.equal(apart.python(x, c), one_by_one(x, c))
    if "llvm.fma" in either.inspect("llvm", x, c):
        assert not torch.equal(either(x, c), one_by_one(x, c))
    for each in (apart, fast):
        assert not re.search("llvm.fma|contract", each.inspect("llvm", x, c))
        assert not re.search(r"vfn?m(add|sub)|fmadd", each.inspect("asm", x, c))


def test_gradients_inherit_it():
    x, c = torch.linspace(-3, 3, 10).requires_grad_(), torch.linspace(0.1, 0.7, 5)
    assert "llvm.fma" not in apart.inspect("backward llvm", x, c)
    (found,) = torch.autograd.grad(apart(x, c).sum(), x)
    (wanted,) = torch.autograd.grad(one_by_one(x, c).sum(), x)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("stage", ["ptx", "backward ptx"])
def test_kernels_of_gpus_have_no_fused_operation(stage):
    x, c = torch.zeros(100, requires_grad=True), torch.zeros(5)
    assert "fma.rn" in operations(either.inspect(stage, x, c, device="sm_90"))
    for each in (apart, fast):
        found = operations(each.inspect(stage, x, c, device="sm_90"))
        assert {"mul.rn", "add.rn"} <= found <= {"mul.rn", "add.rn", "sub.rn"}


def test_inductor_calls_the_operator():
    def pointwise(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[i] * x[i] + x[i]
        return out

    assert bw.op("bwfused::inlined")(pointwise).fusible is not None
    assert bw.op("bwfused::called", fused=False)(pointwise).fusible is None


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'fuzed'"):
        bw.op("bwfused::wrong", fuzed=False)  # pyright: ignore[reportCallIssue]
