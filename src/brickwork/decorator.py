"""`@bw.op`: an operator of a function, at once or, where parameters have no annotation, at its first call."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, overload

from brickwork.codegen.rounding import rounding_of
from brickwork.frontend.parameters import NO_DEFAULT, Kinds, undeclared
from brickwork.frontend.source import parse
from brickwork.op import Op
from brickwork.pytorch.first_call import kinds_of_call
from brickwork.pytorch.schema import checked_name, own_name
from brickwork.pytorch.stages import named_stage
from brickwork.pytorch.stats import Stats
from brickwork.pytorch.untraced import is_traced, run_by_tracers, trace_again
from brickwork.runtime.traceback import OwnFramesHidden


class UntypedOp(Op):
    """An operator of which the first call says what its arguments are; from then on it is an `Op`.

    Until then `torch.ops` has no such name. A call that fails before there is code leaves open what arguments are.
    Methods may be bound before the first call and called after it.
    """

    def __init__(self, name: str, function: Callable[..., Any], unknown: Sequence[str], **options: Any) -> None:
        """Wait for a call; `unknown` are the parameters without an annotation."""
        parse(function)
        functools.update_wrapper(self, function)
        self.name = name
        self._unknown = tuple(unknown)
        given = inspect.signature(function).parameters.values()
        self._defaults = {item.name: NO_DEFAULT if item.default is item.empty else item.default for item in given}
        self._make = functools.partial(Op.__init__, self, name, function, **options)
        self._making = threading.RLock()
        self._replacement: tuple[Any, Any] | None = None

    @run_by_tracers
    def _settle_kinds(self, kinds: Kinds) -> None:
        """Become an operator of arguments of these kinds."""
        with self._making:
            if type(self) is UntypedOp:
                self._make(kinds=kinds)
                if self._replacement is not None:
                    function, setup = self._replacement
                    Op.backward(self, setup_context=setup)(function) if setup else Op.backward(self, function)
                object.__setattr__(self, "__class__", Op)

    @run_by_tracers
    def _forget_kinds(self) -> None:
        """Wait for another call if there is no code; an overload that somebody holds keeps its kinds."""
        with self._making:
            if type(self) is Op and not self._specialisations:
                twin = object.__new__(Op)
                vars(twin).update(vars(self))
                self._registration.behaviour = twin
                object.__setattr__(self, "__class__", UntypedOp)

    def _ask(self, question: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any], *before: Any) -> Any:
        """Return the answer of an `Op`, made for the arguments of a call."""
        if type(self) is UntypedOp:
            kinds = kinds_of_call(self.name, self._defaults, self._unknown, given, named)
            if is_traced():  # Dynamo of torch 2.11 takes a function like this as a method alone.
                self._settle_kinds(kinds)
                trace_again()
            else:  # Another thread may have settled them meanwhile.
                UntypedOp._settle_kinds(self, kinds)
        try:
            return question(self, *before, *given, **named)
        except Exception:
            UntypedOp._forget_kinds(self)
            raise

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Make the operator for these arguments, and call it."""
        return UntypedOp._ask(self, Op.__call__, arguments, named)

    def python(self, /, *arguments: Any, **named: Any) -> Any:
        """Run the function as Python, as `Op.python`."""
        return UntypedOp._ask(self, Op.python, arguments, named)

    def explain(self, /, *arguments: Any, **named: Any) -> str:
        """Say how each loop runs and why, as `Op.explain`."""
        loop = 1 if arguments and isinstance(arguments[0], str) else 0
        return UntypedOp._ask(self, Op.explain, arguments[loop:], named, *arguments[:loop])

    def inspect(self, stage: Any, /, *arguments: Any, **named: Any) -> str:
        """Return one stage of the compilation as text, as `Op.inspect`."""
        return UntypedOp._ask(self, Op.inspect, arguments, named, named_stage(stage, self.name))

    def warmup(self, /, *arguments: Any, **named: Any) -> None:
        """Compile for arguments like these, as `Op.warmup`."""
        UntypedOp._ask(self, Op.warmup, arguments, named)

    def check(self, /, *arguments: Any, **named: Any) -> None:
        """Test the operator on these arguments, as `Op.check`."""
        UntypedOp._ask(self, Op.check, arguments, named)

    def tune(self, /, *arguments: Any, **named: Any) -> Any:
        """Measure a few schedules on these arguments, as `Op.tune`."""
        return UntypedOp._ask(self, Op.tune, arguments, named)

    def stats(self) -> Stats:
        """Return what was compiled for this operator: nothing yet."""
        return Stats(self.name, ()) if type(self) is UntypedOp else Op.stats(self)

    def backward(self, function: Any = None, /, *, setup_context: Any = None) -> Any:
        """Replace the derived gradient, as `Op.backward`, once the operator is made."""

        def replace(backward: Any) -> Any:
            with self._making:
                if type(self) is not UntypedOp:
                    return Op.backward(self, setup_context=setup_context)(backward)
                self._replacement = (backward, setup_context)
            return backward

        return replace if function is None else replace(function)

    def __repr__(self) -> str:
        """Return the operator's name."""
        return f"<brickwork operator {self.name}, before its first call>"


