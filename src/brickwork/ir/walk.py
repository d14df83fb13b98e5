"""Traversal of the IR: children, walks, rebuilding and substitution, derived from the fields of the node classes.

Invariant: a new node class is walked without a change in here. Where nothing changes, the same object comes back.
What a node means is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from math import prod
from operator import attrgetter
from typing import Any, TypeVar, cast, get_args

from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Load,
    Local,
    Node,
    Program,
    Read,
    Rebind,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
)

NodeType = TypeVar("NodeType", bound=Node)

STATEMENTS: tuple[type[Node], ...] = get_args(Statement)
"""Every class of statements."""
EXPRESSIONS: tuple[type[Node], ...] = get_args(Expression)
"""Every class of expressions."""

_NONE = frozenset[Symbol]()


def _child_fields(kind: type[Node]) -> tuple[str, ...]:
    marks = ("Expression", "Block", "Kernel")
    return tuple(item.name for item in fields(kind) if any(mark in str(item.type) for mark in marks))


def _block_fields(kind: type[Node]) -> tuple[str, ...]:
    marks = ("Block", "Kernel")
    return tuple(item.name for item in fields(kind) if any(mark in str(item.type) for mark in marks))


def _all_fields(kind: type[Node]) -> tuple[tuple[str, ...], Callable[[Node], tuple[Any, ...]]]:
    """Return the names of a node's fields, and what gives their values."""
    names = tuple(item.name for item in fields(kind))
    return names, attrgetter(*names)


_FIELDS = {kind: _child_fields(kind) for kind in (*STATEMENTS, *EXPRESSIONS, Kernel, Program)}
_LAST_FIRST = {kind: names[::-1] for kind, names in _FIELDS.items()}
_BLOCKS = {kind: _block_fields(kind)[::-1] for kind in (*STATEMENTS, *EXPRESSIONS, Kernel, Program)}
_ALL = {kind: _all_fields(kind) for kind in (*STATEMENTS, *EXPRESSIONS, Kernel, Program)}
_INNER = {kind: tuple(item.name for item in fields(kind) if "Block" in str(item.type)) for kind in STATEMENTS}


def children(node: Node) -> Iterator[Node]:
    """Return the nodes directly below `node`, in the order of its fields."""
    return iter(_children(node, _FIELDS))


def _children(node: Node, reached: Mapping[type[Node], Sequence[str]]) -> list[Node]:
    found: list[Node] = []
    for name in reached[type(node)]:
        value: Any = getattr(node, name)
        if type(value) is tuple:
            found += value
        elif value is not None:
            found.append(value)
    return found


def walk(root: Node | Iterable[Node]) -> Iterator[Node]:
    """Yield every node of a tree or a block, each before its children, in source order."""
    return _visited(root, _LAST_FIRST)


def statements(root: Node | Iterable[Node]) -> Iterator[Node]:
    """Yield the nodes of a tree or a block that are in no expression, each before those in it, in source order."""
    return _visited(root, _BLOCKS)


def _visited(root: Node | Iterable[Node], reached: Mapping[type[Node], Sequence[str]]) -> Iterator[Node]:
    """Yield the nodes that are reached by these fields, the last of which come first."""
    stack: list[Node] = [root] if isinstance(root, Node) else [*root][::-1]
    while stack:
        node = stack.pop()
        yield node
        for name in reached[type(node)]:
            value: Any = getattr(node, name)
            if type(value) is tuple:
                stack += value[::-1]
            elif value is not None:
                stack.append(value)


def rebuild(node: NodeType, change: Callable[[Node], Node]) -> NodeType:
    """Return `node` with each direct child replaced by `change(child)`."""
    kind = type(node)
    changes: dict[str, Any] = {}
    for name in _FIELDS[kind]:
        value: Any = getattr(node, name)
        if type(value) is tuple:
            items = cast("tuple[Node, ...]", value)
            changed = [*map(change, items)]
            for new, old in zip(changed, items, strict=True):
                if new is not old:
                    changes[name] = (*changed,)
                    break
        elif value is not None and (new := change(value)) is not value:
            changes[name] = new
    if not changes:
        return node
    names, values_of = _ALL[kind]
    return kind(**(dict(zip(names, values_of(node), strict=True)) | changes))


