"""What must hold of every differentiable case: reverse mode, forward mode and finite differences agree.

For a direction v of the arguments and weights u of what is written and returned, u (J v) is computed by differences,
with tangents and with gradients. Derived programs run in the checking interpreter and as machine code; or as what
GPUs are given (`check_grid.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.lower import lower
from brickwork.ir.nodes import Program
from brickwork.ir.signature import Signature
from brickwork.ir.verify import verify_program
from brickwork.transform.derivation import Backward, Derivation, Forward
from brickwork.transform.derive import derive
from support.compiled import compiled
from support.derivatives import interpreted
from support.fuzz.case import Case
from support.fuzz.check import FoundError
from support.fuzz.execute import FAILURES
from support.tensors import argument_type, copy

STEP = 1e-5
CLOSE = 1e-9
"""How close the two modes are to one another, relative to the numbers that go into the sums."""
NEAR = 1e-5
"""How close differences are to them."""
LARGE = 1e5
"""Derivatives beyond this are not compared: the differences have no digits left."""
Run = Callable[[Program, list[Any]], Sequence[torch.Tensor]]
INTERPRETED: Mapping[str, Run] = {"interpreted": interpreted}
WAYS: Mapping[str, Run] = {**INTERPRETED, "compiled": compiled}
HERE: Mapping[str, Any] = {}


def examine_gradients(
    case: Case, folder: Path, ways: Mapping[str, Run] = WAYS, options: Mapping[str, Any] = HERE
) -> Counter[str]:
    """Compare the derivatives of a case, run in some ways; return what was seen, or raise FoundError.

    `options` are what the signatures of its programs say of the device.
    """
    seen: Counter[str] = Counter(programs=1)
    definition, arguments = define(case.function(folder)), case.make()
    given = tuple(isinstance(item, torch.Tensor) and item.is_floating_point() for item in arguments)
    types = tuple(map(argument_type, arguments))
    try:
        program = lower(definition, Signature(types, **options))
        point = _Point(definition, program, arguments, case.seed)
        difference, other = point.difference(STEP), point.difference(STEP / 4)
        if not abs(difference) < LARGE or abs(difference - other) > NEAR * (1 + abs(difference)):
            seen["no fair test"] += 1
            return seen
        forward, backward = (
            _derived(program, derivation, Signature((*types, *map(argument_type, added)), **options))
            for derivation, added in (
                (Forward(given), point.direction),
                (Backward(given, (True,) * len(point.results)), [*point.weights, *point.results]),
            )
        )
    except CompileError as error:
        seen[f"refused {error.diagnostics[0].code}"] += 1
        return seen
    except FAILURES as error:
        seen[f"fails with {type(error).__name__}"] += 1
        return seen
    for way, run in ways.items():
        tangents = run(forward, [*map(copy, arguments), *point.direction])
        gradients = run(backward, [*map(copy, arguments), *point.weights, *point.results])
        found = (_product(tangents, point.weights), _product(gradients, point.direction))
        if not any(math.isfinite(each[0]) for each in found):
            seen["overflows inside"] += 1
            return seen
        _compare(way, *found, difference)
    seen["compared"] += 1
    seen["with a derivative"] += difference != 0
    return seen


def _derived(program: Program, derivation: Derivation, signature: Signature) -> Program:
    result = derive(program, derivation, signature)
    verify_program(result)
    return result


def _compare(way: str, tangents: tuple[float, float], gradients: tuple[float, float], difference: float) -> None:
    """See that three numbers are one; the first two come with the size of what was summed."""
    (one, size), (two, other_size) = tangents, gradients
    scale = 1 + max(size, other_size)
    words = f"{way}: forward {one!r}, reverse {two!r}, differences {difference!r}"
    wrong = [
        name for name, value in (("forward", one), ("reverse", two)) if not abs(value - difference) <= NEAR * scale
    ]
    if wrong:
        raise FoundError(f"{' and '.join(wrong)} not as differences", words)
    if not abs(one - two) <= CLOSE * scale:
        raise FoundError("modes differ", words)


@dataclass(slots=True)
class _Point:
    """Where a program is differentiated, in which direction, and with which weights."""

    definition: Definition
    program: Program
    arguments: list[Any]
    seed: int
    direction: list[torch.Tensor] = field(init=False)
    weights: list[torch.Tensor] = field(init=False)
    results: list[torch.Tensor] = field(init=False)

    def __post_init__(self) -> None:
        """Choose the direction and the weights; compute the results."""
        source = torch.Generator().manual_seed(self.seed)
        floats = [item for item in self.arguments if isinstance(item, torch.Tensor) and item.is_floating_point()]
        self.direction = [_random(item, source) for item in floats]
        written, self.results = self.run(self.arguments)
        self.weights = [_random(item, source) for item in (*written, *self.results) if item.is_floating_point()]

    def run(self, arguments: Sequence[Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Return the tensors that the program writes, and its results."""
        given = [copy(item) for item in arguments]
        results = interpreted(self.program, given)
        names = [parameter.name for parameter in self.definition.parameters]
        return [item for name, item in zip(names, given, strict=True) if name in self.definition.mutated], results

    def outputs(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """Return the float tensors that the program writes, then its float results."""
        written, results = self.run(arguments)
        return [item for item in (*written, *results) if item.is_floating_point()]

    def difference(self, step: float) -> float:
        """Return the derivative of the weighted sum of the outputs along the direction, by a central difference."""
        sums: list[float] = []
        for side in (step, -step):
            ways = iter(self.direction)
            moved = [
                copy(item).add_(next(ways), alpha=side)
                if isinstance(item, torch.Tensor) and item.is_floating_point()
                else item
                for item in self.arguments
            ]
            sums.append(_product(self.outputs(moved), self.weights)[0])
        return (sums[0] - sums[1]) / (2 * step)


def _random(like: torch.Tensor, source: torch.Generator) -> torch.Tensor:
    return torch.randn(like.shape, generator=source, dtype=torch.float64)


def _product(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> tuple[float, float]:
    """Return the sum of the products of the elements, and that of their absolute values."""
    products = [(one * other).flatten() for one, other in zip(left, right, strict=True)]
    together = torch.cat([*products, torch.zeros(1, dtype=torch.float64)])
    return together.sum().item(), together.abs().sum().item()
