"""`bw.override`: a callable in place of an operator's kernels, for a while or for good.

The kernels of one device are replaced and nothing else: autograd, vmap, autocast and fakes stand in front of them, and
stay. What the callable does not take goes on to the kernel that was there before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, cast

import torch

from brickwork.config import config
from brickwork.diagnostics.errors import DeviceError
from brickwork.diagnostics.warn import tell
from brickwork.pytorch.overrides.kernel_stack import Kernel
from brickwork.pytorch.overrides.overloads import Member, family
from brickwork.pytorch.overrides.replacement import Callee, Replacement
from brickwork.pytorch.register import (
    kernel_of,
    lock,
    native_front,
    overriding_layers,
    registered,
    replace,
    restore,
)
from brickwork.pytorch.untraced import untraced
from brickwork.runtime.traceback import OwnFramesHidden

_KEYS = {"cpu": "CPU", "cuda": "CUDA"}


class override:  # noqa: N801  # it reads as a function, and as a context manager
    """A callable in place of an operator of PyTorch's, until `remove()` or the end of the `with`.

    `sin_(x)` and `sin(x, out=y)` are served by it, too. Calls that it does not take go on to the original: those with
    arguments beyond its signature, with types that a brickwork operator cannot be compiled for, and those that it
    answers with NotImplemented. Inside the callable the operator means the original. The override holds for all
    threads. A warning says that it took effect, once for each line of yours; `active()` lists what is in place.

    Args:
        name: An operator (`"aten::sin"`) or one of its overloads (`"aten::add.Tensor"`).
        function: The callable; it gets the operator's arguments, without those that have their default values. Its
            results must have the shape, dtype and device of the original's.
        device: "cpu", "cuda", or None for all kinds that are here.

    Raises:
        TypeError: `name` is no text, or `function` cannot be called.
        ValueError: There is no such operator, or it is an operator of brickwork, or `device` is not one of these.
        DeviceError: `device` is "cuda" and there is no GPU.
    """

    @untraced
    def __init__(self, name: str, function: Callable[..., Any], /, *, device: str | torch.device | None = None) -> None:
        """Put `function` in place."""
        with OwnFramesHidden():
            keys = _keys(device)
            if not isinstance(cast("object", name), str):
                raise TypeError(f'bw.override takes the name of an operator, such as "aten::sin", not {name!r}')
            if not callable(function):
                raise TypeError(f"bw.override takes a callable in place of {name}, not {function!r}")
            if registered(name.partition(".")[0]) is not None:
                raise ValueError(f"{name} is an operator of brickwork: define it again instead")
            members = [(key, member) for key in keys for member in family(name, key)]
        self.name = name
        self.function = function
        self._lock = threading.Lock()
        self._active: list[tuple[Kernel, Replacement]] = []
        try:
            with lock():
                self._put_in_place(Callee(name, function, self), members)
            self._say_so()
        except BaseException:
            self.remove()
            raise

    @classmethod
    def active(cls) -> tuple[Self, ...]:
        """Return the overrides that are in place, each as the handle that `remove`s it.

        Of two overrides of one operator the newer, which is asked first, comes last.
        """
        owners = [layer.owner for layer in overriding_layers()]
        return tuple(dict.fromkeys(owner for owner in owners if isinstance(owner, cls)))

    def _put_in_place(self, callee: Callee, members: list[tuple[str, Member]]) -> None:
        functions: dict[tuple[str, str], Kernel] = {}
        for key, member in members:
            kernel = kernel_of(member.overload, key)
            function = functions.setdefault((member.function.name(), key), kernel)
            front = native_front(callee.function, member, key)
            layer = Replacement(callee, member, kernel, function, front)
            replace(kernel, layer, front)
            self._active.append((kernel, layer))

    def _say_so(self) -> None:
        """Warn, as torch does of kernels that are registered again, that the operator runs something else now."""
        if config.warn:
            devices = " and ".join(dict.fromkeys(kernel.key.lower() for kernel, _ in self._active))
            called = getattr(self.function, "name", None) or getattr(self.function, "__name__", self.function)
            tell(f"{self.name} on {devices} now runs {called}, until this override is removed")

    @untraced
    def remove(self) -> None:
        """Put back what was there before; further calls do nothing."""
        with self._lock:
            while self._active:
                restore(*self._active.pop())

    @untraced
    def __enter__(self) -> Self:
        """Return the handle; the callable is in place already."""
        return self

    @untraced
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put back what was there before."""
        self.remove()

    def __repr__(self) -> str:
        """Say what is overridden."""
        keys = ", ".join(f"{member.overload.name()} at {member.key}" for member, _ in self._active)
        return f"<override of {keys or f'{self.name}, removed'}>"


def _keys(device: str | torch.device | None) -> list[str]:
    """Return the dispatch keys of a kind of device, or of all that are here."""
    if device is None:
        return ["CPU", "CUDA"] if torch.cuda.is_available() else ["CPU"]
    chosen = torch.device(device)
    if chosen.type not in _KEYS:
        raise ValueError(f"operators are overridden on cpu and cuda, not on {chosen.type}")
    if cast("int | None", chosen.index) is not None:
        raise ValueError(f"an operator is overridden on all GPUs: write device={chosen.type!r}, not {str(device)!r}")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise DeviceError("there is no GPU here for device='cuda': leave `device` out, or write device='cpu'")
    return [_KEYS[chosen.type]]
