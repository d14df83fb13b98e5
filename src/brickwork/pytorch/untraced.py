"""Functions that Dynamo does not look into: it leaves them to be called, or calls them while it traces."""

from __future__ import annotations

from typing import Any, TypeVar

from torch.compiler import is_dynamo_compiling

from brickwork.pytorch.libtorch import private

_Function = TypeVar("_Function")
is_traced = is_dynamo_compiling
"""Whether Dynamo traces the call, which it knows of this function alone."""


def untraced(function: _Function) -> _Function:
    """Mark a function. Unlike `torch.compiler.disable` this loads nothing, and costs nothing when it is called."""
    marked: Any = function
    frames = private("_C._dynamo.eval_frame")
    skip = frames._FrameAction.SKIP  # noqa: SLF001  # the names that torch gives them
    frames.set_code_exec_strategy(marked.__code__, frames._FrameExecStrategy(skip, skip))  # noqa: SLF001  # as above
    marked._torchdynamo_disable = True  # noqa: SLF001  # what tells Dynamo not to look inside
    marked._torchdynamo_disable_msg = "it changes PyTorch's dispatcher, or is called by it"  # noqa: SLF001  # as above
    return function


def run_by_tracers(function: _Function) -> _Function:
    """Mark a function that Dynamo calls while it traces, as `torch.compiler.assume_constant_result`, which loads it."""
    marked: Any = function
    marked._dynamo_marked_constant = True  # noqa: SLF001  # the name that torch gives it
    return function


@run_by_tracers
def trace_again() -> None:
    """Let Dynamo, which traces this, begin anew: what it has traced has become an object of another class meanwhile.

    Its log of calls that may break the graph would not fit the next trace.
    """
    private("_dynamo.symbolic_convert").InstructionTranslator.current_tx().speculation_log.clear()
    raise private("_dynamo.exc").RestartAnalysis("an operator knows its arguments now")
