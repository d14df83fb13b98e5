"""Elements of gradients that are stored once: not added to by loop after loop, and rounded where they are stored.

    for j in range(n): s += g[j] * v[j]            for j in range(n): s += g[j] * v[j]
    for j in range(n): a[j] = g[j] * c             for j in range(n):
    for j in range(n): a[j] = a[j] + s * v[j]  ->      r[j] = g[j] * c + s * v[j]
    for i in range(m): r[i] = a[i]

What the loops before add is computed again in the last one. What branches of an iteration add to an element of its own
is added up in a variable, and stored after them: then all elements are stored, and need not be filled. That is where
each iteration surely has an element: a branch may be taken only where there is one.

    if x[i] > 0: r[i] = r[i] + g[i]                s = 0.0
    else: r[i] = r[i] + g[i] * a           ->      if x[i] > 0: s = s + g[i]
                                                   else: s = s + g[i] * a
                                                   r[i] = s

That is for grids: processors have the elements in their
caches. Invariant: each element gets the terms that it had, in the same order, and is rounded once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from brickwork.ir import build
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Node,
    Program,
    Read,
    Rebind,
    Return,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import (
    accesses_in,
    assigned_symbols,
    read_symbols,
    rewrite,
    rewrite_statements,
    straight,
    substitute,
    walk,
    with_blocks,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.autodiff.adjoints import updates
from brickwork.transform.autodiff.slices import ends_early
from brickwork.transform.canonical.dead import without_dead
from brickwork.transform.free_variables import with_body
from brickwork.transform.scratch import Names
from brickwork.transform.tensors import renamed, sizes_of


def store_once(program: Program, zero: Mapping[Tensor, Allocate], names: Names) -> Program:
    """Return a program of gradients that stores elements once where it can.

    The tensors in `zero` are filled with zeros before its first kernel, and not changed until then.
    """
    if program.device != "cpu":
        program = _joined_program(program, zero, names)
    for statement in program.body:
        if isinstance(statement, Launch) and not statement.kernel.may_alias:
            for nest in statement.kernel.body:
                program = _rounded(program, nest)
    return program


# ---------------------------------------------------------------- additions of loops after one another


def _joined_program(program: Program, zero: Mapping[Tensor, Allocate], names: Names) -> Program:
    """Return the program with the additions to an element made by the last loop that adds to it."""
    body: list[Statement] = []
    for statement in program.body:
        if isinstance(statement, Launch) and not statement.kernel.may_alias:
            body.append(replace(statement, kernel=_joined_kernel(statement.kernel, zero, names)))
            zero = {}
        else:
            body.append(statement)
    return replace(program, body=tuple(body))


def _joined_kernel(kernel: Kernel, zero: Mapping[Tensor, Allocate], names: Names) -> Kernel:
    """Return a kernel with the additions of its nests joined."""
    changed: list[Statement] = []
    for nest in kernel.body:
        is_nest = isinstance(nest, For) and not ends_early(nest)
        changed.append(_Joiner(nest, zero, names).statement(nest, ()) if is_nest else nest)
        touched = effects(nest).changes
        zero = {tensor: made for tensor, made in zero.items() if tensor not in touched}
    if tuple(changed) == kernel.body:
        return kernel
    return with_body(kernel, without_dead(tuple(changed), effects(changed).stores), kernel.facts)


@dataclass(frozen=True, slots=True)
class _Addition:
    """A loop in a block, where its body adds to an element of a tensor, or stores it first: at `place` of the body."""

    number: int
    loop: For
    place: int
    store: Store


@dataclass(frozen=True, slots=True)
class _Joiner:
    """Joins the additions in a nest. `zero` are the tensors that hold zeros before it."""

    root: Statement
    zero: Mapping[Tensor, Allocate]
    names: Names

    def statement(self, statement: Statement, around: tuple[Symbol, ...]) -> Statement:
        """Return a statement of the nest, in loops over `around`."""
        inside = (*around, statement.index) if isinstance(statement, For) else around
        statement = with_blocks(statement, lambda block: self.block(block, inside))
        if isinstance(statement, For):
            for tensor in sorted(self.zero.keys() & effects(statement.body).stores, key=lambda each: each.number):
                if (update := self.update_in_branches(tensor, statement.body, inside)) is not None:
                    statement = replace(statement, body=self.added_up(statement.body, update))
        return statement

    def block(self, block: Block, around: tuple[Symbol, ...]) -> Block:
        """Return a block with its loops after one another joined."""
        block = tuple(self.statement(statement, around) for statement in block)
        for tensor, chain in _chains(block).items():
            if self.is_whole(tensor, chain):
                block = self.joined(block, chain, around)
        return block

    @legality
    def update_in_branches(self, tensor: Tensor, block: Block, around: tuple[Symbol, ...]) -> Store | None:
        """Return one of the updates of a zero element in branches of a block that no other iteration comes to."""
        stores = [node for node in straight(block) if isinstance(node, Store) and node.tensor == tensor]
        if not stores or any(node in stores for node in block) or effects(block).leaves:
            return None
        indices = stores[0].indices
        own = [item.symbol for item in indices if isinstance(item, Read)]
        if {*own} != {*around} or len(own) != len(indices):
            return None
        alike = all(node.indices == indices and node.combine is None and updates(node) for node in stores)
        touched = sum(node.tensor == tensor for node in accesses_in(self.root))
        if not alike or touched != 2 * len(stores):
            return None
        return stores[0] if self.is_there(self.zero[tensor].sizes, block, stores[0]) else None

    @legality
    def is_there(self, sizes: tuple[Expression, ...], block: Block, update: Store) -> bool:
        """Whether each iteration has an element of such sizes: loops end there, or it touches one that is as large."""
        loops = {build.read(node.index): node for node in walk(self.root) if isinstance(node, For)}
        around = [loops[index] for index in update.indices if index in loops]
        first = [isinstance(loop.start, Constant) and loop.start.value >= 0 for loop in around]
        if all(first) and tuple(loop.stop for loop in around) == sizes:
            return True
        always = [node.condition if isinstance(node, If) else node for node in block]
        found = accesses_in([node for node in always if isinstance(node, Assign | Store | Expression)])
        return any(node.indices == update.indices and sizes_of(node.tensor) == sizes for node in found)

    def added_up(self, block: Block, update: Store) -> Block:
        """Return a block that adds up in a variable what its branches add to an element, and stores it then."""
        total = self.names.symbol(f"{update.tensor.name}_total", update.value.dtype)
        value = build.read(total)

        def change(statement: Statement) -> Block:
            if not isinstance(statement, Store) or statement.tensor != update.tensor:
                return (statement,)
            added = _after(statement.value, update.tensor, value)
            return (Assign(symbol=total, value=added, loc=statement.loc),)

        start = Assign(symbol=total, value=build.constant(0.0, total.dtype), loc=update.loc)
        store = replace(update, value=value, access=next(self.names.accesses))
        return (start, *rewrite_statements(block, change), store)

    @legality
    def is_whole(self, tensor: Tensor, chain: Sequence[_Addition]) -> bool:
        """Whether nothing else in the nest touches the elements."""
        touched = sum(node.tensor == tensor for node in accesses_in(self.root))
        return touched == sum(2 if updates(item.store) else 1 for item in chain)

    def joined(self, block: Block, chain: Sequence[_Addition], around: tuple[Symbol, ...]) -> Block:
        """Return a block whose last loop of a chain stores what all of them add; the block as it is if none can."""
        *before, last = chain
        if updates(before[0].store) and not self.begins_with_zero(before[0], around):
            return block
        value: Expression = build.constant(0.0, last.store.value.dtype)
        steps: list[Statement] = []
        for item in before:
            found = self.again(block, item, last)
            if found is None:
                return block
            more, added = found
            steps += more
            value = _after(added, item.store.tensor, value)
        store = replace(last.store, value=_after(last.store.value, last.store.tensor, value))
        result = list(block)
        for item in before:
            result[item.number] = replace(item.loop, body=_without(item.loop.body, item.place))
        body = (*last.loop.body[: last.place], *steps, store, *last.loop.body[last.place + 1 :])
        result[last.number] = replace(last.loop, body=body)
        return tuple(result)

    @legality
    def begins_with_zero(self, first: _Addition, around: tuple[Symbol, ...]) -> bool:
        """Whether the first addition finds a zero: the nest comes to each element once."""
        indices = [item.symbol for item in first.store.indices if isinstance(item, Read)]
        return first.store.tensor in self.zero and {*around, first.loop.index} == {*indices}

    @legality
    def again(self, block: Block, item: _Addition, last: _Addition) -> tuple[list[Assign], Expression] | None:
        """Return what computes the value of an addition in the last loop; None where it is not what it was."""
        steps = _steps(item.loop.body[: item.place], read_symbols(item.store.value))
        if steps is None:
            return None
        needed = read_symbols((*steps, item.store)) - {item.loop.index, *(step.symbol for step in steps)}
        between = block[item.number : last.number + 1]
        fixed = read_symbols((item.loop.start, item.loop.stop))
        stored = effects(between).changes - {item.store.tensor}
        if (needed | fixed) & assigned_symbols(between) or effects((*steps, item.store)).loads & stored:
            return None
        values: dict[Symbol, Expression] = {item.loop.index: build.read(last.loop.index)}
        copies: list[Assign] = []
        for step in steps:
            copy = self.names.symbol(step.symbol.name, step.symbol.dtype)
            copies.append(replace(step, symbol=copy, value=self.numbered(substitute(step.value, values))))
            values[step.symbol] = build.read(copy)
        return copies, self.numbered(substitute(item.store.value, values))

    def numbered(self, value: Expression) -> Expression:
        """Return an expression whose accesses have numbers of their own."""

        def visit(node: Node) -> Node:
            return replace(node, access=next(self.names.accesses)) if isinstance(node, Load) else node

        return rewrite(value, visit)


@legality
def _steps(block: Block, needed: frozenset[Symbol]) -> list[Assign] | None:
    """Return the assignments of a block that compute variables; None where something else does."""
    steps: list[Assign] = []
    for statement in reversed(block):
        if assigned_symbols(statement) & needed:
            if not isinstance(statement, Assign):
                return None
            steps.insert(0, statement)
            needed |= read_symbols(statement.value)
    return steps


def _chains(block: Block) -> dict[Tensor, list[_Addition]]:
    """Return the loops of a block that store each element of a tensor, and then add to the same ones."""
    found: dict[Tensor, list[_Addition]] = {}
    for number, statement in enumerate(block):
        if not isinstance(statement, For):
            continue
        for place, store in enumerate(statement.body):
            if isinstance(store, Store):
                found.setdefault(store.tensor, []).append(_Addition(number, statement, place, store))
    return {tensor: chain for tensor, chain in found.items() if len(chain) > 1 and _is_chain(chain)}


@legality
def _is_chain(chain: Sequence[_Addition]) -> bool:
    """Whether loops run over the same elements, an iteration for each: the first may store, the others add to them."""
    last = chain[-1]
    if build.read(last.loop.index) not in last.store.indices:
        return False
    for item in chain:
        own = [substitute(index, {item.loop.index: build.read(last.loop.index)}) for index in item.store.indices]
        same = tuple(own) == last.store.indices
        bounds = (item.loop.start, item.loop.stop) == (last.loop.start, last.loop.stop)
        adds = updates(item.store) or item is chain[0]
        if not same or not bounds or not adds or item.store.combine is not None:
            return False
    return len({item.number for item in chain}) == len(chain)


def _after(value: Expression, tensor: Tensor, before: Expression) -> Expression:
    """Return the value of an update, with what the element was."""

    def visit(node: Node) -> Node:
        return before if isinstance(node, Load) and node.tensor == tensor else node

    return rewrite(value, visit)


def _without(block: Block, place: int) -> Block:
    return (*block[:place], *block[place + 1 :])


# ---------------------------------------------------------------- rounding


def _rounded(program: Program, nest: Statement) -> Program:
    """Return the program without a nest that copies a tensor, if what it copies can be stored where it goes to."""
    pair = _copy(nest)
    if pair is None or not _may_be_replaced(program, nest, *pair):
        return program
    source, target = pair
    fill = next(item.fill for item in program.body if isinstance(item, Allocate) and item.tensor == source)
    body: list[Statement] = []
    for statement in program.body:
        match statement:
            case Allocate(tensor=tensor) if tensor == source:
                continue
            case Allocate(tensor=tensor) if tensor == target and fill is not None:
                value = build.constant(0.0, value_dtype(target.type.dtype))
                body.append(replace(statement, fill=value))
            case Launch(kernel=kernel):
                body.append(replace(statement, kernel=_stored(kernel, nest, source, target)))
            case _:
                body += renamed((statement,), {source: target})
    return replace(program, body=tuple(body))


def _stored(kernel: Kernel, nest: Statement, source: Tensor, target: Tensor) -> Kernel:
    """Return a kernel that stores into the target of a copy what it stored into its source."""
    if source not in kernel.tensors:
        return kernel
    body = renamed(tuple(item for item in kernel.body if item is not nest), {source: target})
    facts = renamed(kernel.facts, {source: target})
    return with_body(kernel, body, facts)


@legality
def _copy(nest: Statement) -> tuple[Tensor, Tensor] | None:
    """Return the source and the target of a nest that copies all elements of a tensor, and does nothing else."""
    indices: list[Expression] = []
    sizes: list[Expression] = []
    while isinstance(nest, For) and len(nest.body) == 1 and build.is_constant(nest.start, 0):
        indices.append(build.read(nest.index))
        sizes.append(nest.stop)
        nest = nest.body[0]
    match nest:
        case Store(tensor=target, value=Load(tensor=source) as read, combine=None):
            places = (read.indices, nest.indices)
            whole = tuple(sizes) == tuple(build.size(source, axis) for axis in range(source.type.rank))
            return (source, target) if whole and places == (tuple(indices), tuple(indices)) else None
        case _:
            return None


@legality
def _may_be_replaced(program: Program, nest: Statement, source: Tensor, target: Tensor) -> bool:
    """Whether what is stored into the source of a copy is read by it alone, and the target is written by it alone."""
    made = {item.tensor: item for item in program.body if isinstance(item, Allocate)}
    if not {source, target} <= made.keys() or any(item.like == source for item in made.values()):
        return False
    if made[source].sizes != made[target].sizes:
        return False
    fill = made[source].fill
    if fill is not None and not build.is_constant(fill, 0):
        return False
    nodes = [*walk(program.body)]
    results = {tensor for node in nodes if isinstance(node, Return) for tensor in node.tensors}
    moved = {tensor for node in nodes if isinstance(node, Rebind) for tensor in node.sources}
    touched = Counter((node.tensor, type(node)) for node in nodes if isinstance(node, Load | Store))
    alone = touched[source, Load] == 1 and touched[target, Store] == 1 and not touched[target, Load]
    return alone and not {source, target} & moved and source not in results and _is_last(program, nest, source)


@legality
def _is_last(program: Program, nest: Statement, source: Tensor) -> bool:
    """Whether nothing is stored into a tensor after a nest, and all that is stored into it is stored as it is."""
    nests = [nest for item in program.body if isinstance(item, Launch) for nest in item.kernel.body]
    place = next(number for number, item in enumerate(nests) if item is nest)
    stores = [node for node in walk(nests) if isinstance(node, Store) and node.tensor == source]
    later = any(source in effects(item).stores for item in nests[place:])
    return not later and all(store.combine is None for store in stores)
