"""`ti.root` and its dense nodes: they say over which indices fields have cells. How cells lie in memory is torch's."""

from __future__ import annotations

from typing import Any

from brickwork.taichi import state
from brickwork.taichi.errors import TaichiRuntimeError, unsupported
from brickwork.taichi.sequences import is_sequence

SPARSE = ("pointer", "hash", "dynamic", "bitmasked", "quant_array", "bit_struct")


class Axes(tuple[int, ...]):
    """Axes of cells: `ti.i`, `ti.ij` and so on."""

    __slots__ = ()


def axes(*numbers: int) -> Axes:
    """Return the axes with these numbers."""
    return Axes(numbers)


NAMED_AXES = {
    name: Axes("ijkl".index(letter) for letter in name)
    for name in ("i", "j", "k", "l", "ij", "ik", "il", "jk", "jl", "kl", "ijk", "ijl", "ikl", "jkl", "ijkl", "ji")
}


class SNode:
    """A node of the layout: so many cells along each axis."""

    def __init__(self, above: SNode | None, sizes: dict[int, int]) -> None:
        """Stand below another node."""
        self.above = above
        self.sizes = sizes
        self.fields: list[Any] = []
        self.below: list[SNode] = []

    def dense(self, axes: Axes, dimensions: Any) -> SNode:
        """Return a node below this one, of `dimensions` along some axes."""
        numbers = [int(each) for each in ([dimensions] if isinstance(dimensions, int) else dimensions)]
        numbers *= len(axes) if len(numbers) == 1 else 1
        if len(numbers) != len(axes):
            raise TaichiRuntimeError(f"a node of {len(axes)} axes has as many dimensions, not {len(numbers)}")
        sizes = dict(self.sizes)
        for axis, size in zip(axes, numbers, strict=True):
            sizes[axis] = sizes.get(axis, 1) * size
        made = SNode(self, sizes)
        self.below.append(made)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(self.sizes[axis] for axis in sorted(self.sizes))

    def place(self, *fields: Any, offset: Any = None) -> SNode:
        """Lay fields out over this node's indices."""
        for each in fields:
            if is_sequence(each):
                self.place(*each, offset=offset)
                continue
            each.place(self.shape, offset, self)
            self.fields.append(each)
        return self

    def parent(self, level: int = 1) -> Any:
        """Return the node that is so many levels up; None above the root."""
        node: Any = self
        for _ in range(level):
            node = node and node.above
        return node

    def lazy_grad(self) -> None:
        """Give a field of gradients to all fields below."""
        self.lay_out("grad")

    def lazy_dual(self) -> None:
        """Give a field of tangents to all fields below."""
        self.lay_out("dual")

    def lay_out(self, part: str) -> None:
        """Give gradients, or tangents, to all fields below."""
        for each in self.fields:
            each.lay_out(part)
        for node in self.below:
            node.lay_out(part)

    def deactivate_all(self) -> None:
        """Set all cells to zero."""
        for each in self.fields:
            each.fill(0)
        for node in self.below:
            node.deactivate_all()

    def __getattr__(self, name: str) -> Any:
        """Refuse sparse nodes by name."""
        if name in SPARSE:
            raise unsupported(f"the sparse node `{name}`", "use `dense`, or a field with `shape=`")
        raise AttributeError(name)


class Root(SNode):
    """`ti.root`: the node above all others, and of the fields that are laid out by their shape."""

    def lay_out(self, part: str) -> None:
        """Give gradients, or tangents, to all fields."""
        super().lay_out(part)
        for each in [*state.loose()]:
            if not each.name.endswith((".grad", ".dual")):
                each.lay_out(part)

    def __init__(self) -> None:
        """Begin with no axes."""
        super().__init__(None, {})


class FieldsBuilder(Root):
    """A layout of its own: `fb = ti.FieldsBuilder()`, `fb.dense(...)`, `fb.finalize()`."""

    is_final = False

    def finalize(self, raise_warning: bool = True) -> Any:
        """End the layout; `destroy` of the result forgets it."""
        del raise_warning
        if self.is_final:
            raise TaichiRuntimeError("FieldsBuilder is already finalized")
        self.is_final = True
        return self

    def destroy(self) -> None:
        """Give the memory of all fields back."""
        waiting: list[SNode] = [self]
        while waiting:
            node = waiting.pop()
            waiting += node.below
            for each in node.fields:
                for member in getattr(each, "members", {"": each}).values():
                    member.data = None

    @property
    def root(self) -> Root:
        """The root of this layout."""
        return self


root = Root()


def _forget() -> None:
    root.fields.clear()
    root.below.clear()


state.at_reset(_forget)
