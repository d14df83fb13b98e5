"""Lists and tensors that keep the state of a loop between its steps: copies to and from them, and positions in them.

A state is the variables and the locals that pass from one step to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from brickwork.ir import build
from brickwork.ir.dtypes import DType
from brickwork.ir.nodes import Assign, Block, Expression, Statement, Symbol, Tensor
from brickwork.transform.scratch import Names
from brickwork.transform.slopes import Item
from brickwork.transform.tensors import dense_type, element_indices, nest


def sizes_of(item: Item) -> tuple[int, ...]:
    """Return the extents of a part, none of a variable."""
    return () if isinstance(item, Symbol) else item.sizes


def list_of(name: str, dtype: DType, sizes: Sequence[int], names: Names) -> Tensor:
    """Return a new local."""
    return Tensor(name, next(names.tensors), dense_type(dtype, len(sizes)), tuple(sizes))


def moved(held: Mapping[Item, Tensor], place: Sequence[Expression], names: Names, *, keep: bool) -> Block:
    """Return what keeps a state at a place of what holds it, or takes it from there."""
    result: list[Statement] = []
    for item, whole in held.items():
        indices = element_indices(len(sizes_of(item)), names)
        inner = tuple(map(build.read, indices))
        if isinstance(item, Symbol):
            taken = Assign(symbol=item, value=names.load(whole, *place))
            result.append(names.store(whole, *place, build.read(item)) if keep else taken)
        elif keep:
            copy = names.store(whole, *place, *inner, names.load(item, *inner))
            result += nest(indices, [*map(build.integer, item.sizes)], (copy,))
        else:
            copy = names.store(item, *inner, names.load(whole, *place, *inner))
            result += nest(indices, [*map(build.integer, item.sizes)], (copy,))
    return tuple(result)


def over(value: Expression, unit: int) -> Expression:
    """Return how often a constant goes into a value."""
    return build.apply("floordiv", value, build.integer(unit))


def digit(value: Expression, unit: int) -> Expression:
    """Return what a constant leaves of a value."""
    return build.apply("mod", value, build.integer(unit))


def is_multiple(value: Expression, unit: int) -> Expression:
    """Return that a value is a multiple of a constant."""
    return build.apply("eq", digit(value, unit), build.integer(0))
