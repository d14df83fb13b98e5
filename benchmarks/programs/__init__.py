"""Loop programs of many fields, as people write them, with what is expected of each loop."""

from benchmarks.programs import linear_algebra, matrix_product, stencils
from benchmarks.programs.program import LoopProgram, loop_lines

__all__ = ["PROGRAMS", "LoopProgram", "loop_lines"]

PROGRAMS: tuple[LoopProgram, ...] = (
    *linear_algebra.PROGRAMS,
    *matrix_product.PROGRAMS,
    *stencils.PROGRAMS,
)
"""All of them, family by family."""
