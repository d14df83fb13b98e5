"""Runs the host part of an operator in Python, where it needs torch: its loops are operators of their own.

The same body serves real and fake tensors. A piece becomes an operator when it first runs with inputs of some kinds
(`ns::name__loop<number>`); calls of it pass the dispatcher like any other. Before a piece writes, and before results
are handed out, their memory is compared with that of the arguments: the schema says what is written and shared.
"""

from __future__ import annotations

import copy
import importlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, TypeVar, cast

import torch

from brickwork.config import config
from brickwork.diagnostics.errors import BrickworkError
from brickwork.diagnostics.warn import tell_at
from brickwork.frontend.definition import Definition
from brickwork.frontend.kept_lists import kept_rows
from brickwork.frontend.lift import Piece
from brickwork.frontend.lift_python import exchanged_names
from brickwork.frontend.lower import PYTHON_ERRORS, refuse_wrong_ranks
from brickwork.frontend.outline_pieces import (
    Input,
    InputKind,
    piece_definition,
    python_body,
    refused_input,
    scalar_names,
    stores_into_computed,
)
from brickwork.frontend.results import check_results
from brickwork.frontend.rules import error
from brickwork.ir.dtypes import value_dtype
from brickwork.pytorch.arguments import are_in_memory, check_devices, check_written
from brickwork.pytorch.batching import clones
from brickwork.pytorch.dtypes import from_torch
from brickwork.pytorch.fake import check_result
from brickwork.pytorch.host_vmap import by_sample, made_by_sample, under_vmap
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.native import NativeOperator
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.register import DEFAULT, registered
from brickwork.pytorch.schema import KEY, Schema
from brickwork.pytorch.specialise import Place, Tools
from brickwork.pytorch.tensor_devices import allocating_like, device_of, tensors_of, without_data
from brickwork.runtime.artifact import Artifact

_SCALARS: tuple[tuple[tuple[type, ...], InputKind], ...] = (
    ((bool, torch.SymBool), "bool"),
    ((int, torch.SymInt), "int"),
    ((float, int, torch.SymFloat, torch.SymInt), "float"),
)
_LISTS: dict[InputKind, InputKind] = {"bool": "list[bool]", "int": "list[int]", "float": "list[float]"}
_Result = TypeVar("_Result")


class _NarrowRows(BaseException):
    """Loops would fill a tensor for a list of rows, and compute in wider types than the rows have.

    No `Exception`, which a host part might catch.
    """


def _are_narrow(values: Iterable[Any]) -> bool:
    """Return whether loops compute in wider types than some of the tensors have."""
    own = {torch.float32, torch.float64, torch.int64, torch.bool}
    return any(tensor.dtype not in own for tensor in tensors_of(values))


