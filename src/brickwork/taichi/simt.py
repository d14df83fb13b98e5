"""`ti.simt`: what the threads of a block do together. On processors a block is a loop."""

from __future__ import annotations

from typing import Any

from brickwork.taichi import blocks
from brickwork.taichi.cells import normal_shape
from brickwork.taichi.errors import unsupported
from brickwork.taichi.fields import scalar_type
from brickwork.taichi.views import View


class block:
    """`ti.simt.block`."""

    @staticmethod
    def sync() -> None:
        """Let each thread of a block wait for the others."""
        blocks.sync()

    @staticmethod
    def SharedArray(shape: Any, dtype: Any) -> View:
        """Return an array that the threads of a block share."""
        if hasattr(dtype, "make_field"):
            raise unsupported("a SharedArray of vectors or matrices", "give it an axis for the entries")
        return blocks.shared_array(normal_shape(shape), scalar_type(dtype))


def __getattr__(name: str) -> Any:
    """Refuse what is not supported by its name."""
    if name in {"warp", "subgroup", "grid"}:
        raise AttributeError(str(unsupported(f"ti.simt.{name}")))
    raise AttributeError(name)
