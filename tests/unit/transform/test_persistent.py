"""Loops in order that one block of threads runs, in one launch."""

import operator
from dataclasses import replace

import pytest
import torch

from brickwork.codegen.grid import nest_of
from brickwork.frontend.reference import python_function
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Apply, Constant, For, If, Launch, Role, Size, While
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements
from brickwork.target.cuda import cuda_target
from brickwork.transform import persistent
from support.shared import define, lower, schedule_program, verify_program
from support.tensors import argument_type, to_memory, to_tensor

GPU = cuda_target((9, 0))


def outlined(function, *arguments, gpu=GPU):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program, _ = schedule_program(lower(define(function), signature), gpu)
    verify_program(program)
    return program


def blocks(program):
    """The kernels of one block that run loops in order around shared ones."""
    kernels = [node.kernel for node in statements(program) if isinstance(node, Launch)]
    return [kernel for kernel in kernels if any(map(runs_turns, statements(kernel)))]


def runs_turns(node):
    def shares(item):
        return isinstance(item, For) and item.role is Role.THREAD and bool(item.body)

    loop = isinstance(node, For) and node.role is Role.BLOCK
    inside = [
        item
        for item in statements(node)
        if isinstance(item, While) or (isinstance(item, For) and item.role is Role.SEQUENTIAL)
    ]
    return loop and any(map(shares, (part for item in inside for part in statements(item))))


