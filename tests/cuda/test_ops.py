"""The ready operators on GPUs: values, opcheck, torch.compile, and what they say of themselves."""

import pytest
import torch

import brickwork as bw
from benchmarks.peers import torch_formulations as reference
from brickwork import ops
from brickwork.ops.brick_pad import brick_pad_colour, brick_pad_plane
from brickwork.runtime.cuda_toolkit import find_tool
from support.gpu import GPU, two_gpus
from support.operators import CASES, scale_, square

pytestmark = GPU


def gpu(*sizes):
    return torch.randn(*sizes, device="cuda")


CALLS = {
    "brick_pad": (brick_pad_plane, lambda: (gpu(4, 6), 9, 14, [3, 2], [6, 0], [2, 4])),
    "brick_pad_colour": (brick_pad_colour, lambda: (gpu(4, 6, 3), 9, 14, [3, 2], [6, 0], [2, 4])),
    "timex": (ops.timex, lambda: (gpu(2, 9), gpu(2, 2, 9), 0.1)),
    "timex_padded": (ops.timex_padded, lambda: (gpu(2, 1, 5), gpu(2, 2, 9), 0.1)),
    "sin": (ops.sin, lambda: (gpu(3, 5),)),
    "sample_normal": (ops.sample_normal, lambda: (gpu(3), gpu(3).abs(), 4)),
}


@pytest.mark.parametrize("size", [(21, 133), (208, 515), (1, 1), (0, 5), (64, 256)])
@pytest.mark.parametrize("channels", [(), (3,)])
def test_brick_pad(size, channels):
    tile = torch.rand(4, 6, *channels, device="cuda")
    for lattice in (([13, 7], [6, 0], [2, 4]), ([1000, 2000], [6, 0], [10**6, 4])):
        assert torch.equal(ops.brick_pad(tile, *size, *lattice), reference.brick_pad(tile, *size, *lattice))


def test_brick_pad_headline_case():
    tile = torch.rand(48, 32, device="cuda")
    arguments = (4144, 8224, [4096, 2048], [32, 0], [10, 48])
    assert torch.equal(ops.brick_pad(tile, *arguments), reference.brick_pad(tile, *arguments))


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 7), (3, 2, 33), (2, 5, 130), (0, 3, 4), (2, 3, 0), (4, 8, 768)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_timex(shape, dtype):
    b, c, t = shape
    w, k = torch.randn(c, t, dtype=dtype, device="cuda"), torch.randn(b, c, t, dtype=dtype, device="cuda")
    found = ops.timex(w, k, 0.25)
    assert (found.shape, found.dtype) == (shape, dtype)
    if found.numel():
        expected = ops.timex(w.double().cpu(), k.double().cpu(), 0.25)
        torch.testing.assert_close(
            found.cpu().double(), expected, rtol=1e-5, atol=5e-4 if dtype is torch.float32 else 1e-11
        )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("count", [1, 1023, 4096 * 33])
def test_sin(dtype, count):
    x = (50 * torch.randn(count, device="cuda")).to(dtype)
    torch.testing.assert_close(ops.sin(x), torch.sin(x), rtol=None, atol=None)
    special = torch.tensor([0.0, -0.0, float("inf"), float("nan"), 1e30, -1e-30], device="cuda").to(dtype)
    torch.testing.assert_close(ops.sin(special), torch.sin(special), equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name):
    operator, make = CALLS[name]
    overload = getattr(torch.ops.brickwork, operator.name.removeprefix("brickwork::")).default
    assert set(torch.library.opcheck(overload, make()).values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", [name for name in CASES if name != "ramp"])
def test_opcheck_of_every_shape_of_operator(name):
    case = CASES[name]
    arguments = [item.cuda() if isinstance(item, torch.Tensor) else item for item in case.arguments()]
    found = torch.library.opcheck(case.op._overload, tuple(arguments), dict(case.named))
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", [name for name in CALLS if name != "sample_normal"])
def test_compiled_graphs_agree_with_eager(name, backend):
    torch._dynamo.reset()
    operator, make = CALLS[name]
    arguments = make()

    def model(*arguments):
        return operator(*arguments) * 2 + 1

    found = torch.compile(model, fullgraph=True, backend=backend)(*arguments)
    torch.testing.assert_close(found, model(*arguments))


def test_compiled_graphs_draw_on_the_gpu():
    torch._dynamo.reset()
    operator, make = CALLS["sample_normal"]
    compiled = torch.compile(lambda *arguments: operator(*arguments), fullgraph=True, backend="aot_eager")
    arguments = make()
    torch.cuda.manual_seed(2)
    found = compiled(*arguments)
    torch.cuda.manual_seed(2)
    assert torch.equal(found, operator(*arguments))


def test_graphs_of_the_compiler_replay():
    torch._dynamo.reset()

    def model(x):
        y = square(x) + 1
        scale_(y, 3.0)
        return y

    compiled = torch.compile(model, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):
        x = gpu(1000)
        torch.testing.assert_close(compiled(x), (x * x + 1) * 3)


# ---------------------------------------------------------------- what operators say of themselves


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("stage", ["ir", "schedule", "llvm", "device", "ptx", "resources"])
def test_stages_can_be_inspected(name, stage):
    operator, make = CALLS[name]
    said = operator.inspect(stage, *make())
    assert said.strip()
    if stage == "ptx":
        assert ".visible .entry" in said
        assert ".target sm_" in said
    if stage == "resources":
        assert "registers" in said


def test_machine_code_is_shown_where_a_disassembler_is():
    if find_tool("nvdisasm") is None and find_tool("cuobjdump") is None:
        with pytest.raises(bw.BrickworkError, match="nvdisasm"):
            ops.sin.inspect("sass", gpu(8))
        return
    assert "EXIT" in ops.sin.inspect("sass", gpu(8))


@pytest.mark.parametrize("name", CALLS)
def test_loops_are_not_left_in_order(name):
    operator, make = CALLS[name]
    said = operator.explain(*make())
    assert said.strip()
    assert "checked at each" not in said


def test_meta_tensors_warm_up_for_the_gpu_that_is_named():
    @bw.op("bwgpu::warmed")
    def warmed(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] - 1
        return out

    warmed.warmup(torch.empty(8, device="meta"), device="cuda")
    x = gpu(100)
    assert torch.equal(warmed(x), x - 1)
    assert len(warmed.stats().specialisations) == 1


def test_fast_math_is_close():
    fast = bw.op("bwgpu::fast_normal", fast_math=True)(ops.sample_normal.__wrapped__)
    mu, sigma = torch.zeros(100, device="cuda"), torch.ones(100, device="cuda")
    found, expected = fast(mu, sigma, 1000, key=3), ops.sample_normal(mu, sigma, 1000, key=3)
    assert (found - expected).abs().max().item() < 1e-4


def test_check_compares_with_the_reference_on_the_gpu():
    square.check(gpu(5))


@two_gpus
@pytest.mark.parametrize("name", CALLS)
def test_every_operator_on_the_second_gpu(name):
    operator, make = CALLS[name]
    arguments = [item.to("cuda:1") if isinstance(item, torch.Tensor) else item for item in make()]
    named = {"key": 3} if name == "sample_normal" else {}
    there = operator(*arguments, **named)
    here = operator(*(item.to("cuda:0") if isinstance(item, torch.Tensor) else item for item in arguments), **named)
    assert there.device == torch.device("cuda:1")
    assert torch.equal(there.cpu(), here.cpu())
