"""Names and arguments that cannot be: what is said names them, and has no words of torch's schemas."""

import functools
from typing import Any

import numpy as np
import pytest
import torch

import brickwork as bw


def doubled(x: torch.Tensor, n: int | None = None) -> torch.Tensor:
    out = torch.zeros_like(x)
    n = n or 2
    for i in range(n):
        out[i] = x[i].item() * 2
    return out


doubled_operator = bw.op("mistaken::doubled")(doubled)


@pytest.mark.parametrize("name", ["aten::sin", "mistaken_library::taken"])
def test_a_name_of_another_library_is_refused(name: str) -> None:
    if not hasattr(torch.ops.mistaken_library, "taken"):
        torch.library.define("mistaken_library::taken", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match=f"{name} is an operator of PyTorch or of another library already"):
        bw.op(name)(doubled)


@pytest.mark.parametrize("name", ["doubled", "a b::c", "a::b::c"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match='an operator is named "namespace::name"'):
        bw.op(name)


def test_what_is_no_function_is_refused_at_the_line_that_decorates_it() -> None:
    number: Any = 3
    with pytest.raises(TypeError, match="takes a name or a function, not 3"):
        bw.op(number)
    wrong: list[Any] = [None, len, torch.nn.Module, functools.partial(doubled, n=2)]
    for found in wrong:
        with pytest.raises(bw.CompileError, match="is not a plain Python function") as caught:
            bw.op("mistaken::wrong")(found)
        assert caught.value.diagnostics[0].loc.file == __file__


@pytest.mark.parametrize("n", [None, 2, np.int64(2)])
def test_an_optional_number_has_its_default_by_or(n: int | None) -> None:
    x = torch.randn(3)
    expected = doubled(x, n)
    assert torch.equal(doubled_operator(x, n), expected)
    assert torch.equal(doubled_operator.python(x, n), expected)


def test_an_out_that_is_no_tensor_is_named() -> None:
    with pytest.raises(TypeError, match=r"doubled\(\): argument 'out' must be Tensor, not int"):
        doubled_operator(torch.randn(3), out=3)


def test_a_missing_argument_of_python_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="missing"):
        doubled_operator.python()


def test_a_function_of_numpy_on_an_element_is_refused() -> None:
    def decayed(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = float(np.spacing(x[i]))
        return out

    with pytest.raises(bw.CompileError, match=r"`np.spacing` of an element is not part of the language"):
        bw.op(decayed)
