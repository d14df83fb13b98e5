"""Tapes of lists keep every n-th step only; those in between are run again before they are gone back through.

    for t in range(n):                             for t in range(n):
        tape[t] = state                                if t % 16 == 0: kept[t // 16] = state
        state = ...                                    state = ...
    for turned in range(n):           ->           for each 16 steps, from the last to the first:
        t = n - 1 - turned                             state = kept[...]
        ... tape[t] ...                                for t in these: near[t % 16] = state; state = ...
                                                       for turned in these: ... near[t % 16] ...

`near` is a list that belongs to the loops around. A step's values are as many bytes as the loop's body changes, so for
lists a tape is larger than all that the loop reads, and takes longer to write and read than the steps to run again;
variables are few, and their tapes stay. Invariant: each value is computed by the same operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.searches import same
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Constant,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Local,
    Node,
    Program,
    Read,
    Return,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import assigned_symbols, read_symbols, rewrite, rewrite_blocks, rewrite_expressions, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import FIRST_CACHE_BYTES, SECTOR_BYTES, WARP
from brickwork.transform.autodiff.locations import with_locations
from brickwork.transform.autodiff.step_lists import (
    digit,
    is_multiple,
    list_of,
    moved,
    over,
    sizes_of,
)
from brickwork.transform.canonical.dead import without_unused
from brickwork.transform.free_variables import with_body
from brickwork.transform.scratch import Names
from brickwork.transform.slopes import Item, dtype_of

_STEPS = tuple(1 << bits for bits in range(6, 1, -1))
"""Of how many steps one may be kept: 64 to 4."""

_NEAR = FIRST_CACHE_BYTES // WARP
"""Bytes of the steps in between: a block of 32 threads has them in the first cache."""

_FEW = SECTOR_BYTES
"""Bytes of a step whose tape stays."""


def shorten_tapes(program: Program, names: Names) -> Program:
    """Return the program with tapes of lists as short ones."""
    if sum(isinstance(node, Launch) for node in program.body) != 1:
        return program
    returned = {tensor for node in program.body if isinstance(node, Return) for tensor in node.tensors}
    body: list[Statement] = []
    allocated: dict[Tensor, Allocate] = {}
    for statement in program.body:
        match statement:
            case Allocate(tensor=tensor, fill=None, like=None) if tensor not in returned:
                allocated[tensor] = statement
                body.append(statement)
            case Launch(kernel=kernel):
                changed, made = _shortened(kernel, allocated, names)
                body += [*made, replace(statement, kernel=changed)]
            case _:
                body.append(statement)
    return replace(program, body=without_unused(tuple(body)))


def _shortened(kernel: Kernel, allocated: Mapping[Tensor, Allocate], names: Names) -> tuple[Kernel, list[Allocate]]:
    """Return a kernel with short tapes, and what allocates them."""
    accesses = _accesses(kernel.body)
    made: list[Allocate] = []

    def visit(block: Block) -> Block:
        for first, second in combinations(range(len(block)), 2):
            loop, back = block[first], block[second]
            if isinstance(loop, For) and isinstance(back, For):
                found = _taped(loop, block[first + 1 : second], back, allocated, accesses)
                if found is not None:
                    writer = _Writer(found, names)
                    made.extend(writer.allocations)
                    changed = (writer.forwards(), *block[first + 1 : second], writer.backwards())
                    return visit((*block[:first], *changed, *block[second + 1 :]))
        return block

    body = rewrite_blocks(kernel.body, visit)
    facts = (
        build.apply("eq", build.size(item.tensor, axis), size) for item in made for axis, size in enumerate(item.sizes)
    )
    return (with_body(kernel, body, (*kernel.facts, *facts)) if made else kernel), made


def _accesses(block: Block) -> Counter[Tensor]:
    """Return how often each tensor is accessed."""
    return Counter(node.tensor for node in walk(block) if isinstance(node, Load | Store))


# ---------------------------------------------------------------- what is recognised


@dataclass(frozen=True, slots=True)
class _Taped:
    """A loop that writes tapes, and one that goes back through its steps and reads them.

    The axis `axis` of the tapes is that of the loop; `front` are the indices of those before it. One of `steps` steps
    is kept.
    """

    loop: For
    back: For
    tapes: tuple[Tensor, ...]
    axis: int
    front: tuple[Expression, ...]
    sizes: tuple[Expression, ...]
    inner: dict[Tensor, tuple[int, ...]]
    state: tuple[Item, ...]
    steps: int


def _taped(
    loop: For, between: Block, back: For, allocated: Mapping[Tensor, Allocate], accesses: Counter[Tensor]
) -> _Taped | None:
    """Return two loops of which one leaves tapes of lists to the other."""
    written, read = effects(loop.body).stores, effects(back.body).loads
    tapes = sorted(written & read & allocated.keys(), key=lambda tensor: tensor.number)
    if not tapes or not _goes_back(loop, back):
        return None
    stores = {node.tensor: node for node in walk(loop.body) if isinstance(node, Store)}
    axes = {_axis(stores[tape], loop.index) for tape in tapes}
    axis = axes.pop()
    if axes or axis is None:
        return None
    front = stores[tapes[0]].indices[:axis]
    inner = {tape: _constants(allocated[tape].sizes[axis + 1 :]) for tape in tapes}
    if any(sizes is None for sizes in inner.values()):
        return None
    known = {tape: sizes for tape, sizes in inner.items() if sizes is not None}
    size = sum(tape.type.dtype.size * math.prod(sizes) for tape, sizes in known.items())
    steps = next((steps for steps in _STEPS if size * steps <= _NEAR), _STEPS[-1])
    found = _Taped(
        loop, back, tuple(tapes), axis, front, allocated[tapes[0]].sizes[: axis + 1], known, _state(loop), steps
    )
    return found if _FEW < size <= _NEAR and _may_be_run_again(found, between, accesses) else None


@legality
def _goes_back(loop: For, back: For) -> bool:
    return same(loop.start, back.start) and same(loop.stop, back.stop)


def _axis(store: Store, index: Symbol) -> int | None:
    """Return the only axis whose index a loop changes."""
    found = [axis for axis, at in enumerate(store.indices) if index in read_symbols(at)]
    return found[0] if len(found) == 1 else None


def _constants(sizes: Sequence[Expression]) -> tuple[int, ...] | None:
    values = [int(size.value) for size in sizes if isinstance(size, Constant)]
    return tuple(values) if len(values) == len(sizes) else None


def _state(loop: For) -> tuple[Item, ...]:
    """Return what an iteration takes from the one before."""
    carried = live_before(loop.body, NONE) & assigned_symbols(loop.body)
    found = effects(loop.body)
    locals_ = (tensor for tensor in found.stores - found.declares if tensor.is_local)
    return (
        *sorted(carried, key=lambda symbol: symbol.number),
        *sorted(locals_, key=lambda tensor: tensor.number),
    )


@legality
def _begin(index: Expression, step: Expression) -> Expression | None:
    """Return what an index takes away from the step of a loop; None where it is anything else."""
    match index:
        case Apply(operator=operator, operands=(left, right)) if operator.name == "sub" and same(left, step):
            return right
        case _:
            return build.integer(0) if same(index, step) else None


@legality
def _may_be_run_again(found: _Taped, between: Block, accesses: Counter[Tensor]) -> bool:
    """Whether a loop's steps, run again from a state that they had, leave in tapes what they left, and nothing else."""
    loop, back, tapes = found.loop, found.back, {*found.tapes}
    own, other, after = effects(loop.body), effects(back.body), effects((*between, back))
    front, state = effects(found.front), {*found.state}
    stores = [node for node in loop.body if _stored(node, found) is not None]
    return (
        not loop.claimed
        and not back.claimed
        and not own.leaves
        and not other.leaves
        and not (own.rebinds | after.rebinds)
        and own.stores <= tapes | state | own.declares
        and own.loads.isdisjoint(after.stores - state)
        and (live_before((loop,), NONE) - state).isdisjoint(after.assigns)
        and len(stores) == len(tapes)
        and all(accesses[tape] == 1 + _loads_of_step(found, tape) for tape in tapes)
        and front.plain
        and front.reads.isdisjoint(own.assigns)
    )


