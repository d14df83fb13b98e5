"""Updates are rows where each condition on them holds, and none where one does not."""

from dataclasses import replace

import pytest
import torch

from brickwork.analysis.atomic_updates import with_updates
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, FLOAT64, INT64
from brickwork.ir.nodes import For, Load, Store, TensorType
from brickwork.ir.nodes import Tensor as Memory
from brickwork.ir.walk import rewrite, walk
from brickwork.transform.row_updates import _row_updates, row_update
from support.lowering import memory
from support.scheduling import kernel_of, loops_of

Tensor = torch.Tensor
ROW = memory([[0.0] * 64] * 6)
NUMBERS = memory([1, 0, 2, 0, 1, 0], INT64)


def loops_with(function, *, updates=("out",), dtype=None) -> dict[str, For]:
    """Return the loops of a function by name, with its updates of some tensors made indivisible."""
    loops = loops_of(kernel_of(function, ROW, ROW, NUMBERS))
    outer = next(iter(loops.values()))
    tensors = {node.tensor for node in walk(outer) if isinstance(node, Store) and node.tensor.name in updates}
    outer = with_updates(outer, tensors)
    if dtype is not None:
        outer = rewrite(outer, lambda node: of_type(node, dtype))
    return {node.index.name: node for node in walk(outer) if isinstance(node, For)}


def of_type(node, dtype):
    if isinstance(node, Memory) and node.name == "out":
        return replace(node, type=replace(node.type, dtype=dtype))
    if isinstance(node, Store) and node.tensor.name == "out":
        return replace(node, tensor=of_type(node.tensor, dtype))
    return node


# ---------------------------------------------------------------- rows


def updating(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for t in range(6):
            for j in range(8):
                out[t, j] += x[t, j]


def row_of(first, stop, place, *, local=True, loop=None):
    """Return the update of a loop from `first` to `stop` that adds an item of a list at a place of its index."""
    loop = loops_with(updating)["j"] if loop is None else loop
    (store,) = loop.body
    kind = TensorType(FLOAT32, 1, contiguous=True, unit_axis=0)
    part = Memory("part", 99, kind, (64,)) if local else replace(x_of({"c": loop}), name="part")
    item = Load(tensor=part, indices=place(build.read(loop.index)), access=99, dtype=FLOAT32)
    start, stop = (build.integer(each) if isinstance(each, int) else each for each in (first, stop))
    return row_update(replace(loop, start=start, stop=stop, body=(replace(store, value=item),)))


def itself(index):
    return (index,)


def test_a_row_adds_an_item_in_each_of_a_few_iterations():
    ends = [(0, 2), (0, 16), (0, 32), (4, 12)]
    assert all(row_of(*each, itself) is not None for each in ends)
    assert row_of(4, 12, lambda index: (build.sub(index, build.integer(4)),)) is not None
    others = [(0, 1), (0, 64), (0, 12), (3, 3), (5, 3)]
    assert all(row_of(*each, itself) is None for each in others)
    assert row_of(0, loops_with(of_any)["j"].stop, itself) is None


def test_a_row_goes_over_a_list_of_items():
    assert row_of(0, 8, itself, local=False) is None
    assert row_of(0, 8, lambda _: (build.integer(0),)) is None
    assert row_of(0, 8, lambda index: (build.integer(0), index)) is None
    assert row_of(0, 8, lambda index: (index, build.integer(0))) is None
    loop = loops_with(updating)["j"]
    assert row_update(loop) is None
    assert row_update(replace(loop, body=loop.body * 2)) is None


def test_a_row_has_additions_of_floats_to_elements_in_memory():
    (store,) = loops_with(updating)["j"].body
    for function, options in (
        (updating, {"updates": ()}),
        (updating, {"dtype": FLOAT64}),
        (with_extremes, {}),
    ):
        assert row_of(0, 8, itself, loop=loops_with(function, **options)["j"]) is None
    loop = loops_with(updating)["j"]
    kept = replace(store, tensor=replace(store.tensor, sizes=(6, 64)))
    assert kept.tensor.is_local
    assert row_of(0, 8, itself, loop=replace(loop, body=(kept,))) is None


def of_any(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for t in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[c, j] += x[t, j]


def with_extremes(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(8):
            out[1, j] = max(out[1, j], x[c, j])


# ---------------------------------------------------------------- updates of an item each


def of_two(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(2):
            out[1, j] += x[c, j]


def of_one(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(1):
            out[1, j] += x[c, j]


def with_an_end(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(8):
            if x[c, j] > 3.0:
                break
            out[1, j] += x[c, j]


def with_a_failure(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(8):
            assert x[c, j] < 9.0
            out[1, j] += x[c, j]


def along_threads(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(8):
            out[c, j] += x[c, j]


def twice_the_item(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(6):
            out[j, j] += x[c, j]


def by_the_item(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(6):
            out[j // 2, j] += x[c, j]


def at_one_place(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(6):
            out[1, 2] += x[c, j]


def at_a_variable(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(8):
            place = j // 3
            out[place, j] += x[c, j]


def where_data_say(x: Tensor, out: Tensor, n: Tensor) -> None:
    for c in range(6):
        for j in range(8):
            out[n[2] % 6, j] += x[c, j]


@pytest.mark.parametrize("function", [updating, of_two])
def test_each_thread_updates_an_item(function):
    loops = loops_with(function)
    assert len(_row_updates(loops["j"], loops["c"].index)) == 1
    assert not _row_updates(loops_with(function, updates=())["j"], loops["c"].index)


OTHERS = [of_one, with_an_end, with_a_failure, along_threads, twice_the_item, by_the_item, at_one_place]
OTHERS += [at_a_variable, where_data_say]


@pytest.mark.parametrize("function", OTHERS)
def test_other_updates_are_made_one_by_one(function):
    loops = loops_with(function)
    assert any(isinstance(node, Store) and node.combine is not None for node in walk(loops["j"]))
    assert not _row_updates(loops["j"], loops["c"].index)


def test_what_is_read_or_set_beside_updates_is_updated_one_by_one():
    loops = loops_with(of_two)
    (store,) = loops["j"].body
    read = Load(tensor=store.tensor, indices=store.indices, access=900, dtype=store.value.dtype)
    reads = replace(loops["j"], body=(store, replace(store, tensor=x_of(loops), combine=None, value=read)))
    sets = replace(loops["j"], body=(store, replace(store, combine=None)))
    again = replace(loops["j"], body=(store, replace(store, tensor=x_of(loops), combine=None)))
    for loop, count in ((reads, 0), (sets, 0), (again, 1)):
        assert len(_row_updates(loop, loops["c"].index)) == count


def x_of(loops):
    return next(node.tensor for node in walk(loops["c"]) if isinstance(node, Load) and node.tensor.name == "x")