class PythonHost:
    """An operator with a host part in Python: its body and its pieces."""

    def __init__(self, name: str, definition: Definition, schema: Schema, tools: Tools) -> None:
        """Rewrite the body; pieces are made when they run."""
        self.name = name
        self.definition = definition
        self._schema = schema
        self._tools = tools
        self._python_body = python_body(definition)
        self._stores_into_computed = stores_into_computed(definition)
        self._scalars = {piece.number: scalar_names(piece) for piece in definition.split.pieces}
        self._exchanged = exchanged_names(definition.source.node)
        self._operators: dict[tuple[int, tuple[Input, ...]], NativeOperator] = {}
        self._lock = threading.RLock()
        self._unkept: PythonHost | None = None
        self._narrow: set[tuple[torch.dtype, ...]] = set()
        kept = frozenset[str]() if definition.unkept is None else kept_rows(definition.source)
        self._keeping = {piece.number for piece in definition.split.pieces if not kept.isdisjoint(piece.outputs)}
        for each in definition.in_python if config.warn else ():
            tell_at(each)

    def _body(self, launcher: _Launcher, /, *arguments: Any, **named: Any) -> Any:
        """Run the body; what it makes without naming a device is where the arguments are."""
        with allocating_like((*arguments, *named.values())):
            try:
                returned = self._python_body(launcher, *arguments, **named)
            except PYTHON_ERRORS:
                refuse_wrong_ranks(self.definition, arguments, named)
                raise
            several = isinstance(returned, tuple | list)
            return tuple(map(_cell, cast("Sequence[Any]", returned))) if several else _cell(returned)

    def _suited(self, values: Iterable[Any], run: Callable[..., _Result], /, *arguments: Any, **named: Any) -> _Result:
        """Run by the host for some arguments: lists of rows stay Python's where loops compute in wider types."""
        if self.definition.unkept is None:
            return run(self, *arguments, **named)
        types = tuple(tensor.dtype for tensor in tensors_of(values))
        if types not in self._narrow and not (self.definition.mutated and _are_narrow(values)):
            try:
                return run(self, *arguments, **named)
            except _NarrowRows:
                if self.definition.mutated:
                    message = "the host part converts tensors to a narrow type, and loops make lists of rows of them"
                    help_ = "convert them before the call, or store the rows into a tensor of that type"
                    raise error("BW901", message, self.definition.loc, help_) from None
                self._narrow.add(types)
        with self._lock:
            if self._unkept is None:
                self._unkept = PythonHost(self.name, self.definition.unkept(), self._schema, self._tools)
        return run(self._unkept, *arguments, **named)

    def named(self, name: str) -> PythonHost:
        """Return the same whose further pieces are made under another name."""
        if name == self.name:
            return self
        other = copy.copy(self)
        other.name = name
        return other

    def run(self, overload: str) -> Callable[..., Any]:
        """Return the implementation of an overload."""
        return self._run_default if overload == DEFAULT else self._run_out

    def fake(self, overload: str) -> Callable[..., Any]:
        """Return the fake implementation of an overload."""
        return self._fake_default if overload == DEFAULT else self._fake_out

    def reference(self, /, *arguments: Any, **named: Any) -> Any:
        """Run the body with its pieces as Python under the rulings: `op.python`."""
        return self._suited((*arguments, *named.values()), PythonHost._reference, *arguments, **named)

    def _reference(self, /, *arguments: Any, **named: Any) -> Any:
        declared = {item.name for item in self.definition.parameters}
        given = {name: named.pop(name) for name in ("out", KEY, "generator") if name in named and name not in declared}
        key = given.get(KEY)
        if self._schema.random and key is None:
            key = draw_key(given.get("generator"), device=device_of((*arguments, *named.values())))
        values = dict(zip((item.name for item in self.definition.parameters), arguments, strict=False)) | named
        returned = self._body(_ReferenceRun(self, key, values), *arguments, **named)
        results, out = self._checked(returned), given.get("out")
        if out is not None:
            for target, result in zip(_sequence(out), results, strict=True):
                target.copy_(result)
            return out
        if not results:
            return None
        return tuple(results) if self.definition.returns_tuple else results[0]

    def dry_run(self, values: Sequence[object], place: Place) -> None:
        """Compile the pieces for arguments like these at a place.

        Nothing is computed, unless the host part asks for values, as `nonzero` does: then it runs on the arguments, or
        copies of those that it stores into. Without data pieces are compiled up to there.
        """
        self._suited(values, PythonHost._dry_run, values, place)

    def _dry_run(self, values: Sequence[object], place: Place) -> None:
        with_data = are_in_memory(values)
        try:
            self._run_body(_DryRun(self, place), [without_data(value) for value in values])
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            asks = isinstance(error, NotImplementedError) or "meta tensors" in str(error).lower()
            if isinstance(error, BrickworkError) or not (with_data or asks):
                raise
            if not with_data:
                return
            gpus = [tensor.device for tensor in tensors_of(values)[:1] if tensor.is_cuda]
            with private("random.fork_rng")(gpus), torch.no_grad():
                names = (item.name for item in self.definition.parameters)
                written = self.definition.mutated
                copied = [
                    clones(value) if name in written else value for name, value in zip(names, values, strict=True)
                ]
                self._run_body(_CompilingRun(self, place, copied), copied)

    def _run_body(self, launcher: _Launcher, values: Sequence[object]) -> None:
        """Run the body on the values of all parameters."""
        pairs = [*zip(self.definition.parameters, values, strict=True)]
        positional = [value for item, value in pairs if not item.keyword_only]
        self._body(launcher, *positional, **{item.name: value for item, value in pairs if item.keyword_only})

    def explanation(self) -> str:
        """Say why the host part is Python, and of each piece how its loops run."""
        lines = [self.name, f"host part: Python, because {self.definition.reason}"]
        for piece in self.definition.split.pieces:
            made = [item for (number, _), item in self._operators.items() if number == piece.number]
            first, last = piece.statements[0].lineno, piece.statements[-1].end_lineno
            lines.append(f"lines {first} to {last}: compiled, as {self.name}__loop{piece.number}")
            artifacts = [artifact for operator in made for artifact in operator.artifacts]
            texts = [artifact.explanation.text().split("\n") for artifact in artifacts[-1:]]
            lines += [f"  {line}" for text in texts for line in text if not line.startswith("host part:")]
            lines += [] if artifacts else ["  not compiled yet: pass arguments to explain"]
        return "\n".join(lines)

    def artifacts(self) -> list[Artifact]:
        """Return what was compiled."""
        return [artifact for operator in self._operators.values() for artifact in operator.artifacts]

    def piece(self, number: int, values: Mapping[str, Any]) -> tuple[NativeOperator, list[Any]]:
        """Return the operator for a piece, and its arguments."""
        inputs = self.inputs(number, values)
        for item in inputs:
            if item.kind == "constant" and not _is_constant(item.constant):
                raise refused_input(self.definition, self.definition.split.pieces[number], item)
        key = number, inputs
        found = self._operators.get(key)
        if found is None:
            with self._lock:
                found = self._operators.get(key)
                if found is None:
                    found = self._operators[key] = self._make(self.definition.split.pieces[number], inputs)
        return found, [values[item.name] for item in inputs if item.kind != "constant"]

    def as_they_are(self, number: int, values: dict[str, Any], written: frozenset[str]) -> dict[str, Any]:
        """Return the values of a piece with copies of those that later turns of a loop store into by other names.

        A gradient that reads them needs them as they are in this turn.
        """
        names = self._exchanged - written
        if not names or not torch.is_grad_enabled() or not self.definition.split.pieces[number].repeated:
            return values
        return {
            name: value.clone()
            if name in names and isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf
            else value
            for name, value in values.items()
        }

    def inputs(self, number: int, values: Mapping[str, Any]) -> tuple[Input, ...]:
        """Return how a piece takes these values."""
        if number in self._keeping and _are_narrow(values.values()):
            raise _NarrowRows
        return tuple(_input(name, value, name in self._scalars[number]) for name, value in values.items())

    def _make(self, piece: Piece, inputs: tuple[Input, ...]) -> NativeOperator:
        plain = name = f"{self.name}__loop{piece.number}"
        count = 1
        while registered(name) is not None:
            count += 1
            name = f"{plain}_{count}"
        return NativeOperator(name, name, piece_definition(self.definition, piece, inputs), self._tools)

    # ------------------------------------------------------------ implementations

    def _run_default(self, /, *arguments: Any, **named: Any) -> Any:
        results = self.computed(arguments, named)
        if not self.definition.results:
            return None
        return results[0] if self.definition.results == 1 else tuple(results)

    def _run_out(self, /, *arguments: Any, **named: Any) -> None:
        outputs = self._outputs()
        given = [named.pop(name) for name in outputs]
        tensors = tensors_of((*arguments, *named.values()))
        check_devices(self.definition.name, [*tensors, *given])
        for name, tensor in zip(outputs, given, strict=True):
            check_written(self.definition.name, name, tensor)
        for name, tensor, result in zip(outputs, given, self.computed(arguments, named), strict=True):
            check_result(self.definition.name, name, tensor, result)
            tensor.copy_(result)

    def computed(self, arguments: Sequence[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        """Run the body on real tensors."""
        return self._suited((*arguments, *named.values()), PythonHost._computed, arguments, named)

    def _computed(self, arguments: Sequence[Any], named: dict[str, Any]) -> list[torch.Tensor]:
        named = {**named}
        key = named.pop(KEY, None)
        if self._schema.random and key is None:
            key = draw_key(device=device_of((*arguments, *named.values())))
        values = dict(zip((item.name for item in self.definition.parameters), arguments, strict=False)) | named
        check_devices(self.definition.name, tensors_of(values.values()))
        for name in self.definition.mutated:
            for tensor in tensors_of([values[name]]):
                check_written(self.definition.name, name, tensor)
        runner = _Run(self, key, values)
        if not under_vmap():
            results = self._checked(self._body(runner, *arguments, **named))
        else:
            with made_by_sample(values):
                if self._stores_into_computed:
                    values = by_sample(values, self.definition.mutated)
                results = self._checked(self._body(runner, **values))
        runner.refuse_shared(results)
        return results

    def _fake_default(self, /, *arguments: Any, **named: Any) -> Any:
        return self._suited((*arguments, *named.values()), PythonHost._faked, *arguments, **named)

    def _faked(self, /, *arguments: Any, **named: Any) -> Any:
        named.pop(KEY, None)
        check_devices(self.definition.name, tensors_of((*arguments, *named.values())))
        results = self._checked(self._body(_FakeRun(self), *arguments, **named))
        if not self.definition.results:
            return None
        return results[0] if self.definition.results == 1 else tuple(results)

    def _fake_out(self, /, *arguments: Any, **named: Any) -> None:
        outputs = self._outputs()
        given = [named.pop(name) for name in outputs]
        check_devices(self.definition.name, tensors_of((*arguments, *given)))
        results: Any = self._fake_default(*arguments, **named)
        for name, tensor, result in zip(outputs, given, results if len(outputs) > 1 else (results,), strict=True):
            check_result(self.definition.name, name, tensor, result)

    def _outputs(self) -> tuple[str, ...]:
        return () if self._schema.out is None else self._schema.out.outputs

    def _checked(self, returned: Any) -> list[torch.Tensor]:
        """Return the results as a list; an operator returns tensors."""
        if not self.definition.results:
            return []
        results = [*_sequence(returned)]
        check_results(self.definition.source, results, self.definition.results)
        for result in results:
            if not isinstance(result, torch.Tensor):
                message = f"`{self.definition.name}` returns a value of type {type(result).__name__}, not a tensor"
                raise error("BW009", message, self.definition.loc, "return a tensor that the function makes")
        return results


class _Launcher:
    """What the rewritten body calls: launches pieces, and reads elements for the host."""

    def __init__(self, host: PythonHost) -> None:
        """Run for an operator."""
        self.host = host

    def take(self, found: Any) -> Any:
        """Return what `x[i]` is: an element by value, in the type in which elements are computed with, or a view."""
        if not isinstance(found, torch.Tensor) or found.dim():
            return found
        dtype = from_torch(found.dtype)
        value = found.dtype if dtype is None else getattr(torch, value_dtype(dtype).name)
        return found.to(value, copy=True)

    def results(self, number: int, returned: Any) -> tuple[Any, ...]:
        """Return the outputs of a piece as a tuple."""
        del number
        return cast("tuple[Any, ...]", returned) if isinstance(returned, tuple) else (returned,)


class _Run(_Launcher):
    """A run of the host part on real tensors, which calls the compiled pieces."""

    def __init__(self, host: PythonHost, key: torch.Tensor | None, values: Mapping[str, Any]) -> None:
        super().__init__(host)
        self.key = key
        written = host.definition.mutated
        tensors = [(name, tensor) for name, value in values.items() for tensor in tensors_of([value])]
        self._owners = {_memory(tensor): name for name, tensor in tensors}
        self._written = {_memory(tensor) for name, tensor in tensors if name in written}
        self._owners.pop(0, None)

    def __call__(self, number: int, values: dict[str, Any]) -> tuple[Any, ...]:
        """Launch a piece."""
        operator, arguments = self.host.piece(number, values)
        self.refuse_stores(number, operator.definition.mutated, values)
        apart = self.host.as_they_are(number, values, operator.definition.mutated)
        if apart is not values:
            _, arguments = self.host.piece(number, apart)
        named = {KEY: self.key} if operator.definition.draws_random else {}
        return self.results(number, operator.call(*arguments, **named))

    def refuse_stores(self, number: int, names: frozenset[str], values: Mapping[str, Any]) -> None:
        for name in names:
            for memory in map(_memory, tensors_of([values[name]])):
                if memory not in self._owners or memory in self._written:
                    continue
                piece = self.host.definition.split.pieces[number]
                message = f"`{name}` shares memory with the argument `{self._owners[memory]}`, and is stored into"
                place = self.host.definition.source.location(piece.statements[0])
                raise error("BW010", message, place, "store into the argument itself, or into a .clone() of it")

    def refuse_shared(self, results: Sequence[torch.Tensor]) -> None:
        """Refuse results that share memory with an argument or with one another."""
        seen: set[int] = set()
        for result in results:
            memory = _memory(result)
            if memory in self._owners or memory in seen:
                what = f"the argument `{self._owners[memory]}`" if memory in self._owners else "another result"
                message = f"a result of `{self.host.definition.name}` shares memory with {what}"
                raise error("BW009", message, self.host.definition.loc, "return a .clone() of it")
            seen |= {memory} - {0}


class _ReferenceRun(_Run):
    """A run of the host part in which pieces are run as Python: `op.python`."""

    def __call__(self, number: int, values: dict[str, Any]) -> tuple[Any, ...]:
        """Run a piece."""
        inputs = self.host.inputs(number, values)
        definition = piece_definition(self.host.definition, self.host.definition.split.pieces[number], inputs)
        self.refuse_stores(number, definition.mutated, values)
        named = {KEY: self.key} if definition.draws_random else {}
        arguments = [values[item.name] for item in inputs if item.kind != "constant"]
        room = importlib.import_module("brickwork.frontend.reference")
        return self.results(number, room.python_function(definition)(*arguments, **named))


class _FakeRun(_Launcher):
    """A run on tensors without data: pieces run only for the types of what they give."""

    def __call__(self, number: int, values: dict[str, Any]) -> tuple[Any, ...]:
        """Return the outputs of a piece, without data."""
        if not self.host.definition.split.pieces[number].outputs:
            return ()
        operator, arguments = self.host.piece(number, values)
        return self.results(number, operator.call(*arguments))


class _DryRun(_Launcher):
    """A run on meta tensors that compiles the pieces."""

    def __init__(self, host: PythonHost, place: Place) -> None:
        super().__init__(host)
        self._place = place

    def __call__(self, number: int, values: dict[str, Any]) -> tuple[Any, ...]:
        """Compile a piece; its outputs have no data."""
        operator, arguments = self.host.piece(number, values)
        operator.prepare(arguments, self._place)
        return self.results(number, operator.call(*arguments))


class _CompilingRun(_Run):
    """A run on real tensors that compiles the pieces for a place, and runs them for what the host part asks."""

    def __init__(self, host: PythonHost, place: Place, values: Sequence[object]) -> None:
        named = dict(zip((item.name for item in host.definition.parameters), values, strict=True))
        super().__init__(host, torch.tensor(0, device="cpu"), named)
        self._place = place

    def __call__(self, number: int, values: dict[str, Any]) -> tuple[Any, ...]:
        """Compile a piece and run it."""
        operator, arguments = self.host.piece(number, values)
        operator.prepare(arguments, self._place)
        return super().__call__(number, values)


def _is_constant(value: object) -> bool:
    """Return whether a piece can be made for a value: one that is compared as a whole, or called."""
    called = callable(value) and type(value).__hash__ is not None
    return value is None or called or isinstance(value, str | torch.dtype | torch.device | ModuleType)


def _cell(value: Any) -> Any:
    """Return the tensor without dimensions for a number, as native code makes it; anything else as it is."""
    match value:
        case bool() | torch.SymBool():
            dtype = torch.bool
        case int() | torch.SymInt():
            dtype = torch.int64
        case float() | torch.SymFloat():
            dtype = torch.get_default_dtype()
        case _:
            return value
    known = isinstance(value, bool | int | float)
    return torch.tensor(value, dtype=dtype) if known else torch.empty((), dtype=dtype)


def _input(name: str, value: Any, is_number: bool) -> Input:
    """Return how a piece takes a value."""
    if isinstance(value, torch.Tensor):
        return Input(name, "cell" if is_number and not value.dim() else "tensor")
    for types, kind in _SCALARS:
        if isinstance(value, types):
            return Input(name, kind)
    items = _sequence(value) if isinstance(value, list | tuple) else ()
    if items and all(isinstance(item, torch.Tensor) for item in items):
        return Input(name, "list[tensor]")
    for types, kind in _SCALARS:
        if items and all(isinstance(item, types) for item in items):
            return Input(name, _LISTS[kind])
    return Input(name, "constant", cast("object", value))


def _sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)


def _memory(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage; 0 where it has none, or where torch does not show it."""
    with suppress(RuntimeError):
        return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else 0
    return 0
