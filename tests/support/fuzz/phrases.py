"""Expressions and conditions of generated programs.

Floats stay small multiples of a half wherever sums could be made in another order, so that every order gives the same
bits. Integers may be any: they wrap.
"""

from __future__ import annotations

from support.fuzz.scope import Array, Scope, Whole, extent, index

HELPERS = '''TABLE = (1, -2, 3, 0)
GRID = ((1, 2), (3, -1))


def clamp(value, low, high):
    """Return at once, or at the end."""
    if value < low:
        return low
    return high if value > high else value


def mix(a, b):
    """A loop and a call in a helper."""
    t = a
    for _ in range(2):
        t = t + b
    return clamp(t, -40, 40)


def parity(a):
    """A while loop in a helper."""
    rest = abs(int(a)) % 8
    while rest > 1:
        rest -= 2
    return rest


def applied(f, a, b):
    """Calls what it is given."""
    return f(a, b)


WEIGHTS = {0: 3, 1: -2}


def looked_up(a):
    """Dictionaries."""
    rest = parity(a)
    return WEIGHTS[rest] + {1: 2, 5: 0}.get(rest, -1) + (rest in WEIGHTS)


class Pair(NamedTuple):
    """Two numbers that are added as one."""

    first: float
    second: float

    def __add__(self, other):
        return Pair(self.first + other.first, self.second - other.second)

    @property
    def least(self):
        return min(self.first, self.second)


class Span:
    """Two pairs in order."""

    def __init__(self, low, high):
        self.low = low
        self.high = high
        if high.first < low.first:
            self.low, self.high = high, low

    def __contains__(self, pair):
        return self.low.first <= pair.first <= self.high.first


def mix_pairs(a, b):
    """Values with parts in a loop and in branches."""
    pair = Pair(a, b)
    span = Span(pair, Pair(b, a))
    for turn in range(2):
        pair = pair + Pair(turn, b)
        if pair not in span:
            span = Span(span.low, pair)
    return clamp(span.high.least + span.low.second, -40, 40)
'''
_EDGES = ("2**31 + 5", "-(2**31) - 1", "2**62 + 3", "2**63 - 1", "-(2**63) + 1", "7", "-3")


