"""The sine as a kernel of Triton, which must be where that is installed."""

# pyright: basic, reportMissingImports=false, reportIndexIssue=false

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _sine(x, out, count, BLOCK: tl.constexpr):  # noqa: ANN001, ANN202  # Triton reads annotations of its own
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.sin(tl.load(x + at, mask=inside)), mask=inside)


def sine(x: torch.Tensor) -> torch.Tensor:
    """Return the sine of every element of a float32 tensor; others are left to PyTorch."""
    if x.dtype != torch.float32:
        return NotImplemented
    x = x.contiguous()
    out = torch.empty_like(x)
    _sine[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
