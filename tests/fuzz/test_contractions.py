"""Random contractions give what they give as written: in panels, by tiles of a grid, and as machine code.

`BRICKWORK_FUZZ_PROGRAMS` sets how many are tried, `BRICKWORK_FUZZ_SEED` the first one; `python -m tests.fuzz --kind
contractions` tries many more, and on GPUs.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

from brickwork.frontend.definition import define
from brickwork.runtime.cuda_toolkit import find_tool
from support.fuzz import check_contractions
from support.fuzz.case import Case, TensorArgument
from support.fuzz.check import FoundError
from support.fuzz.check_contractions import examine_contraction
from support.fuzz.contractions import PANELS, contraction_of_seed

PROGRAMS = int(os.environ.get("BRICKWORK_FUZZ_PROGRAMS", "10"))
FIRST = int(os.environ.get("BRICKWORK_FUZZ_SEED", "0"))
BATCH = 10
COMPILED = 5
"""Of so many programs one runs as machine code, too."""
WORDS = ("+=", "if ", "_at[", ">> (4", "min(", ".shape[", " * d[", "for m in", "for b in", "for h in", "bias")
PRODUCT = """import torch


def generated(a: torch.Tensor, c: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(c.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * c[k, j]
            y[i, j] = s
"""


@pytest.mark.parametrize("first", range(FIRST, FIRST + PROGRAMS, BATCH))
@pytest.mark.parametrize("way", ["panels", "grid"])
def test_contractions_give_the_same(way, first, tmp_path):
    seen: Counter[str] = Counter()
    for seed in range(first, first + BATCH):
        case = contraction_of_seed(seed, PANELS)
        seen += examine_contraction(case, tmp_path, way)
        if way == "panels" and seed % COMPILED == 0:
            examine_contraction(case, tmp_path, "cpu")
    assert seen["contractions"] >= BATCH // 10


def test_contractions_are_varied():
    words, kinds = Counter[str](), Counter[str]()
    for case in (contraction_of_seed(seed) for seed in range(300)):
        for word in (
            "+=",
            "if ",
            "_at[",
            ">> (4",
            "min(",
            ".shape[",
            " * d[",
            "for m in",
            "for b in",
            "for h in",
            "bias",
        ):
            words[word] += word in case.source.partition("-> None")[2]
        for item in case.arguments:
            assert isinstance(item, TensorArgument)
            kinds.update((item.dtype, item.layout, item.data))
    assert min(words.values()) >= 10, words
    assert min(kinds.values()) >= 10, kinds


def test_wrong_sums_are_found(tmp_path):
    """What a program is compared with is not its own: another function of the same arguments differs."""
    shapes = ("a", (9, 5)), ("c", (5, 8)), ("y", (9, 8))
    for data in ("small", "smooth"):
        tensors = tuple(TensorArgument(name, "float32", shape, data=data, seed=3) for name, shape in shapes)
        case = Case(PRODUCT, (*tensors[:2], replace(tensors[2], data="small")))
        assert examine_contraction(case, tmp_path, "cpu")["compared"] == 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(check_contractions, "define", lambda _, case=case: define(_wrong(case, tmp_path)))
            with pytest.raises(FoundError, match="values" if data == "small" else "bound"):
                examine_contraction(case, tmp_path, "cpu")


def _wrong(case, folder):
    return replace(case, source=case.source.replace("c[k, j]", "1.001 * c[k, j]")).function(folder)


def test_registers_that_are_spilled_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(check_contractions, "SPILLED", -1)
    tensors = tuple(TensorArgument(name, "float32", (64, 64)) for name in ("a", "c", "y"))
    if find_tool("ptxas") is None:
        pytest.skip("there is no ptxas on this machine")
    with pytest.raises(FoundError, match="spills"):
        examine_contraction(Case(PRODUCT, tensors, seed=10), tmp_path, "grid")