class Phrases:
    """Writes expressions over what a scope offers; `readable` says which tensors may be read."""

    def __init__(self, scope: Scope, *, draws: bool, exact: bool, whole: bool) -> None:
        self.scope = scope
        self.draws = draws
        self.exact = exact
        self.integers = whole
        self.locals = ["s", "t", "k"]
        self.readable: list[Array] = list(scope.arrays)

    def element(self, array: Array | None = None) -> str:
        """Return a read of an element."""
        found = array or self.scope.pick(self.readable)
        if not found.sizes:
            return f"{found.name}[()]"
        places = [index(self.scope, size) for size in found.sizes]
        if len(places) > 1 and self.scope.chance(0.1):
            return found.name + "".join(f"[{place}]" for place in places)
        return f"{found.name}[{', '.join(places)}]"

    def leaf(self) -> str:
        """Return a read, a local, an argument or a literal."""
        pick = self.scope.pick
        kind = pick(("element",) * 7 + ("local", "local", "loop", "number", "number", "argument", "draw", "table"))
        match kind:
            case "local":
                return pick((*self.locals, *(f"({item.text} % 5)" for item in self.scope.carried)))
            case "loop" if self.scope.loops:
                return self.scope.loop().text
            case "table" if self.scope.loops:
                loop = self.scope.loop().text
                return pick((f"TABLE[{loop} % 4]", f"TABLE[{pick(('k', loop))} % 3]", f"GRID[{loop} % 2][1]"))
            case "number":
                return pick(("2", "-3", "1", "0", "7") if self.integers else ("2", "0.5", "-3", "1", "0", "-1.0"))
            case "argument":
                return pick(
                    (*(whole.text for whole in self.scope.wholes), "m" if self.integers else "h", "(1 if flag else 2)")
                )
            case "draw" if self.draws:
                return pick(("bw.randint(-2, 3)", "bw.randint(0, 5)", "int(bw.rand() * 4)"))
            case _:
                return self.element()

    def real(self, number: str) -> str:
        """Return a number as a float, where that is to meet elements in one type: Python has no int that is -0."""
        return number if self.integers or "[" in number else f"({number} + 0.0)"

    def number(self, depth: int = 2) -> str:
        """Return an expression."""
        if depth == 0 or self.scope.chance(0.15):
            return self.leaf()
        pick, left = self.scope.pick, self.number(depth - 1)
        right = self.number(depth - 1) if self.scope.chance(0.5) else self.leaf()
        match pick(
            ("sum",) * 6 + ("gather", "times", "extreme", "if", "call", "modulo", "whole", "helper", "whole", "unary")
        ):
            case "sum":
                return f"({left} {pick('+-')} {right})"
            case "gather":
                return self.gather()
            case "times":
                return f"({left} * {pick(('2', '-1', '2' if self.integers else '0.5', self.leaf()))})"
            case "extreme":
                return f"{pick(('min', 'max'))}({left}, {right})"
            case "if":
                test = self.test(depth - 1)
                return f"({self.real(left)} if {test} else {self.real(right)})"
            case "call":
                return self.call(left, right)
            case "modulo":
                return f"({left} {pick(('//', '%'))} {pick(('3', '-2', '5' if self.integers else '2.5', '4'))})"
            case "whole":
                return self.whole(left, right)
            case "helper":
                return pick((f"mix({left}, {right})", f"clamp({left}, -9, {right})", f"parity({left})"))
            case _:
                return pick((f"-({left})", f"abs({left})", f"+({left})", f"(not {left})"))

    def gather(self) -> str:
        """Return a reduction of a generator."""
        pick, size = self.scope.pick, self.scope.pick((Whole("3", (3, 3)), Whole("2", (2, 2))))
        self.scope.guardable, before = False, self.scope.guardable
        self.scope.loops.append(Whole("j", (0, extent(size) - 1)))
        value = self.element()
        self.scope.loops.pop()
        self.scope.guardable = before
        kind = pick(("sum({})", "sum({})", "min({})", "max({})", "(1 if any({}) else 0)", "(2 if all({}) else 1)"))
        return kind.format(
            f"{value}{pick(('', ' - 1', ' > 0')) if 'a' in kind[:4] else ''} for j in range({size.text})"
        )

    def call(self, left: str, right: str) -> str:
        """Return a call whose result is exact."""
        pick = self.scope.pick
        if self.integers:
            return pick((f"int({left})", f"abs({left})", f"bool({left})", f"({left} & {right})"))
        exact = ("int", "float", "math.floor", "math.ceil", "math.trunc", "round", "bool")
        if self.exact or self.scope.chance(0.6):
            return f"{pick(exact)}({left})"
        plain = (
            f"math.sqrt(abs({left}))",
            f"math.copysign({left}, {right})",
            f"({left} / {right})",
            f"float({left}) ** 2",
        )
        return pick((*plain, f"math.fabs({left})", f"({left} / 3)", f"math.fmod({left}, 2.5)"))

    def whole(self, left: str, right: str) -> str:
        """Return integer arithmetic, at the edges too."""
        pick = self.scope.pick
        divisor = pick(("m", "k", f"int({right})", self.scope.loop().text if self.scope.loops else "n", "5"))
        if self.scope.stray == 0 and divisor != "5":
            divisor = f"(abs({divisor}) % 7 + 1)"
        match pick(("divide", "bits", "bits", "shift", "wrap")):
            case "divide":
                return f"(int({left}) {pick(('//', '%'))} {divisor})"
            case "bits":
                return f"(int({left}) {pick('&|^')} {pick(('5', f'int({right})', '-2'))})"
            case "shift":
                far = (">>", pick(("1", "63", "64", "70", f"abs(int({right})) % 67")))
                left_too = ("<<", pick(("1", "3", "63", "64", "70"))) if self.integers else ("<<", "2")
                operator, by = pick((far, left_too))
                return f"(int({left}) {operator} {by})"
            case _:
                return f"((int({left}) * ({pick(_EDGES)})) {pick(('% 11', '& 7', '>> 60', '// (2**60)'))})"

    def condition(self, depth: int = 1) -> str:
        """Return a condition of a statement, whose indices cannot be guarded."""
        self.scope.guardable = False
        found = self.test(depth)
        self.scope.guardable = True
        return found

    def test(self, depth: int = 1) -> str:
        """Return a condition."""
        left, right = self.number(depth), self.leaf()
        plain = f"{left} {self.scope.pick(('<', '<=', '==', '!=', '>', '>='))} {right}"
        choices = [plain, plain, plain, f"({plain} and {self.leaf()} > 0)", f"not {plain}", f"0 <= {left} < 3", "flag"]
        choices += [f"({plain} or flag)", f"({plain} or {self.leaf()} != 1)"]
        if self.scope.loops:
            one, other = self.scope.loop().text, self.scope.pick((*self.scope.loops, *self.scope.wholes)).text
            choices += [f"{one} % 2 == 0", f"{one} < {other}", f"{one} != {other}", f"m != 0 and {one} % m == 0"]
        return self.scope.pick(choices)
