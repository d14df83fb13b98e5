"""A game as an animation: the pieces in their colours, with the score beside the board."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from examples.tetris import plain

if TYPE_CHECKING:
    from PIL.Image import Image

CELL, MARGIN, SIDE = 12, 10, 84
"""Pixels of a cell, around the board, and of what is written beside it."""
PAPER, BOARD, GRID, INK, FLASH = "#faf6f0", "#2b2f36", "#343a43", "#5b666e", "#fffaf0"
PIECES = ("#4fb3bf", "#e3b23c", "#9b6bb3", "#6aa84f", "#c8503c", "#e08a3c", "#4c78a8")
"""The colours of I, O, T, S, Z, L and J."""
EMPTY = len(PIECES)
Colours = list[list[int]]


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture of a game: the piece of each cell, the lowest row first; full rows; and the score so far."""

    colours: Colours
    full: tuple[int, ...]
    lines: int
    moves: int


def filmed(weights: Sequence[float], pieces: Sequence[int]) -> Iterator[Frame]:
    """Play a game in plain Python; yield two frames for each piece: as it comes, and where it came to rest."""
    board, lines = plain.empty(), 0
    colours: Colours = [[EMPTY] * plain.COLUMNS for _ in range(plain.ROWS)]
    for number, piece in enumerate(pieces):
        move = plain.moved(board, piece, weights)
        if move is None:
            return
        above = plain.ROWS - 1 - max(y for y, _ in move.cells)
        yield Frame(painted(colours, [(y + above, x) for y, x in move.cells], piece), (), lines, number)
        colours = painted(colours, move.cells, piece)
        yield Frame(colours, move.full, lines, number + 1)
        left = [row for y, row in enumerate(colours) if y not in move.full]
        colours = left + [[EMPTY] * plain.COLUMNS for _ in move.full]
        board, lines = move.after, lines + len(move.full)


def painted(colours: Colours, cells: Iterable[tuple[int, int]], piece: int) -> Colours:
    """Return the colours with a piece."""
    found = [row[:] for row in colours]
    for y, x in cells:
        found[y][x] = piece
    return found


def animation(frames: Sequence[Frame], path: Path, *, pause: int = 70) -> None:
    """Write frames as an animated GIF, with `pause` milliseconds for each."""
    from PIL import Image

    palette = Image.new("P", (1, 1))
    shades = [PAPER, BOARD, GRID, INK, FLASH, *PIECES]
    palette.putpalette([int(shade[at : at + 2], 16) for shade in shades for at in (1, 3, 5)])
    pictures = [drawn(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=pause, loop=0, optimize=True)


def drawn(frame: Frame) -> Image:
    """Return a frame as a picture."""
    from PIL import Image, ImageDraw, ImageFont

    wide, high = plain.COLUMNS * CELL, plain.ROWS * CELL
    picture = Image.new("RGB", (wide + 2 * MARGIN + SIDE, high + 2 * MARGIN), PAPER)
    pen = ImageDraw.Draw(picture)
    pen.fontmode = "1"
    pen.rectangle((MARGIN - 1, MARGIN - 1, MARGIN + wide, MARGIN + high), BOARD)
    for y, row in enumerate(frame.colours):
        for x, piece in enumerate(row):
            left, top = MARGIN + x * CELL, MARGIN + (plain.ROWS - 1 - y) * CELL
            shade = FLASH if y in frame.full else GRID if piece == EMPTY else PIECES[piece]
            pen.rectangle((left, top, left + CELL - 2, top + CELL - 2), shade)
    for place, (name, number) in enumerate((("LINES", frame.lines), ("PIECES", frame.moves))):
        left, top = wide + 2 * MARGIN + 4, MARGIN + 56 * place
        pen.text((left, top), name, INK, ImageFont.load_default(11))
        pen.text((left, top + 14), str(number), BOARD, ImageFont.load_default(24))
    return picture
