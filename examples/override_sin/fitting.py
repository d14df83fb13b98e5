"""Fitting: the network learns a picture, and what came of it. It calls `torch.sin`, whatever that runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import torch
from torch import Tensor, nn

from examples.override_sin.siren import Siren


@dataclass(frozen=True, slots=True)
class Settings:
    """How large the network is and how long it learns."""

    width: int = 64
    layers: int = 4
    updates: int = 300
    rate: float = 1e-3
    seed: int = 0


@dataclass(slots=True)
class Fit:
    """A network that has learned: its loss (mean square) and the seconds of each update."""

    model: Siren
    losses: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])

    @property
    def update(self) -> float:
        """The median time of an update, in seconds."""
        return median(self.seconds)

    @torch.no_grad()
    def picture(self, height: int, width: int) -> Tensor:
        """Return what it has learned: (height, width, 3), at any size."""
        device = next(self.model.parameters()).device
        return self.model(places(height, width).to(device)).clamp(0, 1).reshape(height, width, 3)


def places(height: int, width: int) -> Tensor:
    """Return the places of a picture's pixels, from -1 to 1: (height * width, 2)."""
    return torch.cartesian_prod(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width))


def made(settings: Settings, device: torch.device | str) -> Siren:
    """Return a network that has learned nothing; the same settings give the same weights."""
    torch.manual_seed(settings.seed)
    return Siren(settings.width, settings.layers).to(device)


def loss_and_gradients(model: nn.Module, x: Tensor, colours: Tensor) -> tuple[Tensor, ...]:
    """Return the mean square error at the places x, and its gradient by each parameter."""
    loss = (model(x) - colours).square().mean()
    return loss.detach(), *torch.autograd.grad(loss, tuple(model.parameters()))


def fit(picture: Tensor, settings: Settings, told: Callable[[int, float], None]) -> Fit:
    """Learn a picture (height, width, 3) on its device; `told` hears of each update and its loss."""
    found = Fit(made(settings, picture.device))
    x, colours = places(*picture.shape[:2]).to(picture.device), picture.reshape(-1, 3)
    optimizer = torch.optim.Adam(found.model.parameters(), lr=settings.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=settings.updates)
    for number in range(settings.updates):
        start = time.perf_counter()
        loss, *gradients = loss_and_gradients(found.model, x, colours)
        for parameter, gradient in zip(found.model.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
        schedule.step()
        found.losses.append(loss.item())
        found.seconds.append(time.perf_counter() - start)
        told(number, found.losses[-1])
    return found
