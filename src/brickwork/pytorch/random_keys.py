"""Keys of random operators, drawn from torch's generators: the same as machine code and `op.python` draw."""

from __future__ import annotations

import torch

KEY_LIMIT = (1 << 63) - 1
"""Keys are drawn from [0, KEY_LIMIT); any int64 may be given."""


def draw_key(
    generator: torch.Generator | None = None, shape: tuple[int, ...] = (), device: torch.device | None = None
) -> torch.Tensor:
    """Return keys (int64) drawn from a generator, by default torch's own for a device, by default the CPU.

    They are on the generator's device.
    """
    place = device or torch.device("cpu") if generator is None else generator.device
    return torch.randint(0, KEY_LIMIT, shape, generator=generator, dtype=torch.int64, device=place)
