"""brickwork: plain Python loops over tensor elements become native PyTorch operators."""

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

__all__ = [
    "BrickworkError",
    "BrickworkWarning",
    "CompileError",
    "DeviceError",
    "InternalError",
    "Op",
    "RaceError",
    "check_errors",
    "config",
    "indices",
    "ndrange",
    "op",
    "prange",
    "rand",
    "randint",
    "randn",
]
