"""Rows that elements begin and end: they have no element in common where the elements ascend, which is tested.

    for i in range(n):                                      broken = any p[k] > p[k + 1], p[k] < 0 or p[k] > len(x)
        for e in range(p[i], p[i + 1]):         ->          if not broken: the loops, in parallel
            x[e] = ...                                      if broken: the loops as they are

The test is a kernel of its own, whose answer the others read: no host waits for it. Where iterations may run at once
all the same, by updates in one step, only many elements are worth it. Invariant: a kernel is taken apart only if
nothing in it stores into what is tested, and iterations never meet then that otherwise may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.polyhedral_model import Access, Loop
from brickwork.analysis.polynomial import of_atom
from brickwork.analysis.verdicts import Analysis
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
    Read,
    Return,
    Size,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import read_symbols, rewrite_statements, statements, substitute, walk
from brickwork.legality import legality
from brickwork.target.target import Target
from brickwork.transform.autodiff.gather_versions import copied
from brickwork.transform.explanation import OTHERWISE
from brickwork.transform.free_variables import with_body
from brickwork.transform.interchange import interchange
from brickwork.transform.nests_apart import Changed, with_each
from brickwork.transform.row_elements import with_row_elements
from brickwork.transform.scratch import Names, names_of
from brickwork.transform.sums_of_rows import with_sums_of_rows

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
        other = {f"{launch.kernel.name}{IN_ORDER}": OTHERWISE}
        unread = _unread(program, launch) if target.matrix else frozenset[Tensor]()
        return None if found is None else (_apart(launch, *found, names, unread, target), other)

    return with_each(program, change)


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


def _ascending(kernel: Kernel, target: Target) -> tuple[tuple[Ascending, ...], Expression | None] | None:
    """Return what to test for a kernel, and where that is worth it; None where iterations would meet all the same."""
    if not _may_have_rows(kernel.body):
        return None
    before = _analysed(kernel, target)
    blocked = [loop for loop in before.model.loops if not _is_apart(loop, before, target)]
    rows = [row for row in before.model.loops if tensor_of(row, before) is not None]
    found: dict[Tensor, dict[Size, None]] = {}
    for access in before.accesses:
        for row in rows:
            tensor = tensor_of(row, before)
            if tensor is not None and access.store and not access.tensor.is_local and _is_about(access, row, blocked):
                found.setdefault(tensor, {}).update(dict.fromkeys(_sizes(row, before.accesses)))
    if not found:
        return None
    tested = tuple(Ascending(tensor, tuple(sizes)) for tensor, sizes in found.items())
    after = _analysed(replace(kernel, ascending=tested), target)
    if not any(_is_apart(loop, after, target) or _is_freed(loop, before, after) for loop in blocked):
        return None
    return tested, _many(blocked, before, target)


@legality
def _is_apart(loop: Loop, analysis: Analysis, target: Target) -> bool:
    """Whether iterations may run at once, and on a grid never meet on an element."""
    verdict = analysis.loops[loop.node.index]
    return verdict.independent and not (target.grid and verdict.updates)


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
    """Whether a loop stores that begins and ends by variables which are elements."""
    nodes = [*statements(block)]
    read = {node.symbol for node in nodes if isinstance(node, Assign) and isinstance(node.value, Load)}
    return any(
        isinstance(end := node.start, Read) and isinstance(node.stop, Read) and {end.symbol, node.stop.symbol} <= read
        for node in nodes
        if isinstance(node, For) and effects(node.body).stores
    )


def _is_about(access: Access, row: Loop, blocked: Sequence[Loop]) -> bool:
    """Whether an access goes along a row, in loops that are not independent."""
    along = any(row.goes_along(axis.value) for axis in access.axes)
    return along and row in access.loops and any(loop in access.loops for loop in blocked)


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
    tests = (_test(item, broken, names, kernel.loc) for item in tested)
    body: Block = (
        Assign(symbol=broken, value=build.integer(0)),
        *chain.from_iterable(tests),
        names.store(answer, build.integer(0), build.read(broken)),
    )
    facts = (*_has_answer(answer), *kernel.facts)
    test = Kernel(name=f"{kernel.name}{TEST}", tensors=(), scalars=(), facts=(), body=())
    sure = replace(kernel, ascending=tuple(tested))
    sure = with_sums_of_rows(sure, analyse(sure), unread, names) if unread else sure
    sure = with_row_elements(sure, names, target) if target.grid else sure
    ascending = _where(sure, answer, "eq")
    other = replace(_where(_exchanged(kernel, names), answer, "ne"), name=f"{kernel.name}{IN_ORDER}")
    if many is not None:
        body = (If(condition=many, then=body),)
        ascending = replace(ascending, body=(If(condition=many, then=ascending.body),))
        again = tuple(copied(statement, names) for statement in kernel.body)
        other = replace(other, body=(If(condition=many, then=other.body, otherwise=again),))
    test = with_body(test, body, facts)
    return (made, *(replace(launch, kernel=each) for each in (test, ascending, other)))


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
def _test(item: Ascending, broken: Symbol, names: Names, loc: Location) -> Block:
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
    return body


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
