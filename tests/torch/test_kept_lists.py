"""`torch.tensor` of a list that loops fill: the loops are compiled, and the host part takes as many items."""

import pytest
import torch

import brickwork as bw

SIGNAL = torch.tensor([0.3, -1.0, 2.0, 0.0, -0.1, 5.0])


def apart(x: torch.Tensor, least: float) -> torch.Tensor:
    keep = []
    for i in range(len(x)):
        for j in keep:
            if abs(x[i] - x[j]) < least:
                break
        else:
            keep.append(i)
    return torch.tensor(keep)


def doubled(x: torch.Tensor) -> torch.Tensor:
    ys = []
    for v in x:
        ys.append(2 * v)
    return torch.tensor(ys)


def near(x: torch.Tensor, most: float) -> torch.Tensor:
    pairs = []
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            if abs(x[i] - x[j]) < most:
                pairs.append((i, j))
    return torch.tensor(pairs, dtype=torch.int32)


def two_lists(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    count = 0
    above = []
    below = bw.bounded(9)
    for i in range(len(x)):
        if x[i] > 0:
            above.append(x[i])
            count += 1
        else:
            below.append(0.5 * i)
    found = torch.tensor(above)
    return found * count, torch.tensor(below)


def comprehensions(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([v * v for v in x]), torch.tensor([i for i in range(len(x)) if x[i] > 0])


def collatz(n: int) -> torch.Tensor:
    out = []
    while n != 1:
        out.append(n)
        n = n // 2 if n % 2 == 0 else 3 * n + 1
    return torch.tensor(out)


def as_numbers(x: torch.Tensor) -> torch.Tensor:
    order = torch.argsort(x)
    keep = []
    for a in range(len(order)):
        i = order[a]
        if x[i] > 0:
            keep.append(i.item())
    return torch.tensor(keep, dtype=torch.int64)


def flags(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([v > 0 for v in x])


def complex_numbers(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([complex(v, 1) for v in x])


def never_filled(x: torch.Tensor) -> torch.Tensor:
    keep = []
    return torch.tensor(keep) + x.sum()


PROGRAMS = {
    apart: (SIGNAL, 1.0),
    as_numbers: (SIGNAL,),
    doubled: (SIGNAL,),
    near: (SIGNAL, 1.0),
    two_lists: (SIGNAL,),
    comprehensions: (SIGNAL,),
    collatz: (7,),
    flags: (SIGNAL,),
    complex_numbers: (SIGNAL,),
}


def made(function):
    return bw.op(f"kept_lists::{function.__name__}")(function)


@pytest.mark.parametrize("function", PROGRAMS)
def test_agrees_with_python(function):
    op, arguments = made(function), PROGRAMS[function]
    torch.testing.assert_close(op(*arguments), op.python(*arguments))
    assert f"compiled, as kept_lists::{function.__name__}__loop0" in op.explain(*arguments)


@pytest.mark.parametrize("function", [doubled, comprehensions, near, flags])
def test_of_nothing_there_is_a_tensor_of_the_type_that_the_items_would_have(function):
    op, arguments = made(function), (torch.empty(0, dtype=torch.float64), *PROGRAMS[function][1:])
    torch.testing.assert_close(op(*arguments), op.python(*arguments))


def test_what_is_expected():
    assert made(apart)(SIGNAL, 1.0).tolist() == [0, 1, 2, 5]
    assert made(near)(SIGNAL, 0.5).tolist() == [[0, 3], [0, 4], [3, 4]]
    assert made(collatz)(3).tolist() == [3, 10, 5, 16, 8, 4, 2]
    kept = made(two_lists)(SIGNAL.double())
    assert kept[0].dtype is torch.float64
    assert kept[1].dtype is torch.float32


@pytest.mark.parametrize("function", [apart, doubled, near, two_lists])
def test_is_an_operator(function):
    op, arguments = made(function), PROGRAMS[function]
    torch.library.opcheck(getattr(torch.ops.kept_lists, function.__name__).default, arguments)
    compiled = torch.compile(lambda *given: op(*given), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), op(*arguments))


def test_has_a_gradient():
    x = SIGNAL.double().requires_grad_()
    assert torch.autograd.gradcheck(made(doubled), (x,))
    (slope,) = torch.autograd.grad(made(two_lists)(x)[0].sum(), x)
    assert slope.tolist() == [3, 0, 3, 0, 0, 3]


def rows_of_rows(x: torch.Tensor) -> torch.Tensor:
    rows = []
    for i in range(len(x)):
        rows.append([x[i].item(), 1.0])
    return torch.tensor(rows)


def asked_before(x: torch.Tensor) -> torch.Tensor:
    keep = []
    for i in range(len(x)):
        if x[i] > 0:
            keep.append(i)
    torch.manual_seed(len(keep))
    for i in range(len(x)):
        keep.append(x[i].int().item())
    return torch.tensor(keep)


@pytest.mark.parametrize("function", [rows_of_rows, asked_before, never_filled])
def test_what_python_does_with_a_list_stays(function):
    op = made(function)
    torch.testing.assert_close(op(SIGNAL), op.python(SIGNAL))


def of_several_types(x: torch.Tensor) -> torch.Tensor:
    pairs = []
    for i in range(len(x)):
        pairs.append((i, x[i]))
    return torch.tensor(pairs)


def test_tuples_of_several_types_are_refused():
    with pytest.raises(bw.CompileError, match="tuples of numbers of several types"):
        made(of_several_types)(SIGNAL)


def suppressed(x: torch.Tensor, least: float) -> torch.Tensor:
    n = len(x)
    keep = [True] * n
    for i in range(n):
        if not keep[i]:
            continue
        for j in range(i + 1, n):
            if abs(x[i] - x[j]) < least:
                keep[j] = False
    return torch.tensor(keep)


def test_a_list_of_one_item_repeated_is_stored_into():
    op = bw.op("kept_lists::suppressed")(suppressed)
    wanted = torch.tensor([True, True, True, False, False, True])
    for found in (op(SIGNAL, 0.5), op.python(SIGNAL, 0.5)):
        torch.testing.assert_close(found, wanted)


def some_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[i] * 2.0 for i in range(x.shape[0]) if x[i, 0] > 0.0])


def pairs_of_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[i] * x[j] for i in range(x.shape[0]) for j in range(i)])


