"""What a grid of threads is given: roles, lanes, pieces, updates, and the ways round what would be slow or wrong."""

from dataclasses import replace

import pytest
import torch

from brickwork.diagnostics.errors import InternalError, RaceError
from brickwork.ir import build
from brickwork.ir.dtypes import DTYPES, FLOAT32, INT64
from brickwork.ir.interpret import Memory, run_kernel, run_program
from brickwork.ir.nodes import (
    Assign,
    Check,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Read,
    Role,
    Store,
    Symbol,
    Tensor,
    TensorType,
    While,
)
from brickwork.ir.operators import OPERATORS
from brickwork.ir.parse import parse_kernel
from brickwork.ir.signature import Signature
from brickwork.ir.text import print_kernel
from brickwork.ir.verify import verify_kernel, verify_program
from brickwork.ir.walk import statements, walk
from brickwork.target.cuda import cuda_target
from brickwork.target.target import WARP
from brickwork.transform.explain import explain
from brickwork.transform.outline import is_nondeterministic
from brickwork.transform.schedule import grid
from brickwork.transform.schedule.lockstep import runs_in_lockstep
from brickwork.transform.schedule.schedule import Level, Rfactor
from brickwork.transform.schedule.text import Names
from support.kernels import SUITE
from support.lowering import argument_type, memory, nested
from support.shared import define, lower, schedule_program
from support.tensors import argument_type as types_of

GPU = cuda_target((9, 0))


def pieces_of(function, *arguments, narrow=True):
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=narrow, aligned=narrow)
    program = lower(define(function), signature)
    pieces, scheduled = schedule_program(program, GPU)
    verify_program(pieces)
    return program, pieces, scheduled


def kernels(program):
    return [node.kernel for node in walk(program) if isinstance(node, Launch)]


def roles(kernel):
    return [node.role for node in walk(kernel.body) if isinstance(node, For)]


def agree(function, *arguments):
    """Run a function as written and in pieces on copies; return the results of the second."""
    program, pieces, _ = pieces_of(function, *arguments)
    both = []
    for each in (program, pieces):
        given = [memory(nested(item), item.dtype) if hasattr(item, "sizes") else item for item in arguments]
        results = run_program(each, given, check=each is pieces)
        both.append([nested(item) for item in (*results, *given) if hasattr(item, "sizes")])
    assert both[0] == both[1]
    return both[1]


# ---------------------------------------------------------------- nests


