"""Fields: cells that kernels use by their names, and how they are laid out by `shape=` or by `ti.root`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from brickwork.taichi import state
from brickwork.taichi.cells import Cells, normal_shape
from brickwork.taichi.errors import TaichiCompilationError, TaichiRuntimeError, unsupported
from brickwork.taichi.scalars import ScalarType, named
from brickwork.taichi.sequences import is_sequence


def scalar_type(dtype: Any) -> ScalarType:
    """Return the type that is meant by a dtype of Taichi, Python, torch or NumPy."""
    if dtype is float:
        return state.settings().default_fp
    if dtype is int:
        return state.settings().default_ip
    if is_sequence(dtype) and dtype:
        return scalar_type(dtype[0])
    found = named(dtype)
    if found is None:
        raise unsupported(f"the type {dtype!r}", "give a scalar type, such as ti.f32")
    return found


class Field(Cells):
    """A field of scalars, vectors or matrices."""

    needs_grad = False
    needs_dual = False
    parent_node: Any = None

    def __init__(
        self, dtype: Any, element_shape: tuple[int, ...] = (), name: str = "", *, needs_grad: bool = False,
        needs_dual: bool = False,
    ) -> None:  # fmt: skip
        """Have no cells yet; with `needs_grad`, also a field of gradients."""
        super().__init__(scalar_type(dtype), element_shape)
        self.name = name
        if needs_grad:
            self.add_grad()
        if needs_dual:
            self.add_dual()

    def add_grad(self) -> None:
        """Have a field of gradients."""
        if not self.needs_grad and self.dtype.is_real:
            self.needs_grad = True
            self.grad = Field(self.dtype, self.element_shape, f"{self.name}.grad")
            self.grad.is_adjoint = True

    def add_dual(self) -> None:
        """Have a field of tangents."""
        if not self.needs_dual and self.dtype.is_real:
            self.needs_dual = True
            self.dual = Field(self.dtype, self.element_shape, f"{self.name}.dual")

    def place(self, shape: tuple[int, ...], offset: Any = None, node: Any = None) -> None:
        """Make the cells."""
        if self.data is not None:
            raise TaichiRuntimeError("a field is placed twice")
        start = normal_shape(offset)
        if start and len(start) != len(shape):
            raise TaichiCompilationError(
                f"The dimensionality of shape and offset must be the same  ({len(shape)} != {len(start)})"
            )
        for each in (self, self.grad, self.dual):
            if each is not None:
                each.offset, each.parent_node = start, node
                each.allocate(shape)

    @property
    def snode(self) -> Any:
        """The node of the layout."""
        return self.parent_node

    def parent(self, level: int = 1) -> Any:
        """Return the node of the layout that is so many levels up."""
        node = self.parent_node
        for _ in range(level - 1):
            node = node.parent()
        return node

    def get_scalar_field(self, *indices: int) -> Any:
        """Refuse: the entries of cells are no fields of their own."""
        raise unsupported(f"get_scalar_field{indices}")

    def __str__(self) -> str:
        """Return the values of a field, as Taichi prints them."""
        return "<Field: Definition of this field is incomplete>" if self.data is None else str(self.to_numpy())

    def __repr__(self) -> str:
        """Return what the field is."""
        return f"<ti.field {self.dtype} {self.shape}>"


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

    def add_grad(self) -> None:
        """Have fields of gradients."""
        for each in self.members.values():
            each.add_grad()

    def add_dual(self) -> None:
        """Have fields of tangents."""
        for each in self.members.values():
            each.add_dual()

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


def finished(field: Any, shape: Any, offset: Any) -> Any:
    """Return a new field, laid out where a shape is given."""
    if shape is None:
        if offset is not None:
            raise TaichiCompilationError("The shape cannot be None when offset is being set")
        state.unplaced().append(field)
        return field
    field.place(normal_shape(shape), offset)
    return field


def placing(more: dict[str, Any]) -> Any:
    """Take what says where cells lie out of the options of a field, and return where indices begin."""
    for name in ("layout", "order"):
        more.pop(name, None)
    return more.pop("offset", None)


def field(
    dtype: Any, shape: Any = None, order: Any = None, name: str = "", offset: Any = None, needs_grad: bool = False,
    needs_dual: bool = False,
) -> Any:  # fmt: skip
    """Make a field: `ti.field(ti.f32, shape=(n, m))`; `order` is where axes lie in memory, which is left to torch."""
    del order
    if hasattr(dtype, "make_field"):
        return dtype.make_field(shape, offset=offset, name=name, needs_grad=needs_grad, needs_dual=needs_dual)
    return finished(Field(dtype, (), name, needs_grad=needs_grad, needs_dual=needs_dual), shape, offset)


def matrix_field(
    n: int, m: int, dtype: Any, shape: Any = None, order: Any = None, name: str = "", offset: Any = None,
    needs_grad: bool = False, needs_dual: bool = False, layout: Any = None,
) -> Any:  # fmt: skip
    """Make a field of matrices: `ti.Matrix.field(n, m, ti.f32, shape=...)`."""
    del order, layout
    return finished(Field(dtype, (n, m), name, needs_grad=needs_grad, needs_dual=needs_dual), shape, offset)


def vector_field(n: int, dtype: Any, shape: Any = None, **more: Any) -> Any:
    """Make a field of vectors: `ti.Vector.field(n, ti.f32, shape=...)`."""
    offset = placing(more)
    return finished(Field(dtype, (n,), more.pop("name", ""), **more), shape, offset)
