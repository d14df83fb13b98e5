"""The ready operators against their torch formulations, and as operators of PyTorch."""

import math

import pytest
import torch

import brickwork as bw
from benchmarks.peers import torch_formulations as reference
from brickwork import ops
from brickwork.ops.brick_pad import brick_pad_colour, brick_pad_plane
from support.gpu import only_cpu

pytestmark = pytest.mark.usefixtures("device")

LATTICES = [
    ([0, 0], [6, 0], [0, 4]),
    ([13, 7], [6, 0], [2, 4]),
    ([-9, -31], [6, 0], [-5, 4]),
    ([1000, 2000], [6, 0], [10**6, 4]),
]
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int64, torch.bool]
SIZES = [(21, 133), (1, 1), (4, 6), (0, 5), (5, 0)]


def tile_of(dtype, *shape):
    return torch.randint(0, 2 if dtype is torch.bool else 100, shape).to(dtype)


# ---------------------------------------------------------------- brick_pad


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [(), (3,)])
def test_brick_pad_on_lattices(lattice, size, channels):
    tile = torch.rand(4, 6, *channels)
    assert torch.equal(ops.brick_pad(tile, *size, *lattice), reference.brick_pad(tile, *size, *lattice))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [(), (3,)])
def test_brick_pad_in_every_dtype(dtype, channels):
    tile = tile_of(dtype, 4, 6, *channels)
    found = ops.brick_pad(tile, 21, 70, *LATTICES[1])
    assert found.dtype is dtype
    assert torch.equal(found, reference.brick_pad(tile, 21, 70, *LATTICES[1]))


@pytest.mark.parametrize("lattice", LATTICES[:2])
def test_brick_pad_by_a_table_of_coordinates(lattice):
    tile = torch.rand(4, 6)
    found = reference.brick_pad_by_table(reference.pixel_table(21, 133, tile.device), tile, *lattice)
    assert torch.equal(found, ops.brick_pad(tile, 21, 133, *lattice))


def test_brick_pad_headline_case_in_small():
    tile = torch.rand(48, 32)
    arguments = (208, 515, [256, 128], [32, 0], [10, 48])
    assert torch.equal(ops.brick_pad(tile, *arguments), reference.brick_pad(tile, *arguments))


@pytest.mark.parametrize("shape", [(3, 1), (1, 3), (1, 1), (2, 64), (5, 17)])
def test_brick_pad_with_tiles_of_any_shape(shape):
    tile = torch.rand(shape)
    arguments = (19, 150, [5, 3], [shape[1], 0], [1, shape[0]])
    assert torch.equal(ops.brick_pad(tile, *arguments), reference.brick_pad(tile, *arguments))


def test_brick_pad_into_given_images():
    tile = torch.rand(4, 6)
    expected = reference.brick_pad(tile, 21, 33, *LATTICES[1])
    for image in (torch.zeros(21, 33), torch.zeros(33, 21).T, torch.zeros(21, 66)[:, ::2]):
        assert ops.brick_pad(tile, 21, 33, *LATTICES[1], out=image) is image
        assert torch.equal(image, expected)


def test_brick_pad_of_a_strided_tile():
    tile = torch.rand(12, 8)[::2, ::2].T
    assert torch.equal(ops.brick_pad(tile, 21, 33, *LATTICES[1]), reference.brick_pad(tile, 21, 33, *LATTICES[1]))


UNCOVERED = [([7, 0], [2, 4], "wide"), ([6, 1], [2, 4], "horizontal"), ([6, 0], [2, 5], "high")]


@pytest.mark.parametrize(("shift_x", "shift_y", "message"), UNCOVERED)
@pytest.mark.parametrize("channels", [(), (3,)])
def test_brick_pad_refuses_lattices_that_do_not_cover_the_plane(shift_x, shift_y, message, channels):
    with pytest.raises(AssertionError, match=message):
        ops.brick_pad(torch.rand(4, 6, *channels), 21, 33, [0, 0], shift_x, shift_y)


# ---------------------------------------------------------------- timex


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 7), (3, 2, 33), (2, 5, 130), (0, 3, 4), (2, 0, 4), (2, 3, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_timex(shape, dtype):
    b, c, t = shape
    w, k = torch.randn(c, t, dtype=dtype), torch.randn(b, c, t, dtype=dtype)
    found = ops.timex(w, k, 0.25)
    assert found.shape == shape
    assert found.dtype is dtype
    if found.numel():
        expected = reference.timex(w.double(), k.double(), 0.25)
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4 if dtype is torch.float32 else 1e-12)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 7), (2, 5, 130)])
def test_timex_padded_is_timex_and_conv1d(shape):
    b, c, t = shape
    w, k = torch.randn(c, 1, t), torch.randn(b, c, 2 * t - 1)
    torch.testing.assert_close(ops.timex_padded(w, k, 0.5), reference.timex_padded(w, k, 0.5), rtol=1e-5, atol=1e-4)
    k[..., : t - 1] = 0
    torch.testing.assert_close(
        ops.timex_padded(w, k, 0.5), ops.timex(w[:, 0], k[..., t - 1 :], 0.5), rtol=1e-5, atol=1e-4
    )


