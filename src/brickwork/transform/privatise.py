"""Array privatisation: each iteration gets its own copy of a small scratch tensor that it fills before it reads.

    tmp = scratch(9)                                tmp = scratch(9)
    for i in range(n):                              for i in range(n):
        for k in range(9): tmp[k] = x[i, k]   ->        local own(9)
        y[i] = median(tmp)                              for k in range(9): own[k] = x[i, k]
                                                        y[i] = median(own)

Legal where every element that an iteration reads was written before in the same iteration, and nothing else reads the
tensor. Done only where the iterations are independent then. Whether it rests on the guards of the analysis is not
asked: the body for other arguments keeps the tensor. So a copy of a tensor whose extents are not known has room for
some elements, and that there are no more is a guard like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import count
from math import prod

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates, update_operator
from brickwork.analysis.formula import TRUE, Formula, at_least, either, less
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Loop
from brickwork.analysis.polynomial import Atom, Polynomial, ScalarAtom, SizeAtom, number, of_atom
from brickwork.analysis.races import Facts, find_race
from brickwork.analysis.scalars import live_after_loops, scalar_verdict
from brickwork.analysis.verdicts import Analysis, Bound
from brickwork.frontend.lowering_state import LARGEST
from brickwork.ir.answers import Answers
from brickwork.ir.dtypes import VALUE_DTYPES
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Block,
    Constant,
    For,
    If,
    Kernel,
    Launch,
    Load,
    Local,
    Node,
    Program,
    Rebind,
    Return,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    While,
)
from brickwork.ir.walk import blocks_in, children, rewrite, rewrite_statements, walk
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.target.matrix import ROOMY_REGISTERS

ROOM = ROOMY_REGISTERS // 2
"""Elements that an iteration of a grid has room for, where a tensor's extents are not known."""
PRIVATE_NUMBERS = 4_000_000
"""Numbers of the tensors made in here start from this."""


@legality
def scratch_of(program: Program) -> frozenset[Tensor]:
    """Return the tensors that a program allocates for one of its kernels alone, or for kernels of which one runs."""
    nodes = [*walk(program.body)]
    made = {node.tensor for node in nodes if isinstance(node, Allocate) and not node.given}
    shared: set[Tensor] = set()
    for node in nodes:
        match node:
            case Return(tensors=tensors):
                shared |= {*tensors}
            case Rebind(targets=targets, sources=sources):
                shared |= {*targets, *sources}
            case _:
                pass
    return frozenset(item for item in made - shared if _users(program.body, item) == 1)


@legality
def _users(block: Block, tensor: Tensor) -> int:
    """Return how many launches of one call use a tensor: of the branches that the host chooses between, one runs."""
    users = 0
    for statement in block:
        if isinstance(statement, If):
            users += max(_users(statement.then, tensor), _users(statement.otherwise, tensor))
        else:
            users += sum(isinstance(node, Launch) and tensor in node.kernel.tensors for node in walk(statement))
    return users


def privatise(
    kernel: Kernel, analysis: Analysis, scratch: frozenset[Tensor], *, grid: bool = False
) -> tuple[Kernel, Analysis]:
    """Return the kernel with copies of `scratch` tensors for iterations, for a `grid` or not, and its analysis.

    `analysis` is of this kernel.
    """
    sizes = {
        tensor: found
        for tensor in scratch
        if not tensor.added and (found := copied_extents(kernel, tensor, analysis, grid=grid))
    }
    if kernel.may_alias or not sizes:
        return kernel, analysis
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    finder = OwnerFinder(facts, live_after_loops(kernel.body), frozenset(sizes), updates=grid)
    owners = {
        tensor: loops
        for tensor in sizes
        if (loops := finder.owners(kernel.body, tensor)) and any(finder.is_shared(loop, tensor) for loop in loops)
    }
    if not owners:
        return kernel, analysis
    copies: dict[Symbol, dict[Tensor, Tensor]] = {}
    for tensor, loops in owners.items():
        numbers = count(PRIVATE_NUMBERS * (1 + tensor.number))
        for loop in loops:
            copy = replace(tensor, number=next(numbers), sizes=sizes[tensor])
            copies.setdefault(loop.index, {})[tensor] = copy
    body = rewrite_statements(kernel.body, lambda statement: _with_copies(statement, copies))
    changed = replace(kernel, body=_without_idle_stores(body, frozenset(owners), analysis))
    found = analyse(changed)
    loops = (find_updates(changed, found) if grid else found).loops
    claimed = {loop.index for each in owners.values() for loop in each if loop.claimed}
    proved = all(index in claimed or loops[index].independent for index in copies)
    return (changed, found) if proved else (kernel, analysis)


