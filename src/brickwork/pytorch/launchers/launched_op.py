"""Operators that launch what brickwork did not compile: a schema by the user, results by a host function, checks.

`LaunchedOp` is what `bw.cuda_op` and `bw.triton_op` have in common. Before anything is launched, tensors are all on one
GPU (or on the CPU, where the subclass takes that), contiguous where that is asked for, and of the element types that
were named; results are what the host function made, which is the operator's fake, too. What is launched, and how, is
the subclass's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any, NoReturn, cast

import torch
from torch.compiler import is_dynamo_compiling

from brickwork.frontend.text_locations import calling_module
from brickwork.pytorch.arguments import check_devices, check_written
from brickwork.pytorch.autograd import Differentiation
from brickwork.pytorch.declared_schema import Declared, Dtypes, Picker, element_types, picker
from brickwork.pytorch.gate import Gate, schema_arguments
from brickwork.pytorch.handle import Handle
from brickwork.pytorch.libtorch import in_transform
from brickwork.pytorch.register import (
    DEFAULT,
    Registration,
    forget_traces,
    in_order,
    register,
)
from brickwork.pytorch.saved_arguments import Values
from brickwork.pytorch.tensor_devices import tensors_of
from brickwork.pytorch.user_backward import UserBackward
from brickwork.runtime.traceback import OwnFramesHidden, hide_frames
from brickwork.transform.derivation import Derivation

_increment_version: Callable[[Any], None] = attrgetter("autograd.graph.increment_version")(torch)


_NONE = -2
"""No device yet; torch's index of a CPU is -1."""


