"""What a sine in place of PyTorch's does to times: of the sine alone, of the network forward, backward and compiled."""

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
    contenders: dict[str, Callable[[Work], object]] = {"torch.sin": lambda work: work()}
    contenders |= {name: _under(sine, device) for name, sine in sines.items()}
    return bw.bench.compare(
        contenders,
        works(settings, picture, backend),
        "ms",
        x_name="work",
        title=f"SIREN of {settings.layers} layers of {settings.width} sines at {picture[..., 0].numel()} places",
        device="cuda" if device == "cuda" else "cpu",
        seconds=seconds,
        tolerance=1e-4,
    )


def works(settings: Settings, picture: Tensor, backend: str) -> dict[str, Work]:
    """Return what is timed, by name."""
    model = made(settings, picture.device)
    x, colours = places(*picture.shape[:2]).to(picture.device), picture.reshape(-1, 3)
    waves = 30 * torch.randn(len(x), settings.width, device=picture.device)
    compiled = torch.compile(model, backend=backend)
    return {
        "the sine alone": lambda: torch.sin(waves),
        "forward": lambda: model(x).detach(),
        "forward and backward": lambda: loss_and_gradients(model, x, colours),
        "forward and backward, compiled": lambda: loss_and_gradients(compiled, x, colours),
    }


def _under(sine: Sine, device: str) -> Callable[[Work], object]:
    """Return what does the work under an override, which is entered and left each time."""

    def run(work: Work) -> object:
        with bw.override("aten::sin", sine, device=device):
            return work()

    return run
