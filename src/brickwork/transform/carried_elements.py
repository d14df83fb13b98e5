"""Elements that one iteration stores and the next ones read are kept in variables meanwhile.

    for i in range(n):                             if 0 < n: s = out[0]
        out[i + 1] = out[i] + x[i]        ->       for i in range(n):
                                                       s = s + x[i]
                                                       out[i + 1] = s

So recurrences through memory are recurrences of variables, which `split_recurrences` cuts into chunks. Of those that
read the last few elements each has a variable, and they move on by one in each iteration. Invariant: the loop stores
what it did, and reads no element before it that an iteration did not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.analysis.formula import Formula, atoms_of, both, negate
from brickwork.analysis.formula import substitute as substituted
from brickwork.analysis.isl import Solver
from brickwork.analysis.polyhedral_model import Access, Loop, depth_of
from brickwork.analysis.polynomial import Atom, Polynomial, cofactor, number, of_atom
from brickwork.analysis.races import Facts, may_touch
from brickwork.analysis.scalars import NONE, live_before
from brickwork.analysis.verdicts import Analysis
from brickwork.ir import build
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Apply,
    Assign,
    Block,
    Expression,
    For,
    Kernel,
    Load,
    Node,
    Read,
    Select,
    Statement,
    Store,
    Symbol,
    Tensor,
)
from brickwork.ir.walk import (
    NodeType,
    accesses_in,
    assigned_symbols,
    read_symbols,
    rewrite,
    rewrite_statements,
    statements,
    straight,
    substitute,
    substitute_block,
    walk,
)
from brickwork.legality import legality
from brickwork.records import dataclass
from brickwork.transform.promote import conditional, reached
from brickwork.transform.scratch import Names, names_of


@dataclass(frozen=True, slots=True)
class _Carried:
    """The store into elements that later iterations read, and these reads, by how many iterations later they are.

    Reads of the same iteration after the store are `again`.
    """

    store: Store
    loads: Mapping[int, Sequence[Load]]
    again: Sequence[Load]


def with_carried_elements(kernel: Kernel, analysis_of: Callable[[], Analysis]) -> Kernel:
    """Return the kernel with elements in variables; `analysis_of` gives its analysis."""
    if kernel.may_alias or not any(_may_carry(node) for node in statements(kernel.body)):
        return kernel
    analysis = analysis_of()
    finder = _Finder(Facts(analysis.model, Solver(), analysis.bounds), names_of(kernel))

    def change(statement: Statement) -> Block:
        if not isinstance(statement, For) or not _may_carry(statement):
            return (statement,)
        return finder.loop(statement)

    body = rewrite_statements(kernel.body, change)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _may_carry(node: Node) -> bool:
    """Whether a loop stores, in no loop inside of it, into a tensor that it reads."""
    return isinstance(node, For) and any(store.tensor in effects(node.body).loads for store in _stores(node.body))


def _stores(block: Block) -> Iterator[Store]:
    """Yield the stores into tensors of a block that are in no loops inside of it."""
    return (node for node in straight(block) if isinstance(node, Store) and not node.tensor.is_local)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds what loops carry through memory, and keeps it in variables."""

    facts: Facts
    names: Names

    def loop(self, loop: For) -> Block:
        """Return a loop with elements in variables, after what gives these their first values."""
        before: list[Statement] = []
        for tensor in dict.fromkeys(store.tensor for store in _stores(loop.body)):
            carried = self.carried(loop, tensor)
            variables = {} if carried is None else self.variables(carried)
            first = None if carried is None else _first(loop, carried, variables, self.names)
            if carried is not None and first is not None:
                before += first
                loop = _in_variables(loop, carried, variables, self.names)
        return (*before, loop)

    def variables(self, carried: _Carried) -> dict[int, Symbol]:
        """Return a variable for the element of each of the last iterations."""
        tensor = carried.store.tensor
        return {each: self.names.symbol(tensor.name, value_dtype(tensor.type.dtype)) for each in carried.loads}

    @legality
    def carried(self, loop: For, tensor: Tensor) -> _Carried | None:
        """Return what a loop carries through elements of a tensor, if nothing else stores into them meanwhile."""
        done = effects(loop.body)
        if done.leaves or tensor in done.rebinds:
            return None
        if value_dtype(tensor.type.dtype) != tensor.type.dtype:
            return None
        order = [node for node in accesses_in(loop.body) if node.tensor == tensor]
        stores = [node for node in _stores(loop.body) if node.tensor == tensor]
        known = {access.number: access for access in self.facts.model.accesses}
        if any(node.access not in known for node in order):
            return None  # Loops inside carry some of them.
        model = next(each for each in self.facts.model.loops if each.node.index == loop.index)
        for store in stores:
            loads = self.loads(model, store, order, known, always=store in loop.body)
            again = loads.pop(0, [])
            if loads and sorted(loads) == [*range(1, len(loads) + 1)]:
                return _Carried(store, loads, again)
        return None

    @legality
    def loads(
        self, loop: Loop, store: Store, order: Sequence[Load | Store], known: Mapping[int, Access], *, always: bool
    ) -> dict[int, list[Load]]:
        """Return the reads of what a store stored some iterations ago; all others go on reading memory.

        `always` says that each iteration stores.
        """
        found: dict[int, list[Load]] = {}
        here = known[store.access]
        own = {node.access for node in walk(store) if isinstance(node, Load)}
        ahead = {node.access for node in order[: order.index(store)]} | own
        for node in order:
            later = _iterations_later(loop, here, known[node.access])
            if later is None or not isinstance(node, Load):
                continue
            if node.access not in ahead:
                ready = later == 0 and always
            else:
                ready = later > 0 and (always or self.is_stored(loop, here, known[node.access], later))
            if ready:
                found.setdefault(later, []).append(node)
        read = [known[load.access] for loads in found.values() for load in loads]
        others = [node for node in order if isinstance(node, Store) and node is not store]
        if store.combine is not None or any(
            may_touch(self.facts, loop, known[other.access], each) for other in others for each in read
        ):
            return {}
        # Negative indices may stand for elements that iterations in between store into.
        plain = (self.facts.plain(each, axis) for each in (here, *read) for axis in range(len(here.axes)))
        return found if max(found, default=0) < 2 or all(plain) else {}

    @legality
    def is_stored(self, loop: Loop, store: Access, load: Access, later: int) -> bool:
        """Whether an iteration stores wherever a load reads what is stored, some iterations `later`."""
        held = [each for each in load.conditions if _is_fixed(each, loop)]
        moved: Mapping[Atom, Polynomial] = {loop.atom: of_atom(loop.atom) + number(later)}
        around = (part for each in store.loops for part in each.domain)
        then = (substituted(part, moved) for part in loop.domain)
        missed = negate(both(*store.conditions))
        return self.facts.solver.feasible(self.facts.model.closure((*around, *then, *held, missed))) is False


