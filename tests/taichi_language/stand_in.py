"""Puts `brickwork.taichi` in Taichi's place for its published tests: the names that they import, and the processor."""

from __future__ import annotations

import enum
import importlib
import sys
import time
import types
from typing import Any

import torch

import brickwork.taichi as ti
from brickwork.taichi import compound, errors, fields, kernels, matrix, settings, state, views


def install() -> None:
    """Let `import taichi` and imports from its rooms find brickwork."""
    sys.modules["taichi"] = ti
    sys.modules["taichi.math"] = ti.math
    sys.modules["taichi.types"] = ti.types
    lang = _module("taichi.lang", **{name: getattr(ti, name) for name in ti.__all__})
    impl = _module(
        "taichi.lang.impl",
        current_cfg=_Settings,
        get_runtime=_Runtime,
        ti_float=_as_float,
        ti_int=_as_int,
        static=ti.static,
        grouped=ti.grouped,
        field=ti.field,
        ndarray=ti.ndarray,
        subscript=_subscript,
    )
    lang.impl = impl
    lang.ops = _module("taichi.lang.ops", **_public("brickwork.taichi.operations"))
    lang.ops.add = lambda left, right: matrix.broadcast("add", left, right)
    lang.misc = _module(
        "taichi.lang.misc",
        get_host_arch_list=lambda: [ti.cpu],
        is_arch_supported=lambda arch, **_: arch is ti.cpu,
        loop_unique=ti.loop_unique,
    )
    lang.util = _module(
        "taichi.lang.util",
        has_pytorch=lambda: True,
        has_paddle=lambda: False,
        has_clangpp=lambda: False,
        to_numpy_type=_numpy_type,
        to_taichi_type=lambda kind: fields.scalar_type(kind),
        to_pytorch_type=lambda kind: getattr(torch, fields.scalar_type(kind).element.name),
    )
    lang.enums = _module(
        "taichi.lang.enums",
        AutodiffMode=enum.Enum("AutodiffMode", "NONE VALIDATION FORWARD REVERSE"),
        SNodeGradType=enum.Enum("SNodeGradType", "PRIMAL ADJOINT DUAL ADJOINT_CHECKBIT"),
    )
    lang.ast = _module("taichi.lang.ast")
    lang.exception = _module("taichi.lang.exception", **vars(errors))
    lang.matrix = _module("taichi.lang.matrix", **vars(matrix))
    lang.struct = _module("taichi.lang.struct", **vars(compound))
    lang.kernel_impl = _module("taichi.lang.kernel_impl", **vars(kernels))
    core = types.SimpleNamespace(
        is_extension_supported=lambda arch, extension: extension in {"data64", "adstack", "assertion", "extfunc"},
        arch_from_name=lambda name: getattr(ti, name),
        TaichiRuntimeError=errors.TaichiRuntimeError,
        TaichiTypeError=errors.TaichiTypeError,
        GGUI_AVAILABLE=False,
    )
    library = _module("taichi._lib", core=core)
    library.utils = _module("taichi._lib.utils", get_os_name=lambda: "linux")
    for name, value in (("lang", lang), ("_lib", library)):
        setattr(ti, name, value)


def load_compiler() -> None:
    """Compile something, so that the processes of the tests find the compiler loaded."""
    torch.set_num_threads(1)

    @ti.kernel
    def warm(x: ti.types.ndarray()) -> ti.f32:
        for i in x:
            x[i] = ti.sin(x[i]) + ti.cast(time.time_ns() % 1000, ti.f32)
        return x[0]

    warm(torch.zeros(4))


def _module(name: str, **content: Any) -> Any:
    made = types.ModuleType(name)
    made.__path__ = []  # a package, so that rooms in it can be imported
    vars(made).update({key: value for key, value in content.items() if not key.startswith("__")})
    sys.modules[name] = made
    return made


def _public(name: str) -> dict[str, Any]:
    return {key: value for key, value in vars(importlib.import_module(name)).items() if not key.startswith("_")}


def _numpy_type(kind: Any) -> Any:
    return torch.empty(0, dtype=getattr(torch, fields.scalar_type(kind).element.name)).numpy().dtype.type


def _subscript(_, value, *indices):
    pick = matrix.subscript if isinstance(value, matrix.Matrix) else views.subscript
    return pick(value, [each for each in indices if each is not None])


def _as_float(value):
    return ti.cast(value, float)


def _as_int(value):
    return ti.cast(value, int)


class _Settings:
    """What `ti.lang.impl.current_cfg()` returns."""

    def __getattr__(self, name: str) -> Any:
        own = state.settings()
        if name in {"arch", "default_fp", "default_ip", "debug"}:
            return getattr(own, name) or settings.cpu
        return own.others.get(name)


class _Runtime:
    """What `ti.lang.impl.get_runtime()` returns."""

    def __getattr__(self, name: str) -> Any:
        if name in {"default_fp", "default_ip"}:
            return getattr(state.settings(), name)
        if name == "get_num_compiled_functions":
            return state.compiled
        if name == "compiling_callable":
            return types.SimpleNamespace(ast_builder=state.builder)
        if name == "prog":
            return types.SimpleNamespace(config=_Settings)
        if name in {"set_default_fp", "set_default_ip"}:
            return lambda kind: setattr(state.settings(), name.removeprefix("set_"), kind)
        raise AttributeError(name)
