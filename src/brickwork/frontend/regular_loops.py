"""Regular loops: those whose text says that they have equally many turns in all turns of the loops around them.

The numbers of random draws depend on it (`random_sites.py`), so lowering and `op.python` ask the same question here.
The answer is about the text alone: a length of sizes and arguments is regular, one of an index is not.
"""

from __future__ import annotations

import ast

from brickwork.frontend.environment import DRAWS, helper, intrinsic, resolve
from brickwork.frontend.source import SourceFunction
from brickwork.frontend.syntax import all_nodes


def changing_names(source: SourceFunction, device: frozenset[str] | None) -> frozenset[str]:
    """Return the names whose values may change from turn to turn.

    `device` are the names that the loops of an operator assign; None stands for a helper, of which each call may give
    others.
    """
    if device is None:
        return source.local
    targets = (item.target for item in all_nodes(source.node) if isinstance(item, ast.For | ast.comprehension))
    return device | {name.id for target in targets for name in all_nodes(target) if isinstance(name, ast.Name)}


def is_regular(iterable: ast.expr, source: SourceFunction, changing: frozenset[str]) -> bool:
    """Return whether what a loop runs over has a length that no loop changes."""
    return not any(_changes(node, source, changing) for node in all_nodes(iterable))


def _changes(node: ast.AST, source: SourceFunction, changing: frozenset[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in changing
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return False
        case ast.Subscript():
            return True
        case ast.Call(func=function):
            found = resolve(function, source.captured, frozenset())
            return intrinsic(found) in DRAWS or helper(found) is not None
        case _:
            return False
