"""Operators in code that torch.jit.script compiles: it looks objects up by their addresses, as `torch.ops.ns.name`."""

from __future__ import annotations

import weakref

from brickwork.pytorch.libtorch import private


def _table() -> dict[int, str]:
    return private("jit._builtins._get_builtin_table")()


def let_scripts_call(handle: object, name: str) -> None:
    """Let scripted code call a handle as the operator of a name."""
    table = _table()
    if id(handle) not in table:
        weakref.finalize(handle, table.pop, id(handle), None).atexit = False
    table[id(handle)] = name


def hide_from_scripts(handle: object) -> None:
    """Let scripted code no longer call a handle: the name that it knows belongs to another."""
    _table().pop(id(handle), None)
