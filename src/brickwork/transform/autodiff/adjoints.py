"""Where the adjoints of tensors are: the gradients that are given, the results, or scratch tensors.

A gradient that is given is read where it is if every element is stored at most once and is not loaded: then nothing is
added to its adjoints, and none is set to 0. Otherwise the adjoints begin as a copy. Adjoints of half types are summed
in float32, and those that are results are rounded at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from brickwork.analysis.searches import without_numbers
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Block,
    Expression,
    Load,
    Node,
    Statement,
    Store,
    Tensor,
)
from brickwork.ir.walk import statements, walk
from brickwork.records import dataclass
from brickwork.transform.autodiff.reaching_stores import ReachingStores
from brickwork.transform.scratch import Names
from brickwork.transform.tensors import allocate_like, copied, element_indices, like_type, nest, sizes_of


@dataclass(slots=True)
class Adjoints:
    """The tensors of adjoints by the tensors that they belong to, and what there is to do for them.

    `overwriting` are the stores that set an adjoint to 0. `before` is what the kernel does before the replay, `begin`
    and `end` what it does before and after the sweep; `made` is what the host allocates; `results` are the gradients
    that are asked for.
    """

    tensors: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])
    results: dict[Tensor, Tensor] = field(default_factory=dict[Tensor, Tensor])
    overwriting: set[int] = field(default_factory=set[int])
    made: list[Allocate] = field(default_factory=list[Allocate])
    before: list[Statement] = field(default_factory=list[Statement])
    begin: list[Statement] = field(default_factory=list[Statement])
    end: list[Statement] = field(default_factory=list[Statement])


def adjoints(
    block: Block,
    active: Sequence[Tensor],
    asked: Sequence[Tensor],
    given: Mapping[Tensor, Tensor],
    states: ReachingStores,
    names: Names,
    returned: Sequence[Tensor],
) -> Adjoints:
    """Return where the adjoints of the `active` tensors of a block are, and those that are `asked` for.

    A gradient belongs to a tensor of that name after the block if it is `returned`, else to that of the name before it.
    """
    found = Adjoints()
    stores = [node for node in statements(block) if isinstance(node, Store)]
    for tensor in dict.fromkeys((*active, *asked)):
        plain = [node for node in stores if node.tensor == tensor and node.combine is None and not updates(node)]
        always = tensor in asked or tensor in states.exchanged
        overwriting = {node.access for node in plain if always or states.overwrites(node)}
        gradient = given.get(tensor) if tensor in active else None
        direct = not always and not overwriting and not _loads(block, tensor)
        if gradient is not None and direct:
            found.tensors[tensor] = gradient
            continue
        found.overwriting |= overwriting
        adds = tensor in states.exchanged and tensor in returned
        adjoint = _make(found, tensor, names, asked=tensor in asked, fill=gradient is None or adds)
        if gradient is None:
            continue
        if tensor not in states.exchanged:
            found.begin.extend(copied(gradient, adjoint, names))
        elif adds:
            found.begin.extend(added(gradient, adjoint, names))
        else:
            found.before.extend(copied(gradient, adjoint, names))
    return found


def _make(found: Adjoints, tensor: Tensor, names: Names, *, asked: bool, fill: bool) -> Tensor:
    """Return a new tensor for the adjoints of one tensor, filled with 0 or not."""
    half = tensor.type.dtype.size == 2
    name = f"{tensor.name}_adjoint"
    adjoint, made = names.tensor(name, FLOAT32, *sizes_of(tensor)) if half else made_like(tensor, name, names)
    if asked:
        result, allocation = made_like(tensor, f"{tensor.name}_gradient", names)
        found.results[tensor] = result
        if half:
            found.made.append(allocation)
            found.end.extend(copied(adjoint, result, names))
        else:
            adjoint, made = result, allocation
    zero = build.constant(0.0, value_dtype(adjoint.type.dtype)) if fill else None
    found.made.append(replace(made, fill=zero))
    found.tensors[tensor] = adjoint
    return adjoint


def added(source: Tensor, target: Tensor, names: Names) -> Block:
    """Return the loops that add the elements of a tensor to those of another one."""
    indices = element_indices(source.type.rank, names)
    reads = tuple(map(build.read, indices))
    total = build.add(names.load(target, *reads), names.load(source, *reads))
    return nest(indices, sizes_of(source), (names.store(target, *reads, total),))


def made_like(tensor: Tensor, name: str, names: Names) -> tuple[Tensor, Allocate]:
    """Return a new tensor of the sizes and the type of another one, and what makes it.

    One without an axis whose neighbours are next to one another has no layout to be kept: so are those that stand in
    for arguments whose elements are not read.
    """
    if tensor.type.rank and tensor.type.unit_axis is None:
        return names.tensor(name, tensor.type.dtype, *sizes_of(tensor))
    made = Tensor(name, next(names.tensors), like_type(tensor.type))
    return made, allocate_like(made, tensor)


def _loads(block: Block, tensor: Tensor) -> bool:
    """Whether a block loads elements of a tensor other than to update them."""
    loads = sum(isinstance(node, Load) and node.tensor == tensor for node in walk(block))
    stores = (node for node in statements(block) if isinstance(node, Store) and node.tensor == tensor)
    return loads > sum(updates(node) for node in stores)


def updates(store: Store) -> bool:
    """Whether a store adds to an element: it is `x[i] = x[i] + e`, and e does not read the element."""
    place = tuple(map(without_numbers, store.indices))

    def is_element(node: Node) -> bool:
        if not isinstance(node, Load) or node.tensor != store.tensor:
            return False
        return tuple(map(without_numbers, node.indices)) == place

    def is_whole(node: Expression) -> bool:
        if is_element(node):
            return True
        match node:
            case Apply(operator=operator, operands=(left, right)) if operator.name == "add":
                return is_whole(left) or is_whole(right)
            case Apply(operator=operator, operands=(left, _)) if operator.name == "sub":
                return is_whole(left)
            case _:
                return False

    return sum(map(is_element, walk(store.value))) == 1 and is_whole(store.value)
