"""The fuzzer's own tools: what it writes is varied; what it finds gets small and is kept; crashes are survived."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.target.cuda import cuda_target
from brickwork.transform.pipeline import schedule_kernel
from support.fuzz import campaign
from support.fuzz.case import NumberArgument, TensorArgument
from support.fuzz.execute import kernels_of, rewritten, signature_of
from support.fuzz.findings import read, write
from support.fuzz.generate import case_of_seed
from support.fuzz.shrink import shrink

SEEDS = range(300)


def test_programs_are_varied():
    words = Counter[str]()
    tensors = Counter[str]()
    for case in map(case_of_seed, SEEDS):
        body = case.source.partition("def generated")[2]
        for word in (
            "while",
            "break",
            "continue",
            "prange",
            "ndrange",
            "divmod",
            "min(",
            "assert",
            "bw.rand",
            "-1, -1)",
            "TABLE",
            "is not None",
            "[[0",
            "result, torch",
        ):
            words[word] += word in body
        for item in case.arguments:
            if isinstance(item, TensorArgument):
                tensors.update(
                    (item.dtype, item.layout, item.data, f"rank {len(item.shape)}", f"shares {bool(item.base)}")
                )
    assert min(words.values()) >= 5, words
    assert min(tensors.values()) >= 5, tensors


def test_programs_have_what_transforms_look_for(tmp_path):
    expected = {
        "promoted elements",
        "distributed loops",
        "interchanged loops",
        "recognised reductions",
        "diagonals",
    }
    seen: Counter[str] = Counter()
    for case in map(case_of_seed, SEEDS):
        with suppress(CompileError, RaceError):
            seen.update(transforms_of(case, tmp_path))
        if seen.keys() >= expected:
            return
    pytest.fail(f"{seen}")


def transforms_of(case, folder):
    program = lower(define(case.function(folder)), replace(signature_of(case, may_alias=case.shares), device="cuda"))
    return {
        name
        for kernel in kernels_of(program)
        for name in rewritten(kernel, schedule_kernel(kernel, cuda_target((9, 0))).source)
    }


def test_a_seed_gives_the_same_program_each_time():
    assert all(case_of_seed(seed) == case_of_seed(seed) for seed in range(20))


def test_a_case_is_kept_in_a_file(tmp_path):
    case = case_of_seed(3)
    again = read(write(case, tmp_path, "a kind: of finding", "what was seen\nin two lines"))
    assert again == replace(case, source=again.source)
    assert again.source.rstrip() == case.source.rstrip()


def test_a_case_is_made_small(tmp_path):
    case = next(case for case in map(case_of_seed, SEEDS) if "max(" in case.source and case.source.count("for ") > 3)
    small = shrink(case, lambda smaller: "max(" in smaller.source.partition("def generated")[2], seconds=20)
    body = small.source.partition("def generated")[2]
    assert "max(" in body
    assert body.count("\n") <= 4, body
    assert "def mix" not in small.source
    assert all(item.layout == "dense" for item in small.arguments if isinstance(item, TensorArgument))
    assert all(item.value in {0, 1} for item in small.arguments if isinstance(item, NumberArgument))


def test_a_worker_that_dies_is_a_finding_and_is_replaced(tmp_path):
    answers = "import json, os, sys\nfor line in sys.stdin:\n    seed = int(line)\n    seed == 3 and os._exit(7)\n"
    answers += "    print(json.dumps({'seed': seed, 'found': '', 'counts': {'programs': 1}}), flush=True)\n"
    total = campaign.run(range(6), 1, tmp_path, lambda _: [sys.executable, "-c", answers])
    assert total.counts["programs"] == 6
    assert len(total.findings) == 1
    assert "crash-7-3" in total.findings[0]
    assert read(tmp_path / "crash-7-3.py").arguments == case_of_seed(3).arguments
