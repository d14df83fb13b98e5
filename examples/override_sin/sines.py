"""Which sines can stand in for PyTorch's: brickwork's, and one of Triton's where there is a GPU and Triton."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor

from brickwork import ops


def sines(device: str) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return the sines for tensors on a device, by name."""
    found: dict[str, Callable[[Tensor], Tensor]] = {"brickwork": ops.sin}
    if torch.device(device).type == "cuda" and find_spec("triton"):
        found["triton"] = importlib.import_module("examples.override_sin.triton_sine").sine
    return found
