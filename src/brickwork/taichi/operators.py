"""From a compiled kernel to an operator of PyTorch: its program, its definition, and its place in `torch.ops`."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from brickwork.diagnostics.location import Location
from brickwork.frontend.definition import Definition, Written
from brickwork.frontend.lift import Split
from brickwork.frontend.parameters import NO_DEFAULT, Kind, ParameterDeclaration
from brickwork.frontend.source import SourceFunction
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, DType, value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Block,
    Kernel,
    KeyParameter,
    Launch,
    Parameter,
    Program,
    Return,
    ScalarParameter,
    Statement,
    Symbol,
    Tensor,
    TensorParameter,
)
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_program
from brickwork.ir.walk import free_symbols, free_tensors
from brickwork.pytorch.dtypes import to_torch
from brickwork.pytorch.gate import thunk_name, thunk_object
from brickwork.pytorch.native import DerivedOperators, NativeOperator
from brickwork.pytorch.schema import KEY
from brickwork.pytorch.specialise import Place, Tools
from brickwork.records import dataclass
from brickwork.runtime.compile import Compilation, cached_object, compile_operator
from brickwork.taichi.source import Source
from brickwork.target.cpu import configured_target
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined
from brickwork.transform.tensors import dense_type, relaid

NAMESPACE = "brickwork_taichi"
_KINDS: dict[DType, Kind] = {INT64: "int", FLOAT64: "float", BOOL: "bool"}
_DIGITS = 16
"""Hexadecimal digits of a digest in a name: two kernels of 2**32 meet in one."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel as the IR has it: its tensors and scalars in the order of the operator's arguments."""

    source: Source
    tensors: tuple[Tensor, ...]
    mutated: frozenset[Tensor]
    scalars: tuple[Symbol, ...]
    numbers: tuple[tuple[Tensor, int], ...]
    """The tensors that hold numbers that are too many for arguments, each with how many."""
    results: tuple[tuple[Tensor, int], ...]
    """The tensors that hold what is returned, each with how many numbers."""
    body: Block
    key: Symbol | None
    """The variable with the key of random draws, if there are any."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator, and all that is derived of it."""

    name: str
    """What it is called in `torch.ops.brickwork_taichi`."""
    call: Callable[..., Any]
    family: DerivedOperators
    prepare: Callable[[Sequence[Any], Place], Any]
    """Compiles for arguments like these, and runs nothing."""

    @property
    def draws_random(self) -> bool:
        """Whether it takes a random key."""
        return self.family.definition.draws_random


def operator_of(lowered: Lowered) -> Operator:
    """Return the operator of a kernel."""
    names = _names((*lowered.tensors, *lowered.scalars))
    program = _program(lowered)
    loc = lowered.source.location(lowered.source.node)
    digest = hashlib.sha256(f"{loc.file}:{loc.line}\n{print_program(program)}".encode()).hexdigest()
    definition = _definition(lowered, names, program, digest)
    name = f"{NAMESPACE}::{lowered.source.node.name}_{digest[:_DIGITS]}"
    tools = Tools(_compile, _thunks, _note)
    native = NativeOperator(name, name, definition, tools)
    family = DerivedOperators(name, name, definition, native.call, tools)
    return Operator(native.call.name().partition("::")[2], native.call, family, native.prepare)


def _names(items: Sequence[Tensor | Symbol]) -> list[str]:
    """Return a name for each argument: its own, in letters and digits, and a number where that is taken."""
    taken = {KEY, "out", "self"}
    found: list[str] = []
    for number, item in enumerate(items):
        name = re.sub(r"\W+", "_", item.name, flags=re.ASCII).strip("_") or "x"
        name = f"x{name}" if name[0].isdigit() else name
        if name in taken or keyword.iskeyword(name):
            name = f"{name}_{number}"
        taken.add(name)
        found.append(name)
    return found


