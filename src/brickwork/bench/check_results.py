"""Whether contenders compute the same: their answers compared with the reference's, before anything is timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch

_TOLERANCES = {torch.float64: 1e-6, torch.complex128: 1e-6, torch.float16: 1e-2, torch.bfloat16: 2e-2}
_TOLERANCE = 1e-3
"""For the other types: enough for sums in another order and for other formulas of the functions."""


def tensors(answer: object) -> list[torch.Tensor]:
    """Return the tensors of an answer, in order; numbers count as tensors, nothing has none."""
    if isinstance(answer, torch.Tensor):
        return [answer]
    if isinstance(answer, bool | int | float | complex):
        return [torch.tensor(answer)]
    if isinstance(answer, Mapping):
        answer = list(cast("Mapping[object, object]", answer).values())
    if isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        return [each for part in cast("Sequence[object]", answer) for each in tensors(part)]
    return []


def kept(answer: object) -> list[torch.Tensor]:
    """Return copies of an answer's tensors, which later calls do not change."""
    return [tensor.detach().clone() for tensor in tensors(answer)]


def difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], tolerance: float | None) -> str:
    """Return in words how answers differ, or nothing.

    A number may be off by `tolerance` times the sum of what it should be and of the root mean square of the tensor.
    """
    if len(found) != len(expected):
        return f"returns {len(found)} tensors, not {len(expected)}"
    for ours, theirs in zip(found, expected, strict=True):
        words = _difference(ours.detach(), theirs.to(ours.device), tolerance)
        if words:
            return words
    return ""


def _difference(found: torch.Tensor, expected: torch.Tensor, tolerance: float | None) -> str:
    if found.shape != expected.shape:
        return f"has shape {tuple(found.shape)}, not {tuple(expected.shape)}"
    if not expected.numel():
        return ""
    exact = not (found.is_floating_point() or found.is_complex() or expected.is_floating_point())
    wide: Any = torch.int64 if exact else torch.complex128 if found.is_complex() else torch.float64
    if tolerance is None:
        tolerance = 0.0 if exact else max(_TOLERANCES.get(each.dtype, _TOLERANCE) for each in (found, expected))
    ours, theirs = found.to(wide), expected.to(wide)
    finite = theirs.isfinite()
    if not torch.equal(ours[~finite].nan_to_num(7), theirs[~finite].nan_to_num(7)) or not ours[finite].isfinite().all():
        return "differs in infinities or NaNs"
    ours, theirs = ours[finite], theirs[finite]
    if not ours.numel():
        return ""
    apart = (ours - theirs).abs().double()
    size = theirs.abs().double()
    if bool((apart <= tolerance * (size + size.square().mean().sqrt())).all()):
        return ""
    return f"differs by up to {apart.max().item():.2e}"
