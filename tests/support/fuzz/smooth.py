"""Writes random programs that can be differentiated: in double precision, of functions that stay small.

Loops have bounds of the call, of outer loops and of data, with none, one or several iterations; values are carried
through variables, elements and local lists, updated in place, chosen by conditions and left by `break`. Where a program
has a corner is up to its arguments, which are no round numbers: they hardly ever meet one.
"""

from __future__ import annotations

import itertools
import random

from support.fuzz.case import Argument, Case, NumberArgument, TensorArgument
from support.fuzz.scope import Array, Scope, Whole, extent, index

SIZES = (0, 1, 1, 2, 3, 3, 4, 5)
ITERATIONS = 60
_HELPERS = '''def blend(a, b):
    """A loop in a helper."""
    t = a
    for _ in range(2):
        t = 0.5 * t + math.sin(b)
    return t


def bent(value, other):
    """Returns from a branch."""
    if value > other:
        return math.tanh(value) + other
    return value * 0.5


def settled(value):
    """A while loop in a helper."""
    while abs(value) > 1.5:
        value = 0.5 * value
    return value
'''


def smooth_case_of_seed(seed: int, nests: int = 3) -> Case:
    """Return the case of a seed; it has up to so many nests."""
    source = random.Random(f"smooth {seed}")
    wholes = [Whole(name, (size, size)) for name, size in zip("np", source.choices(SIZES, k=2), strict=True)]
    number = source.choice((0, 1, 2, 3, 5))
    scope = Scope(source, wholes=[*wholes, Whole("m", (number, number))])
    arguments = _tensors(scope)
    result = scope.chance(0.6)
    if result:
        n, p = wholes
        scope.arrays.append(Array("result", "float64", source.choice(((n,), (n, p), (p,))), written=True))
    writer = _Writer(scope)
    for _ in range(min(source.choice((1, 2, 2, 3)), nests)):
        writer.nest()
    numbers = (NumberArgument("m", number), NumberArgument("h", 0.75), NumberArgument("flag", source.random() < 0.5))
    return Case(_source(scope, writer.lines), (*arguments, *numbers), seed)


def _source(scope: Scope, lines: list[str]) -> str:
    tensors = [array for array in scope.arrays if array.name != "result"]
    made = [array for array in scope.arrays if array.name == "result"]
    parameters = ", ".join(f"{array.name}: torch.Tensor" for array in tensors)
    returns = "torch.Tensor" if made else "None"
    head = f"def generated({parameters}, m: int, h: float, flag: bool) -> {returns}:"
    begin = ["    n, p = a.shape"]
    begin += [
        f"    result = torch.zeros({', '.join(size.text for size in array.sizes)}, dtype=torch.float64)"
        for array in made
    ]
    begin.append("    s, t = 0.0, 1.0")
    end = ["    return result"] if made else []
    imports = "import math\n\nimport torch\n"
    return "\n".join((imports, "", _HELPERS, "", head, *begin, *lines, *end, ""))


def _tensors(scope: Scope) -> tuple[Argument, ...]:
    """Make `a` of shape (n, p), `x` that is stored into, up to two more, and a table of indices."""
    source = scope.random
    n, p = scope.wholes[:2]
    shapes = ((n,), (n,), (p,), (n, p), (p, n), (n, n))
    arguments: list[TensorArgument] = []
    for name in ("a", *"xyz"[: source.randint(1, 3)]):
        sizes = (n, p) if name == "a" else source.choice(shapes)
        written = name == "x" or (name != "a" and source.random() < 0.3)
        scope.arrays.append(Array(name, "float64", sizes, written))
        layout = source.choice(("dense", "dense", "transposed", "sliced"))
        shape = tuple(map(extent, sizes))
        arguments.append(TensorArgument(name, "float64", shape, layout, "smooth", seed=source.randrange(1000)))
    if scope.chance(0.5):
        long = extent(n)
        scope.arrays.append(Array("j", "int64", (n,), indices=True, limit=max(long, 1)))
        arguments.append(TensorArgument("j", "int64", (long,), data="index", limit=long, seed=source.randrange(1000)))
    return tuple(arguments)


