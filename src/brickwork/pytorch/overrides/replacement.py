"""How a callable serves the calls of an operator that it stands in for, in each form that the operator has.

What the callable does not take goes on to what was there before. What it returns must have the shape, dtype and device
that the original's results have: that is compared once for arguments of the same types.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import torch

from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition
from brickwork.pytorch.arguments import explain_mismatch
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.overrides.fast_path import Front
from brickwork.pytorch.overrides.kernel_stack import Kernel
from brickwork.pytorch.overrides.overloads import Form, Member, schema_of
from brickwork.pytorch.register import registered
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.records import dataclass
from brickwork.runtime.traceback import OwnFramesHidden
from brickwork.transform.derivation import Defined


@runtime_checkable
class Fusible(Protocol):
    """An operator of which graphs may have the code."""

    @property
    def fusible(self) -> Defined | None:
        """What it is made of; None if graphs have to call it."""
        ...

    def written(self, arguments: tuple[Any, ...], named: dict[str, Any], original: Callable[[], Any]) -> Any:
        """Return what a call returns, by PyTorch's operators, if it is like what `original` returns."""
        ...


_TYPE_RULES = ("BW1", "BW301")
"""Codes of diagnostics that say that an operator does not take arguments of such types."""


class Callee:
    """A callable in place of an operator, with what is known of it."""

    def __init__(self, name: str, function: Callable[..., Any], owner: object) -> None:
        """Take a callable for the operator `name`, and the handle of the override."""
        self.name = name
        self.owner = owner
        self.function = function
        self._thread = threading.local()
        self._signature: inspect.Signature | None = None
        with suppress(TypeError, ValueError):
            self._signature = inspect.signature(function)
        definition = getattr(function, "definition", None)
        own = registered(str(getattr(function, "name", ""))) is not None and isinstance(definition, Definition)
        self._definition: Definition | None = definition if own else None

    @property
    def running(self) -> bool:
        """Whether this thread is in the callable, for which the operator means the original."""
        return getattr(self._thread, "running", False)

    def takes(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
        """Whether the callable has parameters for arguments of these types."""
        if self._signature is None:
            return True
        try:
            if self._definition is None:
                self._signature.bind(*arguments, **named)
            else:
                explain_mismatch(self._definition, self._signature, arguments, named)
        except TypeError:
            return False
        return True

    def __call__(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Call it."""
        self._thread.running = True
        try:
            return self.function(*arguments, **named)
        finally:
            self._thread.running = False


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is known of calls with arguments of some types."""

    taken: bool
    """Whether the callable takes them."""
    compared: bool = False
    """Whether its results were compared with the original's."""
    results: tuple[tuple[torch.dtype, int], ...] | None = None
    """The dtypes and ranks of the original's results; None where the original does not serve such calls."""


class _Call(NamedTuple):
    """A call of an overload."""

    keys: Any
    """torch's set of dispatch keys that are left."""
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    """Without the tensors that take results."""
    outputs: tuple[torch.Tensor, ...]
    types: tuple[object, ...]


class Replacement:
    """A callable in front of the kernel of one overload."""

    def __init__(
        self, callee: Callee, member: Member, kernel: Kernel, function: Kernel, front: Front | None = None
    ) -> None:
        """Stand in front of `kernel`; `function` returns what that one writes, `front` asks only for what it lacks."""
        self._front = front
        self._callee = callee
        self._member = member
        self._kernel = kernel
        self._function = function
        self._returns = tuple(str(each.type) for each in schema_of(member.overload).returns)
        self._random = torch.Tag.nondeterministic_seeded in member.overload.tags
        self._facts: dict[tuple[object, ...], _Facts] = {}

    def serve(self, keys: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Answer a call with what the callable makes of it, or pass it on."""
        if not self._callee.running and self in self._kernel.layers:
            with OwnFramesHidden():
                result = self._answer(_call(self._member, keys, arguments, named))
            if result is not NotImplemented:
                return result
        return self._kernel.call_below(self, keys, arguments, named)

    @property
    def owner(self) -> object:
        """The handle of the override that this is a part of."""
        return self._callee.owner

    @property
    def code(self) -> str:
        """What tells the callable's code from that of others, if graphs may have it instead of calling the kernel."""
        function = self._callee.function
        if self._member.form is not Form.FUNCTION or not isinstance(function, Fusible):
            return ""
        found = function.fusible
        return "" if found is None else f"{found.name} {found.fingerprint}"

    def written(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return what a call gives, by PyTorch's operators; NotImplemented where it has to be made."""
        function = self._callee.function
        if not self.code or not isinstance(function, Fusible) or not self._callee.takes(arguments, named):
            return NotImplemented
        return function.written(arguments, named, lambda: self._member.overload(*arguments, **named))

    def _answer(self, call: _Call) -> Any:
        """Return the result of the overload; NotImplemented where the call is to be passed on."""
        facts = self._facts.get(call.types)
        if facts is None:
            facts = self._facts[call.types] = _Facts(self._callee.takes(call.arguments, call.named))
        result = self._called(call) if facts.taken else NotImplemented
        if result is NotImplemented:
            return result
        if self._member.form is Form.WRITING:
            return self._written(result, call)
        if any(each != "Tensor" for each in self._returns):
            return result
        results = self._results(result)
        if not facts.compared:
            facts = self._facts[call.types] = self._compared(results, call)
        if not facts.taken:
            return NotImplemented
        self._check(facts.results, tuple((each.dtype, each.dim()) for each in results))
        if self._front is not None:
            self._front.link((*call.arguments, *call.named.values()))
        return self._delivered(results, call)

    def _called(self, call: _Call) -> Any:
        """Return what the callable gives; NotImplemented if it cannot be compiled for such types."""
        try:
            return self._callee(call.arguments, call.named)
        except CompileError as error:
            if not all(each.code.startswith(_TYPE_RULES) for each in error.diagnostics):
                raise
        self._facts[call.types] = _Facts(taken=False)
        return NotImplemented

    def _results(self, result: Any) -> tuple[torch.Tensor, ...]:
        """Return what the callable gave as as many tensors as the operator has results."""
        results = cast("Sequence[Any]", result) if isinstance(result, list | tuple) else (result,)
        if len(results) != len(self._returns) or not all(isinstance(each, torch.Tensor) for each in results):
            wanted = "a tensor" if len(self._returns) == 1 else f"{len(self._returns)} tensors"
            found = ", ".join(type(each).__name__ for each in results)
            raise TypeError(f"the override of {self._callee.name} must return {wanted}, not {found}")
        return tuple(results)

    def _compared(self, results: tuple[torch.Tensor, ...], call: _Call) -> _Facts:
        """Compare with what the original makes of the same arguments."""
        if self._random:
            return _Facts(taken=True, compared=True)
        try:
            original = self._function.call_original(call.keys, call.arguments, call.named)
        except Exception:  # noqa: BLE001  # whatever keeps the original from serving the call, the callable serves it
            return _Facts(taken=True, compared=True)
        expected: tuple[torch.Tensor, ...] = (original,) if isinstance(original, torch.Tensor) else tuple(original)
        given = {tensor.dtype for tensor in tensors_of(call.arguments)}
        if any(a.dtype != b.dtype and b.dtype not in given for a, b in zip(results, expected, strict=True)):
            return _Facts(taken=False)
        found = tuple((each.dtype, each.dim()) for each in expected)
        self._check(tuple(map(_description, expected)), tuple(map(_description, results)))
        return _Facts(taken=True, compared=True, results=found)

    def _check(self, expected: tuple[tuple[object, ...], ...] | None, found: tuple[tuple[object, ...], ...]) -> None:
        """Refuse results that are not like the original's."""
        if expected is not None and expected != found:
            given, wanted = _text(found), _text(expected)
            raise ValueError(
                f"the override of {self._callee.name} returns {given}, where the original returns {wanted}"
            )

    def _delivered(self, results: tuple[torch.Tensor, ...], call: _Call) -> Any:
        """Return results, or put them where the overload has them; NotImplemented where torch refuses to."""
        match self._member.form:
            case Form.FUNCTION:
                own = tuple(_own(each, tensors_of(call.arguments)) for each in results)
                return own[0] if len(own) == 1 else own
            case Form.IN_PLACE:
                written = call.arguments[0]
                if written.shape != results[0].shape or not torch.can_cast(results[0].dtype, written.dtype):
                    return NotImplemented
                return written.copy_(results[0])
            case Form.OUT:
                pairs = [*zip(call.outputs, results, strict=True)]
                if not all(torch.can_cast(new.dtype, out.dtype) and new.device == out.device for out, new in pairs):
                    return NotImplemented
                misfits = [(out, new) for out, new in pairs if out.shape != new.shape]
                for out, new in misfits:
                    _check_not_in_place(out, new, call.arguments)
                if any(out.numel() for out, _ in misfits):
                    # The original resizes with torch's warning, or refuses to.
                    named = call.named | dict(zip(self._member.outputs, call.outputs, strict=True))
                    self._kernel.call_original(call.keys, call.arguments, named)
                for out, new in pairs:
                    _store(out, new)
                return call.outputs[0] if len(pairs) == 1 else call.outputs
            case Form.WRITING:
                return self._written(results, call)

    def _written(self, result: Any, call: _Call) -> Any:
        """Return the arguments that an overload writes and returns, or what the callable gave, if that is new."""
        schema = schema_of(self._member.overload)
        if not all(each.alias_info for each in schema.returns):
            return result
        names = [each.name for each in schema.arguments]
        values = dict(zip(names, call.arguments, strict=False)) | call.named
        sets = {each.name: each.alias_info.before_set for each in schema.arguments if each.alias_info}
        wanted = [each.alias_info.before_set for each in schema.returns]
        results = [values[name] for letters in wanted for name, own in sets.items() if own & letters]
        return results[0] if len(results) == 1 else tuple(results) or None


def _call(member: Member, keys: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Call:
    """Take the arguments of a call apart."""
    outputs = tuple(named[name] for name in member.outputs)
    if outputs:
        named = {name: value for name, value in named.items() if name not in member.outputs}
    types = (*map(_type, arguments), *((name, _type(value)) for name, value in named.items()))
    return _Call(keys, arguments, named, outputs, types)


def _type(value: Any) -> object:
    """Return what a value has in common with others that are served alike."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.dim(), value.device.type, value.layout
    if isinstance(value, list | tuple):
        return tuple(map(_type, cast("Sequence[Any]", value)))
    return cast("object", type(value))


def _own(result: torch.Tensor, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Return a result with memory of its own: operators return no arguments."""
    shares = private("_C._is_alias_of")
    return result.clone() if any(shares(result, tensor) for tensor in inputs) else result


def _check_not_in_place(out: torch.Tensor, new: torch.Tensor, arguments: tuple[Any, ...]) -> None:
    """Refuse, in torch's words, to resize what is an argument as well: some forms in place call the one with `out`."""
    if any(out is each for each in tensors_of(arguments)):
        given, wanted = [*out.shape], [*new.shape]
        raise RuntimeError(f"output with shape {given} doesn't match the broadcast shape {wanted}")


def _store(out: torch.Tensor, new: torch.Tensor) -> None:
    """Store a result; what is empty gets the size and the layout of the result, as in torch."""
    if out.shape != new.shape:
        out.resize_(new.shape).as_strided_(new.shape, new.stride())
    out.copy_(new)


def _description(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.dtype, tuple(tensor.shape), str(tensor.device)


def _text(results: tuple[tuple[object, ...], ...]) -> str:
    """Return dtypes with shapes, or with ranks, as words."""
    found: list[str] = []
    for dtype, shape, *device in results:
        form = f"rank {shape}" if isinstance(shape, int) else f"shape {shape}"
        found.append(f"{dtype} of {form}{''.join(f' on {each}' for each in device)}")
    return ", ".join(found)
