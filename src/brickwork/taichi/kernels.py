"""`@ti.kernel`: kernels as Python's scope has them. The first call with new types compiles, every call launches."""

from __future__ import annotations

import functools
import inspect
import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from brickwork.diagnostics.errors import RaceError
from brickwork.diagnostics.location import with_cells
from brickwork.diagnostics.warn import tell
from brickwork.ir import build
from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import Symbol, Tensor
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.schema import KEY
from brickwork.pytorch.untraced import run_by_tracers, untraced
from brickwork.records import dataclass
from brickwork.taichi import state
from brickwork.taichi.annotations import NdarrayType
from brickwork.taichi.arguments import (
    Passed,
    annotated,
    flat_kinds,
    flat_values,
    parameter_value,
    pass_argument,
    result_of,
)
from brickwork.taichi.arithmetic import convert
from brickwork.taichi.builder import Bound, Builder
from brickwork.taichi.calls import bound_arguments
from brickwork.taichi.compound import fitted
from brickwork.taichi.errors import (
    TaichiAssertionError,
    TaichiDivisionError,
    TaichiOutOfBoundsError,
    TaichiSyntaxError,
)
from brickwork.taichi.gradients import Launch, add_gradients
from brickwork.taichi.graphs import in_graph, operator_for
from brickwork.taichi.iteration import Iteration
from brickwork.taichi.operators import Lowered, Operator, operator_of, result_tensor
from brickwork.taichi.packing import MOST_ARGUMENTS, Numbers, pack, packed
from brickwork.taichi.repeated import Ready, ready_for, types_of
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.sequences import is_sequence, items_of
from brickwork.taichi.settings import sync
from brickwork.taichi.source import Source, parse

OWNER = object()
"""Stands for the type of `self`."""


@dataclass(slots=True)
class Instance:
    """A kernel that is compiled for types and templates."""

    operator: Operator
    bound: tuple[Bound, ...]
    mutated: tuple[bool, ...]
    """Of each tensor, whether the kernel stores into it."""
    returns: Any
    places: tuple[tuple[int, int], ...]
    """Where each number that is returned lies: in which tensor, at which place."""
    log: Any
    updates: frozenset[int]
    """The lines that update elements."""
    kept: tuple[Any, ...]
    """Templates, which are known by where they are in memory, and must not be collected."""

    def tensors(self, passed: dict[str, Passed], names: list[str], numbers: list[Any]) -> list[torch.Tensor]:
        """Return the tensors of a call, in order."""
        return [
            packed(each.part, numbers) if isinstance(each.owner, Numbers) else self.tensor(each, passed, names)
            for each in self.bound
        ]

    @staticmethod
    def tensor(bound: Bound, passed: dict[str, Passed], names: list[str]) -> torch.Tensor:
        """Return the tensor that stands for a name of the kernel in a call."""
        if bound.place < 0:
            return bound.owner.storage if hasattr(bound.owner, "storage") else bound.owner.data
        array = passed[names[bound.place]].value
        return array.data if bound.part == "data" else array.grad()


