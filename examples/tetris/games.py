"""Many games at once, on one device: where they stand, and playing them on."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from examples.tetris.play import deal, play, play_in_step
from examples.tetris.rules import HIGH


@dataclass(frozen=True, slots=True)
class Games:
    """Where games stand: boards int32 (n, 24), lines and moves int64 (n,), over uint8 (n,); all on one device."""

    boards: torch.Tensor
    lines: torch.Tensor
    moves: torch.Tensor
    over: torch.Tensor


def begin(count: int, device: torch.device | str = "cpu") -> Games:
    """Return games that begin."""
    return Games(
        torch.zeros(count, HIGH, dtype=torch.int32, device=device),
        torch.zeros(count, dtype=torch.int64, device=device),
        torch.zeros(count, dtype=torch.int64, device=device),
        torch.zeros(count, dtype=torch.uint8, device=device),
    )


def go_on(games: Games, weights: torch.Tensor, pieces: torch.Tensor) -> None:
    """Play every game that is not over on; weights float32 (n, 8), pieces uint8 (moves, n)."""
    engine = play_in_step if games.boards.is_cuda else play
    engine(games.boards, games.lines, games.moves, games.over, weights, pieces)


def dealt(moves: int, games: int, key: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """Return pieces (moves, games): for one key the same on every device."""
    pieces = torch.empty(moves, games, dtype=torch.uint8, device=device)
    deal(pieces, key=key)
    return pieces


def finished(
    weights: torch.Tensor, key: int, *, most: int, at_once: int = 500, rows: torch.Tensor | None = None
) -> Games:
    """Return games, one for each row of weights, played until they are over or `most` moves are made.

    The pieces of a game depend on the key and the row. If `rows` are given, only these are played: so several machines
    share games out. No call plays more than `at_once` moves of a game. Games that are over leave the batch.
    """
    games = begin(len(weights), weights.device)
    places = torch.arange(len(weights), device=weights.device) if rows is None else rows
    running = begin(len(places), weights.device)
    for made in range(0, most, at_once):
        pieces = dealt(min(at_once, most - made), len(weights), key + made, weights.device)
        go_on(running, weights[places], pieces[:, places])
        games.boards[places] = running.boards
        games.lines[places] = running.lines
        games.moves[places] = running.moves
        games.over[places] = running.over
        alive = running.over == 0
        places = places[alive]
        if not len(places):
            break
        running = Games(running.boards[alive], running.lines[alive], running.moves[alive], running.over[alive])
    return games
