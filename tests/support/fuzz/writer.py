"""Writes the statements of a generated program.

A nest is a map (each iteration owns what it writes), a reduction, a recurrence, or anything at all, so that a good part
of loops is parallel and a good part is not.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from support.fuzz.phrases import Phrases
from support.fuzz.scope import Array, Range, Scope, Whole, extent, kept

ITERATIONS = 900
"""How many times the innermost statement of a nest may run."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a loop: what stands after `in`, and the interval of its index."""

    text: str
    range: Range
    trips: int


class Writer:
    """Writes the body of one program."""

    def __init__(self, scope: Scope, phrases: Phrases, *, claims: bool) -> None:
        self.scope = scope
        self.phrases = phrases
        self.claims = claims
        self.lines: list[str] = []
        self.level = 1
        self.trips = 1
        self.numbers = itertools.count()
        self.style = "any"
        self.owned: list[Array] = []

    def line(self, text: str) -> None:
        self.lines.append("    " * self.level + text)

    # ------------------------------------------------------------ nests

    def nest(self) -> None:
        """Write one nest, and what may stand around it."""
        pick, scope = self.scope.pick, self.scope
        self.style = pick(("map", "map", "map", "reduce", "reduce", "recurrence", "any", "any"))
        written = [array for array in scope.arrays if array.written]
        others = [array for array in scope.arrays if not array.written]
        self.phrases.readable = others if self.style == "map" and others and scope.chance(0.8) else list(scope.arrays)
        if scope.chance(0.6):
            self.line(f"s = {pick(('0', '1', '7') if self.phrases.integers else ('0', '0.0', '1', '0.5', 'h'))}")
        if scope.chance(0.2):
            self.line("k = n")
        match self.style:
            case "map":
                self.map(pick(written))
            case "reduce":
                self.reduce()
            case "recurrence":
                self.recurrence([array for array in written if len(array.sizes) > 0])
            case _:
                self.loop(2)
        self.after(written)

    def after(self, written: list[Array]) -> None:
        """Write a statement at the top level, where it may be."""
        if not self.scope.chance(0.35):
            return
        array = self.scope.pick(written)
        guard = " and ".join(f"{size.text} > 0" for size in array.sizes)
        if guard:
            self.line(f"if {guard}:")
            self.level += 1
        zero = ", ".join(self.scope.pick(("0", "-1")) for _ in array.sizes)
        value = self.scope.pick(("s + k", "s", "t - s", "k"))
        self.line(f"{array.name}[{zero or '()'}] {self.scope.pick(('=', '+='))} {value}")
        if guard:
            self.level -= 1

    def map(self, array: Array) -> None:
        """Write a nest over all elements of a tensor, in any order of its axes, where each iteration has its own."""
        axes = list(range(len(array.sizes)))
        self.scope.random.shuffle(axes)
        if self.scope.chance(0.5):
            axes.sort()
        places: dict[int, str] = {}
        extra = not axes or self.scope.chance(0.1)
        if extra:
            self.open(Head("range(1)", (0, 0), 1))
        for axis in axes:
            size = array.sizes[axis]
            head, place = self.walk(size)
            loop = self.open(head)
            places[axis] = place.format(loop.text)
        self.owned = [array]
        own = f"{array.name}[{', '.join(places[axis] for axis in sorted(places)) or '()'}]"
        if self.scope.chance(0.35):
            self.local()
            self.accumulate()
        if self.scope.chance(0.2):
            self.line(f"if {self.phrases.condition()}:")
            self.body_of(1, ("assign", "local", "leave"))
        self.store_to(own)
        if self.scope.chance(0.3):
            self.store_to(own, update=True)
        self.close(len(axes) + extra)

    def walk(self, size: Whole) -> tuple[Head, str]:
        """Return a loop that meets each place of an axis at most once, and the place for its index."""
        long = extent(size)
        whole, count = (0, long - 1) if long else None, long
        rest = (1, long - 1) if long > 1 else None
        loop = "bw.prange" if self.claims and self.scope.chance(0.3) else "range"
        kind = self.scope.pick(("plain",) * 6 + ("back", "rest", "shifted", "step", "reversed", "negative", "half"))
        match kind:
            case "back":
                return Head(f"range({size.text} - 1, -1, -1)", whole, count), "{}"
            case "rest":
                return Head(f"{loop}(1, {size.text})", rest, max(count - 1, 0)), self.scope.pick(("{}", "{} - 1"))
            case "shifted":
                return Head(f"range({size.text} - 1)", below(long - 1), max(count - 1, 0)), "{} + 1"
            case "step":
                return Head(f"range(0, {size.text}, 2)", below(long), (count + 1) // 2), "{}"
            case "reversed":
                return Head(f"{loop}({size.text})", whole, count), f"{size.text} - 1 - {{}}"
            case "negative":
                return Head(f"{loop}({size.text})", whole, count), "-1 - {}"
            case "half":
                return Head(f"range({size.text} // 2)", below(long // 2), count // 2), self.scope.pick(("2 * {}", "{}"))
            case _:
                return Head(f"{loop}({size.text})", whole, count), "{}"

    def reduce(self) -> None:
        """Write a nest that accumulates into a scalar, into elements, or into rows."""
        depth = self.scope.pick((1, 2, 2, 3))
        for _ in range(depth):
            self.open(self.head())
        targets = [array for array in self.scope.arrays if array.written and len(array.sizes) <= depth]
        if targets and self.scope.chance(0.5):
            array = self.scope.pick(targets)
            outer = self.scope.loops[-depth:][: max(depth - 1, 1)]
            own = ", ".join(kept(self.scope, self.scope.pick(outer), size) for size in array.sizes) or "()"
            operator = self.scope.pick(("+", "+", "-", "+"))
            self.guarded(f"{array.name}[{own}] {operator}= {self.phrases.number(1)}")
        else:
            self.accumulate(nested=False)
        if self.scope.chance(0.3):
            self.accumulate(nested=False)
        self.close(depth)

    def recurrence(self, written: list[Array]) -> None:
        """Write a nest whose iterations need what earlier ones wrote."""
        if not written:
            self.loop(2)
            return
        array = self.scope.pick(written)
        if self.scope.chance(0.3):
            self.open(self.head())
        back = self.scope.chance(0.3)
        names: list[str] = []
        for size in array.sizes:
            long = extent(size)
            head = f"range({size.text} - 2, -1, -1)" if back else f"range(1, {size.text})"
            spread = below(long - 1) if back else ((1, long - 1) if long > 1 else None)
            names.append(self.open(Head(head, spread, max(long - 1, 0))).text)
        before = [f"{name} {'+' if back else '-'} 1" if self.scope.chance(0.6) else name for name in names]
        read = f"{array.name}[{', '.join(before)}]"
        rest = self.phrases.number(1)
        self.guarded(
            f"{array.name}[{', '.join(names)}] = "
            + self.scope.pick(
                (f"{read} + {rest}", f"max({read}, {rest})", f"min({read} + 1, {rest})", f"{rest} - {read} // 2")
            )
        )
        self.close(len(self.scope.loops))

    # ------------------------------------------------------------ loops

    def head(self) -> Head:
        """Return the head of a loop over anything."""
        scope, pick = self.scope, self.scope.pick
        size = pick([whole for array in scope.arrays for whole in array.sizes] + scope.wholes[:1])
        long = extent(size)
        outer = scope.loop() if scope.loops else None
        kinds = ["plain"] * 6 + ["rest", "back", "step", "argument", "number", "data"]
        kinds += ["triangle", "triangle", "window", "tile"] if outer is not None else []
        loop = "bw.prange" if self.claims and scope.chance(0.3) else "range"
        match pick(kinds):
            case "rest":
                return Head(f"{loop}(1, {size.text})", (1, long - 1) if long > 1 else None, max(long - 1, 0))
            case "back":
                return Head(f"range({size.text} - 1, -1, -1)", below(long), long)
            case "step":
                step = pick((2, 3, 5))
                return Head(f"range(0, {size.text}, {step})", below(long), long // step + 1)
            case "argument":
                high = extent(size)
                return Head(f"range(min(m, {size.text}))", below(high), high)
            case "number":
                return Head(pick(("range(3)", "range(2)", "range(-1, 2)")), (-1, 2), 3)
            case "data":
                self.scope.guardable = False
                data = self.phrases.element()
                self.scope.guardable = True
                return Head(f"range(abs(int({data})) % 5)", (0, 3), 4)
            case "triangle" if outer is not None:
                return self.triangle(outer, size, long)
            case "window" if outer is not None:
                text = f"range(max(0, {outer.text} - 1), min({size.text}, {outer.text} + 2))"
                return Head(text, below(long), 3)
            case "tile" if outer is not None:
                text = f"range(4 * {outer.text}, min(4 * {outer.text} + 4, {size.text}))"
                return Head(text, below(long), 4)
            case _:
                return Head(f"{loop}({size.text})", below(long), long)

    def triangle(self, outer: Whole, size: Whole, long: int) -> Head:
        """Return a head whose bounds depend on an outer loop."""
        low, high = outer.range or (0, 0)
        text, spread = self.scope.pick(
            (
                (f"range({outer.text})", below(high)),
                (f"range({outer.text} + 1)", below(high + 1)),
                (f"range({outer.text}, {size.text})", (low, long - 1) if long > low else None),
                (f"range({outer.text} + 1, {size.text})", (low + 1, long - 1) if long > low + 1 else None),
                (f"range({outer.text} % 3, {size.text}, 3)", below(long)),
            )
        )
        return Head(text, None if outer.range is None else spread, max(long, high + 1))

    def open(self, head: Head) -> Whole:
        """Open a loop; one that would run too often is cut short."""
        name = f"i{next(self.numbers)}"
        text, spread, trips = head.text, head.range, head.trips
        if self.trips * max(trips, 1) > ITERATIONS:
            most = max(ITERATIONS // self.trips, 1)
            text, spread, trips = f"range(min({most}, n))", below(most), most
        self.line(f"for {name} in {text}:")
        self.trips *= max(trips, 1)
        self.level += 1
        found = Whole(name, spread)
        self.scope.loops.append(found)
        return found

    def close(self, count: int) -> None:
        """Close loops."""
        for _ in range(count):
            if not self.scope.loops:
                break
            self.scope.loops.pop()
            self.level -= 1
        if not self.scope.loops:
            self.trips = 1

    def loop(self, budget: int) -> None:
        """Write a loop with any statements."""
        before = self.trips
        kind = self.scope.pick(("pairs", "things", *("plain",) * 8))
        if kind == "pairs":
            self.pairs(budget)
        elif kind == "things":
            self.things(budget)
        else:
            self.open(self.head())
            self.statements(budget)
            self.close(1)
            if self.scope.chance(0.15):
                self.line("else:")
                self.body_of(0, ("assign",))
        self.trips = before
        if not self.scope.loops:
            self.trips = 1

    def things(self, budget: int) -> None:
        """Write a loop over a tensor, with the places of its elements beside them."""
        lines = [array for array in self.scope.arrays if len(array.sizes) == 1]
        if not lines:
            self.assign()
            return
        array = self.scope.pick(lines)
        long = extent(array.sizes[0])
        if self.trips * max(long, 1) > ITERATIONS:
            self.assign()
            return
        name = f"i{next(self.numbers)}"
        whole = f"range({array.sizes[0].text})"
        head = self.scope.pick(
            (f"enumerate({array.name})", f"zip({whole}, {array.name})", f"zip({whole}, reversed({whole}))")
        )
        self.line(f"for {name}, e in {head}:")
        self.trips *= max(long, 1)
        self.level += 1
        self.scope.loops.append(Whole(name, below(long)))
        self.phrases.locals.append("e")
        self.statements(budget)
        self.phrases.locals.remove("e")
        self.close(1)

    def items(self) -> None:
        """Write a local list that is filled and read."""
        if self.scope.chance(0.3):
            self.table()
            return
        name, index = f"w{next(self.numbers)}", f"i{next(self.numbers)}"
        zero = "0" if self.phrases.integers else "0.0"
        self.line(f"{name} = [{zero}, {zero}, {zero}]")
        self.line(f"for {index} in range(3):")
        self.level += 1
        self.scope.loops.append(Whole(index, (0, 2)))
        self.guarded(f"{name}[{index}] = {self.phrases.number(1)}")
        self.scope.loops.pop()
        self.level -= 1
        self.line(
            f"s = s + {name}[{self.scope.loop().text} % 3] - {name}[{self.scope.pick(('0', '-1', 'abs(k) % 3'))}]"
        )

    def table(self) -> None:
        """Write a nested list that is filled and read."""
        name, one, two = f"w{next(self.numbers)}", f"i{next(self.numbers)}", f"i{next(self.numbers)}"
        zero = "0" if self.phrases.integers else "0.0"
        made = (f"[[{zero}, {zero}], [{zero}, {zero}]]", f"[[{zero}] * 2 for _ in range(2)]")
        self.line(f"{name} = {self.scope.pick(made)}")
        for index in (one, two):
            self.line(f"for {index} in range(2):")
            self.level += 1
            self.scope.loops.append(Whole(index, (0, 1)))
        self.guarded(f"{name}[{one}][{two}] = {self.phrases.number(1)}")
        self.level -= 2
        del self.scope.loops[-2:]
        self.line(f"s = {name}[{self.scope.loop().text} % 2][1] - {name}[-1][{self.scope.pick(('0', 'abs(k) % 2'))}]")

    def pairs(self, budget: int) -> None:
        """Write a loop over two indices."""
        one, other = (
            self.scope.pick(self.scope.wholes[:2]),
            self.scope.pick((*self.scope.wholes[:2], Whole("2", (2, 2)))),
        )
        trips = 1
        names: list[Whole] = []
        for size in (one, other):
            long = extent(size)
            names.append(Whole(f"i{next(self.numbers)}", below(long)))
            trips *= max(long, 1)
        if self.trips * trips > ITERATIONS:
            self.assign()
            return
        self.line(f"for {names[0].text}, {names[1].text} in bw.ndrange({one.text}, {other.text}):")
        self.trips *= trips
        self.level += 1
        self.scope.loops.extend(names)
        self.statements(budget)
        del self.scope.loops[-2:]
        self.level -= 1

    # ------------------------------------------------------------ statements

    def statements(self, budget: int) -> None:
        for _ in range(self.scope.pick((1, 1, 2, 3))):
            self.statement(budget)

    def body_of(self, budget: int, kinds: tuple[str, ...] | None = None) -> None:
        self.level += 1
        for _ in range(self.scope.pick((1, 1, 2))):
            self.statement(budget, kinds)
        self.level -= 1

    def statement(self, budget: int, kinds: tuple[str, ...] | None = None) -> None:
        plain = (
            "store",
            "store",
            "store",
            "update",
            "assign",
            "local",
            "accumulate",
            "argument",
            "leave",
            "assert",
            "items",
        )
        deep = ("if", "if", "for", "for", "while") if budget > 0 and len(self.scope.loops) < 4 else ()
        match self.scope.pick(kinds or (*plain, *deep)):
            case "store":
                self.store_to(self.target())
            case "update":
                self.store_to(self.target(), update=True)
            case "local":
                self.local()
            case "accumulate":
                self.accumulate(nested=budget > 0)
            case "argument":
                self.best()
            case "leave":
                self.leave()
            case "items":
                self.items()
            case "assert":
                self.check()
            case "if":
                self.branch(budget)
            case "for":
                self.loop(budget - 1)
            case "while":
                self.turns(budget)
            case _:
                self.assign()

    def guarded(self, text: str) -> None:
        """Write a statement under the guards that its indices asked for."""
        guards, self.scope.guards = self.scope.guards, []
        if guards:
            self.line(f"if {' and '.join(dict.fromkeys(guards))}:")
            self.level += 1
        self.line(text)
        if guards:
            self.level -= 1

    def target(self) -> str:
        array = self.scope.pick([array for array in self.scope.arrays if array.written])
        return self.phrases.element(array)

    def store_to(self, target: str, *, update: bool = False) -> None:
        """Write a store, or an update."""
        if not update:
            self.guarded(f"{target} = {self.phrases.number()}")
            return
        small = f"({self.phrases.leaf()} % 3 - 1)"
        operator, value = self.scope.pick(
            (("+", None), ("+", None), ("-", None), ("*", "2"), ("*", small), ("//", "2"), ("%", "5"))
        )
        self.guarded(f"{target} {operator}= {value or self.phrases.number(1)}")

    def assign(self) -> None:
        """Write an assignment to a local."""
        pick = self.scope.pick
        match pick(("float", "whole", "swap", "chain", "divide")):
            case "float":
                self.guarded(f"{pick('st')} = {self.phrases.number()}")
            case "swap":
                self.line(pick(("s, t = t, s", "s, t = t, s + t")))
            case "chain":
                self.guarded(f"s = t = {self.phrases.number(1)}")
            case "divide":
                self.guarded(f"k, t = divmod(int({self.phrases.leaf()}), 3)")
            case _:
                self.guarded(f"k = int({self.phrases.number(1)}) % 7")

    def local(self) -> None:
        """Write a local that is assigned before it is used, and changed afterwards."""
        value = self.phrases.element()
        if self.scope.guards:
            self.line("t = 0")
        self.guarded(f"t = {value}")
        if self.scope.chance(0.5):
            self.line(self.scope.pick(("t += 1", "t -= s", "t = t * 2", "t = -t")))

    def accumulate(self, *, nested: bool = True) -> None:
        """Write a reduction into a local, in a loop of its own if `nested`."""
        pick = self.scope.pick
        name = pick("sst")
        if nested and self.scope.chance(0.6) and len(self.scope.loops) < 4:
            self.line(f"{name} = {pick(('0', '1') if self.phrases.integers else ('0', '0.0', '1', 'h'))}")
            before = self.trips
            self.open(self.head())
            self.accumulate(nested=False)
            self.close(1)
            self.trips = before
            return
        value = self.phrases.number(1)
        self.guarded(
            pick(
                (
                    *(f"{name} += {value}",) * 4,
                    f"{name} -= {value}",
                    f"{name} = min({name}, {value})",
                    f"{name} = max({name}, {value})",
                    f"{name} = max({value}, {name})",
                    f"{name} *= {value} % 3 - 1",
                    f"k {pick('|&^')}= int({value})",
                    f"k = (k * 31 + int({value})) % 1000003",
                )
            )
        )

    def best(self) -> None:
        """Write the search for an extreme element, with the place where it stands."""
        self.scope.guardable = False
        value = self.phrases.element()
        self.scope.guardable = True
        self.line(f"if {value} {self.scope.pick(('<', '>', '<=', '>='))} s:")
        self.line(f"    s = {value}")
        self.line(f"    k = {self.scope.loop().text}")

    def leave(self) -> None:
        self.line(f"if {self.phrases.condition(0)}:")
        self.line(f"    {self.scope.pick(('break', 'continue', 'continue'))}")

    def check(self) -> None:
        """Write an assert; it mostly holds."""
        if self.scope.stray > 0 and self.scope.chance(0.3):
            self.line(f'assert {self.phrases.condition(0)}, "may fail"')
        else:
            self.line(f'assert {self.scope.loop().text} >= -{ITERATIONS}, "holds"')

    def branch(self, budget: int) -> None:
        self.line(f"if {self.phrases.condition()}:")
        self.body_of(budget - 1)
        if self.scope.chance(0.25):
            self.line(f"elif {self.phrases.condition(0)}:")
            self.body_of(budget - 1)
        if self.scope.chance(0.4):
            self.line("else:")
            self.body_of(budget - 1)

    def turns(self, budget: int) -> None:
        count = f"c{next(self.numbers)}"
        self.line(f"{count} = 0")
        self.line(f"while {count} < {self.scope.pick('235')} and {self.phrases.condition(0)}:")
        before = self.trips
        self.trips *= 5
        self.level += 1
        self.line(f"{count} += 1")
        self.level -= 1
        self.body_of(budget - 1)
        self.trips = before
        if self.scope.chance(0.2):
            self.line("else:")
            self.body_of(0, ("assign",))


def below(count: int) -> Range:
    """Return the interval of an index that counts to `count`."""
    return (0, count - 1) if count > 0 else None
