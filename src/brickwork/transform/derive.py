"""Operators made of operators: gradients, tangents and batches, each a program made of a program.

`derive` makes the program, `base_signature` says for which types the operator that it is made of has to be lowered.
The parameters of a derived operator are those of the operator that it is made of, then what the derivation adds, then
`key` where random numbers are drawn. A derived program is a program like any other, and can be derived again.

What can be derived stands in `derivation.py`, what each mode does in `autodiff/reverse.py`, `autodiff/forward.py` and
`batch.py`; schemas and the dispatcher are not known here. The modes are loaded when they are first asked for: most
operators are compiled without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from typing import assert_never, cast

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition
from brickwork.frontend.lower import lower
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Block,
    Launch,
    Parameter,
    Program,
    Return,
    TensorListParameter,
    TensorParameter,
    TensorType,
    parameter_tensors,
)
from brickwork.ir.signature import ArgumentType, Signature, TensorListType
from brickwork.ir.walk import statements
from brickwork.transform.derivation import Backward, Batch, Defined, Derivation, Derived, Forward
from brickwork.transform.tensors import dense_type, relaid, without_tensors


def derive(program: Program, derivation: Derivation, signature: Signature) -> Program:
    """Return the derived program for arguments of the types in `signature`.

    `program` is that of the operator it is derived from, for `base_signature` of the same.
    """
    match derivation:
        case Backward():
            return gathered(backward(program, derivation, signature))
        case Forward(given=given):
            return forward(program, given, signature)
        case Batch(given=given, keys=keys):
            return batch(program, given, signature, keys=keys)
        case _:
            assert_never(derivation)


def backward(program: Program, derivation: Backward, signature: Signature) -> Program:
    """Return the program of gradients, which adds to them where contributions arise."""
    made = import_module("brickwork.transform.autodiff.reverse").backward(program, derivation, signature)
    return cast("Program", made)


def gathered(program: Program) -> Program:
    """Return a program of gradients in the form that is compiled."""
    return cast("Program", import_module("brickwork.transform.autodiff.reverse").gathered(program))


def forward(program: Program, given: tuple[bool, ...], signature: Signature) -> Program:
    """Return the program of tangents."""
    return cast("Program", import_module("brickwork.transform.autodiff.forward").forward(program, given, signature))


def batch(program: Program, given: tuple[bool, ...], signature: Signature, *, keys: bool) -> Program:
    """Return the program that runs over samples."""
    return cast("Program", import_module("brickwork.transform.batch").batch(program, given, signature, keys=keys))


def program_of(defined: Defined, signature: Signature) -> Program:
    """Return the program of an operator for arguments of these types."""
    if isinstance(defined, Definition):
        return lower(defined, signature)
    base = defined.base
    made = _laid(defined, signature, _made)
    for parameter, given, needed in zip(base.parameters, defined.read, loaded(made), strict=False):
        if needed and not given:
            message = f"`{defined.name}` does not take the elements of `{parameter.name}`, which it needs now"
            advice = "torch has cached a graph of an older source: run once with TORCHINDUCTOR_FORCE_DISABLE_CACHES=1"
            raise CompileError(Diagnostic(code="BW301", message=message, loc=defined.loc, help=advice))
    return made


def _laid(defined: Derived, signature: Signature, make: Callable[[Defined, Derivation, Signature], Program]) -> Program:
    """Return the program that is made of an operator, for tensors that lie in memory as in the signature.

    A gradient is derived alike however gradients that are given, and tensors whose elements are not read, lie in
    memory. So it is derived for row-major ones: what was derived to know what is read is what is compiled.
    """
    if not isinstance(defined.derivation, Backward):
        return make(defined.base, defined.derivation, signature)
    read = _may_read(defined)
    kinds = tuple(
        item if place < len(read) and read[place] else _changed(item, _dense)
        for place, item in enumerate(signature.arguments)
    )
    made = make(defined.base, defined.derivation, replace(signature, arguments=kinds))
    if kinds == signature.arguments:
        return made
    return relaid(made, signature.arguments) or make(defined.base, defined.derivation, signature)


@lru_cache(maxsize=8)
def _made(base: Defined, derivation: Derivation, signature: Signature) -> Program:
    """Return the program that is made of an operator.

    The last ones are kept: each is asked what it reads, is compiled, and may be derived again.
    """
    if isinstance(derivation, Backward):
        known = _given_less(_made, base, derivation, signature)
        return gathered(_scattered(base, derivation, signature)) if known is None else known
    program = program_of(base, base_signature(len(base.parameters), derivation, signature))
    made = derive(program, derivation, signature)
    if isinstance(derivation, Batch) and base.mutated and _exchanging(program) != _exchanging(made):
        # Samples exchange elements, which the tensors that the caller holds must not.
        message = f"`{base.name}` stores into arguments that change places, for each sample in another way"
        raise CompileError(Diagnostic(code="BW901", message=message, loc=base.loc, help="call it once a sample"))
    return made


def _exchanging(program: Program) -> int:
    """Return how many kernels of a program exchange places."""
    exchanges: Callable[[Block], bool] = import_module("brickwork.transform.batch_loop").exchanges
    return sum(exchanges(node.kernel.body) for node in statements(program.body) if isinstance(node, Launch))


@lru_cache(maxsize=8)
def _scattered(base: Defined, derivation: Backward, signature: Signature) -> Program:
    """Return the program of an operator's gradients as it is derived again: with one form of each sum."""
    if (known := _given_less(_scattered, base, derivation, signature)) is not None:
        return known
    plain = base_signature(len(base.parameters), derivation, signature)
    if isinstance(base, Derived) and isinstance(base.derivation, Backward):
        return backward(_laid(base, plain, _scattered), derivation, signature)
    return backward(program_of(base, plain), derivation, signature)


