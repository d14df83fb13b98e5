"""`BRICKWORK_CHECK=interpret`: operators run in the checking interpreter, behind the same dispatcher."""

import pytest
import torch

import brickwork as bw
from brickwork.config import config


def spread(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in bw.prange(x.shape[0]):
        out[places[i]] = x[i]
    return out


def shift(x: torch.Tensor, y: torch.Tensor):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] + y[i]


def noise(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + bw.randn()
    return out


@pytest.fixture
def checked(request):
    def make(function):
        with config.override(check="interpret"):
            return bw.op(f"interpreted::{function.__name__}_{abs(hash(request.node.nodeid))}")(function)

    return make


def test_a_broken_word_is_found_on_real_data(checked):
    op = checked(spread)
    x = torch.randn(4)
    assert torch.equal(op(x, torch.tensor([3, 2, 1, 0])), x.flip(0))
    with pytest.raises(bw.RaceError, match="iterations i=0 and i=2"):
        op(x, torch.tensor([1, 2, 1, 0]))
    with pytest.raises(IndexError):
        op(x, torch.tensor([0, 1, 2, 4]))


def with_rows_made_inside(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0])
    for i in bw.prange(x.shape[0]):
        row = torch.zeros(x.shape[1])
        for j in range(x.shape[1]):
            row[j] = x[i, j] * 2
        out[i] = row[0] * row[-1]
    return out


def with_a_row_made_before(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0])
    row = torch.zeros(x.shape[1])
    for i in bw.prange(x.shape[0]):
        for j in range(x.shape[1]):
            row[j] = x[i, j] * 2
        out[i] = row[0] * row[-1]
    return out


def test_what_each_iteration_makes_for_itself_is_not_shared(checked):
    x = torch.randn(3, 4)
    torch.testing.assert_close(checked(with_rows_made_inside)(x), 4 * x[:, 0] * x[:, -1])
    with pytest.raises(bw.RaceError, match=r"row\[0\]"):
        checked(with_a_row_made_before)(x)


def test_what_is_written_reaches_the_caller_and_shared_memory_is_shared(checked):
    op = checked(shift)
    x = torch.ones(5)
    op(x, x)
    expected = torch.ones(5)
    for i in range(1, 5):
        expected[i] = expected[i - 1] + expected[i]
    assert torch.equal(x, expected)


def test_results_and_draws_are_those_of_compiled_code(checked):
    op = checked(noise)
    compiled = bw.op("interpreted::noise_compiled")(noise)
    x = torch.randn(33)
    torch.testing.assert_close(op(x, key=7), compiled(x, key=7))
    buffer = torch.empty(33)
    assert op(x, key=7, out=buffer) is buffer
    torch.testing.assert_close(buffer, compiled(x, key=7))


def test_opcheck_passes(checked):
    op = checked(spread)
    torch.library.opcheck(op._overload, (torch.randn(3), torch.tensor([2, 0, 1])))


def spread_after_relu(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x)
    out = torch.zeros_like(y)
    total = 0.0
    for i in bw.prange(len(places)):
        out[places[i]] = y[i]
    for i in range(len(y)):
        total += out[i]
    return torch.tanh(out) + total


def test_pieces_of_a_host_part_in_python_are_checked_too(checked):
    op = checked(spread_after_relu)
    x = torch.arange(4.0)
    torch.testing.assert_close(op(x, torch.tensor([0, 2, 1, 3])), op.python(x, torch.tensor([0, 2, 1, 3])))
    with pytest.raises(bw.RaceError, match=r"iterations i=1 and i=2"):
        op(x, torch.tensor([0, 2, 2, 3]))


def exchanged(x: torch.Tensor, steps: int) -> torch.Tensor:
    u = torch.zeros_like(x)
    v = torch.zeros_like(x)
    for _ in range(steps):
        for i in bw.prange(x.shape[0]):
            v[i] = u[i] + x[i]
        u, v = v, u
    return u


def test_tensors_change_places_in_the_interpreter(checked):
    op, x = checked(exchanged), torch.arange(3.0)
    assert op(x, 3).tolist() == [0.0, 3.0, 6.0]
