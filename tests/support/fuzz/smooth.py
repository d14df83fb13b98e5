"""Writes random programs that can be differentiated: in double precision, of functions that stay small.

Loops have bounds of the call, of outer loops and of data, with none, one or several iterations; values are carried
through variables, elements and local lists, updated in place, chosen by conditions and left by `break`. Where a program
has a corner is up to its arguments, which are no round numbers: they hardly ever meet one. What is executed stays
within its tensors; what never is may do anything.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from support.fuzz.case import Argument, Case, NumberArgument, TensorArgument
from support.fuzz.scope import Array, Scope, Whole, extent, index
from support.fuzz.smooth_patterns import smooth_pattern

SIZES = (0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5)
ITERATIONS = 60
MADE = ("result", "w")
"""Tensors that the program makes."""
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
    if scope.chance(0.3):
        n, p = wholes
        scope.arrays.append(Array("w", "float64", source.choice(((n,), (n, n), (p, n))), written=True))
    writer = SmoothWriter(scope)
    for _ in range(min(source.choice((1, 2, 2, 3)), nests)):
        if scope.chance(0.25):
            smooth_pattern(writer)
        else:
            writer.nest()
    numbers = (NumberArgument("m", number), NumberArgument("h", 0.75), NumberArgument("flag", source.random() < 0.5))
    return Case(_source(scope, writer), (*arguments, *numbers), seed)


def _source(scope: Scope, writer: SmoothWriter) -> str:
    tensors = [array for array in scope.arrays if array.name not in MADE]
    made = [array for array in scope.arrays if array.name in MADE]
    parameters = ", ".join(f"{array.name}: torch.Tensor" for array in tensors)
    result = any(array.name == "result" for array in made)
    returns = "torch.Tensor" if result else "None"
    head = f"def generated({parameters}, m: int, h: float, flag: bool) -> {returns}:"
    begin = ["    n, p = a.shape"]
    begin += [
        f"    {array.name} = torch.zeros({', '.join(size.text for size in array.sizes)}, dtype=torch.float64)"
        for array in made
    ]
    begin += [f"    {line}" for line in (*writer.made, "s, t = 0.0, 1.0")]
    end = ["    return result"] if result else []
    imports = "import itertools\nimport math\n\nimport torch\n"
    return "\n".join((imports, "", _HELPERS, "", head, *begin, *writer.lines, *end, ""))


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
    long = extent(n)
    if scope.chance(0.5) and long:
        scope.arrays.append(Array("j", "int64", (n,), indices=True, limit=long))
        arguments.append(TensorArgument("j", "int64", (long,), data="index", limit=long, seed=source.randrange(1000)))
    return tuple(arguments)


class SmoothWriter:
    """Writes the body of one program."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.lines: list[str] = []
        self.level = 1
        self.trips = 1
        self.numbers = itertools.count()
        self.locals = ["s", "t"]
        self.lists: list[tuple[str, int]] = []
        """Local lists in sight, and the level that each is made at."""
        self.made: list[str] = []
        """Statements that make tensors."""
        self.floats = [array for array in scope.arrays if array.floating]
        self.written = [array for array in self.floats if array.written]

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append("    " * self.level + text)

    def name(self) -> str:
        """Return a new name."""
        return f"v{next(self.numbers)}"

    def guarded(self, text: str) -> None:
        """Write a statement under the conditions that its indices need."""
        guards, self.scope.guards = self.scope.guards, []
        if guards:
            self.line(f"if {' and '.join(dict.fromkeys(guards))}:")
            self.level += 1
        self.line(text)
        self.level -= bool(guards)

    # ------------------------------------------------------------ expressions

    def usable(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the tensors that have elements; all of them in code that is never reached."""
        reached = all(loop.range is not None for loop in self.scope.loops)
        return [array for array in arrays if not reached or all(map(extent, array.sizes))]

    def element(self) -> str:
        """Return a read of an element, or a number if there is none."""
        arrays = self.usable(self.floats)
        if not arrays:
            return "h"
        array = self.scope.pick(arrays)
        return f"{array.name}[{', '.join(index(self.scope, size) for size in array.sizes)}]"

    def leaf(self) -> str:
        """Return a read, a variable or a number."""
        kind = self.scope.pick(
            ("element",) * 6 + ("local", "local", "number", "loop", *("list",) * min(len(self.lists), 2))
        )
        match kind:
            case "list":
                return f"{self.scope.pick(self.lists)[0]}[{self.place()}]"
            case "local":
                return self.scope.pick(self.locals)
            case "number":
                return self.scope.pick(("0.5", "-1.25", "h", "2"))
            case "loop" if self.scope.loops:
                return f"0.1 * {self.scope.loop().text}"
            case _:
                return self.element()

    def place(self) -> str:
        """Return an index into a local list."""
        last = self.scope.loop().text if self.scope.loops else "m"
        return self.scope.pick(("0", "1", "-1", f"{last} % 3", f"({last} + 1) % 3"))

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
            long = min(2, extent(self.scope.wholes[0]))
            text, spread, trips = "range(min(2, n))", below(long), long
        self.line(f"for {name} in {text}:")
        self.trips *= max(trips, 1)
        self.level += 1
        self.scope.loops.append(Whole(name, spread))

    def head(self) -> tuple[str, tuple[int, int] | None, int]:
        """Return what a loop is over, the interval of its index, and how often it runs at most."""
        pick, size = self.scope.pick, self.scope.pick([size for array in self.floats for size in array.sizes])
        long = extent(size)
        upto = below(long)
        outer = self.scope.loop() if self.scope.loops else None
        kinds = ["plain"] * 5 + ["rest", "back", "step", "argument", "number"]
        kinds += ["triangle", "triangle", "data"] if outer is not None else []
        match pick(kinds):
            case "rest":
                return f"range(1, {size.text})", (1, long - 1) if long > 1 else None, long
            case "back":
                return f"range({size.text} - 1, -1, -1)", upto, long
            case "step":
                return f"range(0, {size.text}, 2)", upto, long
            case "argument":
                often = extent(self.scope.wholes[2])
                return "range(m)", below(often), often
            case "number":
                return pick(("range(2)", "range(3)")), (0, 2), 3
            case "triangle" if outer is not None:
                return self.triangular(outer, size)
            case "data":
                self.scope.guardable, before = False, self.scope.guardable
                found = f"range(int(abs({self.element()}) * 1.7) % 4)"
                self.scope.guardable = before
                return found, (0, 3), 3
            case _:
                return f"range({size.text})", upto, long

    def triangular(self, outer: Whole, size: Whole) -> tuple[str, tuple[int, int] | None, int]:
        """Return a head with a bound that is an outer index."""
        long, (low, high) = extent(size), outer.range or (0, -1)
        name, reached = outer.text, outer.range is not None
        upper = (low, long - 1) if reached and low < long else None
        return self.scope.pick(
            (
                (f"range({name} + 1)", below(high + 1), high + 1),
                (f"range({name})", below(high), high),
                (f"range({name}, {size.text})", upper, long),
                (f"range({name}, -1, -1)", below(high + 1), high + 1),
                (f"range(max({name} - 1, 0), min({name} + 2, {size.text}))", below(long) if reached else None, 3),
            )
        )

    def close(self) -> None:
        """Close a loop."""
        self.scope.loops.pop()
        self.level -= 1
        self.lists = [(name, level) for name, level in self.lists if level <= self.level]

    @contextmanager
    def loop(self, name: str, size: Whole, begin: int = 0, *, backwards: bool = False) -> Generator[None]:
        """Write a loop over an axis."""
        text = f"range({size.text} - 1, -1, -1)" if backwards else f"range({begin}, {size.text})"
        self.line(f"for {name} in {text}:")
        self.level += 1
        long = extent(size)
        self.scope.loops.append(Whole(name, (begin, long - 1) if long > begin else None))
        yield
        self.close()

    @contextmanager
    def triangle(self, name: str, outer: str, size: Whole) -> Generator[None]:
        """Write a loop up to the index of an outer one over an axis."""
        self.line(f"for {name} in range({outer} + 1):")
        self.level += 1
        self.scope.loops.append(Whole(name, below(extent(size))))
        yield
        self.close()

    def nest(self) -> None:
        """Write one nest, and what may stand before it."""
        if self.scope.chance(0.5):
            self.line(f"s = {self.scope.pick(('0.0', '0.5', 'h'))}")
        before = self.trips
        depth = self.scope.pick((1, 1, 2, 2, 3))
        for level in range(depth):
            if self.scope.chance(0.2):
                self.list()
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
        kinds = ["store"] * 4 + ["update"] * 3 + ["carry"] * 3 + ["recur"] * 2 + ["keep"] * (2 if self.lists else 0)
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
            case "keep":
                name = self.scope.pick(self.lists)[0]
                self.guarded(
                    f"{name}[{self.place()}] = 0.5 * {name}[{self.place()}] * {self.number(1)} + {self.leaf()}"
                )
            case _:
                self.carry()

    def list(self) -> None:
        """Write a local list that statements may use from here on."""
        name = f"w{next(self.numbers)}"
        self.line(f"{name} = {self.scope.pick(('[0.0] * 3', '[0.5, h, 0.0]', '[1.0 for _ in range(3)]'))}")
        self.lists.append((name, self.level))

    def target(self) -> str:
        """Return an element to store into, or a variable if there is none."""
        arrays = self.usable(self.written)
        if not arrays:
            return "s"
        array = self.scope.pick(arrays)
        return f"{array.name}[{', '.join(index(self.scope, size) for size in array.sizes)}]"

    def store(self) -> None:
        """Write a store."""
        target = self.target()
        self.guarded(f"{target} = {self.number()}")

    def add(self, value: str) -> None:
        """Write an addition to an element."""
        self.guarded(f"{self.target()} += {value}")

    def update(self) -> None:
        """Write an update of an element."""
        target, value = self.target(), self.number()
        kind = self.scope.pick(("{} += {}", "{} -= {}", "{} *= 1 + 0.25 * math.sin({})"))
        self.guarded(kind.format(target, value))

    def recur(self) -> None:
        """Write an element that is made of its neighbour, or of itself."""
        arrays = self.usable(self.written)
        if not arrays:
            self.carry()
            return
        array = self.scope.pick(arrays)
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
        self.scope.guardable = False
        self.line(f"{name} = [{self.leaf()}, 0.5, 0.0]")
        self.scope.guardable = True
        self.line(f"for {counter} in range(3):")
        self.level += 1
        self.scope.loops.append(Whole(counter, (0, 2)))
        value = self.number(1)
        self.guarded(self.scope.pick((f"{name}[{counter}] = {value}", f"{name}[2 - {counter}] += {name}[0] * {value}")))
        self.scope.loops.pop()
        self.level -= 1
        one, other = f"{name}[{self.scope.loop().text} % 3]", f"{name}[{self.scope.pick(('0', '-1', '1'))}]"
        self.line(f"s = 0.5 * s + {one} * math.sin({other})")


def below(count: int) -> tuple[int, int] | None:
    """Return the interval of an index that counts to `count`."""
    return (0, count - 1) if count > 0 else None
