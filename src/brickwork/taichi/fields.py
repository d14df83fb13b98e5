"""Fields: cells that kernels use by their names, and how they are laid out by `shape=` or by `ti.root`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from brickwork.taichi import state
from brickwork.taichi.cells import Cells, normal_shape
from brickwork.taichi.errors import TaichiCompilationError, TaichiRuntimeError, unsupported
from brickwork.taichi.scalars import ScalarType, named, u32, u64, uint
from brickwork.taichi.sequences import is_sequence


def scalar_type(dtype: Any) -> ScalarType:
    """Return the type that is meant by a dtype of Taichi, Python, torch or NumPy."""
    if dtype is float:
        return state.settings().default_fp
    if dtype is int:
        return state.settings().default_ip
    if dtype is uint:
        return u64 if state.settings().default_ip.bits == 64 else u32
    if is_sequence(dtype) and dtype:
        return scalar_type(dtype[0])
    found = named(dtype)
    if found is None:
        raise unsupported(f"the type {dtype!r}", "give a scalar type, such as ti.f32")
    return found


class Field(Cells):
    """A field of scalars, vectors or matrices."""

    parent_node: Any = None

    def __init__(
        self, dtype: Any, element_shape: tuple[int, ...] = (), name: str = "", *, needs_grad: bool = False,
        needs_dual: bool = False,
    ) -> None:  # fmt: skip
        """Have no cells yet; with `needs_grad`, also a field of gradients."""
        super().__init__(scalar_type(dtype), element_shape)
        self.name = name
        self.needs_grad, self.needs_dual = needs_grad, needs_dual
        self._companions: dict[str, Field] = {}
        if (needs_grad or needs_dual) and not self.dtype.is_real:
            message = f"{self.dtype} is not supported for field with `needs_grad=True` or `needs_dual=True`."
            raise TaichiRuntimeError(message)

    @property
    def grad(self) -> Any:
        """The field of gradients, which may have no cells; None of integers."""
        return self._companion("grad")

    @property
    def dual(self) -> Any:
        """The field of tangents, which may have no cells; None of integers."""
        return self._companion("dual")

    def _companion(self, part: str) -> Any:
        if not self.dtype.is_real:
            return None
        found = self._companions.get(part)
        if found is None:
            found = self._companions[part] = Field(self.dtype, self.element_shape, f"{self.name}.{part}")
            (state.adjoints() if part == "grad" else state.duals()).add(found)
        return found

    def lay_out(self, part: str) -> None:
        """Give the gradients, or the tangents, cells where this field has some."""
        found = self._companion(part)
        if found is not None and found.data is None and self.data is not None:
            found.place(self.shape, self.offset or None, self.parent_node)

    def __deepcopy__(self, memo: Any) -> Any:
        """Return a copy with cells of its own, and gradients and tangents of its own."""
        made = super().__deepcopy__(memo)
        vars(made)["_companions"] = {}
        for part, each in self._companions.items():
            if each.data is not None:
                made.lay_out(part)
                getattr(made, part).copy_from(each)
        return made

    def place(self, shape: tuple[int, ...], offset: Any = None, node: Any = None) -> None:
        """Make the cells."""
        if self.data is not None:
            raise TaichiRuntimeError("a field is placed twice")
        start = normal_shape(offset)
        if start and len(start) != len(shape):
            raise TaichiCompilationError(
                f"The dimensionality of shape and offset must be the same  ({len(shape)} != {len(start)})"
            )
        if any(size <= 0 for size in shape):
            raise TaichiRuntimeError("Every dimension of a Taichi field should be positive")
        self.offset, self.parent_node = start, node
        self.allocate(shape)
        if node is None:
            state.loose().add(self)
        waiting = state.unplaced()
        if self in waiting:
            waiting.remove(self)

    def wanted(self) -> list[Field]:
        """Return the field and those that it is declared to have, which must be placed before a kernel runs."""
        return [self, *([self.grad] if self.needs_grad else []), *([self.dual] if self.needs_dual else [])]

    @property
    def snode(self) -> Any:
        """The field itself, as a node of the layout."""
        return self

    def parent(self, level: int = 1) -> Any:
        """Return the node of the layout that is so many levels up; None above the root."""
        return self.parent_node.parent(level - 1) if level and self.parent_node else None if level else self

    def get_scalar_field(self, *indices: int) -> Any:
        """Return the field of one entry of all cells, which shares their memory."""
        return EntryField(self, indices)

    def __str__(self) -> str:
        """Return the values of a field, as Taichi prints them."""
        return "<Field: Definition of this field is incomplete>" if self.data is None else str(self.to_numpy())

    def __repr__(self) -> str:
        """Return what the field is."""
        return f"<ti.field {self.dtype} {self.shape}>"


class EntryField(Field):
    """The field of one entry of a field's cells; placing it places the whole field."""

    def __init__(self, whole: Field, indices: tuple[int, ...]) -> None:
        """Be the entry at a place of all cells."""
        super().__init__(whole.dtype, (), f"{whole.name}_{'_'.join(map(str, indices))}")
        self.whole, self.indices_in_cell = whole, indices
        self._share()

    def place(self, shape: tuple[int, ...], offset: Any = None, node: Any = None) -> None:
        """Place the whole field, if no entry has placed it."""
        if self.whole.data is None:
            self.whole.place(shape, offset, node)
        if self.whole.shape != shape:
            raise TaichiRuntimeError(f"Members of the following field have different shapes: {self.whole.name}")
        self._share()

    def _share(self) -> None:
        if self.whole.data is not None:
            self.data, self.shape = self.whole.storage[(..., *self.indices_in_cell)], self.whole.shape
            self.offset, self.parent_node = self.whole.offset, self.whole.parent_node


