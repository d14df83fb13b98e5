"""The model: embedding, blocks of time mixing and channel mixing, and a head, in the manner of RWKV (version 2).

What mixes the steps is a function `mix(w, k, eps)` like `brickwork.ops.timex`, so that others can take its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from examples.language_model.text import ALPHABET

Mix: TypeAlias = Callable[[Tensor, Tensor, float], Tensor]
"""Convolves each channel causally: w (C, T), k (B, C, T) -> (B, C, T)."""

LEAST = 1e-9
"""Keeps the sum of all weights from being zero."""
LARGEST_KEY = 30.0
"""Keys are taken to powers of e, which end in float32 at 88."""


def mix_by_convolution(w: Tensor, k: Tensor, eps: float) -> Tensor:
    """Do what `timex` does with torch's own convolution."""
    steps = k.shape[2]
    return functional.conv1d(functional.pad(k, (steps - 1, 0)), w[:, None], groups=w.shape[0]) + eps


class TimeMixing(nn.Module):
    """Averages the past of each channel, by weights of its distance and of what stands there."""

    distance: Tensor

    def __init__(self, channels: int, steps: int, mix: Mix) -> None:
        """Take the length of the passages; `mix` runs through the steps."""
        super().__init__()
        self.mix = mix
        slowness = torch.linspace(0, 1, channels)
        self.decay = nn.Parameter(-5 + 8 * slowness**0.7)
        self.first = nn.Parameter(torch.full((channels, 1), -1.2))
        self.register_buffer("distance", -torch.arange(steps - 2, -1, -1.0))
        self.key, self.value, self.receptance, self.output = (nn.Linear(channels, channels, bias=False) for _ in "kvro")

    def forward(self, x: Tensor) -> Tensor:
        """Mix the steps of x (B, T, C)."""
        x = with_step_before(x)
        w = torch.cat([self.decay.exp()[:, None] * self.distance, self.first], dim=1).exp()
        k = self.key(x).clamp(max=LARGEST_KEY).exp().transpose(1, 2).contiguous()
        v = self.value(x).transpose(1, 2)
        mean = self.mix(w, k * v, 0.0) / self.mix(w, k, LEAST)
        return self.output(torch.sigmoid(self.receptance(x)) * mean.transpose(1, 2))


class ChannelMixing(nn.Module):
    """What other models call the feed-forward layer."""

    def __init__(self, channels: int) -> None:
        """Make the layer four times as wide inside."""
        super().__init__()
        self.key = nn.Linear(channels, 4 * channels, bias=False)
        self.value = nn.Linear(4 * channels, channels, bias=False)
        self.receptance = nn.Linear(channels, channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Mix the channels of x (B, T, C)."""
        x = with_step_before(x)
        return torch.sigmoid(self.receptance(x)) * self.value(torch.relu(self.key(x)).square())


class LanguageModel(nn.Module):
    """Says for each character of a passage which one may follow."""

    def __init__(self, *, channels: int, layers: int, steps: int, mix: Mix) -> None:
        """Make a model for passages of `steps` characters."""
        super().__init__()
        self.steps = steps
        self.embedding = nn.Embedding(ALPHABET, channels)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.time = nn.ModuleList(TimeMixing(channels, steps, mix) for _ in range(layers))
        self.channel = nn.ModuleList(ChannelMixing(channels) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2 * layers))
        self.head = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, ALPHABET))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next characters: tokens (B, T) -> (B, T, ALPHABET)."""
        x = self.embedding(tokens)
        for number, (time, channel) in enumerate(zip(self.time, self.channel, strict=True)):
            x = x + time(self.norms[2 * number](x))
            x = x + channel(self.norms[2 * number + 1](x))
        return self.head(x)

    @torch.no_grad()
    def write(self, beginning: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Return `beginning` (at least one token, 1-D) with `count` characters more, drawn one by one."""
        tokens = beginning
        for _ in range(count):
            seen = tokens[-self.steps :]
            passage = functional.pad(seen, (0, self.steps - len(seen)))
            chances = torch.softmax(self(passage[None])[0, len(seen) - 1] / 0.7, dim=0).cpu()
            tokens = torch.cat([tokens, torch.multinomial(chances, 1, generator=generator).to(tokens.device)])
        return tokens


def with_step_before(x: Tensor) -> Tensor:
    """Return x (B, T, C) with half of its channels taken from the step before."""
    half = x.shape[2] // 2
    return torch.cat([functional.pad(x, (0, 0, 1, -1))[..., :half], x[..., half:]], dim=2)