def rewrite(node: NodeType, change: Callable[[Node], Node]) -> NodeType:
    """Return the tree with `change` applied to every node, children first.

    `change` returns a node that may stand where its argument stood: an expression for an expression.
    """

    def visit(child: Node) -> Node:
        return change(rebuild(child, visit))

    return cast("NodeType", visit(node))


def rewrite_expressions(block: Block, change: Callable[[Expression], Expression]) -> Block:
    """Return the block with `change` applied to every expression in it, children first."""

    def visit(node: Node) -> Node:
        return change(cast("Expression", node)) if isinstance(node, EXPRESSIONS) else node

    return tuple(rewrite(statement, visit) for statement in block)


def blocks_in(statement: Statement) -> tuple[Block, ...]:
    """Return the blocks that stand in a statement, in their order."""
    return tuple(getattr(statement, name) for name in _INNER[type(statement)])


def with_blocks(statement: Statement, change: Callable[[Block], Iterable[Statement]]) -> Statement:
    """Return a statement with the blocks in it changed; itself where they stay as they are."""
    changes: dict[str, Any] = {}
    for name in _INNER[type(statement)]:
        old: Block = getattr(statement, name)
        new = tuple(change(old))
        if len(new) != len(old) or any(one is not other for one, other in zip(new, old, strict=True)):
            changes[name] = new
    return replace(statement, **changes) if changes else statement


def straight(block: Block) -> Iterator[Statement]:
    """Yield the statements of a block and of the branches in it."""
    for statement in block:
        yield statement
        if isinstance(statement, If):
            yield from straight((*statement.then, *statement.otherwise))


def rewrite_blocks(block: Block, change: Callable[[Block], Block]) -> Block:
    """Return the block with `change` applied to every block in it, inner ones first, and to itself."""
    result: list[Statement] = []
    for statement in block:
        changes: dict[str, Any] = {}
        for name in _FIELDS[type(statement)]:
            value = getattr(statement, name)
            if isinstance(value, tuple) and any(isinstance(item, STATEMENTS) for item in cast("tuple[Any]", value)):
                inner = cast("Block", value)
                changed = rewrite_blocks(inner, change)
                if len(changed) != len(inner) or any(new is not old for new, old in zip(changed, inner, strict=True)):
                    changes[name] = changed
        result.append(replace(statement, **changes) if changes else statement)
    return change(tuple(result))


def rewrite_statements(block: Block, change: Callable[[Statement], Block]) -> Block:
    """Return the block with every statement replaced by the block `change` gives, inner statements first."""
    return rewrite_blocks(block, lambda inner: tuple(new for old in inner for new in change(old)))


def rewrite_loops(block: Block, indices: Container[Symbol], change: Callable[[For], Block]) -> Block:
    """Return the block with every loop of these indices replaced by the block `change` gives, inner loops first.

    Statements without such loops are not gone through.
    """
    inside = [_with_loops(statement, indices, change) for statement in block]
    return tuple(
        new for item in inside for new in (change(item) if isinstance(item, For) and item.index in indices else (item,))
    )


def _with_loops(statement: Statement, indices: Container[Symbol], change: Callable[[For], Block]) -> Statement:
    if not any(symbol in indices for symbol in assigned_symbols(statement)):
        return statement
    changes: dict[str, Any] = {}
    for name in reversed(_BLOCKS[type(statement)]):
        inner: Block = getattr(statement, name)
        changed = rewrite_loops(inner, indices, change)
        if len(changed) != len(inner) or any(new is not old for new, old in zip(changed, inner, strict=True)):
            changes[name] = changed
    return replace(statement, **changes) if changes else statement


def operands_of(value: Expression, name: str) -> Iterator[Expression]:
    """Yield what an operator is applied to, where a value is made by it, however often one stands in another."""
    if isinstance(value, Apply) and value.operator.name == name:
        for operand in value.operands:
            yield from operands_of(operand, name)
    else:
        yield value


def substitute(node: NodeType, values: Mapping[Symbol, Expression]) -> NodeType:
    """Return the tree with every read of a symbol in `values` replaced by the expression given for it.

    Parts that read none of them are not gone through.
    """
    symbols = values.keys()

    def visit(child: Node) -> Node:
        if isinstance(child, Read):
            return values.get(child.symbol, child)
        return child if symbols.isdisjoint(read_symbols(child)) else rebuild(child, visit)

    return cast("NodeType", visit(node))


def substitute_block(block: Block, values: Mapping[Symbol, Expression]) -> Block:
    """Return the block with every read of a symbol in `values` replaced by the expression given for it."""
    return tuple(substitute(statement, values) for statement in block)


