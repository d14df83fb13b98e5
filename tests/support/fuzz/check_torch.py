"""What must hold of every differentiable case as an operator: torch's own checks of gradients, and of samples.

The case is registered, compiled and called as any operator. `gradcheck` and `gradgradcheck` compare its gradients with
differences in every direction; under `torch.func.vmap`, it and its gradients are as those of each sample. Where a
difference depends on the side that it is taken from, the case is at a corner, and what was found there does not count.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch.autograd.gradcheck import GradcheckError

import brickwork as bw
from brickwork.config import config
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition, define
from support.fuzz.case import Case
from support.fuzz.check import FoundError
from support.fuzz.execute import FAILURES, with_objects
from support.gpu import moved

STEP = 1e-6
NEAR = 1e-2
"""How close differences to either side are where a function has no corner, relative to their size."""
LARGE = 1e5
"""Values beyond this are not compared: the differences have no digits left."""
SAMPLES = 3
Function = Callable[..., tuple[torch.Tensor, ...]]


class TooSlowError(BaseException):
    """A check took longer than a case may; no exception, as nothing may catch it on its way."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one case is checked, in seconds of the processor: what is not done by then is given up, not failed."""

    each: int = 30
    """For each check."""
    second: float = 10.0
    """Second derivatives are left out if the first ones kept the processor busy for longer."""


def examine_through_torch(case: Case, folder: Path, device: str = "cpu", limits: Limits = Limits()) -> Counter[str]:
    """Check the gradients of a case as an operator; return what was seen, or raise FoundError."""
    seen: Counter[str] = Counter(programs=1)
    with config.override(cache_size=0):
        try:
            function = Generated(case, define(case.function(folder)), device)
            with at_most(limits.each):
                outputs = function(*function.inputs)
                settle(device)
        except CompileError as error:
            seen[f"refused {error.diagnostics[0].code}"] += 1
        except FAILURES as error:
            seen[f"primal fails with {type(error).__name__}"] += 1
        except TooSlowError:
            seen["primal too slow"] += 1
        else:
            _derivatives(case, function, outputs, device, limits, seen)
    return seen


def _derivatives(
    case: Case,
    function: Generated,
    outputs: Sequence[torch.Tensor],
    device: str,
    limits: Limits,
    seen: Counter[str],
) -> None:
    if not all(item.detach().abs().max() < LARGE for item in outputs if item.numel()):
        seen["primal not small"] += 1
        return
    if not any(item.requires_grad and item.numel() for item in outputs):
        seen["nothing to differentiate"] += 1
        return
    inputs, begin = function.inputs, time.process_time()
    first = _Check("gradcheck", device, limits.each, seen)
    if not first.run(lambda: first_order(function, inputs, tangents=case.seed % 2 == 0), function, inputs):
        return
    if case.seed % 2:
        samples = _Check("vmap", device, limits.each, seen)
        samples.run(lambda: over_samples(case, function), function, inputs)
    if time.process_time() - begin > limits.second:
        seen["gradgradcheck left out"] += 1
        return
    second = _Check("gradgradcheck", device, limits.each, seen)
    gradient, given = gradient_of(function, inputs)
    second.run(lambda: torch.autograd.gradgradcheck(function, inputs, nondet_tol=1e-9), gradient, given)


@dataclass(frozen=True, slots=True)
class _Check:
    """One check of a case: passed, a finding, at a corner, refused or given up."""

    name: str
    device: str
    seconds: int
    seen: Counter[str]

    def run(self, check: Callable[[], object], function: Function, inputs: Sequence[torch.Tensor]) -> bool:
        """Run the check; return whether it passed. `function` is what it takes differences of."""
        try:
            with at_most(self.seconds):
                check()
                settle(self.device)
        except CompileError as error:
            self.seen[f"{self.name} refused {error.diagnostics[0].code}"] += 1
        except TooSlowError:
            self.seen[f"{self.name} too slow"] += 1
        except (GradcheckError, AssertionError) as error:
            if is_smooth(function, inputs):
                raise FoundError(f"{self.name} fails", str(error)) from None
            self.seen[f"{self.name} at a corner"] += 1
        except Exception as error:
            end_if_lost(self.device)
            raise FoundError(f"{self.name} {type(error).__name__}", f"{type(error).__name__}: {error}") from None
        else:
            self.seen[f"{self.name} passed"] += 1
            return True
        return False


# ---------------------------------------------------------------- the checks


def first_order(function: Function, inputs: Sequence[torch.Tensor], *, tangents: bool) -> bool:
    """Check gradients, and tangents if asked for."""
    return torch.autograd.gradcheck(function, inputs, nondet_tol=1e-9, check_forward_ad=tangents)


