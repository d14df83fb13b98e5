"""A kernel of Triton, which must be where that is installed."""

# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def twice(x, out, count, BLOCK: tl.constexpr):
    """Store twice each element."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < count), mask=at < count)


def launcher(x: torch.Tensor, out: torch.Tensor) -> None:
    """Launch it."""
    twice[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
