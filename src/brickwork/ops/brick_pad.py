"""Filling an image with a tile that is repeated on a skewed lattice, as the bricks of a wall."""

import torch

import brickwork as bw


@bw.op("brickwork::brick_pad")
def brick_pad_plane(
    tile: torch.Tensor, height: int, width: int, origin: list[int], shift_x: list[int], shift_y: list[int]
) -> torch.Tensor:
    """Fill one plane. tile: (tile height, tile width) -> (height, width). See `brick_pad`."""
    tile_height, tile_width = tile.shape
    assert shift_x[0] == tile_width, "shift_x must be as wide as the tile"
    assert shift_x[1] == 0, "shift_x must be horizontal"
    assert shift_y[1] == tile_height, "shift_y must be as high as the tile"
    image = tile.new_empty((height, width))
    for i in range(height):
        y = height - 1 - i - origin[1]
        v = y // tile_height
        for j in range(width):
            x = j - origin[0] - v * shift_y[0]
            u = x // tile_width
            image[i, j] = tile[tile_height - 1 - (y - v * tile_height), x - u * tile_width]
    return image


@bw.op("brickwork::brick_pad_colour")
def brick_pad_colour(
    tile: torch.Tensor, height: int, width: int, origin: list[int], shift_x: list[int], shift_y: list[int]
) -> torch.Tensor:
    """Fill a picture. tile: (tile height, tile width, channels) -> (height, width, channels). See `brick_pad`."""
    tile_height, tile_width, channels = tile.shape
    assert shift_x[0] == tile_width, "shift_x must be as wide as the tile"
    assert shift_x[1] == 0, "shift_x must be horizontal"
    assert shift_y[1] == tile_height, "shift_y must be as high as the tile"
    image = tile.new_empty((height, width, channels))
    for i in range(height):
        y = height - 1 - i - origin[1]
        v = y // tile_height
        for j in range(width):
            x = j - origin[0] - v * shift_y[0]
            u = x // tile_width
            for channel in range(channels):
                image[i, j, channel] = tile[tile_height - 1 - (y - v * tile_height), x - u * tile_width, channel]
    return image


def brick_pad(
    tile: torch.Tensor,
    height: int,
    width: int,
    origin: list[int],
    shift_x: list[int],
    shift_y: list[int],
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Fill an image by repeating a tile on a skewed lattice.

    Pixels have the coordinates of a mathematical plane: x counts columns to the right and y counts rows upwards, both
    from the tile's own origin, which is the lower left pixel of the copy that stands at column `origin[0]`, `origin[1]`
    rows above the image's bottom row. With

        v = floor(y / tile height)
        u = floor((x - v * shift_y[0]) / tile width)

    pixel (x, y) takes the tile pixel (x, y) - u * shift_x - v * shift_y.

    Shapes: tile (h, w) -> (height, width), or channels last (h, w, c) -> (height, width, c); any dtype. For the copies
    to cover the plane, `shift_x` is (w, 0) and `shift_y` is (any, h); all other shifts are refused.

    Source: padding with staggered bricks, the example of the Taichi project's article on custom operators for PyTorch.
    """
    operator = brick_pad_plane if tile.dim() == 2 else brick_pad_colour
    if out is None:
        return operator(tile, height, width, origin, shift_x, shift_y)
    return operator(tile, height, width, origin, shift_x, shift_y, out=out)
