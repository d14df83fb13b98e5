"""NVIDIA GPUs as `Target`s, by compute capability.

Code for a capability runs on later ones as PTX, which the driver translates; so an unknown newer GPU gets the newest
known one's.
"""

from __future__ import annotations

import re

from brickwork.target.matrix import MOST_PARTS, ROOMY_REGISTERS
from brickwork.target.target import BLOCK_THREADS, SECTOR_BYTES, Target

_PTX = {
    (7, 5): 63,
    (8, 0): 70,
    (8, 6): 71,
    (8, 7): 74,
    (8, 9): 78,
    (9, 0): 80,
    (10, 0): 86,
    (10, 3): 88,
    (12, 0): 87,
    (12, 1): 88,
}
"""The capabilities that code is made for, with the PTX version (times ten) that brought each."""

_THREADS = {(8, 0): 108 * 2048, (9, 0): 132 * 2048, (10, 0): 148 * 2048, (10, 3): 148 * 2048}
"""The threads of the GPUs of data centres, by capability: multiprocessors, each with so many (NVIDIA's data sheets)."""
_FEW_THREADS = 60 * 1536
"""The same of a GPU for graphics."""

_SHARED_KIB = {(7, 5): 64, (8, 0): 163, (8, 7): 163, (9, 0): 227, (10, 0): 227, (10, 3): 227}
"""Shared memory that a block may have, by capability (CUDA's programming guide)."""
_LESS_SHARED_KIB = 99

OLDEST = min(_PTX)


def cuda_target(capability: tuple[int, int]) -> Target:
    """Return the target of a GPU; ValueError for one older than `OLDEST`."""
    if capability < OLDEST:
        msg = f"compute capability {capability[0]}.{capability[1]} is older than {OLDEST[0]}.{OLDEST[1]}"
        raise ValueError(msg)
    known = max(each for each in _PTX if each <= capability)
    cpu = f"sm_{known[0]}{known[1]}"
    return Target(
        name="cuda",
        identity=f"cuda {cpu} ptx{_PTX[known]}",
        vector_bytes=0,
        vector_registers=0,
        vector_library="libdevice",
        triple="nvptx64-nvidia-cuda",
        cpu=cpu,
        features=f"+ptx{_PTX[known]}",
        fused=True,
        grid=True,
        threads=_THREADS.get(known, _FEW_THREADS),
        block_threads=BLOCK_THREADS,
        launch_ns=4000,
        block_step_ns=375,
        block_term_ns=125,
        written_turns=ROOMY_REGISTERS,
        written_nodes=8192,
        access_bytes=16,
        matrix=_matrix(known),
        rounds_bfloat=known >= (8, 0),
        meeting_ns=1000,
        cluster=MOST_PARTS if known >= (9, 0) else 1,
        shared_bytes=_SHARED_KIB.get(known, _LESS_SHARED_KIB) * 1024,
        static_shared_bytes=48 * 1024,
        sector_bytes=SECTOR_BYTES,
    )


def _matrix(capability: tuple[int, int]) -> str:
    """Return the instructions that multiply matrices: those of groups of warps are of capability 9.0 alone."""
    if capability == (9, 0):
        return "wgmma"
    return "mma" if capability >= (8, 0) else ""


def target_named(architecture: str) -> Target:
    """Return the target of an architecture as NVIDIA names it; ValueError for one that is older than `OLDEST`.

    >>> target_named("sm_90").cpu
    'sm_90'
    """
    return cuda_target(capability_named(architecture))


def capability_named(architecture: str) -> tuple[int, int]:
    """Return the compute capability of an architecture; ValueError for what is no name of one.

    >>> capability_named("sm_120")
    (12, 0)
    """
    found = re.fullmatch(r"sm_(\d+)(\d)", architecture)
    if found is None:
        msg = f"{architecture!r} is no architecture of GPUs; their names are like sm_90"
        raise ValueError(msg)
    return int(found[1]), int(found[2])
