"""Every scalar operator, cast and element type as machine code: as the interpreter has it, the same at every width."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch

from brickwork.codegen.llvm import optimised_ir
from brickwork.ir.build import cast, constant
from brickwork.ir.dtypes import BOOL, DTYPES, FLOAT32, FLOAT64, INT64, UINT64, value_dtype
from brickwork.ir.nodes import Apply, Draw, Random, Role
from brickwork.ir.operators import OPERATORS, result_dtype
from brickwork.target.cpu import host_target
from support.machine import Machine, interpreted, named, scheduled
from support.written import extent, kernel, load, loop, op, store, symbol, whole

TORCH = {BOOL: torch.bool, INT64: torch.int64, UINT64: torch.uint64, FLOAT32: torch.float32, FLOAT64: torch.float64}
MOST = 2**63 - 1
SAMPLES = {
    BOOL: [False, True],
    INT64: [0, 1, -1, 2, -3, 7, 17, 63, 64, -64, 1000003, -1000003, MOST, -MOST, -MOST - 1],
    UINT64: [0, 1, 2, 3, 7, 63, 64, 1000003, MOST, 2**63, 2**64 - 1],
    FLOAT32: [0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 2.5, -3.5, 1e-3, 7.25, -40.5, 1e10, math.inf, -math.inf, math.nan],
}
SAMPLES[FLOAT64] = SAMPLES[FLOAT32]
CASES = [(name, dtype) for name, operator in OPERATORS.items() for dtype in operator.operands]


def samples(name, dtype):
    """Return lists of operands that the operator is defined on."""
    rows = list(product(SAMPLES[dtype], repeat=OPERATORS[name].arity))
    if dtype in {INT64, UINT64}:
        if name in {"floordiv", "mod"}:
            rows = [row for row in rows if row[1] != 0]
        if name in {"pow", "shift_left", "shift_right"}:
            rows = [row for row in rows if 0 <= row[1] <= 100]
    return [torch.tensor(column, dtype=TORCH[dtype]) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=[f"{name}-{dtype}" for name, dtype in CASES])
def test_operator(name, dtype):
    columns = samples(name, dtype)
    result = result_dtype(OPERATORS[name], dtype)
    tensors = [named(f"x{number}", number, column) for number, column in enumerate(columns)]
    out = torch.zeros(len(columns[0]), dtype=TORCH[result])
    to, i = named("out", 9, out), symbol("i")
    operands = tuple(load(tensor, i) for tensor in tensors)
    value = Apply(operator=OPERATORS[name], operands=operands, dtype=result)
    made = kernel((*tensors, to), loop(i, 0, extent(to), store(to, (i,), value)))
    expected = interpreted(made, [*columns, out])[-1]
    results = []
    for width in (1, 4, 16, 64):
        out = torch.zeros_like(out)
        roles = {"i": (Role.VECTOR, width)} if width > 1 else {}
        assert Machine(scheduled(made, roles))([*columns, out]) is None
        results.append(out)
    tolerance = {"rtol": 2e-6, "atol": 1e-6} if result is FLOAT32 else {"rtol": 4e-15, "atol": 1e-15}
    if not result.is_float:
        tolerance = {"rtol": 0, "atol": 0}
    torch.testing.assert_close(results[0], expected, equal_nan=True, **tolerance)
    for other in results[1:]:
        torch.testing.assert_close(other, results[0], rtol=0, atol=0, equal_nan=True)


PAIRS = [(a, b) for a in SAMPLES for b in SAMPLES if a is not b]


@pytest.mark.parametrize(("source", "result"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_cast(source, result):
    x, out = torch.tensor(SAMPLES[source], dtype=TORCH[source]), torch.zeros(len(SAMPLES[source]), dtype=TORCH[result])
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    made = kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), cast(load(tensor, i), result))))
    expected = interpreted(made, [x, out])[-1]
    for width in (1, 16):
        out.zero_()
        Machine(scheduled(made, {"i": (Role.VECTOR, width)}))([x, out])
        torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("layout", ["dense", "reversed", "strided", "gathered"])
def test_elements_of_every_type(name, layout):
    generator = torch.Generator().manual_seed(1)
    dtype = getattr(torch, name)
    x = (torch.randn(2, 86, generator=generator) * 60).abs().to(dtype)
    x = x[:, ::2] if layout == "strided" else x[:, :43].contiguous()
    out = torch.zeros(2, 43, dtype=dtype)
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    place = {"reversed": op("sub", 42, i), "gathered": op("mod", op("mul", i, i), 43)}.get(layout, op("add", i, 0))
    value = load(tensor, 1, place)
    if DTYPES[name] not in {BOOL, UINT64}:
        value = op("add", value, cast(whole(i), value_dtype(DTYPES[name])))
    made = kernel((tensor, to), loop(i, 0, extent(to, 1), store(to, (1, op("sub", 42, i)), value)))
    expected = interpreted(made, [x, out])[-1]
    for width in (1, 4, 16, 64):
        out.zero_()
        assert Machine(scheduled(made, {"i": (Role.VECTOR, width)}))([x, out]) is None
        torch.testing.assert_close(out, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_stores_round_to_nearest_even(name):
    dtype = getattr(torch, name)
    x = torch.arange(-(2**31), 2**31, 100003, dtype=torch.int64).to(torch.int32).view(torch.float32)
    out = torch.zeros_like(x, dtype=dtype)
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    made = kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), load(tensor, i))))
    for width in (1, 16):
        Machine(scheduled(made, {"i": (Role.VECTOR, width)}))([x, out])
        torch.testing.assert_close(out, x.to(dtype), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("draw", Draw)
@pytest.mark.parametrize("start", [0, 3])
def test_random_numbers(draw, start):
    out = torch.zeros(150, dtype=torch.int64 if draw is Draw.INTEGER else torch.float32)
    to, i, key = named("out", 0, out), symbol("i"), symbol("key")
    bounds = (op("sub", -7, 0), op("add", i, 2**40)) if draw is Draw.INTEGER else ()
    value = Random(
        draw=draw,
        key=op("add", key, 0),
        counter=op("add", i, start),
        extra=op("add", 5, 0),
        site=2,
        bounds=bounds,
        dtype=INT64 if draw is Draw.INTEGER else FLOAT32,
    )
    made = kernel((to,), loop(i, 0, extent(to), store(to, (i,), value)), scalars=(key,))
    expected = interpreted(made, [out], (2**50 + 12345,))[-1]
    results = []
    for width in (1, 16, 64):
        out = torch.zeros_like(out)
        Machine(scheduled(made, {"i": (Role.VECTOR, width)}))([out], (2**50 + 12345,))
        results.append(out)
        torch.testing.assert_close(out, expected, rtol=4e-6, atol=1e-6)
        torch.testing.assert_close(out, results[0], rtol=0, atol=0)


def test_uniform_functions_have_the_bits_of_lanes():
    x, out = torch.randn(64), torch.zeros(64, 64)
    tensor, to, i, j = named("x", 0, x), named("out", 1, out), symbol("i"), symbol("j")
    value = op("exp", op("mul", load(tensor, j), constant(3.0, FLOAT32)))
    made = kernel((tensor, to), loop(j, 0, 64, loop(i, 0, 64, store(to, (i, j), value))))
    Machine(scheduled(made, {"i": (Role.VECTOR, 16)}))([x, out])
    across, single = torch.zeros(64, 64), kernel((tensor, to), loop(j, 0, 64, loop(i, 0, 64, store(to, (j, i), value))))
    Machine(scheduled(single, {"j": (Role.VECTOR, 16)}))([x, across])
    torch.testing.assert_close(out, across.T, rtol=0, atol=0)
    torch.testing.assert_close(out, (x * 3).exp().expand(64, 64))


@pytest.mark.parametrize("dtype", [INT64, UINT64])
@pytest.mark.parametrize("name", ["floordiv", "mod"])
@pytest.mark.parametrize("divisor", [1, 2, 64, 2**62])
@pytest.mark.parametrize("width", [1, 4])
def test_powers_of_two_divide_without_a_division(dtype, name, divisor, width):
    x = torch.tensor(SAMPLES[dtype], dtype=TORCH[dtype])
    out = torch.zeros_like(x)
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    value = op(name, load(tensor, i), constant(divisor, dtype))
    made = kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), value)))
    machine = Machine(scheduled(made, {"i": (Role.VECTOR, width)} if width > 1 else {}))
    machine([x, out])
    assert torch.equal(out, interpreted(made, [x, torch.zeros_like(x)])[-1])
    assert "div i64" not in machine.module.text()
    assert "rem i64" not in machine.module.text()


@pytest.mark.parametrize("dtype", [INT64, UINT64])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_the_lesser_of_two_elements_is_picked_without_a_jump(dtype, name):
    pairs = list(product(SAMPLES[dtype], repeat=2))
    x, y = (torch.tensor(column, dtype=TORCH[dtype]) for column in zip(*pairs, strict=True))
    out = torch.zeros_like(x)
    tensors, i = [named("x", 0, x), named("y", 1, y), named("out", 2, out)], symbol("i")
    value = op(name, load(tensors[0], i), load(tensors[1], i))
    made = kernel(tuple(tensors), loop(i, 0, extent(tensors[2]), store(tensors[2], (i,), value)))
    machine = Machine(made)
    machine([x, y, out])
    assert torch.equal(out, interpreted(made, [x, y, torch.zeros_like(x)])[-1])
    picked = [
        line for line in optimised_ir(machine.module.text(), host_target()).splitlines() if "!unpredictable" in line
    ]
    assert len(picked) >= 1


@pytest.mark.parametrize("name", ["exp", "sin", "floordiv", "mod"])
def test_targets_with_narrower_vectors_give_the_same_bits(name):
    x, out = torch.randn(200) * 9, torch.zeros(200)
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    element = load(tensor, i)
    value = op(name, *([element] if OPERATORS[name].arity == 1 else [element, constant(0.7, FLOAT32)]))
    made = scheduled(kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), value))), {"i": (Role.VECTOR, 16)})
    results = []
    for size in (16, 32, 64):
        Machine(made, host_target(size))([x, out])
        results.append(out.clone())
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_the_c_library_answers_where_there_is_no_vector_library():
    x, out = torch.randn(37), torch.zeros(37)
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    made = kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), op("tanh", load(tensor, i)))))
    target = replace(host_target(), vector_library="none", library_bytes=0, fused=False)
    Machine(scheduled(made, {"i": (Role.VECTOR, 16)}), target)([x, out])
    torch.testing.assert_close(out, x.tanh())
    sine = kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), op("sin", load(tensor, i)))))
    Machine(scheduled(sine, {"i": (Role.VECTOR, 16)}), target)([x, out])
    torch.testing.assert_close(out, x.sin())


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("most", [4.0, 300.0, 20000.0, 1e30])
def test_sines_are_right_to_one_unit_in_the_last_place(name, most):
    x = torch.linspace(-most, most, 30011)
    x[:4] = torch.tensor([0.0, -0.0, math.inf, 1e-30])
    out = torch.zeros_like(x)
    tensor, to, i = named("x", 0, x), named("out", 1, out), symbol("i")
    made = kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), op(name, load(tensor, i)))))
    Machine(scheduled(made, {"i": (Role.VECTOR, 16)}))([x, out])
    exact = getattr(torch, name)(x.double())
    unit = torch.nextafter(exact.float().abs(), torch.tensor(math.inf)).double() - exact.float().abs().double()
    wrong = (out.double() - exact).abs() / unit
    assert wrong[~wrong.isnan()].max() <= 1.0
    assert torch.equal(out[:2].signbit(), exact[:2].signbit())
    assert out[2].isnan()


@pytest.mark.parametrize(("least", "most"), [(-1.0, 1.0), (-87.0, 88.7), (-104.5, -86.0), (88.5, 89.5), (-1e30, 1e30)])
def test_exponentials_are_right_to_a_unit_in_the_last_place_and_the_same_at_every_width(least, most):
    ends = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 88.72284, 88.72283, -103.97208, -103.97207])
    x = torch.cat((ends, torch.linspace(least, most, 30011)))
    tensor, i = named("x", 0, x), symbol("i")
    to = named("out", 1, x)
    made = kernel((tensor, to), loop(i, 0, extent(to), store(to, (i,), op("exp", load(tensor, i)))))
    results = []
    for width in (1, 4, 16, 64):
        for target in (host_target(), replace(host_target(), mask_registers=False)):
            out = torch.zeros_like(x)
            roles = {"i": (Role.VECTOR, width)} if width > 1 else {}
            Machine(scheduled(made, roles), target)([x, out])
            results.append(out.view(torch.int32))
    assert all(torch.equal(result, results[0]) for result in results)
    exact, found = x.double().exp(), results[0].view(torch.float32)
    rounded = exact.float()
    assert torch.equal(found.isinf(), rounded.isinf())
    assert torch.equal(found.isnan(), x.isnan())
    unit = (torch.nextafter(rounded, torch.tensor(math.inf)) - rounded).double()
    wrong = ((found.double() - exact).abs() / unit)[rounded.isfinite()]
    assert wrong.max() <= 1.01
