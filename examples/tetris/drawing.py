"""Pictures of games: an animation of one, and the scores of the generations."""

# The annotations of matplotlib leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path

import torch

from examples.tetris.games import begin, go_on
from examples.tetris.rules import COLUMNS, ROWS


def filmed(weights: torch.Tensor, moves: int) -> list[torch.Tensor]:
    """Return the boards of a game after each of its moves: uint8 (20, 10) each, the highest row first."""
    games = begin(1, weights.device)
    found: list[torch.Tensor] = []
    for _ in range(moves):
        go_on(games, weights[None].contiguous(), 1)
        bits = games.boards[0].cpu()[:, None] >> torch.arange(COLUMNS) & 1
        found.append(bits.flip(0).to(torch.uint8))
        if games.over.item():
            break
    return found


def animation(boards: list[torch.Tensor], path: Path, *, pause: int = 60, cell: int = 12) -> None:
    """Write boards as an animated GIF, with `pause` milliseconds a move."""
    from PIL import Image

    frames: list[Image.Image] = []
    for board in boards:
        wide = board.repeat_interleave(cell, 0).repeat_interleave(cell, 1)
        grid = (torch.arange(ROWS * cell)[:, None] % cell == 0) | (torch.arange(COLUMNS * cell) % cell == 0)
        shade = torch.where(grid, 2, wide).to(torch.uint8)
        picture = Image.fromarray(shade.numpy(), mode="P")
        picture.putpalette([250, 246, 240, 179, 71, 46, 226, 218, 208])
        frames.append(picture)
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=pause, loop=0)