@legality
def _stored(statement: Statement, found: _Taped) -> Store | None:
    """Return the store of all that a tape has of a step, if a statement is no more than that."""
    nest: list[tuple[Expression, Expression]] = []
    along: list[Expression] = []
    while isinstance(statement, For):
        nest.append((statement.start, statement.stop))
        along.append(build.read(statement.index))
        statement = statement.body[0] if len(statement.body) == 1 else Break()
    match statement:
        case Store(tensor=tensor, indices=indices, combine=None) if tensor in found.inner:
            at = indices[found.axis]
            whole = nest == [(build.integer(0), build.integer(size)) for size in found.inner[tensor]]
            there = indices == (*found.front, at, *along) and _begin(at, build.read(found.loop.index)) is not None
            return statement if whole and there else None
        case _:
            return None


def _loads_of_step(found: _Taped, tape: Tensor) -> int:
    """Return how many loads of a tape stand in the loop that goes back and take what the same step has left."""
    loop, back = found.loop, found.back
    stored = next(node for node in walk(loop.body) if isinstance(node, Store) and node.tensor == tape)
    low = _begin(stored.indices[found.axis], build.read(loop.index))
    last = build.sub(build.add(back.start, back.stop), build.integer(1))
    steps = [build.sub(last, build.read(back.index))]
    steps += [build.read(node.symbol) for node in back.body if isinstance(node, Assign) and same(node.value, steps[0])]

    @legality
    def is_of_step(node: Node) -> bool:
        if not isinstance(node, Load) or node.tensor != tape:
            return False
        at = node.indices[found.axis]
        return node.indices[: found.axis] == found.front and any(_begin(at, step) == low for step in steps)

    return sum(is_of_step(node) for node in walk(back.body))


# ---------------------------------------------------------------- what is written


