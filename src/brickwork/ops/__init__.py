"""Ready-made operators, written with the public API alone: each file is what a user would write.

Not in here: the same formulas in tensor operations, which tests and benchmarks compare with (`benchmarks/peers`).
"""

from brickwork.ops.brick_pad import brick_pad as brick_pad
from brickwork.ops.sample_normal import sample_normal as sample_normal
from brickwork.ops.sin import sin as sin
from brickwork.ops.timex import timex as timex
from brickwork.ops.timex import timex_padded as timex_padded
