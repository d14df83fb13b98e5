"""How often loops run at most."""

from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.nodes import For, Size, Symbol, Tensor, TensorType
from brickwork.transform.iteration_bounds import Ranges

N, I, J = (Symbol(name, number, INT64) for number, name in enumerate("nij"))
KNOWN = Ranges(frozenset({N}))


def loop(index, start, stop):
    start, stop = (build.integer(item) if isinstance(item, int) else item for item in (start, stop))
    return For(index=index, start=start, stop=stop, body=())


def test_bounds_that_are_known():
    assert KNOWN.iterations(loop(I, 2, 7)) == build.integer(5)
    n = build.read(N)
    assert KNOWN.iterations(loop(I, 0, n)) == build.apply("maximum", n, build.integer(0))


def test_indices_are_between_the_ends_of_their_loops():
    inside = KNOWN.inside(loop(I, 0, 10))
    assert inside.iterations(loop(J, 0, build.read(I))) == build.integer(9)
    assert inside.iterations(loop(J, 0, build.add(build.read(I), build.integer(1)))) == build.integer(10)
    assert inside.iterations(loop(J, build.read(I), 10)) == build.integer(10)
    twice = build.mul(build.read(I), build.integer(2))
    assert inside.iterations(loop(J, 0, twice)) == build.integer(18)
    assert inside.iterations(loop(J, 0, build.apply("floordiv", twice, build.integer(3)))) == build.integer(6)
    backwards = build.mul(build.integer(-1), build.read(I))
    assert inside.iterations(loop(J, backwards, 3)) == build.integer(12)
    assert inside.iterations(loop(J, build.sub(build.read(I), build.integer(1)), 3)) == build.integer(4)


def test_a_product_of_two_numbers_that_stands_as_it_is() -> None:
    product = replace(build.mul(build.integer(-2), build.read(I)), operands=(build.integer(-2), build.integer(3)))
    assert KNOWN.extreme(product, most=True) == build.integer(-6)


def test_sizes_are_not_negative():
    size = Size(tensor=Tensor("x", 9, TensorType(FLOAT32, 1)), axis=0)
    assert KNOWN.iterations(loop(I, 0, size)) == size


def test_a_quotient_by_a_number_that_may_be_zero_is_computed_all_the_same() -> None:
    size = Size(tensor=Tensor("x", 0, TensorType(FLOAT32, 1)), axis=0)
    quotient = build.apply("floordiv", size, build.read(N))
    n, zero, one = build.read(N), build.integer(0), build.integer(1)
    some = build.select(build.apply("eq", n, zero), one, n)
    assert KNOWN.extreme(quotient, most=True) == build.apply("floordiv", size, some)
    assert KNOWN.extreme(build.apply("floordiv", size, build.read(I)), most=True) is None


def test_what_a_host_cannot_compute_is_no_bound():
    n, zero = build.read(N), build.integer(0)
    assert KNOWN.iterations(loop(I, 0, build.mul(n, n))) is None
    assert KNOWN.iterations(loop(I, 0, build.apply("floordiv", n, zero))) is None
    assert KNOWN.iterations(loop(I, 0, build.apply("floordiv", n, build.integer(-2)))) is None


def test_of_two_bounds_one_is_enough():
    unknown = build.read(J)
    least = build.apply("minimum", unknown, build.integer(4))
    assert KNOWN.iterations(loop(I, 0, least)) == build.integer(4)
    assert KNOWN.iterations(loop(I, 0, build.apply("minimum", build.integer(4), unknown))) == build.integer(4)
    assert KNOWN.iterations(loop(I, 0, unknown)) is None
    assert KNOWN.iterations(loop(I, least, 5)) is None
    assert KNOWN.iterations(loop(I, build.apply("maximum", unknown, build.integer(1)), 5)) == build.integer(4)
    assert KNOWN.inside(loop(I, 0, unknown)).iterations(loop(J, 0, build.read(I))) is None
