"""Functions that Dynamo leaves alone: it calls them, with all that they call, as they are."""

from __future__ import annotations

from typing import Any, TypeVar

from brickwork.pytorch.libtorch import private

_Function = TypeVar("_Function")


def untraced(function: _Function) -> _Function:
    """Mark a function. Unlike `torch.compiler.disable` this loads nothing, and costs nothing when it is called."""
    marked: Any = function
    frames = private("_C._dynamo.eval_frame")
    skip = frames._FrameAction.SKIP  # noqa: SLF001  # the names that torch gives them
    frames.set_code_exec_strategy(marked.__code__, frames._FrameExecStrategy(skip, skip))  # noqa: SLF001  # as above
    marked._torchdynamo_disable = True  # noqa: SLF001  # what tells Dynamo not to look inside
    marked._torchdynamo_disable_msg = "it changes PyTorch's dispatcher, or is called by it"  # noqa: SLF001  # as above
    return function