class StructField:
    """A field of structs: a field for each member."""

    def __init__(self, members: Mapping[str, Any], methods: Mapping[str, Any] | None = None, name: str = "") -> None:
        """Take the fields of the members."""
        self.members = dict(members)
        self.methods = dict(methods or {})
        self.name = name

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return [*self.members]

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes of cells."""
        return next(iter(self.members.values())).shape

    @property
    def offset(self) -> tuple[int, ...]:
        """Where indices begin."""
        return next(iter(self.members.values())).offset

    @property
    def data(self) -> Any:
        """Whether there are cells."""
        return next(iter(self.members.values())).data

    def get_member_field(self, key: str) -> Any:
        """Return the field of a member."""
        return self.members[key]

    def place(self, shape: tuple[int, ...], offset: Any = None, node: Any = None) -> None:
        """Make the cells of all members."""
        for each in self.members.values():
            each.place(shape, offset, node)

    def lay_out(self, part: str) -> None:
        """Give the gradients, or the tangents, of all members cells."""
        for each in self.members.values():
            each.lay_out(part)

    def wanted(self) -> list[Field]:
        """Return the fields of the members, and those that they are declared to have."""
        return [field for each in self.members.values() for field in each.wanted()]

    @property
    def needs_grad(self) -> bool:
        """Whether there are gradients."""
        return any(each.needs_grad for each in self.members.values())

    @property
    def grad(self) -> Any:
        """The gradients of all members."""
        return StructField({name: each.grad for name, each in self.members.items() if each.grad is not None})

    def __getattr__(self, name: str) -> Any:
        """Return the field of a member."""
        members = self.__dict__.get("members", {})
        if name in members:
            return members[name]
        raise AttributeError(f"this field of structs has no member `{name}`")

    def __getitem__(self, key: Any) -> Any:
        """Return a cell whose members write through."""
        return CellStruct(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set a cell from a struct or a dict."""
        entries = getattr(value, "entries", value)
        for name, each in self.members.items():
            each[key] = entries[name]

    def fill(self, value: Any) -> None:
        """Set all members of all cells."""
        for each in self.members.values():
            each.fill(value)

    def copy_from(self, other: Any) -> None:
        """Set all cells from another field of the same members."""
        for name, each in self.members.items():
            each.copy_from(other.members[name])

    def to_numpy(self) -> dict[str, Any]:
        """Return NumPy arrays of the members."""
        return {name: each.to_numpy() for name, each in self.members.items()}

    def to_torch(self, device: Any = None) -> dict[str, torch.Tensor]:
        """Return tensors of the members."""
        return {name: each.to_torch(device) for name, each in self.members.items()}

    def from_numpy(self, arrays: Mapping[str, Any]) -> None:
        """Set the members from NumPy arrays."""
        for name, each in self.members.items():
            each.from_numpy(arrays[name])

    def from_torch(self, arrays: Mapping[str, Any]) -> None:
        """Set the members from tensors."""
        for name, each in self.members.items():
            each.from_torch(arrays[name])


