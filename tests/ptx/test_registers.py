"""The ready operators spill no more registers on any architecture than the record says that they do, and fit it."""

import pytest

from benchmarks import registers
from brickwork.diagnostics.errors import DeviceError
from brickwork.runtime.cuda_toolkit import find_tool
from support.sweep import sampled

TILED = {"timex"}
"""Operators that have versions in tiles of matrix instructions, whose sums are in registers."""


@pytest.mark.parametrize("architecture", sampled(registers.ARCHITECTURES, 4))
def test_spills_stay_as_recorded(architecture):
    if find_tool("ptxas") is None:
        pytest.skip("there is no ptxas on this machine")
    try:
        found = registers.measured(architecture)
    except DeviceError as error:
        pytest.skip(str(error))
    recorded = {name: row[architecture] for name, row in registers.load().needs.items()}
    assert found.keys() == recorded.keys()
    assert {name: each for name, each in found.items() if each.spilled > recorded[name].spilled} == {}
    wide = {name for name in found if name in TILED and architecture != "sm_75"}
    assert {name: each for name, each in found.items() if each.registers > 128 and name not in wide} == {}
