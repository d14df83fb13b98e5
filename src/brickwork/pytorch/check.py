"""Checks of an operator on real arguments: results, gradients, batches, and PyTorch's own `opcheck`, as a table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch

from brickwork.diagnostics.errors import CompileError
from brickwork.pytorch.devices import check_errors
from brickwork.pytorch.dtypes import has_gradient
from brickwork.pytorch.gate import call_in_order, schema_arguments
from brickwork.pytorch.random_keys import draw_key
from brickwork.pytorch.register import in_order
from brickwork.pytorch.schema import KEY
from brickwork.pytorch.tensor_devices import device_of, tensors_of
from brickwork.records import dataclass

TOLERANCES = {
    torch.float16: 1e-3,
    torch.bfloat16: 1e-2,
    torch.float32: 1e-5,
    torch.float64: 1e-12,
    torch.complex64: 1e-5,
    torch.complex128: 1e-12,
}
"""How far results may differ, relative to their size, by dtype: compiled code may contract a*b+c."""

VALUE_OF_SAMPLES = "calling .item() on a Tensor"
"""What PyTorch says under `vmap` of a host part that makes a number of an element, such as a size."""


class _SkippedError(Exception):
    """A check that says nothing of this operator on these arguments; the message says why."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator and arguments to check it on; `values` are those in the order of its schema, with a random key."""

    name: str
    overload: Any
    reference: Callable[..., Any]
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    values: tuple[Any, ...]
    constant: frozenset[str] = frozenset()
    """Arguments that are not differentiated."""

    def outputs(self, values: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """Call the operator on copies; return what it stores into, then its results."""
        given = [_copy(value) for value in values]
        results = call_in_order(self.overload, given)
        pairs = zip(given, schema_arguments(self.overload), strict=True)
        written = [value for value, each in pairs if each.alias_info is not None and each.alias_info.is_write]
        return (*tensors_of(written), *tensors_of([results]))


def check_operator(
    operator: Any,
    reference: Callable[..., Any],
    name: str,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    constant: Sequence[str] = (),
) -> None:
    """Check an operator on these arguments and print a table of what was found; AssertionError if a check failed.

    `constant` are the names of arguments that are not differentiated.
    The reference runs on the CPU, on copies; an operator that draws random numbers draws the same ones in each call.
    """
    parameters = schema_arguments(operator)
    device = device_of((*arguments, *named.values()))
    if any(each.name == KEY for each in parameters) and named.get(KEY) is None:
        named = {**named, KEY: draw_key(device=device)}
    values = in_order(parameters, tuple(arguments), dict(named))
    known = [each.name for each in parameters]
    for each in constant:
        if each not in known:
            raise ValueError(f"{name} has no argument {each!r} to hold constant: it has {', '.join(known)}")
    subject = Subject(name, operator, reference, tuple(arguments), named, values, frozenset(constant))
    width = max(map(len, CHECKS))
    failures: list[str] = []
    for title, check in CHECKS.items():
        verdict = "passed"
        try:
            check(subject)
        except _SkippedError as reason:
            verdict = f"skipped: {reason}"
        except Exception as error:  # noqa: BLE001  # whatever a check raises is what it has found
            verdict = "FAILED"
            failures.append(f"{title}: {type(error).__name__}: {error}")
        sys.stdout.write(f"{name}  {title:{width}}  {verdict}\n")
    if failures:
        raise AssertionError("\n".join((f"{name} fails {len(failures)} of {len(CHECKS)} checks", *failures)))


# ---------------------------------------------------------------- the checks


def _reference(subject: Subject) -> None:
    """Compare with the body as Python."""
    ours = [_copy(argument) for argument in subject.arguments]
    theirs = [_on_cpu(_copy(argument)) for argument in subject.arguments]
    result = subject.overload(*ours, **subject.named)
    expected = subject.reference(*theirs, **{key: _on_cpu(value) for key, value in subject.named.items()})
    check_errors()
    _compare(subject.name, "result", result, expected)
    _compare(subject.name, "arguments after the call", ours, theirs)


def _opcheck(subject: Subject) -> None:
    """Run PyTorch's own check, but for the comparison of results that are NaN, which it takes to differ."""
    arguments = tuple(_copy(argument) for argument in subject.arguments)
    undefined = any(bool(result.isnan().any()) for result in subject.outputs(subject.values))
    options = {"test_utils": WITHOUT_RESULTS} if undefined else {}
    cast("Any", torch.library).opcheck(subject.overload, arguments, dict(subject.named), **options)


def _repeated(subject: Subject) -> None:
    """Compare two calls bit by bit."""
    for one, other in zip(subject.outputs(subject.values), subject.outputs(subject.values), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def _strides(subject: Subject) -> None:
    """Compare with a call on tensors that are the same but lie otherwise in memory."""
    spread = [_spread(value) for value in subject.values]
    if not any(tensor.dim() and tensor.numel() > 1 for tensor in tensors_of(spread)):
        raise _SkippedError("no argument has elements that could lie otherwise")
    _compare(subject.name, "result for other strides", subject.outputs(spread), subject.outputs(subject.values))


def _gradcheck(subject: Subject) -> None:
    """Compare gradients with differences of results, also where gradients of some results are not there."""
    _differentiated(subject, partial(torch.autograd.gradcheck, fast_mode=True))


def _gradgradcheck(subject: Subject) -> None:
    """Compare gradients of gradients with differences of gradients."""
    _differentiated(subject, partial(torch.autograd.gradgradcheck, fast_mode=True, check_undefined_grad=False))


def _forward_mode(subject: Subject) -> None:
    """Compare tangents with differences of results.

    Tangents of all inputs: each set of inputs without one would have code of its own, made for this check alone.
    """
    options = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
    _differentiated(subject, partial(torch.autograd.gradcheck, fast_mode=True, **options))


def _differentiated(subject: Subject, check: Callable[..., Any]) -> None:
    """Run one of torch's checks on the float tensors among the arguments, in float64."""
    precise = [_precise(value) for value in subject.values]
    fixed = [each.name in subject.constant for each in schema_arguments(subject.overload)]
    varied = [value for value, is_fixed in zip(precise, fixed, strict=True) if not is_fixed]
    inputs = tuple(tensor.requires_grad_() for tensor in tensors_of(varied) if has_gradient(tensor))

    def function(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        rest = iter(given)
        pairs = zip(precise, fixed, strict=True)
        outputs = subject.outputs([value if is_fixed else _with(value, rest) for value, is_fixed in pairs])
        return tuple(output for output in outputs if has_gradient(output))

    try:
        with torch.no_grad():
            outputs = function(*inputs)
        if not inputs or not outputs:
            raise _SkippedError("no argument, or no result, is a tensor of floats")
        if any(output.dtype not in {torch.float64, torch.complex128} for output in outputs):
            raise _SkippedError("results are not of float64, or complex128, where arguments are")
        if not all(bool(output.isfinite().all()) for output in outputs):
            raise _SkippedError("results are not finite")
        check(function, inputs)
    except CompileError as error:
        raise _SkippedError(error.diagnostics[0].message) from None


def _vmap(subject: Subject) -> None:
    """Compare a call over two samples, that are alike, with a call."""
    values = [_twice(value) for value in subject.values]
    dims = tuple(_axes(value) for value in subject.values)
    if not tensors_of(values):
        raise _SkippedError("no argument is a tensor")

    def function(*given: Any) -> tuple[torch.Tensor, ...]:
        return subject.outputs(given)

    try:
        batches = cast("Any", torch).vmap(function, dims)(*values)
    except RuntimeError as error:
        if VALUE_OF_SAMPLES not in str(error):
            raise
        raise _SkippedError(
            "the host part asks for the value of an element, which may differ from sample to sample"
        ) from None
    for batch, one in zip(batches, subject.outputs(subject.values), strict=True):
        _compare(subject.name, "a sample", [batch[0], batch[1]], [one, one])


WITHOUT_RESULTS = ("test_schema", "test_autograd_registration", "test_faketensor")
"""The parts of PyTorch's check that compare no results."""
CHECKS: Mapping[str, Callable[[Subject], None]] = {
    "reference": _reference,
    "opcheck": _opcheck,
    "determinism": _repeated,
    "strides": _strides,
    "gradcheck": _gradcheck,
    "gradgradcheck": _gradgradcheck,
    "forward mode": _forward_mode,
    "vmap": _vmap,
}
"""The checks by title, in order."""


# ---------------------------------------------------------------- arguments and results


def _compare(name: str, what: str, one: Any, other: Any) -> None:
    if isinstance(one, list | tuple):
        pairs = zip(cast("Sequence[Any]", one), cast("Sequence[Any]", other), strict=True)
        for position, (left, right) in enumerate(pairs):
            _compare(name, f"{what}[{position}]", left, right)
    elif isinstance(one, torch.Tensor):
        tolerance = TOLERANCES.get(one.dtype, 0.0)
        torch.testing.assert_close(
            _on_cpu(one),
            _on_cpu(other),
            rtol=tolerance,
            atol=tolerance,
            equal_nan=True,
            msg=lambda text: f"{name}: {what} differs from the reference: {text}",
        )


def _on_cpu(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_on_cpu(item) for item in cast("Sequence[Any]", value)]
    return value.cpu() if isinstance(value, torch.Tensor) else value


def _copy(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_copy(item) for item in cast("Sequence[Any]", value)]
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.clone()
    return copy if copy.stride() == value.stride() else _spread(value)


def _spread(value: Any) -> Any:
    """Return equal tensors whose elements stand apart in memory."""
    if isinstance(value, list | tuple):
        return [_spread(item) for item in cast("Sequence[Any]", value)]
    if not isinstance(value, torch.Tensor) or not value.dim():
        return value
    return torch.stack([value, torch.zeros_like(value)], -1)[..., 0]


def _precise(value: Any) -> Any:
    """Return float tensors in float64, on their own."""
    if isinstance(value, list | tuple):
        return [_precise(item) for item in cast("Sequence[Any]", value)]
    if not has_gradient(value):
        return value
    return value.detach().to(torch.complex128 if value.is_complex() else torch.float64, copy=True)


def _with(value: Any, floats: Iterator[torch.Tensor]) -> Any:
    """Return an argument with its float tensors replaced, in order."""
    if isinstance(value, list | tuple):
        return [_with(item, floats) for item in cast("Sequence[Any]", value)]
    return next(floats) if has_gradient(value) else value


def _twice(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_twice(item) for item in cast("Sequence[Any]", value)]
    return torch.stack([value, value]) if isinstance(value, torch.Tensor) else value


def _axes(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_axes(item) for item in cast("Sequence[Any]", value)]
    return 0 if isinstance(value, torch.Tensor) else None
