"""The other systems of the benchmarks on a GPU: those that are installed answer what torch answers."""

import pytest
import torch

from benchmarks.peers import registry
from support.gpu import GPU
from support.peer_cases import cases, check_samples, wrong_answers

pytestmark = GPU
ON_GPU = [name for name, system in registry.SYSTEMS.items() if "cuda" in system.devices and name != "torch.compile"]
SIZES = (2, 3, 1), (3, 2, 31), (17, 2, 147), (5, 3, 64), (33, 4, 768)


def skip_if_absent(name):
    why = registry.SYSTEMS[name].absence("cuda")
    if why:
        pytest.skip(why)


@pytest.mark.parametrize("name", ON_GPU)
def test_answers(name):
    skip_if_absent(name)
    assert not wrong_answers(name, cases("cuda", sizes=SIZES))


@pytest.mark.parametrize("name", ON_GPU)
def test_samples_are_those_of_normal_distributions(name):
    skip_if_absent(name)
    mu, sigma = torch.tensor([-3.0, 0.0, 5.0], device="cuda"), torch.tensor([0.5, 1.0, 2.0], device="cuda")
    for n in 20_001, 20_000:
        check_samples(registry.contenders("sample", mu, sigma, n, peers=frozenset({name})), mu, sigma)