def _program(lowered: Lowered) -> Program:
    loc = lowered.source.location(lowered.source.node)
    parameters: list[Parameter] = [TensorParameter(each, each in lowered.mutated) for each in lowered.tensors]
    parameters += [ScalarParameter(each) for each in lowered.scalars]
    if lowered.key is not None:
        parameters.append(KeyParameter(lowered.key))
    made = [(tensor, build.integer(count)) for tensor, count in lowered.results]
    known = [(tensor, build.integer(count)) for tensor, count in lowered.numbers]
    zero = [build.constant(0, value_dtype(tensor.type.dtype)) for tensor, _ in lowered.results]
    host: list[Statement] = [
        Allocate(tensor=tensor, sizes=(size,), fill=fill, loc=loc)
        for (tensor, size), fill in zip(made, zero, strict=True)
    ]
    if lowered.body:
        facts = tuple(build.apply("eq", build.size(tensor, 0), size) for tensor, size in (*known, *made))
        kernel = Kernel(
            name=lowered.source.node.name, tensors=free_tensors(lowered.body), scalars=free_symbols(lowered.body),
            facts=facts, body=lowered.body, loc=loc,
        )  # fmt: skip
        host.append(Launch(kernel=kernel, loc=loc))
    host.append(Return(tensors=tuple(tensor for tensor, _ in lowered.results), loc=loc))
    return Program(name=lowered.source.node.name, parameters=tuple(parameters), body=tuple(host), loc=loc)


def result_tensor(number: int, element: DType, place: int) -> Tensor:
    """Return a tensor for results of one type."""
    return Tensor(f"result_{place}", number, dense_type(element, 1))


def _for_signature(program: Program, signature: Signature) -> Program:
    """Return the program for tensors that lie in memory as in a call."""
    laid = relaid(program, signature.arguments)
    assert laid is not None  # it exchanges no tensors
    body = tuple(
        replace(each, kernel=replace(each.kernel, may_alias=signature.may_alias)) if isinstance(each, Launch) else each
        for each in laid.body
    )
    return replace(
        laid, body=body, device=signature.device, narrow=signature.narrow, aligned=signature.aligned,
        may_alias=signature.may_alias,
    )  # fmt: skip


def _definition(lowered: Lowered, names: Sequence[str], program: Program, digest: str) -> Definition:
    source, loc = lowered.source, lowered.source.location(lowered.source.node)
    kinds: list[Kind] = [*("tensor" for _ in lowered.tensors), *(_KINDS[each.dtype] for each in lowered.scalars)]
    declared = tuple(_declared(name, kind, loc) for name, kind in zip(names, kinds, strict=True))
    results = [(count, to_torch(tensor.type.dtype)) for tensor, count in lowered.results]

    def host(*_: Any, **__: Any) -> Any:
        found = tuple(torch.empty(count, dtype=dtype) for count, dtype in results)
        return found[0] if len(found) == 1 else found or None

    text = "\n".join(source.lines.values())
    return Definition(
        source=SourceFunction(source.node, source.file, text, {}, source.function),
        parameters=declared,
        mutated=frozenset(name for name, each in zip(names, lowered.tensors, strict=False) if each in lowered.mutated),
        results=len(results),
        returns_tuple=len(results) > 1,
        draws_random=lowered.key is not None,
        host="native",
        reason="",
        fingerprint=digest,
        helpers={},
        split=Split(frozenset(), frozenset(), frozenset(), ""),
        written=Written(lambda signature: _for_signature(program, signature), host),
    )


def _declared(name: str, kind: Kind, loc: Location) -> ParameterDeclaration:
    return ParameterDeclaration(name, kind, NO_DEFAULT, keyword_only=False, loc=loc)


def _compile(definition: Defined, signature: Signature, gpu: Target | None) -> Compilation:
    host = configured_target()
    return compile_operator(definition, signature, gpu or host, host=host)


@cache
def _thunks() -> bytes:
    target = configured_target()
    return cached_object(thunk_name(), lambda: thunk_object(target), target)


def _note(signature: Signature, overload: str, made: Compilation) -> None:
    """Keep no list of what was compiled."""