class _Writer:
    """Writes two loops with short tapes."""

    def __init__(self, found: _Taped, names: Names) -> None:
        """Name what is kept."""
        self.found = found
        self.names = names
        count = build.sub(found.loop.stop, found.loop.start)
        self.count = count
        self.blocks = over(build.add(count, build.integer(found.steps - 1)), found.steps)
        *front, length = found.sizes
        short = over(build.add(length, build.integer(found.steps - 1)), found.steps)
        made = {
            item: names.tensor(f"{item.name}_kept", dtype_of(item), *front, short, *sizes_of(item))
            for item in found.state
        }
        self.kept: dict[Item, Tensor] = {item: tensor for item, (tensor, _) in made.items()}
        self.allocations = [allocation for _, allocation in made.values()]
        self.near = {
            tape: list_of(tape.name, tape.type.dtype, (found.steps, *sizes), names)
            for tape, sizes in found.inner.items()
        }

    def position(self, index: Symbol) -> Expression:
        """Return how many steps are before that of an index."""
        return build.sub(build.read(index), self.found.loop.start)

    def forwards(self) -> For:
        """Return the loop that keeps some of its steps."""
        loop, steps = self.found.loop, self.found.steps
        at = self.position(loop.index)
        keep = moved(self.kept, (*self.found.front, over(at, steps)), self.names, keep=True)
        body = (node for node in loop.body if _stored(node, self.found) is None)
        kept = with_locations((If(condition=is_multiple(at, steps), then=keep),), loop.loc)
        return replace(loop, body=(*kept, *body))

    def backwards(self) -> For:
        """Return the loop that goes back through the steps, some together."""
        found, names, steps = self.found, self.names, build.integer(self.found.steps)
        loop, back = found.loop, found.back
        turn, base, end = (names.symbol(name, INT64) for name in ("block", "base", "end"))
        number = build.sub(build.sub(self.blocks, build.integer(1)), build.read(turn))
        first, last = build.read(base), build.read(end)
        own = effects(loop.body)
        fresh = {symbol: names.symbol(symbol.name, symbol.dtype) for symbol in own.assigns | {loop.index}}
        lists = {
            tensor: list_of(tensor.name, tensor.type.dtype, tensor.sizes, names)
            for tensor in sorted(own.stores | own.declares, key=lambda tensor: tensor.number)
            if tensor.is_local
        }
        state = {_other(item, fresh, lists): tensor for item, tensor in self.kept.items()}
        place = (*found.front, over(first, found.steps))
        again = replace(
            loop,
            index=fresh[loop.index],
            start=build.add(loop.start, first),
            stop=build.add(loop.start, last),
            body=self.copied(loop.body, fresh, lists),
        )
        code: Block = (
            Assign(symbol=base, value=build.mul(number, steps)),
            Assign(symbol=end, value=build.apply("minimum", build.add(first, steps), self.count)),
            *(Local(tensor=item) for item in state if isinstance(item, Tensor)),
            *(Local(tensor=item) for item in self.near.values()),
            *moved(state, place, names, keep=False),
            again,
            replace(
                back,
                start=build.sub(back.stop, last),
                stop=build.sub(back.stop, first),
                body=self.near_loads(back.body),
            ),
        )
        (result,) = with_locations((For(index=turn, start=build.integer(0), stop=self.blocks, body=code),), back.loc)
        return result if isinstance(result, For) else back

    def copied(self, block: Block, fresh: Mapping[Symbol, Symbol], lists: Mapping[Tensor, Tensor]) -> Block:
        """Return a block with variables and lists of its own, which writes tapes of the last steps."""
        at = digit(build.sub(build.read(fresh[self.found.loop.index]), self.found.loop.start), self.found.steps)

        def visit(node: Node) -> Node:
            match node:
                case Read(symbol=symbol) | Assign(symbol=symbol) if symbol in fresh:
                    return replace(node, symbol=fresh[symbol])
                case For(index=index):
                    return replace(node, index=fresh[index])
                case Store(tensor=tensor, indices=indices) if tensor in self.near:
                    return self.names.store(self.near[tensor], at, *indices[self.found.axis + 1 :], node.value)
                case Load(tensor=tensor) | Store(tensor=tensor):
                    return replace(node, tensor=lists.get(tensor, tensor), access=next(self.names.accesses))
                case Local(tensor=tensor):
                    return replace(node, tensor=lists[tensor])
                case _:
                    return node

        return tuple(rewrite(statement, visit) for statement in block)

    def near_loads(self, block: Block) -> Block:
        """Return a block that reads tapes of the last steps."""
        back = self.found.back
        at = digit(build.sub(build.sub(back.stop, build.integer(1)), build.read(back.index)), self.found.steps)

        def visit(node: Expression) -> Expression:
            if isinstance(node, Load) and node.tensor in self.near:
                return self.names.load(self.near[node.tensor], at, *node.indices[self.found.axis + 1 :])
            return node

        return rewrite_expressions(block, visit)


def _other(item: Item, fresh: Mapping[Symbol, Symbol], lists: Mapping[Tensor, Tensor]) -> Item:
    return fresh[item] if isinstance(item, Symbol) else lists[item]
