"""Elements kept in variables: what is computed, and which elements are touched, stay the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Kernel, Launch, Node
from brickwork.ir.walk import rewrite
from brickwork.transform.promote import promote
from support.lowering import Nested, memory, nested, program_of


def whole_total(a: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            y[1] += a[i, j]


def after(change: Callable[[Kernel], Kernel], *arguments: Nested) -> Nested:
    """Return what `whole_total` leaves in its last argument if its kernel is changed before."""

    def visit(node: Node) -> Node:
        return Launch(kernel=change(node.kernel)) if isinstance(node, Launch) else node

    given = [memory(item) for item in arguments]
    run_program(rewrite(program_of(whole_total, *given), visit), given, check=True)
    return nested(given[-1])


@pytest.mark.parametrize("a", [[[1.0, 2.0], [3.0, 4.0]], [[1.0]]])
def test_an_element_that_a_nest_accumulates_into(a: list[list[float]]) -> None:
    expected = [0.0, 10.0 + sum(map(sum, a))]
    assert after(lambda kernel: kernel, a, [0.0, 10.0]) == expected
    assert after(promote, a, [0.0, 10.0]) == expected


def test_no_element_is_touched_where_an_inner_loop_is_empty() -> None:
    empty: list[list[float]] = [[], []]
    assert after(promote, empty, [0.0]) == [0.0]
