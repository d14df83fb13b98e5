"""Array expansion: a scratch tensor that each iteration fills before it reads it gets an axis for the loops around.

    tmp = scratch(d)                                tmp = scratch(n, d)
    for i in range(n):                              for i in range(n):
        for k in range(d): tmp[k] = x[i, k]    ->       for k in range(d): tmp[i, k] = x[i, k]
        y[i] = median(tmp)                              y[i] = median(tmp[i])

For tensors with more elements than a thread has room for (`privatise.py`), and for those whose accesses are checked:
a copy could not tell where the tensor ends. On grids each iteration has a part: the iterations are independent then,
and threads of a block may share the loops inside them. On processors each of a few pieces of the outermost loop has
one, every so manieth iteration, which stays in the caches:

    for p in range(PIECES):
        for t in range((n - p + PIECES - 1) // PIECES):
            i = p + PIECES * t
            for k in range(d): tmp[p, k] = x[i, k]
            y[i] = median(tmp[p])

Invariant: the expanded kernel runs where all such tensors together take no more than `Target.scratch_bytes`; elsewhere
the kernel runs as it was. On grids a list with as many items is such a tensor where few threads would each have one, or
where the loops that access its items are for the threads of a block. So is a shorter tensor whose items loops access
one by one where few threads would have one, as a state of features is: a thread has an item then, with all its steps,
or a block shares the items of a step out, if they are not few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

from brickwork.analysis.analyse import analyse
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Loop
from brickwork.analysis.races import Facts
from brickwork.analysis.scalars import live_after_loops
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Block,
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
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import (
    assigned_symbols,
    blocks_in,
    read_symbols,
    rewrite,
    rewrite_loops,
    rewrite_statements,
    statements,
    substitute_block,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.columns import columns_of, has_nests
from brickwork.transform.free_variables import with_body
from brickwork.transform.guard import conjunction
from brickwork.transform.nests_apart import Changed, beside, with_each
from brickwork.transform.privatise import ROOM, OwnerFinder, copied_extents, scratch_of
from brickwork.transform.privatise_reductions import PIECES
from brickwork.transform.schedule.shared_loops import SHORT
from brickwork.transform.scratch import Names, names_of
from brickwork.transform.tensors import dense_type

EXPANDED = "_expanded"
"""Ends the name of a kernel whose scratch tensors have parts for iterations."""
REMARK = (
    f"where a scratch tensor has more than {ROOM} elements, is checked, or is used item by item by few iterations, and"
    " there is room for one for each iteration"
)
"""What `explain` says of it on a grid."""
FEW = "where few threads would have a list each, and there is room for one for each iteration"
"""The same of a kernel whose lists are in memory."""
LONG = "where there is room for a list for each iteration, whose items threads access one by one"
"""The same where many threads would have one."""
IN_PIECES = f"where scratch tensors are large and the loop around is long, whose {PIECES} pieces have one each"
"""What `explain` says of it on a processor."""


@dataclass(frozen=True, slots=True)
class _Expansion:
    """A tensor, the loops that each give it an axis, by the owners that they stand around, and the axes' extents.

    On a processor that is the outermost of them alone, with an axis for its pieces. `large` says where the tensor has
    more elements than an iteration has room for.
    """

    tensor: Tensor
    loops: Mapping[Symbol, tuple[For, ...]]
    extents: tuple[Expression, ...]
    large: Expression


def with_expanded_scratch(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return the program with kernels of their own for scratch tensors of many elements, and remarks on those."""
    scratch = scratch_of(program)
    sizes = {node.tensor: node.sizes for node in walk(program.body) if isinstance(node, Allocate)}
    names = names_of(program)

    def change(launch: Launch) -> Changed | None:
        if found := _expansions(launch.kernel, scratch, sizes, target):
            made = _apart(launch.kernel, found, sizes, names, target)
            return beside(launch, *made, REMARK if target.grid else IN_PIECES)
        lists = _long_lists(launch.kernel) if target.grid else ()
        return _of_lists(launch, lists, names, target) if lists else None

    return with_each(program, change)


