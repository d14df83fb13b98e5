"""Tensors that change places: `u, v = v, u` between time steps, in branches, after jumps; owners, results, errors."""

import copy

import pytest
import torch

import brickwork as bw
from brickwork.diagnostics.errors import CompileError
from brickwork.pytorch import batching

Tensor = torch.Tensor

pytestmark = pytest.mark.usefixtures("device")


@bw.op("bwswap::heat")
def heat(x: Tensor, steps: int) -> Tensor:
    n = x.shape[0]
    u = torch.empty_like(x)
    v = torch.empty_like(x)
    for i in range(n):
        u[i] = x[i]
        v[i] = x[i]
    for t in range(steps):
        for i in range(1, n - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u, v = v, u
    return u


@bw.op("bwswap::heat_")
def heat_(u: Tensor, steps: int) -> None:
    n = u.shape[0]
    v = torch.zeros(n)
    for t in range(steps):
        for i in range(n):
            v[i] = 0.5 * u[i] + t
        before = u
        u = v
        v = before
    for i in range(n):
        v[i] = u[i]


@bw.op("bwswap::rotate")
def rotate(a: Tensor, b: Tensor, c: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    out = torch.empty_like(a)
    s = 0.0
    for t in range(steps):
        if t == 3:
            continue
        for i in range(len(a)):
            a[i] += b[i] + t
        if t % 4 == 2:
            a, b = b, a
        a, b, c = b, c, a
        s += a[0]
        if t == 7:
            break
    for i in range(len(a)):
        out[i] = a[i] + 10 * b[i] + 100 * c[i]
    return out, s


@bw.op("bwswap::both")
def both(x: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    u = torch.zeros_like(x)
    v = torch.ones_like(x)
    for _ in range(steps):
        u, v = v, u
    u, v = v, u
    return u, v


@bw.op("bwswap::converged")
def converged(x: Tensor, tolerance: float) -> Tensor:
    u = torch.zeros_like(x)
    v = torch.zeros_like(x)
    error = 1.0
    while error > tolerance:
        error = 0.0
        for i in range(len(x)):
            v[i] = 0.5 * u[i] + x[i]
            error = max(error, abs(v[i] - u[i]))
        if error > 0.5:
            u, v = v, u
        else:
            u, v = v, u
    return u


def vectors(*sizes):
    return [torch.randn(size) for size in sizes]


def agrees(op, *arguments):
    one, other = copy.deepcopy(arguments), copy.deepcopy(arguments)
    torch.testing.assert_close(op(*one), op.python(*other))
    torch.testing.assert_close(one, other)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
@pytest.mark.parametrize("size", [0, 1, 2, 9])
def test_any_number_of_steps(steps, size):
    for op in (heat, heat_, both):
        agrees(op, *vectors(size), steps)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 8, 9])
def test_cycles_branches_and_jumps(steps):
    agrees(rotate, *vectors(4, 4, 4), steps)
    agrees(rotate, torch.ones(8)[::2], torch.arange(4.0), torch.randn(4, 2).T[0], steps)


def test_elements_may_decide(device):
    if device == "cuda":
        with pytest.raises(CompileError, match="elements decide whether `u` and `v` are exchanged"):
            converged(torch.rand(5), 1e-3)
        return
    agrees(converged, torch.rand(5), 1e-3)


def test_opcheck_passes():
    x = torch.randn(6)
    heat.check(x, 3)
    heat_.check(x, 3)
    both.check(x, 1)
    rotate.check(*vectors(4, 4, 4), 5)


def test_the_inner_loop_stays_parallel():
    text = heat.explain(torch.randn(5), 2)
    outer, inner = text.split("for t at")[1].split("for i at")
    assert "in order" in outer
    assert "exchanges 'u' and 'v' for the next iteration" in outer
    assert "in order" not in inner.splitlines()[0]


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_results_are_owned_and_given(steps):
    x = torch.randn(7)
    out = torch.empty(14)[::2]
    assert heat(x, steps, out=out) is out
    torch.testing.assert_close(out, heat(x, steps))
    one, other = both(x, steps)
    assert one.data_ptr() != other.data_ptr()
    for each in (one, other):
        assert torch._C._storage_Use_Count(each.untyped_storage()._cdata) == 2
    given = [torch.empty(7), torch.empty(7)]
    both(x, steps, out=tuple(given))
    torch.testing.assert_close(given, [one, other])


def test_an_argument_that_takes_part_counts_its_writes():
    x = torch.ones(4)
    for steps in (0, 1, 2):
        version = x._version
        heat_(x, steps)
        assert x._version == version + 1


def test_overlapping_arguments_give_the_sequential_answer():
    x = torch.randn(10)
    y = x.clone()
    one = rotate(x[0:4], x[2:6], x[4:8], 5)
    torch.testing.assert_close(one, rotate.python(y[0:4], y[2:6], y[4:8], 5))
    torch.testing.assert_close(x, y)


def test_tensors_of_different_sizes_are_refused_at_the_call():
    with pytest.raises(ValueError, match=r"`a` and `b` change places, but have the sizes 3 and 4 on axis 0"):
        rotate(*vectors(3, 4, 3), 2)


def refused(function):
    with pytest.raises(CompileError) as caught:
        bw.op(f"bwswap::{function.__name__}")(function)(torch.ones(3), torch.ones(3), 2)
    (found,) = caught.value.diagnostics
    assert found.help
    return found.message


def lost(u: Tensor, v: Tensor, n: int) -> None:
    for _ in range(n):
        for i in range(len(u)):
            v[i] = u[i]
        u = v


def aliased(u: Tensor, v: Tensor, n: int) -> Tensor:
    w = u
    out = torch.zeros(1)
    for _ in range(n):
        u, v = v, u
    out[0] = w[0]
    return out


def part(u: Tensor, v: Tensor, n: int) -> Tensor:
    out = torch.zeros(1)
    w = torch.zeros(2, 2)
    z = torch.zeros(2, 2)
    row = w[0]
    for _ in range(n):
        w, z = z, w
    out[0] = row[0]
    return out


def an_argument(u: Tensor, v: Tensor, n: int) -> Tensor:
    w = torch.zeros_like(u)
    for _ in range(n):
        before = u
        u = w
        w = before
    return w


def of_two_types(u: Tensor, v: Tensor, n: int) -> None:
    w = torch.zeros(3, dtype=torch.int64)
    for i in range(n):
        u[i] = w[i]
        u, w = w, u


def exchanging(u, v, n):
    for i in range(n):
        v[i] = u[i]
        u, v = v, u


def by_a_helper(u: Tensor, v: Tensor, n: int) -> None:
    for _ in range(1):
        exchanging(u, v, n)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lost, "`u` stands for the tensor of `v` from here on, in every later iteration"),
        (aliased, "`w` is another name for a tensor that is exchanged"),
        (part, "`row` is a part of a tensor that is exchanged"),
        (an_argument, "a result is, or may be, the argument `u`, which is exchanged with it"),
        (of_two_types, "`u` and `w` change places, but have 1 dimensions of float32 and 1 dimensions of int64"),
        (by_a_helper, "tensors are exchanged inside a helper"),
    ],
)
def test_refused_by_name(function, words):
    assert refused(function) == words