class Kernel:
    """A kernel."""

    is_taichi_kernel = True

    def __init__(self, function: Callable[..., Any]) -> None:
        """Read the parameters; the body is read at the first call."""
        self.function = function
        functools.update_wrapper(self, function)
        self.is_method = False
        self.kinds: dict[str, Any] = {}
        self.signature = inspect.signature(function)
        own = getattr(function, "__annotations__", {})
        source: Source | None = None
        for place, (name, parameter) in enumerate(self.signature.parameters.items()):
            if place == 0 and name == "self" and parameter.annotation is inspect.Parameter.empty:
                self.is_method = True
                self.kinds[name] = OWNER
                continue
            if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
                raise TaichiSyntaxError("Taichi kernels do not support variadic parameters (i.e., *args, **kwargs)")
            if parameter.default is not inspect.Parameter.empty:
                raise TaichiSyntaxError("Taichi kernels do not support default values for arguments")
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                raise TaichiSyntaxError("Taichi kernels do not support keyword parameters")
            if isinstance(own.get(name), str):
                source = source or parse(function)
            annotation = parameter.annotation if source is None else source.annotation(name)
            self.kinds[name] = annotated(function, name, annotation)
        self.names = [*self.kinds]
        self.may_be_in_graphs = all(isinstance(each, NdarrayType | ScalarType) for each in self.kinds.values())
        self._instances: dict[Any, Instance] = {}
        self._ready: dict[Any, Ready] = {}
        self._generation = state.generation()
        self._serial: dict[Any, frozenset[tuple[int, int]]] = {}

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the kernel of an object."""
        if instance is None:
            return self
        return BoundKernel(self, instance)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the kernel."""
        if is_dynamo_compiling():
            return in_graph(self, args, named)
        ready = None if named else self._ready.get(types_of(args))
        values = None if ready is None else ready.values(args)
        if ready is None or values is None:
            return self.run(args, named)
        try:
            return _told(ready.operator, *values)
        except RaceError:  # of tensors that share memory, as none did before
            return self.run(args, named)

    def run(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run the kernel, outside of graphs."""
        if state.builder() is not None:
            raise TaichiSyntaxError("Kernels cannot call other kernels. I.e., nested kernels are not allowed.")
        passed = self.bind(args, named)
        check_placed()
        return self.checked(passed, lambda instance: self._ran(args, instance, passed))

    def _ran(self, args: tuple[Any, ...], instance: Instance, passed: dict[str, Passed]) -> Any:
        found = self._recorded(self._launch(instance, passed))
        if len(args) == len(self.names):
            ready = ready_for(self, args, instance)
            if ready is not None:
                self._ready[types_of(args)] = ready
        return found

    @run_by_tracers
    def in_graphs(self, described: tuple[Any, ...]) -> tuple[str, tuple[int, ...]] | None:
        """Return its operator's name and which arguments are its tensors; None if it is called outside of graphs."""
        return operator_for(self, described)

    def checked(self, passed: dict[str, Passed], use: Callable[[Instance], Any]) -> Any:
        """Return what comes of the code for these arguments, in which loops with races run in order."""
        while True:
            instance, key = self.instance(passed)
            try:
                return use(instance)
            except RaceError as error:
                if state.settings().races == "error":
                    raise
                _tell_race(error, instance.updates)
                places = {(each.loc.line, each.loc.column) for each in error.diagnostics}
                self._serial[key] = self._serial.get(key, frozenset()) | places
                self._instances.pop(key)
                self._ready.clear()

    def _recorded(self, launch: Launch) -> Any:
        """Run a launch; a tape that is on notes it."""
        tape, instance = state.recorder(), launch.instance
        note = None if tape is None else tape.before(launch)
        measured = state.settings().others.get("kernel_profiler")
        start = time.perf_counter()
        try:
            found = self.launched(launch)
            if measured:
                sync()
                state.times().append((self.function.__name__, time.perf_counter() - start))
        finally:
            if instance.log is not None:
                instance.log.show()
        if tape is not None:
            tape.after(note)
        return found

    def _launch(self, instance: Instance, passed: dict[str, Passed]) -> Launch:
        key = [draw_key(state.settings().generator)] if instance.operator.draws_random else []
        numbers = self.numbers(passed)
        tensors = instance.tensors(passed, self.names, numbers)
        adjoints = [_companion(each, passed, self.names, "grad") for each in instance.bound]
        tangents = [_companion(each, passed, self.names, "dual") for each in instance.bound]
        several = any(isinstance(each.owner, Numbers) for each in instance.bound)
        return Launch(instance, tensors, [] if several else numbers, key, adjoints, tangents)

    @untraced
    def grad(self, *args: Any, **named: Any) -> None:
        """Add the gradients of this call to those of the fields and arrays."""
        passed = self.bind(args, named)
        instance, _ = self.instance(passed)
        add_gradients(self._launch(instance, passed))

    # ------------------------------------------------------------ arguments

    def bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Passed]:
        """Return how the arguments of a call are passed."""
        given = bound_arguments(self.signature, args, named).arguments
        return {
            name: Passed(id(value), value)
            if self.kinds[name] is OWNER
            else pass_argument(place, name, value, self.kinds[name])
            for place, (name, value) in enumerate(given.items())
        }

    def numbers(self, passed: dict[str, Passed]) -> list[Any]:
        """Return the numbers of a call, in order."""
        given = [each.value for each in passed.values() if each.key is None]
        return [number for each in given if isinstance(each, list) for number in items_of(each)]

    # ------------------------------------------------------------ code

    def instance(self, passed: dict[str, Passed]) -> tuple[Instance, Any]:
        """Return the code for these arguments, compiled now if need be."""
        if self._generation != state.generation():
            self._instances.clear()
            self._ready.clear()
            self._serial.clear()
            self._generation = state.generation()
        key = tuple(each.key for each in passed.values())
        found = self._instances.get(key)
        if found is None or any(each.is_gone for each in found.bound):
            found = self._instances[key] = self._compiled(passed, self._serial.get(key, frozenset()))
            if self.is_method and hasattr(passed[self.names[0]].value, "__weakref__"):
                weakref.finalize(passed[self.names[0]].value, self._forget, key).atexit = False
        return found, key

    def _forget(self, key: Any) -> None:
        """Drop the code for an object that is no more, whose place in memory another may get."""
        self._instances.pop(key, None)
        self._serial.pop(key, None)

    def _compiled(self, passed: dict[str, Passed], serial: frozenset[tuple[int, int]]) -> Instance:
        source = parse(self.function)
        state.count_compiled()
        builder = Builder(serial)
        before = state.set_builder(builder)
        try:
            return self._lowered(source, builder, passed)
        finally:
            state.set_builder(before)

    def _lowered(self, source: Source, builder: Builder, passed: dict[str, Passed]) -> Instance:
        symbols: list[Symbol] = []
        names = {
            name: each.value if self.kinds[name] is OWNER
            else parameter_value(builder, place, name, self.kinds[name], each, symbols)
            for place, (name, each) in enumerate(passed.items())
        }  # fmt: skip
        frame = Iteration(builder, source, names)
        result = frame.run_function(real=False)
        returns = source.annotation("return")
        results, places = _results(builder, returns, result)
        several = len(symbols) + len(builder.bound) > MOST_ARGUMENTS
        numbers = pack(builder, symbols) if several else []
        bound = tuple(builder.bound.values())
        lowered = Lowered(
            source=source,
            tensors=tuple(each.tensor for each in bound),
            mutated=frozenset(builder.mutated),
            scalars=() if several else tuple(symbols),
            numbers=tuple(numbers),
            results=tuple(results),
            body=tuple(builder.block),
            key=builder.key if builder.draws else None,
        )
        mutated = tuple(each.tensor in builder.mutated for each in bound)
        kept = tuple(
            each.value
            for name, each in passed.items()
            if each.key is not None and not (self.kinds[name] is OWNER and hasattr(each.value, "__weakref__"))
        )
        return Instance(
            operator_of(lowered), bound, mutated, returns, tuple(places), builder.log, frozenset(builder.updates), kept
        )

    def launched(self, launch: Launch) -> Any:
        """Run the code and return what the kernel returns."""
        instance = launch.instance
        written = [each for each, is_written in zip(launch.tensors, instance.mutated, strict=True) if is_written]
        leaves = any(each.requires_grad and each.is_leaf for each in written)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not leaves):
            key = {KEY: launch.key[0]} if launch.key else {}
            found = _told(instance.operator.call, *launch.tensors, *launch.numbers, **key)
        if instance.returns is None:
            return None
        lists: list[Any] = [_numbers(each) for each in ([found] if isinstance(found, torch.Tensor) else found)]
        values = [lists[tensor][place] for tensor, place in instance.places]
        kinds = _returned(instance.returns)
        if len(kinds) == 1 and not _is_tuple(instance.returns):
            return result_of(kinds[0], values)
        results: list[Any] = []
        for kind in kinds:
            count = len(flat_kinds(kind))
            results.append(result_of(kind, values[:count]))
            values = values[count:]
        return results


