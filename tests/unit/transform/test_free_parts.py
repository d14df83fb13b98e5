"""Parts of a nest that are freer than all of it have nests of their own, where that is legal and worth it."""

# pyright: reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import pytest
import torch

import brickwork as bw
from brickwork.ir.nodes import Allocate, For, If, Kernel, Launch, Program
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import free_parts
from brickwork.transform.canonical.form import canonical
from brickwork.transform.free_parts import FREE, with_free_parts
from brickwork.transform.persistent import few_iterations
from support.lowering import argument_type, numbers
from support.scheduling import GPU, same
from support.shared import define, lower

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Let small nests be worth their launches, and short loops be long."""
    with patch.object(free_parts, "few_iterations", return_value=0), patch.object(free_parts, "SHORT", 1):
        yield


def parted(function: Callable[..., object], *arguments: object) -> Program:
    """Return the program of a function for a GPU, with its parts apart."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    return with_free_parts(canonical(lower(define(function), signature), sizes=True), GPU)[0]


def nests_of(function: Callable[..., object], *arguments: object) -> int:
    """Return how many nests the parts of a function are, 0 where it is as it was."""
    nodes = walk(parted(function, *arguments).body)
    kernels: list[Kernel] = [node.kernel for node in nodes if isinstance(node, Launch)]
    found = [kernel for kernel in kernels if kernel.name.endswith(FREE)]
    return sum(isinstance(node, For) for kernel in found for node in kernel.body)


def kept_by(function: Callable[..., object], *arguments: object) -> list[tuple[str, int]]:
    """Return what is kept between nests: the names of the tensors, and how many axes they have."""
    choices = [item for item in parted(function, *arguments).body if isinstance(item, If)]
    made = [node for choice in choices for node in statements(choice.then) if isinstance(node, Allocate)]
    return [(each.tensor.name, each.tensor.type.rank) for each in made]


# ---------------------------------------------------------------- what is cut


def columns(x: Tensor) -> Tensor:
    """Normalise columns, of which each is a thread's."""
    out = torch.empty_like(x)
    for c in range(x.shape[1]):
        mean = 0.0
        for n in range(x.shape[0]):
            mean += x[n, c]
        mean /= 4.0
        most = 0.0
        for n in range(x.shape[0]):
            most = max(most, x[n, c] - mean)
        scale = most + 1.0
        for n in range(x.shape[0]):
            out[n, c] = (x[n, c] - mean) * scale
    return out


def area(x: Tensor) -> Tensor:
    """Sum up the rectangle from the corner to each place."""
    s = torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2] + 1)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            row = 0.0
            for j in range(x.shape[2]):
                row += x[b, i, j]
                s[b, i + 1, j + 1] = s[b, i, j + 1] + row
    return s


def peaks(x: Tensor) -> Tensor:
    """Keep the two greatest of the elements that are no smaller than their neighbours."""
    best = torch.zeros(x.shape[0], 2)
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            peak = True
            for k in range(max(i - 1, 0), min(i + 2, x.shape[1])):
                if x[b, k] > x[b, i]:
                    peak = False
            if not peak or x[b, i] <= best[b, 1]:
                continue
            if x[b, i] > best[b, 0]:
                best[b, 1] = best[b, 0]
                best[b, 0] = x[b, i]
            else:
                best[b, 1] = x[b, i]
    return best


def from_one(x: Tensor, w: Tensor) -> Tensor:
    """Sum up products for each step from the second one on, of a window that the step says, and pass on a state."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        h = 1.0
        for t in range(1, x.shape[1]):
            s = 2.0
            for k in range(t):
                s += x[b, k] * w[k]
            h = h * 0.5 + s
            if h > 3.0:
                h -= 2.0 * s
            out[b, t] = h
    return out


def resampled(w: Tensor) -> tuple[Tensor, Tensor]:
    """Sum rows up, and find places in what comes of it."""
    at = torch.zeros(w.shape[0], w.shape[1], dtype=torch.int64)
    sums = torch.empty_like(w)
    for b in range(w.shape[0]):
        total = 0.0
        for i in range(w.shape[1]):
            total += w[b, i]
            sums[b, i] = total
        j = 0
        for i in range(w.shape[1]):
            while j < w.shape[1] - 1 and sums[b, j] < i * total / 4.0:
                j += 1
            at[b, i] = j
    return at, sums


def read_before(x: Tensor) -> Tensor:
    """Read an element before a loop changes it, and use it in the loop after that."""
    out = torch.empty_like(x)
    for c in range(x.shape[1]):
        first = x[0, c]
        for n in range(x.shape[0]):
            x[n, c] = x[n, c] * 2.0
        for n in range(x.shape[0]):
            out[n, c] = x[n, c] - first
    return out


def in_branches(x: Tensor) -> Tensor:
    """Give a variable its value in one of two branches."""
    out = torch.empty_like(x)
    for c in range(x.shape[1]):
        s = 0.0
        for n in range(x.shape[0]):
            s += x[n, c]
        if s > 3.0:
            scale = s
        else:
            scale = 2.0 - s
        for n in range(x.shape[0]):
            out[n, c] = x[n, c] * scale
    return out


ROWS, CUBE = numbers(3, 5), numbers(2, 3, 4)


@pytest.mark.parametrize(
    ("function", "arguments", "nests", "kept"),
    [
        (columns, (ROWS,), 3, [("mean_kept", 1), ("scale_kept", 1)]),
        (area, (CUBE,), 2, [("row_kept", 3)]),
        (peaks, (ROWS,), 2, [("value_kept", 2)]),
        (from_one, (ROWS, numbers(5)), 2, [("s_kept", 2)]),
        (resampled, (ROWS,), 2, [("total_kept", 1)]),
        (read_before, (ROWS,), 2, [("first_kept", 1)]),
        (in_branches, (ROWS,), 2, [("scale_kept", 1)]),
    ],
)
def test_parts_have_nests_of_their_own(
    function: Callable[..., object], arguments: tuple[object, ...], nests: int, kept: list[tuple[str, int]]
) -> None:
    assert nests_of(function, *arguments) == nests
    assert kept_by(function, *arguments) == kept
    same(function, *arguments)


def test_empty_nests_have_parts_too() -> None:
    same(columns, numbers(0, 3))
    same(area, numbers(2, 0, 3))
    same(peaks, numbers(0, 4))


def nothing(x: Tensor) -> Tensor:
    """Have a loop that does nothing beside one that does something."""
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
        for j in range(x.shape[1]):
            if j:
                pass
    return out


def test_loops_may_be_empty() -> None:
    same(nothing, ROWS)


# ---------------------------------------------------------------- what stays one nest


def filters(x: Tensor) -> Tensor:
    """Pass a state on, and multiply it: chunks of time do that."""
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        h = 0.0
        for t in range(x.shape[1]):
            h = h * 0.5 + x[b, t]
            out[b, t] = h * x[b, t]
    return out


def reads_back(x: Tensor) -> Tensor:
    """Sum up in each step what the step before has left."""
    out = x.clone()
    for b in range(x.shape[0]):
        h = 1.0
        for t in range(1, x.shape[1]):
            s = 0.0
            for k in range(t):
                s += out[b, k]
            h = h * 0.5 + s
            if h > 3.0:
                h -= 2.0
            out[b, t] = h
    return out


def reads_the_state(x: Tensor) -> Tensor:
    """Sum up in each step by the state of the step before."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            s = 0.0
            for k in range(x.shape[1]):
                s += max(x[b, k], h)
            h = 0.5 * s
            out[b, t] = h
    return out


