"""`torch.stack` and `torch.cat` of lists of rows that loops fill: the loops are compiled, and fill a tensor."""

import warnings

import pytest
import torch

import brickwork as bw

PICTURE = torch.tensor([[0.3, -1.0, 2.0], [1.5, -0.1, 5.0], [-2.0, 0.5, 0.25], [0.75, 4.0, -3.0]])
STATE = torch.tensor([0.5, -0.25, 1.0])


def doubled(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(2 * x[i])
    return torch.stack(rows)


def backwards(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0] - 1, -1, -1):
        rows.append(x[i])
    return torch.stack(rows, dim=1)


def begun(x: torch.Tensor) -> torch.Tensor:
    rows = [x[0]]
    for i in range(1, x.shape[0]):
        rows.append(x[i] - x[i - 1])
    return torch.stack(rows, -1)


def comprehended(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[i] * i for i in range(x.shape[0])])


def joined(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] + i)
    return torch.cat(rows)


def recurrent(x: torch.Tensor) -> torch.Tensor:
    state = torch.zeros(x.shape[1])
    states = []
    for t in range(x.shape[0]):
        state = torch.tanh(0.5 * state + x[t])
        states.append(state)
    return torch.stack(states)


def chosen(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            rows.append(x[i])
        else:
            rows.append(-x[i])
    return torch.stack(rows)


def some(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            rows.append(x[i])
    return torch.stack(rows)


def several(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    sums, rest = [], []
    for i in range(x.shape[0]):
        sums.append(x[i].sum())
        rest.append(x[i] - x[i].mean())
    return torch.stack(sums), torch.stack(rest)


def gated(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, w = [], torch.linspace(-1, 1, 18).view(6, 3)
    h = x[0]
    for row in x:
        update, new = (w @ row + w @ h).chunk(2)
        h = update.sigmoid() * h + torch.cat([new[1:], new[:1]]).tanh()
        rows.append(h)
    return torch.stack(rows), h.clone()


def filtered(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    means, spread = [], torch.zeros(4, 3, 3)
    matrix = 0.5 * torch.eye(3)
    mean, cov = x[0], torch.eye(3)
    for t in range(x.shape[0]):
        cov = matrix @ cov @ matrix.T + torch.outer(x[t], x[t])
        mean = matrix @ mean + x[t] / cov[0, 0]
        means.append(mean)
        spread[t] = cov
    return torch.stack(means), spread


def counted(x: torch.Tensor) -> torch.Tensor:
    count = 0
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            count += 1
    rows = []
    for k in range(1, count + 1):
        rows.append(x[k - 1] * 2)
    return torch.stack(rows)


def picked(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    found = []
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            found.append(i)
    rows = []
    for k in found:
        rows.append(x[k] * 2)
    return torch.tensor(found), torch.stack(rows)


def shortened(x: torch.Tensor) -> torch.Tensor:
    rows = []
    x = x[1:].clone()
    for row in x:
        rows.append(2 * row)
    return torch.stack(rows)


def made(function):
    return bw.op(f"stacked_rows::{function.__name__}")(function)


FULL = [doubled, backwards, begun, comprehended, joined, recurrent, several, gated]


@pytest.mark.parametrize("function", [*FULL, filtered, chosen, some, counted, picked, shortened])
def test_is_compiled_and_agrees_with_python(function):
    operator = made(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = operator(PICTURE)
    torch.testing.assert_close(found, operator.python(PICTURE))
    torch.testing.assert_close(found, function(PICTURE))
    strided = torch.stack((PICTURE, PICTURE), -1)[..., 1]
    torch.testing.assert_close(operator(strided), found)
    assert "kernel" in operator.explain(PICTURE)


@pytest.mark.parametrize("function", FULL)
def test_is_an_operator(function):
    operator = made(function)
    torch.library.opcheck(
        getattr(torch.ops.stacked_rows, function.__name__).default, (PICTURE.clone().requires_grad_(),)
    )
    compiled = torch.compile(operator, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(PICTURE), function(PICTURE))
    torch.testing.assert_close(
        torch.vmap(operator)(PICTURE[None].repeat(2, 1, 1)), torch.vmap(function)(PICTURE[None].repeat(2, 1, 1))
    )


@pytest.mark.parametrize("function", [begun, recurrent, some])
def test_has_a_gradient(function):
    given = [PICTURE.clone().requires_grad_() for _ in range(3)]
    compiled = torch.compile(made(function), backend="aot_eager", fullgraph=True)
    for each, run in zip(given, (made(function), compiled, function), strict=True):
        (run(each) ** 2).sum().backward()
    torch.testing.assert_close([each.grad for each in given[:2]], [given[2].grad] * 2)


def test_a_list_without_rows_cannot_be_stacked():
    with pytest.raises(RuntimeError, match="empty"):
        made(doubled)(PICTURE[:0])


def changed_after(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i])
    for i in range(x.shape[0]):
        x[i, 0] = 5.0
    return torch.stack(rows)


def changed_by_name(x: torch.Tensor) -> torch.Tensor:
    row = torch.zeros(3)
    rows = []
    for i in range(x.shape[0]):
        for j in range(3):
            row[j] = x[i, j]
        rows.append(row)
    return torch.stack(rows)


def changed_by_another_name(x: torch.Tensor) -> torch.Tensor:
    row = torch.zeros(3)
    one, other = row, row
    rows = []
    for i in range(x.shape[0]):
        rows.append(one)
        for j in range(3):
            other[j] = x[i, j]
    return torch.stack(rows)


def changed_in_a_list(x: torch.Tensor) -> torch.Tensor:
    row = torch.zeros(3)
    both = [x, x]
    both[0] = row
    rows = []
    for i in range(x.shape[0]):
        rows.append(row)
        for j in range(3):
            both[0][j] = x[i, j]
    return torch.stack(rows)


def read_elsewhere(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * 2)
    return torch.stack(rows) + rows[-1]


@pytest.mark.filterwarnings("ignore::brickwork.BrickworkWarning")
@pytest.mark.parametrize(
    "function",
    [changed_after, changed_by_name, changed_by_another_name, changed_in_a_list, read_elsewhere, picked, shortened],
)
def test_python_keeps_lists_whose_rows_change_or_are_read(function):
    torch.testing.assert_close(made(function)(PICTURE.clone()), function(PICTURE.clone()))


def shared(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i])
        rows.append(y[i])
        for j in range(3):
            y[i, j] = 0.0
    return torch.stack(rows)


@pytest.mark.filterwarnings("ignore::brickwork.BrickworkWarning")
def test_rows_of_arguments_that_may_share_memory_stay():
    both = PICTURE.clone()
    torch.testing.assert_close(made(shared)(both, both), torch.zeros(8, 3))


def ragged(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * 2)
        rows.append(y[i] * 2)
    return torch.stack(rows)


def test_rows_of_other_lengths_are_refused():
    with pytest.raises(RuntimeError, match="'rows' have 3 items, and it gets one of 2"):
        made(ragged)(PICTURE, PICTURE[:, 1:])


def halved(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] // 2)
    return torch.cat(rows)


def summed(x: torch.Tensor) -> torch.Tensor:
    sums = []
    for i in range(x.shape[0]):
        sums.append(x[i].sum())
    return torch.stack(sums)


@pytest.mark.filterwarnings("ignore::brickwork.BrickworkWarning")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.uint8])
@pytest.mark.parametrize("function", [doubled, halved, chosen, summed])
def test_rows_of_narrow_types_keep_their_type_in_python(function, dtype):
    given = PICTURE.abs().to(dtype)
    torch.testing.assert_close(made(function)(given), function(given))


def of_ints(x: torch.Tensor) -> torch.Tensor:
    narrow = x.int()
    rows = []
    for i in range(x.shape[0]):
        rows.append(narrow[i] * 2)
    return torch.stack(rows)


def of_halves(x: torch.Tensor) -> torch.Tensor:
    narrow = x.half()
    rows = []
    for i in range(x.shape[0]):
        rows.append(narrow[i] / 3)
    return torch.cat(rows)


def of_floats(x: torch.Tensor) -> torch.Tensor:
    narrow = x.int()
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i] * 2)
    return torch.stack(rows) + narrow.sum()


@pytest.mark.filterwarnings("ignore::brickwork.BrickworkWarning")
@pytest.mark.parametrize("function", [of_ints, of_halves])
def test_rows_of_tensors_that_the_host_part_converts_keep_their_type(function):
    operator = made(function)
    operator.warmup(PICTURE)
    for _ in range(2):
        torch.testing.assert_close(operator(PICTURE), function(PICTURE))
        torch.testing.assert_close(operator.python(PICTURE), function(PICTURE))
    compiled = torch.compile(operator, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(PICTURE), function(PICTURE))


def test_rows_of_wide_tensors_are_compiled_beside_narrow_ones():
    operator = made(of_floats)
    torch.testing.assert_close(operator(PICTURE), of_floats(PICTURE))
    assert "compiled, as" in operator.explain()
    assert "BW405" not in operator.explain()


@pytest.mark.filterwarnings("ignore::brickwork.BrickworkWarning")
def test_rows_that_the_host_part_converts_are_refused_beside_stores_into_arguments():
    def stores(x: torch.Tensor) -> torch.Tensor:
        narrow = x.int()
        rows = []
        for i in range(x.shape[0]):
            x[i] += 1
            rows.append(narrow[i] * 2)
        return torch.stack(rows)

    given = PICTURE.clone()
    with pytest.raises(bw.CompileError, match="converts tensors to a narrow type"):
        made(stores)(given)
    assert torch.equal(given, PICTURE)


def test_rows_of_narrow_types_are_said_to_run_in_python():
    with pytest.warns(bw.BrickworkWarning, match="BW405"):
        made(doubled)(PICTURE.half())


def test_branches_that_add_one_row_each_leave_as_many_as_the_host_knows():
    batch = torch.stack((PICTURE, -PICTURE))
    torch.testing.assert_close(torch.vmap(made(chosen))(batch), torch.stack([chosen(each) for each in batch]))


def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows = []
    for i in range(x.shape[0]):
        rows.append(2 * x[i])
    first = torch.stack(rows)
    for i in range(x.shape[0]):
        rows.append(3 * x[i])
    return first, torch.stack(rows)


def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows = []
    for i in range(x.shape[0]):
        rows.append(2 * x[i])
    return torch.stack(rows), torch.cat(rows)


def emptied(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i])
    x.zero_()
    return torch.stack(rows)


