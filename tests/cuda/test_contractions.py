"""Contractions in tiles of matrix instructions agree with float64, for sizes around tiles, views, masks and windows."""

import pytest
import torch

import brickwork as bw
from support import contractions
from support.gpu import GPU

pytestmark = GPU
SIZES = [(8, 128, 32), (33, 65, 33), (64, 64, 64), (127, 129, 131), (200, 128, 40), (257, 264, 72), (1000, 17, 100)]
TYPES = [torch.bfloat16, torch.float16, torch.float32]
OPERATORS = {
    name: bw.op(f"bwcontract::{name}")(getattr(contractions, name))
    for name in (
        "product",
        "added",
        "scaled",
        "halved",
        "widened",
        "transposed",
        "activated",
        "dequantised",
        "group_scaled",
        "masked",
        "chosen",
        "batch_last",
        "looked_up",
        "convolution",
        "below_diagonal",
        "causal_filter",
        "filter_bank",
        "shared_heads",
    )
}


def drawn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def agree(found, expected):
    bound = {torch.bfloat16: 8e-3, torch.float16: 1e-3}.get(found.dtype, 2e-6)
    assert (found.double() - expected).abs().max() <= bound * expected.abs().max().clamp_min(1e-30)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_products_agree(sizes, dtype):
    n, m, k = sizes
    a, b, bias = drawn(n, k, dtype=dtype), drawn(k, m, dtype=dtype), drawn(m, dtype=dtype)
    expected = a.double() @ b.double()
    agree(OPERATORS["product"](a, b), expected)
    agree(OPERATORS["product"](a, b.T.contiguous().T), expected)
    agree(OPERATORS["transposed"](a, b.T.contiguous()), expected)
    agree(OPERATORS["widened"](a, b), expected)
    activated = torch.nn.functional.gelu(expected + bias.double())
    agree(OPERATORS["activated"](a, b, bias), activated)
    whole = torch.randint(-100, 100, (m, k), device="cuda", dtype=torch.int8)
    agree(OPERATORS["dequantised"](a, whole, bias), a.double() @ (whole.double() * bias.double()[:, None]).T)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "m", "groups"), [(16, 64, 2), (65, 72, 3), (257, 264, 8), (1000, 520, 17)])
def test_codes_with_scales_of_groups_agree(n, m, groups, dtype):
    a, scale = drawn(n, 32 * groups, dtype=dtype), drawn(groups, m, dtype=dtype)
    codes = torch.randint(0, 256, (16 * groups, m), device="cuda", dtype=torch.uint8)
    whole = torch.stack([codes & 15, codes >> 4], 1).reshape(32 * groups, m).double() - 8
    agree(OPERATORS["group_scaled"](a, codes, scale), a.double() @ (whole * scale.double().repeat_interleave(32, 0)))


@pytest.mark.parametrize(("left", "right"), [(0, 2), (2, 0), (1, 0), (2, 1)])
@pytest.mark.parametrize("sizes", SIZES)
def test_factors_of_two_types_agree(sizes, left, right):
    n, m, k = sizes
    a, b = drawn(n, k, dtype=TYPES[left]), drawn(k, m, dtype=TYPES[right])
    agree(OPERATORS["widened"](a, b), a.double() @ b.double())
    agree(OPERATORS["product"](a, b), a.double() @ b.double())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("sizes", "filters"), [((2, 33, 9, 11), 40), ((3, 64, 20, 40), 72), ((40, 16, 5, 64), 33)])
def test_gradients_of_convolutions_agree(sizes, filters, dtype):
    x, w = drawn(*sizes, dtype=dtype).requires_grad_(), drawn(filters, sizes[1], 3, 3, dtype=dtype).requires_grad_()
    out = OPERATORS["convolution"](x, w)
    towards = torch.randn_like(out)
    one, other, far = (tensor.detach().double() for tensor in (x, w, towards))
    agree(out, torch.conv2d(one, other, padding=1))
    to_input = torch.nn.grad.conv2d_input(one.shape, other, far, padding=1)
    to_weights = torch.nn.grad.conv2d_weight(one, other.shape, far, padding=1)
    for wanted, expected in ((x, to_input), (w, to_weights)):
        (found,) = torch.autograd.grad(out, (wanted,), towards, retain_graph=True)
        agree(found, expected)