class LaunchedOp(Handle):
    """An operator on GPUs that launches something of the user's. Calls go to `torch.ops.<namespace>.<name>`."""

    devices = ("CUDA",)
    """The dispatch keys of devices that it has a kernel for."""
    definition = None
    """Its loops are not known."""
    fusible = None

    def __init__(
        self,
        declared: Declared,
        out: Callable[..., Any] | None,
        *,
        contiguous: bool | Collection[str],
        dtypes: Dtypes | None,
    ) -> None:
        """Take what is checked of each call; the subclass calls `_register` once it is ready for calls."""
        super().__init__(declared.name, (type(self).__name__, declared.schema.default.schema), tells_all=False)
        self.declared = declared
        self.__name__ = self.name.partition("::")[2]
        self.__module__ = calling_module()
        if declared.results and out is None:
            raise ValueError(
                f"{self.name} has results: say `out=`, a function that makes them, such as torch.empty_like"
            )
        self._make: Callable[..., Any] | None = out if declared.results else None
        self._for_out: Picker = (lambda _: ()) if out is None else picker("out", out, declared, results=False)
        allowed = element_types(declared, dtypes)
        checks = [
            (at, each.name, _is_named(each.name, contiguous, declared), allowed.get(each.name))
            for at, each in enumerate(declared.parameters)
        ]
        self._checks = [each for each in checks if declared.parameters[each[0]].is_tensor]
        self._lists = [each for each in checks if declared.parameters[each[0]].is_list]
        self._results_contiguous = tuple(_is_named(name, contiguous, declared) for name in declared.results)
        self._written = tuple(at for at, each in enumerate(declared.parameters) if each.written)
        self._count = len(declared.parameters)

    def _connect(self) -> None:
        self._registration: Registration = register(
            self.name, self.declared.schema, self, bytes, python=True, devices=self.devices, alone=not self.left
        )
        self._overload: Any = self._registration.overload(DEFAULT)
        # What the OpOverload calls. Compilers know the OpOverload alone.
        self._usual = getattr(self._overload, "_op", self._overload)
        self._arguments = schema_arguments(self._overload)
        before = vars(self).get("_family")
        self._family = _Family(self.declared, self._overload)
        self._family.replaced = None if before is None else before.replaced
        self._differentiation = Differentiation(self._family)

    # ------------------------------------------------------------ calls

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Call the operator."""
        try:
            if not is_dynamo_compiling():
                return self._direct(*arguments, **named)
            if self.pending:
                self.settle()
            return self._overload(*arguments, **named)
        except NotImplementedError as error:
            hide_frames(error)
            tensors = tensors_of((*arguments, *named.values()))
            if tensors and not any(tensor.is_cuda for tensor in tensors) and "Could not run" in str(error):
                raise RuntimeError(self._not_here(tensors[0].device)) from None
            raise
        except Exception as error:
            hide_frames(error)
            raise

    def _run(self, *arguments: Any, **named: Any) -> Any:
        """Serve a call on a GPU: check, make the results, launch."""
        complete = not named and len(arguments) == self._count
        values = arguments if complete else in_order(self._arguments, arguments, named)
        index = self._device(values)
        for at in self._written:
            self._before_writing(self.declared.parameters[at].name, values[at])
        results = () if self._make is None else self._results(values, index)
        self._start(values, results, index)
        return results[0] if len(results) == 1 else results or None

    def _device(self, values: Sequence[Any]) -> int:
        """Return the index of the device that the tensors of a call are on, once they have passed all checks."""
        index = _NONE
        for at, name, contiguous, dtypes in self._checks:
            tensor = values[at]
            if tensor is None:
                continue
            device = tensor.get_device()
            if device != index:
                if index != _NONE or (device == -1 and not self._takes_cpu()):
                    self._refuse_devices(values)
                index = device
            if contiguous and not tensor.is_contiguous():
                self._refuse_strides(name, tensor)
            if dtypes is not None and tensor.dtype not in dtypes:
                self._refuse_dtype(name, tensor, dtypes)
        if self._lists:
            index = self._device_of_lists(values)
        if index == _NONE or (index == -1 and not self._takes_cpu()):
            self._refuse_devices(values)
        return index

    def _takes_cpu(self) -> bool:
        """Whether what is launched can run on the CPU."""
        return False

    def _device_of_lists(self, values: Sequence[Any]) -> int:
        """Check the items of lists as other tensors are."""
        for at, name, contiguous, dtypes in self._lists:
            for number, tensor in enumerate(tensors_of([values[at]])):
                if contiguous and not tensor.is_contiguous():
                    self._refuse_strides(f"{name}[{number}]", tensor)
                if dtypes is not None and tensor.dtype not in dtypes:
                    self._refuse_dtype(f"{name}[{number}]", tensor, dtypes)
        tensors = tensors_of(values)
        check_devices(self.name, tensors)
        return tensors[0].get_device() if tensors else _NONE

    def _before_writing(self, name: str, value: Any) -> None:
        """Tell autograd that a tensor is written, which it may refuse; so does an expanded one."""
        for tensor in tensors_of([value]):
            check_written(self.name, name, tensor)
            if tensor.is_inference() and not torch.is_inference_mode_enabled():
                raise RuntimeError(f"Inplace update to inference tensor {name!r} outside InferenceMode is not allowed.")
            _increment_version(tensor)

    def _results(self, values: Sequence[Any], index: int) -> tuple[Any, ...]:
        """Return the results that the host function makes, checked as arguments are."""
        results = self._made(values)
        for name, contiguous, tensor in zip(self.declared.results, self._results_contiguous, results, strict=True):
            if tensor.get_device() != index or (index == -1 and tensor.device.type != "cpu"):
                raise RuntimeError(
                    f"{self.name}(): result '{name}' is on {tensor.device}, and the arguments are on"
                    f" {'cpu' if index == -1 else f'cuda:{index}'}: let `out` name the device of an argument"
                )
            if contiguous and not tensor.is_contiguous():
                raise RuntimeError(
                    f"{self.name}(): result '{name}' is not contiguous: let `out` make it so, or say in `contiguous=`"
                    " which tensors must be"
                )
        return results

    def _made(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return what the host function makes of the arguments; on fakes, fakes."""
        made = () if self._make is None else self._make(*self._for_out(values))
        results: tuple[Any, ...] = (*cast("Sequence[Any]", made),) if isinstance(made, tuple | list) else (made,)
        if len(results) != len(self.declared.results):
            self._refuse_results(results)
        for result in results:
            if not isinstance(result, torch.Tensor):
                self._refuse_results(results)
            for value in values:
                if result is value:
                    raise RuntimeError(f"{self.name}: `out` gave an argument back; results are tensors of their own")
        return results

    @abstractmethod
    def _start(self, values: Sequence[Any], results: tuple[Any, ...], index: int) -> None:
        """Launch what is to fill the results, on the current stream of a GPU."""

    # ------------------------------------------------------------ what the dispatcher asks

    def miss(self, overload: str, gate: Gate, values: tuple[object, ...]) -> NoReturn:
        """Refuse: there is no gate that could miss."""
        raise AssertionError((overload, gate, values))

    def differentiate(self, overload: str, values: Sequence[Any]) -> Any:
        """Serve a call that torch wants to differentiate or to batch."""
        del overload
        if in_transform():  # samples lie as vmap likes it
            asked = (*self._checks, *self._lists)
            places = {at for at, _, contiguous, _ in asked if contiguous and at not in self._written}
            values = [_contiguous(value) if at in places else value for at, value in enumerate(values)]
        return self._differentiation(values)

    def define(self, base: str, suffix: str) -> bool:
        """Return that nothing is derived of the operator."""
        del base, suffix
        return False

    def run(self, overload: str) -> Callable[..., Any]:
        """Return the implementation."""
        del overload
        return self._run

    def fake(self, overload: str) -> Callable[..., Any]:
        """Return the implementation for tensors without data."""
        del overload
        return self._fake

    def _fake(self, *arguments: Any, **named: Any) -> Any:
        values = in_order(self._arguments, arguments, named)
        check_devices(self.name, tensors_of(values))
        if self._make is None:
            return None
        results = self._made(values)
        return results[0] if len(results) == 1 else results

    # ------------------------------------------------------------ what the user says and asks

    def backward(
        self, function: Callable[..., Any] | None = None, /, *, setup_context: Callable[..., None] | None = None
    ) -> Callable[..., Any]:
        """Give the operator a gradient: `@operator.backward`.

        The function takes the arguments of the operator, then the gradient of each tensor that it writes and of each
        result, and returns a gradient, or None, for each argument. With `setup_context` both are as in
        `torch.library.register_autograd`.
        """

        def register_(backward: Callable[..., Any]) -> Callable[..., Any]:
            self._family.replaced = UserBackward(backward, setup_context)
            forget_traces()
            return backward

        return register_ if function is None else register_(function)

    register_backward = backward

    def check(self, /, *arguments: Any, **named: Any) -> None:
        """Run PyTorch's `torch.library.opcheck` on these arguments."""
        with OwnFramesHidden():
            self.be_registered()
            cast("Any", torch.library).opcheck(self._overload, arguments, named)

    # ------------------------------------------------------------ refusals

    def _refuse_results(self, results: Sequence[Any]) -> NoReturn:
        kinds = ", ".join(type(result).__name__ for result in results)
        raise TypeError(f"{self.name}: `out` must make {len(self.declared.results)} tensors, but it made: {kinds}")

    def _not_here(self, device: torch.device) -> str:
        name = next((each.name for each in self.declared.parameters if "Tensor" in each.kind), "")
        return f"{self.name}(): argument '{name}' must be on an NVIDIA GPU, but it is on {device}"

    def _refuse_devices(self, values: Sequence[Any]) -> NoReturn:
        tensors = tensors_of(values)
        check_devices(self.name, tensors)
        if tensors:
            raise RuntimeError(self._not_here(tensors[0].device))
        raise RuntimeError(f"{self.name}(): at least one argument must be a tensor on an NVIDIA GPU")

    def _refuse_strides(self, name: str, tensor: torch.Tensor) -> NoReturn:
        raise RuntimeError(
            f"{self.name}(): argument '{name}' must be contiguous, but it has shape {tuple(tensor.shape)} and strides"
            f" {tensor.stride()}: pass `{name}.contiguous()`"
        )

    def _refuse_dtype(self, name: str, tensor: torch.Tensor, dtypes: Collection[torch.dtype]) -> NoReturn:
        wanted = " or ".join(sorted(map(str, dtypes)))
        raise RuntimeError(f"{self.name}(): argument '{name}' must be of {wanted}, but it is of {tensor.dtype}")

    # ------------------------------------------------------------ what Python asks

    def __repr__(self) -> str:
        """Return the operator's schema."""
        return f"<brickwork operator {self.name.partition('::')[0]}::{self.declared.schema.default.schema}>"