def test_timex_is_causal():
    w, k = torch.randn(2, 40), torch.randn(3, 2, 40)
    before = ops.timex(w, k, 0.0)
    k[..., 20:] += 1
    assert torch.equal(ops.timex(w, k, 0.0)[..., :20], before[..., :20])


@only_cpu
def test_timex_does_not_depend_on_threads():
    w, k = torch.randn(8, 130), torch.randn(4, 8, 130)
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2):
            torch.set_num_threads(count)
            results.append(ops.timex(w, k, 0.1))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1])


@only_cpu
def test_timex_does_not_depend_on_the_width_of_vectors():
    """A definition of its own for each width: specialisations of one operator are kept for the process."""
    w, k = torch.randn(4, 70), torch.randn(2, 4, 70)
    expected = ops.timex(w, k, 0.1)
    for width in (4, 16, 32):
        with bw.config.override(vector_bytes=width):
            other = bw.op(f"test_ready::timex_{width}")(ops.timex.__wrapped__)
            assert torch.equal(other(w, k, 0.1), expected)


def test_timex_refuses_shapes_that_do_not_fit():
    with pytest.raises(AssertionError, match="channels"):
        ops.timex(torch.randn(3, 4), torch.randn(2, 2, 4), 0.1)
    with pytest.raises(AssertionError, match="length"):
        ops.timex(torch.randn(2, 5), torch.randn(2, 2, 4), 0.1)
    with pytest.raises(AssertionError, match="padded"):
        ops.timex_padded(torch.randn(2, 1, 5), torch.randn(2, 2, 8), 0.1)


# ---------------------------------------------------------------- sin


STRIDED = {
    "contiguous": lambda: torch.randn(3, 70),
    "transposed": lambda: torch.randn(70, 3).T,
    "stepped": lambda: torch.randn(9, 140)[::3, ::2],
    "expanded": lambda: torch.randn(70).expand(3, 70),
    "a scalar": lambda: torch.randn(()),
    "empty": lambda: torch.randn(3, 0, 2),
    "five axes": lambda: torch.randn(2, 3, 1, 4, 5).permute(4, 2, 0, 3, 1),
    "an offset": lambda: torch.randn(101)[1:],
}


@pytest.mark.parametrize("make", STRIDED.values(), ids=STRIDED.keys())
def test_sin_in_any_layout(make):
    x = make()
    found = ops.sin(x)
    assert found.shape == x.shape
    assert found.stride() == torch.empty_like(x).stride()
    torch.testing.assert_close(found, torch.sin(x), rtol=1e-6, atol=2e-7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_sin_in_every_float(dtype):
    x = torch.cat([torch.linspace(-20, 20, 999), torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan])]).to(dtype)
    torch.testing.assert_close(ops.sin(x), torch.sin(x), equal_nan=True)


def test_sin_of_large_arguments():
    x = torch.logspace(0, 37, 5000)
    torch.testing.assert_close(ops.sin(x).double(), torch.sin(x.double()), rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- sample_normal


def test_samples_of_columns(device):
    mu, sigma = torch.randn(5, device=device), torch.rand(5, device=device) + 0.5
    expected = ops.sample_normal(mu, sigma, 7, key=3)
    assert torch.equal(ops.sample_normal(mu[:, None], sigma[:, None], 7, key=3), expected)
    assert torch.equal(ops.sample_normal(mu, sigma[:, None], 7, key=3), expected)
    with pytest.raises(AssertionError, match=r"mu must have the shape \(d,\) or \(d, 1\)"):
        ops.sample_normal(mu[:, None].expand(5, 2), sigma, 7)


def test_samples_follow_their_distributions():
    torch.manual_seed(3)
    mu, sigma = torch.linspace(-3, 3, 500), torch.linspace(0.5, 2, 500)
    z = (ops.sample_normal(mu, sigma, 2000) - mu[:, None]) / sigma[:, None]
    assert abs(z.mean()) < 5e-3
    assert abs(z.std() - 1) < 5e-3
    assert abs((z**4).mean() - 3) < 5e-2
    assert z.mean(1).abs().max() < 5 / math.sqrt(2000)
    assert (z[:-1] * z[1:]).mean(1).abs().max() < 6 / math.sqrt(2000)
    assert (z[:, :-1] * z[:, 1:]).mean().abs() < 5e-3


def test_samples_have_the_right_distribution_function():
    torch.manual_seed(4)
    z = ops.sample_normal(torch.zeros(100), torch.ones(100), 1000).flatten().double().sort().values
    uniform = (1 + torch.erf(z / math.sqrt(2))) / 2
    steps = torch.arange(1, len(z) + 1) / len(z)
    assert (uniform - steps).abs().max() < 2 / math.sqrt(len(z))


def test_seeds_decide_and_calls_differ():
    mu, sigma = torch.zeros(5), torch.ones(5)
    torch.manual_seed(1)
    first, second = ops.sample_normal(mu, sigma, 7), ops.sample_normal(mu, sigma, 7)
    torch.manual_seed(1)
    assert torch.equal(ops.sample_normal(mu, sigma, 7), first)
    assert not torch.equal(first, second)


def test_a_generator_decides(device):
    mu, sigma = torch.zeros(5), torch.ones(5)
    results = [
        ops.sample_normal(mu, sigma, 7, generator=torch.Generator(device=device).manual_seed(9)) for _ in range(2)
    ]
    assert torch.equal(results[0], results[1])
    state = torch.get_rng_state()
    ops.sample_normal(mu, sigma, 7, generator=torch.Generator(device=device).manual_seed(9))
    assert torch.equal(torch.get_rng_state(), state)


@only_cpu
def test_samples_do_not_depend_on_threads():
    mu, sigma = torch.zeros(300), torch.ones(300)
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2):
            torch.set_num_threads(count)
            torch.manual_seed(1)
            results.append(ops.sample_normal(mu, sigma, 333))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1])


