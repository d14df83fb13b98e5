"""brickwork: plain Python loops over tensor elements become native PyTorch operators."""

from brickwork.config import config
from brickwork.diagnostics.errors import BrickworkError, CompileError, InternalError, RaceError
from brickwork.language.loops import indices, ndrange, prange
from brickwork.language.random import rand, randint, randn
from brickwork.op import Op, op

__all__ = [
    "BrickworkError",
    "CompileError",
    "InternalError",
    "Op",
    "RaceError",
    "config",
    "indices",
    "ndrange",
    "op",
    "prange",
    "rand",
    "randint",
    "randn",
]