# ---------------------------------------------------------------- lists


def _long_lists(kernel: Kernel) -> tuple[Tensor, ...]:
    """Return the lists that a thread's registers have no room for, and that loops go along item by item.

    What a `while` searches, or moves up in, is its thread's: others would wait for it.
    """
    declared = (node.tensor for node in statements(kernel.body) if isinstance(node, Local) and not node.values)
    long = [tensor for tensor in dict.fromkeys(declared) if prod(tensor.sizes) > ROOM]
    along = {
        store.tensor
        for loop in statements(kernel.body)
        if isinstance(loop, For)
        for store in loop.body
        if isinstance(store, Store) and loop.index in read_symbols(store.indices)
    }
    searched = {
        node.tensor
        for loop in statements(kernel.body)
        if isinstance(loop, While)
        for node in walk(loop)
        if isinstance(node, Load | Store)
    }
    return tuple(long) if along.difference(searched).issuperset(long) and not kernel.may_alias else ()


def _of_lists(launch: Launch, lists: Sequence[Tensor], names: Names, target: Target) -> Changed | None:
    """Return the launch of a kernel that has lists in memory, where few threads would have one each; None if it cannot.

    Those are fewer than half as many as the machine keeps: blocks share the loops along such lists out. Where they
    share out all loops that access an item, that is worth it for many, too: neighbouring threads access neighbours.
    """
    kernel, sizes = launch.kernel, dict[Tensor, Sequence[Expression]]()
    for item in lists:
        tensor, made = names.tensor(item.name, item.type.dtype, *item.sizes)
        sizes[tensor] = made.sizes
        kernel = _in_memory(kernel, item, tensor)
    found = _expansions(kernel, frozenset(sizes), sizes, target)
    if {item.tensor for item in found} != sizes.keys():
        return None
    condition, host, other = _apart(kernel, found, sizes, names, target)
    analysis = analyse(kernel)
    owners = [(item.tensor, [each[-1] for each in item.loops.values()]) for item in found]
    if all(build.is_constant(_is_by_items(each, tensor, analysis, joined=True), 1) for tensor, each in owners):
        return beside(launch, condition, host, other, LONG)
    rows = reduce(lambda a, b: build.apply("maximum", a, b), (build.product(item.extents) for item in found))
    few = build.apply("lt", rows, build.integer(target.threads // 2))
    return beside(launch, build.apply("logical_and", few, condition), host, other, FEW)


def _in_memory(kernel: Kernel, item: Tensor, tensor: Tensor) -> Kernel:
    """Return a kernel with a tensor in place of a list, of which all iterations have the same elements."""

    def visit(node: Node) -> Node:
        return replace(node, tensor=tensor) if isinstance(node, Load | Store | Size) and node.tensor == item else node

    def undeclared(statement: Statement) -> Block:
        return () if isinstance(statement, Local) and statement.tensor == item else (rewrite(statement, visit),)

    sizes = enumerate(map(build.integer, item.sizes))
    facts = (build.apply("eq", build.size(tensor, axis), size) for axis, size in sizes)
    return with_body(kernel, rewrite_statements(kernel.body, undeclared), (*facts, *kernel.facts))


# ---------------------------------------------------------------- which tensors, for which loops


def _expansions(
    kernel: Kernel, scratch: frozenset[Tensor], sizes: Mapping[Tensor, Sequence[Expression]], target: Target
) -> tuple[_Expansion, ...]:
    """Return the tensors that stand in the way of independent iterations, as they can be expanded."""
    grid, threads = target.grid, target.threads
    used = frozenset(item for item in kernel.tensors if item in scratch and _is_used_in_loops(kernel.body, item))
    if kernel.may_alias or not used:
        return ()
    candidates = [item for item in used if not build.is_constant(_is_large(sizes[item]), 0)]
    if not candidates:
        return ()
    analysis = analyse(kernel)
    large = {item: _has_no_room(kernel, item, sizes[item], analysis, grid=grid) for item in candidates}
    large = {item: condition for item, condition in large.items() if not build.is_constant(condition, 0)}
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    # Those of few elements are copied for each iteration (`privatise.py`), and in the way of nothing then.
    live = live_after_loops(kernel.body)
    finder = OwnerFinder(facts, live, used, updates=grid)
    found: list[_Expansion] = []
    for tensor in sorted(large, key=lambda item: item.number):
        owners = finder.owners(kernel.body, tensor) or ()
        if not any(finder.is_shared(loop, tensor) for loop in owners) or not _are_all_inside(kernel, tensor, owners):
            continue
        loops = {owner.index: _around(owner, finder, facts.model.loops, kernel) for owner in owners}
        ranks = {len(each) for each in loops.values()}
        if not grid and 0 not in ranks:
            outermost = {index: each[:1] for index, each in loops.items()}
            long = [_is_long(loop, analysis) for (loop,) in outermost.values()]
            condition = reduce(lambda one, other: build.apply("logical_and", one, other), long, large[tensor])
            found.append(_Expansion(tensor, outermost, (build.integer(PIECES),), condition))
        elif grid and len(ranks) == 1 and all(loops[owner.index][-1:] == (owner,) for owner in owners):
            columns = zip(*loops.values(), strict=True)
            extents = tuple(reduce(lambda a, b: build.apply("maximum", a, b), map(_trips, each)) for each in columns)
            few = build.apply("lt", build.product(extents), build.integer(threads // 2))
            few = conjunction((few, _is_by_items(owners, tensor, analysis)))
            if not _move_out(owners, tensor, analysis, live):
                many = build.apply("ge", build.product(sizes[tensor]), build.integer(SHORT))
                few = build.apply("logical_and", few, many)
            found.append(_Expansion(tensor, loops, extents, build.apply("logical_or", large[tensor], few)))
    return tuple(found)


def _is_by_items(owners: Sequence[For], tensor: Tensor, analysis: Analysis, *, joined: bool = False) -> Expression:
    """Return whether threads may have an item of a tensor each: loops access one in each iteration, and share nothing.

    Or nothing but what is `joined` after the loop. In a long loop for threads each may read all items, as sums do.
    """
    verdicts = analysis.loops.items()
    free = {index for index, verdict in verdicts if verdict.independent and (joined or not verdict.reductions)}
    free -= {owner.index for owner in owners}
    moving = assigned_symbols(owners) | {node.index for node in statements(owners) if isinstance(node, For)}

    def asked(node: Load | Store, around: Sequence[For]) -> Expression:
        if any(isinstance(index, Read) and index.symbol in free for index in node.indices):
            return build.constant(True, BOOL)
        first = next((loop for loop in around if loop.index in free), None)
        if isinstance(node, Store) or joined or first is None or read_symbols((first.start, first.stop)) & moving:
            return build.constant(False, BOOL)
        return build.apply("ge", _trips(first), build.integer(SHORT))

    conditions = (asked(*each) for each in _accesses(owners, tensor, ()))
    return conjunction(dict.fromkeys(conditions))


def _accesses(
    block: Sequence[Statement], tensor: Tensor, around: tuple[For, ...]
) -> Iterator[tuple[Load | Store, tuple[For, ...]]]:
    """Yield the accesses to a tensor in a block, with the loops around them."""
    for statement in block:
        inside = (*around, statement) if isinstance(statement, For) else around
        found = [item for part in blocks_in(statement) for item in _accesses(part, tensor, inside)]
        numbers = {node.access for node, _ in found}
        for node in walk(statement):
            if isinstance(node, Load | Store) and node.tensor == tensor and node.access not in numbers:
                yield node, around
        yield from found


def _move_out(
    owners: Sequence[For], tensor: Tensor, analysis: Analysis, live: Mapping[Symbol, frozenset[Symbol]]
) -> bool:
    """Whether loops along items move out of all loops in order around them, so that a thread has an item and its steps.

    Elsewhere a block shares the items out in each step, if they are not few; one thread had better have all of those.
    """
    inside = (node for node in statements(owners) if isinstance(node, For) and node not in owners)
    around = (node for node in inside if tensor in effects(node.body).stores and effects(node.body).loops)
    steps = [node for node in around if not analysis.loops[node.index].independent]
    return all(not has_nests(loop) or columns_of(loop, live[loop.index]) is not None for loop in steps)


def _is_large(sizes: Sequence[Expression]) -> Expression:
    """Return whether a tensor has more elements than a thread of a grid has room for."""
    return build.apply("gt", build.product(sizes), build.integer(ROOM))


def _has_no_room(
    kernel: Kernel, tensor: Tensor, sizes: Sequence[Expression], analysis: Analysis, *, grid: bool
) -> Expression:
    """Return whether a tensor has more elements than an iteration can have copies of."""
    extents = copied_extents(kernel, tensor, analysis, grid=grid)
    if not extents:
        return build.constant(True, BOOL)
    if grid:
        return _is_large(sizes)
    beyond = (build.apply("gt", size, build.integer(extent)) for size, extent in zip(sizes, extents, strict=True))
    return reduce(lambda one, other: build.apply("logical_or", one, other), beyond, build.constant(False, BOOL))


def _is_long(loop: For, analysis: Analysis) -> Expression:
    """Return whether pieces of a loop pay, half of which have iterations where threads could share loops inside."""
    deepest: dict[int, bool] = {}
    for depth, shared in _places(loop.body, analysis, 0, shared=False):
        deepest[depth] = deepest.get(depth, True) and shared
    least = PIECES // 2 if deepest[max(deepest)] else 2
    return build.apply("ge", _trips(loop), build.integer(least))


def _places(block: Block, analysis: Analysis, depth: int, *, shared: bool) -> Iterator[tuple[int, bool]]:
    """Yield how many loops stand around each part of a block, and whether the iterations of one are independent."""
    yield depth, shared
    for statement in block:
        match statement:
            case For(index=index, body=body):
                yield from _places(body, analysis, depth + 1, shared=shared or analysis.loops[index].independent)
            case If(then=then, otherwise=otherwise):
                yield from _places((*then, *otherwise), analysis, depth, shared=shared)
            case While(prelude=prelude, body=body):
                yield from _places((*prelude, *body), analysis, depth + 1, shared=shared)
            case _:
                pass


def _is_used_in_loops(body: Block, tensor: Tensor) -> bool:
    """Whether a loop both reads and stores elements of a tensor."""
    used = (effects(node) for node in body)
    return any(tensor in each.loads and tensor in each.stores for each in used)


@legality
def _are_all_inside(kernel: Kernel, tensor: Tensor, owners: Sequence[For]) -> bool:
    """Whether nothing outside of these loops stores into a tensor; that nothing reads it there is known."""
    inside = {owner.index for owner in owners}

    def visit(statement: Statement) -> Block:
        return () if isinstance(statement, For) and statement.index in inside else (statement,)

    return tensor not in effects(rewrite_statements(kernel.body, visit)).stores


@legality
def _around(owner: For, finder: OwnerFinder, loops: Sequence[Loop], kernel: Kernel) -> tuple[For, ...]:
    """Return the loops around an owner, and itself, that may own it, and of which the host knows how long they are."""
    nest = [loop.node for loop in loops if owner.index in _indices(loop.node)]
    known = frozenset(kernel.scalars) - assigned_symbols(kernel.body)
    return tuple(node for node in nest if read_symbols((node.start, node.stop)) <= known and finder.is_owner(node))


def _indices(loop: For) -> set[Symbol]:
    return {node.index for node in statements((loop,)) if isinstance(node, For)}


def _trips(loop: For) -> Expression:
    return build.iterations(loop.start, loop.stop)


# ---------------------------------------------------------------- the change


def _apart(
    kernel: Kernel,
    found: Sequence[_Expansion],
    sizes: Mapping[Tensor, Sequence[Expression]],
    names: Names,
    target: Target,
) -> tuple[Expression, Block, Kernel]:
    """Return when tensors are large, and take no more bytes than they may, what is made then, and the kernel for it."""
    made: list[Allocate] = []
    large, total = build.constant(False, BOOL), build.integer(0)
    pieces: dict[Symbol, Symbol] = {}
    for item in found:
        extents = (*item.extents, *sizes[item.tensor])
        kind = dense_type(item.tensor.type.dtype, len(extents))
        added = item.tensor.added + len(item.extents)
        whole = replace(item.tensor, number=next(names.tensors), type=kind, sizes=(), added=added)
        made.append(Allocate(tensor=whole, sizes=extents))
        if not target.grid:
            cut = {loop.index: loop for loops in item.loops.values() for loop in loops}
            pieces |= {index: _piece(index, names) for index in cut if index not in pieces}
        kernel = _expanded(kernel, item, whole, pieces)
        large = build.apply("logical_or", large, item.large)
        total = build.add(total, build.apply("mul", build.product(extents), build.integer(whole.type.dtype.size)))
    body = rewrite_loops(kernel.body, {*pieces}, lambda loop: (_in_pieces(loop, pieces[loop.index], names),))
    kernel = replace(kernel, name=f"{kernel.name}{EXPANDED}", body=body)
    fits = build.apply("le", total, build.integer(target.scratch_bytes))
    condition = build.apply("logical_and", large, fits)
    return condition, tuple(made), kernel


@legality
def _expanded(kernel: Kernel, found: _Expansion, whole: Tensor, pieces: Mapping[Symbol, Symbol]) -> Kernel:
    """Return a kernel with a part of `whole` for each iteration in place of a tensor, or for each of the `pieces`."""
    added = len(found.extents)

    def resized(node: Node) -> Node:
        if isinstance(node, Size) and node.tensor == found.tensor:
            return replace(node, tensor=whole, axis=node.axis + added)
        return node

    def owned(statement: Statement) -> Block:
        if not isinstance(statement, For) or statement.index not in found.loops:
            return (statement,)
        loops = found.loops[statement.index]
        own = tuple(
            build.read(pieces[loop.index]) if pieces else build.sub(build.read(loop.index), loop.start)
            for loop in loops
        )

        def visit(node: Node) -> Node:
            match node:
                case Load(tensor=tensor, indices=indices) | Store(tensor=tensor, indices=indices) if (
                    tensor == found.tensor
                ):
                    return replace(node, tensor=whole, indices=(*own, *indices))
                case _:
                    return resized(node)

        return (rewrite(statement, visit),)

    body = tuple(rewrite(item, resized) for item in rewrite_statements(kernel.body, owned))
    facts = [build.apply("eq", build.size(whole, axis), extent) for axis, extent in enumerate(found.extents)]
    facts += [rewrite(fact, resized) for fact in kernel.facts]
    return with_body(kernel, body, facts)


def _piece(index: Symbol, names: Names) -> Symbol:
    return Symbol(f"{index.name}_piece", next(names.symbols), INT64)


@legality
def _in_pieces(loop: For, piece: Symbol, names: Names) -> For:
    """Return a loop as one over pieces, each with every so manieth iteration."""
    turn = Symbol(loop.index.name, next(names.symbols), loop.index.dtype)
    place = build.add(build.read(piece), build.mul(build.integer(PIECES), build.read(turn)))
    index = build.add(loop.start, place)
    rest = build.sub(build.add(_trips(loop), build.integer(PIECES - 1)), build.read(piece))
    stop = build.apply("floordiv", rest, build.integer(PIECES))
    body = substitute_block(loop.body, {loop.index: index})
    # Iterations of one piece share its part: what was claimed of the loop is said of its pieces.
    inner = replace(loop, index=turn, start=build.integer(0), stop=stop, body=body, claimed=False)
    return For(
        index=piece,
        start=build.integer(0),
        stop=build.integer(PIECES),
        body=(inner,),
        claimed=loop.claimed,
        loc=loop.loc,
    )
