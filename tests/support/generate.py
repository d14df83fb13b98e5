"""Random programs as Python source: well-typed, with loops, guards, index maps, reductions, casts and aliasing.

Index maps reach beyond the tensors now and then, so that some programs raise IndexError; every execution
must then raise it. Loops are claimed to be independent (`prange`) now and then, rightly or wrongly. Tensors lie in
larger blocks of memory, whose rest must not change. Sources are written to a file, as the frontend reads functions from
files.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from hypothesis import strategies as st

DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
)
SIZES = (0, 1, 2, 4, 9, 21, 70)
MARGIN = 96
"""Elements before and after each tensor that belong to nobody; even the widest vector does not reach across."""
_HELPERS = """def clamp(value, low, high):
    if value < low:
        return low
    return high if value > high else value


def mix(a, b):
    t = a
    for _ in range(2):
        t = t + b
    return clamp(t, -40, 40)
"""
_counter = itertools.count()
Choose: TypeAlias = Callable[[Sequence[Any]], Any]
"""Picks one of several things."""


@dataclass(frozen=True)
class Generated:
    """A program: its source, the dtypes and sizes of its tensors, and its numbers.

    `x` and `out` have rank 1, `y` and `grid` rank 2; out and grid are stored into. If `shared`, x begins that many
    elements after out does in the same memory.
    """

    source: str
    dtypes: tuple[str, str, str, str]
    size: int
    number: int
    flag: bool
    shared: int | None
    vector_bytes: int
    margin: int = MARGIN

    @property
    def claims(self) -> bool:
        """Whether a loop is said to be independent."""
        return "prange" in self.source

    @property
    def draws(self) -> bool:
        """Whether random numbers are drawn."""
        return "randint(" in self.source

    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments, the same ones each time."""
        generator = torch.Generator().manual_seed(self.size)
        n = self.size
        shapes = ((n,), (n, n + 1), (n + 2,), (n + 1, n))
        made = [_filled(shape, name, generator) for shape, name in zip(shapes, self.dtypes, strict=True)]
        if self.shared is not None:
            made[0] = made[2].as_strided((n,), (1,), made[2].storage_offset() + self.shared)
        return (*made, self.number, self.flag)

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