def test_python_hosts_exchange_too():
    @bw.op("bwswap::python")
    def python(x: Tensor, steps: int) -> Tensor:
        u = x.clone()
        v = torch.zeros_like(u)
        for _ in range(steps):
            for i in range(len(u)):
                v[i] = 0.5 * u[i] + 1
            u, v = v, u
        return u.sum()

    assert python.definition.host == "python"
    for steps in (0, 1, 2, 3):
        agrees(python, torch.randn(5), steps)


@bw.op("bwswap::swapped_difference")
def swapped_difference(x: Tensor, y: Tensor, times: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for t in range(times[0]):
        x, y = y, x
    for i in range(x.shape[0]):
        out[i] = x[i] - 2.0 * y[i]
    return out


@bw.op("bwswap::by_turns")
def by_turns(u: Tensor, v: Tensor, steps: int) -> None:
    for t in range(steps):
        for i in range(u.shape[0]):
            v[i] = 0.5 * u[i] + t
        u, v = v, u


@bw.op("bwswap::by_turns_of_each")
def by_turns_of_each(u: Tensor, v: Tensor, times: Tensor) -> None:
    for t in range(times[0]):
        for i in range(u.shape[0]):
            v[i] = 0.5 * u[i] + t
        u, v = v, u


def test_samples_do_not_exchange_elements_of_arguments(device):
    if device == "cuda":
        pytest.skip("elements of tensors on a GPU do not decide how often places change")
    x, y, times = torch.randn(4, 3), torch.randn(4, 3), torch.arange(4)[:, None]
    before = x.clone(), y.clone()
    found = torch.vmap(swapped_difference)(x, y, times)
    expected = [x - 2 * y if time % 2 == 0 else y - 2 * x for x, y, time in zip(*before, times, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected))
    torch.testing.assert_close((x, y), before)


@pytest.mark.parametrize("name", ["by_turns", "by_turns_of_each"])
def test_samples_of_arguments_that_are_stored_into(name, device, monkeypatch):
    operator, steps, axis = (
        (by_turns, 3, None) if name == "by_turns" else (by_turns_of_each, torch.arange(4)[:, None], 0)
    )
    if device == "cuda" and axis == 0:
        pytest.skip("elements of tensors on a GPU do not decide how often places change")
    one_by_one = []
    called = batching.Samples.one_by_one
    monkeypatch.setattr(batching.Samples, "one_by_one", lambda *args: one_by_one.append(args) or called(*args))

    def stored(operator):
        def function(u, v, steps):
            u, v = u.clone(), v.clone()
            operator(u, v, steps)
            return u, v

        return function

    u, v = torch.randn(4, 3, device=device), torch.randn(4, 3, device=device)
    found = torch.vmap(stored(operator), (0, 0, axis))(u, v, steps)
    expected = [stored(operator.python)(u[n], v[n], steps if axis is None else steps[n]) for n in range(4)]
    torch.testing.assert_close(found, tuple(map(torch.stack, zip(*expected, strict=True))))
    assert bool(one_by_one) == (axis == 0)