def owned(kernel: Kernel, analysis: Analysis, scratch: frozenset[Tensor]) -> dict[Symbol, tuple[Tensor, ...]]:
    """Return the `scratch` tensors that nothing passes through from one iteration to another, by the loops' indices.

    Each iteration fills them before it reads them. `analysis` is of this kernel.
    """
    facts = Facts(analysis.model, Solver(), analysis.bounds)
    finder = OwnerFinder(facts, live_after_loops(kernel.body), scratch, updates=True, independent=False)
    found: dict[Symbol, tuple[Tensor, ...]] = {}
    for tensor in sorted(scratch, key=lambda item: item.number):
        for loop in finder.owners(kernel.body, tensor) or ():
            if finder.is_shared(loop, tensor):
                found[loop.index] = (*found.get(loop.index, ()), tensor)
    return found


@legality
def copied_extents(kernel: Kernel, tensor: Tensor, analysis: Analysis, *, grid: bool) -> tuple[int, ...]:
    """Return the extents of copies of a tensor with elements of a value type; none where there can be none."""
    if tensor.type.dtype not in VALUE_DTYPES:
        return ()
    known = _known_extents(kernel, tensor)
    if len(known) < tensor.type.rank and not _stays_inside(tensor, analysis):
        return ()
    room = _room(tensor, grid=grid) // max(prod(known.values()), 1)
    unknown = tensor.type.rank - len(known)
    side = 1 << (room.bit_length() - 1) // unknown if unknown and room else 0
    extents = tuple(known.get(axis, side) for axis in range(tensor.type.rank))
    return extents if all(extents) and prod(extents) * tensor.type.dtype.size <= LARGEST else ()


def _room(tensor: Tensor, *, grid: bool) -> int:
    """Return how many elements of a tensor an iteration has room for, where its extents are not known."""
    return ROOM if grid else LARGEST // tensor.type.dtype.size


def _known_extents(kernel: Kernel, tensor: Tensor) -> dict[int, int]:
    """Return the extents of a tensor, where the facts of a kernel say them."""
    known: dict[int, int] = {}
    for fact in kernel.facts:
        match fact:
            case Apply(operator=operator, operands=(Size(tensor=sized, axis=axis), Constant(value=int(value)))):
                if operator.name == "eq" and sized == tensor:
                    known[axis] = value
            case _:
                pass
    return known


@legality
def _stays_inside(tensor: Tensor, analysis: Analysis) -> bool:
    """Whether no access of a tensor is checked as it happens: that of a copy could not tell where the tensor ends."""
    accesses = {item.number for item in analysis.model.accesses if item.tensor == tensor}
    return all(
        verdict.bound is not Bound.CHECKED for (access, _), verdict in analysis.bounds.items() if access in accesses
    )


# ---------------------------------------------------------------- which loops