class _Writer:
    """Writes the body of one program."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.lines: list[str] = []
        self.level = 1
        self.trips = 1
        self.numbers = itertools.count()
        self.locals = ["s", "t"]
        self.floats = [array for array in scope.arrays if array.floating]
        self.written = [array for array in self.floats if array.written]

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self.level + text)

    def guarded(self, text: str) -> None:
        """Write a statement under the conditions that its indices need."""
        guards, self.scope.guards = self.scope.guards, []
        if guards:
            self.line(f"if {' and '.join(dict.fromkeys(guards))}:")
            self.level += 1
        self.line(text)
        self.level -= bool(guards)

    # ------------------------------------------------------------ expressions

    def element(self) -> str:
        """Return a read of an element."""
        array = self.scope.pick(self.floats)
        return f"{array.name}[{', '.join(index(self.scope, size) for size in array.sizes)}]"

    def leaf(self) -> str:
        """Return a read, a variable or a number."""
        kind = self.scope.pick(("element",) * 6 + ("local", "local", "number", "loop"))
        match kind:
            case "local":
                return self.scope.pick(self.locals)
            case "number":
                return self.scope.pick(("0.5", "-1.25", "h", "2"))
            case "loop":
                return f"0.1 * {self.scope.loop().text}"
            case _:
                return self.element()

    def number(self, depth: int = 2) -> str:
        """Return an expression."""
        if depth == 0 or self.scope.chance(0.15):
            return self.leaf()
        pick, left = self.scope.pick, self.number(depth - 1)
        right = self.number(depth - 1) if self.scope.chance(0.5) else self.leaf()
        match pick(("sum",) * 3 + ("product",) * 3 + ("call",) * 4 + ("extreme", "choice", "helper", "pair")):
            case "sum":
                return f"({left} {pick('+-')} {right})"
            case "product":
                return f"({left} * {right})"
            case "call":
                return self.call(left)
            case "extreme":
                return f"{pick(('min', 'max'))}({left}, {right})"
            case "choice":
                return f"({left} if {self.test()} else {right})"
            case "helper":
                return pick((f"blend({left}, {right})", f"bent({left}, {right})", f"settled({left})"))
            case _:
                return self.pair(left, right)

    def call(self, left: str) -> str:
        """Return a function of one number."""
        return self.scope.pick(
            (
                *(f"math.{name}({left})" for name in "sin cos tanh atan asinh erf".split()),
                f"math.exp(-({left}) ** 2)",
                f"math.sqrt(1.5 + ({left}) * ({left}))",
                f"math.log1p(({left}) ** 2)",
                f"abs({left})",
                f"-({left})",
                f"math.lgamma(1.3 + abs({left}))",
            )
        )

    def pair(self, left: str, right: str) -> str:
        """Return a function of two numbers."""
        return self.scope.pick(
            (
                f"({left}) / (1.25 + ({right}) ** 2)",
                f"math.atan2({left}, 1.5 + abs({right}))",
                f"math.hypot({left}, 1.25 + ({right}) ** 2)",
                f"(1.1 + abs({left})) ** math.tanh({right})",
                f"math.copysign({left}, {right})",
                f"math.fmod({left}, 2.375)",
            )
        )

    def test(self) -> str:
        """Return a condition, on numbers or on indices."""
        plain = f"{self.leaf()} {self.scope.pick(('<', '>'))} {self.leaf()}"
        choices = [plain, plain, "flag", f"({plain} or flag)", f"not {plain}"]
        if self.scope.loops:
            choices += [f"{self.scope.loop().text} % 2 == 0", f"{self.scope.loop().text} < m"]
        return self.scope.pick(choices)

    def condition(self) -> str:
        """Return a condition of a statement, whose indices cannot be guarded."""
        self.scope.guardable = False
        found = self.test()
        self.scope.guardable = True
        return found

    # ------------------------------------------------------------ loops

    def open(self) -> None:
        """Open a loop."""
        name = f"i{next(self.numbers)}"
        text, spread, trips = self.head()
        if self.trips * max(trips, 1) > ITERATIONS:
            text, spread, trips = "range(min(2, n))", (0, 1), 2
        self.line(f"for {name} in {text}:")
        self.trips *= max(trips, 1)
        self.level += 1
        self.scope.loops.append(Whole(name, spread))

    def head(self) -> tuple[str, tuple[int, int] | None, int]:
        """Return what a loop is over, the interval of its index, and how often it runs at most."""
        pick, size = self.scope.pick, self.scope.pick([size for array in self.floats for size in array.sizes])
        long = extent(size)
        upto = (0, long - 1) if long else None
        outer = self.scope.loop() if self.scope.loops else None
        kinds = ["plain"] * 5 + ["rest", "back", "step", "argument", "number"]
        kinds += ["triangle", "data"] if outer is not None else []
        match pick(kinds):
            case "rest":
                return f"range(1, {size.text})", (1, long - 1) if long > 1 else None, long
            case "back":
                return f"range({size.text} - 1, -1, -1)", upto, long
            case "step":
                return f"range(0, {size.text}, 2)", upto, long
            case "argument":
                return "range(m)", (0, extent(self.scope.wholes[2]) - 1), extent(self.scope.wholes[2])
            case "number":
                return pick(("range(2)", "range(3)")), (0, 2), 3
            case "triangle" if outer is not None:
                high = outer.range[1] if outer.range else 0
                return f"range({outer.text} + 1)", (0, max(high, 0)), high + 1
            case "data":
                self.scope.guardable, before = False, self.scope.guardable
                found = f"range(int(abs({self.element()}) * 1.7) % 4)"
                self.scope.guardable = before
                return found, (0, 3), 3
            case _:
                return f"range({size.text})", upto, long

    def close(self) -> None:
        """Close a loop."""
        self.scope.loops.pop()
        self.level -= 1

    def nest(self) -> None:
        """Write one nest, and what may stand before it."""
        if self.scope.chance(0.5):
            self.line(f"s = {self.scope.pick(('0.0', '0.5', 'h'))}")
        before = self.trips
        depth = self.scope.pick((1, 1, 2, 2, 3))
        for level in range(depth):
            self.open()
            if level < depth - 1 and self.scope.chance(0.4):
                self.statement(nested=False)
        for _ in range(self.scope.pick((1, 2, 2, 3))):
            self.statement(nested=self.scope.chance(0.5))
        for level in range(depth):
            self.close()
            if level < depth - 1 and self.scope.chance(0.3):
                self.statement(nested=False)
        self.trips = before

    # ------------------------------------------------------------ statements

    def statement(self, *, nested: bool) -> None:
        """Write a statement; with `nested`, one that may hold others."""
        kinds = ["store"] * 4 + ["update"] * 3 + ["carry"] * 3 + ["recur"] * 2
        kinds += ["branch", "branch", "leave", "while", "local", "local"] if nested else []
        match self.scope.pick(kinds):
            case "store":
                self.store()
            case "update":
                self.update()
            case "recur":
                self.recur()
            case "branch":
                self.branch()
            case "leave":
                self.line(f"if {self.condition()}:")
                self.line(f"    {self.scope.pick(('break', 'continue'))}")
            case "while":
                self.repeat()
            case "local":
                self.local()
            case _:
                self.carry()

    def target(self) -> str:
        """Return an element to store into."""
        array = self.scope.pick(self.written)
        return f"{array.name}[{', '.join(index(self.scope, size) for size in array.sizes)}]"

    def store(self) -> None:
        """Write a store."""
        target = self.target()
        self.guarded(f"{target} = {self.number()}")

    def update(self) -> None:
        """Write an update of an element."""
        target, value = self.target(), self.number()
        kind = self.scope.pick(("{} += {}", "{} -= {}", "{} *= 1 + 0.25 * math.sin({})"))
        self.guarded(kind.format(target, value))

    def recur(self) -> None:
        """Write an element that is made of its neighbour, or of itself."""
        array = self.scope.pick(self.written)
        places = [index(self.scope, size) for size in array.sizes]
        others = [index(self.scope, size) for size in array.sizes]
        own, other = (f"{array.name}[{', '.join(each)}]" for each in (places, others))
        self.guarded(f"{own} = 0.5 * {other} + {self.number(1)}")

    def carry(self) -> None:
        """Write an assignment of a variable."""
        name, other = self.scope.random.sample(["s", "t"], 2)
        value = self.number(1)
        self.guarded(
            self.scope.pick(
                (
                    f"{name} += {value}",
                    f"{name} = 0.5 * {name} + {value}",
                    f"{name} = math.sin({name}) * {value}",
                    f"{name}, {other} = 0.5 * {other}, {value}",
                    f"{name} = max({name}, {value})",
                    f"{name} *= math.cos({value})",
                )
            )
        )

    def branch(self) -> None:
        """Write a branch."""
        self.line(f"if {self.condition()}:")
        self.level += 1
        self.statement(nested=False)
        self.level -= 1
        if self.scope.chance(0.5):
            self.line("else:")
            self.level += 1
            self.statement(nested=self.scope.chance(0.3))
            self.level -= 1

    def repeat(self) -> None:
        """Write a `while`."""
        name = f"c{next(self.numbers)}"
        limit = self.scope.pick(("2", "m", "3"))
        self.line(f"{name} = 0")
        self.line(self.scope.pick((f"while {name} < {limit}:", f"while {name} < {limit} and {self.condition()}:")))
        self.level += 1
        self.line(f"{name} += 1")
        if self.scope.chance(0.3):
            self.line(f"if {self.condition()}:")
            self.line(f"    {self.scope.pick(('break', 'continue'))}")
        self.statement(nested=False)
        self.statement(nested=False)
        self.level -= 1

    def local(self) -> None:
        """Write a local list that is filled and read."""
        name, counter = f"w{next(self.numbers)}", f"i{next(self.numbers)}"
        self.line(f"{name} = [{self.leaf() if not self.scope.guards else '0.0'}, 0.5, 0.0]")
        self.line(f"for {counter} in range(3):")
        self.level += 1
        self.scope.loops.append(Whole(counter, (0, 2)))
        value = self.number(1)
        self.guarded(self.scope.pick((f"{name}[{counter}] = {value}", f"{name}[2 - {counter}] += {name}[0] * {value}")))
        self.scope.loops.pop()
        self.level -= 1
        one, other = f"{name}[{self.scope.loop().text} % 3]", f"{name}[{self.scope.pick(('0', '-1', '1'))}]"
        self.line(f"s = 0.5 * s + {one} * math.sin({other})")
