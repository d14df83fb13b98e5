"""The cross-entropy method: controllers drawn around a mean, and a new mean and deviation from the best of them.

Noise is added to the deviation, less each time, so that it does not shrink too early (I. Szita and A. Lorincz,
"Learning Tetris using the noisy cross-entropy method", 2006). Everything stays on one device. With torch.distributed
the population is shared out among the ranks, and all ranks come to the same mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import distributed

from brickwork import ops
from examples.tetris.games import finished
from examples.tetris.rules import FEATURES


@dataclass(frozen=True, slots=True)
class Settings:
    """How the method searches: controllers a generation, games of each, the share of the best, and when games end."""

    controllers: int = 128
    games: int = 4
    elite: int = 12
    most: int = 50_000
    noise: float = 4.0
    noise_less: float = 0.4


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generation came to: the mean and the best of its scores in lines, and what the next one is drawn from."""

    number: int
    mean_lines: float
    best_lines: float
    moves: int
    mean: torch.Tensor
    deviation: torch.Tensor


def generations(settings: Settings, device: torch.device | str = "cpu") -> Iterator[Generation]:
    """Yield one generation after the other, without end."""
    mean = torch.zeros(len(FEATURES), device=device)
    deviation = torch.full((len(FEATURES),), 10.0, device=device)
    number = 0
    while True:
        weights, scores, moves = played(mean, deviation, settings)
        best = weights[scores.topk(settings.elite).indices]
        mean = best.mean(dim=0)
        noise = max(settings.noise - settings.noise_less * number, 0.0)
        deviation = (best.var(dim=0, correction=0) + noise).sqrt()
        yield Generation(number, scores.mean().item(), scores.max().item(), moves, mean, deviation)
        number += 1


def played(mean: torch.Tensor, deviation: torch.Tensor, settings: Settings) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return controllers (n, 8), the mean lines of each (n,), and how many moves were made; of all ranks together."""
    ranks = distributed.get_world_size() if distributed.is_initialized() else 1
    own = settings.controllers // ranks
    weights = ops.sample_normal(mean, deviation, own).T.contiguous()
    games = finished(weights.repeat_interleave(settings.games, dim=0), most=settings.most)
    scores = games.lines.reshape(own, settings.games).float().mean(dim=1)
    moves = games.moves.sum()
    if ranks > 1:
        weights, scores = together(weights), together(scores)
        distributed.all_reduce(moves)
    return weights, scores, int(moves)


def together(own: torch.Tensor) -> torch.Tensor:
    """Return the rows of all ranks, in the order of the ranks."""
    parts = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
    distributed.all_gather(parts, own)
    return torch.cat(parts)
