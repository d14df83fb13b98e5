"""Activity analysis: the variables and tensors that depend on what is wanted and that a result depends on.

Invariant: what is not active has a gradient of zero, or one that nobody asks for. Nothing is said of what is.
"""

from __future__ import annotations

from collections.abc import Collection

from brickwork.ir.nodes import Apply, Assign, Block, Cast, Expression, Load, Read, Rebind, Select, Store, Symbol, Tensor
from brickwork.ir.walk import statements
from brickwork.records import dataclass
from brickwork.transform.autodiff.rules import RULES


@dataclass(frozen=True, slots=True)
class Activity:
    """The active variables and tensors of a kernel, locals among them."""

    found: frozenset[Symbol | Tensor]

    @property
    def tensors(self) -> list[Tensor]:
        """The active tensors but for locals, by number."""
        found = (item for item in self.found if isinstance(item, Tensor) and not item.is_local)
        return sorted(found, key=lambda item: item.number)

    def is_active(self, expression: Expression) -> bool:
        """Whether an expression depends on something active in a way that has a derivative."""
        return any(item in self.found for item in leaves(expression))


def activity(
    block: Block, wanted: Collection[Tensor], results: Collection[Tensor], constant: Collection[Symbol] = ()
) -> Activity:
    """Return what is active between the wanted tensors and the float results, apart from what is held `constant`."""
    edges: list[tuple[frozenset[Symbol | Tensor], Symbol | Tensor]] = []
    for node in statements(block):
        match node:
            case Assign(symbol=symbol, value=value) if symbol.dtype.is_float and symbol not in constant:
                edges.append((leaves(value), symbol))
            case Store(tensor=tensor, value=value) if tensor.type.dtype.is_float:
                edges.append((leaves(value), tensor))
            case Rebind(targets=targets):
                edges.extend((frozenset[Symbol | Tensor](targets), target) for target in targets)
            case _:
                pass
    depends = _closed(wanted, [(source, target) for sources, target in edges for source in sources])
    reaches = _closed(results, [(target, source) for sources, target in edges for source in sources])
    return Activity(depends & reaches)


def leaves(expression: Expression) -> frozenset[Symbol | Tensor]:
    """Return the variables and tensors that an expression has a derivative by."""
    match expression:
        case Read(symbol=symbol) if symbol.dtype.is_float:
            return frozenset({symbol})
        case Load(tensor=tensor) if tensor.type.dtype.is_float:
            return frozenset({tensor})
        case Cast(operand=operand) if operand.dtype.is_float and expression.dtype.is_float:
            return leaves(operand)
        case Select(then=then, otherwise=otherwise):
            return leaves(then) | leaves(otherwise)
        case Apply(operator=operator, operands=operands) if expression.dtype.is_float:
            pairs = zip(operands, RULES[operator.name], strict=True)
            return frozenset[Symbol | Tensor]().union(*(leaves(item) for item, rule in pairs if rule is not None))
        case _:
            return frozenset()


def _closed(
    roots: Collection[Symbol | Tensor], edges: Collection[tuple[Symbol | Tensor, Symbol | Tensor]]
) -> frozenset[Symbol | Tensor]:
    """Return all that is reached from the roots."""
    found = set(roots)
    changed = True
    while changed:
        changed = False
        for source, target in edges:
            if source in found and target not in found:
                found.add(target)
                changed = True
    return frozenset(found)
