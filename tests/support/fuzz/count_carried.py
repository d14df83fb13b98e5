"""Counts what a program does with integers that its loops carry: which are indices before and after they change."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple


class _Event(NamedTuple):
    """A name that is read, serves as an index as it is or plus a number, or is assigned; `value` is a copied name."""

    kind: str
    name: str
    value: str = ""


def count_carried(source: str) -> Counter[str]:
    """Return how many loops of a module there are, and how many index with an integer that they carry.

    "before" and "after" are its change in an iteration; "copies" index with what such an integer was before it.
    """
    seen: Counter[str] = Counter()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.For | ast.While):
            seen["loops"] += 1
            seen.update(_of_loop(node))
    return seen


def _of_loop(loop: ast.For | ast.While) -> set[str]:
    events = [*(_reads(loop.test) if isinstance(loop, ast.While) else ()), *_of_block(loop.body)]
    assigned: set[str] = set()
    old: set[str] = set()
    carried: set[str] = set()
    before: set[str] = set()
    found: set[str] = set()
    changed = {event.name for event in events if event.kind == "set"}
    for event in events:
        name = event.name
        if event.kind == "set":
            assigned.add(name)
            old.discard(name)
            old |= {name} if event.value in changed - assigned else set()
            continue
        if name in changed - assigned:
            carried.add(name)
        if event.kind != "index":
            continue
        if name in changed - assigned:
            before.add(name)
        elif name in carried:
            found |= {"after", *({"before and after"} if name in before else set())}
        found |= {"copies"} if name in old else set()
    return found | ({"before"} if before else set())


def _of_block(block: list[ast.stmt]) -> Iterator[_Event]:
    """Yield what a block does, in its order; either part of an `if` is one that may run."""
    for node in block:
        match node:
            case ast.Assign(targets=[target], value=value):
                yield from _reads(value)
                yield from _of_target(target, value)
            case ast.AugAssign(target=target, value=value):
                yield from _reads(value)
                yield from _reads(target)
                yield from _of_target(target, None)
            case ast.For(iter=head, body=body) | ast.While(test=head, body=body) | ast.If(test=head, body=body):
                yield from _reads(head)
                yield from _of_block(body)
                yield from _of_block(node.orelse)
            case _:
                yield from _reads(node)


def _of_target(target: ast.expr, value: ast.expr | None) -> Iterator[_Event]:
    match target:
        case ast.Name(id=name):
            yield _Event("set", name, value.id if isinstance(value, ast.Name) else "")
        case ast.Tuple(elts=parts):
            values = value.elts if isinstance(value, ast.Tuple) else [None] * len(parts)
            for part, each in zip(parts, values, strict=True):
                yield from _of_target(part, each)
        case _:
            yield from _reads(target)


def _reads(node: ast.AST) -> Iterator[_Event]:
    for item in ast.walk(node):
        if isinstance(item, ast.Name):
            yield _Event("read", item.id)
        if isinstance(item, ast.Subscript):
            for place in item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]:
                match place:
                    case ast.Name(id=name) | ast.BinOp(left=ast.Name(id=name), op=ast.Add() | ast.Sub()):
                        yield _Event("index", name)
                    case _:
                        pass
