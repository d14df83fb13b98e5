"""Writes programs on complex elements: nests of stores, updates, sums, rows, lists and branches of complex numbers.

Elements and literals have small whole parts, and only sums, products and conjugates are computed. All of it is exact,
so every way to run a program gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from support.fuzz.case import Case, Layout, NumberArgument, TensorArgument

SIZES = (0, 1, 2, 3, 4, 5, 7, 9, 16, 17, 21, 40)
LAYOUTS: tuple[Layout, ...] = ("dense", "dense", "dense", "transposed", "sliced", "beside", "odd", "expanded")
LITERALS = ("1j", "-2j", "(2 - 1j)", "3", "0.5", "complex(m, 1)", "TABLE[{i} % 3]")


def complex_case(seed: int) -> Case:
    """Return the case of a seed."""
    writer = _Writer(random.Random(f"complex {seed}"))
    return writer.case(seed)


class _Writer:
    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.pick = source.choice
        self.lines: list[str] = []

    def case(self, seed: int) -> Case:
        """Return a program with its arguments."""
        n, p = self.pick(SIZES), self.pick(SIZES)
        for _ in range(self.pick((1, 1, 2, 3))):
            self.nest()
        dtypes = ("complex64", "complex64", "complex128")
        shapes = {"a": (n, p), "z": (n,), "w": (n, p), "v": (p,)}
        arguments: list[TensorArgument | NumberArgument] = []
        for name, shape in shapes.items():
            written = name in "zw"
            layout = self.pick(LAYOUTS)
            layout = "dense" if written and layout == "expanded" else layout
            arguments.append(TensorArgument(name, self.pick(dtypes), shape, layout, seed=self.source.randrange(1000)))
        real = self.pick(("float32", "float64", "int32"))
        arguments.append(TensorArgument("x", real, (n,), self.pick(("dense", "sliced")), seed=seed % 997))
        strays = self.source.random() < 0.15
        arguments.append(TensorArgument("y", "int64", (n,), "dense", "index", max(n, 1), strays, seed % 991))
        arguments.append(NumberArgument("m", self.pick((0, 1, 2, -3))))
        parameters = ", ".join(f"{item.name}: torch.Tensor" for item in arguments[:-1])
        head = f"def generated({parameters}, m: int) -> None:"
        begin = ["    n, p = a.shape", f"    s = {self.pick(('0', '0.0', '0j', '1 - 1j'))}"]
        text = ("import torch", "", "TABLE = (1 + 1j, -2, 3j)", "", "", _HELPER, "", head, *begin, *self.lines, "")
        return Case("\n".join(text), tuple(arguments), seed)

    # ------------------------------------------------------------ statements

    def nest(self) -> None:
        """Write one or two loops around a few statements."""
        deep = self.source.random() < 0.6
        heads = [self.pick(("for i in range(n):", "for i in range(n - 1, -1, -1):", "for i in range(1, n):"))]
        if deep:
            heads.append(self.pick(("for j in range(p):", "for j in range(0, p, 2):", "for j in range(min(i, p)):")))
        body: list[str] = []
        for _ in range(self.pick((1, 2, 2, 3))):
            body += self.statement(deep=deep)
        for head in reversed(heads):
            body = [head, *("    " + line for line in body)]
        self.lines += ["    " + line for line in body]

    def statement(self, *, deep: bool) -> Sequence[str]:
        """Return the lines of a statement."""
        value = self.value(2, deep=deep)
        element = self.pick(("z[i]", "z[y[i]]", *(("w[i, j]",) * 3 if deep else ())))
        kinds = ("store", "store", "update", "update", "sum", "branch", "parts", "list", "row", "local")
        match self.pick(kinds):
            case "store":
                return [f"{element} = {value}"]
            case "update":
                return [f"{element} {self.pick(('+=', '+=', '-='))} {value}"]
            case "sum":
                return [f"s += {value}", *([f"{element} = s", "s = 0"] if self.source.random() < 0.6 else [])]
            case "branch":
                test = self.pick(("x[i] > 0", "i % 3 == 1", "z[i] == 1j", "z[i].real < m"))
                return [
                    f"if {test}:",
                    f"    {element} = {value}",
                    "else:",
                    f"    {element} += {self.value(1, deep=deep)}",
                ]
            case "parts":
                return [f"{element} = complex({element}.imag, {element}.real) * {self.literal()}"]
            case "list":
                lines = ["l = [0] * 3", f"for q in range({self.pick(('3', '5', 'min(i, 4)'))}):"]
                return [*lines, f"    l[q % 3] += {value}", f"{element} = l[i % 3] - l[0]"]
            case "row" if not deep:
                return [
                    self.pick((f"w[i] = 2j * a[i] + {self.literal()}", "z[i] = w[i, :].sum()", "w[i, 1:] -= a[i, 1:]"))
                ]
            case _:
                other = self.value(1, deep=deep)
                return [
                    f"u = {value}",
                    f"if i % 2 == {self.pick('01')}:",
                    f"    u = {other}",
                    f"{element} = u + helped(u)",
                ]

    # ------------------------------------------------------------ values

    def literal(self) -> str:
        """Return a number that the text says."""
        return self.pick(LITERALS).format(i="i")

    def value(self, depth: int, *, deep: bool) -> str:
        """Return an expression, of a complex number or of a real one."""
        leaves = ["z[i]", "z[y[i]]", "x[i]", "s", self.literal(), "i"]
        leaves += ["a[i, j]", "a[i, j]", "v[j]", "w[i, j]"] if deep else ["z[i].conj()", "z[i] ** 2"]
        if not depth:
            return self.pick(leaves)
        left, right = self.value(depth - 1, deep=deep), self.value(0, deep=deep)
        forms = (
            f"({left} + {right})",
            f"({left} - {right})",
            f"{left} * {self.literal()}",
            f"({left}).conjugate()",
            f"(-{left})",
            f"complex({self.pick(('x[i]', 'm', 'z[i].imag'))}, {self.pick(('1', 'x[i]', 'z[i].real'))})",
            f"({left} if {self.pick(('x[i] > 0', 'i % 2 == 0', 'z[i] != 2'))} else {right})",
            f"helped({left})",
        )
        return self.pick(forms)


_HELPER = """def helped(value):
    if value == 2:
        return 1j
    return value.conjugate() - 1
"""
