"""A machine that code is made for, as data that transforms and emitters ask for properties, never for its name."""

from __future__ import annotations

from brickwork.records import dataclass

WARP = 32
"""Threads of a grid that run together, and may give one another what is in their registers."""
LEAST_TEAM = 4
"""Least of these that share an iteration out: of aligned rows they read two sectors of memory, of 32 bytes, at once."""
SCHEDULERS = 4
"""Parts of a multiprocessor, each of which issues instructions of warps of its own."""
FIRST_CACHE_BYTES = 128 << 10
"""Bytes that a multiprocessor's first cache has at least."""
SECTOR_BYTES = 32
"""Least bytes of memory that a grid's machine reads or writes."""
BLOCK_THREADS = 1024
"""Threads that a block of a grid has at most."""
PROCESSOR_THREADS = 2048
"""Threads of a multiprocessor, by which `Target.threads` counts them."""
PROCESSORS = 128
"""Multiprocessors of a large GPU, for what is decided before the machine is known; kinds differ by some."""
BUSY_THREADS = PROCESSORS * PROCESSOR_THREADS
"""Threads that keep such a GPU busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a schedule and an emitter need to know of a machine."""

    name: str
    """`cpu` or `cuda`; only for messages and cache keys."""
    identity: str
    """Everything about the machine that generated code depends on, as text for the cache key."""
    vector_bytes: int
    """Width of the SIMD registers; 0 where lanes are threads."""
    vector_registers: int
    """Number of SIMD registers."""
    vector_library: str
    """`sleef` where torch exports its vector functions, `libdevice` on NVIDIA GPUs, else `none`."""
    triple: str = ""
    """LLVM's name of the platform; empty for the host's."""
    cpu: str = "generic"
    """LLVM's name of the processor, for scheduling."""
    features: str = ""
    """LLVM's feature string (`+avx2,+fma`)."""
    fused: bool = False
    """Whether a*b+c is one instruction."""
    library_bytes: int = 0
    """Width of the vectors that functions of the vector library take."""
    mask_registers: bool = False
    """Whether masks of vectors have registers of their own (AVX-512)."""
    line_bytes: int = 64
    """Bytes that a processor's caches load at once: 64 on x86-64 and on most ARM cores."""
    cache_bytes: int = 1 << 15
    """Bytes of a core's nearest cache for data: at least 32 KiB on processors of the last ten years."""
    stack_bytes: int = 1 << 22
    """Bytes of a processor's stack that the lists of a kernel may take: half of what Linux gives a thread."""
    written_turns: int = 16
    """Iterations of a loop over items of lists that are written out, so that these are in registers: as most have."""
    written_nodes: int = 2000
    """Nodes of the IR that such loops make at most, written out: some tens of KiB of code, as a core's cache holds."""
    grid: bool = False
    """Whether a kernel is launched on a grid of blocks of threads; else it is a function that the host calls."""
    threads: int = 0
    """Threads that a grid's machine keeps at once; each kind of machine has a few more or fewer multiprocessors."""
    block_threads: int = 0
    """Threads that a block of a grid has at most."""
    scratch_bytes: int = 1 << 30
    """Bytes of a grid's memory that a kernel may take for what the source has no tensor for."""
    launch_ns: int = 0
    """Nanoseconds from one launch to the next, where kernels that have little to do follow one another in a stream."""
    block_step_ns: int = 0
    """Nanoseconds in which each thread of a whole block reads a few elements that are near and stores one."""
    block_term_ns: int = 0
    """Nanoseconds in which each thread of a whole block reads an element and adds it up: it stores nothing."""
    launch_turns: int = 1 << 22
    """Iterations in order of one launch, each of which takes some microseconds: it is to end in seconds."""
    access_bytes: int = 0
    """Most bytes that a thread of a grid reads or writes at once."""
    matrix: str = ""
    """The instructions of a grid's machine that multiply matrices: `mma`, `wgmma`, or none."""
    rounds_bfloat: bool = False
    """Whether an instruction of a grid's machine rounds to bfloat16, subnormal numbers included."""
    meeting_ns: int = 0
    """Nanoseconds that the blocks of a cluster wait for one another, and for what the others stored."""
    cluster: int = 1
    """Blocks of a grid, a power of two, that run at once and may read what the others have in shared memory."""
    shared_bytes: int = 0
    """Bytes of shared memory that a block of a grid has at most."""
    static_shared_bytes: int = 0
    """Of these, bytes that a kernel may declare by itself."""
    sector_bytes: int = 0
    """Least bytes of memory that a grid's machine reads or writes."""
