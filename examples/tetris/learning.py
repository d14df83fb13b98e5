"""The cross-entropy method: controllers drawn around a mean, and a new mean and deviation from the best of them.

Noise is added to the deviation, less each time, so that it does not shrink too early (I. Szita and A. Lorincz,
"Learning Tetris using the noisy cross-entropy method", 2006). Everything stays on one device. With torch.distributed
the games are shared out among the ranks. All random numbers are those of a key and a place, so that any number of
ranks comes to the same mean.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import distributed

from brickwork import ops
from examples.tetris.games import Games, finished
from examples.tetris.rules import FEATURES


@dataclass(frozen=True, slots=True)
class Settings:
    """How the method searches: controllers a generation, games of each, the share of the best, and when games end."""

    controllers: int = 128
    games: int = 2
    elite: int = 12
    most: int = 4000
    trials: int = 32
    """Games of the mean controller in each generation."""
    noise: float = 4.0
    noise_less: float = 0.4
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generation came to, in lines a game, and what it was drawn from."""

    number: int
    learnt_lines: float
    """Of the mean controller, in games of its own that nothing was learnt from."""
    mean_lines: float
    """Of all controllers that were drawn."""
    best_lines: float
    moves: int
    mean: torch.Tensor
    deviation: torch.Tensor


def generations(settings: Settings, device: torch.device | str = "cpu") -> Iterator[Generation]:
    """Yield one generation after the other, without end."""
    mean = torch.zeros(len(FEATURES), device=device)
    deviation = torch.full((len(FEATURES),), 10.0, device=device)
    for number in itertools.count():
        key = (settings.seed << 20 | number) << 20
        weights = ops.sample_normal(mean, deviation, settings.controllers, key=key - 1).T.contiguous()
        playing = torch.cat([weights.repeat_interleave(settings.games, 0), mean.expand(settings.trials, -1)])
        games = played(playing, key, settings.most)
        lines, trials = games.lines.double().split([len(playing) - settings.trials, settings.trials])
        scores = lines.reshape(-1, settings.games).mean(dim=1)
        told = torch.stack([trials.mean(), scores.mean(), scores.max(), games.moves.sum()]).tolist()
        yield Generation(number, *told[:3], int(told[3]), mean, deviation)
        best = weights[scores.topk(settings.elite).indices]
        mean = best.mean(dim=0)
        noise = max(settings.noise - settings.noise_less * number, 0.0)
        deviation = (best.var(dim=0, correction=0) + noise).sqrt()


def played(weights: torch.Tensor, key: int, most: int) -> Games:
    """Return the games of all rows of weights; each rank plays its share of them, and tells the others."""
    if not distributed.is_initialized():
        return finished(weights, key, most=most)
    rows = torch.arange(distributed.get_rank(), len(weights), distributed.get_world_size(), device=weights.device)
    games = finished(weights, key, most=most, rows=rows)
    for told in (games.boards, games.lines, games.moves, games.over):
        distributed.all_reduce(told)
    return games


def agreed(enough: bool, device: torch.device | str) -> bool:
    """Return whether any rank has had enough; all ranks return the same."""
    if not distributed.is_initialized():
        return enough
    votes = torch.tensor(int(enough), device=device)
    distributed.all_reduce(votes)
    return bool(votes)