def over_samples(case: Case, function: Generated) -> None:
    """Compare calls over samples, of the operator and of its gradients, with a loop; any axis may count samples.

    What is written differs between samples, as torch asks for.
    """
    source, inputs = random.Random(f"samples {case.seed}"), function.inputs
    dims = [
        source.choice((*range(item.ndim + 1), *(() if place in function.written else (None,))))
        for place, item in enumerate(inputs)
    ]
    if all(dim is None for dim in dims):
        dims[0] = 0
    pairs = list(zip(inputs, dims, strict=True))
    given = [item.detach() if dim is None else _stacked(item.detach(), dim, source) for item, dim in pairs]

    def gradients(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs, back = cast("tuple[Any, Any]", torch.func.vjp(function, *tensors))
        return back(tuple(map(torch.ones_like, outputs)))

    for name, each in (("values", function), ("gradients", gradients)):
        found = torch.func.vmap(each, in_dims=tuple(dims))(*given)
        loop = [
            each(*(item if dim is None else item.select(dim, at) for item, dim in zip(given, dims, strict=True)))
            for at in range(SAMPLES)
        ]
        for one, others in zip(found, zip(*loop, strict=True), strict=True):
            torch.testing.assert_close(
                one, torch.stack(others), rtol=1e-9, atol=1e-9, equal_nan=True, msg=lambda text: f"{name}: {text}"
            )


def _stacked(item: torch.Tensor, dim: int, source: random.Random) -> torch.Tensor:
    factors = [1.0, *(source.uniform(0.5, 1.5) for _ in range(SAMPLES - 1))]
    return torch.stack([item * factor for factor in factors], dim)


# ---------------------------------------------------------------- the function


class Generated:
    """A case as a function of its float tensors that writes none of them; `inputs` are the case's own.

    It returns the tensors that the case writes, then its float results.
    """

    def __init__(self, case: Case, definition: Definition, device: str) -> None:
        """Register the operator, and make its arguments."""
        digest = hashlib.sha256(case.source.encode()).hexdigest()[:16]
        self._operator = with_objects(definition, bw.op(f"fuzz::program_{digest}")(definition.source.function))
        self._arguments = moved(case.make(), device)
        self._floats = [place for place, item in enumerate(self._arguments) if is_float(item)]
        names = [definition.parameters[place].name for place in self._floats]
        self.written = [place for place, name in enumerate(names) if name in definition.mutated]
        self.inputs = [self._arguments[place].detach().requires_grad_() for place in self._floats]

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the operator."""
        given = [_laid_out(item) if place in self.written else item for place, item in enumerate(tensors)]
        values = [*self._arguments]
        for place, tensor in zip(self._floats, given, strict=True):
            values[place] = tensor
        returned = self._operator(*values)
        results = cast("tuple[Any, ...]", returned if isinstance(returned, tuple) else (returned,))
        return tuple(item for item in (*(given[place] for place in self.written), *results) if is_float(item))


def is_float(item: Any) -> bool:
    """Whether an argument or result is a tensor of floats."""
    return isinstance(item, torch.Tensor) and item.is_floating_point()


def _laid_out(tensor: torch.Tensor) -> torch.Tensor:
    """Return a differentiable copy of the same layout."""
    return tensor.new_empty_strided(tensor.shape, tensor.stride()).copy_(tensor)


def gradient_of(function: Function, inputs: Sequence[torch.Tensor]) -> tuple[Function, list[torch.Tensor]]:
    """Return the gradients of a function, as a function of its inputs and the gradients of its outputs; and those."""
    count = len(inputs)
    source = torch.Generator().manual_seed(0)
    outputs = function(*inputs)
    weights = [torch.randn(item.shape, generator=source, dtype=item.dtype).to(item.device) for item in outputs]

    def gradient(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = [item.detach().requires_grad_() for item in tensors[:count]]
        pairs = [pair for pair in zip(function(*values), tensors[count:], strict=True) if pair[0].requires_grad]
        ones, others = [one for one, _ in pairs], [other for _, other in pairs]
        found = cast("Sequence[Any]", torch.autograd.grad(ones, values, others, allow_unused=True))
        return tuple(item for item in found if item is not None)

    return gradient, [*(item.detach() for item in inputs), *weights]


# ---------------------------------------------------------------- corners, time and devices


def is_smooth(function: Function, inputs: Sequence[torch.Tensor]) -> bool:
    """Whether differences are the same to either side and for a shorter step, of every element."""
    tensors = [item.detach() for item in inputs]
    middle = _flat(function(*tensors))
    if not (middle.abs() < LARGE).all():
        return False
    for place, tensor in enumerate(tensors):
        for at in range(tensor.numel()):
            found = [
                (_flat(function(*_moved(tensors, place, at, step))) - middle) / step for step in (STEP, -STEP, STEP / 8)
            ]
            scale = 1 + found[0].abs()
            if not all(((found[0] - other).abs() <= NEAR * scale).all() for other in found[1:]):
                return False
    return True


def _moved(tensors: Sequence[torch.Tensor], place: int, at: int, step: float) -> list[torch.Tensor]:
    changed = tensors[place].clone()
    changed[torch.unravel_index(torch.tensor(at), changed.shape)] += step
    return [*tensors[:place], changed, *tensors[place + 1 :]]


def _flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.cat([item.detach().flatten().cpu() for item in tensors])


@contextmanager
def at_most(seconds: int) -> Generator[None]:
    """Raise TooSlowError in what takes longer; where it cannot be interrupted, when it returns."""

    def stop(number: int, frame: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def settle(device: str) -> None:
    """Wait for what runs on a device, and raise what went wrong there."""
    if device != "cpu":
        bw.check_errors()
        torch.cuda.synchronize()


def end_if_lost(device: str) -> None:
    """End the process if its context of a GPU is lost: nothing that it found from then on would be true."""
    if device == "cpu":
        return
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        os._exit(3)
