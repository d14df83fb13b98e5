"""Names of operators and of their arguments, and the places where operators are defined."""

import linecache
from typing import Any

import pytest
import torch

import brickwork as bw


def incremented(argument: str) -> Any:
    text = (
        f"def plus_one({argument}: torch.Tensor, n: int = 1) -> torch.Tensor:\n"
        f"    result = torch.zeros_like({argument})\n"
        f"    for i in range({argument}.shape[0]):\n"
        f"        result[i] = {argument}[i] + n\n"
        f"    return result\n"
    )
    file = f"<names {argument}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {"torch": torch}
    exec(compile(text, file, "exec"), space)
    return space["plus_one"]


ARGUMENTS = "self input out key generator Tensor args kwargs device function stage launcher arguments named".split()


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_arguments_have_any_name(argument: str) -> None:
    operator = bw.op(f"names::of_{argument}")(incremented(argument))
    x, expected = torch.ones(3), torch.full((3,), 3.0)
    torch.testing.assert_close(operator(x, 2), expected)
    torch.testing.assert_close(operator(**{argument: x, "n": 2}), expected)
    torch.testing.assert_close(operator.python(**{argument: x, "n": 2}), expected)
    assert "for i" in operator.explain(**{argument: x})


@pytest.mark.parametrize(
    "name", ["names::del", "names::None", "class::f", "names::__init__", "names::é", "x y::f", "f"]
)
def test_names_that_torch_cannot_take_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"an operator (is|cannot be) named"):
        bw.op(name)(incremented("x"))


def test_a_name_that_torch_does_not_take_says_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"not 'my-lib::2 fast': write 'my_lib::op_2_fast'$"):
        bw.op("my-lib::2 fast")


def test_an_allocation_that_fails_names_operator_line_and_bytes() -> None:
    @bw.op("names::enormous")
    def enormous(n: int) -> torch.Tensor:
        out = torch.empty(n, 3)
        for i in range(n):
            out[i, 0] = 1.0
        return out

    line = enormous.definition.loc.line + 1
    said = rf"you tried to allocate 13510798882111488 bytes, .*\[1125899906842624, 3\].* \(enormous, .*:{line}\)"
    with pytest.raises(RuntimeError, match=said):
        enormous(1 << 50)


class Holder:
    factor = 3.0

    @staticmethod
    @bw.op("names::static")
    def static(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * 2
        return out

    def tripled(self, x: torch.Tensor) -> torch.Tensor:
        factor = self.factor

        @bw.op("names::in_method")
        def in_method(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty_like(x)
            for i in range(x.shape[0]):
                out[i] = x[i] * factor
            return out

        return in_method(x)


def test_operators_are_defined_in_classes_and_methods() -> None:
    x = torch.arange(4.0)
    torch.testing.assert_close(Holder.static(x), x * 2)
    torch.testing.assert_close(Holder().static(x), x * 2)
    holder = Holder()
    torch.testing.assert_close(holder.tripled(x), x * 3)
    holder.factor = 4.0
    torch.testing.assert_close(holder.tripled(x), x * 4)