def _given_less(
    make: Callable[[Defined, Backward, Signature], Program], base: Defined, derivation: Backward, signature: Signature
) -> Program | None:
    """Return the program of gradients that is given some results, from that which is given all and reads no others.

    That one is made to know what gradients read. None where there is none, or it asks more of the others than sizes.
    """
    given = derivation.results or (False,) * base.results
    if all(given) or base.draws_random or (isinstance(base, Derived) and isinstance(base.derivation, Backward)):
        return None
    plain = program_of(base, base_signature(len(base.parameters), derivation, signature))
    results = next((node.tensors for node in plain.body if isinstance(node, Return)), ())
    own = signature.arguments[: len(signature.arguments) - sum(given)]
    whole = replace(signature, arguments=(*own, *(_dense(tensor.type) for tensor in results)))
    try:
        made = make(base, replace(derivation, results=(True,) * len(results)), whole)
    except CompileError:
        return None
    taken = parameter_tensors(made.parameters)[-len(results) :]
    return without_tensors(made, {tensor for tensor, stays in zip(taken, given, strict=True) if not stays})


def base_signature(parameters: int, derivation: Derivation, signature: Signature) -> Signature:
    """Return the signature of the operator that one with `signature` is derived from.

    `parameters` is how many parameters that operator has, without `key`.
    """
    arguments = signature.arguments[:parameters]
    if isinstance(derivation, Batch):
        paired = zip(arguments, derivation.given, strict=True)
        arguments = tuple(_changed(item, _without_first_axis) if given else item for item, given in paired)
    return replace(signature, arguments=arguments, out=(), may_alias=False)


def _changed(argument: ArgumentType, change: Callable[[TensorType], TensorType]) -> ArgumentType:
    """Return an argument's type with its tensors' types changed."""
    match argument:
        case TensorType():
            return change(argument)
        case TensorListType(items=items):
            return TensorListType(tuple(map(change, items)))
        case _:
            return argument


def _may_read(defined: Defined) -> tuple[bool, ...]:
    """Return for each parameter of the base whether its elements may be looked at: not where the base does not."""
    if isinstance(defined, Definition):
        return ()
    before = _may_read(defined.base)
    return tuple(item and all(before[place : place + 1]) for place, item in enumerate(defined.read))


def _dense(kind: TensorType) -> TensorType:
    return dense_type(kind.dtype, kind.rank, pairs=kind.pairs)


def _without_first_axis(kind: TensorType) -> TensorType:
    unit = kind.unit_axis
    return replace(kind, rank=kind.rank - 1, unit_axis=unit - 1 if unit is not None and unit > 0 else None)


def elements_read(derived: Derived, signature: Signature) -> tuple[bool, ...]:
    """Return for each parameter of the base whether the derived program reads elements of it, or what is made of it.

    Then the same of each result of the base that it may be given.
    """
    programs = [program_of(derived, signature)]
    if isinstance(derived.derivation, Backward):
        programs.append(_laid(derived, signature, _scattered))
    found = tuple(map(any, zip(*map(loaded, programs), strict=True)))
    before = len(derived.base.parameters)
    after = len(derived.parameters)
    return (*found[:before], *found[after - sum(derived.results_given) : after])


def loaded(program: Program) -> tuple[bool, ...]:
    """Return for each parameter whether the program reads elements of it; of others only the sizes matter."""
    read = effects(program.body).loads

    def is_loaded(parameter: Parameter) -> bool:
        match parameter:
            case TensorParameter(tensor=tensor):
                return tensor in read
            case TensorListParameter(tensors=tensors):
                return any(tensor in read for tensor in tensors)
            case _:
                return True

    return tuple(map(is_loaded, program.parameters))
