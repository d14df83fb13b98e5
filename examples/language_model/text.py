"""The text that the model learns: the sources of Python's standard library, as bytes of ASCII."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import torch

ALPHABET = 128
"""Tokens are the characters of ASCII; others are left out of the text."""


def standard_library(most: int) -> torch.Tensor:
    """Return up to `most` characters of the standard library's modules, in the order of their names: int64 (most,)."""
    text = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text += bytes(byte for byte in path.read_bytes() if byte < ALPHABET)
        if len(text) >= most:
            break
    return torch.frombuffer(text[:most], dtype=torch.uint8).long()


def batch(text: torch.Tensor, size: int, length: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `size` passages at random places, and what follows each of their characters: (size, length) both."""
    starts = torch.randint(0, len(text) - length - 1, (size,), generator=generator)
    places = starts.to(text.device)[:, None] + torch.arange(length, device=text.device)
    return text[places], text[places + 1]


def written(tokens: torch.Tensor) -> str:
    """Return tokens as text."""
    return bytes(tokens.tolist()).decode("ascii")
