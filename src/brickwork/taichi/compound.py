"""Types of values with parts, `ti.types.vector`, `matrix` and `struct`, and structs themselves."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from brickwork.taichi import state
from brickwork.taichi.arithmetic import convert, is_scalar
from brickwork.taichi.errors import TaichiCompilationError, TaichiSyntaxError, TaichiTypeError
from brickwork.taichi.fields import Field, StructField, finished, placing, scalar_type
from brickwork.taichi.matrix import Matrix, made
from brickwork.taichi.ndarrays import MatrixNdarray, Ndarray, VectorNdarray
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.sequences import is_sequence
from brickwork.taichi.values import Scalar


class MatrixType:
    """The type of matrices of a size, or of vectors: a call makes one."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Be the type of matrices of `shape`; without `dtype` entries keep their types."""
        self.shape = shape
        self._dtype = dtype

    @property
    def dtype(self) -> ScalarType | None:
        """The type of the entries."""
        return None if self._dtype is None else scalar_type(self._dtype)

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.shape[0]

    @property
    def m(self) -> int:
        """The number of columns."""
        return self.shape[1] if len(self.shape) == 2 else 1

    @property
    def ndim(self) -> int:
        """1 for vectors, 2 for matrices."""
        return len(self.shape)

    def get_shape(self) -> tuple[int, ...]:
        """Return the lengths of the axes."""
        return self.shape

    def __call__(self, *given: Any) -> Matrix:
        """Make one of its entries: a scalar for all of them, scalars and vectors one after the other, or rows."""
        if not given:
            raise TaichiSyntaxError("Custom type instances need to be created with an initial value.")
        if len(given) == 1 and isinstance(given[0], Matrix) and given[0].shape == self.shape:
            return self.cast(given[0])
        entries = _entries(given)
        count = self.n * self.m
        if len(entries) == 1 and len(given) == 1 and is_scalar(given[0]):
            entries = entries * count
        if len(entries) != count:
            raise TaichiCompilationError(
                f"Incompatible arguments for the custom vector/matrix type: ({self.n}, {self.m}), ({len(entries)})"
            )
        return self.cast(made(entries, self.shape))

    def cast(self, value: Matrix) -> Matrix:
        """Return a matrix with the entries in this type."""
        return value if self.dtype is None else value.cast(self.dtype)

    def make_field(self, shape: Any = None, **more: Any) -> Any:
        """Make a field of them."""
        options = placing(more)
        return finished(Field(self._dtype, self.shape, more.pop("name", ""), **more), shape, options)

    field = make_field

    def make_ndarray(self, shape: Any, needs_grad: bool = False) -> Ndarray:
        """Make an array of them."""
        if self.ndim == 1:
            return VectorNdarray(self.n, self._dtype, shape, needs_grad=needs_grad)
        return MatrixNdarray(self.n, self.m, self._dtype, shape, needs_grad=needs_grad)

    ndarray = make_ndarray

    def __eq__(self, other: object) -> bool:
        """Whether they are the same type."""
        return isinstance(other, MatrixType) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        """Return that of the shape."""
        return hash(self.shape)

    def __repr__(self) -> str:
        """Return the type as messages have it."""
        return f"<MatrixType {' x '.join(map(str, self.shape))} {self.dtype}>"


def _entries(given: Any) -> list[Any]:
    found: list[Any] = []
    for item in given:
        if isinstance(item, Matrix):
            found += item.entries
        elif is_sequence(item):
            found += _entries(cast("list[Any]", item))
        elif hasattr(item, "tolist") and getattr(item, "shape", ()) != ():
            found += _entries(item.tolist())
        else:
            found.append(item)
    return found


def vector(n: int, dtype: Any = None) -> MatrixType:
    """Return the type of vectors of `n` entries."""
    return MatrixType((n,), dtype)


def matrix(n: int, m: int, dtype: Any = None) -> MatrixType:
    """Return the type of matrices of `n` x `m` entries."""
    return MatrixType((n, m), dtype)


