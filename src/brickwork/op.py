"""The `Op` object: where everything is wired together. Each question is passed on to the room that knows.

An `Op` forwards calls to its OpOverload, whose gate finds a specialisation in machine code; Python is entered again
only when none matches. What calls from a warm cache do without is loaded when it is asked for.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import torch
from torch.compiler import is_dynamo_compiling

from brickwork.codegen.entry_description import ANY, Sizes
from brickwork.codegen.rounding import SOURCE, Rounding
from brickwork.config import config
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.warn import tell
from brickwork.frontend.captures import Watch, is_described
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.parameters import Kinds
from brickwork.frontend.source import start_of
from brickwork.ir.signature import Signature
from brickwork.pytorch.arguments import as_numbers, explain_mismatch, signature_of_call
from brickwork.pytorch.check import check_operator
from brickwork.pytorch.explain_gradients import Gradient, gradient_of_call, said_of, told_by_user
from brickwork.pytorch.fusion import fused as written_out
from brickwork.pytorch.fusion import fusion_text, may_fuse
from brickwork.pytorch.gate import ArgumentKind, Gate, OnAutograd, call_in_order, thunk_name, thunk_object
from brickwork.pytorch.handle import Handle
from brickwork.pytorch.libtorch import private
from brickwork.pytorch.native import DerivedOperators
from brickwork.pytorch.random_keys import draw_key, with_key
from brickwork.pytorch.register import DEFAULT, Registration, family_name, forget_traces, register
from brickwork.pytorch.schema import KEY, OUT, derive
from brickwork.pytorch.specialise import Specialiser, Tools, complete, place_of
from brickwork.pytorch.stages import BACKWARD, Stage, named_stage, stage_text
from brickwork.pytorch.stats import Specialisation, Stats
from brickwork.pytorch.tensor_devices import at_default_device, device_of, made_like_arguments
from brickwork.pytorch.tune import Tuner, Tuning
from brickwork.pytorch.user_backward import UserBackward
from brickwork.runtime.artifact import Artifact
from brickwork.runtime.compile import Compilation, cached_object, compile_operator
from brickwork.runtime.crash import Attempt, surprises
from brickwork.runtime.signature import signature_text
from brickwork.runtime.traceback import OwnFramesHidden, hide_frames
from brickwork.target.cpu import configured_target
from brickwork.target.target import Target
from brickwork.transform.derivation import Defined
from brickwork.transform.schedule.text import refuse_unreadable

if TYPE_CHECKING:
    from brickwork.pytorch.python_host import PythonHost

_any_requires_grad: Callable[..., bool] = private("_C._any_requires_grad")
_is_grad_enabled = torch.is_grad_enabled

CONSTANT = "constant"
"""The argument of `check` that names arguments of the operator."""
DEVICE = "device"
"""The argument of `warmup`, `inspect` and `explain` that names a device, unless the operator has one of that name."""


class Op(Handle):
    """An operator made from a Python function. Calls go to `torch.ops.<namespace>.<name>`."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        rounding: Rounding = SOURCE,
        fuse: bool = True,
        schedule: str = "",
        kinds: Kinds = (),
    ) -> None:
        """Derive the operator `name` (`ns::name`) from a function and register it.

        `kinds` are the annotations of the parameters that the source gives none.
        """
        functools.update_wrapper(self, function)
        self._rounding, self._schedule, self._given = rounding, schedule, kinds
        with surprises(Attempt(operator=name, loc=start_of(function), function=function)):
            self.definition: Definition = define(function, kinds)
            refuse_unreadable(schedule, self.definition)
        sources = (self.definition.source, *self.definition.helpers.values())
        rules = f"{rounding} fuse={fuse}"
        parts = (self.definition.fingerprint, rules, *((schedule,) if schedule else ()), *map(str, kinds))
        super().__init__(name, parts, tells_all=is_described(sources))
        self._schema = derive(name.partition("::")[2], self.definition)
        self._specialisations: list[Specialisation] = []
        self._tuner = Tuner(
            name, self.definition, rounding, configured_target, self._compile, self._by, self._kinds, schedule
        )
        self._specialiser = Specialiser(self.definition, self._compile, self._note, self._tuner.for_sizes)
        target = configured_target()

        def thunks() -> bytes:
            return cached_object(thunk_name(), lambda: thunk_object(target), target)

        self._thunks = thunks
        python = self.definition.host == "python"
        self.interpreted = config.check == "interpret"
        fuse = fuse and rounding.fused and not self.interpreted  # Inductor's kernels fuse multiply-adds.
        self.fusible = self.definition if fuse and may_fuse(self.definition) else None
        self._tools = Tools(self._compile, thunks, self._note, self.interpreted, fuse)
        self._python_host = self._host_in_python(self._tools) if python else None
        self._watch = Watch(sources if config.warn else ())
        self._outputs = () if self._schema.out is None else self._schema.out.outputs
        self._unusual = bool(self._schema.unsaid or self.definition.given)
        self._register()

    def _connect(self) -> None:
        python = self._python_host is not None or self.interpreted
        if self._python_host is not None:
            self._python_host = self._python_host.named(self.name)
        self._registration: Registration = register(
            self.name, self._schema, self, self._thunks, python=python, alone=not self.left
        )
        self._overload: Any = self._registration.overload(DEFAULT)
        before = vars(self).get("_derivatives")
        family = family_name(self.name, self.kept)
        self._derivatives = DerivedOperators(family, self.kept, self.definition, self._overload, self._tools)
        self._derivatives.replaced = None if before is None else before.replaced
        # What the OpOverload calls. Compilers know the OpOverload alone.
        self._native: Any = getattr(self._overload, "_op", self._overload)
        self._traced: Any = at_default_device(self.definition, self._overload)
        self._placed: Any = at_default_device(self.definition, self._native)
        self._usual = self._watched if self._watch else self._placed
        self._plain: Any = None
        self._out: Any = None if self._schema.out is None else self._registration.overload(OUT)
        self._takes_out = self._outputs == (OUT,) and not self._schema.random

    def leave(self) -> None:
        """Go by the kept name from now on: another definition takes the name over."""
        super().leave()
        self._takes_out = False

    # ------------------------------------------------------------ calls

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Call the operator with the function's arguments.

        Besides, `out=` takes the tensor, or the tuple of tensors, that the results are written into: with the shapes,
        dtypes and device that the results would have. An operator that draws random numbers takes `generator=` (a
        `torch.Generator`) or `key=` (an int, or an int64 tensor of one element): the same key gives the same numbers.
        """
        try:
            try:
                if self._unusual:
                    return self._call_unusually(arguments, named)
                if not named:
                    if not is_dynamo_compiling():
                        return self._direct(*arguments)
                    if self.pending:
                        self.settle()
                    return self._traced(*arguments)
                if self._takes_out and OUT in named:
                    self._out(*arguments, **named)
                    return named[OUT]
                return self._call_by_name(arguments, named)
            except RuntimeError:
                explain_mismatch(self.definition, self._call_signature(), arguments, named, self.definition.given)
                raise
        except Exception as error:
            hide_frames(error)
            raise

    def _call_unusually(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call an operator whose arguments the schema has otherwise: by their parts, or without some defaults."""
        arguments, named = self._flat(arguments, named)
        if self._schema.unsaid:
            given = {item.name for item in self.definition.parameters[: len(arguments)]}
            named = {name: value for name, value in self._schema.unsaid.items() if name not in given} | named
        if named or is_dynamo_compiling():
            return self._call_by_name(arguments, named)
        return self._direct(*arguments)

    def _flat(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with the parts in place of objects."""
        given = self.definition.given
        return (arguments, named) if given is None else given.flat(self.name, arguments, named)

    def _watched(self, *arguments: Any) -> Any:
        """Call an operator that has captured something which may change."""
        if not self._watch.is_quiet():
            self._tell_changes()
        return self._placed(*arguments)

    def _tell_changes(self) -> None:
        """Warn once, at the caller of the operator, of captured names that mean something else by now."""
        changes = self._watch.changes()
        if changes and config.warn:
            self._watch = Watch()
            message = f"{self.name} was decorated before {changes}, and keeps the old value"
            tell(Diagnostic(code="BW401", message=message, loc=self.definition.loc, help="decorate the function again"))

    def _call_by_name(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if self.pending:
            self.settle()
        if not (is_dynamo_compiling() or self._watch.is_quiet()):
            self._tell_changes()
        if self._schema.random:
            named = with_key(self.name, named)
        if OUT not in named or self._out is None:
            return self._traced(*arguments, **named)
        named = dict(named)
        out = named.pop(OUT)
        given = (out,) if self._outputs == (OUT,) else out
        if len(given) != len(self._outputs):
            raise ValueError(f"{self.name} returns {len(self._outputs)} tensors, but `out` has {len(given)}")
        self._out(*arguments, **named, **dict(zip(self._outputs, given, strict=True)))
        return out

    def _call_signature(self) -> inspect.Signature:
        """Return the function's signature with what may be passed besides."""
        signature = self.__signature__
        more = [OUT] if self._outputs else []
        more += [KEY, "generator"] if self._schema.random else []
        named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in more]
        return signature.replace(parameters=[*signature.parameters.values(), *named])

    # ------------------------------------------------------------ what the dispatcher asks

    def miss(self, overload: str, gate: Gate, values: tuple[object, ...]) -> None:
        """Compile for these arguments and put the code in front of a chain of the overload's."""
        self._specialiser.miss(gate, overload, self._kinds(overload), values)

    def native_arguments(self) -> tuple[tuple[ArgumentKind, ...], int] | None:
        """Return the kinds of the arguments, and how many results there are; None without native code for any call."""
        if self._registration.python or self._schema.random:
            return None
        return self._kinds(DEFAULT), self.definition.results

    def gate_of(self, operator: str, answer: OnAutograd) -> Gate:
        """Return a gate of another operator, for code of this one; `answer` serves the calls that no code takes."""

        def miss(values: tuple[object, ...]) -> None:
            self.link(gate, values)

        gate = Gate(operator, self._kinds(DEFAULT), miss, answer, self._thunks(), last="bw_serve")
        return gate

    def link(self, gate: Gate, values: Sequence[object]) -> None:
        """Put the code for these arguments into a gate's chain."""
        self._specialiser.miss(gate, DEFAULT, self._kinds(DEFAULT), values)

    def written(self, arguments: tuple[Any, ...], named: dict[str, Any], original: Callable[[], Any]) -> Any:
        """Return what a call returns, by PyTorch's operators, if it is like what `original` returns."""
        return written_out(self.definition, self.fake(DEFAULT), self._bound(arguments, named)[0], original)

    def fake(self, overload: str) -> Callable[..., Any]:
        """Return the fake implementation of an overload."""
        return self._fakes[overload] if self._python_host is None else self._python_host.fake(overload)

    def run(self, overload: str) -> Callable[..., Any]:
        """Return the implementation of an overload that runs in Python: its host part, or all of it, interpreted."""
        if self._python_host is not None:
            return self._python_host.run(overload)
        room = importlib.import_module("brickwork.pytorch.interpreted")
        signature = functools.partial(self._signature, overload)
        return room.implementation(self.definition, self._registration.overload(overload), signature)

    def differentiate(self, overload: str, values: Sequence[Any]) -> Any:
        """Serve a call that torch wants to differentiate or, of the default overload, to batch."""
        if overload != DEFAULT:
            raise RuntimeError(
                f"{self.name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                "the arguments requires grad."
            )
        if self._python_host is not None and self._derivatives.replaced is None:
            return call_in_order(self._overload, values, self._python_host.run(overload))
        if not (self._watch or self.pending) and self._python_host is None:
            self._plain = self._derivatives.differentiate.plain.function
            self._direct = self._differentiable
        return self._derivatives.differentiate(values)

    def _differentiable(self, *arguments: Any) -> Any:
        """Call an operator of which gradients have been asked for: with a gradient, past the dispatcher."""
        if _any_requires_grad(*arguments) and _is_grad_enabled() and self._registration.behaviour is self:
            function = self._plain(arguments)
            if function is not None:
                return function(*arguments)
        return self._native(*arguments)

    def batch(self, values: Sequence[Any]) -> Any:
        """Serve a call of the default overload over the samples of torch's older vmap."""
        return self._derivatives.differentiate.batch(values)

    def define(self, base: str, suffix: str) -> bool:
        """Register what is derived as `base__suffix`; return whether there is such a thing."""
        return self._derivatives.define(base, suffix)

    def _host_in_python(self, tools: Tools) -> PythonHost:
        room = importlib.import_module("brickwork.pytorch.python_host")
        return room.PythonHost(self.name, self.definition, self._schema, tools)

    def _compile(
        self, definition: Defined, signature: Signature, gpu: Target | None, schedule: str = "", sizes: Sizes = ANY
    ) -> Compilation:
        given = schedule or (self._schedule if definition is self.definition else "")
        host, rounding = configured_target(), self._rounding
        return compile_operator(definition, signature, gpu or host, rounding, host, schedule=given, sizes=sizes)

    def _note(self, signature: Signature, overload: str, made: Compilation) -> None:
        text = signature_text(signature)
        self._specialisations.append(Specialisation(text, overload, made.cached, made.seconds))

    @functools.cached_property
    def _fakes(self) -> dict[str, Callable[..., Any]]:
        room = importlib.import_module("brickwork.pytorch.fake")
        fakes = {DEFAULT: room.fake_default(self.definition)}
        if self._schema.out is not None:
            fakes[OUT] = room.fake_out(self.definition, self._schema.out.outputs)
        return fakes

    def _kinds(self, overload: str) -> tuple[ArgumentKind, ...]:
        found = self._schema.default if overload == DEFAULT else self._schema.out
        assert found is not None, overload  # noqa: S101  # the overload was registered from this schema
        return found.arguments

    def _signature(self, overload: str, values: tuple[object, ...]) -> Signature:
        return signature_of_call(self.definition, self._kinds(overload), values)

    # ------------------------------------------------------------ what the user says and asks

    @overload
    def backward(self, function: Callable[..., Any], /) -> Callable[..., Any]: ...
    @overload
    def backward(
        self, /, *, setup_context: Callable[..., None]
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
    def backward(
        self, function: Callable[..., Any] | None = None, /, *, setup_context: Callable[..., None] | None = None
    ) -> Callable[..., Any]:
        """Replace the derived gradient: `@op.backward`.

        The function takes the arguments of the operator, then the gradient of each tensor that it stores into and of
        each result, and returns a gradient, or None, for each argument. With `setup_context` both are as in
        `torch.library.register_autograd`.
        """

        def replace(backward: Callable[..., Any]) -> Callable[..., Any]:
            self._derivatives.replaced = UserBackward(backward, setup_context)
            forget_traces()
            return backward

        return replace if function is None else replace(function)

    def python(self, /, *arguments: Any, **named: Any) -> Any:
        """Run the function as Python and return what it returns: slow, and the reference for compiled code.

        Elements have the types that compiled code computes with, and random draws are the same for the same key.
        """
        if self._schema.random and named.get(KEY) is None:
            device, generator = device_of((*arguments, *named.values())), named.get("generator")
            if generator is not None or (device is not None and device.type != "cpu"):
                named = {**named, KEY: draw_key(named.pop("generator", None), device=device)}
        with OwnFramesHidden():
            arguments, named = self._flat(arguments, named)
            return self._reference(*arguments, **named)

    @functools.cached_property
    def _reference(self) -> Callable[..., Any]:
        if self._python_host is not None:
            return at_default_device(self.definition, self._python_host.reference)
        room = importlib.import_module("brickwork.frontend.reference")
        return at_default_device(self.definition, made_like_arguments(room.python_function(self.definition)))

    def explain(self, /, *arguments: Any, **named: Any) -> str:
        """Say how each loop runs and why, and which accesses are checked.

        The arguments are those of a call, as in `warmup`, and so is `device=`. Without arguments it tells of the code
        that was compiled last. A topic may stand first: "backward" tells how the gradients are summed, what
        they compute again and what they keep, and then of their loops; "fusion" whether Inductor calls the operator,
        and why; "sharding" on which placements of DTensors it runs.
        """
        with OwnFramesHidden():
            if arguments and isinstance(arguments[0], str):
                return self._explanation(arguments[0], arguments[1:], named)
            artifact = self._artifact(arguments, named)
        if self._python_host is not None:
            return self._python_host.explanation()
        if artifact is None:
            return f"{self.name} is not compiled yet: pass arguments to explain"
        values, out, _ = self._bound(arguments, named) if arguments or named else ([], None, None)
        return said_of(artifact, self._numbers(arguments, named)) + self._tuner.note(values, out)

    def _explanation(self, topic: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
        """Say what is known of a topic for these arguments."""
        if topic == "backward":
            return self._backward_explanation(arguments, named)
        if topic == "fusion":
            return fusion_text(self.definition, self.fusible, self.fake(DEFAULT), self._bound(arguments, named)[0])
        if topic != "sharding":
            raise ValueError(f"there is nothing to explain called {topic!r}; there are: backward, fusion, sharding")
        if self._python_host is not None:
            return "all tensors are Replicate(): the host part runs in Python"
        values = self._bound(arguments, named)[0] + [None] * self._schema.random
        signature = signature_of_call(self.definition, self._kinds(DEFAULT), values, "cpu")
        program = importlib.import_module("brickwork.transform.derive").program_of(self.definition, signature)
        return importlib.import_module("brickwork.analysis.sharding").shardings_text(program)

    def _backward_explanation(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
        if self._derivatives.replaced is not None:
            return told_by_user(self._derivatives.replaced)
        if self._python_host is not None:
            return "PyTorch differentiates the host part, which runs in Python; each piece has a derived gradient"
        return self._gradient(arguments, named).explanation()

    def _gradient(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Gradient:
        """Return the derived gradient of a call."""
        values, _, device = self._bound(arguments, named)
        return gradient_of_call(self._derivatives, self.fake(DEFAULT), values, place_of(values, device))

    def inspect(self, stage: Stage, /, *arguments: Any, **named: Any) -> str:
        """Return one stage of the compilation as text.

        Args:
            stage: "ir", "schedule" (the IR as scheduled), "llvm", "asm"; for GPUs also "device" (the LLVM of kernels),
                "ptx", "sass" (machine code) and "resources" (registers, shared memory, bytes and flops of each kernel).
                "backward ir" and so on are the stages of the derived gradient.
            arguments: The arguments of a call, which is compiled and not run; without any, the last compilation is
                shown.
            named: The same by name, and `device=` as in `warmup`.

        Raises:
            ValueError: There is no such stage, or nothing was compiled yet.
            TypeError: An argument stands where the stage belongs.
        """
        with OwnFramesHidden():
            return self._stage(named_stage(stage, self.name), arguments, named)

    def _stage(self, stage: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
        if stage.startswith(BACKWARD):
            if self._python_host is not None or self._derivatives.replaced is not None:
                raise ValueError(f"{self.name} has no derived gradient: {self._backward_explanation(arguments, named)}")
            gradient, stage = self._gradient(arguments, named), stage.removeprefix(BACKWARD)
            artifact, numbers = gradient.artifact, gradient.numbers
        else:
            artifact, numbers = self._artifact(arguments, named), self._numbers(arguments, named)
        if artifact is None:
            raise ValueError(f"{self.name} is not compiled yet: pass arguments to inspect")
        return stage_text(artifact, stage, numbers, configured_target())

    def warmup(self, /, *arguments: Any, **named: Any) -> None:
        """Compile for arguments like these; nothing is run, but a host part in Python that asks for values, on copies.

        Tensors may be real, meta or fake. Code is made for the device that they are on; `device=` names another one
        ("cpu", "cuda", "cuda:1"), or an architecture of GPUs that need not be here ("sm_90"). From then on calls with
        such arguments compile nothing, so that CUDA graphs can capture them.
        """
        with OwnFramesHidden():
            values, _, device = self._bound(arguments, named)
            artifact = self._artifact(arguments, named)
            for each in self._artifacts() if self._python_host is not None else (artifact,):
                if each is not None:
                    complete(each, place_of(values, device))

    def check(self, /, *arguments: Any, **named: Any) -> None:
        """Test the operator on these arguments, as they are and varied, and print a table of the tests.

        Results are compared with those of `python`, of a second call, of arguments with other strides, and of batches.
        Gradients, second derivatives and tangents are compared with finite differences, in float64. And
        `torch.library.opcheck` runs. `constant=("boxes",)` names arguments that are not differentiated.

        Raises:
            AssertionError: A test has failed; the table says which.
        """
        self.be_registered()
        known = self._flat_signature
        own = CONSTANT in self.__signature__.parameters
        constant = () if own else named.pop(CONSTANT, ())
        arguments, named = self._flat(arguments, named)
        if self.definition.given is not None:
            constant = self.definition.given.names(constant)
        if self._schema.unsaid:
            more = {name: value for name, value in named.items() if name not in known.parameters}
            bound = known.bind(*arguments, **{key: named[key] for key in named.keys() - more.keys()})
            bound.apply_defaults()
            arguments, named = bound.args, bound.kwargs | more
        check_operator(self._overload, self._reference, self.name, arguments, named, constant)

    def tune(self, /, *arguments: Any, **named: Any) -> Tuning:
        """Measure a few schedules on these arguments, and let calls with tensors of these sizes run by the fastest.

        All of them give the same bits, so results stay as they are. What was found is kept beside the cache, for this
        machine, these types and these sizes; other sizes run by the default schedule. Tensors that the operator stores
        into are copied first. For operators with a native host part and tensors on a processor.

        Returns:
            The times of all schedules; printed, it is a table with the chosen one marked.
        """
        with OwnFramesHidden():
            return self._tuned(arguments, named)

    def _tuned(self, arguments: tuple[Any, ...], named: dict[str, Any], measure: Any = None) -> Tuning:
        values, out, device = self._bound(arguments, named)
        self._tuner.refuse(values, out, device)
        self._artifact(arguments, named)
        found = self._tuner.tune([*values, *([0] * self._schema.random)], measure)
        self._specialiser.link_again(self._registration.gates[DEFAULT], found.signature)
        return found

    def _by(self, name: str, schedule: str) -> Op:
        """Return the operator by another schedule, under another name."""
        function, given = cast("Any", self).__wrapped__, self._given
        return Op(name, function, rounding=self._rounding, fuse=False, schedule=schedule, kinds=given)

    def stats(self) -> Stats:
        """Return what was compiled for this operator in this process, how long it took, and what a cache had."""
        return Stats(self.name, tuple(self._specialisations))

    def _artifact(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Artifact | None:
        """Return the code for these arguments, or what was compiled last."""
        if not arguments and not named:
            return next(reversed(self._artifacts()), None)
        self.be_registered()
        values, out, device = self._bound(arguments, named)
        place = place_of(values, device)
        if self._python_host is not None:
            self._python_host.dry_run(values, place)
            return next(reversed(self._artifacts()), None)
        if self._schema.random:
            values.append(None)
        if out is not None:
            values += out if isinstance(out, list | tuple) else [out]
        label = DEFAULT if out is None else OUT
        signature = signature_of_call(self.definition, self._kinds(label), values, place.kind)
        gate = self._registration.gates.get(label) if self._registration.behaviour is self else None
        return self._specialiser.specialise(label, signature, place, gate)

    def _bound(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        """Return the values of the parameters in order, the caller's results, and the device that is named."""
        named = dict(named)
        own = DEVICE in {parameter.name for parameter in self.definition.parameters}
        device = None if own else named.pop(DEVICE, None)
        out = named.pop(OUT, None) if self._schema.out is not None else None
        if self._schema.random:
            named.pop(KEY, None)
        arguments, named = self._flat(arguments, named)
        bound = self._flat_signature.bind(*arguments, **named)
        bound.apply_defaults()
        return [bound.arguments[parameter.name] for parameter in self.definition.parameters], out, device

    def _numbers(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any] | None:
        """Return the arguments as sizes and numbers; None if there are none, or the host part is Python."""
        if self._python_host is not None or not (arguments or named):
            return None
        values = self._bound(arguments, named)[0]
        return [as_numbers(value) for value in values]

    def _artifacts(self) -> list[Artifact]:
        if self._python_host is not None:
            return self._python_host.artifacts()
        return [*self._specialiser.artifacts.values()]

    # ------------------------------------------------------------ what Python asks

    @functools.cached_property
    def __signature__(self) -> inspect.Signature:
        """The function's own signature."""
        return inspect.signature(cast("Any", self).__wrapped__)

    @functools.cached_property
    def _flat_signature(self) -> inspect.Signature:
        """The signature with the parts in place of objects."""
        definition = self.definition
        return self.__signature__ if definition.given is None else inspect.signature(definition.source.function)

    def __repr__(self) -> str:
        """Return the operator's name and place."""
        return f"<brickwork operator {self.name} of {self.definition.loc}>"
