"""Which overloads of an operator are the same call: the function, and the forms that write in place or into `out`.

Here is asked, by name, what the dispatcher knows of schemas and kernels; nothing is changed, and no kernel is called.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import torch

from brickwork.pytorch.libtorch import private
from brickwork.records import dataclass

_COMPOSITES = ("CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
"""Keys of kernels for every device that call other operators, and have an autograd kernel in front."""


_NUMBERS = (bool, int, float, complex, torch.SymInt, torch.SymFloat, torch.SymBool)
_TENSORS = ("Tensor", "Optional[Tensor]")


class Form(Enum):
    """Where the results of an overload go."""

    FUNCTION = "returned"
    IN_PLACE = "into the first argument"
    OUT = "into the arguments for results"
    WRITING = "wherever the callable puts them"
    """An overload that was named itself although it writes: the callable does what it does."""


@dataclass(frozen=True, slots=True)
class Member:
    """One overload that an override replaces."""

    overload: Any
    form: Form
    function: Any
    """The overload that returns what this one writes; itself for those that were named."""
    outputs: tuple[str, ...] = ()
    """The names of the arguments that take results."""


def family(name: str, device: str) -> tuple[Member, ...]:
    """Return what has kernels of its own for `device` ("CPU", "CUDA") among an overload and what does the same.

    `name` is that of an operator (`aten::sin`) or of an overload (`aten::add.Tensor`). An overload that writes stands
    for itself alone. Other forms that have no kernel of their own call those that have one.
    """
    named = _overloads_named(name, device)
    if any(_writes(overload) for overload in named):
        return tuple(Member(overload, Form.WRITING, overload) for overload in named)
    own = [overload for overload in named if _has_kernel(overload, (device,))]
    members = [Member(overload, Form.FUNCTION, overload) for overload in own or named]
    for overload in named:
        members += [member for member in _variants(overload) if _has_kernel(member.overload, (device,))]
    return tuple(members)


def _overloads_named(name: str, device: str) -> list[Any]:
    """Return the overloads that a name stands for.

    Among overloads with kernels, the name of an operator is that of the overload without a name, else of `Tensor`, else
    of those whose arguments have the same names; further ones that only take a number for a tensor go with it.
    """
    namespace, _, rest = name.partition("::")
    plain, _, label = rest.partition(".")
    packet = _packet(namespace, plain)
    if packet is None:
        raise ValueError(_unknown(name))
    known = {each: getattr(packet, each) for each in packet.overloads() if _is_dispatched(getattr(packet, each))}
    if label and label not in known:
        raise ValueError(f"there is no overload {name}; there are: {_names(known.values())}")
    chosen = [known[label]] if label else [each for each in known.values() if not _writes(each)] or [*known.values()]
    refusals = {each.name(): _refusal(each, device) for each in chosen}
    replaceable = [each for each in chosen if refusals[each.name()] is None]
    if not replaceable:
        raise ValueError(next(iter(refusals.values()), None) or _unknown(name))
    usual = next((each for label in ("default", "Tensor") for each in replaceable if _label(each) == label), None)
    first = usual or replaceable[0]
    alike = [each for each in replaceable if _call_of(each, numbers=False) == _call_of(first, numbers=False)]
    if usual is None and len(alike) < len(replaceable):
        names = _names(replaceable)
        raise ValueError(f"{name} is several operators that take different arguments; name one of {names}")
    return alike


def _variants(function: Any) -> Iterator[Member]:
    """Yield the overloads that do what `function` does and write the result somewhere."""
    namespace, _, rest = function.name().partition("::")
    plain = rest.partition(".")[0]
    call = _call_of(function)
    for packet in (_packet(namespace, plain), _packet(namespace, plain + "_")):
        for label in packet.overloads() if packet is not None else ():
            overload = getattr(packet, label)
            if not _writes(overload) or _call_of(overload) != call:
                continue
            outputs = tuple(each.name for each in schema_of(overload).arguments if each.is_out)
            if outputs and len(outputs) == len(schema_of(function).returns):
                yield Member(overload, Form.OUT, function, outputs)
            elif not outputs and _is_in_place(overload):
                yield Member(overload, Form.IN_PLACE, function)


def schema_of(overload: Any) -> Any:
    """Return torch's schema of an overload."""
    return overload._schema  # noqa: SLF001  # there is no public way to a schema


def numbers_for_tensors(overload: Any, arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the names of the tensors in place of which torch passes numbers to Python, as for `x + 2`."""
    pairs = zip(arguments, schema_of(overload).arguments, strict=False)
    return tuple(each.name for value, each in pairs if isinstance(value, _NUMBERS) and str(each.type) in _TENSORS)


def _packet(namespace: str, plain: str) -> Any:
    """Return an operator with all its overloads; None if there is none."""
    return getattr(getattr(torch.ops, namespace), plain, None) if namespace and plain else None


def _call_of(overload: Any, *, numbers: bool = True) -> tuple[tuple[str, str], ...]:
    """Return what tells whether two overloads are the same call; without `numbers`, numbers count as tensors."""
    found: list[tuple[str, str]] = []
    for argument in schema_of(overload).arguments:
        kind = str(argument.real_type)
        if not argument.is_out:
            found.append((argument.name, kind if numbers else kind.replace("number", "Tensor")))
    return tuple(found)


def _writes(overload: Any) -> bool:
    return any(each.alias_info and each.alias_info.is_write for each in schema_of(overload).arguments)


def _is_in_place(overload: Any) -> bool:
    """Whether the first argument alone is written, and returned."""
    written = [bool(each.alias_info and each.alias_info.is_write) for each in schema_of(overload).arguments]
    return written[0] and not any(written[1:]) and len(schema_of(overload).returns) == 1


def _is_dispatched(overload: Any) -> bool:
    """Whether an overload is about tensors, and not TorchScript's alone."""
    schema = schema_of(overload)
    if not any("Tensor" in str(each.type) for each in (*schema.arguments, *schema.returns)):
        return False
    try:
        private("_C._dispatch_find_schema_or_throw")(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


def _has_kernel(overload: Any, keys: tuple[str, ...]) -> bool:
    has = private("_C._dispatch_has_kernel_for_dispatch_key")
    return any(has(overload.name(), key) for key in keys)


def _refusal(overload: Any, device: str) -> str | None:
    """Say why an overload cannot be replaced: it has no kernel, or must return a view."""
    name = overload.name()
    if any(each.alias_info and not each.alias_info.is_write for each in schema_of(overload).returns):
        return f"{name} returns a view of its argument, which no other kernel can give"
    if not any("Tensor" in str(each.type) for each in schema_of(overload).arguments):
        return f"{name} takes no tensor, whose device would say which kernel is called"
    if _has_kernel(overload, (device, *_COMPOSITES)):
        return None
    if _has_kernel(overload, ("CompositeImplicitAutograd",)):
        return f"{name} has no kernel of its own: it calls other operators; override those"
    return f"{name} has no kernel for {device.lower()}"


def _label(overload: Any) -> str:
    return schema_of(overload).overload_name or "default"


def _names(overloads: Iterable[Any]) -> str:
    return ", ".join(each.name() for each in overloads)


def _unknown(name: str) -> str:
    """Say that there is no such operator, and which ones are named alike."""
    names = {each.partition(".")[0] for each in private("_C._dispatch_get_all_op_names")()}
    near = difflib.get_close_matches(name, names, n=3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ', named as "namespace::name"'
    return f"there is no operator {name}{hint}"
