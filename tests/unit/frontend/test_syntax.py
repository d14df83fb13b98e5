"""Nodes of syntax trees come in the order of Python's own walk, which pairs of trees rely on."""

import ast
from pathlib import Path

from brickwork.frontend import source
from brickwork.frontend.syntax import all_nodes, dotted


def test_nodes_are_those_of_the_standard_walk():
    tree = ast.parse(Path(source.__file__).read_text(encoding="utf-8"))
    shared = ast.expr_context | ast.boolop | ast.operator | ast.unaryop | ast.cmpop
    assert all_nodes(tree) == [node for node in ast.walk(tree) if not isinstance(node, shared)]


def test_dotted_names_are_written_as_in_the_source():
    for text in ("x", "torch.float32", "a.b.c"):
        assert dotted(ast.parse(text, mode="eval").body) == text
    assert dotted(ast.parse("f().x", mode="eval").body) is None