def _filled(shape: tuple[int, ...], name: str, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor of small numbers within a larger block of memory."""
    count = 1
    for size in shape:
        count *= size
    values = torch.randint(-4, 5, (count + 2 * MARGIN,), generator=generator)
    block = (values.abs() if name.startswith("uint") else values).to(getattr(torch, name))
    strides = (shape[1], 1) if len(shape) == 2 else (1,)
    return block.as_strided(shape, strides, MARGIN)


class _Writer:
    """Writes statements of its choice; `names` are the indices of the open loops."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.lines: list[str] = []
        self.names: list[str] = []
        self.level = 1
        self.loops = itertools.count()
        self.whiles = itertools.count()
        self.draws = choose((False, False, False, True))

    def one_of(self, *choices: str) -> str:
        return self.choose(choices)

    def line(self, text: str) -> None:
        self.lines.append("    " * self.level + text)

    def index(self, size: str) -> str:
        """Return an index of an axis that is at least `n` long; mostly in range."""
        name, other = self.one_of(*self.names), self.one_of(*self.names)
        common = (name, name, name, f"n - 1 - {name}", f"-1 - {name}", f"({name} * 3 + 1) % {size}", f"{name} // 2")
        mixed = (f"({name} + {other}) % {size}", f"min({name} + {other}, n - 1)", f"{name} * 4 % n", f"{name} % 4")
        rare = (f"{name} - 1", "0", f"min({name} + 1, n - 1)", f"{name} + 1", "m", f"{name} + m", f"{name} - {other}")
        data = ("k", f"k % {size}", f"int(x[{name}])", f"({name} // 3) * 3 + {name} % 3")
        return self.one_of(*common, *common, *mixed, *rare, *data)

    def element(self) -> str:
        """Return a read."""
        return self.one_of(
            f"x[{self.index('n')}]",
            f"y[{self.index('n')}, {self.index('(n + 1)')}]",
            f"out[{self.index('n')}]",
            f"grid[{self.index('n')}, {self.index('n')}]",
        )

    def number(self, depth: int = 2) -> str:
        """Return an expression."""
        if depth == 0:
            plain = (self.element(), self.element(), "s", "k", "m", self.one_of(*self.names), "2", "0.5", "-3")
            return self.one_of(*plain, "randint(-2, 3)") if self.draws else self.one_of(*plain)
        left, right = self.number(depth - 1), self.number(depth - 1)
        return self.one_of(
            left,
            f"({left} {self.one_of('+', '-', '*')} {right})",
            f"({left} {self.one_of('+', '-', '*')} {right})",
            f"{self.one_of('min', 'max')}({left}, {right})",
            f"({left} if {self.test(depth - 1)} else {right})",
            f"{self.one_of('abs', 'int', 'float')}({left})",
            f"({left} {self.one_of('//', '%')} {self.one_of('3', '-2', '2.5')})",
            f"(int({left}) {self.one_of('//', '%')} {self.one_of('m', 'k', 'int(x[0])', self.names[-1])})",
            f"(int({left}) {self.one_of('&', '|', '^')} 5)",
            f"mix({left}, {right})",
        )

    def test(self, depth: int = 1) -> str:
        """Return a condition."""
        left, right = self.number(depth), self.number(0)
        plain = f"{left} {self.one_of('<', '<=', '==', '!=', '>')} {right}"
        index = self.one_of(*self.names)
        return self.one_of(
            *(plain, plain, f"({plain} and {self.number(0)} > 0)", f"not {plain}", f"0 < {left} < 3"),
            *("flag", f"m != 0 and {index} % m == 0", f"{index} < m", f"({plain} or flag)"),
        )

    def target(self) -> str:
        return self.one_of(
            f"out[{self.index('n')}]", f"out[{self.index('n')}]", f"grid[{self.index('n')}, {self.index('n')}]"
        )

    def statement(self, budget: int) -> None:
        kinds = ("store", "store", "update", "scalar", "reduce", "extreme", "if", "if", "for", "while", "leave")
        match self.one_of(*kinds):
            case "store":
                self.line(f"{self.target()} = {self.number()}")
            case "update":
                self.line(f"{self.target()} {self.one_of('+', '-', '*')}= {self.number(1)}")
            case "scalar":
                name = self.one_of("s", "k")
                self.line(f"{name} = {self.number()}" if name == "s" else f"k = int({self.number(1)}) % 7")
            case "reduce":
                self.line(f"s {self.one_of('+', '-', '*')}= {self.number(1)}")
            case "extreme":
                self.line(f"s = {self.one_of('min', 'max')}(s, {self.number(1)})")
            case "if" if budget > 0:
                self.line(f"if {self.test()}:")
                self.nested(budget - 1)
                if self.choose((False, True)):
                    self.line("else:")
                    self.nested(budget - 1)
            case "for" if len(self.names) < 3 and budget > 0:
                self.loop(budget - 1)
            case "while" if budget > 0:
                count = f"t{next(self.whiles)}"
                self.line(f"{count} = 0")
                self.line(f"while {count} < 3 and {self.test()}:")
                self.level += 1
                self.line(f"{count} += 1")
                self.level -= 1
                self.nested(budget - 1)
            case _:
                self.line(f"if {self.test(0)}:")
                self.level += 1
                self.line(self.one_of("break", "continue", "continue"))
                self.level -= 1

    def nested(self, budget: int) -> None:
        self.level += 1
        for _ in range(self.choose((1, 1, 2))):
            self.statement(budget)
        self.level -= 1

    def loop(self, budget: int) -> None:
        count = next(self.loops)
        name = f"i{count}"
        outer = self.names[-1] if self.names else "n"
        names = [name]
        match self.one_of(*("range",) * 9, "prange", "ndrange", "ndrange"):
            case "ndrange":
                names.append(f"j{count}")
                head = f"bw.ndrange({self.one_of('n', '3', outer)}, {self.one_of('n', 'min(m, n)', outer)})"
            case "prange":
                head = f"bw.prange({self.one_of('n', 'n', '1, n', outer)})"
            case _:
                bounds = (
                    "n",
                    "n",
                    "n",
                    "1, n",
                    "n - 1, -1, -1",
                    "0, n, 2",
                    f"{outer}",
                    f"{outer}, n",
                    "min(m, n + 1)",
                    "k",
                    "3",
                )
                head = f"range({self.one_of(*bounds, f'4 * {outer}, 4 * {outer} + 4', 'int(x[0])')})"
        self.line(f"for {', '.join(names)} in {head}:")
        self.names.extend(names)
        self.level += 1
        for _ in range(self.choose((1, 1, 2, 3))):
            self.statement(budget)
        self.level -= 1
        del self.names[-len(names) :]


def _program(choose: Choose, *, shared: bool = True) -> Generated:
    writer = _Writer(choose)
    start = writer.one_of("0", "0.0", "1")
    for _ in range(choose((1, 1, 2))):
        writer.line(f"s = {start}")
        writer.line("k = 1")
        writer.loop(2)
        if choose((False, True)):
            writer.line("if n > 0:")
            writer.line("    out[0] = s + k")
    body = "\n".join(writer.lines)
    draws = "from brickwork.language.random import randint\n" if writer.draws else ""
    imports = f"import torch\n\nimport brickwork as bw\n{draws}"
    tensors = ", ".join(f"{name}: torch.Tensor" for name in ("x", "y", "out", "grid"))
    head = f"{imports}\n\n{_HELPERS}\n\ndef generated({tensors}, m: int, flag: bool) -> None:\n"
    dtypes = tuple(choose((*DTYPES, "float32", "float32", "int64")) for _ in range(4))
    size = choose(SIZES[:6] if body.count("for ") > 2 else SIZES)
    overlap = choose((None, None, None, 0, 1, 2)) if shared else None
    if overlap is not None:
        dtypes = (dtypes[2], *dtypes[1:])
    return Generated(
        f"{head}    n = x.shape[0]\n{body}\n",
        (dtypes[0], dtypes[1], dtypes[2], dtypes[3]),
        size,
        choose((0, 1, 2, 3, -2, 7, size, size + 1, 2**31 + 5, -(2**63))) if choose((0, 1)) else choose((1, size, 3)),
        choose((False, True)),
        overlap,
        choose((16, 32, 64)),
    )


@st.composite
def programs(draw: st.DrawFn, *, shared: bool = True) -> Generated:
    """Draw a program; some with tensors in the same memory if `shared`."""
    return _program(lambda items: draw(st.sampled_from(tuple(items))), shared=shared)


def program_of_seed(seed: int) -> Generated:
    """Return the program of a seed."""
    return _program(random.Random(seed).choice)
