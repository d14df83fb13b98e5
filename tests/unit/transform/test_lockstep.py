"""Which bodies the threads of a block run in lockstep, and which lists of theirs become scratch tensors.

Loops over `t` are shared out among the threads of the block that runs an iteration of the loop over `b`.
"""

from dataclasses import replace
from itertools import count

import pytest
import torch

from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import For, If, Load, Local, Node, Role, Store, Symbol
from brickwork.ir.walk import rewrite, statements, substitute, walk
from brickwork.transform.host_device_partition import partition
from brickwork.transform.schedule import lockstep as lockstep_of
from brickwork.transform.schedule.lockstep import may_run_in_lockstep, runs_in_lockstep, with_barriers_in_blocks
from brickwork.transform.scratch import names_of
from brickwork.transform.shared_locals import share_locals
from support.lowering import memory
from support.scheduling import kernel_of, loops_of

Tensor = torch.Tensor
N = memory([3, 1, 4, 1, 5], INT64)
M = memory([[3, 1], [4, 1]], INT64)
ROLES = {"p": Role.PARALLEL, "b": Role.BLOCK, "t": Role.THREAD}


def kernel_with_roles(function):
    def visit(node: Node) -> Node:
        return replace(node, role=ROLES.get(node.index.name[0], node.role)) if isinstance(node, For) else node

    return rewrite(kernel_of(function, N, M, 1), visit)


def lockstep(function, *shared):
    """Whether the body of the loop over `b` runs in lockstep, with these loops shared out, too."""
    loops = loops_of(kernel_with_roles(function))
    return runs_in_lockstep(loops["b"].body, frozenset(loops[name].index for name in shared))


# ---------------------------------------------------------------- lockstep


