"""`bw.triton_op`: a Python function that launches kernels, of Triton or of anything else, as an operator.

On CPUs it runs where Triton's interpreter does, which takes tensors of any device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from brickwork.pytorch.declared_schema import Dtypes, declared, picker
from brickwork.pytorch.launchers.launched_op import LaunchedOp
from brickwork.runtime.traceback import OwnFramesHidden


class TritonOp(LaunchedOp):
    """An operator made of a function that launches kernels."""

    devices = ("CPU", "CUDA")

    def __init__(
        self,
        schema: str,
        launcher: Callable[..., Any],
        *,
        out: Callable[..., Any] | None,
        contiguous: bool | Collection[str],
        dtypes: Dtypes | None,
    ) -> None:
        """Take what `triton_op` is given."""
        super().__init__(declared(schema), out, contiguous=contiguous, dtypes=dtypes)
        self._launcher, self._for_launcher = launcher, picker("launcher", launcher, self.declared)
        self._register()

    def _start(self, values: Sequence[Any], results: tuple[Any, ...], index: int) -> None:
        given = self._for_launcher((*values, *results))
        if index == -1 or torch.cuda.current_device() == index:
            returned = self._launcher(*given)
        else:
            with torch.cuda.device(index):
                returned = self._launcher(*given)
        if returned is not None:
            raise TypeError(
                f"{self.name}: the launcher fills the results that `out` made, and returns nothing; it returned"
                f" {type(returned).__name__}"
            )

    def _takes_cpu(self) -> bool:
        return _interprets()

    def _not_here(self, device: torch.device) -> str:
        why = "; Triton's interpreter, TRITON_INTERPRET=1 in the environment, runs its kernels on CPUs"
        return super()._not_here(device) + (why if device.type == "cpu" else "")


def _interprets() -> bool:
    """Whether Triton runs kernels in its interpreter; asked of Triton, which may not be here."""
    knobs = getattr(sys.modules.get("triton"), "knobs", None)
    return bool(knobs is not None and knobs.runtime.interpret)


def triton_op(
    schema: str,
    launcher: Callable[..., Any],
    *,
    out: Callable[..., Any] | None = None,
    contiguous: bool | Collection[str] = False,
    dtypes: Dtypes | None = None,
) -> TritonOp:
    """Make an operator of a function that launches Triton kernels.

    It runs on GPUs; where Triton's interpreter runs the kernels (`TRITON_INTERPRET=1`), on CPUs too.

    Args:
        schema: Name, arguments and results, as in `torch.library.define`: `"ns::scale(Tensor x, float a) -> Tensor"`.
        launcher: Launches the kernels, which fill the results. It gets those arguments and results that its parameters
            name, while their GPU is the current one.
        out: Returns the results as new tensors; it gets those arguments that its parameters name.
        contiguous: Which tensors have to be contiguous: all, none, or those named.
        dtypes: Which element types arguments may have.

    Raises:
        ValueError: The schema cannot be read, or `contiguous` or `dtypes` names no tensor of it.
        CompileError: `launcher` or `out` has a parameter that the schema lacks.
    """
    with OwnFramesHidden():
        return TritonOp(schema, launcher, out=out, contiguous=contiguous, dtypes=dtypes)
