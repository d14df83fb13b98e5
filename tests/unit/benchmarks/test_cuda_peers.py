"""The CUDA C++ of the benchmarks without a GPU: NVRTC takes it, and run on the CPU it computes what it should."""

import shutil

import pytest
import torch

from benchmarks.peers import cuda_loops
from benchmarks.peers import torch_formulations as reference
from support.cuda_on_cpu import Emulated
from support.peer_cases import check_deviates

ELEMENTWISE = {
    cuda_loops.pad_plain: (torch.ones(4, 6), torch.empty(9, 16), 3, 2, 5),
    cuda_loops.pad_tuned: (torch.ones(4, 6), torch.empty(9, 16), 3, 2, 5),
    cuda_loops.sin_plain: (torch.ones(9), torch.ones(9)),
    cuda_loops.sin_tuned: (torch.ones(9), torch.ones(9)),
    **dict.fromkeys([cuda_loops.sample_plain, cuda_loops.sample_tuned], (torch.zeros(3), torch.ones(3), 4001, 7)),
    cuda_loops.sample_fast: (torch.zeros(3), torch.ones(3), 4000, 7),
    **dict.fromkeys([cuda_loops.shared_plain, cuda_loops.shared_tuned], (torch.ones(3), torch.ones(3), torch.ones(5))),
}
TO_W = [cuda_loops.to_w_plain, *cuda_loops.to_w_tuned.values()]
TIMEX = [cuda_loops.timex_plain, *cuda_loops.timex_tuned.values()]
TO_K = [cuda_loops.to_k_plain, *cuda_loops.to_k_tuned.values()]
LENGTHS = (1, 147, 196)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    return Emulated([*ELEMENTWISE, *TIMEX[1:], *TO_K[1:], *TO_W[1:]], tmp_path_factory.mktemp("emulated"))


@pytest.mark.parametrize("operator", ELEMENTWISE, ids=lambda operator: operator.name)
def test_the_compiler_takes_elementwise_kernels(operator):
    operator.warmup(*ELEMENTWISE[operator], device="sm_90")


@pytest.mark.parametrize(
    "operator",
    [*TIMEX[:2], cuda_loops.to_w_tuned[8]],
    ids=lambda operator: operator.name,
)
def test_the_compiler_takes_convolutions_without_spills(operator):
    k = torch.empty(32, 4, 768, device="meta")
    first = k if operator in TO_W else torch.empty(4, 768, device="meta")
    operator.warmup(first, k, *(0.1,) * (len(operator.declared.parameters) - 2), device="sm_90")
    assert "bytes spill" not in operator.inspect("log")


def inputs(length, batch):
    torch.manual_seed(length)
    return torch.randn(2, length), torch.randn(batch, 2, length), torch.randn(batch, 2, length)


def close(found, expected):
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=5e-4)


@pytest.mark.parametrize("length", LENGTHS)
def test_convolutions(emulated, length):
    w, k, _ = inputs(length, 17)
    for operator in TIMEX[1:]:
        close(emulated(operator, w, k, 0.25), reference.timex(w.double(), k.double(), 0.25))


@pytest.mark.parametrize("length", LENGTHS)
def test_gradients(emulated, length):
    w, k, gradient = inputs(length, 11)
    wide = w.double().requires_grad_(), k.double().requires_grad_()
    of_w, of_k = torch.autograd.grad(reference.timex(*wide, 0.25), wide, gradient.double())
    for operator in TO_W[1:]:
        close(emulated(operator, k, gradient), of_w)
    for operator in TO_K[1:]:
        close(emulated(operator, w, gradient, 0.0), of_k)


@pytest.mark.parametrize("width", [1, 64, 133, 136])
@pytest.mark.parametrize("tile_width", [1, 6, 8, 300])
def test_padding(emulated, width, tile_width):
    tile, image = torch.rand(4, tile_width), torch.empty(9, width)
    for origin_x, origin_y, skew in (13, 7, 5), (-100, -3, -7):
        expected = reference.brick_pad(tile, 9, width, [origin_x, origin_y], [tile_width, 0], [skew, 4])
        for operator in cuda_loops.pad_plain, cuda_loops.pad_tuned:
            assert torch.equal(emulated(operator, tile, image, origin_x, origin_y, skew), expected)


@pytest.mark.parametrize("count", [1, 5, 1030])
def test_elementwise(emulated, count):
    x, mu, sigma = torch.randn(count), torch.randn(3), torch.rand(3)
    for operator in cuda_loops.sin_plain, cuda_loops.sin_tuned:
        torch.testing.assert_close(emulated(operator, x, torch.empty_like(x)), torch.sin(x))
    for operator in cuda_loops.shared_plain, cuda_loops.shared_tuned:
        torch.testing.assert_close(emulated(operator, mu, sigma, x), reference.sample_shared(mu, sigma, x))


@pytest.mark.parametrize("operator", [cuda_loops.sample_plain, cuda_loops.sample_tuned, cuda_loops.sample_fast])
def test_samples(emulated, operator):
    mu, sigma = torch.tensor([-3.0, 5.0]), torch.tensor([0.5, 2.0])
    for n in 4001, 4000:
        z = (emulated(operator, mu, sigma, n, 7) - mu[:, None]) / sigma[:, None]
        check_deviates(z.double())
