"""Small cases of the benchmarks' kernels with the answers that are expected, and what samples must be like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from benchmarks.peers import registry
from benchmarks.peers import torch_formulations as reference
from brickwork.bench import check_results
from brickwork.bench.timers import Call

LATTICE = [13, 7], [6, 0], [5, 4]
SIZES = (2, 3, 1), (3, 2, 31), (2, 2, 147)
Case = tuple[str, object, tuple[Any, ...]]
"""A kernel, the answer that is expected, and the arguments."""


def cases(device: str, *, sizes: Sequence[tuple[int, int, int]] = SIZES) -> Iterator[Case]:
    """Yield cases with tensors on a device; `sizes` are those (B, C, T) of the convolution."""
    random: Any = torch.random
    random.manual_seed(0)
    tile = torch.rand(4, 6, device=device)
    for size in (21, 133), (9, 64):
        image = torch.empty(*size, device=device)
        yield "pad", reference.brick_pad(tile, *size, *LATTICE), (tile, image, *LATTICE)
    for batch, channels, length in sizes:
        w, k = torch.randn(channels, length, device=device), torch.randn(batch, channels, length, device=device)
        gradient = torch.randn_like(k)
        yield "timex", reference.timex(w.double(), k.double(), 0.1), (w, k, 0.1)
        wide = w.double().requires_grad_(), k.double().requires_grad_()
        of_both = torch.autograd.grad(reference.timex(*wide, 0.1), wide, gradient.double())
        yield "timex_backward", of_both, (w, k, gradient)
    for shape in (7, 33), (8, 32):
        x = torch.randn(*shape, device=device)
        yield "sin", torch.sin(x), (x, torch.empty_like(x))
    mu, sigma = torch.randn(5, device=device), torch.rand(5, device=device)
    for n in 37, 64:
        z = torch.randn(n, device=device)
        yield "sample_shared", reference.sample_shared(mu, sigma, z), (mu, sigma, z)
    for count in 1, 3:
        tensors = [torch.randn(100, device=device) for _ in range(count)]
        yield "launch", reference.sum_of(tensors), (tensors,)


def wrong_answers(system: str, given: Iterator[Case]) -> dict[str, str]:
    """Return what a system answers wrongly, by contender and kernel, and how."""
    wrong: dict[str, str] = {}
    for kernel, expected, arguments in given:
        for label, call in registry.contenders(kernel, *arguments, peers=frozenset({system})).items():
            words = check_results.difference(check_results.kept(call()), check_results.kept(expected), None)
            shapes = [tuple(each.shape) for each in check_results.tensors(arguments)]
            if words:
                wrong[f"{label}: {kernel} of {shapes}"] = words
    return wrong


def check_samples(contenders: Mapping[str, Call], mu: torch.Tensor, sigma: torch.Tensor) -> None:
    """Ask for moments, for independence within and between rows, and for other draws at each call."""
    for label, call in contenders.items():
        first, second = (check_results.kept(call())[0] for _ in range(2))
        check_deviates(((first - mu[:, None]) / sigma[:, None]).double().cpu(), label)
        assert not torch.equal(first, second), label


def check_deviates(z: torch.Tensor, label: str = "") -> None:
    """Ask for the moments of independent deviates of N(0, 1), and that neighbours know nothing of each other."""
    n = z.shape[1]
    assert z.mean(1).abs().max() < 5 / n**0.5, label
    assert (z.var(1) - 1).abs().max() < 8 / n**0.5, label
    assert ((z**4).mean(1) - 3).abs().max() < 50 / n**0.5, label
    every = torch.cat([z[:, :-1], z[:, 1:]])
    assert (torch.corrcoef(every) - torch.eye(len(every))).abs().max() < 5 / n**0.5, label
