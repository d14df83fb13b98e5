"""Many games at once, on one device: where they stand, and playing them on."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from examples.tetris.rules import ROWS, play


@dataclass(frozen=True, slots=True)
class Games:
    """Where games stand: boards int32 (n, 20), lines and moves int64 (n,), over uint8 (n,); all on one device."""

    boards: torch.Tensor
    lines: torch.Tensor
    moves: torch.Tensor
    over: torch.Tensor


def begin(count: int, device: torch.device | str = "cpu") -> Games:
    """Return games that begin."""
    return Games(
        torch.zeros(count, ROWS, dtype=torch.int32, device=device),
        torch.zeros(count, dtype=torch.int64, device=device),
        torch.zeros(count, dtype=torch.int64, device=device),
        torch.zeros(count, dtype=torch.uint8, device=device),
    )


def go_on(games: Games, weights: torch.Tensor, most: int) -> None:
    """Play up to `most` moves of each game; weights float32 (n, 8)."""
    play(games.boards, games.lines, games.moves, games.over, weights, most)


def finished(weights: torch.Tensor, *, most: int, at_once: int = 500) -> Games:
    """Return games, one for each row of weights, played until all are over or `most` moves are made.

    No launch plays more than `at_once` moves of a game. Games that are over leave the batch, so that the others do not
    wait for them.
    """
    games, running = begin(len(weights), weights.device), begin(len(weights), weights.device)
    places = torch.arange(len(weights), device=weights.device)
    made = 0
    while made < most and len(places):
        go_on(running, weights[places], min(at_once, most - made))
        made += at_once
        for whole, part in ((games.boards, running.boards), (games.lines, running.lines), (games.moves, running.moves)):
            whole[places] = part
        games.over[places] = running.over
        alive = running.over == 0
        places = places[alive]
        running = Games(running.boards[alive], running.lines[alive], running.moves[alive], running.over[alive])
    return games
