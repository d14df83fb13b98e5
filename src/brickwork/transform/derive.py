"""Operators made of operators: gradients, tangents and batches, each a program made of a program.

`derive` makes the program, `base_signature` says for which types the operator that it is made of has to be lowered.
The parameters of a derived operator are those of the operator that it is made of, then what the derivation adds, then
`key` where random numbers are drawn. A derived program is a program like any other, and can be derived again.

What each mode does stands in `autodiff/reverse.py`, `autodiff/forward.py` and `batch.py`; names, schemas and the
dispatcher are not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from brickwork.ir.nodes import Load, Parameter, Program, TensorListParameter, TensorParameter, TensorType
from brickwork.ir.signature import ArgumentType, Signature, TensorListType
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.reverse import backward


@dataclass(frozen=True, slots=True)
class Backward:
    """The gradients of an operator.

    `wanted` has an item for each parameter but `key`: whether its gradient is a result. Only parameters that are float
    tensors, or lists of them, have one; those of a list are a result for each item. `grad_<i>`, one for each float
    tensor that is stored into (in the order of the parameters) and each float result, are added to the parameters.
    A parameter that the operator stores into is given with its elements from before that, and is not written.
    """

    wanted: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Forward:
    """The tangents of what an operator stores into and of its results: of float tensors, those stored into first.

    `given` has an item for each parameter but `key`: whether it has a tangent. `tangent_<name>`, one for each tensor
    among those, are added to the parameters.
    """

    given: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The operator over samples.

    `given` has an item for each parameter but `key`: whether it has one more axis, in front, of one item a sample.
    With `keys`, `key` is a tensor of one key a sample, else all samples draw with one.
    """

    given: tuple[bool, ...]
    keys: bool = False


Derivation: TypeAlias = Backward | Forward | Batch


def derive(program: Program, derivation: Derivation, signature: Signature) -> Program:
    """Return the derived program for arguments of the types in `signature`.

    `program` is that of the operator it is derived from, for `base_signature` of the same.
    """
    match derivation:
        case Backward(wanted=wanted):
            return backward(program, wanted, signature)
        case Forward() | Batch():
            raise NotImplementedError(f"{derivation} of `{program.name}`")
        case _:
            assert_never(derivation)


def base_signature(parameters: int, derivation: Derivation, signature: Signature) -> Signature:
    """Return the signature of the operator that one with `signature` is derived from.

    `parameters` is how many parameters that operator has, without `key`.
    """
    arguments = signature.arguments[:parameters]
    if isinstance(derivation, Batch):
        paired = zip(arguments, derivation.given, strict=True)
        arguments = tuple(_sample(item) if given else item for item, given in paired)
    return replace(signature, arguments=arguments, out=(), may_alias=False)


def _sample(argument: ArgumentType) -> ArgumentType:
    """Return the type of one sample of an argument."""
    match argument:
        case TensorType(unit_axis=axis):
            inner = axis - 1 if axis is not None and axis > 0 else None
            return replace(argument, rank=argument.rank - 1, unit_axis=inner)
        case TensorListType(items=items):
            return TensorListType(tuple(replace(item, rank=item.rank - 1) for item in items))
        case _:
            return argument


def loaded(program: Program) -> tuple[bool, ...]:
    """Return for each parameter whether the program reads elements of it; of others only the sizes matter."""
    read = {node.tensor for node in walk(program.body) if isinstance(node, Load)}

    def is_loaded(parameter: Parameter) -> bool:
        match parameter:
            case TensorParameter(tensor=tensor):
                return tensor in read
            case TensorListParameter(tensors=tensors):
                return any(tensor in read for tensor in tensors)
            case _:
                return True

    return tuple(map(is_loaded, program.parameters))