def check_placed() -> None:
    """Refuse to run a kernel while fields have no cells."""
    waiting = state.unplaced()
    for part in ("grad", "dual"):
        if any(each.name.endswith(f".{part}") for each in waiting):
            raise RuntimeError(  # Taichi spells it so
                f"These field(s) requrie `needs_{part}=True`, however their {part} field(s) are not placed: use"
                f" ti.root.lazy_{part}(), or place them"
            )
    if waiting:
        raise RuntimeError(f"These field(s) are not placed: {', '.join(each.name or 'a field' for each in waiting)}")


def _tell_race(error: RaceError, updates: frozenset[int]) -> None:
    """Warn of a parallel loop that reads what another iteration writes.

    Updates are no race, and stores that meet may store one value.
    """
    for each in error.diagnostics:
        update = all(note.loc.line in updates for note in each.notes)
        if not update and any("read" in note.message for note in each.notes):
            tell(f"{each.loc}: {each.message}; the loop runs in order")


def _numbers(result: Any) -> list[Any]:
    return items_of(result.tolist())


class BoundKernel:
    """A kernel of an object."""

    is_taichi_kernel = True

    def __init__(self, kernel: Kernel, owner: Any) -> None:
        """Keep both."""
        self.kernel, self.owner = kernel, owner

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the kernel."""
        owner: object = self.owner
        if not getattr(type(owner), "_data_oriented", False):
            said = f"Please decorate class {type(owner).__name__} with @ti.data_oriented"
            raise TaichiSyntaxError(said)
        return self.kernel(self.owner, *args, **named)

    def __getattr__(self, name: str) -> Any:
        """Return what the kernel has, for this object."""
        found = getattr(self.kernel, name)
        return functools.partial(found, self.owner) if callable(found) else found


def _companion(bound: Bound, passed: dict[str, Passed], names: list[str], part: str) -> Callable[[], Any] | None:
    """Return what gives the gradients, or the tangents, of a tensor of the kernel; None if it has none."""
    if bound.part != "data":
        return None
    if bound.place >= 0:
        array = passed[names[bound.place]].value
        return array.grad if part == "grad" and array.has_grad else None
    found = getattr(bound.owner, part, None)
    return None if found is None or found.data is None else lambda: found.storage


def _told(operator: Callable[..., Any], *values: Any, **key: Any) -> Any:
    """Call an operator; its errors are raised as Taichi's."""
    try:
        return operator(*values, **key)
    except IndexError as error:
        raise TaichiOutOfBoundsError(with_cells(f"Out of bound access: {error}")) from None
    except ZeroDivisionError as error:
        raise TaichiDivisionError(str(error)) from None
    except AssertionError as error:
        raise TaichiAssertionError(str(error)) from None


