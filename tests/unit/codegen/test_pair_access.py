"""When lanes at complex elements access both parts at once, and what is known of where elements lie."""

from types import SimpleNamespace

import pytest

from brickwork.codegen.lane_values import Strided, Uniform, Varying
from brickwork.codegen.memory import _least_alignment
from brickwork.codegen.pair_access import are_neighbours, is_pair, part_at
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import Assign, Load, Store, Symbol, Tensor, TensorType
from brickwork.ir.operators import OPERATORS
from support.written import load, op

I, J, S = Symbol("i", 0, INT64), Symbol("j", 1, INT64), Symbol("s", 2, FLOAT32)
Z, W = (Tensor(name, number, TensorType(FLOAT32, 2, pairs=True)) for number, name in enumerate("zw"))
X = Tensor("x", 2, TensorType(FLOAT32, 2))
ONE = build.constant(1.0, FLOAT32)


def test_a_part_of_elements_is_at_a_literal():
    at = Varying("%i", INT64)
    assert [part_at(Z, (at, Uniform(text, INT64))) for text in ("0", "1", "2", "%k")] == [0, 1, None, None]
    assert part_at(Z, (at, at)) is None
    assert part_at(X, (at, Uniform("0", INT64))) is None


def test_neighbours_are_two_floats_apart():
    steps = [Strided("%b", step) for step in (1, 2, 4, -2)]
    assert list(map(are_neighbours, steps)) == [False, True, False, False]
    assert not are_neighbours(Varying("%o", INT64))


def part(number, value=ONE, tensor=Z, at=I, **options):
    indices = (build.read(at), build.integer(number))
    return Store(tensor=tensor, indices=indices, value=value, access=number, **options)


def element(tensor, number):
    return Load(tensor=tensor, indices=(build.read(I), build.integer(number)), access=9, dtype=FLOAT32)


def emitting(*, grid=False, may_alias=False):
    return SimpleNamespace(target=SimpleNamespace(grid=grid), kernel=SimpleNamespace(may_alias=may_alias))


@pytest.mark.parametrize("value", [ONE, op("add", element(Z, 1), element(W, 0)), element(W, 1)])
def test_the_parts_of_an_element_are_stored_at_once(value):
    assert is_pair(emitting(), part(0), part(1, value))
    assert is_pair(emitting(), part(0, element(Z, 1)), part(1, ONE))
    assert not is_pair(emitting(grid=True), part(0), part(1, value))
    assert is_pair(emitting(may_alias=True), part(0), part(1, value)) is (value is ONE)


ADDED = {"combine": OPERATORS["add"]}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (part(1), part(0)),
        (part(0), part(0)),
        (part(1), part(1)),
        (part(0), part(1, tensor=W)),
        (part(0), part(1, at=J)),
        (part(0, tensor=X), part(1, tensor=X)),
        (part(0, **ADDED), part(1, **ADDED)),
        (part(0), part(1, **ADDED)),
        (part(0, **ADDED), part(1)),
        (part(0), Assign(symbol=S, value=ONE)),
        (Assign(symbol=S, value=ONE), part(1)),
        (part(0), part(1, element(Z, 0))),
        (part(0), part(1, op("add", element(Z, 1), element(Z, 0)))),
        (
            Store(tensor=Z, indices=(load(X, 0, 0), build.integer(0)), value=ONE, access=0),
            Store(tensor=Z, indices=(load(X, 0, 1), build.integer(1)), value=ONE, access=1),
        ),
    ],
)
def test_other_stores_are_made_one_by_one(first, second):
    assert not is_pair(emitting(), first, second)


def test_a_complex_element_lies_at_a_multiple_of_its_size_if_the_tensor_does():
    aligned = SimpleNamespace(kernel=SimpleNamespace(aligned=(Z, X)))
    at = Varying("%i", INT64)
    real, imag = (at, Uniform("0", INT64)), (at, Uniform("1", INT64))
    assert [_least_alignment(aligned, Z, indices) for indices in (real, imag)] == [8, 4]
    assert _least_alignment(aligned, X, real) == 4
    assert _least_alignment(aligned, W, real) == 4
