"""The walls of the house as data: who may import whom, which third party enters where, and the budgets.

`checks.py` applies them to a tree of modules; the tests apply that to this project and to trees made to fail.
"""

from __future__ import annotations

LAYERS: dict[str, int] = {
    "records": -1,
    "legality": -1,
    "diagnostics": 0,
    "config": 0,
    "ir": 1,
    "target": 1,
    "language": 1,
    "frontend": 2,
    "analysis": 2,
    "transform": 3,
    "codegen": 4,
    "host": 5,
    "runtime": 6,
    "pytorch": 7,
    "op": 8,
    "decorator": 9,
    "ops": 10,
    "bench": 10,
    "tools": 10,
    "taichi": 11,
}
"""The layer of each room. A room imports from its own and from lower layers, never sideways."""

SIDEWAYS = frozenset({("language", "ir"), ("config", "diagnostics")})
"""The only imports between rooms of one layer."""

NOT_BELOW: dict[str, int] = {"target": 3}
"""Rooms that only rooms from this layer on may import: analyses do not ask for the machine."""

PUBLIC = frozenset({"__init__", "__main__"})
"""Modules of the top package that stand above all layers."""

DOORS: dict[str, tuple[str, ...]] = {
    "islpy": ("analysis.isl",),
    "llvmlite": ("codegen.llvm", "runtime.loader"),
    "ctypes": ("codegen.llvm", "host.driver", "host.nvrtc", "runtime.loader", "pytorch"),
    "torch": ("pytorch", "op", "ops", "bench", "taichi"),
    "numpy": ("bench",),
    "matplotlib": ("bench",),
    "rich": ("bench", "tools"),
}
"""The modules, or whole rooms, through which a third party enters."""

HEAVY = frozenset({"islpy", "llvmlite", "matplotlib", "rich"})
"""Third parties that their doors may import inside a function, when first needed."""

NO_TORCH_NEEDED = ("diagnostics", "config", "ir", "target", "language", "frontend", "analysis", "transform")
"""Rooms that can be imported without torch and without llvmlite."""

STATEFUL = frozenset({"runtime.cache", "pytorch.register", "taichi.state"})
"""The only modules that keep state."""

WARNS = "diagnostics.warn"
"""The module that all warnings come from, so that they stand at the user's line."""

FILE_LINES = 600
FUNCTION_LINES = 60
ARM_LINES = 4
"""How long an arm of a flat match may be, on average, for its function to be exempt."""
LINES_PER_SUPPRESSION = 1000

COUNTED = ("transform", "codegen", "analysis")
"""The rooms whose numbers are counted: in `target` a number describes a machine."""
NOT_TUNED: dict[str, str] = {
    "*:*_NUMBERS": "numbers of new symbols begin there",
    "*:*_BITS": "a format's bits",
    "analysis.polynomial:*": "limits that proofs rest on",
    "analysis.races:*": "parts of a formula",
    "analysis.sharding:*": "a marker",
    "*:ONE": "the number one, as a formula",
    "*:ZERO": "the number zero, as a formula",
    "transform.borders:NOTHING": "the number zero, as a formula",
    "analysis.polyhedral_model:SMALL": "a limit that proofs rest on",
    "analysis.late_scales:*": "limits that proofs rest on",
    "analysis.invariants:FAR": "a limit that proofs rest on",
    "analysis.invariants:NEAR": "a limit that proofs rest on",
    "codegen.archive:*": "a file format",
    "codegen.box_muller:*": "coefficients",
    "codegen.builder:*": "words of LLVM",
    "codegen.convention:*": "the layout of records",
    "codegen.device:_*": "limits that proofs rest on",
    "codegen.thread_iterations:_*": "limits that proofs rest on",
    "codegen.narrowing:_*": "limits that proofs rest on",
    "codegen.device_trigonometry:*": "coefficients",
    "codegen.exponential:*": "coefficients",
    "codegen.failures:*": "the layout of records",
    "codegen.grid:MOST_BLOCKS": "a limit of CUDA",
    "codegen.grid:MOST_ROWS": "a limit of CUDA",
    "codegen.grid:LONE_THREADS": "a limit of CUDA",
    "codegen.host_cuda:*": "the layout of records",
    "codegen.host_program:*": "the layout of records",
    "codegen.contraction:_INFINITE": "the bits of a number",
    "codegen.tile:FEWEST_STAGES": "as few as can be",
    "codegen.tile_reads:*": "words of an instruction",
    "codegen.row_accesses:WHOLE": "a marker",
    "codegen.support:*": "the layout of words",
    "codegen.trigonometry:*": "coefficients",
    "transform.autodiff.rules:*": "coefficients",
    "transform.borders:MOST": "a limit of int64",
    "transform.canonical.counted_while:*": "bits of an integer",
    "transform.explain:*": "a number that no symbol has",
    "transform.guard:SHAPE_LIMIT": "the layout of records",
    "transform.persistent:NUMBERS": "numbers of new symbols begin there",
    "transform.persistent:MANY": "a limit of int64",
    "transform.schedule.grid:DRAWN_LANES": "what a block of the random generator consists of",
    "transform.schedule.panels:MOST_COLUMNS": "what vectors of neighbours can say",
    "transform.schedule.schedule:LANES_LIMIT": "bits of a mask",
    "transform.scratch_layout:FAR": "a rank of layouts",
    "transform.sums:*": "limits that proofs rest on",
    "transform.verbs.varying:MOST": "a limit of int64",
    "transform.spelling:BEYOND": "a rank of operators",
    "transform.wavefront:FOREVER": "a limit of int64",
    "transform.wavefront:ROOM": "a limit of int64",
    "transform.wavefront:SLOPES": "directions of a grid",
}
"""Constants, `module:NAME`, that are no choice that a measurement could change, and what they are instead."""
MODEL = "transform.schedule."
"""Begins the names of the modules that weigh what a schedule costs."""
TUNED_CONSTANTS = 15
"""How many other numbers modules of these rooms name elsewhere: a budget that may only fall. 10 are wanted."""
MODEL_CONSTANTS = 17
"""The same of the model, of which 30 may be."""
TUNED_COMPARISONS = 6
"""How many comparisons there hold a literal beyond -2 ... 2: a budget that may only fall."""
