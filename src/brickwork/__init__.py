"""brickwork: plain Python loops over tensor elements become native PyTorch operators.

What overrides operators, makes them of kernels written elsewhere or measures them is loaded when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from brickwork.config import config
from brickwork.diagnostics.errors import (
    BrickworkError,
    BrickworkWarning,
    CompileError,
    DeviceError,
    InternalError,
    RaceError,
)
from brickwork.language.loops import indices, ndrange, prange
from brickwork.language.random import rand, randint, randn
from brickwork.op import Op, op
from brickwork.pytorch.devices import check_errors

if TYPE_CHECKING:
    from brickwork import bench
    from brickwork.pytorch.launchers.cuda_source import CudaOp, Launch, cuda_op
    from brickwork.pytorch.launchers.triton_launcher import TritonOp, triton_op
    from brickwork.pytorch.overrides.override import override

__all__ = [
    "BrickworkError",
    "BrickworkWarning",
    "CompileError",
    "CudaOp",
    "DeviceError",
    "InternalError",
    "Launch",
    "Op",
    "RaceError",
    "TritonOp",
    "bench",
    "check_errors",
    "config",
    "cuda_op",
    "indices",
    "ndrange",
    "op",
    "override",
    "prange",
    "rand",
    "randint",
    "randn",
    "triton_op",
]

_LATER = {
    **dict.fromkeys(("CudaOp", "Launch", "cuda_op"), "brickwork.pytorch.launchers.cuda_source"),
    "override": "brickwork.pytorch.overrides.override",
    **dict.fromkeys(("TritonOp", "triton_op"), "brickwork.pytorch.launchers.triton_launcher"),
}


def __getattr__(name: str) -> object:
    """Return a public name whose module is loaded now."""
    if name == "bench":
        return import_module("brickwork.bench")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
