"""Every code has cases, each case says exactly what it did, and the pages of `docs/errors` are made of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from brickwork.diagnostics.catalogue import CATALOGUE
from support.error_cases import PAGES, ROOT, Case, cases, codes, pages, told

MAKERS = frozenset({"error", "Diagnostic", "_refused"})
"""What makes diagnostics."""
ALL = [case for code in codes() for case in cases(code)]


def named(case: Case) -> str:
    return f"{case.code}-{cases(case.code).index(case)}"


@pytest.mark.parametrize("case", ALL, ids=named)
def test_a_case_says_what_it_did(case: Case) -> None:
    said = told(case)
    assert said == case.text, f"if this is meant, run `make errors`:\n{said}"
    assert case.code in said


def test_every_code_has_cases_and_every_case_a_code() -> None:
    assert codes() == sorted(CATALOGUE)


def test_the_pages_are_those_of_the_cases() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    assert found == pages(), "run `make errors`"


def makers(path: Path) -> Iterator[ast.Call]:
    """Yield the calls in a module that make diagnostics."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    imported = [name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names]
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MAKERS:
            if call.func.id in imported or (call.func.id in own and path.name in {"rules.py", "host.py"}):
                yield call


def test_no_message_is_made_without_a_code() -> None:
    """Types see to it that a message has a code, and `error` to its help; this sees to it that the code is known."""
    made = 0
    for path in (ROOT / "src" / "brickwork").rglob("*.py"):
        for call in makers(path):
            codes = [item.value for item in call.keywords if item.arg == "code"] or call.args[:1]
            known = {node.value for node in ast.walk(codes[0]) if isinstance(node, ast.Constant)}
            assert isinstance(codes[0], ast.Name) or known & set(CATALOGUE), f"{path}:{call.lineno}"
            made += 1
    assert made > 50
