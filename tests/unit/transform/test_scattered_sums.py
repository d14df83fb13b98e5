"""Sums at places that data tells: each is added once, and nests that may not be several stay as they are."""

import pytest
import torch

from brickwork.analysis.definitions import Definitions
from brickwork.analysis.found_places import known_outside
from brickwork.ir.effects import effects
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import For, If
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements
from brickwork.transform.canonical.form import canonical
from brickwork.transform.scattered_sums import with_scattered_sums
from support.lowering import argument_type
from support.scheduling import GPU, same, way
from support.shared import define, lower
from support.tensors import to_memory
from support.written import op, symbol

N, CHANGING = symbol("n"), symbol("changing")


def product(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                out[at[p], i] += x[p, o] * w[i, o]


def both(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                out[at[p], i] += x[p, o] * w[i, o]
                other[at[p], o] += x[p, o] * w[i, o]


def chosen(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            if x[p, o] > 0:
                for i in range(w.shape[0]):
                    if i != 1:
                        out[at[p], i] += x[p, o] * w[i, o]
                    else:
                        pass


def otherwise(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                if i == 2:
                    pass
                else:
                    out[at[p], i] += x[p, o]


def outermost(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for o in range(x.shape[1]):
        for p in range(x.shape[0]):
            a = x[p, o]
            for i in range(w.shape[0]):
                q = at[p]
                out[q, i] -= a + w[i, o]


def leaning(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for i in range(min(o, w.shape[0])):
                out[at[p], i] += x[p, o]


def rows(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(min(abs(at[p]), x.shape[1])):
            for i in range(w.shape[0]):
                out[at[p], i] += x[p, o]


def carried(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        h = 0.0
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                h = h + x[p, o]
                out[at[p], i] += h


def left(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    h = x[0, 0]
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                h = x[p, o] * w[i, o]
                out[at[p], i] += h
    last = torch.zeros(1)
    last[0] = h
    return last


def read(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                x[p, o] = x[p, o] + 1.0
                out[at[p], i] += x[p, o]


def stored(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            w[0, o] = x[p, o]
            for i in range(w.shape[0]):
                out[at[p], i] += x[p, o]


def beside(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        top = 0.0
        for o in range(x.shape[1]):
            top += x[p, o]
        for o in range(x.shape[1]):
            other[at[p], o] += x[p, o]
            for i in range(w.shape[0]):
                out[at[p], i] += top * x[p, o]


def off_the_diagonal(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            if o != p:
                for i in range(w.shape[0]):
                    out[at[p], i] += x[p, o] * w[i, o]


def below(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for q in range(o):
                for i in range(w.shape[0]):
                    out[at[p], i] += x[p, q] * w[i, o]


def above(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        for o in range(x.shape[1]):
            for q in range(o, x.shape[1]):
                for i in range(w.shape[0]):
                    out[at[p], i] += x[p, q] * w[i, o]


def changed_behind(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    """Add what the rows before have left, which changes behind an update."""
    last = 1.0
    for p in range(x.shape[0]):
        a = last
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                out[at[p], i] += a * x[p, o]
            last = x[p, o]


def asserted(x: torch.Tensor, w: torch.Tensor, at: torch.Tensor, out: torch.Tensor) -> None:
    for p in range(x.shape[0]):
        assert p < 99
        for o in range(x.shape[1]):
            for i in range(w.shape[0]):
                out[at[p], i] += x[p, o] * w[i, o]


TURNED = [product, both, chosen, otherwise, outermost, rows, off_the_diagonal, below, above]
KEPT = [leaning, carried, left, read, stored, beside, changed_behind, asserted]


def numbers(*sizes: int) -> torch.Tensor:
    return torch.randint(-3, 4, sizes, generator=torch.Generator().manual_seed(sum(sizes))).float()


def arguments(function, n: int, m: int, k: int, dtype=torch.float32) -> list[object]:
    """Return arguments of small integers, of which all sums are exact."""
    at = torch.randint(-4, 4, (n,), generator=torch.Generator().manual_seed(n))
    given = [numbers(n, m).to(dtype), numbers(k, m).to(dtype), at, torch.zeros(4, k, dtype=dtype)]
    if function in {both, beside}:
        given.append(torch.zeros(4, m, dtype=dtype))
    return [to_memory(each) for each in given]


def rewritten(function, given):
    program = canonical(lower(define(function), Signature(tuple(map(argument_type, given)), device="cuda")), sizes=True)
    return program, with_scattered_sums(program, GPU)[0]


@pytest.mark.parametrize("function", [*TURNED, *KEPT])
@pytest.mark.parametrize("sizes", [(5, 6, 3), (1, 1, 1), (40, 1, 5), (3, 40, 1), (7, 0, 3), (7, 3, 0), (0, 3, 3)])
def test_sums_are_those_of_the_source(function, sizes):
    same(function, *arguments(function, *sizes))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.uint8])
def test_sums_of_other_types(dtype):
    same(product, *arguments(product, 5, 6, 3, dtype))


@pytest.mark.parametrize("function", TURNED)
def test_terms_of_an_element_stand_in_the_loops_that_move_it(function):
    _, program = rewritten(function, arguments(function, 5, 6, 3))
    loops = [node for node in statements(program) if isinstance(node, For)]
    innermost = [loop for loop in loops if effects(loop).depth == 1]
    # Terms of `other` stand so in the source.
    assert len(innermost) == 1 + (function is both)
    assert {each.name for each in effects(innermost).stores} == ({"other"} if function is both else set())
    # What the loops that move the element say is asked once.
    asked = any(isinstance(node, If) for loop in innermost for node in statements(loop))
    assert asked == (function in {chosen, off_the_diagonal})


@pytest.mark.parametrize("function", KEPT)
def test_other_nests_stay(function):
    before, after = rewritten(function, arguments(function, 5, 6, 3))
    assert before == after


def test_places_and_bounds_are_known_outside_and_divide_by_nothing_that_may_be_0():
    known = Definitions(frozenset((CHANGING,)), frozenset())
    plain = op("add", N, op("floordiv", N, 2))
    assert known_outside((plain,), known) == (plain,)
    for each in (op("add", CHANGING, 1), op("add", op("mod", 7, N), 1), op("floordiv", N, 0)):
        assert known_outside((plain, each), known) is None


@pytest.mark.parametrize("terms", [0, 1])
def test_places_are_errors_where_something_is_added(terms):
    given = [numbers(3, terms), numbers(2, terms), torch.tensor([0, 9, 1]), torch.zeros(4, 2)]
    given = [to_memory(each) for each in given]
    signature = Signature(tuple(map(argument_type, given)), device="cuda", narrow=True, aligned=True)
    program = way(product, signature, GPU)
    if terms:
        with pytest.raises(IndexError, match="index 9 is out of bounds"):
            run_program(program, given, check=True)
    else:
        run_program(program, given, check=True)
