"""Random nests over flat places and windows: loops that are said to be independent store apart, and stay in range.

`BRICKWORK_FUZZ_PROGRAMS` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one.
"""

from __future__ import annotations

import importlib.util
import os

import pytest

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Bound
from brickwork.ir.nodes import Store
from brickwork.ir.walk import walk
from support.fuzz.places import Nest, draw_nest, faults
from support.lowering import numbers
from support.scheduling import kernel_of

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "15"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 15


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
def test_what_is_said_of_places_holds(first, tmp_path):
    said = [0, 0]
    for seed in range(first, first + BATCH):
        nest = draw_nest(seed)
        path = tmp_path / f"places_{seed}.py"
        path.write_text(nest.source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = kernel_of(module.drawn, numbers(2, 3), 3)
        found = analyse(kernel)
        stores = [node for node in walk(kernel) if isinstance(node, Store)]
        if len(stores) != 1:
            continue
        loops = {symbol.name: verdict for symbol, verdict in found.loops.items()}
        independent = [name for name, verdict in loops.items() if verdict.independent and not verdict.updates]
        bounds = [found.bounds.get((stores[0].access, axis)) for axis in range(len(nest.indices))]
        proved = [axis for axis, each in enumerate(bounds) if each is not None and each.bound is Bound.PROVED]
        said[0] += len(independent)
        said[1] += len(proved)
        wrong = next(faults(nest, independent, proved), None)
        if wrong is not None:
            pytest.fail(f"seed {seed}: {wrong}\n{nest.source}")
    assert min(said) > 0, said


def test_a_wrong_word_is_found():
    meets = Nest((("h", "0", "A"), ("w", "0", "B")), ("A",), ("h + w",))
    apart = Nest((("h", "0", "A"), ("w", "0", "B")), ("A", "B"), ("h", "-w"))
    assert next(faults(meets, [], []), None) is None
    assert next(faults(meets, ["h"], []), None) is not None
    assert next(faults(meets, [], [0]), None) is not None
    assert next(faults(apart, ["h", "w"], [0, 1]), None) is None
