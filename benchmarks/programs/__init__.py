"""Loop programs of many fields, as people write them, with what is expected of each loop."""

from benchmarks.programs import (
    dynamic_programming,
    filters,
    graphs,
    linear_algebra,
    matrix_product,
    physics,
    solvers,
    sorting,
    statistics,
    stencils,
    text,
)
from benchmarks.programs.program import LoopProgram, loop_lines

__all__ = ["PROGRAMS", "LoopProgram", "loop_lines"]

PROGRAMS: tuple[LoopProgram, ...] = (
    *linear_algebra.PROGRAMS,
    *matrix_product.PROGRAMS,
    *solvers.PROGRAMS,
    *stencils.PROGRAMS,
    *dynamic_programming.PROGRAMS,
    *filters.PROGRAMS,
    *statistics.PROGRAMS,
    *graphs.PROGRAMS,
    *text.PROGRAMS,
    *physics.PROGRAMS,
    *sorting.PROGRAMS,
)
"""All of them, family by family."""
