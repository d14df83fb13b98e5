"""What a sine in place of PyTorch's does to times: of the sine alone, of the network forward, backward and compiled.

A sample enters the override once and makes several calls, since entering takes about as long as a small network does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

import brickwork as bw
from brickwork.bench import Table
from examples.override_sin.fitting import Settings, loss_and_gradients, made, places

Sine = Callable[[Tensor], Tensor]
Work = Callable[[], object]


def timed(sines: Mapping[str, Sine], settings: Settings, picture: Tensor, *, backend: str, seconds: float) -> Table:
    """Time the work under each sine; answers, gradients too, have to agree with those under PyTorch's own."""
    device = picture.device.type
    return bw.bench.compare(
        {"torch.sin": _repeated, **{name: _under(sine, device) for name, sine in sines.items()}},
        works(settings, picture, backend),
        "ms",
        x_name="calls",
        title=f"SIREN of {settings.layers} layers of {settings.width} sines at {picture[..., 0].numel()} places",
        device="cuda" if device == "cuda" else "cpu",
        seconds=seconds,
        tolerance=1e-4,
    )


def works(settings: Settings, picture: Tensor, backend: str) -> dict[str, tuple[Work, int]]:
    """Return what is timed, and how often a sample does it, by name."""
    model = made(settings, picture.device)
    x, colours = places(*picture.shape[:2]).to(picture.device), picture.reshape(-1, 3)
    waves = 30 * torch.randn(len(x), settings.width, device=picture.device)
    compiled = torch.compile(model, backend=backend)
    return {
        "100 x the sine alone": (lambda: torch.sin(waves), 100),
        "8 x forward": (lambda: model(x).detach(), 8),
        "4 x forward and backward": (lambda: loss_and_gradients(model, x, colours), 4),
        "4 x the same, compiled": (lambda: loss_and_gradients(compiled, x, colours), 4),
    }


def _repeated(work: Work, times: int) -> object:
    """Do the work some times, and return what came of the last."""
    for _ in range(times - 1):
        work()
    return work()


def _under(sine: Sine, device: str) -> Callable[[Work, int], object]:
    """Return what does the work under an override."""

    def run(work: Work, times: int) -> object:
        with bw.override("aten::sin", sine, device=device):
            return _repeated(work, times)

    return run
