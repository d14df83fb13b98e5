"""Programs whose results are made element by element, each from what arguments have at its own place: as straight code.

    for i in range(len(x)):                    nest over i:
        if x[i] > 0:                               c = x[i] > 0
            y = x[i] * w              ->           v = x[i] * w
        else:                                      y = select(c, v, 0.0)
            y = 0.0                                out <- y
        out[i] = y

Which operators and types there are where such code is used, is not known here. Invariant: run for all iterations at
once, the straight code stores what the program stores, where the conditions hold and all axes that a loop indexes are
as long as that loop. That is for the caller to see: no sizes are known here.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from itertools import count
from typing import cast

from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import value_dtype
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Check,
    Constant,
    Expression,
    For,
    If,
    KeyParameter,
    Launch,
    ListParameter,
    Load,
    Node,
    Program,
    Random,
    Read,
    Return,
    ScalarParameter,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    parameter_tensors,
)
from brickwork.ir.walk import assigned_symbols, rebuild, walk
from brickwork.records import dataclass


class OpaqueError(Exception):
    """What keeps a program from being straight code: the reason, and the place in the user's source."""

    def __init__(self, reason: str, loc: Location) -> None:
        """Say what is in the way, and where."""
        super().__init__(reason)
        self.reason = reason
        self.loc = loc


@dataclass(frozen=True, slots=True)
class Axis:
    """A loop around straight code: the index that loads name it by, and its length, a `Size` or a constant."""

    index: Symbol
    length: Expression


@dataclass(frozen=True, slots=True)
class Written:
    """A tensor all elements of which are stored: `value` at the place that the axes name in this order."""

    tensor: Tensor
    axes: tuple[Symbol, ...]
    value: Expression


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops around straight code. Variables of nests without axes are known in the nests that follow."""

    axes: tuple[Axis, ...]
    body: tuple[Assign, ...]
    """Each variable is assigned once. Loads are indexed by axes, each by another one; nothing else reads an index."""
    written: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A program as nests that run one after the other, conditions and allocations aside."""

    program: Program
    conditions: tuple[Expression, ...]
    """What the host part asserts."""
    allocated: tuple[Allocate, ...]
    """Each size is a `Size` or a constant."""
    nests: tuple[Nest, ...]
    results: tuple[Tensor, ...]


def pointwise(program: Program) -> Pointwise:
    """Return a program as straight code.

    Raises:
        OpaqueError: It is another kind of program.
    """
    written = parameter_tensors(program.parameters, mutated=True)
    if written:
        raise OpaqueError(f"it stores into the argument `{written[0].name}`", program.loc)
    if any(isinstance(item, KeyParameter) for item in program.parameters):
        raise OpaqueError("it draws random numbers", program.loc)
    maker = _Maker(program)
    maker.host(program.body)
    return Pointwise(program, tuple(maker.conditions), tuple(maker.allocated), tuple(maker.nests), maker.results)


_Elements = dict[Tensor, tuple[tuple[Symbol, ...], Expression]]
"""What an iteration has stored, by tensor: where, and what."""


@dataclass(slots=True)
class _State:
    """What is known at a point of an iteration."""

    variables: dict[Symbol, Expression] = field(default_factory=dict[Symbol, Expression])
    """Values as constants, sizes and variables that are assigned once."""
    stored: _Elements = field(default_factory=_Elements)

    def copy(self) -> _State:
        return _State({**self.variables}, {**self.stored})