def test_parts_of_what_is_not_finite_are_as_multiply_adds_give_them():
    a, b = drawn(64, 128), drawn(128, 64, dtype=torch.bfloat16)
    a[3, 5], a[7, 9], a[9, 1] = float("inf"), float("nan"), 3.4e38
    found, expected = OPERATORS["widened"](a, b), a @ b.float()
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_batches_along_memory_agree(sizes, dtype):
    n, m, k = sizes
    a, b = drawn(n, k, 3, dtype=dtype), drawn(k, m, 3, dtype=dtype)
    agree(OPERATORS["batch_last"](a, b), torch.einsum("ikh,kjh->ijh", a.double(), b.double()))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_masks_and_places_agree(sizes, dtype):
    n, m, k = sizes
    a, b, mask = drawn(n, k, dtype=dtype), drawn(k, m, dtype=dtype), drawn(n, k)
    agree(OPERATORS["masked"](a, b, mask), (a.double() * (mask > 0)) @ b.double())
    elements = drawn(n, m)
    agree(OPERATORS["chosen"](a, b, elements), (a.double() @ b.double()) * (elements > 0))
    rows = torch.randint(0, n, (m,), device="cuda")
    agree(OPERATORS["looked_up"](a, rows, b), a.double()[rows] @ b.double())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("height", "width", "channels", "filters"), [(9, 11, 33, 40), (20, 17, 64, 64), (12, 12, 7, 65)]
)
def test_windows_agree(height, width, channels, filters, dtype):
    x, w = drawn(3, channels, height, width, dtype=dtype), drawn(filters, channels, 3, 3, dtype=dtype)
    agree(OPERATORS["convolution"](x, w), torch.conv2d(x.double(), w.double(), padding=1))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("width", "channels", "filters", "size"), [(30, 40, 64, 3), (58, 64, 70, 3), (33, 100, 130, 5)]
)
def test_windows_in_boxes_agree(width, channels, filters, size, dtype):
    x, w = drawn(20, channels, 31, width, dtype=dtype), drawn(filters, channels, size, size, dtype=dtype)
    found = OPERATORS["convolution"](x, w)
    agree(found, torch.conv2d(x.double(), w.double(), padding=size // 2))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("batch", "length"), [(8, 40), (32, 200), (33, 131), (64, 128), (130, 72), (32, 1300)])
def test_factors_in_which_rows_and_terms_meet_agree(batch, length, dtype):
    w, k = drawn(3, length, dtype=dtype), drawn(batch, 3, length, dtype=dtype)
    place = torch.arange(length, device="cuda")
    past = (length - 1 - place[:, None] + place).clamp(max=length - 1)
    table = torch.tril(w.double()[:, past])
    agree(OPERATORS["causal_filter"](w, k), torch.einsum("ctu,bcu->bct", table, k.double()))
    x, bank = drawn(3 * length + 7, dtype=dtype), drawn(batch, length, dtype=dtype)
    agree(OPERATORS["filter_bank"](x, bank), bank.double() @ x.double().unfold(0, length, 1).T)


def test_numbers_beyond_the_terms_are_not_multiplied():
    """A row's number that is not finite is staged for other rows, too."""
    w, k = drawn(2, 100, dtype=torch.bfloat16), drawn(32, 2, 100, dtype=torch.bfloat16)
    w[:, 3] = float("inf")
    found = OPERATORS["causal_filter"](w, k)
    assert found[..., :96].isfinite().all()
    assert not found[..., 96:].isfinite().any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("length", "width"), [(33, 32), (100, 64), (130, 40), (257, 128)])
def test_triangles_agree(length, width, dtype):
    p, v = drawn(3, length, length, dtype=dtype), drawn(3, length, width, dtype=dtype)
    agree(OPERATORS["below_diagonal"](p, v), torch.tril(p.double()) @ v.double())


def test_what_is_not_finite_is_as_multiply_adds_give_it():
    a, b = drawn(64, 128), drawn(128, 64)
    a[3, 5], b[7, 9], a[9, 1] = float("inf"), float("nan"), 3e38
    found, expected = OPERATORS["product"](a, b), a @ b
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())
    mask = torch.ones(64, 128, device="cuda")
    mask[:, 7] = 0
    assert OPERATORS["masked"](drawn(64, 128), b, mask).isfinite().all()


