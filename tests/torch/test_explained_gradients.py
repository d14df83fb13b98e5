"""`op.explain("backward", ...)` and `op.inspect("backward ...", ...)`: what a gradient costs, and its stages."""

import re

import pytest
import torch

import brickwork as bw
from brickwork.ops import timex

Tensor = torch.Tensor


@bw.op("bwexplained::embedding")
def embedding(table: Tensor, ids: Tensor) -> Tensor:
    out = torch.empty(ids.shape[0], table.shape[1])
    for i in range(ids.shape[0]):
        for j in range(table.shape[1]):
            out[i, j] = table[ids[i], j]
    return out


@bw.op("bwexplained::recurrence")
def recurrence(x: Tensor, a: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1] - 1):
            h = torch.tanh(h * a[b] + x[b, t])
            out[b, t] = h
        out[b, x.shape[1] - 1] = 0
    return out


@bw.op("bwexplained::squares_")
def squares_(u: Tensor, *, steps: int) -> None:
    for t in range(steps):
        for i in range(u.shape[0]):
            u[i] = 0.5 * u[i] * u[i] + t


@bw.op("bwexplained::products")
def products(x: Tensor, y: Tensor) -> Tensor:
    out = torch.zeros(y.shape[0], y.shape[1])
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            out[i, j] = x[i * j]
    return out


