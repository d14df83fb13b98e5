"""What a loop program is: a plain function, arguments of any size for it, and what is expected of its loops.

The programs stand in the modules beside this one, a family each. They are written as a person writes loops who knows
NumPy and Numba: none is written for brickwork, and none is adapted to it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import torch

Verdict = Literal["parallel", "reduction", "accumulates", "copies", "wavefront", "distributed", "in order"]
"""How a loop may run.

`accumulates`: it adds to elements that other loops run over, in order if those are parallel, else as a reduction.
`distributed`: it is split into several, some of which run in parallel.
"""
Bound = Literal["compute", "bandwidth", "order"]
"""What limits a program: arithmetic, memory, or that its steps follow one another."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What is expected of a `for` statement, and whether a person marks it as parallel for Numba."""

    index: str
    verdict: Verdict
    marked: bool = False

    def allows(self, found: str) -> bool:
        """Return whether a loop that runs so is what was expected."""
        return found == self.verdict or (self.verdict == "accumulates" and found in {"in order", "reduction"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopProgram:
    """A program of the corpus.

    `arguments` makes them for sizes; it is called with each of the `small` ones, for tests, and with the `large` ones,
    which keep Numba busy for about a second on two cores. `loops` are the `for` statements of the function, in the
    order of its lines.
    """

    function: Callable[..., Any]
    family: str
    arguments: Callable[..., tuple[Any, ...]]
    small: tuple[tuple[int, ...], ...]
    large: tuple[int, ...]
    loops: tuple[Loop, ...]
    bound: Bound
    device: tuple[int, ...] = ()
    """Sizes for a GPU, where one thread of it would run the large ones for long."""
    reference: Callable[..., Any] | None = None
    """The same in torch's vectorised functions: what the program returns, or what its last stored argument holds."""
    conserved: Callable[[torch.Tensor], torch.Tensor] | None = None
    """Where rounding differences grow without bound: what of the answer two correct runs agree on."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__


def loops(text: str) -> tuple[Loop, ...]:
    """Return the loops that a text lists in order; `*` after an index marks the loop as parallel for Numba.

    >>> loops("i* parallel, k reduction")
    (Loop(index='i', verdict='parallel', marked=True), Loop(index='k', verdict='reduction', marked=False))
    """
    found: list[Loop] = []
    for part in filter(None, text.split(", ")):
        index, _, verdict = part.partition(" ")
        if verdict not in get_args(Verdict):
            raise ValueError(f"{verdict!r} is no verdict")
        found.append(Loop(index.rstrip("*"), cast("Verdict", verdict), index.endswith("*")))
    return tuple(found)


def loop_lines(function: Callable[..., Any]) -> list[tuple[int, str]]:
    """Return the line in its file and the index of each `for` statement of a function, in order.

    Several names that a statement assigns are joined by `/`.
    """
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    found = [(node.lineno + first - 1, _index(node.target)) for node in ast.walk(tree) if isinstance(node, ast.For)]
    return sorted(found)


def _index(target: ast.expr) -> str:
    return "/".join(node.id for node in ast.walk(target) if isinstance(node, ast.Name))


# ---------------------------------------------------------------- arguments


def floats(*sizes: int) -> torch.Tensor:
    """Return numbers between 0 and 1, the same for the same sizes."""
    generator = torch.Generator("cpu").manual_seed(sum(sizes) + len(sizes))
    return torch.rand(sizes, generator=generator, dtype=torch.float64, device="cpu")


def integers(high: int, *sizes: int) -> torch.Tensor:
    """Return integers from 0 to below `high`."""
    generator = torch.Generator("cpu").manual_seed(sum(sizes) + high)
    return torch.randint(0, max(high, 1), sizes, generator=generator, device="cpu")


def definite(n: int) -> torch.Tensor:
    """Return a symmetric matrix whose eigenvalues are positive."""
    a = floats(n, n)
    return (a + a.T) / 2 + n * torch.eye(n, dtype=torch.float64, device="cpu")