@dataclass(frozen=True, slots=True)
class _Written:
    """A store before a read, in the same iteration of the loops around both, and the loops around the store alone.

    If it is `earlier`, the first of those is around the read, too, and the stores are of its iterations before.
    """

    access: Access
    alone: tuple[Loop, ...]
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class OwnerFinder:
    """Finds the loops of one kernel whose iterations may have copies of `tensors`."""

    facts: Facts
    live: dict[Symbol, frozenset[Symbol]]
    tensors: frozenset[Tensor]
    updates: bool = False
    """Whether updates of elements, which threads of a grid may make at once, are in the way of nothing."""
    independent: bool = True
    """Whether a loop is no owner that carries another one of the tensors from iteration to iteration."""
    known: Answers[For, bool] = field(init=False, default_factory=Answers["For", "bool"], compare=False, repr=False)
    """Which loops are owners: each is asked for every tensor."""

    @legality
    def owners(self, block: Block, tensor: Tensor) -> list[For] | None:
        """Return the innermost loops in a block that hold all reads of a tensor and may own it, or None."""
        found: list[For] = []
        for statement in block:
            if tensor not in effects(statement).loads:
                continue
            inner: list[For] | None
            match statement:
                case For(body=body):
                    inner = self.owners(body, tensor)
                    if inner is None and self.is_owner(statement) and self.fills(body, tensor, ()):
                        inner = [statement]
                case If(condition=condition, then=then, otherwise=otherwise) if not _reads((condition,), tensor):
                    first, second = self.owners(then, tensor), self.owners(otherwise, tensor)
                    inner = None if first is None or second is None else [*first, *second]
                case While(prelude=prelude, condition=condition, body=body) if not _reads((condition,), tensor):
                    inner = self.owners((*prelude, *body), tensor)
                case _:
                    inner = None
            if inner is None:
                return None
            found.extend(inner)
        return found

    @legality
    def is_owner(self, node: For) -> bool:
        """Whether the iterations of a loop are independent once each has those of the tensors that it fills itself."""
        return self.known.of(node, self._is_owner)

    @legality
    def _is_owner(self, node: For) -> bool:
        if not self.is_apart(node, self.tensors):
            return False
        if not self.independent:
            return True
        used = {access.tensor for access in self.facts.model.accesses}
        filled = frozenset(item for item in self.tensors & used if self.fills(node.body, item, ()))
        return filled == self.tensors or self.is_apart(node, filled)

    def is_shared(self, node: For, tensor: Tensor) -> bool:
        """Whether iterations meet in a tensor: one of which each iteration has a part of its own needs no copies."""
        return not self.is_apart(node, self.tensors - {tensor})

    def is_apart(self, node: For, tensors: frozenset[Tensor]) -> bool:
        """Whether nothing but these tensors is in the way of independent iterations.

        Where the user says that those are, that is of all but scratch tensors, which are new in each.
        """
        loop = next(item for item in self.facts.model.loops if item.node.index == node.index)
        if loop.leaves or effects(node.body).rebinds:
            return False
        if scalar_verdict(node, self.live[node.index])[1] is not None:
            return False
        free = tensors | self.updated(node) if self.updates else tensors
        others = tuple(item for item in self.facts.model.accesses if item.tensor not in free)
        race = find_race(self.facts, loop, may_alias=False, accesses=others)
        if race is None or not node.claimed or race.refuted:
            return race is None
        scratch = tuple(item for item in others if item.tensor in self.tensors)
        return find_race(self.facts, loop, may_alias=False, accesses=scratch) is None

    @legality
    def updated(self, node: For) -> frozenset[Tensor]:
        """Return the tensors that a loop does nothing with but update their elements."""
        stored = effects(node.body).stores
        return frozenset(item for item in stored if not item.is_local and update_operator(node, item) is not None)

    # ------------------------------------------------------------ filled before it is read

    @legality
    def fills(self, block: Block, tensor: Tensor, before: tuple[_Written, ...]) -> bool:
        """Whether each read in a block is of what this iteration wrote before; `before` is written ahead of it."""
        written = before
        for statement in block:
            blocks = blocks_in(statement)
            inner = {id(child) for part in blocks for child in part}
            own = [child for child in children(statement) if id(child) not in inner]
            loads = [node for node in walk(own) if isinstance(node, Load) and node.tensor == tensor]
            if not all(self.is_written(load.access, written) for load in loads):
                return False
            inside = (*written, *self.earlier(statement, tensor))
            if not all(self.fills(part, tensor, inside) for part in blocks):
                return False
            written = (*written, *self.writes(statement, tensor, ()))
        return True

    @legality
    def writes(self, statement: Statement, tensor: Tensor, alone: tuple[Loop, ...]) -> Iterator[_Written]:
        """Yield the stores that a statement surely makes."""
        match statement:
            case Store(tensor=stored, access=access) if stored == tensor:
                yield _Written(self.access(access), alone)
            case For(index=index, body=body) if not effects(body).jumps:
                loop = next(item for item in self.facts.model.loops if item.node.index == index)
                for inner in body:
                    yield from self.writes(inner, tensor, (*alone, loop))
            case _:
                pass

    @legality
    def earlier(self, statement: Statement, tensor: Tensor) -> Iterator[_Written]:
        """Yield the stores that the iterations of a loop before one surely made.

        Nothing but the loop's index, and those of loops inside, may differ between them, and inner loops are all alike.
        """
        for item in self.writes(statement, tensor, ()):
            if item.alone:
                moving = {loop.atom for loop in item.alone}
                bounds = [bound for loop in item.alone[1:] for bound in (loop.start, loop.stop)]
                used = {atom for axis in item.access.axes for atom in axis.value.atoms()} - moving
                used.update(atom for bound in bounds for atom in bound.atoms())
                if all(_is_fixed(atom, item.alone[0]) for atom in used):
                    yield replace(item, earlier=True)

    @legality
    def is_written(self, access: int, written: Sequence[_Written]) -> bool:
        """Whether the element that a read touches is surely among those that are written.

        Wherever a read is, it is of an element: out of range it fails before it reads.
        """
        load = self.access(access)
        values = [axis.value for axis in load.axes]
        outside = [either(*self.outside(values, item)) for item in written]
        if self.is_impossible((*self.facts.model.domain(load), *outside), values):
            return True
        return any(self.is_whole(item) for item in written)

    @legality
    def is_whole(self, written: _Written) -> bool:
        """Whether a store in loops alone is of all elements."""
        sizes = [axis.size for axis in written.access.axes]
        first = self.outside([number(0)] * len(sizes), written)
        last = self.outside([size - number(1) for size in sizes], written)
        missed = either(*first, *last)
        return self.is_impossible((*(at_least(size, number(1)) for size in sizes), missed), sizes)

    def is_impossible(self, formulas: Sequence[Formula], values: Sequence[Polynomial]) -> bool:
        """Whether these never hold together, with what is known of the atoms of `values`."""
        atoms = frozenset(atom for value in values for atom in value.atoms())
        return self.facts.solver.feasible(self.facts.model.closure(formulas, atoms)) is False

    @legality
    def outside(self, values: Sequence[Polynomial], written: _Written) -> list[Formula]:
        """Return what an element fulfils one of that is not among those of a store; what is true if those are no box.

        Indices are compared as they are written: two that are equal are of one element, also below zero. An index of
        a loop that is left over in a bound is any number, of which the solver finds one that the element is outside of.
        """
        store, alone = written.access, {loop.atom: loop for loop in written.alone}
        unused = set(alone)
        parts: list[Formula] = []
        for value, axis in zip(values, store.axes, strict=True):
            low, high = axis.value, axis.value + number(1)
            moving = [atom for atom in axis.value.atoms() if atom in alone]
            if moving:
                rest = axis.value - of_atom(moving[0])
                loop = alone[moving[0]]
                done = of_atom(loop.atom) if written.earlier and loop == written.alone[0] else loop.stop
                low, high = rest + loop.start, rest + done
                if moving[0] not in unused:
                    return [TRUE]
                unused.remove(moving[0])
            parts += [less(value, low), at_least(value, high)]
        return [TRUE] if unused else parts

    def access(self, access: int) -> Access:
        """Return the access of this number."""
        return next(item for item in self.facts.model.accesses if item.number == access)


