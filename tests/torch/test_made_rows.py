"""Rows that loops make and rearrange, `torch.zeros(n)`, `torch.cat([x[i], y])`, `d[:, None]`: in four ways."""

# pyright: basic
from __future__ import annotations

import math
import warnings

import pytest
import torch

import brickwork as bw
from support.fourfold import agree


def recurrent(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = torch.zeros(x.shape[2])
        for t in range(x.shape[1]):
            h = torch.tanh(w @ h + x[b, t])
            out[b, t] = h
    return out


def delta_rule(q: torch.Tensor, k: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        state = torch.zeros(q.shape[2], q.shape[2], dtype=q.dtype, device=q.device)
        for t in range(q.shape[1]):
            state += beta[b, t] * (q[b, t] - state @ k[b, t])[:, None] * k[b, t][None, :]
            state = state + torch.outer(q[b, t], k[b, t]) * 0.1
            out[b, t] = state.T @ k[b, t] + state.t()[0] + q[b, t] @ state.transpose(0, 1)
    return out


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(q)
    for i in range(q.shape[0]):
        row = torch.empty(k.shape[0])
        for j in range(k.shape[0]):
            row[j] = torch.dot(q[i], k[j]) / math.sqrt(q.shape[1])
        p = torch.softmax(row, dim=0)
        for j in range(k.shape[0]):
            out[i] += p[j] * k[j]
    return out


def causal(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(q)
    for i in range(q.shape[0]):
        p = torch.softmax(q[i] @ k[: i + 1].T, dim=-1)
        out[i] = p @ k[: i + 1]
    return out


def shifting(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0])
    last = torch.zeros(w.shape[0])
    for i in range(x.shape[0]):
        last = torch.cat([last[1:], x[i, :1]])
        out[i] = torch.dot(last, w)
    return out


def joined(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    behind, beside = torch.empty(3, 4, 4), torch.empty(3, 2, 8)
    numbers = torch.empty(3, 5)
    for i in range(3):
        behind[i] = torch.cat([x[i], y[i]])
        beside[i] = torch.cat((x[i], y[i]), dim=-1)
        c = torch.cos(x[i, 0, 0])
        numbers[i, :3] = torch.stack([c, x[i, 1, 1], -c])
        numbers[i, 3:] = torch.stack([x[i, 0], y[i, 0]], dim=1)[1]
    return behind, beside, numbers


def made(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 4)
    for i in range(x.shape[0]):
        two, more = torch.full_like(x[i], 2.0), torch.ones(4, dtype=x.dtype)
        places = torch.arange(4) + torch.arange(1, 8, 2) * torch.arange(3, -1, -1)
        out[i] = (
            two * x[i] + more + places + torch.full((2, 2), 7)[0, 1] + x.new_full((4,), 3) + torch.tensor([1, 2, 3, 4])
        )
    return out


def marked(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, counts = torch.zeros(x.shape[0]), torch.zeros(x.shape[0], 3, dtype=torch.int64)
    for i in range(x.shape[0]):
        mask, count = torch.zeros(x.shape[1], dtype=torch.bool), torch.zeros(3, dtype=torch.int64)
        for j in range(x.shape[1]):
            mask[j] = x[i, j] > 0
            count[j % 3] += 1
        out[i] = (x[i] * mask).sum()
        counts[i] = count
    return out, counts


def gates(x, h, w):
    i, f, o, g = (w @ torch.cat([x, h])).chunk(4)
    return torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o), torch.tanh(g)


def lstm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h, c = torch.zeros(4), torch.zeros(4)
    out = torch.empty(x.shape[0], 4)
    for t in range(x.shape[0]):
        i, f, o, g = gates(x[t], h, w)
        c = f * c + i * g
        h = o * torch.tanh(c)
        out[t] = h
    return out


def parted(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 4)
    for i in range(x.shape[0]):
        a, b = x[i].split(4)
        c, d = torch.chunk(x[i], 2, dim=-1)
        out[i] = a * b + c - d
    return out


def named(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], 4)
    for i in range(x.shape[0]):
        d = (x[i] - y).abs()
        out[i, 0] = d.argmin()
        out[i, 1] = d.std() + d.norm()
        out[i, 2] = d.softmax(0)[1] + d.cumsum(0)[2]
        out[i, 3] = torch.norm(x[i].unsqueeze(0) - y, dim=1)[0] + d.sort()[0][0]
    return out


def chosen(x: torch.Tensor, flags: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        h = x[i] if flags[i] else -2 * x[i]
        out[i] = h * 2 + h[0]
    return out


def converted(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], dtype=torch.float64)
    for i in range(x.shape[0]):
        d, v = x[i].double(), x[i, 0]
        out[i] = (d * d).sum() + v.to(torch.float64) + (x[i] > 0).long().sum() + (x[i] > 0).to(x.dtype).mean()
    return out


def single(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for i in range(x.shape[0]):
        total, other = torch.zeros(1), torch.tensor(0.5)
        for j in range(x.shape[1]):
            total += x[i, j]
            other = other + x[i, j]
        out[i] = total
        out[i] += other
    return out


def widened(x: torch.Tensor) -> torch.Tensor:
    out, w = torch.empty(x.shape[0], 3, x.shape[1]), torch.ones(3)
    for i in range(x.shape[0]):
        out[i] = w[:, None] * x[i, None, :] + x[i][None] + x[i, 1:, None][0] + x[i, ..., None][1]
    return out


def windows(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[0])
    for t in range(x.shape[0]):
        part = x[max(0, t - 2) : t + 1]
        p = torch.softmax(part @ part.mean(dim=0), dim=0)
        out[t] = (p * p).sum() + p.max() + torch.cat([p, x[t]]).sum()
    return out


def counted_bytes(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(2, dtype=torch.uint8)
    for i in range(2):
        count = torch.zeros(1, dtype=torch.uint8)
        for j in range(len(x)):
            count[0] += x[j]
        out[i] = count[0]
    return out


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


CASES = {
    recurrent: (draw(2, 3, 4), draw(4, 4)),
    delta_rule: (draw(2, 3, 3), draw(2, 3, 3), draw(2, 3)),
    scores: (draw(3, 4), draw(5, 4)),
    causal: (draw(4, 3), draw(4, 3)),
    shifting: (draw(5, 3), draw(3)),
    joined: (draw(3, 2, 4), draw(3, 2, 4)),
    made: (draw(3, 4),),
    marked: (draw(3, 5),),
    lstm: (draw(4, 3), draw(16, 7)),
    parted: (draw(3, 8),),
    named: (draw(3, 4), draw(4)),
    chosen: (draw(4, 3), torch.tensor([True, False, True, False])),
    converted: (draw(3, 4),),
    single: (draw(3, 4),),
    widened: (draw(3, 4),),
    windows: (draw(5, 3),),
    counted_bytes: (torch.full((3,), 100, dtype=torch.uint8),),
}


@pytest.mark.parametrize("function", CASES, ids=lambda each: each.__name__)
def test_four_ways_agree(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error", bw.BrickworkWarning)
        made_of = agree(function, *CASES[function])
    assert "host part: native" in made_of.explain(*CASES[function])


def halved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(y)
    for i in range(y.shape[0]):
        row = (y[i] * 3.0).to(torch.bfloat16)
        out[i] = row.float() + y[i].half().float()
        for j in range(y.shape[1]):
            out[i, j] += x[i].half() + (x[i] * 3.0).bfloat16().double() + torch.tensor(0.1, dtype=torch.half)
    return out


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64])
def test_conversions_to_narrow_types_round(dtype):
    torch.manual_seed(4)  # of halves some are rounded twice in Python, to other numbers
    x, y = draw(4).mul(1000).to(dtype), torch.cat([draw(3, 5), torch.tensor([[7e4, -1e-9, 3e38, math.inf, math.nan]])])
    agree(halved, x, y)
    found = bw.op("made_rows::rounded")(halved)(x, y)
    torch.testing.assert_close(found, halved(x, y), rtol=1e-6, atol=1e-6, equal_nan=True)
    assert not torch.equal(found[:3], (y * 4 + (x * 4 + 0.1)[:, None])[:3])


@pytest.mark.parametrize("function", [recurrent, causal, lstm, chosen, windows], ids=lambda each: each.__name__)
def test_gradients_are_those_of_torch(function):
    operator, found = bw.op(f"made_rows::{function.__name__}")(function), []
    for run in (operator, function):
        given = [each.clone().requires_grad_(each.is_floating_point()) for each in CASES[function]]
        run(*given).pow(2).sum().backward()
        found.append([each.grad for each in given])
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-4)


def test_vmap_and_compiled_graphs():
    operator = bw.op("made_rows::lstm_of_samples")(lstm)
    x, w = draw(2, 4, 3), draw(16, 7)
    wanted = torch.stack([lstm(each, w) for each in x])
    torch.testing.assert_close(torch.vmap(operator, in_dims=(0, None))(x, w), wanted)
    torch.testing.assert_close(torch.compile(operator, fullgraph=True, backend="aot_eager")(x[0], w), wanted[0])


def after_torch(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.linalg.inv(x @ x.T + torch.eye(x.shape[0]))
    places, out = torch.empty(y.shape[0], dtype=torch.int64), torch.empty_like(y)
    for i in range(y.shape[0]):
        places[i] = y[i].argmax()
        out[i] = torch.cat([y[i, 1:], torch.zeros(1)])
    return places, out


def test_loops_are_compiled_beside_host_code_in_python():
    operator = bw.op("made_rows::after_torch")(after_torch)
    x = draw(4, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", bw.BrickworkWarning)
        torch.testing.assert_close(operator(x), after_torch(x), rtol=1e-4, atol=1e-4)
    assert "compiled, as made_rows::after_torch__loop0" in operator.explain(x)


def solved(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(b)
    for i in range(a.shape[0]):
        h, s = torch.zeros(b.shape[1]), torch.linalg.solve(a[i], b[i])
        for j in range(b.shape[1]):
            h[j] = s[j] * 2 + b[i].max()
        out[i] = h
    return out


def changed_in_place(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = torch.zeros(x.shape[1])
        h.add_(x[i])
        out[i] = h
    return out


def of_every_length(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x))
    for i in range(1, len(x)):
        row = torch.zeros(i)
        for j in range(i):
            row[j] = x[j]
        out[i] = row.sum()
    return out


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (solved, (torch.eye(3).repeat(2, 1, 1) * 2, draw(2, 3))),
        (changed_in_place, (draw(2, 3),)),
        (of_every_length, (draw(5),)),
    ],
)
def test_what_stays_with_python_is_told(function, arguments):
    with pytest.warns(bw.BrickworkWarning, match="BW405"):
        found = bw.op(f"made_rows::{function.__name__}")(function)(*arguments)
    torch.testing.assert_close(found, function(*arguments))


def kept_while_changed(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        h = x[i] if i % 2 else x[0]
        x[i, 0] = 1.0
        out[i] = h
    return out


def test_a_row_that_is_chosen_is_a_view():
    with pytest.raises(bw.CompileError, match="is kept while `x`"):
        bw.op("made_rows::kept_while_changed")(kept_while_changed)(draw(3, 2))


def counted(n: int) -> torch.Tensor:
    out = torch.zeros(2)
    for i in range(2):
        out[i] = torch.arange(1, n).sum() + torch.arange(3, n, -1).sum()
    return out


def test_ends_on_the_wrong_side_are_torchs_error():
    operator = bw.op("made_rows::counted")(counted)
    for n in (0, 1, 2, 3, 4):
        for run in (operator, operator.python):
            if 1 <= n <= 3:
                torch.testing.assert_close(run(n), counted(n))
            else:
                with pytest.raises(RuntimeError, match="inconsistent with step sign"):
                    run(n)


def of_other_lengths(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(2, 3)
    for i in range(2):
        out[i] = torch.cat([x[i, :2], x[i]])
    return out


def test_lengths_that_do_not_fit_are_torchs_error():
    operator = bw.op("made_rows::of_other_lengths")(of_other_lengths)
    for run in (operator, operator.python):
        with pytest.raises(RuntimeError, match="must match the existing size"):
            run(draw(2, 3))


def beside(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x), 2, dtype=torch.float64)
    for i in range(len(x)):
        out[i] = torch.tensor([x[i, 0] / 3, x[i, 1]])
    return out


def test_elements_beside_one_another_keep_their_type():
    x, operator = draw(4, 2).double() / 7, bw.op("made_rows::beside")(beside)
    torch.testing.assert_close(operator(x), beside(x), rtol=0, atol=1e-15)
    torch.testing.assert_close(operator.python(x), beside(x), rtol=0, atol=1e-15)


def in_parts(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(x), 4)
    for i in range(len(x)):
        left, right = x[i].chunk(2, dim=1)
        first, second, third = torch.split(2 * x[i], 2, dim=0)
        out[i, 0] = (left[:, 1:] * right).sum()
        out[i, 1] = left.sum() + 10 * right[0, -1]
        out[i, 2] = (first * second).sum() + third.sum()
        out[i, 3] = third[0, 4]
    return out


def test_parts_along_an_axis_have_sizes_of_their_own():
    x, operator = draw(3, 5, 5), bw.op("made_rows::in_parts")(in_parts)
    torch.testing.assert_close(operator(x), in_parts(x))
    torch.testing.assert_close(operator.python(x), in_parts(x))
    assert "host part: native" in operator.explain(x)
