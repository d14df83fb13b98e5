"""The other systems of the benchmarks: those that are installed answer what brickwork's formulations answer."""

import pytest
import torch

from benchmarks.peers import registry
from support.peer_cases import cases, check_samples, wrong_answers

ON_CPU = [name for name, system in registry.SYSTEMS.items() if "cpu" in system.devices and name != "torch.compile"]


def skip_if_absent(name):
    why = registry.SYSTEMS[name].absence("cpu")
    if why:
        pytest.skip(why)


@pytest.mark.parametrize("name", ON_CPU)
def test_answers(name):
    skip_if_absent(name)
    assert not wrong_answers(name, cases("cpu"))


@pytest.mark.parametrize("name", ON_CPU)
def test_samples_are_those_of_normal_distributions(name):
    skip_if_absent(name)
    mu, sigma = torch.tensor([-3.0, 0.0, 5.0]), torch.tensor([0.5, 1.0, 2.0])
    for n in 20_001, 20_000:
        check_samples(registry.contenders("sample", mu, sigma, n, peers=frozenset({name})), mu, sigma)


def test_what_is_not_there_is_told():
    with pytest.raises(ValueError, match="there is no kernel 'tan'"):
        registry.contenders("tan", torch.ones(1))
    with pytest.raises(ValueError, match="there is no peer 'fortran'"):
        registry.contenders("sin", torch.ones(1), torch.ones(1), peers=frozenset({"fortran"}))
    assert registry.absent("cpu")["cuda"] == "cuda makes no code for cpu"


def test_a_package_that_cannot_be_imported_is_left_out_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "half_installed.py").write_text("raise ImportError('cannot import name IntelGPUError\\nmore')")
    monkeypatch.syspath_prepend(tmp_path)
    said = registry.failure_of_import("half_installed")
    assert said == "half_installed cannot be imported: ImportError: cannot import name IntelGPUError"
    assert registry.failure_of_import("json") == ""


def test_a_system_that_fails_is_a_contender_that_fails():
    found = registry.contenders("pad", torch.ones(2, 2), peers=frozenset({"torch"}))
    with pytest.raises(TypeError, match="missing"):
        found["torch"]()
