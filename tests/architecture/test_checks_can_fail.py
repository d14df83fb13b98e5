"""Each architecture check finds the fault it is there for, on a tree made to have it, and nothing in a good tree."""

import pytest

from architecture import checks, rules

GOOD = {
    "__init__.py": '"""A package."""\n\nfrom brickwork.op import op as op\n',
    "ir/__init__.py": "",
    "ir/nodes.py": "import ast\nTABLE = {1: 2}\n",
    "analysis/__init__.py": "",
    "analysis/isl.py": "from brickwork.ir import nodes\n\ndef door():\n    import islpy\n    return islpy, nodes\n",
    "op.py": "import torch\nfrom brickwork.analysis.isl import door\n\ndef op():\n    return torch, door\n",
}


def complaints(tmp_path, check, changes):
    for name, source in {**GOOD, **changes}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return check(checks.modules(tmp_path))


ALL = [
    checks.direction,
    checks.cycles,
    checks.doors,
    checks.inner_imports,
    checks.births,
    checks.long_files,
    checks.long_functions,
    checks.suppressions,
    checks.module_state,
]


COUNTED = """
LEAST = 1 << 16
LENGTH = 2 * LEAST
_PAIR = (3, 4)
SHAPE = Shape(2, rows=8, wide=True)
NEW_NUMBERS = 1_000_000
NAME = "name"
ON = True
LOW = -1


def few(count):
    return 2 < count <= 17 or count == 99
"""


def test_tuned_numbers_are_counted(tmp_path):
    found = complaints(tmp_path, checks.tuned_constants, {"analysis/rows.py": COUNTED, "target/cpu.py": "WIDE = 8\n"})
    assert [item.partition(" ")[0].partition(":")[2] for item in found] == [
        "LEAST",
        "_PAIR",
        "_PAIR",
        *["SHAPE"] * 2,
        "LOW",
    ]
    schedule = {"transform/schedule/rows.py": COUNTED}
    assert not complaints(tmp_path / "other", checks.tuned_constants, schedule)
    assert len(complaints(tmp_path / "other", checks.model_constants, schedule)) == len(found)
    assert complaints(tmp_path, checks.tuned_comparisons, {"analysis/rows.py": COUNTED}) == ["analysis.rows:13: 17"]


@pytest.mark.parametrize("check", ALL)
def test_a_good_tree_passes(tmp_path, check):
    assert complaints(tmp_path, check, {}) == []


LONG_BODY = "".join(f"    x = {number}\n" for number in range(rules.FUNCTION_LINES))
LONG_MATCH = "    match x:\n" + "".join(f"        case {n}:\n            return {n}\n" for n in range(50))
FAT_MATCH = "    match x:\n        case 1:\n" + "".join(f"            y = {n}\n" for n in range(70))

FAULTS = [
    (checks.direction, {"ir/nodes.py": "from brickwork.analysis.isl import door\n"}, "ir (1) imports analysis (2)"),
    (checks.direction, {"analysis/isl.py": "import brickwork.frontend.lift\n"}, "analysis (2) imports frontend (2)"),
    (checks.direction, {"analysis/isl.py": "from ..target import cpu\n"}, "analysis (2) imports target (1)"),
    (checks.direction, {"ir/nodes.py": "def f():\n    from brickwork import op\n"}, "ir (1) imports op (8)"),
    (checks.direction, {"attic/x.py": "import brickwork.ir\n"}, "attic has no layer"),
    (checks.births, {"ir/a.py": "import warnings\nwarnings.warn('')\n"}, "ir.a:2: gives a warning"),
    (
        checks.cycles,
        {"ir/a.py": "from brickwork.ir import b\n", "ir/b.py": "from brickwork.ir.a import x\n"},
        "ir.a",
    ),
    (checks.doors, {"analysis/races.py": "import islpy\n"}, "analysis.races:1: islpy"),
    (checks.doors, {"ir/nodes.py": "from torch import Tensor\n"}, "torch enters only through"),
    (checks.inner_imports, {"ir/nodes.py": "def f():\n    import ast\n    return ast\n"}, "imports ast inside"),
    (checks.long_files, {"ir/nodes.py": "x = 1\n" * (rules.FILE_LINES + 1)}, "ir.nodes: 601"),
    (checks.long_functions, {"ir/nodes.py": "def f():\n" + LONG_BODY}, "f has 61 lines"),
    (checks.long_functions, {"ir/nodes.py": "def f(x):\n" + FAT_MATCH}, "f has 73 lines"),
    (checks.suppressions, {"ir/nodes.py": "import ast  # noqa: F401\n"}, "without a reason"),
    (checks.suppressions, {"ir/nodes.py": "import ast  # noqa: F401  # it is re-exported\n" * 2}, "2 suppressions"),
    (checks.module_state, {"ir/nodes.py": "seen = set()\n"}, "`seen` is mutable state"),
    (checks.module_state, {"ir/nodes.py": "SEEN = {}\ndef f(x):\n    SEEN[x] = 1\n"}, "module state is changed"),
    (checks.module_state, {"ir/nodes.py": "SEEN = []\ndef f(x):\n    SEEN.append(x)\n"}, "module state is changed"),
    (checks.module_state, {"ir/nodes.py": "N = 0\ndef f():\n    global N\n    N += 1\n"}, "module state is changed"),
]


@pytest.mark.parametrize(("check", "changes", "expected"), FAULTS)
def test_the_fault_is_found(tmp_path, check, changes, expected):
    found = complaints(tmp_path, check, changes)
    assert any(expected in complaint for complaint in found), found


def test_a_flat_match_may_be_long(tmp_path):
    assert complaints(tmp_path, checks.long_functions, {"ir/nodes.py": "def f(x):\n" + LONG_MATCH}) == []


@pytest.mark.parametrize("text", ["/home/" + "someone/x", "--index-" + "url=x", "https://pypi" + ".org/simple"])
def test_machine_words_are_found(tmp_path, text):
    path = tmp_path / "README.md"
    path.write_text(f"see {text}\n")
    assert checks.machine_words([path], tmp_path)
    path.write_text("see ./docs and the guide\n")
    assert not checks.machine_words([path], tmp_path)