class CellStruct:
    """A cell of a field of structs, in Python's scope."""

    def __init__(self, field: StructField, key: Any) -> None:
        """Stand for a cell."""
        self.__dict__.update(field=field, key=key)

    @property
    def entries(self) -> dict[str, Any]:
        """The members' values."""
        own = self.__dict__
        return {name: each[own["key"]] for name, each in own["field"].members.items()}

    def __getattr__(self, name: str) -> Any:
        """Return a member, or a method of the struct's class."""
        own = self.__dict__
        if name in own["field"].members:
            return own["field"].members[name][own["key"]]
        if name in own["field"].methods:
            return own["field"].methods[name].__get__(self)
        raise AttributeError(f"this struct has no member `{name}`")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a member."""
        own = self.__dict__
        own["field"].members[name][own["key"]] = value

    def __getitem__(self, name: str) -> Any:
        """Return a member."""
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        """Set a member."""
        setattr(self, name, value)


def finished(field: Any, shape: Any, options: dict[str, Any]) -> Any:
    """Return a new field, laid out where a shape is given."""
    offset, order = options.get("offset"), options.get("order")
    for name, value in (("offset", offset), ("order", order)):
        if shape is None and value is not None:
            raise TaichiCompilationError(f"shape cannot be None when {name} is set")
    if shape is None:
        state.unplaced().extend(field.wanted())
        return field
    sizes = normal_shape(shape)
    if order is not None:
        _check_order(order, len(sizes))
    for each in field.wanted():
        each.place(sizes, offset)
    return field


def _check_order(order: str, axes: int) -> None:
    if len(order) != axes:
        raise TaichiCompilationError(
            f"The dimensionality of shape and order must be the same  ({axes} != {len(order)})"
        )
    if len(set(order)) != axes:
        raise TaichiCompilationError("The axes in order must be different")
    for letter in order:
        if letter not in "ijklmn"[:axes]:
            raise TaichiCompilationError(f"Invalid axis {letter}")


def placing(more: dict[str, Any]) -> dict[str, Any]:
    """Take what says where cells lie out of the options of a field."""
    return {name: more.pop(name, None) for name in ("layout", "order", "offset")}


def field(dtype: Any, shape: Any = None, **more: Any) -> Any:
    """Make a field: `ti.field(ti.f32, shape=(n, m))`.

    Args:
        dtype: The type of a cell.
        shape: The number of cells along each axis; None where `ti.root` says it.
        more: `offset`, where indices begin; `needs_grad` and `needs_dual`; `name`; `order`, which has no effect.
    """
    if hasattr(dtype, "make_field"):
        return dtype.make_field(shape, **more)
    options = placing(more)
    return finished(Field(dtype, (), more.pop("name", ""), **more), shape, options)


def matrix_field(n: int, m: int, dtype: Any, shape: Any = None, **more: Any) -> Any:
    """Make a field of matrices: `ti.Matrix.field(n, m, ti.f32, shape=...)`."""
    options = placing(more)
    return finished(Field(dtype, (n, m), more.pop("name", ""), **more), shape, options)


def vector_field(n: int, dtype: Any, shape: Any = None, **more: Any) -> Any:
    """Make a field of vectors: `ti.Vector.field(n, ti.f32, shape=...)`."""
    options = placing(more)
    return finished(Field(dtype, (n,), more.pop("name", ""), **more), shape, options)
