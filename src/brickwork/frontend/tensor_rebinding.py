"""Names of tensors that get other tensors: `u, v = v, u` between the iterations of a loop, or in a branch.

Within an iteration names are followed. Where iterations or branches meet again, a `Rebind` lets the tensors change
places, so that each name stands for one tensor of the program. `give_places` then puts places of their own in for the
tensors of such a kernel: who owns a tensor does not change with it, and tensors that lie differently in memory can
share them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.diagnostics.location import Location
from brickwork.frontend.lowering_state import Binding, Frame, State
from brickwork.frontend.rules import error, unsupported
from brickwork.frontend.typing import View, parts_of
from brickwork.ir.build import apply, integer, read
from brickwork.ir.dtypes import INT64, value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Check,
    Expression,
    Failure,
    FailureKind,
    For,
    Load,
    Node,
    Rebind,
    Size,
    Statement,
    Store,
    Tensor,
    TensorType,
)
from brickwork.ir.tensor_types import joined_type
from brickwork.ir.walk import NodeType, rewrite, walk
from brickwork.records import dataclass

CHANGED = "exchange tensors with `u, v = v, u`, each of them once"
"""Advice where names are rebound in another way."""


def is_whole(binding: Binding | None) -> bool:
    """Return whether a name stands for a whole tensor."""
    return isinstance(binding, View) and not binding.indexed and not binding.tensor.is_local


def restore(state: State, frame: Frame, before: Mapping[str, Binding], loc: Location, *, loop: bool = True) -> None:
    """Let names stand for what they stood for before; tensors that they stand for now change places for it.

    Other names for such tensors, and for parts of them, are refused where iterations of a loop meet, else forgotten.
    """
    if state.ended:
        return
    moves: dict[Tensor, Tensor] = {}
    names: dict[Tensor, str] = {}
    for name, old in before.items():
        now = frame.bindings.get(name)
        if isinstance(old, View) and isinstance(now, View) and old != now and is_whole(old) and is_whole(now):
            if moves.setdefault(old.tensor, now.tensor) != now.tensor:
                message = f"`{name}` and `{names[old.tensor]}` stood for one tensor, and now for two"
                raise unsupported(message, loc, CHANGED)
            names[old.tensor] = name
    if not moves:
        return
    loc = state.exchanged_at or loc
    _refuse(frame, moves, names, loc)
    others = [name for name, now in frame.bindings.items() if _touches(now, moves) and name not in names.values()]
    if loop and (name := next((name for name in others if name in before), None)):
        what = "another name for" if is_whole(before[name]) else "a part of"
        raise unsupported(f"`{name}` is {what} a tensor that is exchanged", loc, f"assign `{name}` in each iteration")
    state.emit(Rebind(targets=tuple(moves), sources=tuple(moves.values()), loc=loc))
    kept = {name: now for name, now in frame.bindings.items() if name not in others}
    frame.bindings = kept | {name: before[name] for name in names.values()}


def _refuse(frame: Frame, moves: Mapping[Tensor, Tensor], names: Mapping[Tensor, str], loc: Location) -> None:
    if frame.path:
        raise unsupported("tensors are exchanged inside a helper", loc, "exchange them in the operator itself")
    if set(moves.values()) != set(moves):
        sources = list(moves.values())
        target = next(item for item in moves if sources.count(moves[item]) > 1 or moves[item] not in moves)
        other = names.get(moves[target], moves[target].name)
        message = f"`{names[target]}` stands for the tensor of `{other}` from here on, in every later iteration"
        raise unsupported(message, loc, CHANGED)
    for target, source in moves.items():
        if (target.type.element, target.type.rank) != (source.type.element, source.type.rank):
            kinds = [f"{item.type.axes} dimensions of {item.type.element}" for item in (target, source)]
            message = f"`{names[target]}` and `{names[source]}` change places, but have {kinds[0]} and {kinds[1]}"
            raise error("BW101", message, loc, "exchange tensors of one dtype and rank")


def _touches(binding: Binding, moves: Mapping[Tensor, Tensor]) -> bool:
    if parts := parts_of(binding):
        return any(_touches(item, moves) for item in parts)
    return isinstance(binding, View) and binding.tensor in moves


# ---------------------------------------------------------------- places


def groups_of(kernel: Sequence[Statement]) -> list[tuple[Tensor, ...]]:
    """Return the tensors that change places with one another, group by group."""
    groups: list[set[Tensor]] = []
    for node in walk(kernel):
        if isinstance(node, Rebind):
            joined = {*node.targets}
            for group in [item for item in groups if item & joined]:
                joined |= group
                groups.remove(group)
            groups.append(joined)
    return [tuple(sorted(group, key=lambda tensor: tensor.number)) for group in groups]


@dataclass(slots=True)
class Draft:
    """What of a program is rewritten: the host's statements, the kernel's, what is known of sizes, and the results."""

    block: list[Statement]
    kernel: list[Statement]
    facts: list[Expression]
    results: list[Tensor]


def give_places(state: State, draft: Draft, loc: Location) -> None:
    """Put places in for the tensors of a kernel that change them.

    The host fills them before the launch, once it has seen that the sizes are equal. A result is what its place holds
    in the end; where the caller gave a tensor for it, the elements are copied into that.
    """
    for group in groups_of(draft.kernel):
        made = {node.tensor: node for node in draft.block if isinstance(node, Allocate)}
        if any(item in draft.results for item in group):
            _check_result(group, made, loc)
        given = [made[item] for item in group if item in made and made[item].given]
        own = {node.tensor: state.tensor(node.tensor.name, _dense(node.tensor.type)) for node in given}
        owners = [own.get(item, item) for item in group]
        draft.block[:] = [_owned(node, own) for node in draft.block]
        draft.block += _sizes_agree(group, own, draft.facts, loc)
        kind = joined_type([item.type for item in owners])
        places = {item: state.tensor(item.name, kind) for item in group}
        draft.block.append(Rebind(targets=tuple(places.values()), sources=tuple(owners), loc=loc))
        draft.kernel[:] = [_renamed(node, places) for node in draft.kernel]
        draft.facts[:] = [_renamed(fact, places) for fact in draft.facts]
        first, *others = places.values()
        for other in others:
            draft.facts += _same_sizes(first, other)
        for node in given:
            draft.block.append(node)
            draft.facts += _same_sizes(node.tensor, places[node.tensor])
            draft.kernel += _copied(state, places[node.tensor], node.tensor, loc)
        draft.results[:] = [item if item in own else places.get(item, item) for item in draft.results]


def _check_result(group: Sequence[Tensor], made: Mapping[Tensor, Allocate], loc: Location) -> None:
    """Refuse a result that may be an argument, or may lie in memory in one of several ways."""
    argument = next((item for item in group if item not in made), None)
    if argument is not None:
        message = f"a result is, or may be, the argument `{argument.name}`, which is exchanged with it"
        raise error("BW009", message, loc, "copy the argument into a tensor of its own first, and exchange that")
    likes = {made[item].like for item in group if not made[item].given}
    if len(likes) > 1 and not all(item.type.contiguous for item in group):
        message = "the tensors that are exchanged lie in memory in different ways, and one of them is a result"
        raise unsupported(message, loc, "allocate all of them with `torch.empty_like` of one tensor")


def _dense(kind: TensorType) -> TensorType:
    return replace(kind, contiguous=True, unit_axis=kind.rank - 1 if kind.rank else None)


def _owned(node: Statement, own: Mapping[Tensor, Tensor]) -> Statement:
    """Return a host statement with the caller's tensors replaced by tensors of the operator's own."""
    node = _renamed(node, own)
    if isinstance(node, Allocate):
        like = None if node.like is None else own.get(node.like, node.like)
        if node.tensor in own:
            return replace(node, tensor=own[node.tensor], like=like, given=False)
        return replace(node, like=like)
    return node


def _renamed(node: NodeType, tensors: Mapping[Tensor, Tensor]) -> NodeType:
    def visit(inner: Node) -> Node:
        match inner:
            case Load() | Store() | Size() if inner.tensor in tensors:
                return replace(inner, tensor=tensors[inner.tensor])
            case Rebind(targets=targets, sources=sources):
                one, other = (tuple(tensors.get(item, item) for item in part) for part in (targets, sources))
                return replace(inner, targets=one, sources=other)
            case _:
                return inner

    return rewrite(node, visit)


def _same_sizes(one: Tensor, other: Tensor) -> list[Expression]:
    axes = range(one.type.rank)
    return [apply("eq", Size(tensor=one, axis=axis), Size(tensor=other, axis=axis)) for axis in axes]


def _sizes_agree(
    group: Sequence[Tensor], own: Mapping[Tensor, Tensor], facts: Sequence[Expression], loc: Location
) -> Iterator[Statement]:
    """Yield checks of what is not known of the sizes of tensors that change places."""
    first, *others = group
    for other in others:
        for axis, condition in enumerate(_same_sizes(first, other)):
            if condition in facts or _same_sizes(other, first)[axis] in facts:
                continue
            message = (
                f"`{first.name}` and `{other.name}` change places, but have the sizes {{0}} and {{1}} on axis {axis}"
            )
            values = tuple(Size(tensor=own.get(item, item), axis=axis, loc=loc) for item in (first, other))
            failure = Failure(FailureKind.VALUE, message)
            yield Check(condition=_renamed(condition, own), failure=failure, values=values, loc=loc)


def _copied(state: State, source: Tensor, target: Tensor, loc: Location) -> list[Statement]:
    """Return the loops that copy a tensor."""
    indices = [state.symbol(f"i{axis}", INT64) for axis in range(target.type.rank)]
    reads = tuple(read(index, loc) for index in indices)
    dtype = value_dtype(target.type.dtype)
    value = Load(tensor=source, indices=reads, access=state.access(), dtype=dtype, loc=loc)
    body: Statement = Store(tensor=target, indices=reads, value=value, access=state.access(), loc=loc)
    for axis, index in reversed(list(enumerate(indices))):
        size = Size(tensor=target, axis=axis, loc=loc)
        body = For(index=index, start=integer(0, loc), stop=size, body=(body,), loc=loc)
    return [body]
