"""Finds the iteration that sets each element which keeps a least or greatest value, so that a gradient goes there.

    for n in range(N):                                   best = copy of out
        v = place[n]                                     for n: best[v] = max(best[v], x[n])
        if x[n] > out[v]:               ->               for n: if x[n] == best[v] and x[n] > out[v]:
            out[v] = x[n]                                           where[v] = min(where[v], n)
                                                         for n: if where[v] == n: out[v] = x[n]

The first two loops are reductions, which have no derivative. The last one stores into each element at most once: its
iterations are independent, and its gradient needs no tape. `>` and `<` keep the first of equal values, `>=` and `<=`
the last. NaN is never taken, and goes nowhere where an element begins with it: then nothing is equal to `best`. What an
element begins with has no place, so that its gradient goes on to what stored it. Where the nest's result was saved as
it is, that is `best`.

`where` has an element for each of `out`, and counts the loops whose indices do not stand in an index of `out`; loops
whose lengths depend on others are counted after one another, each among the iterations that the one before has left.

Invariant: every element has the same value afterwards, bit for bit. Values are compared again after they were computed
anew, so they are made of what is read with one rounded operation at most, and no tensor that the nest stores into.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import cast

from brickwork.analysis.definitions import LARGEST
from brickwork.analysis.searches import EXTREMES, MIRRORED, without_numbers
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64, DType
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Load,
    Node,
    Random,
    Read,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import (
    assigned_symbols,
    read_symbols,
    rewrite,
    rewrite_blocks,
    statements,
    substitute,
    walk,
)
from brickwork.legality import hazard, legality
from brickwork.records import dataclass
from brickwork.transform import scratch
from brickwork.transform.autodiff.slices import Place, Step, places
from brickwork.transform.scratch import Names, with_variables
from brickwork.transform.tensors import copied, sizes_of

_TAKEN = {"minimum": "lt", "maximum": "gt"}
_EXACT = {"neg", "abs", "minimum", "maximum", "floor", "ceil", "trunc"}
"""Operators of floats that round nothing."""
_ROUNDED = {"add", "sub", "mul", "truediv"}
"""Those that round as IEEE says, each alone."""
_HALF = {"neg", "abs", "minimum", "maximum"}
"""Operators whose results are numbers of a half type if the operands are."""


@dataclass(slots=True)
class Chosen:
    """A block whose extremes of elements are found by their places, and the scratch tensors for that.

    The loops that store what is taken are claimed to be independent, which adjoints of those in `meeting` are not.
    """

    block: Block
    made: list[Allocate] = field(default_factory=list[Allocate])
    meeting: set[Symbol] = field(default_factory=set[Symbol])


@dataclass(frozen=True, slots=True)
class _Known:
    """What is `active`, the tensors that the host makes, and those that change places."""

    active: Collection[Symbol | Tensor]
    allocated: Mapping[Tensor, Allocate]
    exchanged: Collection[Tensor]

    def alike(self, expression: Expression, tensor: Tensor, other: Tensor) -> Expression:
        """Return an expression with the sizes of the other of two tensors that are made alike."""
        one, two = self.allocated.get(tensor), self.allocated.get(other)
        if one is None or two is None or one.sizes != two.sizes:
            return expression

        def visit(node: Node) -> Node:
            return replace(node, tensor=other) if isinstance(node, Size) and node.tensor == tensor else node

        return rewrite(expression, visit)


def choose_element_extremes(
    block: Block,
    active: Collection[Symbol | Tensor],
    allocated: Mapping[Tensor, Allocate],
    saved: Mapping[Tensor, Tensor],
    names: Names,
) -> Chosen:
    """Return a kernel's body with the least and greatest elements in `active` found by their places.

    `allocated` are the tensors that the host makes, `saved` the results that are known as they are after the kernel.
    """
    known, chosen = _Known(active, allocated, effects(block).rebinds), Chosen(block)
    place = 0
    while place < len(chosen.block):
        root = chosen.block[place]
        update = _update_of(root, chosen.block, known) if isinstance(root, For) else None
        if update is None:
            place += 1
            continue
        tensor, made = update.store.tensor, allocated.get(update.store.tensor)
        is_first = tensor not in effects(chosen.block[:place]).changes
        is_last = tensor not in effects(chosen.block[place + 1 :]).changes
        fill = made.fill if made is not None and is_first and isinstance(made.fill, Constant) else None
        nests = (
            *update.rest,
            *_Finder(update, active, names, chosen).nests(fill, saved.get(tensor) if is_last else None),
        )
        chosen.block = (*chosen.block[:place], *nests, *chosen.block[place + 1 :])
    return chosen


# ---------------------------------------------------------------- what an update is


@dataclass(frozen=True, slots=True)
class _Update:
    """The one update of a tensor in a nest: its element becomes `value` where that is better by `compare`.

    Of the steps that lead to it `levels` are the assignments before, in their own block and last those beside it, as
    far as they are needed. `beside` is what else happens where a value is taken. `keys` tell the iterations apart that
    reach one element, in their order: the first of them decides first. `rest` is the nest without all that, and
    `values` says what variables are worth.
    """

    store: Store
    steps: tuple[Step, ...]
    levels: tuple[tuple[Assign, ...], ...]
    compare: str
    value: Expression
    beside: Block
    keys: tuple[Expression, ...]
    rest: Block
    values: Mapping[Symbol, Expression]


@dataclass(frozen=True, slots=True)
class _Form:
    """How a store keeps an extreme: the comparison, the value, and the branch that it is made in, if it is."""

    compare: str
    value: Expression
    choice: If | None = None


@legality
def _update_of(root: For, block: Block, known: _Known) -> _Update | None:
    """Return an update of an active tensor in a nest of a kernel's body that can be taken apart, if there is one."""
    if effects(root).jumps:
        return None
    for place in places(root):
        tensor = place.store.tensor
        if tensor in known.active and tensor not in known.exchanged:
            update = _taken_apart(root, place, block, known)
            if update is not None:
                return update
    return None