@legality
def _is_fixed(formula: Formula, loop: Loop) -> bool:
    """Whether what is known of a condition is the same in all iterations of a loop."""
    return all(depth_of(atom) <= loop.depth for atom in atoms_of((formula,)))


@legality
def _iterations_later(loop: Loop, store: Access, access: Access) -> int | None:
    """Return how many iterations after a store another access touches the same element, in each of them.

    None where that is not seen. Each iteration stores into another element.
    """
    pairs = [(one.value, other.value) for one, other in zip(store.axes, access.axes, strict=True)]
    if any(
        atom != loop.atom and depth_of(atom) > loop.depth for pair in pairs for each in pair for atom in each.atoms()
    ):
        return None
    for one, other in pairs:
        step = cofactor(one, loop.atom)
        if step is not None and step.is_constant and step.constant:
            later = (one - other).constant // step.constant
            moved: Mapping[Atom, Polynomial] = {loop.atom: of_atom(loop.atom) + number(later)}
            return later if all(each.substitute(moved) == stored for stored, each in pairs) else None
    return None


@legality
def _first(loop: For, carried: _Carried, variables: Mapping[int, Symbol], names: Names) -> Block | None:
    """Return what gives variables their first values, where iterations read these elements; None if that is not seen.

    An element is first read by the first iteration, or by the next ones where it is one of several.
    """
    changing = assigned_symbols(loop.body)
    result: list[Statement] = []
    for later, symbol in variables.items():
        result.append(Assign(symbol=symbol, value=build.constant(0, symbol.dtype), loc=loop.loc))
        for read_later, loads in carried.loads.items():
            if read_later < later:
                continue
            index = build.add(loop.start, build.integer(read_later - later))
            values = _computed(loop.body, {loop.index: index})
            block = tuple(_folded(each) for each in substitute_block(loop.body, values))
            where = reached(block, frozenset(load.access for load in loads))
            indices = tuple(_folded(substitute(each, values)) for each in loads[0].indices)
            if where is None or any(read_symbols(each) & changing or effects(each).loads for each in indices):
                return None
            value = names.load(loads[0].tensor, *indices)
            first = Assign(symbol=symbol, value=replace(value, loc=loads[0].loc), loc=loop.loc)
            result += _under((build.apply("lt", index, loop.stop), *where), first)
    return tuple(result)