@pytest.mark.parametrize("dtype", TYPES)
def test_what_scales_a_sum_meets_each_product(dtype):
    """A sum of zeros and others times an infinity is one, but for its zeros, whose products are not numbers."""
    a, scale = drawn(65, 128, dtype=dtype), drawn(72, dtype=dtype)
    whole = torch.arange(-128, 128, device="cuda").repeat(36).reshape(72, 128).to(torch.int8)
    agree(OPERATORS["dequantised"](a, whole, scale), a.double() @ (whole.double() * scale.double()[:, None]).T)
    scale[7], scale[9] = float("inf"), float("nan")
    assert bool((whole[7] == 0).any())
    found = OPERATORS["dequantised"](a, whole, scale)
    assert found[:, [7, 9]].isnan().all()
    assert found[:, [0, 8, 71]].isfinite().all()


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_that_begin_late_have_the_sign_of_zero_of_the_source(dtype):
    """-0.0 stays if all terms are -0.0, and becomes 0.0 by one that is 0.0, whatever scales the sum."""
    a, b = torch.ones(64, 64, device="cuda", dtype=dtype), torch.zeros(64, 64, device="cuda", dtype=dtype)
    b[:, :32] = -0.0
    negative = torch.full((64, 64), -0.0, device="cuda")
    found = negative.clone()
    OPERATORS["added"](a, b, found)
    assert (found == 0).all()
    assert found[:, :32].signbit().all()
    assert not found[:, 32:].signbit().any()
    a[:, 32:] = -1
    found = negative.clone()
    OPERATORS["scaled"](a, torch.ones_like(b), torch.zeros(64, device="cuda"), found)
    assert (found == 0).all()
    assert not found.signbit().any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_products_that_a_scale_keeps_in_range_are_summed_up_with_it(dtype):
    a, b = (torch.full((64, 64), value, device="cuda", dtype=dtype) for value in (2.0**-100, 2.0**-60))
    found = torch.zeros(64, 64, device="cuda")
    OPERATORS["scaled"](a, b, torch.full((64,), 2.0**100, device="cuda"), found)
    assert (found == 2.0**-54).all()
    a, b = (torch.full((64, 64), value, device="cuda", dtype=dtype) for value in (2.0**64, 2.0**59))
    OPERATORS["halved"](a, b, found)
    assert (found == 2.0**126).all()


def test_repeated_products_have_the_same_bits():
    a, b = drawn(256, 512, dtype=torch.bfloat16), drawn(512, 256, dtype=torch.bfloat16)
    first = OPERATORS["product"](a, b)
    assert all(torch.equal(OPERATORS["product"](a, b), first) for _ in range(20))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", [(1, 2, 1, 64, 64, 32), (2, 8, 2, 512, 512, 64), (2, 6, 3, 65, 129, 40)])
def test_heads_that_share_keys_agree(sizes, dtype):
    batches, heads, shared, rows, columns, depth = sizes
    q, k = drawn(batches, heads, rows, depth, dtype=dtype), drawn(batches, shared, columns, depth, dtype=dtype)
    every = k.repeat_interleave(heads // shared, 1)
    agree(OPERATORS["shared_heads"](q, k), q.double() @ every.double().mT)
