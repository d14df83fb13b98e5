"""Rows that elements begin and end: they have no element in common where the elements ascend, which is tested.

    for i in range(n):                                      broken = any p[k] > p[k + 1], p[k] < 0 or p[k] > len(x)
        for e in range(p[i], p[i + 1]):         ->          if not broken: the loops, in parallel
            x[e] = ...                                      if broken: the loops as they are

So it is with rows that one tensor begins and another ends, or counts (`range(s[i], s[i] + n[i])`): none that has
elements may begin before the end of one before it, which chunks of rows find for themselves, and each pair of chunks
for both. What a kernel stores into the elements stands in a kernel before.

The test is a kernel of its own, whose answer the others read: no host waits for it. Where iterations may run at once
all the same, by updates in one step, only many elements are worth it. Invariant: a kernel is taken apart only if
nothing in it stores into what is tested, and iterations never meet then that otherwise may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, product

from brickwork.analysis.analyse import analyse
from brickwork.analysis.ascending_rows import is_in_row
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Loop
from brickwork.analysis.polynomial import SIZE_LIMIT, of_atom
from brickwork.analysis.verdicts import Analysis, LoopVerdict
from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Ascending,
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Program,
    Return,
    Size,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import read_symbols, rewrite_statements, statements, substitute, walk
from brickwork.legality import legality
from brickwork.target.target import Target
from brickwork.transform.explanation import IN_ORDER as ONE_THREAD
from brickwork.transform.explanation import OTHERWISE
from brickwork.transform.free_variables import with_body
from brickwork.transform.interchange import interchange
from brickwork.transform.nests_apart import Changed, each_launch, stand_apart, with_each
from brickwork.transform.row_elements import with_row_elements
from brickwork.transform.scratch import Names, names_of
from brickwork.transform.sums_of_rows import with_sums_of_rows

_CHUNK, _CHUNKS = 256, 4096
"""How many rows a chunk of a test has at least, and the most chunks: all pairs of them are compared."""
FEW = "_few"
"""Ends the name of a kernel for few elements."""
BEFORE = "_before"
"""Ends the name of a kernel of what stands before rows."""
TEST = "_rows"
"""Ends the name of a kernel that tests whether elements ascend."""
IN_ORDER = "_in_order"
"""Ends the name of a kernel for elements that do not ascend."""


def with_ascending_rows(program: Program, target: Target) -> tuple[Program, dict[str, str]]:
    """Return the program with kernels of their own for rows whose ends ascend, where more is independent then.

    With the names of the kernels for rows whose ends do not comes what `explain` says of them.
    """
    names = names_of(program)

    def change(launch: Launch) -> Changed | None:
        found = _ascending(launch.kernel, target)
        unread = _unread(program, launch) if target.matrix else frozenset[Tensor]()
        if found is None:
            return None
        return _apart(launch, *found, names, unread, target), {f"{launch.kernel.name}{IN_ORDER}": OTHERWISE}

    return with_each(program, change)


@each_launch("grid")
def with_pairs_of_rows(launch: Launch, names: Names, target: Target) -> Changed | None:
    """Return the launch with kernels of their own for rows that pairs of elements begin and end or count.

    It is for grids, where rows that may meet would run in order: where they are not apart one thread runs them. Where
    updates in one step do, a thread waits for no element: a pooling's gradient took 1.2 ms so, and 1.6 by rows (H200).
    """
    if launch.kernel.ascending or launch.kernel.name.endswith(IN_ORDER):
        return None
    before, rest = _parts(launch)
    found = _ascending(rest.kernel, target, pairs=True)
    if found is None or found[1] is not None:
        return None
    remark = {f"{rest.kernel.name}{IN_ORDER}": ONE_THREAD}
    return (*before, *_apart(rest, *found, names, frozenset(), target)), remark


@legality
def _parts(launch: Launch) -> tuple[Block, Launch]:
    """Return a launch of what stands before nests with rows, and what may store their ends, and one of the others."""
    kernel = launch.kernel
    place = next((place for place, nest in enumerate(kernel.body) if _may_have_rows((nest,))), 0)
    if not place or effects(kernel.body).rebinds or not stand_apart(kernel.body):
        return (), launch
    before, rest = (with_body(kernel, part, kernel.facts) for part in (kernel.body[:place], kernel.body[place:]))
    named = replace(before, name=f"{kernel.name}{BEFORE}")
    return (replace(launch, kernel=named),), replace(launch, kernel=rest)


@legality
def _unread(program: Program, launch: Launch) -> frozenset[Tensor]:
    """Return the tensors of a program that nothing after a launch reads, of those that it makes."""
    if launch not in program.body or effects(program.body).rebinds:
        return frozenset()
    place = program.body.index(launch)
    later = {node.tensor for node in walk(program.body[place + 1 :]) if isinstance(node, Load | Size)}
    later |= {tensor for node in walk(program.body[place + 1 :]) if isinstance(node, Return) for tensor in node.tensors}
    made = {node.tensor for node in program.body[:place] if isinstance(node, Allocate)}
    return frozenset(made - later)


# ---------------------------------------------------------------- what is tested


def _ascending(
    kernel: Kernel, target: Target, *, pairs: bool = False
) -> tuple[tuple[Ascending, ...], Expression | None] | None:
    """Return what to test for a kernel, and where that is worth it; None where iterations would meet all the same."""
    if effects(kernel.body).rebinds or not _may_have_rows(kernel.body):
        return None
    before = _analysed(kernel, target)
    blocked = [loop for loop in before.model.loops if not _is_apart(loop, before, target)]
    tested = tuple(_pairs(kernel, before) if pairs else _prefixes(before, blocked))
    if not tested:
        return None
    after = _analysed(replace(kernel, ascending=tested), target)
    if pairs:
        tested = tuple(_with_sizes(tested, before, after))
    freed = [loop for loop in blocked if _is_apart(loop, after, target) or _is_freed(loop, before, after)]
    firsts = [each for item in tested for each in after.model.elements.values() if each.tensor == item.tensor]
    if not any(loop.atom in index.atoms() for loop in freed for each in firsts for index in each.indices):
        return None
    return tested, _many(blocked, before, target)


@legality
def _is_apart(loop: Loop, analysis: Analysis, target: Target) -> bool:
    """Whether iterations may run at once, and on a grid never meet on an element."""
    verdict = analysis.loops[loop.node.index]
    return verdict.independent and not (target.grid and verdict.updates)


def _is_exact(access: Access, verdict: LoopVerdict) -> bool:
    """Whether iterations may run at once, and meet by an access in updates of integers, if at all."""
    return verdict.independent and (access.tensor not in verdict.updates or _is_integer(access.tensor))


@legality
def _is_freed(loop: Loop, before: Analysis, after: Analysis) -> bool:
    """Whether iterations may run at once in one analysis, if only by updates in one step, and not in another."""
    return after.loops[loop.node.index].independent and not before.loops[loop.node.index].independent


def _many(blocked: Sequence[Loop], analysis: Analysis, target: Target) -> Expression | None:
    """Return that there are many elements, where loops may run at once without the test; None where some may not.

    Those are more than all threads of the machine step through in the time of a launch.
    """
    verdicts = [analysis.loops[loop.node.index] for loop in blocked]
    if not all(verdict.independent for verdict in verdicts):
        return None
    (tensor, *_) = (tensor for verdict in verdicts for tensor in verdict.updates)
    sizes = [build.size(tensor, axis) for axis in range(tensor.type.rank)]
    most = target.launch_ns * target.threads // target.block_step_ns
    return build.apply("ge", build.product(sizes), build.integer(most))


def _analysed(kernel: Kernel, target: Target) -> Analysis:
    return find_updates(kernel, analyse(kernel), claimed=not target.grid)


def _may_have_rows(block: Block) -> bool:
    """Whether a loop ends by a variable that is computed of elements, in loops that store."""
    nodes = [*statements(block)]
    read = {node.symbol for node in nodes if isinstance(node, Assign) and effects(node.value).loads}
    loops = [node for node in nodes if isinstance(node, For)]
    return any(read & read_symbols((loop.stop,)) for loop in loops) and bool(effects(block).stores)


def _prefixes(analysis: Analysis, blocked: Sequence[Loop]) -> Iterator[Ascending]:
    """Yield the tensors whose elements begin and end rows along which loops store, with the sizes of these axes."""
    found: dict[Tensor, dict[Size, None]] = {}
    for access in analysis.accesses:
        if not access.store or access.tensor.is_local or not any(loop in access.loops for loop in blocked):
            continue
        for row in access.loops:
            along = any(row.goes_along(axis.value) for axis in access.axes)
            if along and (tensor := tensor_of(row, analysis)) is not None:
                found.setdefault(tensor, {}).update(dict.fromkeys(_sizes(row, analysis.accesses)))
    yield from (Ascending(tensor, tuple(sizes)) for tensor, sizes in found.items())


def _pairs(kernel: Kernel, analysis: Analysis) -> Iterator[Ascending]:
    """Yield pairs of tensors whose elements begin and end, or count, the rows of a loop."""
    read = dict.fromkeys(each.tensor for each in analysis.model.elements.values())
    ends = [tensor for tensor in read if tensor.type.rank == 1 and _is_integer(tensor)]
    if len(ends) < 2:
        return
    # Of elements that are no sizes, sums may be beyond all integers: that they are is tested, too.
    model = analyse(replace(kernel, ascending=tuple(Ascending(tensor, (), tensor) for tensor in ends))).model
    found: dict[Tensor, Ascending] = {}
    pairs = product(model.loops, model.elements.items(), model.elements.items())
    for row, (start, one), (stop, other) in pairs:
        counted = row.stop - row.start == of_atom(stop)
        same = one.tensor != other.tensor and one.indices == other.indices and {one.tensor, other.tensor} <= {*ends}
        if same and (counted or (row.start, row.stop) == (of_atom(start), of_atom(stop))):
            found.setdefault(one.tensor, Ascending(one.tensor, (), other.tensor, counted))
    yield from found.values()


def _is_integer(tensor: Tensor) -> bool:
    return value_dtype(tensor.type.dtype) is INT64


def _with_sizes(tested: Sequence[Ascending], before: Analysis, after: Analysis) -> Iterator[Ascending]:
    """Yield those rows in which stores are, other than updates that may meet, with the sizes of their axes."""
    solver = Solver()
    elements = after.model.elements
    for item in tested:
        sizes: dict[Size, None] = {}
        for access, (start, one), (stop, other) in product(after.accesses, elements.items(), elements.items()):
            exact = all(_is_exact(access, before.loops[loop.node.index]) for loop in access.loops)
            if (one.tensor, other.tensor) != (item.tensor, item.last) or not access.store or exact:
                continue
            for axis in range(0 if access.tensor.is_local else len(access.axes)):
                if is_in_row(after.model, solver, access, axis, (start, stop), counted=item.counted):
                    sizes[Size(tensor=access.tensor, axis=axis)] = None
        if sizes:
            yield replace(item, most=tuple(sizes))


def tensor_of(row: Loop, analysis: Analysis) -> Tensor | None:
    """Return the tensor whose neighbouring elements a loop begins and ends by, if there is one."""
    elements = analysis.model.elements
    ends = [elements.get(atom) for bound in (row.start, row.stop) for atom in bound.atoms() if of_atom(atom) == bound]
    tensors = {end.tensor for end in ends if end is not None and value_dtype(end.tensor.type.dtype) is INT64}
    return tensors.pop() if len(ends) == len((row.start, row.stop)) and len(tensors) == 1 else None


def _sizes(row: Loop, accesses: Sequence[Access]) -> Iterator[Size]:
    """Yield the sizes of the axes along which a row goes."""
    for access in accesses:
        for place, axis in enumerate(access.axes):
            if row.goes_along(axis.value) and not access.tensor.is_local:
                yield Size(tensor=access.tensor, axis=place)


# ---------------------------------------------------------------- the kernels


def _apart(
    launch: Launch,
    tested: Sequence[Ascending],
    many: Expression | None,
    names: Names,
    unread: frozenset[Tensor],
    target: Target,
) -> Block:
    """Return what tests whether elements ascend, and the kernels for those that do and that do not.

    Where there are not `many` elements nothing is tested.
    """
    kernel = launch.kernel
    answer, made = names.tensor(f"{kernel.name}_broken", INT64, 1)
    broken = names.symbol("broken", INT64)
    tests = [(_test if item.last is None else _test_of_pairs)(item, broken, names, kernel.loc) for item in tested]
    body: Block = (
        Assign(symbol=broken, value=build.integer(0)),
        *chain.from_iterable(block for _, block in tests),
        names.store(answer, build.integer(0), build.read(broken)),
    )
    chunks = tuple(chain.from_iterable(scratch for scratch, _ in tests))
    sizes = ((item.tensor, axis, size) for item in chunks for axis, size in enumerate(item.sizes))
    equal = (build.apply("eq", build.size(tensor, axis), size) for tensor, axis, size in sizes)
    facts = (*_has_answer(answer), *equal, *kernel.facts)
    test = Kernel(name=f"{kernel.name}{TEST}", tensors=(), scalars=(), facts=(), body=())
    sure = replace(kernel, ascending=tuple(tested))
    sure = with_sums_of_rows(sure, analyse(sure), unread, names) if unread else sure
    sure = with_row_elements(sure, names, target) if target.grid else sure
    ascending = _where(sure, answer, "eq")
    pairs = any(item.last is not None for item in tested)
    unlike = kernel if pairs else _exchanged(kernel, names)
    other = replace(_where(unlike, answer, "ne"), name=f"{kernel.name}{IN_ORDER}", may_alias=pairs)
    test = with_body(test, body, facts)
    result = (made, *chunks, *(replace(launch, kernel=each) for each in (test, ascending, other)))
    if many is None:
        return result
    few = replace(launch, kernel=replace(kernel, name=f"{kernel.name}{FEW}"))
    return (If(condition=many, then=result, otherwise=(few,)),)


@legality
def _stand_in_bounds(heads: Sequence[Statement], row: For) -> bool:
    """Whether statements before a loop only assign variables that nothing but its bounds reads."""
    read = read_symbols(row.body) | effects(heads).reads
    return all(isinstance(item, Assign) and item.symbol not in read for item in heads)


def _exchanged(kernel: Kernel, names: Names) -> Kernel:
    """Return a kernel with loops that can run at once around rows in order: else these are launches for each of them.

    Nests are perfect while rows read the elements that begin and end them themselves.
    """

    def joined(statement: Statement) -> Block:
        match statement:
            case For(body=(*heads, For() as row)) if heads and _stand_in_bounds(heads, row):
                values = {item.symbol: item.value for item in heads if isinstance(item, Assign)}
                return (replace(statement, body=(substitute(row, values),)),)
            case _:
                return (statement,)

    def parted(statement: Statement) -> Block:
        if not isinstance(statement, For) or not any(
            isinstance(end, Load) for end in (statement.start, statement.stop)
        ):
            return (statement,)
        ends = [names.symbol("bound", INT64) for _ in range(2)]
        heads = (
            Assign(symbol=end, value=value) for end, value in zip(ends, (statement.start, statement.stop), strict=True)
        )
        return (*heads, replace(statement, start=build.read(ends[0]), stop=build.read(ends[1])))

    perfect = replace(kernel, body=rewrite_statements(kernel.body, joined))
    if perfect.body == kernel.body:
        return kernel
    found, moved = interchange(perfect, analyse(perfect), grid=True)
    return replace(found, body=rewrite_statements(found.body, parted)) if moved else kernel


@legality
def _test(item: Ascending, broken: Symbol, names: Names, loc: Location) -> tuple[tuple[Allocate, ...], Block]:
    """Return loops that let a variable be 1 where an element is greater than the next, or not in range."""
    tensor = item.tensor
    indices = [names.symbol("place", INT64) for _ in range(tensor.type.rank)]
    sizes = [build.size(tensor, axis) for axis in range(tensor.type.rank)]
    *outer, last = map(build.read, indices)
    following = build.apply("minimum", build.add(last, build.integer(1)), build.sub(sizes[-1], build.integer(1)))
    element = names.load(tensor, *outer, last)
    wrong = build.apply("lt", element, build.integer(0))
    for limit in (names.load(tensor, *outer, following), *item.most):
        again = replace(element, access=next(names.accesses))
        wrong = build.apply("logical_or", wrong, build.apply("gt", again, limit))
    value = build.apply("maximum", build.read(broken), build.cast(wrong, INT64))
    body: Block = (Assign(symbol=broken, value=value),)
    for index, size in zip(reversed(indices), reversed(sizes), strict=True):
        body = (For(index=index, start=build.integer(0), stop=size, body=body, loc=loc),)
    return (), body


@legality
def _test_of_pairs(item: Ascending, broken: Symbol, names: Names, loc: Location) -> tuple[tuple[Allocate, ...], Block]:
    """Return loops that let a variable be 1 where a row is not in range, or begins before the end of an earlier one.

    Chunks of rows leave where the first of their elements is, and the end of the last.
    """
    first, last = item.tensor, item.last or item.tensor
    rows = build.apply("minimum", build.size(first, 0), build.size(last, 0))
    count = build.add(build.apply("floordiv", rows, build.integer(_CHUNK)), build.integer(1))
    count = build.apply("minimum", count, build.integer(_CHUNKS))
    step = build.add(build.apply("floordiv", rows, count), build.integer(1))
    (leasts, made), (mosts, also) = (names.tensor(f"{first.name}_{name}", INT64, count) for name in ("least", "most"))
    chunk, row, start, stop, least, most, later, earlier = (
        names.symbol(name, INT64) for name in ("chunk", "row", "start", "stop", "least", "most", "later", "earlier")
    )
    zero, at, begin, end = build.integer(0), build.read(chunk), build.read(start), build.read(stop)

    def set_to(symbol: Symbol, name: str, *values: Expression) -> Assign:
        return Assign(symbol=symbol, value=reduce(partial(build.apply, name), values))

    def raised(condition: Expression) -> Assign:
        return set_to(broken, "maximum", build.read(broken), build.cast(condition, INT64))

    # A length is compared before it is added to the start, which could be beyond all integers.
    room = [build.sub(size, begin) if item.counted else size for size in item.most]
    limits = [(begin, size) for size in item.most] + [(end, size) for size in room]
    wrong = [build.apply("lt", value, zero) for value in (begin, end)]
    wrong += [build.apply("gt", value, limit) for value, limit in limits]
    behind = build.add(begin, end) if item.counted else end
    of_row = (
        set_to(start, "add", names.load(first, build.read(row))),
        set_to(stop, "add", names.load(last, build.read(row))),
        raised(reduce(partial(build.apply, "logical_or"), wrong)),
        If(
            condition=build.apply("lt", begin, behind),
            then=(
                raised(build.apply("lt", begin, build.read(most))),
                set_to(least, "minimum", build.read(least), begin),
                set_to(most, "maximum", build.read(most), behind),
            ),
        ),
    )
    from_row = build.mul(at, step)
    to_row = build.apply("minimum", build.add(from_row, step), rows)
    of_chunk = (
        set_to(least, "add", build.integer(SIZE_LIMIT)),
        set_to(most, "add", zero),
        For(index=row, start=from_row, stop=to_row, body=of_row, loc=loc),
        names.store(leasts, at, build.read(least)),
        names.store(mosts, at, build.read(most)),
    )
    ahead = build.apply("lt", names.load(leasts, build.read(later)), names.load(mosts, build.read(earlier)))
    pairs = For(index=earlier, start=zero, stop=build.read(later), body=(raised(ahead),), loc=loc)
    return (made, also), (
        For(index=chunk, start=zero, stop=count, body=of_chunk, loc=loc),
        For(index=later, start=zero, stop=count, body=(pairs,), loc=loc),
    )


@legality
def _where(kernel: Kernel, answer: Tensor, comparison: str) -> Kernel:
    """Return a kernel that does what it did where the answer of the test compares so with 0, and else nothing."""
    names = names_of(kernel)
    runs = names.symbol("runs", BOOL)
    asked = build.apply(comparison, names.load(answer, build.integer(0)), build.integer(0))
    body = (Assign(symbol=runs, value=asked), If(condition=build.read(runs), then=kernel.body))
    return replace(kernel, tensors=(*kernel.tensors, answer), facts=(*kernel.facts, *_has_answer(answer)), body=body)


def _has_answer(answer: Tensor) -> tuple[Expression, ...]:
    return (build.apply("eq", build.size(answer, 0), build.integer(1)),)
