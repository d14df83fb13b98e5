"""Writes nests whose integers are carried from iteration to iteration, and used before and after they change.

Copies of last time's index, copies of copies, swaps, counters, and integers that are moved by elements or under
conditions serve as indices, offsets, bounds and steps, in `for` and `while` loops, after them and in the next ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from support.fuzz.plan import Branch, Item, Leave, Loop, Move, Shape, State, Use, Walk
from support.fuzz.scope import Array, Range, Scope, Whole, clipped, extent, hull, joined, kept, wrapped
from support.fuzz.writer import ITERATIONS, Writer

_SHORT = 12
"""How often a loop runs at most whose bound is carried."""
_STATEMENTS = ("store", "store", "update", "update", "accumulate", "local")


def carried_nest(writer: Writer) -> None:
    """Write variables, nests that carry them, and uses after the nests; or any nest where no tensor has an axis."""
    scope = writer.scope
    if not any(array.written and array.sizes for array in scope.arrays):
        writer.nest()
        return
    writer.phrases.readable = list(scope.arrays)
    planner = _Planner(writer, [item.text for item in scope.carried])
    before = {item.text: item.range for item in scope.carried}
    items = planner.program()
    after = Walk().block(items, before)
    for item in items:
        _write(writer, planner.names, item)
    scope.carried = [Whole(name, after[name]) for name in planner.names]


# ---------------------------------------------------------------- writing a plan


def _write(writer: Writer, names: list[str], item: Item) -> None:
    scope = writer.scope
    scope.carried = [Whole(name, item.seen.get(name)) for name in names]
    match item:
        case Use(name=name):
            _use(writer, Whole(name, item.seen.get(name)))
        case Move():
            writer.line(item.text())
        case Leave(word=word):
            writer.line(f"if {_condition(writer)}:")
            writer.line(f"    {word}")
        case Branch():
            writer.line(f"if {_condition(writer)}:")
            _write_block(writer, names, item.then)
            if item.otherwise:
                writer.line("else:")
                _write_block(writer, names, item.otherwise)
        case Loop():
            _write_loop(writer, names, item)
        case _:
            raise AssertionError(item)


def _write_block(writer: Writer, names: list[str], items: list[Item]) -> None:
    writer.level += 1
    for item in items:
        _write(writer, names, item)
    writer.level -= 1


def _write_loop(writer: Writer, names: list[str], item: Loop) -> None:
    before, shape = writer.trips, item.shape(item.seen)
    writer.line(shape.head)
    writer.trips *= max(shape.trips, 1)
    if item.index:
        writer.scope.loops.append(Whole(item.index, shape.inside.get(item.index) if item.seen else None))
    _write_block(writer, names, item.body)
    if item.index:
        writer.scope.loops.pop()
    writer.trips = before


def _condition(writer: Writer) -> str:
    """Return a condition on an index, a variable, an element, or anything."""
    scope, pick = writer.scope, writer.scope.pick
    places = [*scope.loops, *scope.carried]
    one, other = pick(places).text, pick(places).text
    scope.guardable = False
    element = f"{writer.phrases.element()} {pick('<>')} {pick(('0', '1', 's'))}"
    scope.guardable = True
    simple = (f"{one} % {pick('23')} == {pick('01')}", f"{one} {pick(('<', '>', '!='))} {pick((other, *'012np'))}")
    return pick((*simple, *simple, element, element, "flag", writer.phrases.condition(0)))


def _use(writer: Writer, whole: Whole) -> None:
    """Write a statement with an index made of a variable: a store, an update, a read, or any with such indices."""
    scope, pick = writer.scope, writer.scope.pick
    written = [array for array in scope.arrays if array.written and array.sizes]
    readable = [array for array in scope.arrays if array.sizes]
    kind = pick(("store", "store", "update", "read", "read", "sum", "any"))
    match kind:
        case "store" | "update":
            writer.store_to(_place(writer, pick(written), whole), update=kind == "update")
        case "read":
            value = _place(writer, pick(readable), whole)
            target = writer.target() if scope.loops else _place(writer, pick(written), whole)
            writer.guarded(f"{target} {pick(('=', '+='))} {value}")
        case "any" if scope.loops:
            scope.focus = whole
            writer.statement(0, _STATEMENTS)
            scope.focus = None
        case _:
            writer.guarded(f"{pick('st')} {pick(('=', '+=', '+=', '-='))} {_place(writer, pick(readable), whole)}")


def _place(writer: Writer, array: Array, whole: Whole) -> str:
    """Return an element that has an integer as one of its indices, mostly as it is."""
    scope = writer.scope
    if scope.chance(0.3):
        scope.focus = whole
        place = writer.phrases.element(array)
        scope.focus = None
        return place
    chosen = scope.random.randrange(len(array.sizes))
    places = [
        kept(scope, whole if axis == chosen or not scope.loops else scope.loop(), size)
        for axis, size in enumerate(array.sizes)
    ]
    return f"{array.name}[{', '.join(places)}]"


# ---------------------------------------------------------------- planning


@dataclass(slots=True)
class _Planner:
    """Plans nests: which integers there are, how they change, and where they are used."""

    writer: Writer
    names: list[str]
    """Integers that are carried."""
    fixed: set[str] = field(default_factory=set[str])
    """Those that count the iterations of an open `while`, and change nowhere else."""
    indices: list[str] = field(default_factory=list[str])
    """Indices of the open loops."""
    home: Whole = field(init=False)
    """The axis that most integers stay within."""
    trips: int = 1
    skippable: bool = True
    """Whether a `continue` in the open loop goes on to the next iteration."""

    def __post_init__(self) -> None:
        """Choose the axis."""
        arrays = [array for array in self.scope.arrays if array.sizes]
        self.home = self.scope.pick([*(array for array in arrays if array.written), *arrays]).sizes[0]

    @property
    def scope(self) -> Scope:
        """The names of the program."""
        return self.writer.scope

    def program(self) -> list[Item]:
        """Plan first values, a nest, uses after it, and perhaps a nest that goes on with the same integers."""
        chance = self.scope.chance
        known = [name for name in self.names if chance(0.6)]
        items: list[Item] = [self.start(name) for name in known if chance(0.4)]
        if len(known) < 3:
            items += [self.start(self.new()) for _ in range(self.scope.pick((1, 2, 2, 3)))]
        items += self.loop(2)
        if chance(0.4):
            items.append(self.use())
        if chance(0.35):
            items += [*self.loop(1), self.use()]
        return items

    def new(self) -> str:
        """Return a new integer."""
        self.names.append(f"q{next(self.writer.numbers)}")
        return self.names[-1]

    def use(self, name: str = "") -> Use:
        """Plan a use of an integer, or of any."""
        return Use(name or self.scope.pick(self.names))

    def start(self, name: str) -> Move:
        """Plan a first value: an argument, a size or a literal."""
        pick = self.scope.pick
        values = [
            self.home,
            self.home.shifted(-1),
            self.home.shifted(-1),
            *(self.scope.starts * (8 if self.scope.stray else 3)),
        ]
        values += [Whole(text, (int(text), int(text))) for text in ("0", "0", "1", "2", "-1")]
        value = pick(values)
        if not value.text.lstrip("-").isdigit() and self.scope.chance(0.1):
            value = value.shifted(pick((-1, 1)))
        return _set(name, value.text, lambda _: value.range)

    # ------------------------------------------------------------ blocks

    def block(self, depth: int) -> list[Item]:
        """Plan the body of a loop: uses and changes in some order, and other things between them."""
        pick, scope, use, move = self.scope.pick, self.scope, self.use, self.move
        free = [name for name in self.names if name not in self.fixed]
        if not free:
            return [use(), *(self.loop(depth - 1) if depth > 0 and scope.chance(0.3) else [])]
        one = pick(free)
        other = pick([name for name in free if name != one] or free)
        change = self.copy(other, one)
        forms: tuple[Callable[[], list[Item]], ...] = (
            lambda: [use(one), move(one), use(one)],
            lambda: [use(one), move(one), use(one)],
            lambda: [move(one), use(one)],
            lambda: [move(one), use(one), move(one), use(one)],
            lambda: [change, move(one), use(other)],
            lambda: [change, move(one), use(other)],
            lambda: [change, move(one), use(other), use(one)],
            lambda: [change, use(other), move(one), use(other)],
            lambda: [use(one), self.swap(one, other), use(other), move(one), use(one)],
            lambda: [self.maybe(one, depth), use(one)],
            lambda: [use(one), self.maybe(one, depth), use(one)],
        )
        if self.indices and scope.chance(0.35):
            items: list[Item] = [change, self.from_index(one), use(other)]
        else:
            items = pick(forms)()
        while scope.chance(0.4) and len(items) < 8:
            place = scope.random.randrange(len(items) + 1)
            kind = pick(("use", "use", "move", "move", "maybe", "loop", "loop", "leave"))
            items[place:place] = self.more(kind, pick(free), depth)
        return items

    def more(self, kind: str, name: str, depth: int) -> list[Item]:
        """Plan something between the other items of a block."""
        match kind:
            case "move":
                return [self.move(name)]
            case "maybe":
                return [self.maybe(name, depth)]
            case "loop" if depth > 0:
                return self.loop(depth - 1)
            case "leave" if self.scope.chance(0.4):
                return [Leave(self.scope.pick(("break", "continue")) if self.skippable else "break")]
            case _:
                return [self.use()]

    def maybe(self, name: str, depth: int) -> Branch:
        """Plan a change under a condition, or one of two."""
        chance = self.scope.chance
        then: list[Item] = [self.move(name)]
        if chance(0.3):
            then.insert(self.scope.pick((0, 1)), self.use(name))
        if depth > 0 and chance(0.15):
            then = self.loop(depth - 1)
        return Branch(then, [self.move(name), *([self.use()] if chance(0.3) else [])] if chance(0.3) else [])

    # ------------------------------------------------------------ changes

    def move(self, name: str) -> Move:
        """Plan a change of an integer."""
        pick = self.scope.pick
        free = pick([item for item in self.names if item not in self.fixed])
        kinds = ["count"] * 5 + ["element"] * 2 + ["within"] * 3 + ["copy", "swap", "added", "choice", "scale", "start"]
        match pick(kinds + (["index"] * 5 if self.indices else [])):
            case "index":
                return self.from_index(name)
            case "count":
                step, operator = pick((1, 1, 1, 1, 2, 3)), pick("+-")
                form = pick(("{0} {1}= {2}", "{0} {1}= {2}", "{0} = {0} {1} {2}"))
                return Move(
                    lambda: form.format(name, operator, step),
                    lambda state: {name: wrapped(joined(state[name], (step, step), operator))},
                )
            case "element":
                return self.from_element(name, added=False)
            case "added":
                return self.from_element(name, added=True)
            case "copy":
                return self.copy(name, pick(self.names))
            case "swap":
                return self.swap(name, free)
            case "choice":
                other, limit = pick([*self.indices, *self.names]), pick((*"012np", free))
                test = f"{name} {pick(('<', '>=', '!='))} {limit}"
                return _set(
                    name, f"{other} if {test} else {name}", lambda state: hull(state.get(other), state.get(name))
                )
            case "scale":
                return self.scale(name, free)
            case "start":
                return self.start(name)
            case _:
                return self.within(name)

    def copy(self, target: str, name: str) -> Move:
        """Plan a copy of an integer, or of its neighbour."""
        offset = self.scope.pick((0, 0, 0, 0, 1, -1))
        text = Whole(name, None).shifted(offset).text
        return _set(target, text, lambda state: joined(state[name], (offset, offset), "+"))

    def swap(self, name: str, other: str) -> Move:
        """Plan a swap, or a shift that takes an index in."""
        last = self.scope.pick(self.indices) if self.indices and self.scope.chance(0.3) else name
        if name == other:
            return _set(name, last, lambda state: state[last])
        return Move(
            lambda: f"{name}, {other} = {other}, {last}", lambda state: {name: state[other], other: state[last]}
        )

    def from_index(self, name: str) -> Move:
        """Plan a copy of an index, of its neighbour, or of the index from the other end."""
        index = self.scope.pick(self.indices)
        if self.scope.chance(0.15):
            last = self.home.shifted(-1)
            return _set(name, f"{last.text} - {index}", lambda state: joined(last.range, state[index], "-"))
        return self.copy(name, index)

    def scale(self, name: str, other: str) -> Move:
        """Plan a product, a quotient, or a sum with an index or another integer."""
        index = self.scope.pick([*self.indices, *self.names])

        def added(state: State, operator: str = "+") -> Range:
            return wrapped(joined(state[index], state[name], operator))

        moves = (
            _set(name, f"{name} // 2", lambda state: _halved(state[name])),
            _set(name, f"{name} * 2", lambda state: joined(state[name], (2, 2), "*")),
            _set(name, f"{index} - {name}", lambda state: added(state, "-")),
            Move(lambda: f"{name} += {index}", lambda state: {name: added(state)}),
            Move(
                lambda: f"{name}, {other} = {other}, {name} + {index}",
                lambda state: {name: state[other], other: added(state)},
            )
            if name != other
            else _set(name, f"{name} + {index}", added),
        )
        return self.scope.pick(moves)

    def within(self, name: str) -> Move:
        """Plan a change that stays within the axis, or nearly."""
        size, step = self.home, self.scope.pick((1, 1, 2, 3))
        top = max(extent(size) - 1, 0)
        forms: tuple[tuple[str, Callable[[Range], Range]], ...] = (
            (f"({name} + {step}) % {size.text}", lambda _: (0, top)),
            (f"({name} - {step}) % {size.text}", lambda _: (0, top)),
            (f"max({name} - {step}, 0)", lambda old: clipped(joined(old, (step, step), "-"), low=0)),
            (f"min({name} + {step}, {size.text} - 1)", lambda old: clipped(joined(old, (step, step), "+"), high=top)),
            (f"{size.text} - 1 - {name}", lambda old: joined((top, top), old, "-")),
        )
        text, effect = self.scope.pick(forms)
        return _set(name, text, lambda state: effect(state[name]))

    def from_element(self, name: str, *, added: bool) -> Move:
        """Plan an element that an integer becomes or that is added to it, mostly of a table of indices."""
        scope = self.scope
        tables = [array for array in scope.arrays if array.indices]
        others = [array for array in scope.arrays if array.sizes]
        array = scope.pick(tables if tables and scope.chance(0.7) else others)
        limit = array.limit if array.strays else max(array.limit - 1, 0)
        spread: Range = (-array.limit if array.strays else 0, limit) if array.indices else None
        end = ""
        if spread is None and scope.chance(0.8):
            end, spread = f" % {self.home.text}", (0, max(extent(self.home) - 1, 0))

        def text() -> str:
            scope.guardable = False
            element = self.writer.phrases.element(array)
            scope.guardable = True
            return f"{name} {'+=' if added else '='} int({element}){end}"

        def effect(state: State) -> State:
            found = spread or wrapped((0, 2**63))
            return {name: wrapped(joined(state[name], found, "+")) if added else found}

        return Move(text, effect)

    # ------------------------------------------------------------ loops

    def loop(self, depth: int) -> list[Item]:
        """Plan a loop; one in another has a carried bound, step or condition, now and then."""
        inside = ["bound"] * 4 + ["step"] * 2 if self.indices else ["bound"]
        match self.scope.pick(["size"] * 6 + ["while"] * 2 + ["turns"] + inside):
            case "while":
                return self.counted(depth)
            case "turns":
                return self.turns(depth)
            case "bound":
                return [self.bounded(depth)]
            case "step":
                return [self.stepped(depth)]
            case _:
                return [self.plain(depth)]

    def inner(self, index: str, trips: int, depth: int, *, skippable: bool = True) -> list[Item]:
        """Plan the body of a loop."""
        before = self.trips, self.skippable
        self.trips, self.skippable = self.trips * max(trips, 1), skippable
        self.indices += [index] if index else []
        body = self.block(depth)
        del self.indices[len(self.indices) - bool(index) :]
        self.trips, self.skippable = before
        return body

    def plain(self, depth: int) -> Loop:
        """Plan a loop over the axis."""
        size, index = self.home, f"i{next(self.writer.numbers)}"
        long = extent(size)
        text, low, high = self.scope.pick(
            (
                *((size.text, 0, long),) * 5,
                (f"1, {size.text}", 1, long),
                (f"{size.text} - 1, -1, -1", 0, long),
                (f"{size.text} - 1", 0, long - 1),
            )
        )
        if self.trips * long > ITERATIONS:
            text, low, high = f"min(3, {size.text})", 0, min(3, long)
        found = Shape(f"for {index} in range({text}):", {index: (low, high - 1)}, max(high - low, 0))
        return Loop(index, lambda _: found, self.inner(index, found.trips, depth), exact=True)

    def bounded(self, depth: int) -> Loop:
        """Plan a loop with a carried bound, cut short where that may be large."""
        name, index = self.scope.pick(self.names), f"i{next(self.writer.numbers)}"
        short = min(_SHORT, max(ITERATIONS // self.trips, 1))
        kind = self.scope.pick(("to", "to", "down", "window", "rest"))
        size, long = self.home.text, extent(self.home)
        if kind == "rest" and long > short:
            kind = "to"

        def shape(state: State) -> Shape:
            low, high = state.get(name) or (0, 0)
            end = name if high <= short else f"min({name}, {short})"
            trips, spread = max(min(high, short), 0), (0, max(min(high, short) - 1, 0))
            text = end if kind == "to" else f"{end} - 1, -1, -1"
            if kind == "window":
                text, spread, trips = f"{name}, {name} + 3", wrapped((low, high + 2)), 3
            if kind == "rest":
                begin = name if low >= 0 else f"max({name}, 0)"
                text, spread, trips = f"{begin}, {size}", (min(max(low, 0), long), long - 1), max(long - low, 0)
                trips = min(trips, long)
            return Shape(f"for {index} in range({text}):", {index: spread if trips else None}, trips)

        return Loop(index, shape, self.inner(index, short, depth))

    def stepped(self, depth: int) -> Loop:
        """Plan a loop with a carried step, which is positive unless indices may leave tensors."""
        name, index = self.scope.pick(self.names), f"i{next(self.writer.numbers)}"
        size, long = self.home.text, extent(self.home)
        if self.trips * long > ITERATIONS:
            size, long = f"min(3, {size})", min(3, long)
        any_step, back = self.scope.chance(self.scope.stray), self.scope.chance(0.3)

        def shape(state: State) -> Shape:
            low, _ = state.get(name) or (1, 1)
            step = name if low >= 1 or any_step else f"max({name}, 1)"
            text = f"{size} - 1, -1, -{step}" if back else f"0, {size}, {step}"
            return Shape(f"for {index} in range({text}):", {index: (0, long - 1) if long else None}, long)

        return Loop(index, shape, self.inner(index, long, depth))

    def counted(self, depth: int) -> list[Item]:
        """Plan a `while` on an integer that each iteration moves on."""
        free = [name for name in self.names if name not in self.fixed]
        long = extent(self.home)
        if not free or self.trips * long > ITERATIONS:
            return self.turns(depth)
        name, size, step = self.scope.pick(free), self.home.text, self.scope.pick((1, 1, 1, 2))
        up, first, searching = self.scope.chance(0.6), self.scope.chance(0.4), self.scope.chance(0.25)
        lines = [array for array in self.scope.arrays if len(array.sizes) == 1 and array.sizes[0] == self.home]
        searching &= bool(lines)
        test = f" and {self.scope.pick(lines).name}[{name}] != {self.scope.pick('012')}" if searching else ""

        def shape(state: State) -> Shape:
            low, high = state.get(name) or (0, 0)
            sure = low >= 0 if up else high < long
            plain = f"{name} < {size}" if up else f"{name} >= 0"
            text = plain if sure else f"0 <= {name} < {size}"
            inside = clipped((low, high), low=0, high=long - 1)
            met = high >= 0 and low < long and long > 0
            return Shape(f"while {text}{test}:", {name: inside if met else None}, long if met else 0)

        operator = "+" if up else "-"
        on = Move(
            lambda: f"{name} {operator}= {step}",
            lambda state: {name: wrapped(joined(state[name], (step, step), operator))},
        )
        self.fixed.add(name)
        body = self.inner("", long, depth, skippable=first)
        self.fixed.remove(name)
        return [Loop("", shape, [on, self.use(name), *body] if first else [self.use(name), *body, on])]

    def turns(self, depth: int) -> list[Item]:
        """Plan a `while` that runs a few times, under a condition that may end it."""
        count = f"c{next(self.writer.numbers)}"
        limit = self.scope.pick((2, 3, 5)) if self.trips * 5 <= ITERATIONS else 1
        test = self.scope.pick(("", "", f" and {self.scope.pick(self.names)} {self.scope.pick(('>', '<', '!='))} 1"))
        found = Shape(f"while {count} < {limit}{test}:", {count: (0, limit)}, limit)
        body: list[Item] = [Move(lambda: f"{count} += 1", lambda _: {count: (1, limit)})]
        body += self.inner(count, limit, depth)
        return [_set(count, "0", lambda _: (0, 0)), Loop(count, lambda _: found, body)]


def _set(name: str, text: str, value: Callable[[State], Range]) -> Move:
    """Return the assignment of an expression."""
    return Move(lambda: f"{name} = {text}", lambda state: {name: wrapped(value(state))})


def _halved(spread: Range) -> Range:
    return None if spread is None else (spread[0] // 2, spread[1] // 2)