@legality
def _is_fixed(atom: Atom, loop: Loop) -> bool:
    """Whether an atom is the same number in all iterations of a loop."""
    return isinstance(atom, SizeAtom | ScalarAtom) or atom.depth < loop.atom.depth


def _reads(roots: Sequence[Node], tensor: Tensor) -> bool:
    return tensor in effects(roots).loads


# ---------------------------------------------------------------- the change


def _with_copies(statement: Statement, copies: dict[Symbol, dict[Tensor, Tensor]]) -> Block:
    if not isinstance(statement, For) or statement.index not in copies:
        return (statement,)
    own = copies[statement.index]

    def visit(node: Node) -> Node:
        match node:
            case Load(tensor=tensor) | Store(tensor=tensor) if tensor in own:
                return replace(node, tensor=own[tensor])
            case _:
                return node

    declared = tuple(Local(tensor=copy, loc=statement.loc) for copy in own.values())
    return (replace(statement, body=(*declared, *(rewrite(item, visit) for item in statement.body))),)


@legality
def _without_idle_stores(block: Block, tensors: frozenset[Tensor], analysis: Analysis) -> Block:
    """Return the block without what only fills tensors that nothing reads any more."""

    def visit(statement: Statement) -> Block:
        match statement:
            case Store(tensor=tensor, access=access, indices=indices) if tensor in tensors:
                proved = all(analysis.bounds[access, axis].bound is Bound.PROVED for axis in range(len(indices)))
                reads = effects(statement).loads
                return () if proved and not reads else (statement,)
            case For(body=()):
                return ()
            case _:
                return (statement,)

    return rewrite_statements(block, visit)
