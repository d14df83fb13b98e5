"""The other systems of the benchmarks: those that are installed answer what brickwork's formulations answer."""

import pytest
import torch

from benchmarks.peers import registry
from benchmarks.peers import torch_formulations as reference
from brickwork.bench import answers
from brickwork.bench.timers import Call

ON_CPU = [name for name, system in registry.SYSTEMS.items() if "cpu" in system.devices]
LATTICE = [13, 7], [6, 0], [5, 4]


def differences(kernel, expected, *arguments, peers):
    """Return, by label, how the answers of contenders differ from what is expected."""
    found = registry.contenders(kernel, *arguments, peers=peers)
    assert found
    return {
        label: words
        for label, call in found.items()
        if (words := answers.difference(answers.kept(call()), answers.kept(expected), None))
    }


def gradients(w, k, gradient):
    w, k = w.double().requires_grad_(), k.double().requires_grad_()
    return torch.autograd.grad(reference.timex(w, k, 0.1), (w, k), gradient.double())


def cases(device):
    """Yield kernels with the answer that is expected and the arguments."""
    torch.manual_seed(0)
    tile = torch.rand(4, 6, device=device)
    for size in (21, 133), (9, 64):
        yield "pad", reference.brick_pad(tile, *size, *LATTICE), (tile, torch.empty(*size, device=device), *LATTICE)
    for batch, channels, length in (2, 3, 1), (3, 2, 31), (2, 2, 147):
        w, k = torch.randn(channels, length, device=device), torch.randn(batch, channels, length, device=device)
        gradient = torch.randn_like(k)
        yield "timex", reference.timex(w.double(), k.double(), 0.1), (w, k, 0.1)
        yield "timex_backward", gradients(w, k, gradient), (w, k, gradient)
    x = torch.randn(7, 33, device=device)
    yield "sin", torch.sin(x), (x, torch.empty_like(x))
    mu, sigma, z = torch.randn(5, device=device), torch.rand(5, device=device), torch.randn(37, device=device)
    yield "sample_shared", reference.sample_shared(mu, sigma, z), (mu, sigma, z)
    for count in 1, 3:
        tensors = [torch.randn(100, device=device) for _ in range(count)]
        yield "launch", sum(tensors), (tensors,)


def skip_if_absent(name, device):
    why = registry.SYSTEMS[name].absence(device)
    if why:
        pytest.skip(why)


@pytest.mark.parametrize("name", [name for name in ON_CPU if name != "torch.compile"])
def test_answers_on_the_cpu(name):
    skip_if_absent(name, "cpu")
    wrong = {}
    for kernel, expected, arguments in cases("cpu"):
        found = differences(kernel, expected, *arguments, peers=frozenset({name}))
        wrong |= {f"{label}: {kernel}": words for label, words in found.items()}
    assert not wrong


@pytest.mark.parametrize("name", [name for name in ON_CPU if name != "torch.compile"])
def test_samples_are_those_of_normal_distributions(name):
    skip_if_absent(name, "cpu")
    mu, sigma = torch.tensor([-3.0, 0.0, 5.0]), torch.tensor([0.5, 1.0, 2.0])
    check_samples(registry.contenders("sample", mu, sigma, 20_001, peers=frozenset({name})), mu, sigma)


def check_samples(contenders: dict[str, Call], mu, sigma):
    """Ask for moments, for independence within and between rows, and for other draws at each call."""
    assert contenders
    for label, call in contenders.items():
        first, second = (answers.kept(call())[0] for _ in range(2))
        z = ((first - mu[:, None]) / sigma[:, None]).double().cpu()
        n = z.shape[1]
        assert z.mean(1).abs().max() < 5 / n**0.5, label
        assert (z.var(1) - 1).abs().max() < 8 / n**0.5, label
        assert (z**4).mean(1).sub(3).abs().max() < 50 / n**0.5, label
        every = torch.cat([z[:, :-1], z[:, 1:]])
        assert (torch.corrcoef(every) - torch.eye(len(every))).abs().max() < 5 / n**0.5, label
        assert not torch.equal(first, second), label


def test_what_is_not_there_is_told():
    with pytest.raises(ValueError, match="there is no kernel 'tan'"):
        registry.contenders("tan", torch.ones(1))
    with pytest.raises(ValueError, match="there is no peer 'fortran'"):
        registry.contenders("sin", torch.ones(1), torch.ones(1), peers=frozenset({"fortran"}))
    assert registry.absent("cpu")["cuda"] == "cuda makes no code for cpu"


def test_a_system_that_fails_is_a_contender_that_fails():
    found = registry.contenders("pad", torch.ones(2, 2), peers=frozenset({"torch"}))
    with pytest.raises(TypeError, match="missing"):
        found["torch"]()
