"""An operator over samples: a loop around the kernel, and one more axis, in front, of what differs between samples.

    for i: out[i] = x[i] * w[i]     ->     for sample: for i: out[sample, i] = x[sample, i] * w[i]

Everything that the operator allocates differs, for it may be written. The loop is not called independent: the analysis
finds that it is, since its index leads every access that writes. The host part is the same for all samples, but for
sizes. How the loop goes into a kernel stands in `batch_loop.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from brickwork.diagnostics.errors import InternalError
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import (
    Allocate,
    Check,
    Failure,
    FailureKind,
    Kernel,
    KeyParameter,
    Launch,
    Parameter,
    Program,
    Rebind,
    Return,
    Size,
    Statement,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TensorType,
)
from brickwork.ir.signature import ArgumentType, Signature, TensorListType
from brickwork.ir.tensor_types import joined_type
from brickwork.ir.walk import NodeType
from brickwork.records import dataclass
from brickwork.transform.batch_loop import Key, Samples, exchanges, for_each_sample, resized
from brickwork.transform.free_variables import with_body
from brickwork.transform.scratch import Names, names_of
from brickwork.transform.tensors import copied, dense_type, same_sizes, sizes_of


def batch(program: Program, given: tuple[bool, ...], signature: Signature, *, keys: bool) -> Program:
    """Return the program over samples, for arguments of the types in `signature`; `keys`: each draws with its own."""
    names = names_of(program)
    plain, drawn = program.parameters[: len(given)], program.parameters[len(given) :]
    whole: dict[Tensor, Tensor] = {}
    parameters = tuple(
        _whole(parameter, kind, names, whole) if has else parameter
        for parameter, kind, has in zip(plain, signature.arguments, given, strict=True)
    )
    if not whole:
        raise InternalError(f"nothing tells how many samples `{program.name}` is over")
    checks = tuple(_counts_agree(whole))
    count = Size(tensor=next(iter(whole.values())), axis=0)
    key: Key | None = None
    if keys:
        drawn, key = _with_keys(drawn, names, whole)
    host = _Host(program, Samples(names, {**whole}, count, key), may_alias=signature.may_alias, held=frozenset())
    body = tuple(host.body())
    if host.by_elements and not whole.keys().isdisjoint(host.moved):
        # Elements of what the caller holds stay where they are: copies change places.
        held = frozenset(whole)
        host = _Host(program, Samples(names, {**whole}, count, key), may_alias=signature.may_alias, held=held)
        body = tuple(host.body())
    return replace(program, parameters=(*parameters, *drawn), body=(*checks, *body), may_alias=host.may_alias)


def _whole(parameter: Parameter, kind: ArgumentType, names: Names, whole: dict[Tensor, Tensor]) -> Parameter:
    """Return a parameter with one more axis; enters its tensors into `whole`."""
    match parameter, kind:
        case TensorParameter(tensor=tensor), TensorType():
            whole[tensor] = Tensor(tensor.name, next(names.tensors), kind)
            return replace(parameter, tensor=whole[tensor])
        case TensorListParameter(tensors=tensors), TensorListType(items=kinds):
            for tensor, item in zip(tensors, kinds, strict=True):
                whole[tensor] = Tensor(tensor.name, next(names.tensors), item)
            return replace(parameter, tensors=tuple(whole[tensor] for tensor in tensors))
        case _:
            raise InternalError(f"{parameter} has no axis of samples")


def _with_keys(
    drawn: tuple[Parameter, ...], names: Names, whole: dict[Tensor, Tensor]
) -> tuple[tuple[Parameter, ...], Key | None]:
    """Return the parameter of one key a sample; where samples had a key each already, it gets one more axis."""
    match drawn:
        case (KeyParameter(symbol=symbol),):
            keys = Tensor("key", next(names.tensors), dense_type(INT64, 1))
            return (TensorParameter(keys, optional=True),), Key(symbol, keys)
        case (TensorParameter(tensor=tensor),):
            whole[tensor] = Tensor("key", next(names.tensors), dense_type(INT64, tensor.type.rank + 1))
            return (TensorParameter(whole[tensor], optional=True),), None
        case _:
            raise InternalError("keys for an operator that draws no random numbers")


def _counts_agree(whole: dict[Tensor, Tensor]) -> Iterator[Statement]:
    """Yield checks that all tensors are of one number of samples."""
    first, *others = whole.values()
    for other in others:
        sizes = (Size(tensor=first, axis=0), Size(tensor=other, axis=0))
        message = f"`{first.name}` is of {{0}} samples, `{other.name}` of {{1}}"
        yield Check(condition=build.apply("eq", *sizes), failure=Failure(FailureKind.VALUE, message), values=sizes)


@dataclass(slots=True)
class _Host:
    """Writes the host part anew, with an axis of samples in front of what it makes."""

    program: Program
    samples: Samples
    may_alias: bool
    held: frozenset[Tensor]
    """Tensors that are copied before they change places, though they differ between samples."""
    moved: set[Tensor] = field(default_factory=set[Tensor])
    """The tensors that change places."""
    copies: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])
    """Of which of them copies change places, by these places: of what all samples share, and of what is held."""
    by_elements: bool = False
    """Whether samples exchange elements, not places."""

    def body(self) -> Iterator[Statement]:
        """Yield the statements."""
        for node in self.program.body:
            match node:
                case Allocate():
                    yield self.allocated(node)
                case Rebind():
                    yield from self.rebound(node)
                case Launch(kernel=kernel):
                    yield replace(node, kernel=self.kernel(kernel))
                case Return(tensors=tensors):
                    yield replace(node, tensors=tuple(self.samples.whole[tensor] for tensor in tensors))
                case _:
                    yield self.resized(node)

    def resized(self, node: NodeType) -> NodeType:
        """Return a tree with the sizes of one sample in place."""
        return resized(node, self.samples)

    def allocated(self, node: Allocate) -> Allocate:
        """Return what makes a tensor for all samples: row-major, whatever it is like."""
        kind = dense_type(node.tensor.type.dtype, node.tensor.type.rank + 1, pairs=node.tensor.type.pairs)
        sizes = (self.samples.count, *(self.resized(size) for size in node.sizes))
        return replace(node, tensor=self.samples.add(node.tensor, kind), sizes=sizes, like=None)

    def rebound(self, node: Rebind) -> Iterator[Statement]:
        """Yield what gives tensors places; what all samples share, or is held, is copied for each of them before."""
        self.moved.update(node.sources)
        sources: list[Tensor] = []
        for place, tensor in zip(node.targets, node.sources, strict=True):
            whole = None if tensor in self.held else self.samples.whole.get(tensor)
            if whole is None:
                kind = dense_type(tensor.type.dtype, tensor.type.rank + 1, pairs=tensor.type.pairs)
                whole = Tensor(f"{tensor.name}_samples", next(self.samples.names.tensors), kind)
                yield Allocate(tensor=whole, sizes=(self.samples.count, *map(self.resized, sizes_of(tensor))))
                self.copies[place] = tensor
            sources.append(whole)
        kind = joined_type([tensor.type for tensor in sources])
        targets = tuple(self.samples.add(place, kind) for place in node.targets)
        yield replace(node, targets=targets, sources=tuple(sources))

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return the kernel for all samples."""
        whole = self.samples.whole.values()
        facts = [build.apply("eq", Size(tensor=tensor, axis=0), self.samples.count) for tensor in whole]
        facts += [self.resized(fact) for fact in kernel.facts]
        filled: list[Statement] = []
        for place, tensor in self.copies.items():
            facts += [self.resized(fact) for fact in same_sizes(place, tensor)]
            filled += copied(tensor, place, self.samples.names)
        body = for_each_sample((*filled, *kernel.body), self.samples)
        self.by_elements |= exchanges(kernel.body) and not exchanges(body)
        return replace(with_body(kernel, body, facts), may_alias=self.may_alias)
