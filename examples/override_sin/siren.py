"""SIREN (V. Sitzmann et al., 2020): a network of sines, which is a picture as a function of the place.

Nothing in here knows of brickwork: it is the model that stays as it is.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

OMEGA = 30.0
"""How fast the first waves are: the factor in front of what a layer sums."""


class Sines(nn.Module):
    """A linear layer, and the sine of what it gives."""

    def __init__(self, inputs: int, outputs: int, bound: float) -> None:
        """Draw the weights between `-bound` and `bound`."""
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        nn.init.uniform_(self.linear.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sines: (n, inputs) -> (n, outputs)."""
        return torch.sin(OMEGA * self.linear(x))


class Siren(nn.Sequential):
    """Colours of places: (n, 2) from -1 to 1 -> (n, 3)."""

    def __init__(self, width: int, layers: int) -> None:
        """Make a network of `layers` layers of sines, and a linear one that makes colours of them."""
        bound = math.sqrt(6 / width)
        hidden = [Sines(width, width, bound / OMEGA) for _ in range(layers - 1)]
        super().__init__(Sines(2, width, 1 / 2), *hidden, nn.Linear(width, 3))
        nn.init.uniform_(self[-1].weight, -bound / OMEGA, bound / OMEGA)
