"""Overrides under `torch.compile`: what Inductor makes of an operator must call the kernel, not a formula of its own.

Inductor's tables say how operators are taken apart while a graph is traced, forward and backward. Once an operator has
been overridden, its entry asks whether it is overridden now. If so the graph gets a stand-in, such as
`brickwork_override::aten_sin`, that calls the operator when it runs: exchanging the callable needs no new graph. Dynamo
guards such graphs on the answer, and keeps one for each. Backends without these tables call operators as they are.

A callable whose code may be written with PyTorch's operators (`pytorch/fusion.py`) is so written, where its results are
the original's in type and size; then the answer names it, and a graph is made for each.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, cast

import torch

from brickwork.pytorch.import_hooks import when_imported
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.overrides.overloads import numbers_for_tensors, schema_of
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.pytorch.untraced import untraced

NAMESPACE = "brickwork_override"
"""Where stand-ins are."""

TABLES = "torch._inductor.decomposition"
"""The module that has Inductor's tables."""
_AUTOGRAD = "torch._functorch.config"


_ORIGINALS: ContextVar[bool] = ContextVar("originals", default=False)


@contextmanager
def originals() -> Generator[None]:
    """Let PyTorch's operators in a graph mean its own for a while, as they do in formulas."""
    token = _ORIGINALS.set(True)
    try:
        yield
    finally:
        _ORIGINALS.reset(token)


class Overridden(NamedTuple):
    """How graphs learn that an overload is overridden."""

    devices: Callable[[], tuple[str, ...]]
    """Returns the dispatch keys at which it is overridden now."""
    path: tuple[str, ...]
    """Leads, from our package, to what changes with overrides."""
    written: Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
    """Returns, for a key and arguments, what the callable returns, by PyTorch's operators; or NotImplemented."""


def follow(overload: Any, overridden: Overridden, library: Any) -> None:
    """Make graphs that are traced from now on follow overrides of an overload; once for each."""
    stand_in = functools.lru_cache(None)(functools.partial(_stand_in, overload, library))
    after_import(TABLES, lambda: _enter(overload, overridden, stand_in))
    after_import(_AUTOGRAD, _trace_always)
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset_code_caches()


def after_import(name: str, action: Callable[[], None]) -> None:
    """Do something now, or once a module is imported."""
    if name in sys.modules:
        action()
    else:
        when_imported(name, action)


def _trace_always() -> None:
    """Keep AOTAutograd from taking graphs from its cache: only tracing gives them guards. Inductor's cache stays."""
    cast("Any", sys.modules[_AUTOGRAD]).enable_autograd_cache = False


def tables() -> tuple[dict[Any, Callable[..., Any]], ...]:
    """Return Inductor's tables, once they are imported; the second is a copy of the first, with more."""
    room: Any = importlib.import_module(TABLES)
    return room.decompositions, room.fast_random_decomps()


def _enter(overload: Any, overridden: Overridden, stand_in: Callable[..., Any]) -> None:
    """Put an entry into Inductor's tables."""
    for table in tables():
        before: Callable[..., Any] | None = table.get(overload)

        def decomposed(*arguments: Any, before: Callable[..., Any] | None = before, **named: Any) -> Any:
            if not _ORIGINALS.get():
                _guard(overridden.path)
                tensors = tensors_of((*arguments, *named.values()))
                key = "CUDA" if any(each.device.type == "cuda" for each in tensors) else "CPU"
                if key in overridden.devices():
                    written = overridden.written(key, arguments, named)
                    if written is not NotImplemented:
                        return written
                    return stand_in(numbers_for_tensors(overload, arguments))(*arguments, **named)
            return NotImplemented if before is None else before(*arguments, **named)

        table[overload] = decomposed


def _guard(path: tuple[str, ...]) -> None:
    """Make Dynamo look, before each call of the graph that is being traced, whether the answer is still the same."""
    if private("_guards.TracingContext").try_get() is None:
        return
    sources: Any = sys.modules["torch._dynamo.source"]
    guards: Any = sys.modules["torch._dynamo.guards"]
    source = sources.ImportSource(__name__.partition(".")[0])
    for name in path:
        source = sources.AttrSource(source, name)
    guards.install_guard(source.make_guard(guards.GuardBuilder.EQUALS_MATCH))


def _stand_in(overload: Any, library: Any, numbers: tuple[str, ...]) -> Any:
    """Return an operator that is opaque to compilers and calls `overload`; it may do anything, so it is not folded.

    The arguments `numbers` are numbers in place of tensors, and reach the kernel as such.
    """
    plain, _, label = overload.name().replace("::", "_").partition(".")
    own = "_".join((label, *numbers)).strip("_")
    name = f"{plain}.{own}" if own else plain
    schema = str(schema_of(overload)).replace(overload.name(), name, 1)
    for each in numbers:
        schema = re.sub(rf"Tensor\??( {each}\b)", r"Scalar\1", schema)
    library.define(schema, tags=[torch.Tag.pt2_compliant_tag, torch.Tag.nondeterministic_seeded])

    @untraced
    def run(*arguments: Any, **named: Any) -> Any:
        return _laid_out(overload(*arguments, **named), overload, arguments, named)

    for key in ("CPU", "CUDA"):
        library.impl(name, run, key)
    library._register_fake(name, overload)  # noqa: SLF001  # torch's own door to a library's fakes
    return getattr(getattr(getattr(torch.ops, NAMESPACE), plain), own or "default")


def _laid_out(result: Any, overload: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return results with the strides that the original gives, which the graph was made for."""
    pairs = tuple((key, _form(each)) for key, each in named.items()) if named else ()
    strides = _strides(overload, (*map(_form, arguments),), pairs)
    if isinstance(result, torch.Tensor):
        return result if strides is None else _with_strides(result, strides[0])
    return tuple(result if strides is None else map(_with_strides, result, strides))


def _with_strides(result: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    if result.stride() == strides:
        return result
    return result.new_empty_strided(result.shape, strides).copy_(result)


class _Layout(NamedTuple):
    """A tensor without its data; a graph asks for it at each call."""

    dtype: torch.dtype
    shape: torch.Size
    strides: tuple[int, ...]


def _form(value: Any) -> Any:
    """Return an argument with layouts for tensors."""
    if isinstance(value, torch.Tensor):
        return _Layout(value.dtype, value.shape, value.stride())
    return tuple(map(_form, cast("Sequence[Any]", value))) if isinstance(value, list | tuple) else value


def _unformed(value: Any) -> Any:
    """Return an argument with tensors without data for layouts."""
    if isinstance(value, _Layout):
        return torch.empty_strided(value.shape, value.strides, dtype=value.dtype, device="meta")
    return [*map(_unformed, cast("Sequence[Any]", value))] if isinstance(value, tuple) else value


@functools.lru_cache(1024)
def _strides(
    overload: Any, arguments: tuple[Any, ...], named: tuple[tuple[str, Any], ...]
) -> tuple[tuple[int, ...], ...] | None:
    """Return the strides of the original's results, which do not depend on data; None if torch cannot say."""
    with suppress(Exception):
        result = overload(*map(_unformed, arguments), **{key: _unformed(value) for key, value in named})
        return tuple(each.stride() for each in ((result,) if isinstance(result, torch.Tensor) else result))
    return None
