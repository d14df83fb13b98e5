"""`compare`: contenders that take the same arguments, over cases; or those that there are for each case."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, Unpack, cast

from brickwork.bench.formulas import Formula, evaluated, listed
from brickwork.bench.plan import Contest, Options, Plan, carry_out, protocol_of, why
from brickwork.bench.table import Metric, Table, X
from brickwork.bench.timers import Call
from brickwork.op import Op

_X = TypeVar("_X", int, float, str)


def compare(
    contenders: Mapping[str, Callable[..., object]] | Callable[[_X], Mapping[str, Call]],
    cases: Mapping[_X, object] | Sequence[_X],
    metric: Metric = "ms",
    *,
    arguments: Callable[[_X], object] | None = None,
    x_name: str = "N",
    title: str = "",
    moved: Formula | None = None,
    flops: Formula | None = None,
    baseline: str = "",
    x_log: bool = False,
    y_log: bool = False,
    **how: Unpack[Options],
) -> Table:
    """Time callables beside each other over cases, and return the table.

    `cases` maps values of x to the arguments of a call: a tuple, a mapping of names, or one argument. Or it is a
    sequence of values, and `arguments` makes the arguments of each when its turn comes. The answers must be those of
    the first contender; one that is wrong or fails is reported and not timed.

    `contenders` may be a function, too: it gets a value of x, and returns calls without arguments by label. The labels
    may differ from case to case.

    Args:
        contenders: The callables by label, or what returns the calls of a value of x.
        cases: The values of x, with arguments.
        metric: What the table shows; every table can be shown `measured_in` another metric.
        arguments: Makes the arguments for a value of x.
        x_name: What x is called, also in formulas.
        title: What is compared.
        moved: Bytes that a call reads and writes, as a formula of x (`"8 * N"`) or a function of the arguments.
        flops: Floating-point operations of a call, likewise.
        baseline: The contender that speed-ups refer to; the first one if nothing is said.
        x_log: Whether x is drawn on a logarithmic axis.
        y_log: Whether values are.
        how: How to measure; see `Protocol`.
    """
    labels = None if callable(contenders) else tuple(contenders)
    prepare = _asked(contenders, cases, arguments) if callable(contenders) else _bound(contenders, cases, arguments)
    plan = Plan(
        title=title or ", ".join(labels or ("comparison",)),
        x_name=x_name,
        x_values=tuple(cases),
        lines=labels,
        baseline=baseline or next(iter(labels or ()), ""),
        metric=metric,
        make=functools.partial(_contest, prepare, x_name, (moved, flops), raises=labels is not None),
        styles={},
        x_log=x_log,
        y_log=y_log,
        formulas=listed(moved, flops),
        warnings=() if callable(contenders) else _warnings(contenders),
    )
    return carry_out(plan, protocol_of(how))


_Prepare: TypeAlias = Callable[[Any], tuple[dict[str, Call], tuple[Any, ...], dict[str, Any]]]
"""Returns the calls of a value of x, with the positional and the named arguments that formulas see."""


def _contest(
    prepare: _Prepare, x_name: str, formulas: tuple[Formula | None, Formula | None], x: X, *, raises: bool
) -> Contest:
    """Return the contenders of a value of x, with what the formulas say of it; or why there are none."""
    try:
        calls, positional, named = prepare(x)
    except Exception as error:
        if raises:
            raise
        return Contest({}, {"all": why(error)})
    names: dict[str, object] = {x_name: x, **named}
    values = (*positional, *named.values())
    return Contest(calls, {}, *(evaluated(formula, names, values) for formula in formulas))


def _bound(
    contenders: Mapping[str, Callable[..., object]],
    cases: Mapping[Any, object] | Sequence[Any],
    arguments: Callable[[Any], object] | None,
) -> _Prepare:
    """Return what binds the contenders to the arguments of a value of x."""
    make = _maker(cases, arguments)

    def calls(x: X) -> tuple[dict[str, Call], tuple[Any, ...], dict[str, Any]]:
        positional, named = _split(make(x))
        bound = {name: functools.partial(call, *positional, **named) for name, call in contenders.items()}
        return {**bound}, positional, named

    return calls


def _asked(contenders: Callable[[Any], Mapping[str, Call]], cases: object, arguments: object) -> _Prepare:
    """Return what asks for the calls of a value of x."""
    if isinstance(cases, Mapping) or arguments is not None:
        raise ValueError("a function that returns calls needs no arguments: give the values of x alone")
    return lambda x: (dict(contenders(x)), (x,), {})


def _maker(
    cases: Mapping[Any, object] | Sequence[Any], arguments: Callable[[Any], object] | None
) -> Callable[[Any], object]:
    """Return what makes the arguments of a value of x."""
    if isinstance(cases, Mapping):
        return cast("Mapping[X, object]", cases).__getitem__
    if arguments is None:
        raise ValueError("cases without arguments: give a mapping of x to arguments, or `arguments=`, which makes them")
    return arguments


def _warnings(contenders: Mapping[str, Callable[..., object]]) -> tuple[str, ...]:
    return tuple(
        f"{name} was defined under `config.check = 'interpret'`, so it runs in the interpreter"
        for name, call in contenders.items()
        if isinstance(call, Op) and call.interpreted
    )


def _split(given: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and the named arguments of a case."""
    if isinstance(given, tuple):
        return cast("tuple[Any, ...]", given), {}
    if isinstance(given, Mapping):
        return (), dict(cast("Mapping[str, Any]", given))
    return (given,), {}
