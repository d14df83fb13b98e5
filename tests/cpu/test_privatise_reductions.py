"""Loops that only updates keep in order run in pieces on copies of what they update, where they are long."""

import pytest
import torch

import brickwork as bw
from brickwork.transform import privatise_reductions


@pytest.fixture(autouse=True)
def low_limits(monkeypatch):
    monkeypatch.setattr(privatise_reductions, "PIECES", 3)
    monkeypatch.setattr(privatise_reductions, "SHARE", 20)
    monkeypatch.setattr(privatise_reductions, "PER_ELEMENT", 1)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def counted(x: torch.Tensor, bins: int):
    counts = torch.zeros(bins, dtype=torch.int64)
    for i in range(len(x)):
        if x[i] >= 0:
            counts[int(x[i] * bins)] += 1
    return counts


def summed(index: torch.Tensor, x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[index[i], j] += x[i, j]


def extremes(index: torch.Tensor, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> None:
    for i in range(len(x)):
        low[index[i]] = min(low[index[i]], x[i])
        high[index[i]] = max(high[index[i]], x[i])


def again(index: torch.Tensor, out: torch.Tensor, turns: int) -> None:
    for turn in range(turns):
        for i in range(len(index)):
            out[index[i]] += i
        for j in range(len(out)):
            out[j] = out[j] // 2


def ragged(first: torch.Tensor, index: torch.Tensor, out: torch.Tensor) -> None:
    for r in range(len(first) - 1):
        for e in range(first[r], first[r + 1]):
            out[index[e]] -= e


def skewed(index: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(len(index)):
        for j in range(3):
            for k in range(i - 1, i + 2):
                out[index[i]] += k + j


def both(index: torch.Tensor, out: torch.Tensor, total: torch.Tensor) -> None:
    for i in range(len(index)):
        out[index[i]] += 1
        total[0] = total[0] * 3 + index[i]


def indices(n, size):
    return torch.randint(0, size, (n,), generator=torch.Generator().manual_seed(n))


CASES = {
    "counted": (counted, lambda n: (torch.rand(n) - 0.2, 5)),
    "summed": (summed, lambda n: (indices(n, 4), torch.randint(9, (n, 3)).double(), torch.ones(4, 3).double())),
    "summed, strided": (summed, lambda n: (indices(n, 4), torch.ones(n, 6)[:, ::2], torch.ones(4, 6)[:, ::2])),
    "summed, narrow": (
        summed,
        lambda n: (indices(n, 2), torch.randint(99, (n, 1)).to(torch.uint8), torch.ones(2, 1).to(torch.uint8)),
    ),
    "extremes": (extremes, lambda n: (indices(n, 3), indices(n, 99), torch.full((3,), 50), torch.full((3,), 50))),
    "again": (again, lambda n: (indices(n, 4), torch.arange(4), 3)),
    "ragged": (ragged, lambda n: (torch.tensor([0, n // 2, n]), indices(n, 3), torch.zeros(3, dtype=torch.int64))),
    "skewed": (skewed, lambda n: (indices(n, 4), torch.zeros(4, dtype=torch.int64))),
    "both": (both, lambda n: (indices(n, 3), torch.arange(3), torch.ones(1, dtype=torch.int64))),
}
COPIED = CASES.keys() - {"both"}


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_loop_in_order(name):
    function, make = CASES[name]
    operator = bw.op(f"own_copies::{name.replace(', ', '_')}")(function)
    for n in (0, 1, 7, 20, 61, 500):
        given = make(n)
        ours, plain = ([item.clone() if isinstance(item, torch.Tensor) else item for item in given] for _ in range(2))
        result, expected = operator(*ours), operator.python(*plain)
        assert result is None or torch.equal(result, expected)
        assert all(
            torch.equal(one, other) for one, other in zip(ours, plain, strict=True) if isinstance(one, torch.Tensor)
        )
    assert ("own copy" in operator.explain()) == (name in COPIED)


def test_long_loops_run_in_pieces_and_short_ones_do_not():
    operator = bw.op("own_copies::seen")(counted)
    operator(torch.rand(100), 5)
    text = operator.inspect("schedule")
    assert "rfactor(i, pool, counts)" in text
    assert "counts_copies" in text


@pytest.mark.parametrize("n", [5, 500])
def test_an_index_out_of_range_is_told_of_the_tensor_itself(n):
    operator = bw.op("own_copies::outside")(summed)
    index = indices(n, 4)
    index[n // 2] = 7
    with pytest.raises(
        IndexError, match=r"index 7 is out of bounds for dimension 0 of tensor 'out' with size 4 \(shape \(4, 2\)\)"
    ):
        operator(index, torch.ones(n, 2), torch.zeros(4, 2))


def test_sums_do_not_depend_on_the_number_of_threads(threads):
    operator = bw.op("own_copies::floats")(counted_floats)
    x, found = torch.rand(5000), []
    for number in (1, 2):
        torch.set_num_threads(number)
        found.append(operator(x, torch.zeros(7)))
    assert torch.equal(*found)


def counted_floats(x: torch.Tensor, out: torch.Tensor):
    sums = torch.zeros(7)
    for i in range(len(x)):
        sums[int(x[i] * 7)] += x[i]
    for j in range(7):
        out[j] = sums[j]
    return sums