def rows(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[b]
        for t in range(m.shape[1]):
            m[b, t] = m[b, t] + v
        n[b] = 2


def reads_in_what_is_shared(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        for j in range(m.shape[1]):
            v = m[b, j]
            m[b, j] = v + 1


def has_lists_in_what_is_shared(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        for t in range(m.shape[1]):
            w = [n[0]] * 9
            w[b] = 2
            m[b, t] = w[1]


def goes_either_way(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = 1
        if h > 0:
            v = n[0]
        else:
            v = n[1]
        for t in range(m.shape[1]):
            m[b, t] = v


def a_barrier_stands_between(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        for _ in range(h):
            v = n[0]
            for t in range(m.shape[1]):
                m[b, t] = v
            n[1] = 3


def reads_what_it_writes(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[0]
        n[1] = v


def reads_what_is_shared_out(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = m[b, 1]
        for t in range(m.shape[1]):
            m[b, t] = v


def reads_another_between(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[0]
        u = m[b, 0]
        n[1] = v + u


def a_list_is_no_barrier(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        w = [h] * 9
        v = n[0]
        w[b] = 2
        n[1] = v + w[0]


def reads_on_one_way(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = 1
        if h > 0:
            v = n[0]
        n[1] = v


def reads_on_the_other_way(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = 1
        if h > 0:
            v = m[b, 0]
        else:
            v = n[0]
        n[1] = v


def writes_on_one_way(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[0]
        if h > 0:
            n[1] = v
        m[b, 0] = v


def writes_on_the_other_way(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[0]
        if h > 0:
            v = 2
        else:
            n[1] = v
        m[b, 0] = v


def writes_again_and_again(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        for _ in range(h):
            v = n[0]
            n[1] = v


def the_next_iteration_writes(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = 0
        for _ in range(h):
            n[1] = v
            v = n[0]


def writes_after_a_loop_that_reads(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = 0
        for _ in range(h):
            v = n[0]
        n[1] = v


def writes_after_a_loop_that_may_not_run(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[0]
        for _ in range(h):
            m[b, 0] = 3
        n[1] = v


def waits_for_what_it_writes(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        k = h
        while n[0] < k:
            n[1] = 3
            k -= 1


def waits_and_writes(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        k = h
        while k > 0:
            v = n[0]
            n[1] = v
            k -= 1


def stores_into_a_list(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        w = [h] * 9
        for t in range(9):
            v = n[0] * t
            w[t] = v
        m[b, 0] = w[1]


def test_bodies_that_write_nothing_that_others_have_still_to_read_run_in_lockstep():
    for function in (rows, has_lists_in_what_is_shared, goes_either_way, a_barrier_stands_between):
        assert lockstep(function), function
    assert lockstep(reads_in_what_is_shared, "j")
    assert not lockstep(reads_in_what_is_shared)


@pytest.mark.parametrize(
    "function",
    [
        reads_what_it_writes,
        reads_what_is_shared_out,
        reads_another_between,
        a_list_is_no_barrier,
        reads_on_one_way,
        reads_on_the_other_way,
        writes_on_one_way,
        writes_on_the_other_way,
        writes_again_and_again,
        the_next_iteration_writes,
        writes_after_a_loop_that_reads,
        writes_after_a_loop_that_may_not_run,
        waits_for_what_it_writes,
        waits_and_writes,
        stores_into_a_list,
    ],
)
def test_others_do_not(function):
    assert not lockstep(function)


def test_what_a_while_asks_for_is_read_before_it_runs():
    body = loops_of(kernel_with_roles(waits_for_what_it_writes))["b"].body
    (loop,) = [item for item in body if hasattr(item, "prelude")]
    (element,) = [node for node in walk((*loop.prelude, loop.condition)) if isinstance(node, Load)]
    known = build.apply("gt", build.read(Symbol("h", 99, INT64)), build.integer(0))
    ahead = If(condition=build.apply("gt", element, build.integer(0)), then=())
    assert not runs_in_lockstep((replace(loop, prelude=(ahead,), condition=known),))
    assert runs_in_lockstep((replace(loop, prelude=(), condition=known),))


# ---------------------------------------------------------------- lists of several nests


def a_list_of_two_nests(n: Tensor, m: Tensor, h: int) -> None:
    k = 0
    while k < 3:
        w = [h] * 5
        for p in range(5):
            w[p] = n[p]
        for p1 in range(5):
            n[p1] = w[4 - p1]
        k += 1


def a_list_of_each_iteration(n: Tensor, m: Tensor, h: int) -> None:
    for p in range(5):
        v = [h] * 5
        v[p] = n[p]
        n[p] = v[4]


def shared(kernel):
    found = share_locals(kernel.body, partition(kernel.body), names_of((kernel,), 1000))
    accessed = {node.tensor for node in walk(found.body) if isinstance(node, Load | Store)}
    return found, {tensor.name for tensor in accessed if tensor.is_local}


def test_lists_of_blocks_that_the_host_runs_become_scratch_tensors():
    found, left = shared(kernel_with_roles(a_list_of_two_nests))
    assert (len(found.made), left) == (1, set())
    found, left = shared(kernel_with_roles(a_list_of_each_iteration))
    assert (len(found.made), left) == (0, {"v"})


def test_a_table_of_a_block_that_the_host_runs_stays_one():
    kernel = kernel_with_roles(a_list_of_two_nests)
    (loop,) = [item for item in kernel.body if hasattr(item, "prelude")]
    (local,) = [node for node in loop.body if isinstance(node, Local)]
    table = replace(local, tensor=replace(local.tensor, name="table", number=77), values=(1, 2, 4, 8, 16))

    def visit(node: Node) -> Node:
        return replace(node, tensor=table.tensor) if isinstance(node, Load) and node.tensor.is_local else node

    last = rewrite(loop.body[-2], visit)
    body = (*loop.body[:-2], table, loop.body[-2], last, loop.body[-1])
    found, left = shared(replace(kernel, body=(*kernel.body[:-1], replace(loop, body=body))))
    assert (len(found.made), left, [*found.tables]) == (1, {"table"}, [table.tensor])


def test_a_list_that_is_declared_again_further_in_stays():
    both, each = kernel_with_roles(a_list_of_two_nests), kernel_with_roles(a_list_of_each_iteration)
    (listed,) = [node.tensor for node in statements(both) if isinstance(node, Local)]

    def visit(node: Node) -> Node:
        is_list = isinstance(node, Load | Store | Local) and node.tensor.is_local
        return replace(node, tensor=listed) if is_list else node

    nest = rewrite(each, visit).body
    (element,) = [node for node in walk(nest) if isinstance(node, Load) and not node.tensor.is_local]
    condition, first = build.apply("gt", element, build.integer(0)), {nest[0].index: build.integer(0)}
    asked = If(condition=condition, then=tuple(substitute(item, first) for item in nest[0].body))
    (loop,) = [item for item in both.body if hasattr(item, "prelude")]
    for again in (nest, (asked,)):
        _, left = shared(replace(both, body=(*both.body[:-1], replace(loop, body=(*loop.body, *again)))))
        assert left == {"w"}
        _, left = shared(replace(both, body=(*both.body[:-1], loop, *again)))
        assert left == {"w"}


# ---------------------------------------------------------------- barriers


def keeps_sums_of_rows_that_may_be_empty(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[b]
        for j in range(n[b + 1]):
            for t in range(m.shape[1]):
                m[b, t] += j
            v += j
        n[b] = v


def sums_up_in_warps(n: Tensor, m: Tensor, h: int) -> None:
    for b in range(m.shape[0]):
        v = n[b]
        for w in range(n[b + 1]):
            for t in range(m.shape[1]):
                m[b, t] += v
        n[b] = v + 1


@pytest.mark.parametrize("function", [keeps_sums_of_rows_that_may_be_empty, sums_up_in_warps])
def test_barriers_let_blocks_run_in_lockstep(function):
    kernel = kernel_with_roles(function)
    loops = loops_of(kernel)
    assert not runs_in_lockstep(loops["b"].body)
    sequential = rewrite(kernel, lambda node: replace(node, role=Role.SEQUENTIAL) if isinstance(node, For) else node)
    assert may_run_in_lockstep(loops_of(sequential)["b"].body, frozenset({loops["t"].index}))
    (block,) = (node for node in with_barriers_in_blocks((loops["b"],), count(900)) if isinstance(node, For))
    assert runs_in_lockstep(block.body)
    barriers = [node for node in statements(block) if isinstance(node, For) and not node.body]
    assert [(node.role, node.index.number) for node in barriers] == [(Role.THREAD, 900)]


def test_blocks_have_no_barriers_that_they_do_not_need_or_cannot_have():
    kept = loops_of(kernel_with_roles(rows))["b"]
    assert with_barriers_in_blocks((kept,), count(900)) == (kept,)
    loops = loops_of(kernel_with_roles(sums_up_in_warps))
    warps = rewrite(loops["b"], lambda node: replace(node, role=Role.WARP) if node == loops["w"] else node)
    assert with_barriers_in_blocks((warps,), count(900)) == (warps,)


def test_each_loop_of_a_deep_nest_is_gone_through_a_few_times(monkeypatch):
    depth, steps = 30, list[Node]()
    zero, two = build.integer(0), build.integer(2)
    table, tensor = (kernel_of(rows, N, M, 1).tensors[place] for place in (0, 1))
    load = Load(tensor=table, indices=(zero,), access=0, dtype=INT64)
    block = (Store(tensor=tensor, indices=(zero, zero), value=load, access=1),)
    for number in range(depth):
        block = (For(index=Symbol("i", number, INT64), start=zero, stop=two, body=block),)
    once = lockstep_of._step
    monkeypatch.setattr(lockstep_of, "_step", lambda node, shared: (steps.append(node), once(node, shared))[1])
    assert runs_in_lockstep(block)
    assert len(steps) == depth + 1
    placed = lockstep_of._Placing.statement
    steps.clear()
    monkeypatch.setattr(
        lockstep_of._Placing, "statement", lambda self, node, read: (steps.append(node), placed(self, node, read))[1]
    )
    assert may_run_in_lockstep(block, frozenset({Symbol("i", 0, INT64)}))
    assert len(steps) <= depth**2
