"""Parameters that are texts: `str`, `Literal[...]`, a text as default; code is made for each text."""

import enum
from dataclasses import dataclass
from typing import Literal, Optional

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from support import inductor_graphs

Tensor = torch.Tensor

pytestmark = pytest.mark.usefixtures("device")


def weighted(kind, value):
    return 2 * value if kind == "double" else value


@bw.op("bwtexts::reduced")
def reduced(x: Tensor, kind: Literal["sum", "mean", "double"] = "sum", *, sign: str = "+") -> Tensor:
    """Reduce the rows."""
    scale = 1.0
    if kind == "mean":
        scale = 1 / x.shape[1]
    out = torch.zeros(len(x), dtype=x.dtype)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            out[i] += weighted(kind, x[i, j]) * x[i, j]
        if sign == "-" and kind in ("sum", "double"):
            out[i] = -out[i]
        out[i] *= scale
    return out


@bw.op("bwtexts::in_python")
def in_python(x: Tensor, kind: str) -> Tensor:
    y = x.relu() if kind == "relu" else x + 0
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = y[i] * 2 if kind == "relu" else y[i]
    return out


@bw.op("bwtexts::matched")
def matched(x, kind="same"):
    out = torch.empty_like(x)
    for i in range(len(x)):
        match kind:
            case "same":
                out[i] = x[i]
            case "minus":
                out[i] = -x[i]
            case _:
                raise ValueError(f"{kind!r} at {i} is no {kind:>6}")
    return out


@bw.op("bwtexts::quoted")
def quoted(x: Tensor, kind: str = 'a "b"\\', *, scale: float = 2.0) -> Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] * scale if kind == 'a "b"\\' else x[i]
    return out


@dataclass(frozen=True)
class Rule:
    rate: float
    kind: Literal["plus", "minus"] = "plus"


@bw.op("bwtexts::ruled")
def ruled(x: Tensor, rule: Rule) -> Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] + rule.rate if rule.kind == "plus" else x[i] - rule.rate
    return out


X = torch.randn(4, 3)


@pytest.mark.parametrize("kind", ["sum", "mean", "double"])
@pytest.mark.parametrize("sign", ["+", "-", "ü\0", ""])
def test_code_is_made_for_each_text(kind, sign):
    x = X.to(torch.get_default_device())
    expected = (x * x).sum(1) * {"sum": 1, "mean": 1 / 3, "double": 2}[kind]
    expected = -expected if sign == "-" and kind != "mean" else expected
    torch.testing.assert_close(reduced(x, kind, sign=sign), expected)
    torch.testing.assert_close(reduced.python(X, kind, sign=sign), expected.cpu())
    assert repr(kind) in reduced.explain(x, kind, sign=sign)


def test_the_schema_has_texts():
    schema = str(torch.ops.bwtexts.reduced.default._schema)
    assert schema == 'bwtexts::reduced(Tensor x, str kind="sum", *, str sign="+") -> Tensor'
    x = X.to(torch.get_default_device())
    torch.testing.assert_close(torch.ops.bwtexts.reduced(x, "mean"), reduced(x, "mean"))
    assert torch.equal(quoted(x[0]), 2 * x[0])
    assert torch.equal(quoted(x[0], "b"), x[0])


def test_it_is_checked_as_a_whole():
    x = X.to(torch.get_default_device())
    reduced.check(x, "double", sign="-")
    in_python.check(x[0], "relu")
    ruled.check(x[0], Rule(2.0, "minus"))
    torch.testing.assert_close(ruled(x[0], Rule(2.0, "minus")), x[0] - 2)


def test_graphs_keep_texts():
    x = X.to(torch.get_default_device())
    compiled = torch.compile(lambda x, kind: reduced(x + 1, kind, sign="-"), fullgraph=True, backend="aot_eager")
    for kind in ("sum", "mean"):
        torch.testing.assert_close(compiled(x, kind), reduced(x + 1, kind, sign="-"))
    pointwise, graphs = inductor_graphs.compiled(lambda x: matched(x, "minus") + 1)
    torch.testing.assert_close(pointwise(x[0]), 1 - x[0])
    assert not graphs.calls()
    by_name, graphs = inductor_graphs.compiled(lambda x: quoted(x, scale=3.0) + 1)
    torch.testing.assert_close(by_name(x[0]), 3 * x[0] + 1)
    assert not graphs.calls()
    assert "Inductor makes" in quoted.explain("fusion", x[0], scale=3.0)


def test_other_texts_are_refused():
    x = X.to(torch.get_default_device())
    for call in (reduced, reduced.python):
        with pytest.raises(ValueError, match="argument kind of reduced must be 'sum', 'mean' or 'double'"):
            call(x, "most")
    with pytest.raises(ValueError, match="argument rule_kind of ruled must be 'plus' or 'minus'"):
        ruled(x[0], Rule(1.0, "times"))
    with pytest.raises(TypeError, match="argument 'kind' must be str, not int"):
        reduced(x, 3)
    if not x.is_cuda:
        with pytest.raises(ValueError, match="'most' at 0 is no   most"):
            matched(x[0], "most")


def test_a_text_cannot_be_none():
    def reduced_or_not(x: Tensor, kind: Optional[str]) -> Tensor:  # noqa: UP045  # as users write it
        return torch.empty_like(x)

    with pytest.raises(CompileError, match="a text cannot be None"):
        bw.op("bwtexts::reduced_or_not")(reduced_or_not)


class Order(enum.IntEnum):
    UP = 1
    DOWN = -1


class Word(enum.StrEnum):
    UP = "up"
    DOWN = "down"


def by_number(x: torch.Tensor, order: Order = Order.UP) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] if order == Order.UP else -x[i]
    return out


def by_word(x: torch.Tensor, word: Word = Word.UP) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] if word == Word.UP else -x[i]
    return out


@pytest.mark.parametrize(("function", "down"), [(by_number, Order.DOWN), (by_word, Word.DOWN)])
def test_members_of_enumerations_are_numbers_or_texts(function, down):
    op, x = bw.op(f"texts::{function.__name__}")(function), torch.arange(3.0)
    for run in (op, op.python):
        assert run(x).tolist() == [0.0, 1.0, 2.0]
        assert run(x, down).tolist() == [0.0, -1.0, -2.0]
    plain = getattr(torch.ops.texts, function.__name__).default
    torch.library.opcheck(plain, (x, down))


class Plain(enum.Enum):
    UP = 1


def by_member(x: torch.Tensor, order: Plain) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(len(x)):
        out[i] = x[i] if order == Plain.UP else -x[i]
    return out


def test_members_that_are_no_numbers_are_refused_with_what_to_write():
    with pytest.raises(CompileError, match="IntEnum"):
        bw.op("texts::by_member")(by_member)