def _made(name: str, function: Callable[..., Any], **options: Any) -> Op:
    """Return the operator of a function."""
    unknown = undeclared(function)
    return UntypedOp(name, function, unknown, **options) if unknown else Op(name, function, **options)


@overload
def op(name: Callable[..., Any], /) -> Op: ...
@overload
def op(
    name: str | None = None,
    /,
    *,
    fast_math: bool = False,
    fused: bool = True,
    order: str = "",
    fuse: bool = True,
    schedule: str = "",
) -> Callable[[Callable[..., Any]], Op]: ...
def op(
    name: str | Callable[..., Any] | None = None,
    /,
    *,
    fast_math: bool = False,
    fused: bool = True,
    order: str = "",
    fuse: bool = True,
    schedule: str = "",
) -> Op | Callable[[Callable[..., Any]], Op]:
    """Make a PyTorch operator of a Python function with loops: `@bw.op` or `@bw.op("ns::name")`.

    Args:
        name: The operator's name in `torch.ops`, `"ns::name"`. Without one: the function's name, in a namespace made of
            its module's name.
        fast_math: Allow what changes the last digits: reassociation, reciprocals, approximations, no signed zeros.
        fused: Let a product and a sum become one operation, which rounds once. False forbids it: each operation rounds
            by itself, as in Python, also in gradients, and Inductor calls the operator.
        order: `"source"` sums products on GPUs as the source does; else matrix instructions may, in a fixed order.
        fuse: Let Inductor make a pointwise operator a part of its own kernels, instead of calling it.
        schedule: How processors run the loops, for experts: a verb a line, such as `bind(i, pool)`. Nests that it does
            not name, gradients and GPUs keep what is chosen for them. `inspect("schedule", ...)` prints the schedule.

    Returns:
        The operator, which is called as the function is. Code is made at the first call with new argument types.
        Where parameters have no annotation, the first call also says which of them are tensors, ints and so on.

    Raises:
        CompileError: The function breaks a rule of the language, or the schedule cannot be read; the message shows the
            line and what to write instead. A schedule that is illegal is refused at the first call.
    """
    with OwnFramesHidden():
        if callable(name):
            return _made(own_name(name), name)
        if name is not None and not isinstance(cast("object", name), str):
            raise TypeError(f"bw.op takes a name or a function, not {name!r}")
        chosen, rounding = checked_name(name) if name else None, rounding_of(order, fast_math=fast_math, fused=fused)

    def decorate(function: Callable[..., Any]) -> Op:
        with OwnFramesHidden():
            return _made(chosen or own_name(function), function, rounding=rounding, fuse=fuse, schedule=schedule)

    return decorate