def copy_rows(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = x.new_empty((m, n))
    for i in range(n):
        for j in range(m):
            out[j, i] = x[i, j]
    return out


def test_neighbouring_threads_store_neighbours():
    _, pieces, (scheduled,) = pieces_of(copy_rows, memory([[1.0, 2.0], [3.0, 4.0]]))
    assert "reorder(j, i)" in str(scheduled.schedule)
    nest = kernels(pieces)[0].body[0]
    assert (nest.index.name, nest.body[0].index.name) == ("j_block", "i")
    agree(copy_rows, memory([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


def scale(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] * 2
    return out


@pytest.mark.parametrize(("dtype", "width"), [("float32", 4), ("float64", 2), ("float16", 8), ("uint8", 8)])
def test_a_thread_takes_as_many_elements_as_one_access_holds(dtype, width):
    _, pieces, _ = pieces_of(scale, memory([1, 2], DTYPES[dtype]))
    assert kernels(pieces)[0].body[0].width == width


def triangle(out: torch.Tensor) -> None:
    for i in range(out.shape[0]):
        for j in range(i):
            out[i, j] = i + j


def test_rows_of_different_lengths_are_for_blocks():
    _, pieces, _ = pieces_of(triangle, memory([[0.0] * 3] * 3))
    assert [roles(kernel) for kernel in kernels(pieces)[:2]] == [
        [Role.BLOCK, Role.BLOCK, Role.THREAD],
        [Role.BLOCK, Role.THREAD],
    ]
    agree(triangle, memory([[0.0] * 5] * 5))


def tiles(tile: torch.Tensor, image: torch.Tensor, shift: int) -> None:
    h, w = tile.shape
    for i in range(image.shape[0]):
        v = i // h
        for j in range(image.shape[1]):
            x = j + v * shift
            image[i, j] = tile[i - v * h, x - x // w * w]


def test_arithmetic_between_loops_moves_in_and_its_checks_move_out():
    tile, image = memory([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), memory([[0.0] * 5] * 4)
    _, pieces, _ = pieces_of(tiles, tile, image, 1)
    nest = kernels(pieces)[0]
    assert roles(nest) == [Role.PARALLEL, Role.PARALLEL]
    assert not any(isinstance(node, Check) for node in walk(nest))
    agree(tiles, tile, image, 1)
    nothing = Memory([], (0, 3), (3, 1), FLOAT32)
    with pytest.raises(ZeroDivisionError):
        run_program(pieces, (nothing, image, 1))
    run_program(pieces, (nothing, Memory([], (0, 5), (5, 1), FLOAT32), 1))


def scales_rows(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        s = out[i, 0]
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * s


def test_reads_of_what_the_inner_loop_writes_do_not_move_in():
    agree(scales_rows, memory([[1.0, 2.0, 3.0]]), memory([[2.0, 0.0, 0.0]]))


def centre(x: torch.Tensor) -> None:
    n, m = x.shape
    for i in range(n):
        first = x[i, 0]
        for j in range(m):
            x[i, j] = x[i, j] - first


def test_what_all_threads_of_a_block_read_is_not_overwritten_under_them():
    _, pieces, _ = pieces_of(centre, memory([[1.0, 2.0]]))
    assert Role.BLOCK not in roles(kernels(pieces)[0])
    agree(centre, memory([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))


# ---------------------------------------------------------------- accumulating loops


def mean_square(x: torch.Tensor) -> torch.Tensor:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


def test_a_sum_is_two_launches(monkeypatch):
    monkeypatch.setattr(grid, "LIGHT_PIECE", 2)
    _, pieces, _ = pieces_of(mean_square, memory([1.0]))
    assert [roles(kernel) for kernel in kernels(pieces)] == [[Role.BLOCK, Role.THREAD]] * 2
    assert agree(mean_square, memory([1.0, 2.0, 3.0, 4.0, 5.0]))[0] == 55.0


def rows_and_total(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    total = 0.0
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(i, x.shape[1]):
            s += x[i, j]
        for j in range(x.shape[1]):
            rows[i, j] = x[i, j] * s
        total += s
    return total


def sum_of_squared_rows(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros((1,), dtype=torch.float32)
    for i in range(x.shape[0]):
        if x[i, 0] >= 0:
            s = 0.0
            for j in range(x.shape[1]):
                s += x[i, j]
            total[0] += s * s
    return total


@pytest.mark.parametrize("columns", [3, 300])
def test_blocks_make_terms_of_sums_that_loops_add_up(columns: int):
    """A thread for each term would go along a row of its own, far from those of its neighbours."""
    *_, found = pieces_of(sum_of_squared_rows, memory([[1.0]]))
    verbs = [verb for item in found for verb in item.schedule.verbs if isinstance(verb, Rfactor)]
    assert [verb.size for verb in verbs if verb.level is Level.BLOCK] == [1]
    assert [verb.loop.name for verb in verbs if verb.level is Level.THREAD] == ["j"]
    x = memory([[float((i * j) % 5 - i % 3) for j in range(columns)] for i in range(70)])
    agree(sum_of_squared_rows, x)
    if columns > 70:
        agree(rows_and_total, x, memory([[0.0] * columns] * 70))


def powers(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros((1,), dtype=torch.float32)
    for i in range(x.shape[0]):
        s = x[i]
        for _ in range(3):
            s *= s
        total[0] += s
    return total


def test_few_iterations_with_loops_inside_are_a_piece():
    """A block of 4096 would leave all the others without work."""
    *_, found = pieces_of(powers, memory([1.0]))
    pieces_in_blocks = [verb for item in found for verb in item.schedule.verbs if isinstance(verb, Rfactor)]
    assert [verb.size for verb in pieces_in_blocks if verb.level is Level.BLOCK] == [WARP]
    agree(powers, memory([float(i % 3) for i in range(70)]))


def column_sum(x: torch.Tensor) -> torch.Tensor:
    n, m = x.shape
    out = torch.zeros((m,), dtype=torch.float32)
    for i in range(n):
        for j in range(m):
            out[j] += x[i, j]
    return out


def test_columns_are_summed_in_order_by_a_thread_each():
    _, pieces, _ = pieces_of(column_sum, memory([[1.0]]))
    assert not is_nondeterministic(pieces)
    assert not any(isinstance(node, For) for node in pieces.body)
    assert agree(column_sum, memory([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))[0] == [5.0, 7.0, 9.0]


# ---------------------------------------------------------------- updates


def histogram(x: torch.Tensor, n: int) -> torch.Tensor:
    h = torch.zeros((n,), dtype=torch.int64)
    for i in range(len(x)):
        h[x[i]] += 1
    return h


def scatter(x: torch.Tensor, c: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[c[i], j] -= x[i, j]


def greatest(x: torch.Tensor, c: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[c[i]] = max(out[c[i]], x[i])


def updates(program):
    return [node.combine.name for node in walk(program) if isinstance(node, Store) and node.combine is not None]


def test_counting_is_done_by_atomic_updates():
    x = memory([0, 1, -1, 1], INT64)
    _, pieces, (scheduled,) = pieces_of(histogram, x, 3)
    assert set(updates(pieces)) == {"add"}
    assert not is_nondeterministic(pieces)
    assert "updates of 'h' are atomic" in explain(scheduled).text()
    assert agree(histogram, x, 3)[0] == [1, 2, 1]


def test_sums_of_floats_by_index_are_unordered():
    arguments = memory([[1.0, 2.0], [4.0, 8.0]]), memory([1, 1], INT64), memory([[0.0, 0.0], [1.0, 1.0]])
    _, pieces, _ = pieces_of(scatter, *arguments)
    assert is_nondeterministic(pieces)
    assert agree(scatter, *arguments)[2] == [[0.0, 0.0], [-4.0, -9.0]]


def test_the_greatest_is_the_same_in_any_order():
    arguments = memory([3.0, 9.0, 4.0]), memory([1, 0, 1], INT64), memory([0.0, 0.0])
    _, pieces, _ = pieces_of(greatest, *arguments)
    assert set(updates(pieces)) == {"maximum"}
    assert not is_nondeterministic(pieces)
    assert agree(greatest, *arguments)[2] == [9.0, 4.0]


def reads_too(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[x[i]] += 1
        out[0] = out[1]


def two_operators(x: torch.Tensor, out: torch.Tensor) -> None:
    for i in range(x.shape[0]):
        out[x[i]] += 1
        out[x[i]] *= 2


@pytest.mark.parametrize("function", [reads_too, two_operators])
def test_other_uses_of_an_updated_tensor_keep_the_order(function):
    _, pieces, _ = pieces_of(function, memory([0, 1], INT64), memory([1, 2], INT64))
    assert not updates(pieces)
    agree(function, memory([0, 1, 1], INT64), memory([1, 2], INT64))


# ---------------------------------------------------------------- host control flow


def heat(a: torch.Tensor, b: torch.Tensor, steps: int) -> None:
    for _ in range(steps):
        for i in range(1, a.shape[0] - 1):
            b[i] = (a[i - 1] + a[i + 1]) * 0.5
        for i in range(1, a.shape[0] - 1):
            a[i] = b[i]


def test_time_steps_are_launches_from_the_host():
    arguments = memory([0.0, 0.0, 8.0, 0.0, 0.0]), memory([0.0] * 5), 2
    _, pieces, (scheduled,) = pieces_of(heat, *arguments)
    turns = [[type(node) for node in each.body] for each in statements(pieces.body) if isinstance(each, For)]
    assert [Launch, Launch] in turns
    assert "each iteration launches" in explain(scheduled).text()
    assert agree(heat, *arguments)[0] == [0.0, 0.0, 4.0, 0.0, 0.0]


def until(x: torch.Tensor) -> None:
    go = 1.0
    while go > 0:
        go = x[0]
        for i in range(x.shape[0]):
            x[i] = x[i] - 1


def test_a_loop_whose_end_the_device_knows_runs_on_the_device():
    _, pieces, _ = pieces_of(until, memory([1.0]))
    assert not any(isinstance(node, While) for node in pieces.body)
    assert agree(until, memory([2.0, 5.0]))[0] == [-1.0, 2.0]


def scaled_by_checked(x: torch.Tensor, k: torch.Tensor) -> None:
    s = k[0]
    assert s > 0, "positive"
    for i in range(x.shape[0]):
        x[i] = x[i] * s


def test_nothing_runs_after_a_check_that_failed_on_the_device():
    """In the interpreter a failure ends the program; here the launches that would still come are run by themselves."""
    arguments = memory([1.0, 2.0]), memory([-1.0])
    _, pieces, _ = pieces_of(scaled_by_checked, *arguments)
    assert "passed" in {tensor.name for kernel in kernels(pieces) for tensor in kernel.tensors}
    agree(scaled_by_checked, memory([1.0, 2.0]), memory([3.0]))
    tensors = {}
    for kernel in kernels(pieces):
        for tensor in kernel.tensors:
            tensors.setdefault(tensor, memory([0] * 1024, tensor.type.dtype))
    x = next(tensor for tensor in tensors if tensor.name == "x")
    tensors[x] = arguments[0]
    tensors[next(tensor for tensor in tensors if tensor.name == "k")] = arguments[1]
    for kernel in kernels(pieces):
        try:
            run_kernel(kernel, [tensors[tensor] for tensor in kernel.tensors])
        except AssertionError:
            continue
    assert arguments[0].data == [1.0, 2.0]


# ---------------------------------------------------------------- races that are planted are found


def loop(index, stop, body, role):
    return For(index=index, start=build.integer(0), stop=build.integer(stop), body=tuple(body), role=role)


def block_kernel(first, second):
    """A block whose threads all read x[0] and then write what `second` says."""
    x = Tensor("x", 0, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0))
    b, i, s = Symbol("b", 1, INT64), Symbol("i", 2, INT64), Symbol("s", 3, FLOAT32)
    read = Assign(symbol=s, value=Load(tensor=x, indices=(build.integer(0),), access=0, dtype=FLOAT32))
    index = Read(symbol=i) if second == "thread" else build.integer(0)
    write = Store(tensor=x, indices=(index,), value=Read(symbol=s), access=1)
    written = loop(i, 2, [write], Role.THREAD) if second == "thread" else write
    pause = loop(Symbol("p", 4, INT64), 1, [], Role.THREAD)
    body = [read, *([pause] if first == "barrier" else []), written]
    return Kernel(name="k", tensors=(x,), scalars=(), facts=(), body=(loop(b, 1, body, Role.BLOCK),))


@pytest.mark.parametrize("second", ["thread", "one"])
def test_a_write_of_what_all_threads_read_needs_a_barrier(second):
    with pytest.raises(RaceError, match="no barrier"):
        run_kernel(block_kernel("at once", second), [memory([1.0, 2.0])], check=True)
    run_kernel(block_kernel("barrier", second), [memory([1.0, 2.0])], check=True)


def test_what_a_store_of_one_thread_reads_itself_needs_no_barrier():
    x = memory([1.0, 2.0])
    kernel = block_kernel("barrier", "one")
    (block,) = kernel.body
    *_, write = block.body
    load = Load(tensor=kernel.tensors[0], indices=(build.integer(0),), access=2, dtype=FLOAT32)
    added = replace(write, value=build.add(load, load))
    run_kernel(replace(kernel, body=(replace(block, body=(added, added)),)), [x], check=True)
    assert x.data == [4.0, 2.0]
    assert runs_in_lockstep((added, added))
    assert not runs_in_lockstep((*block.body[:1], added))
    with pytest.raises(RaceError, match="no barrier"):
        run_kernel(replace(kernel, body=(replace(block, body=(*block.body[:1], added)),)), [x], check=True)


def update_kernel(*combines, role=Role.PARALLEL):
    x = Tensor("x", 0, TensorType(FLOAT32, 1, contiguous=True, unit_axis=0))
    stores = [
        Store(
            tensor=x,
            indices=(build.integer(0),),
            value=build.constant(2.0 if name is not None else 3.0 + place, FLOAT32),
            access=place,
            combine=None if name is None else OPERATORS[name],
        )
        for place, name in enumerate(combines)
    ]
    body = loop(Symbol("i", 1, INT64), 3, stores, role)
    return Kernel(name="k", tensors=(x,), scalars=(), facts=(), body=(body,), narrow=(x,), aligned=(x,))


def test_updates_by_one_operator_do_not_collide():
    x = memory([1.0])
    run_kernel(update_kernel("add", "add"), [x], check=True)
    assert x.data == [13.0]


def test_stores_of_one_literal_do_not_collide():
    x = memory([1.0])
    run_kernel(update_kernel(None), [x], check=True)
    assert x.data == [3.0]


@pytest.mark.parametrize("combines", [("add", "mul"), ("add", None), (None, None), (None, "add")])
def test_other_writes_collide(combines):
    with pytest.raises(RaceError):
        run_kernel(update_kernel(*combines), [memory([1.0])], check=True)


def test_updates_are_printed_and_come_back():
    kernel = update_kernel("maximum", None)
    assert parse_kernel(print_kernel(kernel)) == kernel
    assert "combine(maximum, " in print_kernel(kernel)


def test_threads_outside_of_blocks_are_refused():
    with pytest.raises(InternalError, match="inside of blocks"):
        verify_kernel(update_kernel("add", role=Role.THREAD))
    with pytest.raises(InternalError, match="no updates by"):
        verify_kernel(update_kernel("sub"))


# ---------------------------------------------------------------- schedules are data


@pytest.mark.parametrize("name", ["softmax", "total", "histogram", "matrix_product", "affine"])
def test_schedules_come_back(name):
    case = SUITE[name]
    program = lower(define(case.function), Signature(tuple(map(types_of, case.arguments(5))), device="cuda"))
    _, (scheduled,) = schedule_program(program, GPU)
    names = Names(scheduled.source)
    assert names.read(names.text(scheduled.schedule)) == scheduled.schedule


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = a.new_empty((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


def test_the_careful_body_is_parallel_too_where_that_is_sure():
    a, b = memory([[1.0, 2.0]] * 3), memory([[1.0, 2.0, 3.0]])
    _, pieces, _ = pieces_of(matmul, a, b)
    (choice,) = (node for node in pieces.body if isinstance(node, If))
    assert all(Role.PARALLEL in roles(kernel) for kernel in kernels(choice.otherwise))
    with pytest.raises(IndexError):
        run_program(pieces, (a, b), check=True)
    agree(matmul, memory([[1.0, 2.0]] * 3), memory([[1.0, 2.0, 3.0]] * 2))


def test_products_of_rows_are_for_threads_and_sums_of_rows_for_blocks():
    def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        out = q.new_empty((q.shape[0], k.shape[0]))
        for i in range(q.shape[0]):
            for j in range(k.shape[0]):
                s = 0.0
                for c in range(q.shape[1]):
                    s += q[i, c] * k[j, c]
                out[i, j] = s
        return out

    def sums(q: torch.Tensor) -> torch.Tensor:
        out = q.new_empty((q.shape[0],))
        for i in range(q.shape[0]):
            s = 0.0
            for c in range(q.shape[1]):
                s += q[i, c]
            out[i] = s
        return out

    q = memory([[0.0] * 64] * 64)
    long, *others = (roles(kernel) for kernel in kernels(pieces_of(scores, q, q)[1]))
    assert Role.BLOCK in long
    assert any(Role.PARALLEL in products and Role.BLOCK not in products for products in others)
    lanes, short, *rows = (roles(kernel) for kernel in kernels(pieces_of(sums, q)[1]))
    assert Role.BLOCK not in {*lanes, *short}
    assert all(Role.BLOCK in each for each in rows)


def sums_from_places_that_floats_say(x: torch.Tensor, y: torch.Tensor, rate: float, n: int) -> None:
    for b in range(x.shape[0]):
        at = 0
        for f in range(y.shape[1]):
            begin = at + int((f + 1) * rate)
            s = 0.0
            for i in range(n):
                s += x[b, begin + i]
            y[b, f] = s
            if s > 0.0:
                at = begin


def test_threads_share_sums_from_places_of_which_nothing_is_known():
    """A place may be so large that adding an index to it wraps; neighbours are neighbours all the same."""
    x, y = (memory([[0.5] * 6] * 3) for _ in range(2))
    _, pieces, _ = pieces_of(sums_from_places_that_floats_say, x, y, 1.5, 4)
    assert any({Role.BLOCK, Role.THREAD} <= {*roles(kernel)} for kernel in kernels(pieces))
    with pytest.raises(IndexError):
        run_program(pieces, (x, y, 1.5, 4), check=True)
    agree(sums_from_places_that_floats_say, x, y, 0.125, 2)


def products(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], y.shape[0])
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                s += x[i, k] / y[j, k]
            out[i, j] = s
    return out


def quotients(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape[0], y.shape[0])
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            s = 0.0
            for k in range(x.shape[1]):
                a, b = x[i, k], y[j, k]
                s += a / b + b / (a + 2.0) + a / (a + b) + b / (a * b + 1.0)
            out[i, j] = s
    return out


@pytest.mark.parametrize(("function", "tiled"), [(products, True), (quotients, False)])
def test_terms_that_take_long_are_in_no_tiles(function, tiled):
    """What tiles would share is read in less time than one term is computed in, and each iteration in one is code."""
    signature = Signature(tuple(map(types_of, [torch.rand(64, 32)] * 2)), device="cuda", narrow=True, aligned=True)
    pieces, scheduled = schedule_program(lower(define(function), signature), GPU)
    written = [verb for item in scheduled for verb in item.schedule.verbs if type(verb).__name__ == "Unroll"]
    loops = [node for kernel in kernels(pieces) for node in statements(kernel) if isinstance(node, For)]
    assert bool(written) is tiled
    assert (max(loop.unrolled for loop in loops) > 1) is tiled
