"""Values that gradients read from results of the forward pass, and what they need not know then."""

import math

import pytest
import torch

from brickwork.ir.nodes import Apply, Assign, For, Load, Node, Program
from brickwork.ir.walk import statements, walk
from brickwork.transform.derivation import Backward
from support.derivatives import derived, interpreted
from support.gradients import check_gradients, forward, lowered, numbers
from support.gradients import derived as derived_of


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        largest = -math.inf
        for j in range(x.shape[1]):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - largest)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - largest) / total
    return out


def in_two_steps(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j])
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


def tanh(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = math.tanh(x[i])
    return out


def power(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = (1 + x[i] * x[i]) ** y[i]
    return out


def norm(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        out[i] = math.sqrt(total)
    return out


def solve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(b)
    for i in range(b.shape[0]):
        rest = b[i]
        for j in range(i):
            rest -= a[i, j] * out[j]
        out[i] = rest / (a[i, i] + 4)
    return out


def stored_over(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = math.exp(x[i])
    for i in range(0, x.shape[0], 2):
        out[i] = out[i] + math.sin(x[i])
    return out


def shorter(x: torch.Tensor) -> torch.Tensor:
    """The loops run through different elements."""
    out = x.new_zeros((x.shape[0],))
    total = 0.0
    for i in range(x.shape[0]):
        total += math.exp(x[i])
    for i in range(1, x.shape[0]):
        out[i] = math.exp(x[i]) / total
    return out


def some(x: torch.Tensor) -> torch.Tensor:
    """Not all elements are stored."""
    out = x.new_zeros((x.shape[0],))
    total = 0.0
    for i in range(x.shape[0]):
        total += math.exp(x[i])
    for i in range(x.shape[0]):
        if x[i] > 0:
            out[i] = math.exp(x[i]) / total
    return out


def running(x: torch.Tensor) -> torch.Tensor:
    """What is stored has been shifted by another number each time."""
    out = torch.empty_like(x)
    top = 0.0
    for i in range(x.shape[0]):
        top += x[i]
        out[i] = math.exp(0.1 * x[i] - top)
    for i in range(x.shape[0]):
        out[i] = out[i] + math.exp(0.1 * x[i] - top)
    return out


def log_sum(x: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        top = max(x[i, j] for j in range(x.shape[1]))
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(2 * (x[i, j] - top))
        out[i] = top + 0.5 * math.log(total)
    return out


def passed_on(x: torch.Tensor) -> torch.Tensor:
    """Each row is divided by what its exponentials were shifted by in the row before."""
    out = x.new_empty((x.shape[0],))
    before = 1.0
    for i in range(x.shape[0]):
        top = max(x[i, j] for j in range(x.shape[1]))
        total = 0.0
        for j in range(x.shape[1]):
            total += math.exp(x[i, j] - top)
        out[i] = total / before
        before = total
    return out


def quotients(w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = w.new_empty((1,))
    factor = w[0]
    divisor = y[0]
    total = 0.0
    for i in range(x.shape[0]):
        total += factor * (x[i] / divisor)
    out[0] = total
    return out


def long_chain(x: torch.Tensor) -> torch.Tensor:
    """Written out, what is stored has the element 3 ** 20 times."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        v = 0.1 * x[i]
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        v = v * v - v
        out[i] = math.exp(v)
    return out


CASES = {
    softmax: (numbers(3, 4),),
    in_two_steps: (numbers(3, 4),),
    tanh: (numbers(4),),
    power: (numbers(4), numbers(4)),
    norm: (numbers(3, 4),),
    solve: (numbers(4, 4), numbers(4)),
    stored_over: (numbers(5),),
    shorter: (numbers(4),),
    some: (numbers(6),),
    running: (numbers(4),),
    log_sum: (numbers(3, 4),),
    passed_on: (numbers(3, 4),),
    long_chain: (numbers(3),),
}


def with_results(function, arguments):
    """Return the program of gradients that is given the results, and what it takes besides the arguments."""
    results = forward(lowered(function, arguments), arguments)
    generator = torch.Generator().manual_seed(1)
    gradients = [torch.randn(item.shape, generator=generator, dtype=item.dtype) for item in results]
    derivation = Backward((True,) * len(arguments), (True,) * len(results))
    added = [*gradients, *results]
    return derived(function, [*arguments, *added], (derivation, added)), added


def operators(program: Program) -> set[str]:
    return {node.operator.name for node in walk(program) if isinstance(node, Apply)}


def loaded(program: Program) -> set[str]:
    return {node.tensor.name for node in walk(program) if isinstance(node, Load)}


@pytest.mark.parametrize("function", CASES, ids=lambda item: item.__name__)
def test_gradients_with_results_are_those_of_differences(function):
    arguments = CASES[function]
    check_gradients(function, *arguments)
    program, added = with_results(function, arguments)
    plain, _ = (derived(function, [*arguments, added[0]], (Backward((True,) * len(arguments)), added[:1])), None)
    found, wanted = interpreted(program, [*arguments, *added]), interpreted(plain, [*arguments, added[0]])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("function", [tanh, softmax], ids=lambda item: item.__name__)
def test_what_results_tell_is_not_computed_again(function):
    program, _ = with_results(function, CASES[function])
    assert not operators(program) & {"exp", "tanh", "truediv", "maximum"}
    assert loaded(program) <= {"grad_0", "result_0", "x_gradient"}


def test_what_results_tell_of_a_long_chain_is_not_computed_again():
    program, _ = with_results(long_chain, CASES[long_chain])
    assert "exp" not in operators(program)


def test_sums_are_not_computed_again():
    program, _ = with_results(norm, CASES[norm])
    (rows,) = (node for node in statements(program) if isinstance(node, For) and _has_loop(node))
    assert not any(isinstance(node, Assign) and node.symbol.name == "total" for node in statements(rows))


def test_no_replay_where_results_are_read():
    program, _ = with_results(solve, CASES[solve])
    assert loaded(program) & {"result_0"}
    assert not loaded(program) & {"out"}


@pytest.mark.parametrize("function", [stored_over, shorter, some, running], ids=lambda item: item.__name__)
def test_what_results_do_not_tell_is_computed_again(function):
    program, _ = with_results(function, CASES[function])
    assert "exp" in operators(program)


def test_where_a_shift_was_found_does_not_matter():
    program = check_gradients(log_sum, *CASES[log_sum])
    assert not any("place" in node.symbol.name for node in statements(program) if isinstance(node, Assign))


def test_a_shift_that_results_depend_on_has_a_gradient():
    program = check_gradients(passed_on, *CASES[passed_on])
    assert any("place" in node.symbol.name for node in statements(program) if isinstance(node, Assign))


def test_a_sum_is_divided_once():
    program = check_gradients(quotients, numbers(1), numbers(4), numbers(1), wanted=(True, False, False))
    (loop,) = (node for node in statements(program) if isinstance(node, For))
    assert not any(isinstance(node, Apply) and node.operator.name == "truediv" for node in walk(loop))


def test_no_sum_at_all_is_not_divided_by_zero():
    program = derived_of(quotients, (numbers(1), numbers(0), 0 * numbers(1)), (True, False, False))
    arguments = [torch.ones(1, dtype=torch.float64), numbers(0), 0 * numbers(1), numbers(1)]
    assert torch.equal(interpreted(program, arguments)[0], torch.zeros(1, dtype=torch.float64))


def _has_loop(node: Node) -> bool:
    return sum(isinstance(item, For) for item in statements(node)) > 1
