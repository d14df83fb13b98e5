"""Playing many games at once, as loops: each iteration of a loop over games plays a game of its own.

boards int32 (games, 24); lines cleared and moves made so far, int64 (games,); over uint8 (games,); weights float32
(games, 8), a controller for each game; pieces uint8 (moves, games). A call makes a move with each of the pieces in
every game that is not over.
"""

import math

import torch

import brickwork as bw
from examples.tetris.pieces import FIRST, KINDS, MOST
from examples.tetris.rules import FEATURES, HIGH, landing, put, value

WEIGHTS = len(FEATURES)


@bw.op("tetris::deal")
def deal(pieces: torch.Tensor) -> None:
    """Draw pieces, each of the seven as often."""
    for move in range(pieces.shape[0]):
        for game in range(pieces.shape[1]):
            pieces[move, game] = bw.randint(0, KINDS)


@bw.op("tetris::play")
def play(
    boards: torch.Tensor,
    lines: torch.Tensor,
    moves: torch.Tensor,
    over: torch.Tensor,
    weights: torch.Tensor,
    pieces: torch.Tensor,
) -> None:
    """Play each game in an iteration of its own, from the first piece to the last: for the cores of a CPU."""
    games = boards.shape[0]
    assert boards.shape == (games, HIGH)
    assert len(lines) == len(moves) == len(over) == games
    assert weights.shape == (games, WEIGHTS)
    assert pieces.shape[1] == games
    for game in range(games):
        for move in range(pieces.shape[0]):
            if over[game]:
                break
            best = -math.inf
            chosen = -1
            bottom = 0
            for placement in range(FIRST[pieces[move, game]], FIRST[pieces[move, game] + 1]):
                row = landing(boards, game, placement)
                found = value(boards, weights, game, placement, row)
                if found > best:
                    best = found
                    chosen = placement
                    bottom = row
            if chosen < 0:
                over[game] = 1
            else:
                lines[game] += put(boards, game, chosen, bottom)
                moves[game] += 1


@bw.op("tetris::play_in_step")
def play_in_step(
    boards: torch.Tensor,
    lines: torch.Tensor,
    moves: torch.Tensor,
    over: torch.Tensor,
    weights: torch.Tensor,
    pieces: torch.Tensor,
) -> None:
    """Play all games move by move, and look at all placements at once: for the many threads of a GPU."""
    games = boards.shape[0]
    assert boards.shape == (games, HIGH)
    assert len(lines) == len(moves) == len(over) == games
    assert weights.shape == (games, WEIGHTS)
    assert pieces.shape[1] == games
    values = weights.new_empty((games, MOST))
    rows = boards.new_empty((games, MOST))
    for move in range(pieces.shape[0]):
        for game in range(games):
            for number in range(MOST):
                placement = FIRST[pieces[move, game]] + number
                if over[game] == 0 and placement < FIRST[pieces[move, game] + 1]:
                    rows[game, number] = landing(boards, game, placement)
                    values[game, number] = value(boards, weights, game, placement, rows[game, number])
        for game in range(games):
            if over[game] == 0:
                first = FIRST[pieces[move, game]]
                best = -math.inf
                chosen = -1
                for number in range(FIRST[pieces[move, game] + 1] - first):
                    if values[game, number] > best:
                        best = values[game, number]
                        chosen = number
                if chosen < 0:
                    over[game] = 1
                else:
                    lines[game] += put(boards, game, first + chosen, rows[game, chosen])
                    moves[game] += 1
