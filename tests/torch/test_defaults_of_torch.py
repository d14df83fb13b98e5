"""torch's default dtype and default device, and devices that the source names: one answer everywhere."""

import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses import FakeTensorMode

import brickwork as bw
from brickwork.diagnostics.errors import CompileError

FLOATS = (torch.float64, torch.bfloat16, torch.float16, torch.float32)


@bw.op("bwdefaults::shifted")
def shifted(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Tensors without a dtype, one of them for the operator alone, and a Python float."""
    kept = torch.zeros(x.shape[0])
    out = torch.full((x.shape[0],), 0.1)
    last = 0.1
    for i in range(x.shape[0]):
        kept[i] = x[i] * 0.1
    for i in range(x.shape[0]):
        out[i] += kept[i] * kept[i]
        last += 0.1
    return out, last


@bw.op("bwdefaults::ordered")
def ordered(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The same where Python runs the host part."""
    y = torch.sort(x)[0]
    out = torch.empty(x.shape[0])
    last = 0.1
    for i in range(x.shape[0]):
        out[i] = y[i] * 0.1
        last += 0.1
    return out, last


@bw.op("bwdefaults::counted")
def counted(n: int) -> torch.Tensor:
    out = torch.empty(n)
    for i in range(n):
        out[i] = i * 0.1
    return out


@bw.op("bwdefaults::placed")
def placed(n: int) -> torch.Tensor:
    out = torch.empty(n, device="cpu")
    for i in range(n):
        out[i] = i
    return out


@bw.op("bwdefaults::ordinals")
def ordinals(n: int) -> torch.Tensor:
    """No tensor argument, and a host part in Python."""
    y = torch.arange(n)
    out = torch.empty(n)
    for i in range(n):
        out[i] = y[i]
    return out


def on(device: str, name: str) -> bw.Op:
    """Return an operator that names a device."""

    @bw.op(f"bwdefaults::on_{name}")
    def named(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[0], device=device)
        for i in range(x.shape[0]):
            out[i] = x[i] * 2
        return out

    return named


@pytest.fixture(autouse=True)
def _as_before() -> Generator[None]:
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def dtypes(results: Any) -> list[torch.dtype]:
    return [result.dtype for result in results]


def test_every_form_of_an_operator_follows_the_default_dtype():
    x = torch.rand(5, dtype=torch.float64)
    for dtype in FLOATS:
        torch.set_default_dtype(dtype)
        for operator in (shifted, ordered):
            results = operator(x)
            torch.testing.assert_close(operator.python(x), results, msg=lambda text, dtype=dtype: f"{dtype}: {text}")
            with FakeTensorMode() as mode:
                fakes = operator(mode.from_tensor(x))
            assert dtypes(results) == dtypes(fakes) == [dtype] * 2
        assert torch.vmap(shifted)(x[None])[0].dtype == dtype
        assert torch.func.jvp(shifted, (x,), (x,))[1][0].dtype == dtype
        assert f"default {dtype}".replace("torch.", "") in shifted.explain(x) or dtype == torch.float32
    assert len(shifted.stats().specialisations) == len(FLOATS) * 3  # and tangents and batches, under each


def test_operators_that_name_every_dtype_have_one_code_for_all_defaults():
    @bw.op("bwdefaults::typed")
    def typed(x: torch.Tensor) -> torch.Tensor:
        out, other = torch.empty(x.shape[0], dtype=x.dtype), torch.zeros_like(x)
        for i in range(x.shape[0]):
            other[i] = x[i]
            out[i] = other[i]
        return out

    x = torch.ones(3)
    typed(x)
    torch.set_default_dtype(torch.float64)
    typed(x)
    assert len(typed.stats().specialisations) == 1
    assert "call i64 @bw_default_dtype" not in typed.inspect("llvm", x)


def test_code_for_gpus_asks_for_the_default_dtype():
    x = torch.ones(3)
    torch.set_default_dtype(torch.float64)
    assert "call i64 @bw_default_dtype" in shifted.inspect("llvm", x, device="sm_90")
    assert "store double" in shifted.inspect("device", x, device="sm_90")


def test_a_compiled_graph_is_made_anew_for_another_default_dtype():
    """The memory that a graph plans for results has their size."""
    x = torch.ones(4096, dtype=torch.float64)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda x: shifted(x)[0] * 2, fullgraph=True, backend=counter)
    for dtype, graphs in ((torch.float32, 1), (torch.float64, 2), (torch.float32, 2)):
        torch.set_default_dtype(dtype)
        torch.testing.assert_close(compiled(x), shifted(x)[0] * 2)
        assert counter.frame_count == graphs


