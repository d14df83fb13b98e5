"""The schema of an operator, derived from its definition: types, defaults, what is written, random keys, results.

Two overloads are defined: the function itself, and `out`, which takes the caller's buffers for the results. The `out`
overload returns nothing, so that PyTorch's functionalisation needs no more than the schema to handle it.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from brickwork.frontend.parameters import Kind, NoDefault, ParameterDeclaration
from brickwork.pytorch.gate import ArgumentKind
from brickwork.records import dataclass
from brickwork.transform.derivation import Defined

KEY = "key"
"""The name of the argument that holds an explicit random key."""
OUT = "out"
"""The name of the overload with the caller's buffers, and of its argument if there is one."""

_KINDS: dict[Kind, ArgumentKind] = {
    "tensor": ArgumentKind.TENSOR,
    "int": ArgumentKind.INT,
    "float": ArgumentKind.FLOAT,
    "bool": ArgumentKind.BOOL,
    "str": ArgumentKind.TEXT,
    "list[tensor]": ArgumentKind.TENSOR_LIST,
    "list[int]": ArgumentKind.INT_LIST,
    "list[float]": ArgumentKind.FLOAT_LIST,
    "list[bool]": ArgumentKind.BOOL_LIST,
}
_OPTIONAL = {
    ArgumentKind.TENSOR: ArgumentKind.OPTIONAL_TENSOR,
    ArgumentKind.INT: ArgumentKind.OPTIONAL_INT,
    ArgumentKind.FLOAT: ArgumentKind.OPTIONAL_FLOAT,
    ArgumentKind.BOOL: ArgumentKind.OPTIONAL_BOOL,
}


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload: its schema without the namespace, and how its arguments lie on the stack."""

    schema: str
    arguments: tuple[ArgumentKind, ...]
    outputs: tuple[str, ...] = ()
    """The names of the arguments that take results."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The overloads of an operator; `out` is None where the operator has no results of its own."""

    default: Overload
    out: Overload | None
    random: bool
    unsaid: Mapping[str, object]
    """Defaults that the language of schemas has no words for: infinities, NaN, denormals, and those before them."""


def checked_name(name: str) -> str:
    """Return the name of an operator, `ns::name`, if it can be one; ValueError else."""
    if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name, re.ASCII):
        message = f'an operator is named "namespace::name", in letters, digits and underscores, not {name!r}'
        parts = [re.sub(r"(?a)\W+", "_", part).strip("_") for part in name.split("::")]
        if len(parts) == 2 and all(parts):
            message += f": write {'::'.join(part if part[0].isalpha() else f'op_{part}' for part in parts)!r}"
        raise ValueError(message)
    for part in name.split("::"):
        if keyword.iskeyword(part) or part.startswith("__"):
            raise ValueError(
                f"an operator cannot be named {name!r}: {part!r} has a meaning of its own; choose another name"
            )
    return name


def own_name(function: Callable[..., object]) -> str:
    """Return the name of an operator that is given none: of its module and its function."""
    module = re.sub(r"\W+", "_", getattr(function, "__module__", None) or "").strip("_") or "brickwork"
    namespace = f"m_{module}" if module[0].isdigit() else module
    return f"{namespace}::{getattr(function, '__name__', 'operator')}"


def derive(name: str, definition: Defined) -> Schema:
    """Return the overloads of `definition` under `name` (without a namespace)."""
    kinds = [argument_kind(parameter) for parameter in definition.parameters]
    if definition.draws_random:
        kinds.append(ArgumentKind.OPTIONAL_TENSOR)
    default = Overload(f"{name}({_arguments(definition, ())}) -> {_results(definition.results)}", tuple(kinds))
    outputs = output_names(definition)
    out = None
    if outputs:
        schema = f"{name}.{OUT}({_arguments(definition, outputs)}) -> ()"
        out = Overload(schema, (*kinds, *[ArgumentKind.TENSOR] * len(outputs)), outputs)
    return Schema(default, out, definition.draws_random, _unsaid(definition))


def _unsaid(definition: Defined) -> dict[str, object]:
    """Return the defaults that stay out of the schema; there, none may stand before a parameter without one."""
    found: dict[str, object] = {}
    late = False
    for parameter in reversed(definition.parameters):
        if isinstance(parameter.default, NoDefault):
            continue
        wordless = not _has_words(parameter.default)
        late = late or (wordless and not parameter.keyword_only)
        if wordless or (late and not parameter.keyword_only):
            found[parameter.name] = parameter.default
    return found


def _has_words(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_has_words, cast("Sequence[object]", value)))
    if isinstance(value, str):
        return value.isascii() and value.isprintable() and not {*value} & {*"\"'\\"}
    return not isinstance(value, float) or not value or sys.float_info.min <= abs(value) <= sys.float_info.max


def argument_kind(parameter: ParameterDeclaration) -> ArgumentKind:
    """Return how the argument for a parameter lies on the stack."""
    kind = _KINDS[parameter.kind]
    return _OPTIONAL[kind] if parameter.optional else kind


def output_names(definition: Defined) -> tuple[str, ...]:
    """Return the names of the arguments of the `out` overload that take results; empty if there is no such overload."""
    names = (OUT,) if definition.results == 1 else tuple(f"{OUT}{number}" for number in range(definition.results))
    taken = {parameter.name for parameter in definition.parameters}
    return () if taken & {*names, OUT} else names


def _arguments(definition: Defined, outputs: tuple[str, ...]) -> str:
    """Return the list of arguments; keyword-only ones stand after a star, tensors that are written are marked."""
    letters, unsaid = _letters(), _unsaid(definition)
    positional: list[str] = []
    named: list[str] = []
    for parameter in definition.parameters:
        kind = _type(parameter, next(letters) if parameter.name in definition.mutated else None)
        text = f"{kind} {parameter.name}{'' if parameter.name in unsaid else _default(parameter)}"
        (named if parameter.keyword_only else positional).append(text)
    if definition.draws_random:
        named.append(f"Tensor? {KEY}=None")
    named += [f"Tensor({next(letters)}!) {name}" for name in outputs]
    return ", ".join((*positional, "*", *named) if named else positional)


def _type(parameter: ParameterDeclaration, letter: str | None) -> str:
    kind = argument_kind(parameter)
    match kind:
        case ArgumentKind.TENSOR | ArgumentKind.OPTIONAL_TENSOR | ArgumentKind.TENSOR_LIST if letter is not None:
            return kind.value.replace("Tensor", f"Tensor({letter}!)")
        case ArgumentKind.INT | ArgumentKind.OPTIONAL_INT | ArgumentKind.INT_LIST:
            return kind.value.replace("int", "SymInt")
        case _:
            return kind.value


def _default(parameter: ParameterDeclaration) -> str:
    if isinstance(parameter.default, NoDefault):
        return ""
    return f"={_literal(parameter.default)}"


def _literal(value: object) -> str:
    match value:
        case None | bool() | int():
            return str(value)
        case float():
            return repr(value)
        case str():
            return f'"{value}"'
        case list() | tuple():
            return f"[{', '.join(_literal(item) for item in cast('Sequence[object]', value))}]"
        case _:
            raise TypeError(
                f"{value!r} cannot be the default of an operator's argument: write a number, a bool, None or a list of"
                " these"
            )


def _results(count: int) -> str:
    return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _letters() -> Iterator[str]:
    """Yield the names of alias sets: a, b, ..., z, aa, ab, ..."""
    number = 0
    while True:
        prefix = chr(ord("a") + number // 26 - 1) if number >= 26 else ""
        yield prefix + chr(ord("a") + number % 26)
        number += 1
