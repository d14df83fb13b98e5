"""Operators on `DTensor`s: what `analysis/sharding.py` finds, in the words of torch.distributed.

torch takes, of the placements that are offered here, those that cost the least communication. Tensors that are written
and those passed by keyword stay where they are: torch would write into a copy of the ones, and never moves the others.
This module is loaded when torch.distributed.tensor has been.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import torch
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, placement_types
from torch.distributed.tensor._collective_utils import redistribute_cost
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._op_schema import OpSchema, OpSpec, OpStrategy, RuntimeSchemaInfo, TupleStrategy

from brickwork.analysis.sharding import PARTIAL, Sharding, find_shardings
from brickwork.ir.signature import Signature
from brickwork.pytorch.arguments import signature_of_call
from brickwork.pytorch.fake import check_result
from brickwork.pytorch.schema import Schema
from brickwork.records import dataclass
from brickwork.transform.derivation import Defined, origin_of
from brickwork.transform.derive import program_of

_DISPATCHER: Any = attrgetter("_op_dispatcher")(DTensor)
_BLOCKS: Any = Shard
_STRIDED: Any = attrgetter("_StridedShard")(placement_types)


def forget_placements() -> None:
    """Let torch ask again for the placements of operators, some of which have changed."""
    _DISPATCHER.sharding_propagator.propagate_op_sharding.cache_clear()
    attrgetter("_C._clear_DTensor_sharding_propagator_cache")(torch)()


# ---------------------------------------------------------------- registration


@dataclass(frozen=True, slots=True)
class _Shared:
    """An operator: its OpOverload, what its schema was derived as, and what it is made of by now."""

    overload: Any
    derived: Schema
    definition: Callable[[], Defined | None]

    @property
    def schema(self) -> Any:
        """What it takes and returns."""
        return attrgetter("_schema")(self.overload)

    def shardings(self, values: tuple[object, ...]) -> tuple[Sharding, ...]:
        """Return how the work may be shared out, for arguments like these; `key` is not looked at."""
        defined = self.definition()
        if defined is None or defined.host == "python":
            return ()
        return _shardings(defined, signature_of_call(defined, self.derived.default.arguments, values, "cpu"))


@functools.lru_cache(maxsize=1024)
def _shardings(defined: Defined, signature: Signature) -> tuple[Sharding, ...]:
    return find_shardings(program_of(defined, signature))


def share(overload: Any, derived: Schema, definition: Callable[[], Defined | None]) -> None:
    """Tell DTensor how to run an operator."""
    shared = _Shared(overload, derived, definition)
    reason = _obstacle(shared)
    if reason:
        _handle(overload, functools.partial(_refuse, f"{overload.name()} takes no DTensors: {reason}"))
        return
    arguments = shared.schema.arguments
    unread = _unread_by_host(definition())
    numbers = [
        place
        for place, item in enumerate(arguments)
        if not (_has_tensors(item) or (str(item.type) == "float" and item.name in unread))
    ]
    named = [item.name for item in arguments if item.kwarg_only]
    info = RuntimeSchemaInfo(min(numbers, default=len(arguments)), named or None, needs_pytree=True)
    _DISPATCHER.sharding_propagator.register_op_strategy(overload, functools.partial(_strategy, shared), info)


def _unread_by_host(defined: Defined | None) -> set[str]:
    """Return the parameters that no size of a result depends on, whose values torch need not look at."""
    if defined is None or defined.host == "python":
        return set()
    definition = origin_of(defined)
    read: set[str] = set()
    waiting: list[ast.AST] = [*definition.source.node.body]
    while waiting:
        node = waiting.pop()
        if id(node) not in definition.split.lifted:
            waiting += ast.iter_child_nodes(node)
            read |= {node.id} if isinstance(node, ast.Name) else set()
    return {item.name for item in definition.parameters} - read


def share_out(overload: Any, outputs: Sequence[str], default: Any) -> None:
    """Tell DTensor to run an overload that takes results by the one that returns them, and to copy those."""
    _handle(overload, functools.partial(_run_and_copy, outputs, default))


def _handle(overload: Any, handler: Callable[..., object]) -> None:
    attrgetter("_custom_op_handlers")(_DISPATCHER)[overload] = handler


def _has_tensors(argument: Any) -> bool:
    return "Tensor" in str(argument.type)


def _obstacle(shared: _Shared) -> str:
    """Return why torch would run an operator wrongly on DTensors; empty if it would not."""
    for item in shared.schema.arguments:
        if item.is_out:
            return f"it stores into `{item.name}`, which is passed by keyword; make it a positional argument"
        if item.kwarg_only and str(item.type) == "List[Tensor]":
            return f"the list of tensors `{item.name}` is passed by keyword; make it a positional argument"
    if shared.schema.name.endswith("_") and shared.schema.returns:
        return "its name ends in `_`, as if it returned its first argument; give it another name"
    return ""


def _refuse(message: str, *call: object) -> None:
    del call
    raise NotImplementedError(message)


def _run_and_copy(
    outputs: Sequence[str], default: Any, overload: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Compute results and copy them into the caller's buffers, however those are placed."""
    buffers = [named[name] for name in outputs]
    results = default(*arguments, **{name: value for name, value in named.items() if name not in outputs})
    for name, buffer, result in zip(outputs, buffers, (results,) if len(outputs) == 1 else results, strict=True):
        check_result(overload.name(), name, buffer, result)
        buffer.copy_(result)


