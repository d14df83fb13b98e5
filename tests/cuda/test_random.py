"""Random numbers on GPUs: torch's CUDA generator decides, and a key gives what it gives on the CPU."""

import torch
from torch.utils.checkpoint import checkpoint

import brickwork as bw
from brickwork import ops
from support.gpu import GPU
from support.kernels import SUITE
from support.operators import noise

pytestmark = GPU
draws = bw.op("bwgpu::draws")(SUITE["normal_draws"].function)


@bw.op("bwgpu::counted")
def counted(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        while bw.rand() < 0.9:
            out[i] = bw.randint(0, 1000)
        out[i] = bw.randint(-(10**6), 10**6)
    return out


@bw.op("bwgpu::taken_from_draws")
def taken_from_draws(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = bw.randint(0, 5) - x[i]
    return out


def test_what_is_taken_from_a_draw_may_be_nothing():
    x = torch.arange(1000) % 3 - 1 + (torch.arange(1000) % 2 << 32)
    assert torch.equal(taken_from_draws(x.cuda(), key=5).cpu(), taken_from_draws(x, key=5))


def test_a_key_gives_the_cpus_numbers_to_rounding():
    for dtype in (torch.float32, torch.float64):  # normal numbers are made in float32 for either
        mu, sigma = torch.randn(300, dtype=dtype), torch.rand(300, dtype=dtype)
        found = draws(mu.cuda(), sigma.cuda(), key=99)
        torch.testing.assert_close(found.cpu(), draws(mu, sigma, key=99), rtol=1e-5, atol=3e-6)
    x = torch.zeros(1000, dtype=torch.int64)
    assert torch.equal(counted(x.cuda(), key=5).cpu(), counted(x, key=5))
    wide = ops.sample_normal(torch.zeros(40, device="cuda"), torch.ones(40, device="cuda"), 1023, key=3)
    expected = ops.sample_normal(torch.zeros(40), torch.ones(40), 1023, key=3)
    torch.testing.assert_close(wide.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_a_key_may_be_a_tensor_on_either_device():
    x = torch.zeros(100, device="cuda")
    expected = noise(x, 1.0, key=7)
    assert torch.equal(noise(x, 1.0, key=torch.tensor(7)), expected)
    assert torch.equal(noise(x, 1.0, key=torch.tensor(7, device="cuda")), expected)
    assert not torch.equal(noise(x, 1.0, key=8), expected)


def test_seeds_decide_and_calls_differ():
    x = torch.zeros(1000, device="cuda")
    torch.cuda.manual_seed(3)
    one, two = noise(x, 1.0), noise(x, 1.0)
    torch.cuda.manual_seed(3)
    assert torch.equal(noise(x, 1.0), one)
    assert not torch.equal(one, two)


def test_a_saved_state_of_the_generator_is_taken_up_again():
    x = torch.zeros(100, device="cuda")
    state = torch.cuda.get_rng_state()
    first = noise(x, 1.0)
    torch.randn(7, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(noise(x, 1.0), first)


def test_the_cpus_generator_is_left_alone():
    state = torch.get_rng_state()
    noise(torch.zeros(100, device="cuda"), 1.0)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_generator_decides():
    x = torch.zeros(100, device="cuda")
    found = [noise(x, 1.0, generator=torch.Generator(device="cuda").manual_seed(9)) for _ in range(2)]
    assert torch.equal(*found)


def test_a_checkpoint_draws_the_same_numbers_again():
    drawn = []

    def forward(x):
        with torch.no_grad():
            drawn.append(noise(torch.zeros(500, device="cuda"), 1.0))
        return (x * drawn[-1]).sum()

    x = torch.randn(500, device="cuda", requires_grad=True)
    y = checkpoint(forward, x, use_reentrant=False, preserve_rng_state=True)
    noise(torch.zeros(3, device="cuda"), 1.0)
    y.backward()
    assert len(drawn) == 2
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(x.grad, drawn[0])


def test_samples_follow_their_distribution():
    torch.cuda.manual_seed(4)
    z = ops.sample_normal(torch.zeros(1000, device="cuda"), torch.ones(1000, device="cuda"), 1024)
    assert abs(z.mean().item()) < 5e-3
    assert abs(z.std().item() - 1) < 5e-3
    assert abs((z**4).mean().item() - 3) < 3e-2
    assert (z[:-1] * z[1:]).mean(1).abs().max().item() < 6 / 32
    assert abs((z[:, :-1] * z[:, 1:]).mean().item()) < 5e-3
    uniform = (1 + torch.erf(z.flatten().double().sort().values / 2**0.5)) / 2
    steps = torch.arange(1, len(uniform) + 1, device="cuda") / len(uniform)
    assert (uniform - steps).abs().max().item() < 2 / len(uniform) ** 0.5
