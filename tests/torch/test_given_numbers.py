"""Numbers that are stored: torch's rule for what elements cannot hold, and what goes on wrapping."""

import math
from collections.abc import Callable

import pytest
import torch

import brickwork as bw


def put(out, i, v):
    out[i] = v


@bw.op("bwgiven::stores")
def stores(out: torch.Tensor, n: int, f: float, which: int) -> None:
    for i in range(len(out)):
        if which == 0:
            out[i] = n
        if which == 1:
            out[i] = f
        if which == 2:
            put(out, i, n)
        if which == 3 and out[i] > 99:
            out[i] = n


@bw.op("bwgiven::computed")
def computed(out: torch.Tensor, n: int) -> None:
    twice = 2 * n
    for i in range(len(out)):
        out[i] = n + i
        out[i] += n
        put(out, i, 2 * n)
        if n < 0:
            out[i] = twice


@bw.op("bwgiven::paired")
def paired(a: torch.Tensor, b: torch.Tensor, n: int) -> torch.Tensor:
    filled = torch.full((2,), n, dtype=torch.int16)
    for i in range(len(a)):
        a[i], b[i] = n, 5
        if b[i] == 5:
            break
    for i in range(2):
        filled[i] += i
    return filled


@bw.op("bwgiven::literal")
def literal(out: torch.Tensor) -> None:
    for i in range(len(out)):
        out[i] = 2**31
        out[i] = int(1e12)


def raised(action: Callable[[], object]) -> str:
    """Return the first line of the RuntimeError that an action raises, without its place; empty if it raises none."""
    try:
        action()
    except RuntimeError as error:
        return str(error).partition("value cannot")[2].partition(" (")[0].partition("\n")[0]
    return ""


NUMBERS = (300, -200, -255, -256, 2**31, -(2**31), 2**40 + 3, 2**63 - 1, -1)
FLOATS = (2.7, -0.5, 255.0, 256.0, 1e30, 3.5e38, -1e300, math.inf, -math.inf, math.nan, 65520.0)
DTYPES = "uint8 int8 int16 int32 int64 uint16 uint32 uint64 bool float16 bfloat16 float32 float64".split()


@pytest.mark.parametrize("name", DTYPES)
def test_a_number_that_is_given_is_stored_as_torch_stores_it(name):
    dtype = getattr(torch, name)
    for which, given in ((0, NUMBERS), (1, FLOATS)):
        for number in given:
            expected = torch.zeros(2, dtype=dtype)
            message = raised(lambda to=expected, number=number: to.__setitem__(slice(None), number))
            for function in (stores, stores.python):
                out, n, f = torch.zeros(2, dtype=dtype), 0 if which else number, number if which else 0.0
                assert raised(lambda call=function, to=out, n=n, f=f: call(to, n, f, which)) == message, number
                if not message:
                    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


def test_only_a_store_that_is_reached_raises():
    for function in (stores, stores.python):
        function(torch.zeros(0, dtype=torch.int8), 300, 0.0, 0)
        function(torch.zeros(2, dtype=torch.int8), 300, 0.0, 3)
        assert raised(lambda call=function: call(torch.full((2,), 100, dtype=torch.int8), 300, 0.0, 3))
        assert raised(lambda call=function: call(torch.zeros(2, dtype=torch.int8), 300, 0.0, 2))
    with pytest.raises(RuntimeError, match=r"to type int8_t without overflow \(stores, .*test_given_numbers.py:\d+\)"):
        stores(torch.zeros(2, dtype=torch.int8), 300, 0.0, 0)


def test_what_loops_compute_wraps():
    for function in (computed, computed.python):
        out = torch.zeros(3, dtype=torch.int8)
        function(out, 100)
        assert out.tolist() == [-56] * 3
        assert raised(lambda call=function, to=out: call(to, -100))  # `twice` is a number of the host part


def test_tuples_and_torch_full():
    for function in (paired, paired.python):
        a, b = torch.zeros(2, dtype=torch.int8), torch.zeros(2)
        assert function(a, b, 100).tolist() == [100, 101]
        assert raised(lambda call=function: call(torch.zeros(2, dtype=torch.int8), torch.zeros(2), 200))
        assert raised(lambda call=function: call(torch.zeros(0, dtype=torch.int64), torch.zeros(0), 2**15))


def test_a_literal_is_refused_for_elements_that_cannot_hold_it():
    out = torch.zeros(2, dtype=torch.int64)
    literal(out)
    assert out.tolist() == [10**12] * 2
    with pytest.raises(bw.CompileError, match="BW104") as found:
        literal(torch.zeros(2, dtype=torch.int32))
    assert isinstance(found.value, RuntimeError)
    assert raised(lambda: literal.python(torch.zeros(2, dtype=torch.int32)))


def test_the_test_stands_before_the_loops():
    arguments = torch.zeros(4, dtype=torch.int8), 1, 1.0, 0
    host, _, kernel = stores.inspect("ir", *arguments).partition("with kernel")
    assert host.count("without overflow") == 3
    assert kernel.count("without overflow") == 1  # under a condition on an element
    device = stores.inspect("ir", *arguments, device="sm_90").partition("with kernel")[0]
    assert device.count("without overflow") == 3


def test_batches_and_gradients_keep_the_rule():
    @bw.op("bwgiven::mixed")
    def mixed(x: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        count, out = torch.empty(len(x), dtype=torch.int8), torch.empty_like(x)
        for i in range(len(x)):
            count[i] = n
            out[i] = x[i] * n
        return count, out

    x = torch.randn(3, requires_grad=True)
    mixed(x, 100)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [100.0] * 3
    batched = torch.vmap(mixed, in_dims=(0, None))
    assert batched(torch.ones(2, 3), 100)[0].tolist() == [[100] * 3] * 2
    assert raised(lambda: batched(torch.ones(2, 3), 200))
    assert raised(lambda: mixed(x, 200))