class Struct:
    """A value with named members."""

    def __init__(self, *given: Any, **members: Any) -> None:
        """Take members from a dict, or by name."""
        entries = dict(given[0]) if given else dict(members)
        methods: dict[str, Any] = entries.pop("__struct_methods", None) or {}
        items = {name: Struct(each) if isinstance(each, dict) else each for name, each in entries.items()}
        self.__dict__.update(entries=items, methods=methods, type=None)

    @property
    def keys(self) -> list[str]:
        """The names of the members."""
        return [*self.__dict__["entries"]]

    @property
    def items(self) -> Any:
        """The members."""
        return self.__dict__["entries"].items()

    def to_dict(self, include_methods: bool = False) -> dict[str, Any]:
        """Return the members as a dict."""
        found = {name: each.to_dict() if isinstance(each, Struct) else each for name, each in self.items}
        return found | ({"__struct_methods": self.__dict__["methods"]} if include_methods else {})

    def __getattr__(self, name: str) -> Any:
        """Return a member, or a method."""
        own = self.__dict__
        if name in own.get("entries", {}):
            return own["entries"][name]
        if name in own.get("methods", {}):
            method = own["methods"][name]
            return method.__get__(self) if hasattr(method, "__get__") else method
        raise AttributeError(f"this struct has no member `{name}`")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a member, in Python's scope."""
        self.__dict__["entries"][name] = value

    def __getitem__(self, name: str) -> Any:
        """Return a member."""
        return self.__dict__["entries"][name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Set a member."""
        self.__dict__["entries"][name] = value

    def __repr__(self) -> str:
        """Return the members as a dict."""
        return str(self.to_dict())

    @staticmethod
    def field(
        members: Mapping[str, Any], shape: Any = None, methods: Any = None, offset: Any = None, **more: Any
    ) -> Any:
        """Make a field of structs with these members."""
        return StructType(methods, **members).make_field(shape, offset=offset, **more)


class StructType:
    """The type of structs with these members: a call makes one."""

    def __init__(self, methods: dict[str, Any] | None = None, /, **members: Any) -> None:
        """Name the members, each with its type."""
        more: dict[str, Any] = members.pop("__struct_methods", None) or {}
        self.members: dict[str, Any] = {name: _struct_of(each) for name, each in members.items()}
        self.methods: dict[str, Any] = {**(methods or {}), **more}

    def __call__(self, *given: Any, **named: Any) -> Struct:
        """Make a struct; members that are not given are zero."""
        if len(given) == 1 and not named and isinstance(given[0], Struct | dict):
            whole = dict(given[0].items if isinstance(given[0], Struct) else cast("dict[str, Any]", given[0]))
            first = next(iter(self.members.values()), None)
            if whole.keys() <= self.members.keys() or not isinstance(first, StructType):
                named, given = whole, ()
        if len(given) > len(self.members):
            raise TaichiSyntaxError(f"a struct has {len(self.members)} members, not {len(given)}")
        values = dict(zip(self.members, given, strict=False)) | named
        unknown = values.keys() - self.members.keys()
        if unknown:
            raise TaichiSyntaxError(f"a struct has no member `{', '.join(sorted(unknown))}`")
        made_ = Struct({name: fitted(values.get(name, 0), kind) for name, kind in self.members.items()})
        made_.__dict__.update(methods=self.methods, type=self)
        return made_

    def make_field(self, shape: Any = None, **more: Any) -> Any:
        """Make a field of them."""
        options, name = placing(more), more.pop("name", "")
        fields = {each: _member_field(kind, f"{name}.{each}", more) for each, kind in self.members.items()}
        return finished(StructField(fields, self.methods, name), shape, options)

    field = make_field

    def __repr__(self) -> str:
        """Return the members and their types."""
        return f"<ti.StructType {self.members}>"


def _struct_of(kind: Any) -> Any:
    return StructType(**cast("dict[str, Any]", kind)) if isinstance(kind, dict) else kind


def _member_field(kind: Any, name: str, more: dict[str, Any]) -> Any:
    if isinstance(kind, StructType):
        inner = {each: _member_field(part, f"{name}.{each}", more) for each, part in kind.members.items()}
        return StructField(inner, kind.methods, name)
    if isinstance(kind, MatrixType):
        return Field(kind.dtype, kind.shape, name, **more)
    return Field(kind, (), name, **more)


def struct(**members: Any) -> StructType:
    """Return the type of structs with these members."""
    return StructType(**members)


def dataclass(cls: type) -> StructType:
    """Make a struct type of a class: its annotations are the members, its functions the methods."""
    methods = {
        name: each for name, each in vars(cls).items() if inspect.isfunction(each) or hasattr(each, "is_taichi_func")
    }
    members = inspect.get_annotations(cls, eval_str=False)
    if members.keys() & vars(cls).keys():
        raise TaichiSyntaxError("Default value in @dataclass is not supported.")
    return StructType(methods, **members)


def _described(kind: Any) -> str:
    """Return a type as text, the same for equal types."""
    if isinstance(kind, StructType):
        return "{" + ", ".join(f"{name}: {_described(each)}" for name, each in kind.members.items()) + "}"
    return repr(kind) if isinstance(kind, MatrixType) else str(scalar_type(kind))


def fitted(value: Any, kind: Any) -> Any:
    """Return a value in a type: of a member, of an argument, of a result."""
    if isinstance(kind, StructType):
        own_type = value.__dict__["type"] if isinstance(value, Struct) else None
        if own_type is not None and _described(own_type) != _described(kind):
            raise TaichiTypeError(f"a struct of {_described(own_type)} stands where {_described(kind)} is needed")
        return value if own_type is kind else kind(value) if value else kind()
    if isinstance(kind, MatrixType):
        if isinstance(value, Matrix) and value.shape != kind.shape:
            raise TaichiTypeError(f"a value of {value.shape} stands where one of {kind.shape} is needed")
        return kind(value)
    if isinstance(value, Matrix | Struct):
        raise TaichiTypeError(f"{value!r} stands where a scalar is needed")
    own = scalar_type(kind)
    if isinstance(value, Scalar):
        return convert(value, own)
    return convert(value, own) if state.builder() is not None else own.number(value)
