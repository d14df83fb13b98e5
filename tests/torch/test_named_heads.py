"""Loops over tensors that their heads make, and columns of matrices as `zip(*x)`."""

import pytest
import torch

import brickwork as bw


def occurrences(x: torch.Tensor, most: int) -> torch.Tensor:
    found = torch.zeros(most)
    for v in x.flatten():
        found[min(int(v), most - 1)] += 1
    for a, b in zip(x.flatten(), reversed(x.view(-1))):
        found[0] += a * b
    return found


def columns(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[1])
    for j, column in enumerate(zip(*x)):
        out[j] = sum(column)
    return out


def pairs(x: torch.Tensor) -> torch.Tensor:
    x_zip = 0.5
    s = 0.0
    for a, b in zip(*x):
        s += a * b * x_zip
    return s


def test_heads_of_loops_may_make_tensors():
    counted = bw.op("bwhost::occurrences")(occurrences)
    x = torch.arange(12).reshape(3, 4)
    torch.testing.assert_close(counted(x, 5), occurrences(x, 5))
    summed = bw.op("bwhost::columns")(columns)
    torch.testing.assert_close(summed(torch.ones(3, 4)), 3 * torch.ones(4))
    paired = bw.op("bwhost::pairs")(pairs)
    torch.testing.assert_close(paired(torch.ones(2, 7)), torch.tensor(3.5))


def added_columns(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[1])
    for j, column in enumerate(zip(*x)):
        both = column + column
        out[j] = len(both)
    return out


def cut_columns(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(x.shape[1])
    for j, column in enumerate(zip(*x)):
        rest = column[1:] + column
        out[j] = len(rest)
    return out


def stored_columns(x: torch.Tensor) -> torch.Tensor:
    for column in zip(*x):
        column[0] = 1.0
    return x


def columns_of_parts(xs: list[torch.Tensor]) -> torch.Tensor:
    out = torch.zeros_like(xs[0])
    j = 0
    for a, b in zip(*xs):
        out[j] = a * b
        j += 1
    return out


def columns_of_another(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(y)
    x = (x, y)
    j = 0
    for a, b in zip(*x):
        out[j] = a * b
        j += 1
    return out


def last_column(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    for column in zip(*x):
        out[0] += column[0]
    else:
        out[0] += 1
    return out


TUPLES = [added_columns, cut_columns, stored_columns, columns_of_parts, columns_of_another, last_column]


@pytest.mark.parametrize("function", TUPLES, ids=lambda item: item.__name__)
def test_columns_are_not_the_tuples_of_zip_where_one_could_tell(function):
    with pytest.raises(bw.CompileError, match=r"zip\(\*x"):
        bw.op(f"bwhost::{function.__name__}")(function)


def count_columns(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(1)
    for column in zip(*x):
        out[0] += len(column) + 1
    return out


def test_a_matrix_without_rows_has_no_columns_to_run_over():
    counted = bw.op("bwhost::count_columns")(count_columns)
    for x in (torch.ones(0, 3), torch.ones(2, 3), torch.ones(2, 0)):
        torch.testing.assert_close(counted(x), count_columns(x))


def without_range(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for b in bw.prange(len(x)):
        s = torch.zeros(x.shape[1])
        out[b, 0] = x[b, 0] + s[0]
    return out


def test_a_function_need_not_say_range_for_rows_of_its_loops_to_be_filled():
    filled, x = bw.op("bwhost::without_range")(without_range), torch.randn(3, 4)
    torch.testing.assert_close(filled(x), without_range(x))