@legality
def _taken_apart(root: For, place: Place, block: Block, known: _Known) -> _Update | None:
    found, store = effects(root), place.store
    counts = Counter(node.symbol for node in statements(root) if isinstance(node, Assign))
    values = _values(place, counts)
    form = _form(place, values)
    if form is None:
        return None
    steps, before, removed = place.steps, place.before, form.choice or store
    beside: Block | None = ()
    if form.choice is not None:
        steps, before = place.steps[:-1], (*place.steps[-1].before, *place.before)
        beside = _beside(root, form.choice, store, known, values)
    keys = _keys(place, values, found.assigns)
    rest = _without(root, removed, store.tensor)
    if beside is None or rest is None or not keys:
        return None
    levels, needed = _levels(steps, before, (*store.indices, form.value), beside, counts)
    led = (*(node.value for level in levels for node in level), *_heads(steps), *store.indices)
    if needed & found.assigns or effects((*led, form.value, *beside)).loads & found.changes:
        return None
    stays = tuple(rest if node is root else node for node in block)
    if _assigned_less(root, rest) & read_symbols(stays):
        return None
    kind, opaque = store.tensor.type.dtype, counts.keys() - values.keys()
    if not _is_exact(_plain(form.value, values), kind, opaque):
        return None
    if not all(_is_steady(_plain(node, values), opaque) for node in (*_heads(steps), *store.indices)):
        return None
    return _Update(store, steps, levels, form.compare, form.value, beside, keys, _kept(rest, stays), values)