@pytest.mark.parametrize("mode", ["plain", "compiled"])
def test_gradients_are_those_of_the_default_dtype_of_the_call(mode: str):
    in_graph = torch.compile(shifted, fullgraph=True, backend="aot_eager")
    function: Callable[..., Any] = in_graph if mode == "compiled" else shifted
    x = torch.linspace(1, 2, 5, dtype=torch.float64, requires_grad=True)
    for dtype in (torch.float32, torch.float64, torch.float32, torch.float64):
        torch.set_default_dtype(dtype)
        out = function(x)[0]
        torch.set_default_dtype(torch.float32 if dtype == torch.float64 else torch.float64)
        (grad,) = torch.autograd.grad(out.sum(), x, create_graph=mode == "plain")
        tolerance = 1e-12 if dtype == torch.float64 else 1e-6
        torch.testing.assert_close(grad, 0.02 * x, rtol=tolerance, atol=0)
        assert (grad != 0.02 * x).any() or dtype == torch.float64
        if mode == "plain":
            (second,) = torch.autograd.grad(grad.sum(), x)
            torch.testing.assert_close(second, torch.full_like(x, 0.02), rtol=tolerance, atol=0)


@pytest.mark.parametrize("device", ["meta", "cuda"])
def test_the_default_device_does_not_count_beside_a_tensor(device: str):
    x = torch.ones(3)
    with torch.device(device):
        for operator in (shifted, ordered):
            with FakeTensorMode() as mode:
                fake = operator(mode.from_tensor(x))[0]
            compiled = torch.compile(lambda x, operator=operator: operator(x)[0] + 1, backend="aot_eager")
            found = [operator(x)[0], operator.python(x)[0], fake, compiled(x)]
            assert {each.device.type for each in found} == {"cpu"}


def test_the_default_device_counts_without_a_tensor():
    for operator in (counted, ordinals):
        torch.set_default_device("meta")
        compiled = torch.compile(lambda n, operator=operator: operator(n) + 1, backend="aot_eager")
        assert {each.device.type for each in (operator(4), operator.python(4), compiled(4))} == {"meta"}
        with torch.device("cpu"):
            torch.testing.assert_close(operator(4), operator.python(4))
        torch.set_default_device(None)
        torch.testing.assert_close(compiled(4), operator(4) + 1)
    with torch.device("meta"):
        assert placed(4).device.type == placed.python(4).device.type == "cpu"


def test_the_default_device_is_that_of_the_thread():
    found: list[str] = []
    with torch.device("meta"):
        thread = threading.Thread(target=lambda: found.append(counted(3).device.type))
        thread.start()
        thread.join()
    assert found == ["cpu"]


def test_a_device_that_is_named_is_honoured_or_refused():
    x = torch.ones(3)
    cpu, cuda, meta, first = on("cpu", "cpu"), on("cuda", "cuda"), on("meta", "meta"), on("cuda:0", "first")
    assert cpu(x).tolist() == cpu.python(x).tolist() == [2.0] * 3
    for call in (cuda, cuda.python):
        with pytest.raises(CompileError, match="a tensor is made on 'cuda' here, and the arguments are on 'cpu'"):
            call(x)
    with pytest.raises(RuntimeError, match="a tensor is made on 'cuda' here"):
        torch.compile(cuda, fullgraph=True, backend="aot_eager")(x)
    with FakeTensorMode() as mode:
        assert cuda(torch.empty(3, device="cuda")).device.type == "cuda"
        with pytest.raises(CompileError, match="a tensor is made on 'cuda' here"):
            cuda(mode.from_tensor(x))
        with pytest.raises(CompileError, match="a tensor is made on 'cpu' here, and the arguments are on 'cuda'"):
            cpu(torch.empty(3, device="cuda"))
    assert ".visible .entry" in cuda.inspect("ptx", x, device="sm_90")
    assert {cpu.definition.host, cuda.definition.host} == {"native"}
    for operator in (meta, first):
        assert operator.definition.host == "python"
        with pytest.raises((RuntimeError, AssertionError), match=r"same device|CUDA"):
            operator(x)
