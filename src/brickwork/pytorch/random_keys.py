"""Keys of random operators, drawn from torch's generators: the same as machine code and `op.python` draw."""

from __future__ import annotations

from typing import Any

import torch

from brickwork.pytorch.schema import KEY

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


def with_key(operator: str, named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with `generator=` or a number as `key=` made into a tensor that holds the key."""
    named = dict(named)
    generator = named.pop("generator", None)
    key = named.get(KEY)
    if generator is not None:
        if key is not None:
            raise ValueError(f"{operator}() takes `generator` or `key`, not both")
        named[KEY] = draw_key(generator)
    elif isinstance(key, int):
        named[KEY] = torch.tensor(key, dtype=torch.int64, device="cpu")
    return named
