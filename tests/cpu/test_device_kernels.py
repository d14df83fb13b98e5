"""Device kernels run on the host, thread by thread, against the interpreter."""

from dataclasses import replace

import pytest
import torch

from brickwork.codegen import launch_dimensions
from brickwork.ir.build import cast, read
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64
from brickwork.ir.nodes import Draw, Kernel, Random, Reduction, Role
from brickwork.ir.operators import OPERATORS
from cpu.test_codegen_random_kernels import COUNT, Generator
from support.emulated import Emulated
from support.machine import interpreted, named, scheduled
from support.pairs import pairwise
from support.written import check, extent, kernel, let, load, loop, op, store, symbol


def narrow(whole: Kernel) -> Kernel:
    """Return the kernel for tensors that are small and aligned."""
    return replace(whole, narrow=(*whole.tensors, *whole.scalars), aligned=whole.tensors)


def assert_same(whole, roles, tensors, scalars=(), *, narrowed=True, optimised=False, **tolerance):
    """The kernel with these roles writes what the interpreter writes."""
    made = scheduled(whole, roles)
    results = [data.clone() for data in tensors]
    assert Emulated(narrow(made) if narrowed else made, optimised=optimised)(results, scalars) is None
    for result, expected in zip(results, interpreted(whole, tensors, scalars), strict=True):
        torch.testing.assert_close(
            result, expected.as_strided(result.shape, expected.stride()), **tolerance or {"rtol": 0, "atol": 0}
        )


@pytest.mark.parametrize(("seed", "width", "narrowed"), pairwise(range(4), [1, 4], [False, True]))
def test_random_kernel(seed, width, narrowed):
    x = torch.randint(-50, 50, (COUNT,), generator=torch.Generator().manual_seed(seed))
    out = torch.zeros(3, COUNT).long()
    tensor, to = named("x", 0, x), named("out", 1, out)
    made = Generator(seed, tensor)
    whole = kernel((tensor, to), loop(made.i, 0, extent(tensor), *made.body(to)), scalars=(made.uniform,))
    assert_same(whole, {"i": (Role.PARALLEL, width)}, [x, out], (5,), narrowed=narrowed, optimised=narrowed)


@pytest.mark.parametrize(
    ("shape", "width", "narrowed"),
    pairwise([(3, 5, 7), (1, 1, 1), (2, 3, 8), (0, 3, 4), (4, 2, 0), (5, 1, 300)], [1, 4], [False, True]),
)
def test_nest(shape, width, narrowed):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape)
    x, out = (x.double() / 7).transpose(0, 1).contiguous().transpose(0, 1), torch.zeros(shape, dtype=torch.float64)
    tensor, to = named("x", 0, x), named("out", 1, out)
    i, j, k = symbol("i"), symbol("j"), symbol("k")
    value = op("add", load(tensor, i, j, k), cast(read(k), FLOAT64))
    nest = loop(
        i, 0, extent(tensor), loop(j, 0, extent(tensor, 1), loop(k, 0, extent(tensor, 2), store(to, (i, j, k), value)))
    )
    roles = {"i": (Role.PARALLEL, 1), "j": (Role.PARALLEL, 1), "k": (Role.PARALLEL, width)}
    result = torch.zeros_like(out)
    made = scheduled(kernel((tensor, to), nest), roles)
    assert Emulated(narrow(made) if narrowed else made)([x, result]) is None
    torch.testing.assert_close(result, x + torch.arange(shape[2]), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "dtype", "width"),
    pairwise(["add", "minimum", "maximum", "mul"], [torch.float32, torch.float64, torch.int64], [1, 4]),
)
def test_block_reduction(name, dtype, width):
    for columns in (1, 30, 200):
        x = torch.randint(-4, 5, (2, columns)).to(dtype)
        out, copy = torch.zeros(2, dtype=dtype), torch.zeros(2, columns, dtype=dtype)
        tensor, to, other = named("x", 0, x), named("out", 1, out), named("copy", 2, copy)
        i, j, s = symbol("i"), symbol("j"), symbol("s", tensor.type.dtype)
        inner = loop(
            j, 0, extent(tensor, 1), let(s, op(name, s, load(tensor, i, j))), store(other, (i, j), load(tensor, i, j))
        )
        inner = replace(inner, reductions=(Reduction(s, OPERATORS[name]),))
        last = loop(symbol("l"), 0, 1, store(other, (i, 0), op("add", load(other, i, 0), s)))
        first = cast(load(tensor, i, 0), tensor.type.dtype)
        nest = loop(i, 0, extent(tensor), let(s, first), inner, store(to, (i,), s), last)
        roles = {"i": (Role.BLOCK, 1), "j": (Role.THREAD, width)}
        made = scheduled(kernel((tensor, to, other), nest), roles)
        results = [x.clone(), out.clone(), copy.clone()]
        assert Emulated(narrow(made))(results) is None
        expected = interpreted(kernel((tensor, to, other), nest), [x, out, copy])
        for result, want in zip(results, expected, strict=True):
            torch.testing.assert_close(result, want, rtol=0, atol=0)


