"""The fuzzer's own tools: what it writes is varied; what it finds gets small and is kept; crashes are survived."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from unittest.mock import patch

import pytest
import torch

from brickwork.frontend.definition import define
from brickwork.frontend.lower import lower
from brickwork.target.cuda import cuda_target
from brickwork.transform.pipeline import schedule_kernel
from support.fuzz import campaign
from support.fuzz.case import Case, NumberArgument, TensorArgument
from support.fuzz.check import FoundError, _same, compare, compare_words, examine
from support.fuzz.check_grid import examine_in_pieces
from support.fuzz.count_carried import count_carried
from support.fuzz.execute import kernels_of, outcome, rewritten, signature_of
from support.fuzz.findings import read, write
from support.fuzz.generate import case_of_seed
from support.fuzz.guarded import GuardedDevice, guarded_pages
from support.fuzz.shrink import shrink

SEEDS = range(500)
TRANSFORMED = (6, 16, 72, 107)
"""Seeds of programs that show one transform each."""


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
            ".append(",
            ".pop()",
            "_ = ",
            "c: Setup",
            "c: str",
            "bisect.",
            "heapq.",
            "later(",
            "range(q0 - k)",
            "% 3 * -1",
            "v0 = ",
            "= [0] * ",
        ):
            words[word] += word in body
        for item in case.arguments:
            if isinstance(item, TensorArgument):
                tensors.update(
                    (item.dtype, item.layout, item.data, f"rank {len(item.shape)}", f"shares {bool(item.base)}")
                )
    assert min(words.values()) >= 5, words
    assert min(tensors.values()) >= 5, tensors


def test_zeros_have_signs():
    zero = torch.zeros(2)
    assert _same(zero, zero.clone())
    assert not _same(zero, torch.tensor([0.0, -0.0]))
    assert not _same(torch.tensor([0.0, -0.0]), zero)
    assert _same(zero, -zero, close=1e-6)
    assert _same(torch.zeros(2, dtype=torch.complex64), -torch.zeros(2, dtype=torch.complex64))
    (values,) = Case("", (TensorArgument("x", "float32", (200,), seed=3),)).make()
    assert {bool(item.signbit()) for item in values if item == 0} == {True, False}


def is_compared(case, folder):
    seen = examine(case, folder)
    return seen["compared"] + seen["compared in parts"] > 0


def test_objects_and_texts_are_arguments(tmp_path):
    """Objects are given to operators whole, and to all else by their parts."""
    for words in ("c: Setup", "c: str"):
        cases = (case for case in map(case_of_seed, SEEDS) if words in case.source and len(case.source) < 4000)
        assert any(is_compared(case, tmp_path) for case in islice(cases, 3)), words


def test_spaces_are_spelled_in_many_ways(tmp_path):
    """Tensors of lists leave the host part to Python: such programs are compared in parts."""
    for words in ("combinations", "itertools.product", "torch.tensor(w", "divmod"):
        cases = (case for case in map(case_of_seed, SEEDS) if words in case.source.partition("def generated")[2])
        short = (case for case in cases if len(case.source) < 4000 and not case.claims)
        assert any(is_compared(case, tmp_path) for case in islice(short, 3)), words


def test_neighbourhoods_are_drawn_and_compared(tmp_path):
    """Windows inside of borders, steps that read their own row, pairs of elements, and rows that loops make."""
    for words in (
        r"= m(in|ax)\(m(in|ax)\(",
        r"min\(x\[(i\d+), (i\d+)\], x\[",
        r"int\(\w+\[.*\) \+ int\(",
        r"torch\.(cat|chunk)",
    ):
        cases = (
            case for case in map(case_of_seed, SEEDS) if re.search(words, case.source.partition("def generated")[2])
        )
        short = (case for case in cases if len(case.source) < 4000 and not case.claims)
        assert any(is_compared(case, tmp_path) for case in islice(short, 3)), words


def test_programs_index_with_integers_that_loops_carry():
    seen = Counter[str]()
    for case in map(case_of_seed, SEEDS):
        _, head, rest = case.source.partition("def generated")
        if not any(str(getattr(item, "dtype", "")).startswith("complex") for item in case.arguments):
            seen += count_carried(head + rest)
    assert seen["before"] >= seen["loops"] // 20, seen
    assert seen["after"] >= seen["loops"] // 11, seen
    assert seen["before and after"] >= seen["loops"] // 36, seen
    assert seen["copies"] >= seen["loops"] // 37, seen


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in n: x[i] = x[p]", set()),
        ("for i in n:\n  x[p + 1] = 1\n  p = i", {"before"}),
        ("for i in n:\n  if p > 0: p -= 1\n  x[i] = y[0, p]", {"after"}),
        ("while x[p] > 0:\n  p += 1\n  x[p] = 0", {"before", "after", "before and after"}),
        ("for i in n:\n  p = i\n  x[p] = 0", set()),
        ("for i in n:\n  q = p\n  p = i\n  x[q] = 0", {"copies"}),
        ("for i in n:\n  x[p] += x[q]\n  p, q = q, p\n  x[p] = 0", {"before", "after", "before and after", "copies"}),
    ],
)
def test_uses_of_carried_integers_are_counted(body, expected):
    assert set(count_carried(body)) - {"loops"} == expected


@pytest.mark.parametrize("place", [1000, -1000, 5_000_000, -5_000_000, 110])
@pytest.mark.parametrize("write", [False, True])
def test_what_is_touched_outside_of_tensors_is_noticed(place, write):
    def run(tensor):
        element = ctypes.c_double.from_address(tensor.data_ptr() + 8 * place)
        if write:
            element.value = 1.0
        return tensor[:0] + element.value

    pages = guarded_pages()
    if pages is None or (place == 110 and not write):
        pytest.skip("this system does not say which pages are touched, or this one is the tensor's own")
    case = Case("", (TensorArgument("x", "float64", (8,)),))
    found = outcome(run, case, pages.fresh())
    with pytest.raises(FoundError, match=f"memory was .* {'before' if place < 0 else 'after'} a tensor"):
        compare("machine code", found, outcome(lambda tensor: tensor[:0] + 0, case), case)
    assert not outcome(lambda tensor: tensor + 1, case, pages.fresh()).outside


@pytest.mark.parametrize("place", [1000, -1000, 110])
def test_what_is_written_outside_of_tensors_of_a_gpu_is_noticed(place):
    def run(tensor):
        ctypes.c_double.from_address(tensor.data_ptr() + 8 * place).value = 1.0

    def add(x, y):
        x += 1
        return y + 1

    case = Case("", (TensorArgument("x", "float64", (8,)), TensorArgument("y", "float64", (3, 2), base="x")))
    assert outcome(lambda x, _: run(x), case, GuardedDevice("cpu")).outside
    compare("GPU", outcome(add, case, GuardedDevice("cpu")), outcome(add, case), case)


def test_programs_have_what_transforms_look_for(tmp_path):
    expected = {
        "promoted elements",
        "distributed loops",
        "interchanged loops",
        "recognised reductions",
        "diagonals",
    }
    seen = {name for seed in TRANSFORMED for name in transforms_of(case_of_seed(seed), tmp_path)}
    assert seen >= expected, f"{expected - seen}: choose other seeds, of the counts of `python -m tests.fuzz`"


def transforms_of(case, folder):
    program = lower(define(case.function(folder)), replace(signature_of(case, may_alias=case.shares), device="cuda"))
    return {
        name
        for kernel in kernels_of(program)
        for name in rewritten(kernel, schedule_kernel(kernel, cuda_target((9, 0))).source)
    }


EMPTY = tuple(TensorArgument(name, dtype, (0,)) for name, dtype in (("x", "float32"), ("z", "uint8")))
TYPES = "import torch\ndef generated(x: torch.Tensor, z: torch.Tensor, m: int) -> None:\n"


@pytest.mark.parametrize(
    ("body", "number", "sooner"),
    [
        ("    x[1] += int(x[0]) // m", 1, 1),
        ("    x[1] += int(x[0]) // m", 0, 1),
        ("    z[0] = m", 300, 1),
        ("    z[0] = m", 3, 0),
        ("    x[0] = 1\n    x[1] = 1", 3, 0),
    ],
    ids=["two indices", "an index and a divisor", "a number that is too large", "an index", "two statements"],
)
@pytest.mark.parametrize("check", [examine, examine_in_pieces])
def test_a_statement_that_fails_in_two_ways_may_name_either(body, number, sooner, check, tmp_path):
    seen = check(Case(TYPES + body, (*EMPTY, NumberArgument("m", number))), tmp_path)
    assert (seen["compared"], seen["fails sooner than in Python"]) == (1, sooner)


@pytest.mark.parametrize(("number", "count"), [(-(2**63), "too large to compare"), (3, "compared")])
def test_loops_that_never_end_are_not_compared(number, count, tmp_path):
    body = "    for i in range(m - 1, -1, -1):\n        pass"
    assert examine(Case(TYPES + body, (*EMPTY, NumberArgument("m", number))), tmp_path)[count] == 1


@pytest.mark.parametrize(
    ("data", "count"), [("wide", "wide integers meet a local that becomes a float"), ("small", "compared")]
)
def test_a_local_of_one_type_rounds_wide_integers(data, count, tmp_path):
    tensors = (TensorArgument("x", "float32", (3,)), TensorArgument("z", "int64", (3,), data=data))
    body = "    t = 0\n    for i in range(3):\n        z[i] += t\n        t = x[i]"
    assert examine(Case(TYPES + body, (*tensors, NumberArgument("m", 3))), tmp_path)[count] == 1


def test_a_failure_of_a_later_statement_is_noticed(tmp_path):
    case = Case(TYPES + "    x[0] = 1\n    x[1] = 1", (*EMPTY, NumberArgument("m", 3)))
    found = outcome(case.function(tmp_path), case)
    for line, number in ((3, 0), (4, 1)):
        other = replace(found, words=f"index {number} is out of bounds", lines=frozenset({line}))
        with pytest.raises(FoundError, match="words") if number else nullcontext():
            compare_words("machine code", other, found, case)


def test_a_seed_gives_the_same_program_each_time():
    assert all(case_of_seed(seed) == case_of_seed(seed) for seed in range(20))


def test_a_case_is_kept_in_a_file(tmp_path):
    case = case_of_seed(3)
    again = read(write(case, tmp_path, "a kind: of finding", "what was seen\nin two lines"))
    assert again == replace(case, source=again.source)
    assert again.source.rstrip() == case.source.rstrip()


def test_what_torch_lacks_for_a_type_is_no_finding(tmp_path):
    source = "import torch\n\n\ndef generated(z: torch.Tensor) -> None:\n    s, p = z - 0\n"
    case = Case(source, (replace(EMPTY[0], name="z", dtype="uint32", shape=(0,)),))
    assert examine(case, tmp_path)["torch lacks a function for a type"]


def test_a_case_is_made_small(tmp_path):
    case = next(case for case in map(case_of_seed, SEEDS) if "max(" in case.source and case.source.count("for ") > 3)
    small = shrink(case, lambda smaller: "max(" in smaller.source.partition("def generated")[2], seconds=20)
    body = small.source.partition("def generated")[2]
    assert "max(" in body
    assert body.count("\n") <= 4, body
    assert body.count(": torch.Tensor") == sum(isinstance(item, TensorArgument) for item in small.arguments)
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


def test_a_case_is_cut_off_after_the_time(tmp_path):
    with patch.object(campaign, "GRACE", 0.2):
        sleep = "import time; time.sleep(60)"
        total = campaign.run(range(6), 1, tmp_path, lambda _: [sys.executable, "-c", sleep], seconds=0.2)
    assert total.counts == {"cut off": 1}
    assert not total.findings


def test_no_case_begins_after_the_time(tmp_path):
    total = campaign.run(range(6), 1, tmp_path, lambda _: [sys.executable, "-c", "raise SystemExit"], seconds=-1)
    assert total.counts["programs"] == 0


def test_a_case_that_ends_its_process_is_examined_apart(tmp_path):
    case = case_of_seed(3)
    assert campaign.apart(case, tmp_path, lambda *_: os._exit(7))[0] == "crash 7"
    assert campaign.apart(case, tmp_path, lambda *_: Counter(programs=1)) == ("", "", {"programs": 1})
