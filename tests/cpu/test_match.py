"""`match`: what cases bind, and which patterns are refused."""

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError

pytestmark = pytest.mark.usefixtures("quick")


def test_a_case_binds_its_names_at_once() -> None:
    def exchanged(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(3)
        a, b = 1, 2
        for i in range(len(x)):
            match a, b:
                case b, a:
                    out[0] += 100 * a + b
        out[1], out[2] = a, b
        return out

    x = torch.zeros(3)
    torch.testing.assert_close(bw.op("match::exchanged")(exchanged)(x), exchanged(x))


def test_what_a_case_with_a_guard_binds_is_read_in_cases_alone() -> None:
    def guarded(x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(3)
        for i in range(len(x)):
            match x[i], i:
                case n, k if n > 5:
                    out[0] += n * k
                case n, k if n > 2:
                    out[1] += n * k
                case k, 2:
                    out[2] += k
                case _:
                    pass
        return out

    def kept(x: torch.Tensor) -> torch.Tensor:
        n = 0.0
        for i in range(len(x)):
            match x[i]:
                case n if n > 5:
                    x[i] = 1
                case _:
                    pass
        x[0] = n
        return x

    x = torch.tensor([1.0, 4, 0, 6, 9, 3])
    torch.testing.assert_close(bw.op("match::guarded")(guarded)(x), guarded(x))
    with pytest.raises(CompileError, match="what a case with `if` binds is read after it"):
        bw.op("match::kept")(kept)(x)


def test_true_and_false_are_refused() -> None:
    def flagged(x: torch.Tensor) -> None:
        for i in range(len(x)):
            match i:
                case True:
                    x[i] = 1
                case _:
                    x[i] = 2

    with pytest.raises(CompileError, match="no True and False"):
        bw.op("match::flagged")(flagged)(torch.zeros(3))