def assigned_symbols(root: Node | Iterable[Node]) -> frozenset[Symbol]:
    """Return the variables that are assigned anywhere in the tree, loop indices included; each node remembers them."""
    if not isinstance(root, Node):
        return _NONE.union(*map(assigned_symbols, root))
    found: frozenset[Symbol] | None = getattr(root, "assigns", None)
    if found is None:
        own = (root.symbol,) if isinstance(root, Assign) else (root.index,) if isinstance(root, For) else ()
        found = _united(own, map(assigned_symbols, _children(root, _BLOCKS)))
        object.__setattr__(root, "assigns", found)
    return found


def read_symbols(root: Node | Iterable[Node]) -> frozenset[Symbol]:
    """Return the variables that are read anywhere in the tree; each node remembers them."""
    if not isinstance(root, Node):
        return _NONE.union(*map(read_symbols, root))
    found: frozenset[Symbol] | None = getattr(root, "reads", None)
    if found is None:
        own = (root.symbol,) if isinstance(root, Read) else ()
        found = _united(own, map(read_symbols, _children(root, _FIELDS)))
        object.__setattr__(root, "reads", found)
    return found


def _united(own: Sequence[Symbol], parts: Iterable[frozenset[Symbol]]) -> frozenset[Symbol]:
    """Return some symbols and those of parts, as one set; that of a part where no other has any."""
    found = [part for part in parts if part]
    return _NONE.union(own, *found) if own or len(found) != 1 else found[0]


def accesses_in(root: Node | Iterable[Node]) -> tuple[Load | Store, ...]:
    """Return the loads and stores of a tree, each before those in its indices, in source order.

    Each node remembers them but those themselves, which would keep one another alive.
    """
    if not isinstance(root, Node):
        return tuple(chain.from_iterable(map(accesses_in, root)))
    if isinstance(root, Load | Store):
        return (root, *accesses_in(_children(root, _FIELDS)))
    found: tuple[Load | Store, ...] | None = getattr(root, "accesses", None)
    if found is None:
        found = accesses_in(_children(root, _FIELDS))
        object.__setattr__(root, "accesses", found)
    return found


def read_counts(root: Node | Iterable[Node]) -> Counter[Symbol]:
    """Return how often each variable is read."""
    return Counter(node.symbol for node in walk(root) if isinstance(node, Read))


def loop_of(root: Node | Iterable[Node], index: Symbol) -> For:
    """Return the loop inside of something that has an index."""
    return next(node for node in statements(root) if isinstance(node, For) and node.index == index)


def local_bytes(block: Iterable[Node]) -> int:
    """Return how much memory the locals take that a block declares, constant tables aside."""
    declared = {node.tensor for node in statements(block) if isinstance(node, Local) and not node.values}
    return sum(prod(tensor.sizes) * tensor.type.dtype.size for tensor in declared)


def free_tensors(block: Block) -> tuple[Tensor, ...]:
    """Return the tensors that a block names and does not declare, in order of first use."""
    found: dict[Tensor, None] = {}
    for node in walk(block):
        if isinstance(node, Load | Store | Size) and not node.tensor.is_local:
            found[node.tensor] = None
        elif isinstance(node, Rebind):
            found.update(dict.fromkeys(node.targets))
    return tuple(found)


def free_symbols(block: Block) -> tuple[Symbol, ...]:
    """Return the variables that a block reads and never assigns, in order of first use."""
    bound = assigned_symbols(block)
    return tuple(
        dict.fromkeys(node.symbol for node in walk(block) if isinstance(node, Read) and node.symbol not in bound)
    )


def unused_number(roots: Node | Iterable[Node]) -> int:
    """Return a number that no variable has which is read or assigned there, nor any after it."""
    return 1 + max((symbol.number for symbol in assigned_symbols(roots) | read_symbols(roots)), default=-1)


def is_about(fact: Expression, tensors: Iterable[Tensor], symbols: Iterable[Symbol]) -> bool:
    """Return whether a fact reads no elements, and nothing but these symbols and sizes of these tensors."""
    nodes = [*walk(fact)]
    sized = {node.tensor for node in nodes if isinstance(node, Size)}
    return (
        not any(isinstance(node, Load) for node in nodes) and sized <= {*tensors} and read_symbols(fact) <= {*symbols}
    )
