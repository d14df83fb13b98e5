"""NVIDIA GPUs as `Target`s, by compute capability.

Code for a capability runs on later ones as PTX, which the driver translates; so an unknown newer GPU gets the newest
known one's.
"""

from __future__ import annotations

from brickwork.target.target import Target

_PTX = {
    (7, 5): 63,
    (8, 0): 70,
    (8, 6): 71,
    (8, 7): 74,
    (8, 9): 78,
    (9, 0): 78,
    (10, 0): 86,
    (10, 3): 88,
    (12, 0): 87,
    (12, 1): 88,
}
"""The capabilities that code is made for, with the PTX version (times ten) that brought each."""

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
        access_bytes=16,
    )