@legality
def _form(place: Place, values: Mapping[Symbol, Expression]) -> _Form | None:
    """Return how a store keeps an extreme, if it does."""
    store = place.store
    indices = [_plain(index, values) for index in store.indices]

    def is_element(node: Expression) -> bool:
        node = _plain(node, values)
        return isinstance(node, Load) and node.tensor == store.tensor and [*node.indices] == indices

    match store.value:
        case Apply(operator=operator, operands=(left, right)) if operator.name in _TAKEN and is_element(left):
            # Of NaN and a number the first one is taken: the element has to be that.
            return _Form(_TAKEN[operator.name], right)
        case _:
            pass
    step = place.steps[-1]
    match step.into:
        case If(condition=Apply(operator=operator, operands=(left, right)), otherwise=()) as choice:
            if operator.name in MIRRORED:
                for compare, value, best in ((operator.name, left, right), (MIRRORED[operator.name], right, left)):
                    if is_element(best) and _plain(value, values) == _plain(store.value, values):
                        return _Form(compare, store.value, choice)
        case _:
            pass
    return None


@legality
def _values(place: Place, counts: Mapping[Symbol, int]) -> Mapping[Symbol, Expression]:
    """Return what the variables are worth that a nest assigns once, on the way to a store."""
    values: dict[Symbol, Expression] = {}
    for node in (*(node for step in place.steps for node in step.before), *place.before):
        if isinstance(node, Assign) and counts[node.symbol] == 1:
            value = substitute(node.value, values)
            if _is_short(value):
                values[node.symbol] = value
    return values


def _is_short(value: Expression) -> bool:
    """Whether a value is asked for, since that takes little time."""
    return sum(1 for _ in walk(value)) <= LARGEST


def _plain(expression: Expression, values: Mapping[Symbol, Expression]) -> Expression:
    return without_numbers(substitute(expression, values))


def _heads(steps: Sequence[Step]) -> tuple[Expression, ...]:
    """Return the bounds and conditions of the loops and branches that lead to a statement."""
    heads = ((into.start, into.stop) if isinstance(into := step.into, For) else (into.condition,) for step in steps)
    return tuple(item for head in heads for item in head)


@legality
def _levels(
    steps: Sequence[Step], before: Block, roots: Sequence[Expression], beside: Block, counts: Mapping[Symbol, int]
) -> tuple[tuple[tuple[Assign, ...], ...], frozenset[Symbol]]:
    """Return the assignments that an update needs, of each block on the way to it, and the variables that are left."""
    blocks = (*(step.before for step in steps), before)
    needed = read_symbols(roots) | (read_symbols(beside) - assigned_symbols(beside))
    levels: list[tuple[Assign, ...]] = []
    for depth in range(len(steps), -1, -1):
        level: list[Assign] = []
        for node in reversed(blocks[depth]):
            if isinstance(node, Assign) and node.symbol in needed and counts[node.symbol] == 1:
                level.append(node)
                needed = (needed - {node.symbol}) | read_symbols(node.value)
        levels.append(tuple(reversed(level)))
        around = steps[max(depth - 1, 0) : depth]
        indices = {step.into.index for step in around if isinstance(step.into, For)}
        needed = (needed - indices) | read_symbols(_heads(around))
    return tuple(reversed(levels)), needed


@legality
def _keys(place: Place, values: Mapping[Symbol, Expression], assigned: Collection[Symbol]) -> tuple[Expression, ...]:
    """Return what tells the iterations apart that reach one element; nothing if one alone does."""
    own = {node.symbol for index in place.store.indices if isinstance(node := _plain(index, values), Read)}
    keys: list[Expression] = []
    for loop in place.loops:
        if loop.index in own:
            continue
        if keys and not read_symbols((loop.start, loop.stop)) & {*assigned}:
            offset = build.sub(build.read(loop.index), loop.start)
            keys[-1] = build.add(build.mul(keys[-1], build.iterations(loop.start, loop.stop)), offset)
        else:
            keys.append(build.read(loop.index))
    return tuple(keys)