def copied_into(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i])
    x.copy_(x * 2)
    return torch.stack(rows)


def written_out(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i])
    torch.mul(x, 2.0, out=x)
    return torch.stack(rows)


def of_lengths(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(x.shape[0]):
        rows.append(x[i, :i] * 2)
    return torch.cat(rows)


def pieces(x: torch.Tensor) -> torch.Tensor:
    rows = []
    y = x.t().contiguous()
    for i in range(3):
        rows.append(x[i] * 2)
        rows.append(y[i] * 2)
    return torch.cat(rows)


@pytest.mark.filterwarnings("ignore::brickwork.BrickworkWarning")
@pytest.mark.parametrize("function", [twice, both, emptied, copied_into, written_out, of_lengths, pieces])
def test_python_keeps_lists_that_are_more_than_filled_and_joined(function):
    torch.testing.assert_close(made(function)(PICTURE.clone()), function(PICTURE.clone()))


def begun_with(x: torch.Tensor, start: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, state = [], start
    for row in x:
        state = 0.5 * state + row
        rows.append(state)
    return torch.stack([*rows, state]), state


def test_a_state_that_begins_as_an_argument_is_copied_when_it_is_returned():
    operator = made(begun_with)
    found = operator(PICTURE, STATE)
    torch.testing.assert_close(found, begun_with(PICTURE, STATE))
    operator(PICTURE[:0], STATE)[1].zero_()
    assert STATE.any()