class _Family:
    """An operator of which nothing is derived."""

    def __init__(self, definition: Declared, overload: Any) -> None:
        self.definition, self.overload = definition, overload
        self.replaced: UserBackward | None = None

    def derived(self, derivation: Derivation, values: Values, floats: tuple[bool, ...]) -> NoReturn:
        """Refuse."""
        del derivation, values, floats
        raise NotImplementedError(
            f"{self.definition.name} has no forward mode; use reverse mode, as torch.func.vjp and torch.func.jacrev do"
        )

    def batched(self, given: tuple[bool, ...], values: Values, *, keys: bool) -> None:
        """Return that there is no operator over samples."""
        del given, values, keys

    def plan(self, wanted: tuple[bool, ...], values: Values, outputs: Sequence[torch.Tensor]) -> NoReturn:
        """Refuse."""
        del wanted, values, outputs
        raise NotImplementedError(
            f"{self.definition.name} has no gradient, and an argument requires one; give it one with `.backward`, call"
            " it under torch.no_grad(), or pass detached tensors"
        )


def _contiguous(value: Any) -> Any:
    """Return a tensor, the tensors of a list, or None, contiguous."""
    if isinstance(value, list | tuple):
        return [_contiguous(item) for item in cast("Sequence[Any]", value)]
    return None if value is None else value.contiguous()


def _is_named(name: str, contiguous: bool | Collection[str], declared: Declared) -> bool:
    """Whether a tensor is among those that must be contiguous."""
    if isinstance(contiguous, bool):
        return contiguous
    unknown = next((each for each in contiguous if each not in declared.names), None)
    if unknown is not None:
        raise ValueError(f"{declared.name} has no tensor {unknown!r}; it has: {', '.join(declared.names)}")
    return name in contiguous
