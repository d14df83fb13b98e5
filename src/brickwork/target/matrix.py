"""Tiles of contractions on GPUs, as data: their sizes, how they are staged, and from what sizes on they are worth it.

Sizes, `FULL` and `RASTER` come from kernels written by hand, timed on an H200 for products of 256^3 to 8192^3. The
limits of sides and of what is padded are estimates. What instructions ask for stands with the numbers.
"""

from __future__ import annotations

from brickwork.records import dataclass

ROW_BYTES = 128
"""Bytes of a row of a factor in shared memory: the widest that instructions read without conflicts of banks."""
CHUNK_BYTES = 16
"""Bytes that a thread copies at once, the most that it can."""
GROUP_SHARED_BYTES = 227 << 10
"""Bytes of shared memory of a multiprocessor that has instructions for groups of warps."""
REGISTERS, THREAD_REGISTERS = 65536, 255
"""Registers of a multiprocessor, and those that a thread has at most."""
ROOMY_REGISTERS = 128
"""Registers of a thread that keeps much in them: half of those that it may have."""
GROUP_ROWS = 64
"""Rows of a tile that a group of four warps multiplies (`wgmma`)."""
GROUP_TERMS = 16
"""Terms of numbers of 16 bits that an instruction of a group multiplies."""
PADDING = 8
"""Elements between rows of results in shared memory, so that warps meet in no bank."""
RASTER = 8
"""Rows of tiles whose blocks run together, so that a cache holds their factors."""
LEAST_SIDE, LEAST_AREA, LEAST_TERMS = 8, 32 * 32, 32
"""Rows and columns, sums, and terms of a sum for which tiles are worth it."""
MOST_PARTS = 8
"""Blocks of a cluster at most: all GPUs from capability 9.0 on have room for eight."""
LEAST_STAGES = 4
"""Stages of a tile for each block that adds it up."""
FEWEST_DIVIDED = 32
"""Stages of a tile that several blocks add up, times the bytes of a number: a cluster takes about 1.5 us on an H200.

512 x 512 x 512 in bfloat16, of 8 stages, takes 4.5 us by a block for each tile, 5.3 by two; 256 x 256 x 256 in float32,
of 8, takes 8.1 us by one and 7.0 by two."""
FULL = 0.9
"""Tiles for each multiprocessor that are enough."""
PADDED = 1.25
"""How many times as much as the smallest tiles a larger tile may compute, with what lies beyond the last rows."""
SAVED = 0.75
"""How many times as much as the smallest tile a thinner one may compute: else it has less to do with what it stages."""
PADDED_TRIANGLES = 1.5
"""How many times as much as there is the smallest tiles may compute of float32 where ranges of the sum lean on rows.

Their tiles compute in vain along the diagonal, and tiles of multiply-adds are near (0.67 beside 0.38 ms on an H200)."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a contraction is run: rows and columns of a tile, and whether rows of factors begin at chunks.

    `stages` are in shared memory at once, `grouped` so many where groups of warps multiply. It is for sums of `terms`
    at least, of which a block has to have enough until its first products are there. One that is lower than groups of
    warps are is for nests of no more rows. Two blocks may add up a tile each where sums have so many terms as `divided`
    says.
    """

    height: int
    width: int
    chunked: bool
    stages: int = 3
    grouped: int = 6
    terms: int = LEAST_TERMS
    divided: int = 0

    @property
    def low(self) -> bool:
        """Whether it is for nests of few rows, of which one factor is read once."""
        return self.height < GROUP_ROWS


MET = (
    Form(128, 64, chunked=False, grouped=4),
    Form(128, 32, chunked=True, grouped=4),
    Form(128, 64, chunked=True, grouped=4),
    Form(128, 128, chunked=True, grouped=3),
)
"""Forms of contractions with a factor in which rows and terms meet: `height` is along these rows."""

KEPT_STAGES = 16
"""Stages for which distinct numbers are kept (timex in bfloat16 on an H200: 134 us; read for each stage, 140)."""
FORMS = (
    Form(64, 64, chunked=False),
    Form(64, 128, chunked=False),
    Form(128, 128, chunked=False),
    Form(64, 64, chunked=True),
    Form(32, 128, chunked=True, stages=5),
    Form(128, 64, chunked=True),
    Form(128, 128, chunked=True, grouped=3, divided=2048),
    Form(128, 128, chunked=True, terms=512, divided=2048),
    Form(128, 256, chunked=True, grouped=4, terms=512),
)
"""The forms, the best last. Two blocks share a multiprocessor where stages leave room: for short sums. The largest tile
is for groups of warps, the low one that is not chunked for convolutions of few filters. On an H200 a 3 x 3 one of
16 x 64 x 58 x 58 takes 93 us in bfloat16 by it, 124 by the smallest tile; 256 x 4096 x 4096 takes 23 us by halves of
128 x 128, 27 by others, in float32 101 and 121."""
