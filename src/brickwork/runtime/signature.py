"""From the arguments of a call to the signature that code is specialised on, and signatures as text.

Machine code decides which entry serves a call and Python decides which entry to compile; both go by `host/layout.py`.
Arguments come as plain data: nothing in here knows torch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from brickwork.host.layout import Placement, is_aligned, is_narrow, may_alias, tensor_type
from brickwork.ir.dtypes import FLOAT32, DType
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import AbsentType, ArgumentType, ListType, ScalarType, Signature, TensorListType, TextType
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor of a call: element type, and where its elements are; of a complex one the parts (`TensorType.pairs`)."""

    dtype: DType
    placement: Placement
    pairs: bool = False

    @property
    def type(self) -> TensorType:
        """The type that code for this tensor is specialised on."""
        kind = tensor_type(self.dtype, self.placement.sizes, self.placement.strides)
        return replace(kind, unit_axis=kind.rank - 1, pairs=True) if self.pairs else kind


@dataclass(frozen=True, slots=True)
class TensorListArgument:
    """A list of tensors of a call."""

    items: tuple[TensorArgument, ...]


Argument: TypeAlias = TensorArgument | ScalarType | ListType | TensorListArgument | AbsentType | TextType


def signature_of(
    arguments: Sequence[Argument],
    written: Collection[int] = (),
    out: Sequence[TensorArgument] = (),
    *,
    device: str = "cpu",
    integers: Sequence[int] = (),
    default_dtype: DType = FLOAT32,
) -> Signature:
    """Return the signature of a call on a kind of device.

    `written` are the positions of the arguments that the operator stores into, `integers` the values of all int
    arguments and of the items of lists of them.
    """
    tensors = [(tensor, place in written) for place, item in enumerate(arguments) for tensor in _tensors(item)]
    stored = [place for place, (_, stores) in enumerate(tensors) if stores]
    stored += range(len(tensors), len(tensors) + len(out))
    placements = [tensor.placement for tensor in (*(tensor for tensor, _ in tensors), *out)]
    on_grid = device != "cpu"
    return Signature(
        arguments=tuple(map(_type, arguments)),
        out=tuple(tensor.type for tensor in out),
        may_alias=may_alias(placements, stored),
        device=device,
        narrow=on_grid and is_narrow(placements, integers),
        aligned=on_grid and is_aligned(placements),
        default_dtype=default_dtype,
    )


def _tensors(argument: Argument) -> tuple[TensorArgument, ...]:
    match argument:
        case TensorArgument():
            return (argument,)
        case TensorListArgument(items=items):
            return items
        case _:
            return ()


def _type(argument: Argument) -> ArgumentType:
    match argument:
        case TensorArgument():
            return argument.type
        case TensorListArgument(items=items):
            return TensorListType(tuple(item.type for item in items))
        case _:
            return argument


def signature_text(signature: Signature) -> str:
    """Return a signature in one line; different signatures have different texts.

    >>> from brickwork.ir.dtypes import FLOAT32, FLOAT64
    >>> signature_text(Signature((TensorType(FLOAT32, 2, contiguous=True, unit_axis=1), ScalarType(FLOAT64))))
    '(float32[2] contiguous unit=1, float64)'
    """
    text = f"({', '.join(_argument_text(argument) for argument in signature.arguments)})"
    if signature.out:
        text += f" out=({', '.join(_argument_text(tensor) for tensor in signature.out)})"
    words = {
        "may alias": signature.may_alias,
        f"on {signature.device}": signature.device != "cpu",
        "narrow": signature.narrow,
        "aligned": signature.aligned,
        f"default {signature.default_dtype}": signature.default_dtype is not FLOAT32,
    }
    return " ".join((text, *(word for word, holds in words.items() if holds)))


def _argument_text(argument: ArgumentType) -> str:
    match argument:
        case TensorType():
            words = [f"{argument.element}[{argument.axes}]"]
            words += ["contiguous"] if argument.contiguous else []
            words += [f"unit={argument.unit_axis}"] if argument.unit_axis is not None and not argument.pairs else []
            return " ".join(words)
        case ScalarType(dtype=dtype, value=value):
            return str(dtype) if value is None else f"{dtype}={value}"
        case ListType():
            return f"{argument.dtype}*{argument.length}"
        case TensorListType():
            return f"[{', '.join(map(_argument_text, argument.items))}]"
        case AbsentType():
            return "None"
        case TextType(value=value):
            return repr(value)
        case _:
            assert_never(argument)