@pytest.mark.parametrize("columns", [200, 1000])
@pytest.mark.parametrize("each", [4, 64])
def test_threads_of_a_block_take_several_steps_each(monkeypatch, columns, each):
    monkeypatch.setattr(launch_dimensions, "BUSY_THREADS", 1)
    monkeypatch.setattr(launch_dimensions, "STEPS_EACH", each)
    x = torch.randint(-4, 5, (6, columns)).float()
    tensor, to = named("x", 0, x), named("out", 1, torch.zeros(6))
    i, j, s = symbol("i"), symbol("j"), symbol("s", FLOAT32)
    inner = loop(j, 0, extent(tensor, 1), let(s, op("add", s, load(tensor, i, j))))
    inner = replace(inner, reductions=(Reduction(s, OPERATORS["add"]),))
    nest = loop(i, 0, extent(tensor), let(s, cast(load(tensor, i, 0), FLOAT32)), inner, store(to, (i,), s))
    made = narrow(scheduled(kernel((tensor, to), nest), {"i": (Role.BLOCK, 1), "j": (Role.THREAD, 4)}))
    out = torch.zeros(6)
    assert Emulated(made)([x, out]) is None
    torch.testing.assert_close(out, x.sum(1) + x[:, 0], rtol=0, atol=0)


def test_failure_is_recorded_once():
    x, out = torch.arange(1000), torch.zeros(1000).long()
    tensor, to = named("x", 0, x), named("out", 1, out)
    i = symbol("i")
    body = (
        check(op("lt", load(tensor, i), 900), "late {0} {1}", read(i), cast(load(tensor, i), FLOAT32)),
        store(to, (i,), i),
    )
    for width in (1, 4):
        whole = scheduled(kernel((tensor, to), loop(i, 0, extent(tensor), *body)), {"i": (Role.PARALLEL, width)})
        result = torch.full_like(out, -1)
        failed = Emulated(narrow(whole))([x, result])
        assert failed is not None
        assert failed.values[0] == 900
        assert failed.site.values == (INT64, FLOAT32)
        assert result.tolist() == [*range(900), *[-1] * 100]


@pytest.mark.parametrize(
    ("name", "dtype", "width"),
    pairwise(
        ["add", "mul", "minimum", "maximum"],
        ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64"],
        [1, 4],
    ),
)
def test_update_of_elements(name, dtype, width):
    out = torch.randint(1, 5, (7,)).to(getattr(torch, dtype))
    x, index = torch.randint(1, 3, (50,)).to(out.dtype), torch.randint(0, 7, (50,))
    to, tensor, places = named("out", 0, out), named("x", 1, x), named("index", 2, index)
    i = symbol("i")
    plain = store(to, (load(places, i),), op(name, load(to, load(places, i)), load(tensor, i)))
    update = replace(plain, value=load(tensor, i), combine=OPERATORS[name])
    whole = kernel((to, tensor, places), loop(i, 0, extent(tensor), update))
    results = [out.clone(), x, index]
    assert Emulated(narrow(scheduled(whole, {"i": (Role.PARALLEL, width)})))(results) is None
    expected = interpreted(kernel((to, tensor, places), loop(i, 0, extent(tensor), plain)), [out, x, index])
    torch.testing.assert_close(results[0], expected[0], rtol=0, atol=0)


def test_serial_kernel():
    x = torch.arange(5.0)
    tensor, i = named("x", 0, x), symbol("i")
    body = loop(i, 1, extent(tensor), store(tensor, (i,), op("add", load(tensor, i), load(tensor, op("sub", i, 1)))))
    assert_same(kernel((tensor,), let(symbol("unused"), 1), body), {}, [x])


@pytest.mark.parametrize("draw", list(Draw))
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("width", [1, 4])
def test_random_numbers(draw, first, width):
    kind = INT64 if draw is Draw.INTEGER else FLOAT32
    out = torch.zeros(3, 2000, dtype=torch.int64 if draw is Draw.INTEGER else torch.float32)
    to, key = named("out", 0, out), symbol("key")
    i, j = symbol("i"), symbol("j")
    counter = op("add", op("mul", i, extent(to, 1)), op("add", j, first))
    bounds = (op("sub", 0, i), op("add", j, 1)) if draw is Draw.INTEGER else ()
    number = Random(draw=draw, key=read(key), counter=counter, extra=op("add", 7, 0), site=5, bounds=bounds, dtype=kind)
    whole = kernel((to,), loop(i, 0, extent(to), loop(j, 0, extent(to, 1), store(to, (i, j), number))), scalars=(key,))
    facts = (op("eq", op("mod", extent(to, 1), 4), 0),)
    roles = {"i": (Role.PARALLEL, 1), "j": (Role.PARALLEL, width)}
    close = {"rtol": 1e-6, "atol": 1e-6} if draw is Draw.NORMAL else {}
    assert_same(replace(whole, facts=facts), roles, [out], (-(2**62) + 99,), **close)


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("width", [1, 4])
def test_sine_and_cosine_of_any_number(name, width):
    exponents = torch.linspace(-45, 38, 700, dtype=torch.float64)
    near = torch.cat([10**exponents, torch.arange(40000) * (torch.pi / 2), torch.linspace(0, 7, 1000)])
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 65536.0, 65540.0])
    x = torch.cat([near, -near, special]).float()
    tensor, to = named("x", 0, x), named("out", 1, x)
    i = symbol("i")
    nest = loop(i, 0, extent(tensor), store(to, (i,), op(name, load(tensor, i))))
    out = torch.zeros_like(x)
    assert Emulated(narrow(scheduled(kernel((tensor, to), nest), {"i": (Role.PARALLEL, width)})))([x, out]) is None
    exact = getattr(torch, name)(x.double())
    torch.testing.assert_close(out.double(), exact, rtol=2**-22.5, atol=0, equal_nan=True)
    assert torch.equal(torch.signbit(out[-7:-5]), torch.signbit(exact[-7:-5]))
