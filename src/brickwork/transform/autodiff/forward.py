"""Forward mode: the program of the tangents of what an operator stores into and of its results.

    f(x, w) -> out     ->     f'(x, w, tangent_x, tangent_w) -> tangent_out

Beside each active tensor stands one for its tangent, and the kernel computes both (`tangents.py`). What no tangent
needs is removed at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from brickwork.diagnostics.errors import InternalError
from brickwork.ir import build
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Check,
    Failure,
    FailureKind,
    Kernel,
    Launch,
    Node,
    Program,
    Rebind,
    Return,
    Size,
    Statement,
    Tensor,
    TensorParameter,
    TensorType,
    parameter_tensors,
)
from brickwork.ir.signature import ArgumentType, Signature
from brickwork.ir.tensor_types import joined_type
from brickwork.ir.walk import rewrite
from brickwork.records import dataclass
from brickwork.transform.autodiff.activity import Activity, activity
from brickwork.transform.autodiff.branches import branched
from brickwork.transform.autodiff.functionalise import functionalise
from brickwork.transform.autodiff.tangents import Tangents, with_tangents
from brickwork.transform.canonical.dead import without_dead, without_unused
from brickwork.transform.free_variables import with_body
from brickwork.transform.preconditions import Preconditions, preconditions_of
from brickwork.transform.scratch import Names, names_of
from brickwork.transform.tensors import allocate_like, like_type, same_sizes


def forward(program: Program, given: tuple[bool, ...], signature: Signature) -> Program:
    """Return the program of the tangents, for arguments of the types in `signature`."""
    names = names_of(program)
    mutated = parameter_tensors(program.parameters, mutated=True)
    program, copies = functionalise(program, names)
    plain, keys = program.parameters[: len(given)], program.parameters[len(given) :]
    moving = [
        item for parameter, has in zip(plain, given, strict=True) if has for item in parameter_tensors([parameter])
    ]
    kinds = signature.arguments[len(plain) :]
    twins = {tensor: _twin(tensor, kind, names) for tensor, kind in zip(moving, kinds, strict=True)}
    added = [TensorParameter(twin) for twin in twins.values()]
    written = tuple(copies[tensor] for tensor in mutated)
    program = _branched(program, _active(program, twins, written), names)
    active = _active(program, twins, written)
    host = _Host(program, Tangents(active, names, dict(twins)), written)
    body = without_unused((*_sizes_agree(twins), *host.body()))
    return replace(program, parameters=(*plain, *added, *keys), body=body)


def _active(program: Program, given: Iterable[Tensor], written: Sequence[Tensor]) -> Activity:
    """Return what has a tangent that reaches a result: in the kernel, and of what fills places there."""
    placed = [pair for node in _exchanges(program) for pair in zip(node.sources, node.targets, strict=True)]
    results = _results(program, written)
    wanted = {*given}
    for owner, place in placed:
        wanted |= {place} if owner in wanted else set()
        results |= {place} if owner in results else set()
    found = activity(program.body, wanted, results).found
    return Activity(found | {owner for owner, place in placed if place in found})


def _branched(program: Program, active: Activity, names: Names) -> Program:
    """Return the program with branches in its kernels in place of conditional expressions."""

    def changed(node: Statement) -> Statement:
        if not isinstance(node, Launch):
            return node
        return replace(node, kernel=replace(node.kernel, body=branched(node.kernel.body, active, names)))

    return replace(program, body=tuple(map(changed, program.body)))


def _results(program: Program, written: Iterable[Tensor]) -> set[Tensor]:
    """Return what the program leaves: what stands for the arguments that it stores into, and what it returns."""
    return {*written, *(item for node in program.body if isinstance(node, Return) for item in node.tensors)}


def _exchanges(program: Program) -> list[Rebind]:
    """Return the statements of the host part that give tensors places."""
    return [node for node in program.body if isinstance(node, Rebind)]


def _twin(tensor: Tensor, kind: ArgumentType, names: Names) -> Tensor:
    """Return the tensor for the tangent of an argument."""
    if not isinstance(kind, TensorType) or replace(kind, contiguous=False, unit_axis=None) != replace(
        tensor.type, contiguous=False, unit_axis=None
    ):
        raise InternalError(f"{kind} is no tangent of `{tensor.name}`")
    return Tensor(f"tangent_{tensor.name}", next(names.tensors), kind)


def _sizes_agree(twins: dict[Tensor, Tensor]) -> Iterator[Statement]:
    for tensor, twin in twins.items():
        for axis, condition in enumerate(same_sizes(twin, tensor)):
            message = f"the tangent of `{tensor.name}` has size {{0}} on axis {axis}, the argument {{1}}"
            values = (Size(tensor=twin, axis=axis), Size(tensor=tensor, axis=axis))
            yield Check(condition=condition, failure=Failure(FailureKind.VALUE, message), values=values)


@dataclass(slots=True)
class _Host:
    """Writes the host part anew, with tensors for tangents beside those that it makes."""

    program: Program
    tangents: Tangents
    written: Sequence[Tensor]
    """What stands for the arguments that the operator stores into."""

    def body(self) -> Iterator[Statement]:
        """Yield the statements."""
        arguments = parameter_tensors(self.program.parameters)
        for tensor in arguments:
            if tensor in self.tangents.active.found and tensor not in self.tangents.tensors:
                yield self.zeros(tensor)
        for place, node in enumerate(self.program.body):
            match node:
                case Allocate():
                    yield from self.allocated(node)
                case Rebind():
                    yield from self.rebound(node)
                case Launch(kernel=kernel):
                    yield replace(
                        node, kernel=self.kernel(kernel, preconditions_of(self.program.body[:place], kernel.body))
                    )
                case Return(tensors=tensors):
                    yield from self.returned(
                        node, [item for item in (*self.written, *tensors) if item.type.dtype.is_float]
                    )
                case _:
                    yield node

    def new(self, tensor: Tensor, kind: TensorType) -> Tensor:
        """Enter a tensor for a tangent."""
        twin = Tensor(f"tangent_{tensor.name}", next(self.tangents.names.tensors), kind)
        self.tangents.tensors[tensor] = twin
        return twin

    def zeros(self, tensor: Tensor) -> Statement:
        """Return what makes a tangent that is 0."""
        zero = build.constant(0.0, value_dtype(tensor.type.dtype))
        return allocate_like(self.new(tensor, like_type(tensor.type)), tensor, zero)

    def allocated(self, node: Allocate) -> Iterator[Statement]:
        """Yield what makes a tensor and its tangent."""
        yield node
        if node.tensor in self.tangents.active.found:
            twin = self.new(node.tensor, node.tensor.type)
            fill = None if node.fill is None else build.constant(0.0, value_dtype(twin.type.dtype))
            yield replace(node, tensor=twin, fill=fill)

    def rebound(self, node: Rebind) -> Iterator[Statement]:
        """Yield what gives tensors places, and their tangents."""
        yield node
        if self.tangents.active.found.intersection(node.targets):
            sources = tuple(map(self.tangents.of_tensor, node.sources))
            kind = joined_type([item.type for item in sources])
            yield replace(node, targets=tuple(self.new(item, kind) for item in node.targets), sources=sources)

    def returned(self, node: Return, results: Iterable[Tensor]) -> Iterator[Statement]:
        """Yield the end of the program, and before it the tangents that are 0."""
        twins: list[Tensor] = []
        for tensor in (item for item in results if item.type.dtype.is_float):
            if tensor not in self.tangents.tensors:
                yield self.zeros(tensor)
            twins.append(self.tangents.of_tensor(tensor))
        yield replace(node, tensors=tuple(twins))

    def kernel(self, kernel: Kernel, before: Preconditions) -> Kernel:
        """Return the kernel that computes both, with the sizes of tangents for those of what is made beside them.

        What is in `before` was checked before it.
        """
        pairs = self.tangents.tensors
        made = {*pairs} - {*parameter_tensors(self.program.parameters)}

        def visit(node: Node) -> Node:
            return replace(node, tensor=pairs[node.tensor]) if isinstance(node, Size) and node.tensor in made else node

        known = tuple(rewrite(fact, visit) for fact in kernel.facts)
        same = [fact for tensor, twin in pairs.items() for fact in same_sizes(twin, tensor)]
        body = tuple(rewrite(statement, visit) for statement in with_tangents(kernel.body, self.tangents))
        return with_body(kernel, without_dead(body, self.results(), before), (*known, *same))

    def results(self) -> set[Tensor]:
        """Return the tangents that are results, and all places where they may be in the end."""
        tensors = {
            *self.written,
            *(item for node in self.program.body if isinstance(node, Return) for item in node.tensors),
        }
        for node in _exchanges(self.program):
            tensors |= {*node.targets} if tensors.intersection(node.sources) else set()
        return {self.tangents.tensors[tensor] for tensor in tensors if tensor in self.tangents.tensors}