class _Maker:
    """Collects the parts of a program."""

    def __init__(self, program: Program) -> None:
        self.conditions: list[Expression] = []
        self.allocated: list[Allocate] = []
        self.nests: list[Nest] = []
        self.results: tuple[Tensor, ...] = ()
        self._complete = {*parameter_tensors(program.parameters)}
        self._loc = program.loc
        self._scalars = _State()
        self._axes: list[Axis] = []
        self._body: list[Assign] = []
        self._numbers = count(-1, -1)
        for item in program.parameters:
            match item:
                case ScalarParameter(symbol=symbol):
                    self._scalars.variables[symbol] = build.read(symbol)
                case ListParameter(symbols=symbols):
                    self._scalars.variables.update((symbol, build.read(symbol)) for symbol in symbols)
                case _:
                    pass

    # ------------------------------------------------------------ the host part and kernels

    def host(self, block: Block) -> None:
        """Take the host program."""
        for statement in block:
            match statement:
                case Check(condition=condition):
                    self.conditions.append(self._value(condition, self._scalars))
                case Assign():
                    self._nest(statement)
                case Allocate(given=False):
                    self._allocate(statement)
                case Launch(kernel=kernel):
                    for child in kernel.body:
                        self._nest(child)
                case Return(tensors=tensors):
                    self.results = tensors
                case _:
                    raise _strange(statement)
        for tensor in self.results:
            if tensor not in self._complete:
                raise OpaqueError(f"`{tensor.name}` is not stored into as a whole", self._loc)

    def _allocate(self, statement: Allocate) -> None:
        lengths = tuple(self._length(size, self._scalars) for size in statement.sizes)
        fill = None if statement.fill is None else self._value(statement.fill, self._scalars)
        if fill is not None:
            self._complete.add(statement.tensor)
        self.allocated.append(replace(statement, sizes=lengths, fill=fill))

    def _nest(self, statement: Statement) -> None:
        """Take a statement of the host program or of a kernel, which may be a nest of loops."""
        self._axes, self._body = [], []
        state = self._scalars.copy()
        self._loop(statement, state)
        written = tuple(Written(tensor, *stored) for tensor, stored in state.stored.items())
        if any(len(item.axes) < len(self._axes) for item in written):
            raise OpaqueError("an element is stored more than once", statement.loc)
        for load in walk(self._body):
            if (
                isinstance(load, Load)
                and load.tensor in state.stored
                and _axes_of(load) != state.stored[load.tensor][0]
            ):
                raise OpaqueError(f"`{load.tensor.name}` is read where other iterations store into it", load.loc)
        self.nests.append(Nest(tuple(self._axes), tuple(self._body), written))
        self._complete |= {item.tensor for item in written}
        if not self._axes:
            self._scalars.variables = state.variables
        else:
            for symbol in assigned_symbols(statement):
                self._scalars.variables.pop(symbol, None)

    def _loop(self, statement: Statement, state: _State) -> None:
        """Take a statement in a nest: a loop, which is the last one of its own loop, or what an iteration does."""
        if not isinstance(statement, For):
            self._statement(statement, state)
            return
        if not build.is_constant(statement.start, 0):
            raise OpaqueError("a loop does not begin at 0", statement.loc)
        self._axes.append(Axis(statement.index, self._length(statement.stop, state)))
        for symbol in assigned_symbols(statement.body):
            state.variables.pop(symbol, None)
        state.variables[statement.index] = build.read(statement.index)
        for child in statement.body[:-1]:
            self._statement(child, state)
        for child in statement.body[-1:]:
            self._loop(child, state)

    # ------------------------------------------------------------ what an iteration does

    def _statement(self, statement: Statement, state: _State) -> None:
        match statement:
            case Assign(symbol=symbol, value=Read(symbol=index)) if self._is_axis(index, state):
                state.variables[symbol] = state.variables[index]
            case Assign(symbol=symbol, value=value):
                state.variables[symbol] = self._kept(self._value(value, state))
            case Store(tensor=tensor, value=value, combine=None):
                places = self._places(statement, state)
                if state.stored.get(tensor, (places,))[0] != places:
                    raise OpaqueError(f"`{tensor.name}` is stored into at several places", statement.loc)
                state.stored[tensor] = places, self._kept(self._value(value, state))
            case If(condition=condition, then=then, otherwise=otherwise):
                self._branch(self._kept(self._value(condition, state)), (then, otherwise), state)
            case _:
                raise _strange(statement)

    def _branch(self, condition: Expression, branches: tuple[Block, Block], state: _State) -> None:
        """Take both branches; where they differ, the condition selects."""
        first, second = state.copy(), state.copy()
        for block, inside in zip(branches, (first, second), strict=True):
            for child in block:
                self._statement(child, inside)
        state.variables = {
            symbol: self._selected(condition, value, second.variables[symbol])
            for symbol, value in first.variables.items()
            if symbol in second.variables
        }
        for tensor in {**first.stored, **second.stored}:
            places = (first.stored.get(tensor) or second.stored[tensor])[0]
            values = [self._element(tensor, places, inside) for inside in (first, second)]
            state.stored[tensor] = places, self._selected(condition, *values)

    def _selected(self, condition: Expression, then: Expression, otherwise: Expression) -> Expression:
        return then if then == otherwise else self._kept(build.select(condition, then, otherwise))

    def _element(self, tensor: Tensor, places: tuple[Symbol, ...], state: _State) -> Expression:
        """Return what a tensor has at the place of the iteration before it is narrowed to its type."""
        if tensor in state.stored:
            found, value = state.stored[tensor]
            if found == places:
                return value
        elif tensor in self._complete:
            dtype = value_dtype(tensor.type.dtype)
            return self._kept(Load(tensor=tensor, indices=tuple(map(build.read, places)), access=0, dtype=dtype))
        raise OpaqueError(f"`{tensor.name}` is stored into under a condition", self._loc)

    # ------------------------------------------------------------ expressions

    def _kept(self, value: Expression) -> Expression:
        """Return what is short enough to be written several times: a variable for all that is computed."""
        if isinstance(value, Constant | Read | Size):
            return value
        name = Symbol("value", next(self._numbers), value.dtype)
        self._body.append(Assign(symbol=name, value=value, loc=value.loc))
        return build.read(name)

    def _value(self, expression: Expression, state: _State) -> Expression:
        """Return an expression in terms of what is known."""
        match expression:
            case Read(symbol=symbol):
                found = state.variables.get(symbol)
                if found is None:
                    raise OpaqueError(f"`{symbol.name}` goes from one iteration to the next", expression.loc)
                if self._is_axis(symbol, state):
                    raise OpaqueError(f"the index `{symbol.name}` is used as a number", expression.loc)
                return found
            case Load(tensor=tensor) if tensor in state.stored:
                found, value = state.stored[tensor]
                exact = value_dtype(tensor.type.dtype) is tensor.type.dtype
                if exact and found == self._places(expression, state):
                    return value
                raise OpaqueError(f"`{tensor.name}` is read after it was stored into", expression.loc)
            case Load(tensor=tensor) if tensor in self._complete:
                places = self._places(expression, state)
                return replace(expression, indices=tuple(map(build.read, places)))
            case Load() | Random():
                raise _strange(expression)
            case _:
                change = partial(self._child, state)
                return cast("Expression", rebuild(expression, change))

    def _child(self, state: _State, child: Node) -> Node:
        return self._value(cast("Expression", child), state)

    def _length(self, size: Expression, state: _State) -> Expression:
        found = self._value(size, state)
        if isinstance(found, Size | Constant):
            return found
        raise OpaqueError("a size is computed", size.loc)

    def _is_axis(self, symbol: Symbol, state: _State) -> bool:
        """Whether a variable names an axis."""
        found = state.variables.get(symbol)
        return isinstance(found, Read) and any(found.symbol is axis.index for axis in self._axes)

    def _places(self, access: Load | Store, state: _State) -> tuple[Symbol, ...]:
        """Return the axes that index an element, each another one."""
        found: list[Symbol] = []
        for index in access.indices:
            if not isinstance(index, Read) or not self._is_axis(index.symbol, state):
                raise OpaqueError(f"`{access.tensor.name}` is indexed by more than a loop's index", access.loc)
            found.append(cast("Read", state.variables[index.symbol]).symbol)
        if len({*found}) < len(found):
            raise OpaqueError(f"`{access.tensor.name}` is indexed twice by a loop", access.loc)
        return tuple(found)


def _axes_of(load: Load) -> tuple[Symbol, ...]:
    return tuple(cast("Read", index).symbol for index in load.indices)


_WORDS: dict[type[Node], str] = {
    Check: "a check may fail in a loop",
    For: "a loop stands beside or in other statements of a loop",
    Load: "an element is read that is not there yet",
    Random: "it draws random numbers",
}


def _strange(node: Node) -> OpaqueError:
    """Return what is said of a node that straight code has no room for."""
    return OpaqueError(_WORDS.get(type(node), "a statement other than assignments and branches stands there"), node.loc)
