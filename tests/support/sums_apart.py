"""Kernels that have nests of their own for sums of products, as tests look at them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from unittest.mock import patch

from brickwork.ir.nodes import Allocate, If, Kernel, Launch
from brickwork.ir.signature import Signature
from brickwork.ir.walk import statements, walk
from brickwork.transform import nests_apart, separate_sums
from brickwork.transform.canonical.form import canonical
from brickwork.transform.separate_sums import APART, with_separate_sums
from support.lowering import argument_type
from support.scheduling import GPU
from support.shared import define, lower


@contextmanager
def short_sums() -> Generator[None]:
    """Let small nests be worth it."""
    with (
        patch.multiple(nests_apart, LEAST_SIDE=1, LEAST_AREA=1, LEAST_TERMS=2),
        patch.object(separate_sums, "LEAST_TERMS", 2),
    ):
        yield


def apart(function: Callable[..., object], *arguments: object) -> tuple[list[Kernel], list[tuple[str, int]]]:
    """Return the kernels with nests of their own for sums, and what is kept between nests, with how many axes."""
    signature = Signature(tuple(map(argument_type, arguments)), device="cuda", narrow=True, aligned=True)
    program, _ = with_separate_sums(canonical(lower(define(function), signature), sizes=True), GPU)
    kernels = [node.kernel for node in walk(program.body) if isinstance(node, Launch)]
    choices = [choice for choice in program.body if isinstance(choice, If)]
    made = [node for choice in choices for node in statements(choice.then) if isinstance(node, Allocate)]
    found = [kernel for kernel in kernels if kernel.name.endswith(APART)]
    return found, [(item.tensor.name, len(item.sizes)) for item in made]