def rows_of_a_list(x: torch.Tensor) -> torch.Tensor:
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] * 2.0)
    return torch.cat([row[None] for row in out])


def rows_side_by_side(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([a * b for a, b in zip(x, x, strict=True)])


@pytest.mark.parametrize("function", [some_rows, pairs_of_rows, rows_of_a_list, rows_side_by_side])
def test_rows_of_comprehensions_are_counted(function):
    x = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
    torch.testing.assert_close(made(function)(x), function(x))


def rows_of_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([torch.stack([x[i, j] * x[j, i] for j in range(3)]) for i in range(3)])


def test_comprehensions_in_others_read_their_variables():
    x = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
    torch.testing.assert_close(made(rows_of_rows)(x), rows_of_rows(x))


def named_rows(x: torch.Tensor) -> torch.Tensor:
    out = []
    for i in range(x.shape[0]):
        out.append(x[i] * 2.0)
    rows = torch.stack(out)
    return rows.sum(0)


def named_rows_in_loops(x: torch.Tensor) -> torch.Tensor:
    out = []
    for i in range(x.shape[0]):
        if x[i, 0] > 0.0:
            out.append(x[i] * 2.0)
    rows = torch.cat(out)
    y = torch.zeros_like(rows)
    for i in range(rows.shape[0]):
        y[i] = rows[i] + 1.0
    return y


@pytest.mark.parametrize("function", [named_rows, named_rows_in_loops])
def test_joined_rows_get_names(function):
    x = torch.linspace(-1.0, 2.0, 12).reshape(4, 3)
    torch.testing.assert_close(made(function)(x), function(x))