@legality
def _beside(root: For, choice: If, store: Store, known: _Known, values: Mapping[Symbol, Expression]) -> Block | None:
    """Return what a branch does beside the store: in the end it is what the iteration does that sets an element.

    None where that is not so.
    """
    beside = tuple(node for node in choice.then if node is not store)
    stores = [node for node in beside if isinstance(node, Store)]
    assigns = [node for node in beside if isinstance(node, Assign)]
    if len(stores) + len(assigns) < len(beside):
        return None
    own, left = dict(values), {node.symbol for node in assigns}
    for node in beside:
        if read_symbols(node) & left:
            return None
        if isinstance(node, Assign):
            own[node.symbol] = substitute(node.value, own)
            left -= {node.symbol}
    indices = [_plain(index, own) for index in store.indices]
    for other in stores:
        touched = sum(isinstance(node, Load | Store) and node.tensor == other.tensor for node in walk(root))
        if touched != 1:
            return None
        if [_plain(known.alike(index, other.tensor, store.tensor), own) for index in other.indices] != indices:
            return None
    return beside


@legality
def _without(root: For, removed: Statement, tensor: Tensor) -> For | None:
    """Return a nest without an update, or None where something else in it touches the tensor."""

    def visit(block: Block) -> Block:
        return tuple(
            node
            for node in block
            if node is not removed and not (isinstance(node, Assign) and tensor in effects(node.value).loads)
        )

    rest = replace(root, body=rewrite_blocks(root.body, visit))
    touched = any(isinstance(node, Load | Store) and node.tensor == tensor for node in walk(rest))
    return None if touched else rest


def _assigned_less(root: For, rest: For) -> frozenset[Symbol]:
    """Return the variables that a nest no longer assigns wherever it did."""
    counts = [Counter(node.symbol for node in statements(nest) if isinstance(node, Assign)) for nest in (root, rest)]
    return frozenset(counts[0] - counts[1])


def _kept(rest: For, block: Block) -> Block:
    """Return a nest in a kernel's body, if it does anything."""
    return (rest,) if _is_needed(rest, block) else ()


@hazard
def _is_needed(rest: For, block: Block) -> bool:
    """Whether a nest in a kernel's body stores something, or leaves something that is read elsewhere."""
    found = effects(rest)
    if found.stores:
        return True
    return any(found.assigns & read_symbols(node) for node in block if node is not rest)


# ---------------------------------------------------------------- what is the same when it is computed again


@legality
def _is_exact(value: Expression, kind: DType, opaque: Collection[Symbol]) -> bool:
    """Whether a value is the same each time that it is computed, and is stored in a tensor of a type as it is."""
    nodes = (cast("Expression", node) for node in walk(value))
    floats = [node for node in nodes if node.dtype.is_float]
    if kind.size == 2:
        return all(_is_half(node, kind) for node in floats)
    rounded = sum(isinstance(node, Apply) and node.operator.name in _ROUNDED for node in floats)
    return rounded <= 1 and _is_steady(value, opaque)


@legality
def _is_half(node: Expression, kind: DType) -> bool:
    """Whether a part of a value is one of a half type."""
    match node:
        case Load(tensor=tensor):
            return tensor.type.dtype == kind
        case Apply(operator=operator):
            return operator.name in _HALF
        case _:
            return False


@legality
def _is_steady(value: Expression, opaque: Collection[Symbol]) -> bool:
    """Whether a value is the same each time that it is computed: nothing in it may be rounded in more than one way.

    A product and a sum may be rounded as one; functions are made anew for each kind of code.
    """
    for node in walk(value):
        match node:
            case Read(symbol=symbol) if symbol in opaque:
                return False
            case Random():
                return False
            case Apply(operator=operator, operands=operands, dtype=dtype) if dtype.is_float:
                if operator.name not in _EXACT | _ROUNDED:
                    return False
                if operator.name in {"add", "sub"} and any(map(_is_product, operands)):
                    return False
            case _:
                pass
    return True


def _is_product(node: Expression) -> bool:
    while isinstance(node, Apply) and node.operator.name == "neg":
        (node,) = node.operands
    return isinstance(node, Apply) and node.operator.name == "mul"


# ---------------------------------------------------------------- the nests