def _is_tuple(returns: Any) -> bool:
    return getattr(returns, "__origin__", None) is tuple or is_sequence(returns)


def _returned(returns: Any) -> list[Any]:
    """Return the types of what is returned, one after the other."""
    if _is_tuple(returns):
        return list(getattr(returns, "__args__", returns))
    return [returns]


def _results(builder: Builder, returns: Any, result: Any) -> tuple[list[tuple[Tensor, int]], list[tuple[int, int]]]:
    """Store what is returned; return the tensors for it, and where each number lies."""
    if returns is None:
        if result is not None:
            raise TaichiSyntaxError("A kernel with a `return` statement must have return type annotation")
        return [], []
    if result is None:
        raise TaichiSyntaxError("Kernel has a return type but does not have a return statement")
    kinds = _returned(returns)
    given = list(result) if _is_tuple(returns) else [result]
    if len(given) != len(kinds):
        raise TaichiSyntaxError(f"a kernel that returns {len(kinds)} values returns {len(given)} here")
    pairs: list[tuple[Any, Any]] = []
    for value, kind in zip(given, kinds, strict=True):
        pairs += zip(flat_values(fitted(value, kind), kind), flat_kinds(kind), strict=True)
    found: dict[DType, list[Any]] = {}
    places: list[tuple[int, int]] = []
    for value, kind in pairs:
        group = found.setdefault(kind.element, [])
        places.append(([*found].index(kind.element), len(group)))
        group.append(convert(value, kind))
    tensors: list[tuple[Tensor, int]] = []
    for number, (element, group) in enumerate(found.items()):
        tensor = result_tensor(builder.symbol("result", element).number, element, number)
        for place, value in enumerate(group):
            builder.store(tensor, (build.integer(place),), value.ir)
        tensors.append((tensor, len(group)))
    return tensors, places


def kernel(fn: Callable[..., Any]) -> Kernel:
    """Make a kernel: `@ti.kernel`."""
    return Kernel(fn)


def data_oriented(cls: Any) -> Any:
    """Let methods of a class be kernels: `@ti.data_oriented`."""
    cls._data_oriented = True  # the mark
    return cls
