"""How fast the rules are beside the same rules in NumPy, Numba and plain Python: the same games, move by move."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import torch

from brickwork import bench
from examples.tetris import plain
from examples.tetris.games import begin, dealt, go_on
from examples.tetris.peers import in_numpy

WEIGHTS = (-4.0, 3.0, -3.0, -9.0, -8.0, -3.0, -1.0, -2.0)
"""A controller that plays well; whole numbers, so that sums are exact in any order."""
MOVES = 30
BY_HAND = 4
"""As many games does plain Python play."""
Played = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Plays games from weights (games, 8) and pieces (moves, games); returns the lines of each game."""


def in_loops(weights: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Play with brickwork, on the device of the tensors."""
    games = begin(len(weights), weights.device)
    go_on(games, weights, pieces)
    return games.lines


def in_arrays(play: Callable[..., None]) -> Played:
    """Return what plays with NumPy's arrays."""

    def played(weights: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
        games = begin(len(weights))
        state = (games.boards, games.lines, games.moves, games.over, weights, pieces)
        play(*(tensor.numpy() for tensor in state))
        return games.lines

    return played


def in_python(weights: torch.Tensor, pieces: torch.Tensor) -> torch.Tensor:
    """Play cell by cell."""
    lines: list[int] = []
    for own, row in zip(weights.tolist(), pieces.T.tolist(), strict=True):
        board, cleared = plain.empty(), 0
        for piece in row:
            move = plain.moved(board, piece, own)
            if move is None:
                break
            board, cleared = move.after, cleared + len(move.full)
        lines.append(cleared)
    return torch.tensor(lines)


def contenders(games: int, device: str) -> dict[str, Callable[[], torch.Tensor]]:
    """Return who plays as many games, by label: plain Python few games only, and on a GPU only the loops."""
    weights = torch.tensor(WEIGHTS, device=device).expand(games, -1).contiguous()
    pieces = dealt(MOVES, games, 1, device)
    players: dict[str, Played] = {"brickwork": in_loops}
    if device == "cpu":
        if importlib.util.find_spec("numba") is not None:
            numba: Any = importlib.import_module("examples.tetris.peers.in_numba")
            numba.use(torch.get_num_threads())
            players["numba"] = in_arrays(numba.play)
        players["numpy"] = in_arrays(in_numpy.play)
        if games <= BY_HAND:
            players["python"] = in_python
    return {name: functools.partial(play, weights, pieces) for name, play in players.items()}


def main(device: str) -> None:
    """Time them, print the table, and the moves a second that it comes to."""
    for place, counts in (("cpu", (4, 32, 256)), ("cuda", (64, 1024, 16384))):
        if place in {"cpu", device}:
            table = bench.compare(
                functools.partial(contenders, device=place),
                counts,
                x_name="games",
                title=f"{MOVES} moves of each game",
                device=place,
            )
            table.show()
            for games in counts:
                for label in table.lines:
                    if (took := table.value(games, label)) is not None:
                        print(f"{games:6} games, {label:10} {games * MOVES / took * 1e3:13,.0f} moves a second")
