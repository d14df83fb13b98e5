"""Every scalar operator of the table has a meaning and machine code.

That both are right is asked in `tests/cpu/test_codegen_operators.py`; here a missing one is found without running any.
"""

import ast
from pathlib import Path

import pytest

from brickwork.ir.operators import OPERATORS, Operator
from brickwork.ir.scalar_semantics import evaluate

CODEGEN = Path(__file__).parents[2] / "src" / "brickwork" / "codegen"
CASES = [(operator, dtype) for operator in OPERATORS.values() for dtype in operator.operands]
IDS = [f"{operator}-{dtype}" for operator, dtype in CASES]


def emitted():
    """Return the words that the emitters of operators know."""
    trees = [ast.parse((CODEGEN / name).read_text(encoding="utf-8")) for name in ("operators.py", "sleef.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return {word for text in texts for word in text.split()}


@pytest.mark.parametrize(("operator", "dtype"), CASES, ids=IDS)
def test_it_has_a_meaning(operator, dtype):
    evaluate(operator, [1.0 if dtype.is_float else 1] * operator.arity, dtype)


@pytest.mark.parametrize("dtype", sorted({dtype for _, dtype in CASES}, key=str), ids=str)
def test_a_missing_meaning_is_noticed(dtype):
    with pytest.raises(KeyError):
        evaluate(Operator("frobnicate", 1, (dtype,)), [1], dtype)


def test_all_have_machine_code():
    assert set(OPERATORS) - emitted() == set()


def test_missing_machine_code_is_noticed():
    assert "frobnicate" not in emitted()
