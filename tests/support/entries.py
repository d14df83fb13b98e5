"""Operators made of hand-written programs: registered through gates, compiled at the first call, without a frontend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from operator import attrgetter

import torch
from torch._ops import OpOverload

from brickwork.codegen.builder import Module
from brickwork.codegen.entry import emit_entry
from brickwork.codegen.kernel import emit_kernel
from brickwork.codegen.llvm import compile_module
from brickwork.host.layout import tensor_type
from brickwork.ir.build import integer, read
from brickwork.ir.dtypes import DTYPES, value_dtype
from brickwork.ir.nodes import (
    Block,
    Expression,
    For,
    Kernel,
    Launch,
    Load,
    Program,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.ir.walk import walk
from brickwork.pytorch.gate import ArgumentKind, Gate, OnAutograd, caller_below_autograd, thunk_object
from brickwork.target.cpu import host_target

_numbers = count(1)
_LIBRARY = torch.library.Library("bwentry", "FRAGMENT")

Factory = Callable[[tuple[object, ...]], Program]


@cache
def thunks() -> bytes:
    """Return the code that gates are made of."""
    return thunk_object(host_target())


def type_of(data: torch.Tensor) -> TensorType:
    """Return what a compilation knows of a tensor."""
    return tensor_type(DTYPES[str(data.dtype).removeprefix("torch.")], data.shape, data.stride())


def tensor(name: str, kind: TensorType) -> Tensor:
    """Return a new tensor of the IR."""
    return Tensor(name, next(_numbers), kind)


def size(of: Tensor, axis: int) -> Expression:
    """Return the extent of an axis."""
    return Size(tensor=of, axis=axis)


def kernel(
    name: str, body: Block, tensors: Sequence[Tensor], scalars: Sequence[Symbol] = (), *, may_alias: bool = False
) -> Launch:
    """Return the launch of a kernel."""
    free = (tuple(tensors), tuple(scalars))
    return Launch(kernel=Kernel(name=name, tensors=free[0], scalars=free[1], facts=(), body=body, may_alias=may_alias))


def elementwise(
    source: Tensor, target: Tensor, value: Callable[[Expression, Sequence[Symbol]], Expression]
) -> tuple[Statement, ...]:
    """Return loops over all elements: `target[i...] = value(source[i...], i...)`."""
    axes = [Symbol(f"i{axis}", next(_numbers), integer(0).dtype) for axis in range(source.type.rank)]
    indices = tuple(read(axis) for axis in axes)
    loaded = Load(tensor=source, indices=indices, access=0, dtype=value_dtype(source.type.dtype))
    body: Block = (Store(tensor=target, indices=indices, value=value(loaded, axes), access=1),)
    for axis in reversed(range(source.type.rank)):
        body = (For(index=axes[axis], start=integer(0), stop=size(source, axis), body=body),)
    return body


def refuse_gradients(overload: OpOverload) -> OnAutograd:
    """Return an `OnAutograd` for an operator without gradients: it refuses to be differentiated, else goes below."""

    def on_autograd(arguments: tuple[object, ...], wants_gradient: bool) -> object:
        if wants_gradient:
            raise NotImplementedError(f"{overload.name()} has no gradient yet")
        return caller_below_autograd(overload)(arguments)

    return on_autograd


class Operator:
    """An operator whose program is made anew for each kind of arguments."""

    def __init__(self, arguments: str, results: str, kinds: Sequence[ArgumentKind], factory: Factory) -> None:
        """Define `bwentry::op<n>(arguments) -> results` and register its gate."""
        self.compiled: list[tuple[object, ...]] = []
        self.error: BaseException | None = None
        self._factory = factory
        name = f"op{next(_numbers)}"
        attrgetter("define")(_LIBRARY)(f"{name}({arguments}) -> {results}")
        self.overload = getattr(torch.ops.bwentry, name).default
        self.packet = getattr(torch.ops.bwentry, name)
        self.gate = Gate(f"bwentry::{name}", kinds, self._miss, refuse_gradients(self.overload), thunks())
        self.gate.register()
        self.name = f"bwentry::{name}"

    def _miss(self, values: tuple[object, ...]) -> None:
        if self.error is not None:
            raise self.error
        module, target, program = Module(), host_target(), self._factory(values)
        launched = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
        made_for = tuple(type_of(value) if isinstance(value, torch.Tensor) else value for value in values)
        made_for = (*made_for, program.may_alias)
        assert made_for not in self.compiled, f"an entry made for {made_for} does not take them"
        self.compiled.append(made_for)
        kernels = {each.name: emit_kernel(module, each, target).removeprefix("@") for each in launched}
        description = emit_entry(module, program, kernels, target)
        self.gate.add(compile_module(module.text(), target), description)

    def __call__(self, *arguments: object, **named: object) -> object:
        """Call through the dispatcher."""
        return self.packet(*arguments, **named)