def assert_same(function, *arguments):
    """The program on a grid does what the source does, and no two threads collide."""
    expected = [item.clone() if isinstance(item, torch.Tensor) else item for item in arguments]
    wanted = python_function(define(function))(*expected)
    memories = [to_memory(item.clone()) if isinstance(item, torch.Tensor) else item for item in arguments]
    found = [*map(to_tensor, run_program(outlined(function, *arguments), memories, check=True))]
    found += [to_tensor(item) for item in memories if not isinstance(item, int | float)]
    wanted = [] if wanted is None else [wanted]
    for one, other in zip(found, [*wanted, *(x for x in expected if isinstance(x, torch.Tensor))], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def solved(L: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = torch.zeros_like(b)
    for i in range(b.shape[0]):
        s = b[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]
    return x


def averaged(x: torch.Tensor, steps: int) -> torch.Tensor:
    y = torch.zeros_like(x)
    for _ in range(steps):
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                y[i, j] = (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]) / 4
        for i in range(1, x.shape[0] - 1):
            for j in range(1, x.shape[1] - 1):
                x[i, j] = y[i, j]
    return y


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Elements decide whether all threads go on, before they are written."""
    last = 1.0
    for k in range(x.shape[0] - 1):
        if abs(x[k, k]) < 0.1:
            continue
        c = x[k, k] * last
        last = c
        for j in range(x.shape[1]):
            x[k, j] = x[k, j] * c
        for j in range(x.shape[1]):
            x[k + 1, j] = x[k + 1, j] - x[k, j]
    return x.new_zeros(1)


def settled(x: torch.Tensor) -> torch.Tensor:
    """Elements decide how often the loop runs."""
    total = 100.0
    while total > 1.0:
        total = 0.0
        for i in range(x.shape[0]):
            x[i] = x[i] / 2
        for i in range(x.shape[0]):
            total += abs(x[i])
    return x.new_zeros(1)


def aligned_texts(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    n, m = a.shape[0], b.shape[0]
    D = torch.zeros(n + 1, m + 1, dtype=torch.int64)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            D[i, j] = max(D[i - 1, j], D[i, j - 1], D[i - 1, j - 1] + (1 if a[i - 1] == b[j - 1] else 0))
    return D


def matrix(n, m):
    return torch.rand(n, m, generator=torch.Generator().manual_seed(n * m)) + 0.05


CASES = {
    "sums": (solved, lambda n: (matrix(n, n) + torch.eye(n), matrix(n, 1)[:, 0].contiguous())),
    "stencils": (averaged, lambda n: (matrix(n, n + 1), 3)),
    "choices": (rotated, lambda n: (matrix(n, n + 1),)),
    "until": (settled, lambda n: (matrix(n, 1)[:, 0].contiguous(),)),
    "diagonals": (aligned_texts, lambda n: (torch.arange(n) % 3, torch.arange(2 * n) % 4)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [1, 2, 9])
def test_one_block_does_what_the_source_says(name, size):
    function, arguments = CASES[name]
    assert blocks(outlined(function, *arguments(size)))
    assert_same(function, *arguments(size))


@pytest.mark.parametrize("name", CASES)
def test_large_loops_are_launched(name, monkeypatch):
    for limit in ("few_terms", "few_iterations"):
        monkeypatch.setattr(persistent, limit, lambda _: 0)
    function, arguments = CASES[name]
    assert_same(function, *arguments(9))


def smoothed(x: torch.Tensor, y: torch.Tensor, steps: int) -> None:
    for _ in range(steps):
        for i in range(1, x.shape[0]):
            x[i] = (x[i] + x[i - 1]) / 2
        for i in range(x.shape[0]):
            y[i] = y[i] + x[i]


def test_stores_of_a_loop_in_order_wait_for_no_other_threads():
    arguments = torch.randn(9), torch.zeros(9), 3
    assert not blocks(outlined(smoothed, *arguments))
    assert_same(smoothed, *arguments)


def conditions(program):
    """The conditions under which blocks run."""
    kernels = blocks(program)
    choices = [node for node in statements(program.body) if isinstance(node, If)]
    return [
        node.condition
        for node in choices
        if any(isinstance(item, Launch) and item.kernel in kernels for item in node.then)
    ]


def test_sizes_choose():
    assert len(conditions(outlined(averaged, matrix(9, 9), 3))) == 1
    # Nothing would be launched otherwise.
    assert conditions(outlined(settled, torch.rand(9))) == []


def suppressed(x: torch.Tensor, reach: float) -> torch.Tensor:
    """Elements that others change decide what is done at all."""
    keep = torch.ones(x.shape[0], dtype=torch.bool)
    for i in range(x.shape[0]):
        if keep[i]:
            for j in range(i + 1, x.shape[0]):
                if abs(x[i] - x[j]) < reach:
                    keep[j] = False
    return keep


def marked(x: torch.Tensor, reach: float) -> torch.Tensor:
    """The same, whatever the elements are."""
    keep = torch.ones(x.shape[0], dtype=torch.bool)
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            if abs(x[i] - x[j]) < reach:
                keep[j] = False
    return keep


def most_iterations(function, gpu=GPU):
    """How many elements a block does its work for, or a cluster."""
    (condition,) = conditions(outlined(function, matrix(9, 1)[:, 0].contiguous(), 0.2, gpu=gpu))
    return holding(condition, 1 << 20)


def holding(condition, most):
    """The greatest size of all tensors for which a condition holds, by halving."""
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if evaluated(condition, middle) else (least, middle)
    return least


def evaluated(node, size):
    match node:
        case Constant(value=value):
            return value
        case Size():
            return size
        case Apply(operator=operator, operands=operands):
            return SCALAR[operator.name](*(evaluated(item, size) for item in operands))
        case _:
            raise TypeError(node)


SCALAR = {
    "add": operator.add,
    "sub": operator.sub,
    "floordiv": operator.floordiv,
    "minimum": min,
    "maximum": max,
    "le": operator.le,
    "logical_and": lambda left, right: left and right,
}


def test_what_elements_decide_is_launched_in_any_case():
    each = persistent.few_iterations(GPU)
    assert each == GPU.launch_ns * GPU.block_threads // GPU.block_step_ns
    assert most_iterations(marked, replace(GPU, cluster=1)) == each + 1
    # It is two launches, of which one asks; half of the time there is nothing to do.
    assert most_iterations(suppressed) == 4 * each + 1
    assert_same(suppressed, matrix(40, 1)[:, 0].contiguous(), 0.2)


def stored_alone(x: torch.Tensor, first: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            x[j] = x[j] / 2
        first[0] = x[i]


def test_what_one_thread_does_after_a_launch_is_one():
    (condition,) = conditions(outlined(stored_alone, torch.rand(9), torch.rand(1), gpu=replace(GPU, cluster=1)))
    assert holding(condition, 1 << 20) == 2 * persistent.few_iterations(GPU)


def test_a_cluster_takes_as_many_iterations_as_its_blocks_do_while_these_need_not_meet():
    launch = persistent.few_iterations(GPU)
    assert most_iterations(marked) == GPU.cluster * launch * (GPU.launch_ns - GPU.meeting_ns) // GPU.launch_ns + 1
    assert most_iterations(marked, replace(GPU, meeting_ns=GPU.launch_ns)) == launch + 1


@pytest.mark.parametrize(
    ("function", "arguments", "several"),
    [
        (averaged, (torch.rand(9, 9), 3), True),
        (solved, (torch.rand(9, 9), torch.rand(9)), False),
        (settled, (torch.rand(9),), False),
        (suppressed, (torch.rand(9), 0.2), False),
    ],
    ids=["stores", "sums", "sums that decide", "searches"],
)
def test_blocks_of_a_cluster_join_no_sums(function, arguments, several):
    for kernel in blocks(outlined(function, *arguments)):
        (loop,) = [node for node in statements(kernel) if isinstance(node, For) and node.role is Role.BLOCK]
        assert loop.across == (GPU.cluster if several else 0)


def eliminated(x: torch.Tensor, y: torch.Tensor) -> None:
    for k in range(x.shape[0]):
        for i in range(x.shape[0]):
            if i != k:
                f = x[i, k] / x[k, k]
                for j in range(x.shape[1]):
                    x[i, j] -= f * x[k, j]
                for j in range(y.shape[1]):
                    y[i, j] -= f * y[k, j]


def counted(x: torch.Tensor, y: torch.Tensor) -> None:
    """Each row is as long as an element says."""
    for _ in range(3):
        for i in range(x.shape[0]):
            n = 0
            while n < x.shape[1] and x[i, n] > 0:
                x[i, n] -= 0.5
                n += 1
            for j in range(x.shape[1]):
                y[i, j] += x[i, j] * n


def swept(x: torch.Tensor, y: torch.Tensor) -> None:
    """Iterations along a row wait for one another."""
    for _ in range(3):
        for i in range(x.shape[0]):
            for j in range(1, x.shape[1]):
                x[i, j] = max(x[i, j - 1] - y[i, j], x[i, j] - 1.0)
        for i in range(x.shape[0]):
            y[i, 0] = x[x.shape[0] - 1 - i, 1]


def turned(x: torch.Tensor, y: torch.Tensor) -> None:
    """Each thread has a copy of a list, of which it would fill a part."""
    for _ in range(3):
        for i in range(x.shape[0]):
            t = [0.0] * 40
            for j in range(40):
                t[j] = x[i, j]
            for j in range(40):
                y[i, j] = t[39 - j]
        for i in range(x.shape[0]):
            x[i, 0] = y[x.shape[0] - 1 - i, 1]


def shortened(x: torch.Tensor, y: torch.Tensor) -> None:
    """Rows have as many elements as a vector in space."""
    for _ in range(3):
        for i in range(x.shape[0]):
            for j in range(3):
                x[i, j] -= y[i, j]
            x[i, 3] = x[i, 0]
        for i in range(x.shape[0]):
            y[i, 0] = x[x.shape[0] - 1 - i, 1]


def along_neighbours(x: torch.Tensor, y: torch.Tensor) -> None:
    """Neighbouring iterations of the outer loop read neighbours."""
    for t in range(1, x.shape[0]):
        for i in range(x.shape[1]):
            s = 0.0
            for j in range(y.shape[0]):
                s = s + y[j, i] * x[t - 1, i]
            x[t, i] = s


def roles(function, *arguments):
    (kernel, *_) = blocks(outlined(function, *arguments))
    return {node.role for node in statements(kernel) if isinstance(node, For)}


def test_rows_of_loops_are_for_warps():
    """What all threads of a warp read of a row, they have read before one of them writes it."""
    arguments = torch.rand(6, 7) + 6 * torch.eye(6, 7), torch.rand(6, 3)
    assert roles(eliminated, *arguments) == {Role.BLOCK, Role.SEQUENTIAL, Role.WARP, Role.THREAD}
    assert_same(eliminated, *arguments)


@pytest.mark.parametrize("function", [counted, swept, turned, shortened, along_neighbours])
def test_rows_that_threads_cannot_share_out_are_for_a_thread_each(function):
    arguments = torch.rand(4, 40), torch.rand(4, 40)
    assert Role.WARP not in roles(function, *arguments)
    assert_same(function, *arguments)


def test_nests_are_one_range_of_threads():
    (kernel,) = blocks(outlined(averaged, matrix(9, 9), 3))
    shared = [node for node in statements(kernel) if isinstance(node, For) and node.role is Role.THREAD and node.body]
    nests = [nest_of(loop) for loop in shared if isinstance(loop.body[0], For)]
    assert [len(nest) for nest in nests] == [2, 2]
    assert len(shared) == 4


def test_a_barrier_stands_before_writes_of_what_all_threads_have_read():
    kernel = blocks(outlined(rotated, matrix(9, 10)))[0]
    shared = [node for node in statements(kernel) if isinstance(node, For) and node.role is Role.THREAD]
    assert any(not loop.body for loop in shared)


def gathered(x: torch.Tensor, index: torch.Tensor) -> None:
    for _ in range(3):
        for i in range(x.shape[0]):
            x[i] = index[i]
        for i in range(index.shape[0]):
            index[i] = int(x[index[i]])


def outlived(x: torch.Tensor) -> torch.Tensor:
    last = 0.0
    for _ in range(3):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i]
        for i in range(x.shape[0]):
            x[i] = x[i] / total
        last = total
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * last
    return out


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(gathered, (torch.rand(5), torch.arange(5))), (outlived, (torch.rand(5),))],
    ids=["checks", "variables that outlive the loop"],
)
def test_others_are_launched_turn_by_turn(function, arguments):
    assert blocks(outlined(function, *arguments)) == []
    assert_same(function, *arguments)
