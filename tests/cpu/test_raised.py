"""`raise` and `match`: compiled code, the interpreter and Python agree on values, exceptions and their texts."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config

pytestmark = pytest.mark.usefixtures("quick")


def newton(x: torch.Tensor, most: int) -> torch.Tensor:
    """Square roots by Newton's iteration, with an error where it does not converge."""
    if x.ndim != 1:
        raise ValueError("one dimension is needed")
    n = x.shape[0]
    if n > 100:
        raise ValueError(f"too many: {n}")
    out = torch.empty_like(x)
    for i in range(n):
        if x[i] < 0:
            raise ValueError(f"negative at {i}: {x[i]:.2f}")
        guess = 1.0
        for _ in range(most):
            better = 0.5 * (guess + x[i] / guess)
            if abs(better - guess) < 1e-6:
                break
            guess = better
        else:
            raise RuntimeError("no convergence of " + str(i))
        out[i] = better
    return out


def weight(kind: int) -> float:
    match kind:
        case 0:
            return 1.0
        case 1 | 2:
            return 2.5
        case n if n > 10:
            return n * 1.0
    raise KeyError("bad kind " + str(kind))


def kinds(k: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(k.shape[0]):
        match k[i] % 4, i:
            case 0, 1:
                out[i] = 5
            case 0, _:
                out[i] = x[i]
            case (1 | 2) as found, place:
                out[i] = found * place
            case _:
                pass
        out[i] += weight(k[i])
    return out


def branches(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        if x[i] > 2:
            raise OverflowError("too large")
        elif x[i] < 0:
            raise TypeError
        else:
            y = x[i] * x[i]
        if i > 5:
            z = y + 1
        else:
            if y > 3:
                raise ArithmeticError("between")
            z = y
        out[i] = z
    return out


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a call gives, or the exception with its text."""
    try:
        return call(*arguments)
    except bw.CompileError:
        raise
    except Exception as error:
        return type(error), str(*error.args).partition(" (")[0]


def agree(function: Callable[..., Any], *arguments: Any, raises: type[Exception] | None = None) -> None:
    """Check compiled code and the interpreter against Python."""
    operator = bw.op("raised::" + function.__name__)(function)
    expected = outcome(operator.python, *arguments)
    assert (expected[0] if isinstance(expected, tuple) else None) is raises
    before = config.check
    for check in ("", "interpret"):
        config.check = check
        try:
            found = outcome(bw.op("raised::" + function.__name__)(function), *arguments)
        finally:
            config.check = before
        if raises is None:
            torch.testing.assert_close(found, expected)
        else:
            assert found == expected


@pytest.mark.parametrize(
    ("x", "raises"),
    [
        ([0.5, 2.0, 9.0], None),
        ([1.0, -3.0], ValueError),
        ([1.0, float("nan")], RuntimeError),
        ([1.0] * 101, ValueError),
    ],
)
def test_checks_with_a_text(x: list[float], raises: type[Exception] | None) -> None:
    agree(newton, torch.tensor(x), 50, raises=raises)


def test_a_match_and_a_helper_that_raises() -> None:
    agree(kinds, torch.tensor([0, 1, 2, 12, 16, 13]), torch.rand(6))
    agree(kinds, torch.tensor([0, 1, 3]), torch.rand(3), raises=KeyError)


def test_branches_that_raise_assign_nothing() -> None:
    agree(branches, torch.rand(9))
    agree(branches, torch.tensor([1.0, 3.0]), raises=OverflowError)
    agree(branches, torch.tensor([1.0, -3.0]), raises=TypeError)
    agree(branches, torch.tensor([1.0, 1.9]), raises=ArithmeticError)


def test_gradients_flow_through_checks() -> None:
    operator = bw.op("raised::branches")(branches)
    x = torch.rand(5, requires_grad=True)
    operator(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x)
    assert x.grad is not None


def test_a_host_part_that_cannot_hold_raises_its_own_exception() -> None:
    with pytest.raises(ValueError, match="one dimension is needed"):
        bw.op("raised::newton")(newton)(torch.rand(2, 2), 3)


def test_a_compiled_graph_raises_too() -> None:
    operator = bw.op("raised::branches")(branches)
    compiled = torch.compile(lambda x: operator(x) + 1, fullgraph=True, backend="aot_eager")
    x = torch.rand(5)
    torch.testing.assert_close(compiled(x), operator(x) + 1)
    with pytest.raises(OverflowError, match="too large"):
        compiled(torch.tensor([1.0, 3.0, 0, 0, 0]))