@dataclass(frozen=True, slots=True)
class _Finder:
    """Writes the nests for one update."""

    update: _Update
    active: Collection[Symbol | Tensor]
    names: Names
    chosen: Chosen

    def nests(self, fill: Expression | None, final: Tensor | None) -> Iterator[Statement]:
        """Yield what does an update. `fill` is what all elements begin with, `final` holds them as they are at last."""
        store, value, compare = self.update.store, self.update.value, self.update.compare
        best = final
        if best is None:
            best = self.made("best", store.tensor.type.dtype, fill)
            if fill is None:
                yield from copied(store.tensor, best, self.names)
            kept = build.apply(EXTREMES[compare], self.names.load(best, *store.indices), value)
            yield self.nest((self.names.store(best, *store.indices, kept),))
        began = self.names.load(store.tensor, *store.indices) if fill is None else build.cast(fill, value.dtype)
        is_best = build.apply("eq", value, self.names.load(best, *store.indices))
        hit = build.apply("logical_and", is_best, build.apply(compare, value, began))
        first = compare in {"lt", "gt"}
        nowhere = build.integer(2**63 - 1 if first else -(2**63))
        here: Expression = build.constant(True, BOOL)
        for key in self.update.keys:
            where = self.made("where", INT64, nowhere)
            place = self.names.load(where, *store.indices)
            nearest = build.apply("minimum" if first else "maximum", place, key)
            noted = self.names.store(where, *store.indices, nearest)
            yield self.nest((If(condition=build.apply("logical_and", hit, here), then=(noted,)),))
            here = build.apply("logical_and", here, build.apply("eq", place, key))
        known = {node.symbol for level in self.update.levels for node in level}
        beside = tuple(node for node in self.update.beside if not (isinstance(node, Assign) and node.symbol in known))
        last = self.nest((If(condition=here, then=(*beside, replace(store, value=value))),), claimed=True)
        own = {node.index for node in statements(last) if isinstance(node, For)}
        if not self.stay_apart():
            self.chosen.meeting |= own
        yield last

    def made(self, name: str, dtype: DType, fill: Expression | None) -> Tensor:
        """Return a new tensor of the sizes of the one that is updated."""
        tensor = self.update.store.tensor
        made, allocation = self.names.tensor(f"{tensor.name}_{name}", dtype, *sizes_of(tensor))
        self.chosen.made.append(replace(allocation, fill=fill))
        return made

    def nest(self, leaf: Block, *, claimed: bool = False) -> Statement:
        """Return the loops and branches that lead to the update around something else, with variables of their own."""
        block: Block = (*self.update.levels[-1], *leaf)
        for step, level in zip(reversed(self.update.steps), reversed(self.update.levels[:-1]), strict=True):
            into = step.into
            if isinstance(into, For):
                inner: Statement = replace(into, body=block, claimed=into.claimed or claimed)
            else:
                then, otherwise = (block, ()) if step.then else ((), block)
                inner = replace(into, then=then, otherwise=otherwise)
            block = (*level, inner)
        fresh = {
            symbol: self.names.symbol(symbol.name, symbol.dtype)
            for symbol in sorted(assigned_symbols(block), key=lambda item: item.number)
        }
        (root,) = block
        return scratch.copied(with_variables(root, fresh), self.names)

    @legality
    def stay_apart(self) -> bool:
        """Whether no two iterations that store into different elements read one active element or variable."""
        update = self.update
        read = [*update.beside, *(node.value for level in update.levels for node in level), update.value]
        loads: dict[Tensor, list[Expression]] = {}
        around = {step.into.index for step in update.steps if isinstance(step.into, For)}
        for node in walk(read):
            match node:
                case Read(symbol=symbol) if symbol in self.active and symbol not in update.values:
                    return False
                case Load(tensor=tensor, indices=indices) if tensor in self.active:
                    plain = [_plain(index, update.values) for index in indices]
                    if loads.setdefault(tensor, plain) != plain:
                        return False
                    if not around <= {node.symbol for node in plain if isinstance(node, Read)}:
                        return False
                case _:
                    pass
        return True
