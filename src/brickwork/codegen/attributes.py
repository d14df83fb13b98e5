"""Attributes of emitted functions that say how wide their vectors are."""

from __future__ import annotations

from brickwork.target.target import Target


def attributes(target: Target) -> str:
    """Return the attributes of a function that computes with vectors."""
    if target.grid:
        return "nounwind"
    width = 8 * max(target.vector_bytes, 16)
    legal = max(width, 8 * target.library_bytes)
    return f'nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{legal}"'
