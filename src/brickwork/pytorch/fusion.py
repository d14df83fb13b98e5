"""Operators that Inductor may make part of its own kernels: in its graphs PyTorch's operators stand in their place.

What an operator does is asked while a graph is traced. Programs other than pointwise ones, and what has no counterpart,
stay calls of the operator. `torch.export` and other backends do not look here, and keep the operator.

A graph with an operator's code in it must not outlive that code: AOTAutograd's cache knows operators by name. So
Inductor's setting for that has a digest of each operator that may be fused, by its name; it is a part of all keys.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Self

import torch

from brickwork.analysis.pointwise import OpaqueError, Pointwise, pointwise
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import with_files
from brickwork.frontend.definition import Definition
from brickwork.frontend.parameters import argument_type
from brickwork.ir.signature import Signature
from brickwork.pytorch.arguments import call_by_values
from brickwork.pytorch.dtypes import from_torch
from brickwork.pytorch.overrides.inductor import originals, tables
from brickwork.pytorch.overrides.overloads import schema_of
from brickwork.pytorch.tensor_devices import tensors_of, without_data
from brickwork.runtime.compile import versions
from brickwork.transform.derivation import Defined


def may_fuse(definition: Defined | None) -> bool:
    """Whether some operators of this kind can be fused: they return what they have computed, and draw nothing."""
    return definition is not None and _kind(definition) is None


def fused(
    definition: Defined, fake: Callable[..., Any], values: Sequence[Any], original: Callable[[], Any] | None = None
) -> Any:
    """Return what an operator returns, by PyTorch's operators; NotImplemented where it has to be called.

    With an `original`, which returns tensors without data, results must be of the same types and sizes; they lie in
    memory as those do, else as the operator's fakes do.
    """
    try:
        results = _results(definition, fake, values, original)
    except (OpaqueError, CompileError):
        return NotImplemented
    return results[0] if len(results) == 1 else results


def fusion_text(
    definition: Definition, fusible: Defined | None, fake: Callable[..., Any], values: Sequence[Any]
) -> str:
    """Say whether an operator is called for tensors like these, and why."""
    reason = _kind(definition)
    if reason is None and fusible is None:
        reason = "it was defined so"
    if reason is None:
        try:
            _results(definition, fake, [without_data(value) for value in values], None)
        except OpaqueError as error:
            return with_files(f"Inductor calls {definition.name}: {error.reason}, at {error.loc}", definition.files)
        return f"Inductor makes {definition.name} a part of its own kernels"
    return f"Inductor calls {definition.name}: {reason}"


def _kind(definition: Defined) -> str | None:
    """Return why no operator of this kind can be fused, if so."""
    if definition.host == "python":
        return "its host part runs in Python"
    if definition.mutated or not definition.results:
        names = ", ".join(f"`{item.name}`" for item in definition.parameters if item.name in definition.mutated)
        return f"it stores into {names}"
    return "it draws random numbers" if definition.draws_random else None


def _results(
    definition: Defined, fake: Callable[..., Any], values: Sequence[Any], original: Callable[[], Any] | None
) -> tuple[torch.Tensor, ...]:
    if any(from_torch(tensor.dtype) is None for tensor in tensors_of(values)):
        raise OpaqueError("there is a type that brickwork does not compute with", definition.loc)
    if any(tensor.is_complex() for tensor in tensors_of(values)):
        raise OpaqueError(_COMPLEX, definition.loc)
    types = tuple(map(argument_type, definition.parameters, values))
    code = _code(definition, Signature(types, default_dtype=definition.default_dtype))
    if isinstance(code, OpaqueError):
        raise code
    room = importlib.import_module("brickwork.pytorch.decomposition")
    with room.untraced_fakes():
        own = tensors_of((call_by_values(definition, fake, values),))
        like = own if original is None else tensors_of((original(),))
    if any(tensor.is_complex() for tensor in own):
        raise OpaqueError(_COMPLEX, definition.loc)
    if not room.are_alike(own, like):
        raise OpaqueError("the results are of other types or sizes than the original's", definition.loc)
    with originals():
        return room.decompose(code, values, like)


_COMPLEX = "Inductor makes no kernels for complex elements"


@functools.lru_cache(maxsize=1024)
def _code(definition: Defined, signature: Signature) -> Pointwise | OpaqueError:
    try:
        return pointwise(importlib.import_module("brickwork.transform.derive").program_of(definition, signature))
    except OpaqueError as error:
        return error


# ---------------------------------------------------------------- what Inductor is told


def offer(overload: Any, definition: Callable[[], Defined | None], fake: Callable[..., Any]) -> None:
    """Make graphs that Inductor traces from now on ask about calls of an operator; `LOWERINGS` is imported.

    `definition` returns what the operator is made of now, None where it is to be called.
    """
    enter_in_keys("results of operators", "in the default dtype")
    found = definition()
    if found is None:
        return
    # What is derived of an operator changes with it and with brickwork.
    code = "\n".join((found.fingerprint, *versions())) if isinstance(found, Definition) else None
    name = f"torch.ops.{overload.name().replace('::', '.')}"
    if not _keep_callable(overload) or not enter_in_keys(name, code):
        return

    def decomposed(*arguments: Any, **named: Any) -> Any:
        found = definition()
        return NotImplemented if found is None else fused(found, fake, _bound(overload, arguments, named))

    for table in tables():
        table[overload] = decomposed


def _keep_callable(overload: Any) -> bool:
    """Let Inductor call an operator that stays in a graph, as it would without an entry; False if there is no way to.

    It refuses operators with an entry in the tables of decompositions that have no lowering.
    """
    room: Any = importlib.import_module(LOWERINGS)
    names = "make_fallback", "lowerings", "get_layout_constraint_tag", "tag_to_layout_constraint"
    if not all(hasattr(room, name) for name in names):
        return False
    if overload not in room.lowerings:
        constraint = room.tag_to_layout_constraint(room.get_layout_constraint_tag(overload, with_default=True))
        room.make_fallback(overload, layout_constraint=constraint, warn=False, override_decomp=True)
    return True


def enter_in_keys(name: str, code: str | None) -> bool:
    """Make what a name means a part of the keys of Inductor's and AOTAutograd's caches, if there is a way to."""
    config: Any = importlib.import_module("torch._inductor.config")
    digests = getattr(config, _SETTING, None)
    if digests is None:
        return False
    digest = None if code is None else _Digest(hashlib.sha256(code.encode()).hexdigest())
    if digest is not None and digests.get(name) != digest:
        setattr(config, _SETTING, {**digests, name: digest})
    return True


class _Digest(str):
    """A digest that stands in a key together with torch's default dtype, which keys of PyTorch 2.11 lack.

    The sizes of results in memory follow that dtype, so a graph of another one must not be found.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Pickle as text: keys are made of what is pickled."""
        return str, (f"{self} {torch.get_default_dtype()}",)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return the digest itself: settings are copied before they are pickled."""
        return self


LOWERINGS = "torch._inductor.lowering"
"""The module that says what Inductor makes of operators; it imports the tables of decompositions."""

_SETTING = "unsafe_marked_cacheable_functions"
"""Inductor's setting with a digest for each name of a function. `OpOverload`s are cached in any case."""


def _bound(overload: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """Return the values of all arguments of a call."""
    declared = schema_of(overload).arguments
    given = dict(zip((each.name for each in declared), arguments, strict=False)) | named
    return [given.get(each.name, each.default_value) for each in declared]
