"""A schema that the user writes: what arguments and results an operator has, and which of them a function asks for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import torch

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.source import start_of
from brickwork.ir.dtypes import FLOAT32, DType
from brickwork.pytorch import libtorch
from brickwork.pytorch.schema import OUT, Overload, Schema, checked_name
from brickwork.records import dataclass

Dtypes: TypeAlias = Mapping[str, torch.dtype | Collection[torch.dtype]]
"""The element types that arguments may have, by name."""
Picker: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""Takes, from the values of all arguments and results, those that a function asks for."""


@dataclass(frozen=True, slots=True)
class DeclaredArgument:
    """An argument of a schema."""

    name: str
    kind: str
    """Its type in the schema: `Tensor`, `Optional[Tensor]`, `List[Tensor]`, `int`..."""
    written: bool

    @property
    def is_tensor(self) -> bool:
        """Whether the argument is a tensor, or None for one."""
        return self.kind in {"Tensor", "Optional[Tensor]"}

    @property
    def is_list(self) -> bool:
        """Whether the argument is a list of tensors."""
        return "List" in self.kind and "Tensor" in self.kind


@dataclass(frozen=True, slots=True)
class Declared:
    """An operator as its schema declares it."""

    name: str
    """`ns::name`."""
    schema: Schema
    parameters: tuple[DeclaredArgument, ...]
    results: tuple[str, ...]
    """The names that functions know the results by."""
    draws_random: bool = False
    reads_default_dtype: bool = False
    default_dtype: DType = FLOAT32

    @property
    def mutated(self) -> frozenset[str]:
        """The names of the arguments that are written."""
        return frozenset(each.name for each in self.parameters if each.written)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments, then of all results."""
        return (*(each.name for each in self.parameters), *self.results)


def declared(text: str) -> Declared:
    """Return what a schema such as `ns::name(Tensor x, float eps) -> Tensor` declares; ValueError if it is not right.

    Integers are registered as SymInt, so that compiled graphs need not be made anew for each of their values.
    """
    head, opened, rest = text.partition("(")
    arguments, arrow, results = rest.rpartition("->")
    if not (opened and arrow):
        raise ValueError(f'a schema is "namespace::name(Tensor x, float eps) -> Tensor", not {text!r}')
    name = checked_name(head.strip())
    namespace, _, plain = name.partition("::")
    symbolic = re.sub(r"\bint\b", "SymInt", arguments)
    text = f"{plain}({symbolic}->{results}"
    try:
        found: Any = libtorch.private("_C.parse_schema")(f"{namespace}::{text}")
    except RuntimeError as error:
        raise ValueError(f"the schema of {name} cannot be read: {error}") from None
    if any(each.alias_info is not None for each in found.returns):
        raise ValueError(
            f"{name} cannot return an argument: a kernel that writes into `Tensor(a!)` returns nothing more"
        )
    if any(str(each.type) != "Tensor" for each in found.returns):
        raise ValueError(f"{name} can return tensors only, not {', '.join(str(each.type) for each in found.returns)}")
    taken = tuple(
        DeclaredArgument(each.name, str(each.type), each.alias_info is not None and each.alias_info.is_write)
        for each in found.arguments
    )
    given = [each.name for each in found.returns]
    usual = [OUT] if len(given) == 1 else [f"{OUT}{number}" for number in range(len(given))]
    results_ = tuple(own or other for own, other in zip(given, usual, strict=True))
    names = [each.name for each in taken] + [*results_]
    if len(set(names)) < len(names):
        raise ValueError(f"{name}: a result has the name of an argument; give it another: `-> (Tensor result)`")
    return Declared(name, Schema(Overload(text, ()), None, random=False, unsaid={}), taken, results_)


def picker(what: str, function: Callable[..., Any], operator: Declared, *, results: bool = True) -> Picker:
    """Return what picks the values that the parameters of a function name; CompileError if one names none.

    A function whose parameters Python does not know gets the first tensor.
    """
    known = operator.names if results else operator.names[: len(operator.parameters)]
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except ValueError:  # a function of torch's, such as torch.empty_like
        first = next((at for at, each in enumerate(operator.parameters) if each.is_tensor), 0)
        return itemgetter(slice(first, first + 1))
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return lambda values: values[: len(known)]
    wanted = [each.name for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD]
    missing = next((name for name in wanted if name not in known), None)
    if missing is not None:
        message = f"`{what}` of {operator.name} asks for `{missing}`, which the schema does not have"
        advice = f"name any of: {', '.join(known)}" if known else "the operator has no arguments: take none"
        raise CompileError(Diagnostic(code="BW304", message=message, loc=start_of(function), help=advice))
    places = [known.index(name) for name in wanted]
    if places == [*range(len(known))] and len(known) == len(operator.names):
        return lambda values: values
    if not places:
        return lambda _: ()
    return itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))


def element_types(operator: Declared, dtypes: Dtypes | None) -> dict[str, frozenset[torch.dtype]]:
    """Return the element types that each argument may have, for those that have a word on it."""
    tensors = [each.name for each in operator.parameters if "Tensor" in each.kind]
    unknown = next((name for name in dtypes or {} if name not in tensors), None)
    if unknown is not None:
        raise ValueError(f"{operator.name} has no tensor argument {unknown!r}; it has: {', '.join(tensors)}")
    return {
        name: frozenset((given,) if isinstance(given, torch.dtype) else given) for name, given in (dtypes or {}).items()
    }