def ends_early(x: Tensor) -> Tensor:
    """Leave the loop where a sum is too large."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            s = 0.0
            for k in range(x.shape[1]):
                s += x[b, k]
            if s * h > 100.0:
                break
            h = h * h + s
            out[b, t] = h
    return out


def read_after(x: Tensor) -> Tensor:
    """Read the last step's sum after the loop."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        h = 1.0
        s = 0.0
        for t in range(x.shape[1]):
            s = 0.0
            for k in range(t):
                s += x[b, k]
            h = max(h * h - s, -h)
            out[b, t] = h
        out[b, 0] = s
    return out


def lists(x: Tensor) -> Tensor:
    """Fill a list in each step, of which the state is made."""
    out = torch.zeros_like(x)
    for b in range(x.shape[0]):
        h = 1.0
        for t in range(x.shape[1]):
            row = [0.0, 0.0, 0.0]
            for k in range(3):
                row[k] = x[b, k] * t
            h = max(h * h - row[t % 3], -h)
            out[b, t] = h
    return out


def banded(x: Tensor, width: float = 1.0) -> Tensor:
    """Leave cells out by how far they are from the diagonal, which takes no element to know."""
    cell = torch.zeros(x.shape[0], x.shape[1] + 1, x.shape[2] + 1)
    for b in range(x.shape[0]):
        cell[b, 0, 0] = 1.0
        for i in range(1, x.shape[1] + 1):
            for j in range(1, x.shape[2] + 1):
                near = True
                if width > 0.0 and abs(i - j) > width:
                    near = False
                if near:
                    cell[b, i, j] = x[b, i - 1, j - 1] + max(cell[b, i - 1, j], cell[b, i, j - 1])
    return cell


def test_what_reads_no_element_is_kept_for_no_other_nest() -> None:
    assert not nests_of(banded, CUBE, 1.0)
    same(banded, CUBE, 1.0)


@pytest.mark.parametrize("function", [filters, reads_back, reads_the_state, ends_early, read_after, lists])
def test_what_depends_on_the_step_before_stays(function: Callable[..., object]) -> None:
    assert not nests_of(function, ROWS)
    same(function, ROWS)


def launches_parts(*sizes: int) -> bool:
    """Return whether columns of a tensor of these sizes are normalised by parts."""
    text = bw.op(columns).explain(torch.empty(*sizes, device="meta"), device="sm_90")
    return FREE in text.split("launches for these arguments")[1]


def test_nests_run_where_they_have_more_to_do_than_launches_take_and_threads_are_few() -> None:
    with patch.object(free_parts, "few_iterations", few_iterations):
        least = few_iterations(GPU) // GPU.block_threads + 1
        assert launches_parts(least, 2)
        assert not launches_parts(least - 1, 2)
        assert launches_parts(least, GPU.threads // 2)
        assert not launches_parts(least, GPU.threads // 2 + 1)


def test_short_loops_are_no_nests() -> None:
    def three(x: Tensor) -> Tensor:
        out = torch.empty_like(x)
        for c in range(x.shape[1]):
            s = 0.0
            for n in range(3):
                s += x[n, c]
            for n in range(3):
                out[n, c] = x[n, c] * s
        return out

    with patch.object(free_parts, "SHORT", 32):
        assert not nests_of(three, ROWS)
    assert nests_of(three, ROWS) == 2