def _under(conditions: Sequence[Expression], statement: Statement) -> Block:
    """Return a statement under conditions, of which those that are known need not be asked."""
    asked = [each for each in conditions if not build.is_constant(each, 1)]
    return () if any(build.is_constant(each, 0) for each in asked) else (conditional(asked, statement),)


def _computed(block: Block, values: Mapping[Symbol, Expression]) -> Mapping[Symbol, Expression]:
    """Return values, and those of variables that an iteration gives one value each, made of these and what stays."""
    found, changing = dict(values), assigned_symbols(block) | values.keys()
    given = Counter(node.symbol for node in statements(block) if isinstance(node, Assign))
    stale = live_before(block, NONE)
    for statement in block:
        match statement:
            case Assign(symbol=symbol, value=value) if given[symbol] == 1 and symbol not in stale:
                if effects(value).plain and not read_symbols(value) & (changing - found.keys()):
                    found[symbol] = _folded(substitute(value, found))
            case _:
                pass
    return found


def _folded(value: NodeType) -> NodeType:
    """Return an expression, or what has some in it, with constants computed."""

    def visit(node: Node) -> Node:
        match node:
            case Apply(operator=operator, operands=operands):
                return build.apply(operator.name, *operands, loc=node.loc)
            case Select(condition=condition, then=then, otherwise=otherwise):
                return build.select(condition, then, otherwise, loc=node.loc)
            case _:
                return node

    return rewrite(value, visit)


def _in_variables(loop: For, carried: _Carried, variables: Mapping[int, Symbol], names: Names) -> For:
    """Return a loop that reads the elements from variables, which move on where it stores."""
    store, last = carried.store, variables[1]
    read = {load.access: variables[later] for later, loads in carried.loads.items() for load in loads}
    read |= {load.access: last for load in carried.again}

    def visit(node: Node) -> Node:
        return Read(symbol=read[node.access], loc=node.loc) if isinstance(node, Load) and node.access in read else node

    def change(statement: Statement) -> Block:
        if not isinstance(statement, Store) or statement.access != store.access:
            return (statement,)
        new = last if len(variables) == 1 else names.symbol(last.name, last.dtype)
        moves = [
            (new, statement.value),
            *((variables[each], variables[each - 1]) for each in range(len(variables), 1, -1)),
        ]
        moves += [] if new is last else [(last, new)]
        values = ((symbol, build.read(value) if isinstance(value, Symbol) else value) for symbol, value in moves)
        given = (Assign(symbol=symbol, value=value, loc=statement.loc) for symbol, value in values)
        return (*given, replace(statement, value=build.read(last)))

    return replace(loop, body=rewrite_statements(tuple(rewrite(each, visit) for each in loop.body), change))
