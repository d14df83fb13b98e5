"""When code for a GPU reads chunks of 16 bytes, keeps them for the next turn, and leaves out barriers."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from brickwork.codegen.builder import Known
from brickwork.codegen.lane_values import Strided, Uniform, Varying
from brickwork.codegen.memory import place_in_chunks
from brickwork.codegen.thread_iterations import _counts_elements, _is_natural
from brickwork.codegen.tile_cluster import _is_known_before
from brickwork.codegen.wide_loads import begins_at_chunk, has_chunks, may_have_chunks
from brickwork.codegen.windows import _step, _window
from brickwork.codegen.work_sharing import _meets_others, _whole, crossed_tensors
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT16, FLOAT32, FLOAT64, INT8, INT64
from brickwork.ir.nodes import Assign, For, Load, Role, Size, Store, Symbol, Tensor, TensorType
from support.kernels_ir import KernelBuilder, apply, size, value

I, J, T, K = (Symbol(name, number, INT64) for number, name in enumerate("ijtk"))
S = Symbol("s", 9, FLOAT32)


def tensor(rank=2, dtype=FLOAT32, contiguous=True, number=0, **named):
    return Tensor("x", number, TensorType(dtype, rank, contiguous, rank - 1 if rank else None), **named)


class Writer:
    """Knows of what each text is a multiple, and adds nothing up."""

    def __init__(self, multiples=(), is_folding=True):
        self.multiples, self.is_folding = dict(multiples), is_folding

    def known(self, text):
        return Known(multiple=self.multiples.get(text, 1))

    def parts(self, text):
        root, _, constant = text.partition("+")
        return root, int(constant or 0)

    def alloca(self, kind):
        return kind


def state(*tensors, multiples=(), aligned=True, stored=(), folding=True, width=16):
    """A state in which sizes are named by their axes, and offsets are sums of indices."""
    sizes = {item: SimpleNamespace(sizes=[f"size{axis}" for axis in range(item.type.rank)]) for item in tensors}
    return SimpleNamespace(
        kernel=SimpleNamespace(aligned=tensors if aligned else (), narrow=tensors),
        rows=(),
        stored=stored,
        layout=SimpleNamespace(tensors=sizes),
        slot_value=lambda slot: slot,
        writer=Writer(multiples, folding),
        width=width,
    )


# ---------------------------------------------------------------- chunks


@pytest.mark.parametrize(
    ("item", "begins"),
    [
        (tensor(), True),
        (tensor(1), True),
        (tensor(dtype=FLOAT16), True),
        (tensor(dtype=FLOAT64), True),
        (tensor(dtype=INT8), False),
        (tensor(0), False),
        (tensor(contiguous=False), False),
    ],
)
def test_dense_tensors_of_usual_elements_begin_at_chunks(item, begins):
    assert begins_at_chunk(state(item), item) is begins
    assert not begins_at_chunk(state(item, aligned=False), item)


def test_what_a_kernel_stores_is_not_read_in_chunks():
    item = tensor()
    assert may_have_chunks(state(item), item)
    assert not may_have_chunks(state(item, stored=(item,)), item)
    assert not may_have_chunks(state(item, aligned=False), item)


def test_rows_are_whole_chunks_where_elements_are_taken_from_them():
    item = tensor()
    whole = {"size1": 4}
    assert has_chunks(state(item, multiples=whole), item)
    assert not has_chunks(state(item, multiples={"size0": 4, "size1": 2}), item)
    assert not has_chunks(state(item, multiples=whole, folding=False), item)
    assert not has_chunks(state(item, multiples=whole, stored=(item,)), item)


@pytest.mark.parametrize(
    ("offset", "found"),
    [
        (Uniform("row+3", INT64), ("row", 3, 0)),
        (Strided("row+3", -1), ("row", 3, -1)),
        (Strided("odd+3", 1), None),
        (Varying("row", INT64), None),
    ],
)
def test_the_place_in_a_chunk_is_known_where_the_rest_is_a_multiple(monkeypatch, offset, found):
    item = tensor()
    monkeypatch.setattr("brickwork.codegen.memory.element_offset", lambda *_: offset)
    multiples = {"size1": 8, "row": 8, "odd": 2}
    assert place_in_chunks(state(item, multiples=multiples), item, ()) == found
    assert place_in_chunks(state(item, multiples=multiples, folding=False), item, ()) is None


# ---------------------------------------------------------------- windows


def looped(load, *more, unrolled=16):
    return For(index=T, start=value(0), stop=value(K), body=(Assign(symbol=S, value=load), *more), unrolled=unrolled)


def at(item, *indices):
    return Load(tensor=item, indices=tuple(map(value, indices)), access=0, dtype=item.type.dtype)


X = tensor()
INNER = at(tensor(1, INT64, number=1), J)


@pytest.mark.parametrize(
    ("indices", "step"),
    [
        ((I, apply("add", J, T)), 1),
        ((I, apply("sub", J, T)), -1),
        ((I, J), None),
        ((I, apply("mul", T, 2)), None),
        ((I, apply("mul", T, T)), None),
        ((T, apply("add", J, T)), None),
        ((K, apply("add", J, T)), None),
        ((I, apply("add", K, T)), None),
        ((INNER, apply("add", J, T)), None),
    ],
)
def test_windows_move_on_by_one_element_along_rows_that_stay(indices, step):
    load = at(X, *indices)
    assert _step(looped(load, Assign(symbol=K, value=value(3))), load) == step


@pytest.mark.parametrize(
    ("place", "turns", "width", "kept"),
    [
        (("row", 0, 1), 16, 16, 4),
        (("row", 0, -1), 16, 16, 4),
        (("row", 1, 1), 4, 4, 1),
        (("row", 0, 1), 4, 1, 0),
        (("row", 0, 1), 6, 16, 0),
        (("row", 0, 2), 16, 16, 0),
        (("row", 0, 0), 16, 16, 0),
        (None, 16, 16, 0),
    ],
)
def test_windows_keep_chunks_that_two_turns_have_in_common(monkeypatch, place, turns, width, kept):
    monkeypatch.setattr("brickwork.codegen.windows._place", lambda *_: place)
    load = at(X, I, apply("add", J, T))
    found = _window(state(X, width=width), looped(load, unrolled=turns), load)
    assert (len(found.slots) if found else 0) == kept
    assert _window(state(X, width=width), looped(load, unrolled=turns), at(X, I, J)) is None


# ---------------------------------------------------------------- steps of threads


def test_what_counts_the_elements_of_a_narrow_dense_tensor_has_31_bits():
    one, other = X, tensor(2, number=1)
    elements = apply("mul", size(one, 0), size(one, 1))
    assert _counts_elements(state(one), elements)
    assert _counts_elements(state(one), apply("mul", size(one, 1), size(one, 0)))
    for count in (size(one, 0), value(I), apply("mul", elements, size(one, 0)), apply("add", size(one, 0), 1)):
        assert not _counts_elements(state(one), count)
    assert not _counts_elements(state(one, other), apply("mul", size(one, 0), size(other, 1)))
    assert not _counts_elements(state(other), elements)
    strided = tensor(contiguous=False)
    assert not _counts_elements(state(strided), apply("mul", size(strided, 0), size(strided, 1)))


def test_a_loop_begins_at_a_natural_number():
    assert [_is_natural(value(item)) for item in (0, 3, -1, I)] == [True, True, False, False]


def test_the_parts_of_a_tile_are_known_before_its_nest():
    nest = [For(index=I, start=value(0), stop=value(K), body=())]
    assert _is_known_before([size(X, 0), value(K)], nest)
    assert not _is_known_before([size(X, 0), value(I)], nest)


def test_lanes_are_full_where_both_bounds_are_multiples():
    writer = Writer({"a": 8, "b": 4})
    assert [_whole(writer, *ends, 8) for ends in ("aa", "ab", "ba")] == [True, False, False]


# ---------------------------------------------------------------- barriers


def kernel(body, *, may_alias=False):
    make = KernelBuilder()
    one, other = make.tensor("one", 1), make.tensor("other", 1)
    store, again = (make.store(one, (index,), build.constant(1.0, FLOAT32)) for index in (I, J))
    shapes = {
        "stored": (store,),
        "stored twice": (store, again),
        "loaded": (make.store(one, (I,), make.load(one, J)),),
        "read": (make.store(one, (I,), make.load(other, I)),),
    }
    return one, other, make.kernel(*shapes[body], may_alias=may_alias)


def test_tensors_are_crossed_that_are_stored_at_two_places_or_loaded_too():
    for body, expected in (("stored", False), ("stored twice", True), ("loaded", True), ("read", False)):
        one, other, made = kernel(body)
        assert crossed_tensors(made) == ({one} if expected else set()), body
    one, other, made = kernel("stored", may_alias=True)
    assert crossed_tensors(made) == {one, other}


@pytest.mark.parametrize("repeated", [False, True])
def test_threads_meet_around_a_loop_that_touches_what_others_do(repeated):
    team = SimpleNamespace(repeated=repeated)
    own = tensor(1, number=5, sizes=(4,))
    loads = Assign(symbol=S, value=at(X, I, J))
    stores, keeps = (Store(tensor=item, indices=(value(J),), value=value(1), access=1) for item in (X, own))
    for body, crossed, meets in (
        ((loads,), (), False),
        ((loads,), (X,), True),
        ((stores,), (), repeated),
        ((stores,), (X,), True),
        ((keeps,), (own,), False),
        ((Assign(symbol=S, value=Size(tensor=X, axis=0)),), (X,), False),
    ):
        loop = For(index=J, start=value(0), stop=value(4), body=body, role=Role.THREAD)
        assert _meets_others(SimpleNamespace(crossed=crossed), team, replace(loop)) is meets, body
