"""The staggered-brick padding: 48x32 tile into a 4144x8224 image, against filling the image with one number."""

from __future__ import annotations

import torch

from benchmarks.contenders import Progress, compare, compiled
from benchmarks.peers import registry, torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

HEIGHT, WIDTH = 4144, 8224
LATTICE = ([4096, 2048], [32, 0], [10, 48])


def cases(progress: Progress, *, rounds: int = 15) -> list[Case]:
    """Return the padding into a given image, the allocating one, and the colour picture."""
    tile = torch.rand(48, 32)
    image = torch.empty(HEIGHT, WIDTH)
    arguments = (HEIGHT, WIDTH, *LATTICE)
    given: dict[str, Call] = {
        "brickwork": lambda: ops.brick_pad(tile, *arguments, out=image),
        "fill_": lambda: image.fill_(1.0),
    }
    given |= registry.contenders("pad", tile, image, *LATTICE, peers=frozenset({"numba", "taichi", "quadrants"}))
    allocating: dict[str, Call] = {
        "brickwork": lambda: ops.brick_pad(tile, *arguments),
        "torch.full": lambda: torch.full((HEIGHT, WIDTH), 1.0),
    }
    fast = compiled(torch_formulations.brick_pad)
    if fast is not None:
        allocating["torch.compile"] = lambda: fast(tile, *arguments)
    allocating["torch"] = lambda: torch_formulations.brick_pad(tile, *arguments)
    colours = torch.rand(48, 32, 3)
    picture = torch.empty(HEIGHT // 2, WIDTH // 2, 3)
    colour: dict[str, Call] = {
        "brickwork": lambda: ops.brick_pad(colours, HEIGHT // 2, WIDTH // 2, *LATTICE, out=picture),
        "fill_": lambda: picture.fill_(1.0),
    }
    return [
        compare(
            f"brick_pad {HEIGHT}x{WIDTH}, into a given image",
            given,
            reference="fill_",
            target="2 x fill_",
            progress=progress,
            rounds=rounds,
        ),
        compare(
            f"brick_pad {HEIGHT}x{WIDTH}, allocating",
            allocating,
            reference="torch.full",
            target="2 x torch.full",
            progress=progress,
            rounds=min(rounds, 5),
        ),
        compare(
            f"brick_pad {HEIGHT // 2}x{WIDTH // 2}x3, into a given picture",
            colour,
            reference="fill_",
            progress=progress,
            rounds=rounds,
        ),
    ]