@bw.op("bwexplained::noisy")
def noisy(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * bw.rand()
    return out


@bw.op("bwexplained::joined")
def joined(xs: list[Tensor], w: Tensor, unread: Tensor) -> Tensor:
    out = torch.empty_like(w)
    for i in range(w.shape[0]):
        out[i] = xs[0][i] * xs[1][i] * w[i]
    return out


@bw.op("bwexplained::centred")
def centred(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    mean = x.mean()
    for i in range(x.shape[0]):
        out[i] = x[i] - mean
    return out


def test_timex():
    w, k = "float32[2] contiguous unit=1", "float32[3] contiguous unit=2"
    text = timex.explain("backward", torch.randn(4, 6), torch.randn(2, 4, 6), 0.1)
    assert text.split("\nkernel")[0].splitlines() == [
        "gradients",
        "  w: gather, each element is written once",
        "  k: gather, each element is written once",
        "computed again: nothing",
        "kept while it runs: nothing",
        "saved by the forward: w, k",
        f"timex__backward_11({w}, {k}, float64, {k})",
        "host part: native",
    ]
    loops = [line.split(" at ")[0].strip() for line in text.splitlines() if line.strip().startswith("for ")]
    assert loops == [f"for {name}" for name in ("c", "w_gradient_1", "b", "u", "b", "c", "u", "t")]
    assert "<brickwork>" not in text


def test_only_what_requires_grad_is_asked_for():
    text = timex.explain("backward", torch.randn(4, 6), torch.randn(2, 4, 6, requires_grad=True), 0.1, device="sm_90")
    assert "  k: gather" in text
    assert "  w:" not in text
    assert "saved by the forward: w; the sizes of k\n" in text
    assert "on cuda" in text


@pytest.mark.parametrize(
    ("device", "how"),
    [
        ("cpu", "iterations of 'i' in order, or in pieces with copies of it if they are many"),
        ("sm_90", "atomic additions"),
    ],
)
def test_a_scatter_says_why(device, how):
    meta = torch.empty(4, 5, device="meta"), torch.empty(3, dtype=torch.int64, device="meta")
    lines = embedding.explain("backward", *meta, device=device).splitlines()
    loc = embedding.definition.loc
    place = f"{loc.file}:{loc.line + 4}"
    assert lines[1] == f"  table: scatter, {how}, since its index at {place} comes from the elements of 'ids'"
    assert ("are atomic" in "\n".join(lines)) == (device != "cpu")


def test_an_index_that_cannot_be_solved():
    text = products.explain("backward", torch.randn(9), torch.randn(3, 3))
    assert (
        "  x: scatter, iterations of 'i' in order, or in pieces with copies of it if they are many, since its" in text
    )
    assert "cannot be solved for the loops" in text
    assert "  y: zero, since no result depends on its elements" in text


def test_what_is_kept_is_told_in_bytes():
    text = recurrence.explain("backward", torch.randn(4, 101), torch.randn(4))
    assert "computed again: h\n" in text
    assert "  h_tape: 4 * x.shape[0] * (x.shape[1] - 1) = 1,600 bytes\n" in text
    assert "  a: in place, iterations of 't' in order\n" in text
    half = recurrence.explain("backward", torch.randn(4, 101).half(), torch.randn(4).half())
    assert "  a_adjoint: 4 * a.shape[0] = 16 bytes\n" in half
    assert "  a: in place" in half
    text = squares_.explain("backward", torch.randn(4), steps=3)
    assert "  u_tape: 4 * steps * u.shape[0] = 48 bytes\n" in text
    assert "  u: in place" in text


def test_draws_lists_and_what_is_not_read():
    text = noisy.explain("backward", torch.randn(4))
    assert "saved by the forward: nothing; the sizes of x; the random key\n" in text
    text = joined.explain("backward", [torch.randn(3), torch.randn(3)], torch.randn(3), torch.randn(3))
    assert "  xs[0]: gather, each element is written once" in text
    assert "  xs[1]: gather, each element is written once" in text
    assert "  unread: zero" in text
    assert "saved by the forward: xs, w; the sizes of unread" in text


def test_gradients_of_others_are_told_so():
    @bw.op("bwexplained::clipped")
    def clipped(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = min(x[i], 1.0)
        return out

    @clipped.backward
    def straight_through(x, grad):
        return grad

    place = f"{__file__}:{straight_through.__code__.co_firstlineno}"
    assert clipped.explain("backward", torch.randn(3)) == (
        f"given by the user: `straight_through` at {place}\nsaved by the forward: all arguments"
    )
    with pytest.raises(ValueError, match="no derived gradient: given by the user: `straight_through`"):
        clipped.inspect("backward ir", torch.randn(3))

    def keep(ctx, inputs, output):
        ctx.save_for_backward(output)

    clipped.backward(setup_context=keep)(straight_through)
    assert clipped.explain("backward", torch.randn(3)).endswith(
        f"what `keep` at {__file__}:{keep.__code__.co_firstlineno} keeps"
    )
    assert "PyTorch differentiates the host part" in centred.explain("backward", torch.randn(3))


def test_stages():
    arguments = torch.randn(4, 6), torch.randn(2, 4, 6), 0.1
    assert "w_gradient" in timex.inspect("backward ir", *arguments)
    assert "w_gradient" not in timex.inspect("ir", *arguments)
    assert ".entry" in timex.inspect("backward ptx", *arguments, device="sm_90")
    with pytest.raises(ValueError, match="there is no stage 'ptx'"):
        timex.inspect("backward ptx", *arguments)


def test_arguments_in_place_of_a_stage():
    @bw.op
    def unsaid(x):
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i]
        return out

    for operator, name in ((squares_, "squares_"), (unsaid, "unsaid")):
        with pytest.raises(TypeError, match=rf"{name}.inspect\('ir', ...\); it got Tensor. Stages: ir, schedule, llvm"):
            operator.inspect(torch.randn(3))
    assert "squares_" in squares_.inspect("ir", torch.randn(3), steps=2)
    assert "unsaid" in unsaid.inspect("ir", torch.randn(3))


def test_nothing_to_explain():
    ids = torch.tensor([1, 2])
    with pytest.raises(ValueError, match="no float tensor among these arguments"):
        timex.explain("backward", ids[None], ids[None, None], 0.1)
    with pytest.raises(ValueError, match="there are: backward, fusion, sharding"):
        timex.explain("backwards", ids)


@bw.op("bwexplained::heated")
def heated(x: Tensor) -> Tensor:
    a, b = torch.empty_like(x), torch.empty_like(x)
    for i in range(x.shape[0]):
        a[i] = x[i]
        b[i] = x[i]
    for t in range(5):
        for i in range(1, x.shape[0] - 1):
            b[i] = (a[i - 1] + a[i + 1]) / 2
        for i in range(1, x.shape[0] - 1):
            a[i] = b[i]
    return a


@bw.op("bwexplained::heated_from")
def heated_from(x: Tensor, at: Tensor) -> Tensor:
    a, b = torch.empty_like(x), torch.empty_like(x)
    for i in range(x.shape[0]):
        a[i] = x[i]
        b[i] = x[i]
    for t in range(5):
        for i in range(1, x.shape[0] - 1):
            b[i] = (a[at[i]] + a[i + 1]) / 2
        for i in range(1, x.shape[0] - 1):
            a[i] = b[i]
    return a


def test_additions_never_meet_only_where_nothing_is_atomic():
    x, at = torch.empty(300, device="meta"), torch.empty(300, dtype=torch.int64, device="meta")
    assert "atomic" not in heated.explain("backward", x, device="sm_90")
    text = heated_from.explain("backward", x, at, device="sm_90")
    assert "never meet" not in text
    assert "  x: gather, each element is written once; it is made of 'a_adjoint', summed by atomic additions\n" in text
    assert re.search(r"\n  heated_from_\d+: .*, updates of 'a_adjoint' are atomic\n", text)


def test_launches_are_those_of_the_arguments():
    few, many = (heated.explain(torch.empty(size, device="meta"), device="sm_90") for size in (300, 1 << 20))
    assert few.endswith(
        "launches for these arguments\n  heated_0: 3 blocks of 32 threads\n  heated_1: 1 block of 320 threads"
    )
    assert "one block of threads runs all iterations" in few
    assert many.endswith("  heated_3: 5 times, 1024 blocks of 256 threads")
    assert "each iteration launches" in many
    assert "or one block of threads runs all iterations, if that is little" in heated.explain()
