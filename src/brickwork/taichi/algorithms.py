"""`ti.algorithms`: sorting and prefix sums of fields, by PyTorch."""

from __future__ import annotations

from typing import Any

import torch


def parallel_sort(keys: Any, values: Any = None) -> None:
    """Sort a field of keys in place, and the values with them."""
    found, order = torch.sort(keys.storage, stable=True)
    keys.storage.copy_(found)
    if values is not None:
        values.storage.copy_(values.storage[order])


class PrefixSumExecutor:
    """Replaces an array by the sums of its beginnings."""

    def __init__(self, length: int) -> None:
        """Be for arrays of a length."""
        self.length = length

    def run(self, input_arr: Any) -> None:
        """Run in place."""
        storage = input_arr.storage
        storage.copy_(torch.cumsum(storage, 0).to(storage.dtype))
