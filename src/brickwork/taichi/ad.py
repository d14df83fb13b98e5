"""`ti.ad`: tapes, forward mode, and gradients that the user writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

import torch

from brickwork.taichi import state
from brickwork.taichi.cells import Cells
from brickwork.taichi.gradients import Launch, add_gradients, tangents_after


class Tape:
    """Records kernels in its body, and runs their gradients in reverse order when it ends: `with ti.ad.Tape(loss)`."""

    def __init__(
        self, loss: Any = None, clear_gradients: bool = True, validation: bool = False, grad_check: Any = None
    ) -> None:
        """Take what is differentiated; `validation` and `grad_check` have no effect."""
        del validation, grad_check
        self.loss, self.clear_gradients = loss, clear_gradients
        self.calls: list[Callable[[], None]] = []
        self.entered = self.evaluated = False
        self._before: Any = None

    def __enter__(self) -> Self:
        """Begin to record."""
        assert not self.entered, "Tape can be entered only once."
        self.entered = True
        if self.loss is not None:
            _check_loss(self.loss)
            if self.clear_gradients:
                clear_all_gradients()
            if isinstance(self.loss, Cells):
                self.loss.fill(0.0)
            else:
                with torch.no_grad():
                    self.loss.fill_(0.0)
        self._before = state.set_recorder(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Run the gradients."""
        state.set_recorder(self._before)
        if self.loss is not None and kind is None:
            self.grad()

    def before(self, launch: Launch) -> Launch:
        """Note a call that is about to run."""
        return launch.as_it_is()

    def after(self, note: Launch) -> None:
        """Record a call that has run."""
        self.calls.append(lambda: add_gradients(note))

    def grad(self) -> None:
        """Run the gradients of all that was recorded."""
        assert self.entered, "Before evaluating gradients tape must be entered."
        assert not self.evaluated, "Gradients of grad can be evaluated only once."
        if isinstance(self.loss, Cells):
            cast("Any", self.loss).grad.fill(1.0)
        elif self.loss is not None:
            self.loss.grad = torch.ones_like(self.loss)
        before = state.set_recorder(None)
        try:
            for call in reversed(self.calls):
                call()
        finally:
            state.set_recorder(before)
        self.evaluated = True


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, torch.Tensor):
        if loss.storage.numel() != 1 or (loss.shape and hasattr(loss, "parent_node")):
            what = "a 0-D field, i.e. scalar" if hasattr(loss, "parent_node") else "an ndarray with only one element"
            raise RuntimeError(f"The loss of `Tape` must be {what}")
        if loss.grad is None or loss.grad.data is None:
            raise RuntimeError(
                "Gradients of loss are not allocated, please use ti.field(..., needs_grad=True) for all fields that are"
                " required by autodiff, and needs_grad=True for all ndarrays that are required by autodiff."
            )
    else:
        if loss.numel() != 1:
            raise RuntimeError("The loss of `Tape` must be a tensor only contains one element")
        if not loss.requires_grad:
            raise RuntimeError(
                "Gradients of loss are not allocated, please set requires_grad=True for all tensors that are required"
                " by autodiff."
            )


def clear_all_gradients() -> None:
    """Set the gradients of all fields to zero."""
    for each in state.adjoints():
        if each.data is not None:
            each.data.zero_()


class FwdMode:
    """Computes tangents beside what kernels in its body compute: `with ti.ad.FwdMode(loss, param, seed)`."""

    def __init__(self, loss: Any, param: Any, seed: Any = None, clear_gradients: bool = True) -> None:
        """Take the fields whose tangents are wanted, and the one that moves, by `seed`."""
        self.loss, self.param, self.seed, self.clear_gradients = loss, param, seed, clear_gradients
        self.entered = False
        self._before: Any = None

    def __enter__(self) -> Self:
        """Set the tangents of the parameter."""
        assert not self.entered, "Forward mode manager can be entered only once."
        self.entered = True
        count = self.param.storage.numel()
        if not self.seed:
            if count != 1:
                raise RuntimeError("`seed` is not set for non 0-D field, please specify.")
            self.seed = [1.0]
        assert len(self.seed) == count
        if self.clear_gradients:
            for each in state.duals():
                if each.data is not None:
                    each.data.zero_()
        storage = self.param.dual.storage
        storage.copy_(torch.tensor(self.seed, dtype=storage.dtype).reshape(storage.shape))
        self._before = state.set_recorder(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Clear the tangents of the parameter."""
        state.set_recorder(self._before)
        self.param.dual.fill(0)

    def before(self, launch: Launch) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Compute the tangents of a call that is about to run."""
        return tangents_after(launch)

    def after(self, note: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Keep the tangents of a call that has run."""
        for place, tangent in note:
            place.copy_(tangent)


class Replaced:
    """A Python function whose gradient the user writes."""

    def __init__(self, function: Callable[..., Any], gradient: Callable[..., Any] | None) -> None:
        """Take the function, and the gradient if it is known."""
        self.function, self.grad = function, gradient
        self.__name__ = getattr(function, "__name__", "function")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the method of an object."""
        return self if instance is None else BoundReplaced(self, instance)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the function; a tape notes it alone, and nothing that it runs."""
        tape = state.set_recorder(None)
        try:
            found = self.function(*args, **named)
        finally:
            state.set_recorder(tape)
        if isinstance(tape, Tape):
            tape.calls.append(lambda: self.gradient(*args, **named))
        return found

    def gradient(self, *args: Any, **named: Any) -> None:
        """Run the gradient."""
        if self.grad is not None:
            self.grad(*args, **named)


class BoundReplaced:
    """Such a function of an object."""

    def __init__(self, replaced: Replaced, owner: Any) -> None:
        """Keep both."""
        self.replaced, self.owner = replaced, owner

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the function."""
        return self.replaced(self.owner, *args, **named)

    def grad(self, *args: Any, **named: Any) -> None:
        """Run the gradient."""
        self.replaced.gradient(self.owner, *args, **named)


def grad_replaced(func: Callable[..., Any]) -> Replaced:
    """Let the user write the gradient of a Python function: `@ti.ad.grad_replaced`, then `@ti.ad.grad_for(f)`."""
    return Replaced(func, None)


def grad_for(primal: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function the gradient of another one."""

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        if not hasattr(primal, "grad"):
            raise RuntimeError(f"Primal function `{primal.__name__}` must be decorated by ti.ad.grad_replaced")
        if primal.grad is not None:
            raise RuntimeError("Primal function must be a **python** function instead of a taichi kernel.")
        primal.grad = func
        return func

    return decorator


def no_grad(func: Callable[..., Any]) -> Replaced:
    """Leave a Python function out of gradients: `@ti.ad.no_grad`."""

    def nothing(*_: Any, **__: Any) -> None:
        """Add nothing."""

    return Replaced(func, nothing)


__all__ = ["FwdMode", "Tape", "clear_all_gradients", "grad_for", "grad_replaced", "no_grad"]
