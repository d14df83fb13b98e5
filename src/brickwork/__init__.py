"""brickwork: plain Python loops over tensor elements become native PyTorch operators.

What overrides operators, makes them of kernels written elsewhere or measures them is loaded when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from brickwork.config import config
from brickwork.decorator import op
from brickwork.diagnostics.errors import (
    BrickworkError,
    BrickworkWarning,
    CompileError,
    DeviceError,
    InternalError,
    RaceError,
)
from brickwork.language.loops import bounded, indices, ndrange, prange
from brickwork.language.random import rand, randint, randn
from brickwork.op import Op
from brickwork.pytorch.devices import check_errors

if TYPE_CHECKING:
    from brickwork import bench
    from brickwork.language.vectors import Matrix, Vector, mat2, mat3, mat4, matrix, vec2, vec3, vec4, vector
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
    "Matrix",
    "Op",
    "RaceError",
    "TritonOp",
    "Vector",
    "bench",
    "bounded",
    "check_errors",
    "config",
    "cuda_op",
    "indices",
    "mat2",
    "mat3",
    "mat4",
    "matrix",
    "ndrange",
    "op",
    "override",
    "prange",
    "rand",
    "randint",
    "randn",
    "triton_op",
    "vec2",
    "vec3",
    "vec4",
    "vector",
]

_LATER = {
    **dict.fromkeys(
        ("Matrix", "Vector", "mat2", "mat3", "mat4", "matrix", "vec2", "vec3", "vec4", "vector"),
        "brickwork.language.vectors",
    ),
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
    found = globals()[name] = getattr(import_module(_LATER[name]), name)
    return found
