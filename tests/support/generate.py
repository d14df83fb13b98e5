"""Random programs as Python source: well-typed, with loops, guards, index maps, reductions, casts and aliasing.

Index maps reach beyond the tensors now and then, so that some programs raise IndexError; every execution
must then raise it. Sources are written to a file, as the frontend reads functions from files.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st

DTYPES = ("float32", "float64", "int32", "int64", "bool", "uint8", "float16")
_counter = itertools.count()


@dataclass(frozen=True)
class Generated:
    """A program: its source, and the dtypes and sizes of its tensors `x` (rank 1), `y` (rank 2), `out` (rank 1)."""

    source: str
    dtypes: tuple[str, str, str]
    size: int

    def arguments(self) -> tuple[torch.Tensor, ...]:
        """Return the tensors, the same ones each time."""
        generator = torch.Generator().manual_seed(self.size)
        shapes = ((self.size,), (self.size, self.size + 1), (self.size + 2,))
        made: list[torch.Tensor] = []
        for name, shape in zip(self.dtypes, shapes, strict=True):
            values = torch.randint(-4, 5, shape, generator=generator)
            dtype = getattr(torch, name)
            made.append((values.abs() if name == "uint8" else values).to(dtype))
        return tuple(made)

    def function(self, folder: Path) -> Callable[..., Any]:
        """Return the program as a function of a module in `folder`."""
        name = f"generated_{next(_counter)}"
        path = folder / f"{name}.py"
        path.write_text(self.source)
        specification = importlib.util.spec_from_file_location(name, path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module.generated


class _Writer:
    """Draws statements; `depth` loops are open, whose indices are `names`."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.names: list[str] = []

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def line(self, text: str) -> None:
        self.lines.append("    " * (len(self.names) + 1) + text)

    def index(self, size: str) -> str:
        """Return an index of an axis that is at least `n` long; mostly in range."""
        name = self.one_of(*self.names)
        common = (name, name, name, f"n - 1 - {name}", f"-1 - {name}", f"({name} * 3 + 1) % {size}", f"{name} // 2")
        return self.one_of(*common, f"{name} - 1", "0", f"min({name} + 1, n - 1)", f"{name} + 1")

    def element(self) -> str:
        """Return a read."""
        return self.one_of(
            f"x[{self.index('n')}]", f"y[{self.index('n')}, {self.index('(n + 1)')}]", f"out[{self.index('n')}]"
        )

    def number(self, depth: int = 2) -> str:
        """Return an expression."""
        if depth == 0:
            return self.one_of(self.element(), self.element(), "s", "k", self.one_of(*self.names), "2", "0.5", "-3")
        left, right = self.number(depth - 1), self.number(depth - 1)
        return self.one_of(
            left,
            f"({left} {self.one_of('+', '-', '*')} {right})",
            f"({left} {self.one_of('+', '-', '*')} {right})",
            f"{self.one_of('min', 'max')}({left}, {right})",
            f"({left} if {self.test(depth - 1)} else {right})",
            f"abs({left})",
            f"int({left})",
            f"float({left})",
            f"({left} // {self.one_of('3', '-2', '2.5')})",
            f"({left} % {self.one_of('3', '-2', '2.5')})",
            f"(int({left}) {self.one_of('&', '|', '^')} 5)",
        )

    def test(self, depth: int = 1) -> str:
        """Return a condition."""
        left, right = self.number(depth), self.number(0)
        plain = f"{left} {self.one_of('<', '<=', '==', '!=', '>')} {right}"
        return self.one_of(plain, plain, f"({plain} and {self.number(0)} > 0)", f"not {plain}", f"0 < {left} < 3")

    def statement(self, budget: int) -> None:
        kind = self.one_of("store", "store", "update", "scalar", "reduce", "if", "for", "while", "leave")
        match kind:
            case "store":
                self.line(f"out[{self.index('n')}] = {self.number()}")
            case "update":
                self.line(f"out[{self.index('n')}] {self.one_of('+', '-', '*')}= {self.number(1)}")
            case "scalar":
                self.line(f"{self.one_of('s', 'k')} = {self.number()}")
            case "reduce":
                self.line(f"s {self.one_of('+', '*')}= {self.number(1)}")
            case "if" if budget > 0:
                self.line(f"if {self.test()}:")
                self.nested(budget - 1)
            case "for" if len(self.names) < 3 and budget > 0:
                self.loop(budget - 1)
            case "while" if budget > 0:
                self.line("t = 0")
                self.line(f"while t < 3 and {self.test()}:")
                self.names.append(self.names[-1])
                self.line("t += 1")
                self.names.pop()
                self.nested(budget - 1, plain=True)
            case _:
                self.line(f"if {self.test(0)}:")
                self.names.append(self.names[-1])
                self.line(self.one_of("break", "continue"))
                self.names.pop()

    def nested(self, budget: int, *, plain: bool = False) -> None:
        self.names.append(self.names[-1])
        if plain:
            self.line(f"out[{self.index('n')}] = {self.number(1)}")
        else:
            self.statement(budget)
        self.names.pop()

    def loop(self, budget: int) -> None:
        name = f"i{len(self.names)}"
        outer = self.names[-1] if self.names else "n"
        bounds = self.one_of("n", "n", "1, n", "n - 1, -1, -1", "0, n, 2", f"{outer}", f"{outer}, n")
        self.line(f"for {name} in range({bounds}):")
        self.names.append(name)
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(budget)
        self.names.pop()


@st.composite
def programs(draw: st.DrawFn) -> Generated:
    """Draw a program."""
    writer = _Writer(draw)
    for _ in range(draw(st.integers(1, 2))):
        writer.line("s = 0")
        writer.line("k = 1")
        writer.loop(2)
    body = "\n".join(writer.lines)
    head = "import torch\n\n\ndef generated(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:\n"
    dtypes = draw(st.tuples(*[st.sampled_from(DTYPES)] * 3))
    return Generated(f"{head}    n = x.shape[0]\n{body}\n", dtypes, draw(st.sampled_from((0, 1, 4, 9))))
