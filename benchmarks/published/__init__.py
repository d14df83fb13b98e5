"""Published CUDA operators as plain loops, each with inputs of three sizes and a reference in torch's functions."""

from benchmarks.published import (
    dynamic_programming,
    fractional,
    norms,
    points,
    quantised,
    recurrences,
    rendering,
    segments,
    windows,
)
from benchmarks.published.operator import Published

PUBLISHED: tuple[Published, ...] = (
    *recurrences.OPERATORS,
    *points.OPERATORS,
    *fractional.OPERATORS,
    *windows.OPERATORS,
    *segments.OPERATORS,
    *norms.OPERATORS,
    *quantised.OPERATORS,
    *dynamic_programming.OPERATORS,
    *rendering.OPERATORS,
)
"""All of them, in the order of the page that lists them."""
