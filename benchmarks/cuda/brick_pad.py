"""The staggered-brick padding on a GPU: 48x32 tile into a 4144x8224 image, 136 MB that are written once."""

from __future__ import annotations

import torch

from benchmarks.cuda.compare import Progress, compare
from benchmarks.peers import registry, torch_formulations
from brickwork import ops
from brickwork.bench.record import Case
from brickwork.bench.timers import Call

HEIGHT, WIDTH = 4144, 8224
LATTICE = ([4096, 2048], [32, 0], [10, 48])


def cases(progress: Progress) -> list[Case]:
    """Return the headline case."""
    tile = torch.rand(48, 32, device="cuda")
    image = torch.empty(HEIGHT, WIDTH, device="cuda")
    arguments = (tile, HEIGHT, WIDTH, *LATTICE)
    compiled = torch.compile(torch_formulations.brick_pad, dynamic=False)
    contenders: dict[str, Call] = {
        "brickwork": lambda: ops.brick_pad(*arguments),
        **registry.contenders("pad", tile, image, *LATTICE, peers=frozenset({"cuda"})),
        "torch.compile": lambda: compiled(*arguments),
        "torch": lambda: torch_formulations.brick_pad(*arguments),
    }
    title = f"brick_pad {HEIGHT}x{WIDTH}"
    case = compare(
        title,
        contenders,
        reference="torch",
        progress=progress,
        target="0.040 ms",
        at_most=40e-6,
        moved=4 * HEIGHT * WIDTH,
    )
    limit = compare("fill_", {"fill_": lambda: image.fill_(1.0)}, reference="fill_", progress=progress, same=False)
    case.timings["fill_"] = limit.timings["fill_"]
    return [case]