# ---------------------------------------------------------------- all of them


CALLS = {
    "brick_pad": (brick_pad_plane, lambda: (torch.rand(4, 6), 9, 14, [3, 2], [6, 0], [2, 4])),
    "brick_pad_colour": (brick_pad_colour, lambda: (torch.rand(4, 6, 3), 9, 14, [3, 2], [6, 0], [2, 4])),
    "timex": (ops.timex, lambda: (torch.randn(2, 9), torch.randn(2, 2, 9), 0.1)),
    "timex_padded": (ops.timex_padded, lambda: (torch.randn(2, 1, 5), torch.randn(2, 2, 9), 0.1)),
    "sin": (ops.sin, lambda: (torch.randn(3, 5),)),
    "sample_normal": (ops.sample_normal, lambda: (torch.zeros(3), torch.ones(3), 4)),
}


@pytest.mark.parametrize("name", CALLS)
def test_compiled_code_agrees_with_python(name):
    operator, make = CALLS[name]
    arguments = make()
    if name == "sample_normal":
        found, expected = operator(*arguments, key=7), operator.python(*arguments, key=7)
    else:
        found, expected = operator(*arguments), operator.python(*arguments)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name):
    operator, make = CALLS[name]
    overload = getattr(torch.ops.brickwork, operator.name.removeprefix("brickwork::")).default
    torch.library.opcheck(overload, make())


@only_cpu
@pytest.mark.parametrize("name", CALLS)
def test_loops_are_not_left_in_order(name):
    operator, make = CALLS[name]
    said = operator.explain(*make())
    assert "in parallel" in said
    assert "checked" not in said


@only_cpu
def test_op_python_draws_what_machine_code_draws():
    mu, sigma = torch.zeros(3), torch.ones(3)
    torch.manual_seed(11)
    expected, state = ops.sample_normal(mu, sigma, 5), torch.get_rng_state()
    torch.manual_seed(11)
    torch.testing.assert_close(ops.sample_normal.python(mu, sigma, 5), expected)
    assert torch.equal(torch.get_rng_state(), state)


# ---------------------------------------------------------------- integers


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_the_sine_of_integers_is_torchs(dtype):
    x = torch.tensor([[0, 1, 2], [3, 4, 200]]).to(dtype).t()
    for function in (ops.sin, ops.sin.python, torch.ops.brickwork.sin):
        torch.testing.assert_close(function(x), torch.sin(x))
    torch.testing.assert_close(torch.compile(ops.sin, backend="aot_eager", fullgraph=True)(x), torch.sin(x))
    assert ops.sin.definition.host == "native"


def test_operators_of_real_numbers_refuse_integers():
    whole, real = torch.ones(2, 5, dtype=torch.int64), torch.ones(1, 2, 5)
    for function in (ops.timex, ops.timex.python, torch.ops.brickwork.timex):
        with pytest.raises(AssertionError, match="w must be of a floating-point type"):
            function(whole, real, 0.1)
        with pytest.raises(AssertionError, match="k must be of a floating-point type"):
            function(whole.float(), real.long(), 0.1)
    with pytest.raises(AssertionError, match="k must be of a floating-point type"):
        ops.timex_padded(real.view(2, 1, 5), torch.ones(1, 2, 9, dtype=torch.int32), 0.1)
    with pytest.raises(AssertionError, match="mu must be of a floating-point type"):
        ops.sample_normal(torch.ones(2, dtype=torch.int32), torch.ones(2), 3)
