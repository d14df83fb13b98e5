"""Which integers are sums."""

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import Symbol, Tensor, TensorType
from brickwork.transform.sums import Sum, sum_of

N, M = (build.read(Symbol(name, place, INT64)) for place, name in enumerate("nm"))
LENGTH = build.size(Tensor("x", 1, TensorType(FLOAT64, 1)), 0)
H = build.read(Symbol("h", 2, FLOAT64))


def test_sums_are_of_integers_that_are_added_up():
    total = build.sub(build.add(N, build.integer(3)), build.add(M, N))
    assert sum_of(total) == Sum(((M, -1),), 3)
    assert sum_of(build.add(LENGTH, N)) == Sum(((LENGTH, 1), (N, 1)))
    product = build.mul(N, M)
    for value in (product, build.add(N, product), build.add(product, N)):
        assert sum_of(value) is None
    for value in (H, build.constant(2.0, FLOAT64), build.add(H, H)):
        assert sum_of(value) is None
