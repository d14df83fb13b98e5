"""Training: the same model, data and order with one way of mixing or another, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

import torch
from torch.nn import functional

from examples.language_model.model import LanguageModel, Mix
from examples.language_model.text import ALPHABET, batch


@dataclass(frozen=True, slots=True)
class Settings:
    """How large the model is and how long it learns."""

    channels: int = 64
    layers: int = 3
    steps: int = 128
    batch: int = 8
    updates: int = 300
    rate: float = 3e-3
    seed: int = 1


@dataclass(slots=True)
class Run:
    """A model that has learned: its loss (nats a character) and the seconds of each update."""

    model: LanguageModel
    losses: list[float] = field(default_factory=list[float])
    seconds: list[float] = field(default_factory=list[float])

    @property
    def update(self) -> float:
        """The median time of an update, in seconds."""
        return median(self.seconds)

    def loss(self, last: int = 20) -> float:
        """Return the mean loss of the last updates."""
        return sum(self.losses[-last:]) / len(self.losses[-last:])


def train(text: torch.Tensor, mix: Mix, settings: Settings, told: Callable[[int, float], None]) -> Run:
    """Train a model on `text`, on its device; the same settings give the same first weights and passages.

    `told` hears of each update and its loss.
    """
    torch.manual_seed(settings.seed)
    size = {"channels": settings.channels, "layers": settings.layers, "steps": settings.steps}
    run = Run(LanguageModel(**size, mix=mix).to(text.device))
    optimizer = torch.optim.Adam(run.model.parameters(), lr=settings.rate, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, settings.rate, total_steps=settings.updates)
    generator = torch.Generator().manual_seed(settings.seed)
    for number in range(settings.updates):
        tokens, following = batch(text, settings.batch, settings.steps, generator)
        start = time.perf_counter()
        loss = functional.cross_entropy(run.model(tokens).reshape(-1, ALPHABET), following.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        run.losses.append(loss.item())
        run.seconds.append(time.perf_counter() - start)
        told(number, run.losses[-1])
    return run