# ---------------------------------------------------------------- strategies


@dataclass(frozen=True, slots=True)
class _Given:
    """A DTensor of a call: the argument that it belongs to (or is an item of), and its placement."""

    argument: Any
    spec: DTensorSpec

    @property
    def shape(self) -> Sequence[int]:
        """Its shape, over all machines."""
        return self.spec.shape

    @property
    def fixed(self) -> bool:
        """Whether it has to stay where it is."""
        return self.argument.kwarg_only or (self.argument.alias_info is not None and self.argument.alias_info.is_write)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Placements of the tensors of a call, and of its results, along one dimension of a mesh."""

    arguments: tuple[Placement, ...]
    results: tuple[Placement, ...]


def _strategy(shared: _Shared, schema: OpSchema) -> OpStrategy:
    """Return all ways to run a call, for torch to choose from."""
    given, values = _read(shared, schema)
    mesh = given[0].spec.mesh
    if any(item.spec.mesh != mesh for item in given):
        raise RuntimeError(
            f"{shared.overload.name()}: the DTensors of a call must be on one mesh: make them with the same DeviceMesh"
        )
    shardings = [item for item in shared.shardings(values) if _is_even(item, given)]
    rules = [_rules(shardings, given, axis, len(shared.schema.returns)) for axis in range(mesh.ndim)]
    found: list[OpSpec] = []
    for chosen in itertools.product(*rules):
        placed = [*zip(*(rule.arguments for rule in chosen), strict=True)]
        if not any(item.fixed and item.spec.placements != to for item, to in zip(given, placed, strict=True)):
            results = tuple(DTensorSpec(mesh, to) for to in zip(*(rule.results for rule in chosen), strict=True))
            found.append(_way(given, placed, results))
    if not found:
        raise RuntimeError(_no_way(shared, given))
    return OpStrategy(found)


def _way(given: Sequence[_Given], placed: Sequence[tuple[Placement, ...]], results: tuple[DTensorSpec, ...]) -> OpSpec:
    """Return one way to run a call, with what it costs to bring the tensors there."""
    moves = [
        (item.spec, DTensorSpec(item.spec.mesh, to, tensor_meta=item.spec.tensor_meta))
        for item, to in zip(given, placed, strict=True)
        if not item.argument.kwarg_only
    ]
    return OpSpec(
        output_specs=None if not results else results[0] if len(results) == 1 else results,
        input_specs=[target for _, target in moves],
        redistribute_cost=[[redistribute_cost(source, target)] for source, target in moves],
    )


def _read(shared: _Shared, schema: OpSchema) -> tuple[list[_Given], tuple[object, ...]]:
    """Return the tensors of a call, and its arguments (no `key`), with tensors that have no data."""
    given: list[_Given] = []
    values: list[object] = []
    for place, argument in enumerate(shared.schema.arguments):
        positional = place < len(schema.args_schema)
        value: Any = (
            schema.args_schema[place] if positional else schema.kwargs_schema.get(argument.name, argument.default_value)
        )
        found = _specs(value) if _has_tensors(argument) else []
        given += (_Given(argument, spec) for spec in found)
        stand_ins = [_stand_in(spec) for spec in found]
        if str(argument.type) == "List[Tensor]":
            values.append(stand_ins)
        else:
            values.append(stand_ins[0] if stand_ins else value)
    if shared.derived.random and values[-1] is None:
        name = shared.overload.name()
        raise NotImplementedError(f"{name} draws random numbers: on DTensors, pass the same `key=` on all machines")
    if shared.derived.random:
        values[-1] = None
    return given, tuple(values)


def _specs(value: Any) -> list[DTensorSpec]:
    """Return the placements of the tensors of an argument."""
    match value:
        case None:
            return []
        case OpStrategy():
            return [value.strategies[0].output_spec]
        case TupleStrategy():
            return [spec for item in value.children for spec in _specs(item)]
        case _:
            return [spec for item in value for spec in _specs(item)]


def _stand_in(spec: DTensorSpec) -> torch.Tensor:
    """Return a tensor of the same type; only the rank of its shape means something."""
    dtype = torch.float32 if spec.tensor_meta is None else spec.tensor_meta.dtype
    return torch.empty((2,) * spec.ndim, dtype=dtype, device="meta")


def _is_even(sharding: Sharding, given: Sequence[_Given]) -> bool:
    """Whether all axes that are shared out have one extent."""
    pairs = zip(sharding.arguments, given, strict=False)
    extents = [item.shape[axis] for axis, item in pairs if axis is not None]
    return all(extent == extents[0] for extent in extents)


def _rules(shardings: Sequence[Sharding], given: Sequence[_Given], axis: int, results: int) -> list[_Rule]:
    """Return what is possible along an axis of the mesh. A key, which no sharding knows of, is the last one given."""
    rules = [_Rule((Replicate(),) * len(given), (Replicate(),) * results)]
    for sharding in shardings:
        rest = (None,) * (len(given) - len(sharding.arguments))
        for shard in _ways(given, axis):
            arguments = tuple(_placement(item, shard) for item in (*sharding.arguments, *rest))
            rules.append(_Rule(arguments, tuple(_placement(item, shard) for item in sharding.results)))
    return rules


def _placement(axis: int | None, shard: Callable[[int], Placement]) -> Placement:
    if axis is None:
        return Replicate()
    return Partial() if axis == PARTIAL else shard(axis)


def _ways(given: Sequence[_Given], axis: int) -> list[Callable[[int], Placement]]:
    """Return the ways to share out: blocks of neighbours, and what tensors of the call have along this axis."""
    here = [item.spec.placements[axis] for item in given]
    factors = {attrgetter("split_factor")(placement) for placement in here if isinstance(placement, _STRIDED)}
    return [_BLOCKS, *(functools.partial(_STRIDED, split_factor=factor) for factor in factors)]


def _no_way(shared: _Shared, given: Sequence[_Given]) -> str:
    fixed = ", ".join(f"`{item.argument.name}` as {item.spec.placements}" for item in given if item.fixed)
    return (
        f"{shared.overload.name()} cannot run with {fixed}: what it writes, and what is passed by keyword, "
        "is not moved; redistribute it first, to Replicate() if to nothing else"
    )
