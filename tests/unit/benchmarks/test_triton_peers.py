"""The Triton of the benchmarks without a GPU, where Triton is installed: its interpreter computes what it should."""

import importlib.util

import pytest

from support.gpu import script

SOURCE = """
import torch

from benchmarks.peers import triton_loops
from brickwork.bench import check_results as answers
from support.peer_cases import cases, check_samples

for kernel, expected, arguments in cases("cpu"):
    for label, call in getattr(triton_loops, kernel)(*arguments).items():
        words = answers.difference(answers.kept(call()), answers.kept(expected), None)
        assert not words, f"{label}: {kernel}: {words}"
mu, sigma = torch.tensor([-3.0, 5.0]), torch.tensor([0.5, 2.0])
check_samples(triton_loops.sample(mu, sigma, 4001), mu, sigma)
print("right")
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_interpreted(tmp_path, monkeypatch, request):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("PYTHONPATH", str(request.config.rootpath))
    assert script(tmp_path, SOURCE).endswith("right\n")
