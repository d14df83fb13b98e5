"""The reference meaning of the IR: runs a program or a kernel, whatever its schedule, on plain Python storage.

Statements and expressions become Python closures once, and then run. A loop that is not SEQUENTIAL runs in order, which
is one of the orders it may have. Every index is checked against the sizes, with or without a Check before the access.
With `check=True` a detector watches every loop that is run in parallel or that the user called independent, and the
variables that are private to an iteration lose their value at its end.

Not in here: the arithmetic (`scalar_semantics.py`, `philox.py`) and torch's tensors (adapters make `Memory` of them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import field
from enum import Enum
from operator import attrgetter
from typing import TypeAlias, assert_never
from typing import cast as typed

from brickwork.diagnostics.location import chain
from brickwork.ir import build, philox
from brickwork.ir.dtypes import INT64, DType, Kind, value_dtype
from brickwork.ir.nodes import (
    FLAT_ACCESS,
    AbsentParameter,
    Allocate,
    Apply,
    Assign,
    Block,
    Break,
    Cast,
    Check,
    Constant,
    Continue,
    Draw,
    Expression,
    For,
    If,
    Kernel,
    KeyParameter,
    Launch,
    ListParameter,
    Load,
    Local,
    Node,
    Parameter,
    Program,
    Random,
    Read,
    Rebind,
    Return,
    Role,
    ScalarParameter,
    Select,
    Size,
    Statement,
    Store,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TextParameter,
    While,
)
from brickwork.ir.race_detector import Access, Detector
from brickwork.ir.scalar_semantics import Number, cast, function_of, narrow
from brickwork.ir.walk import assigned_symbols, statements
from brickwork.records import dataclass


@dataclass(frozen=True, slots=True)
class Memory:
    """A tensor: elements as Python numbers that `dtype` holds, sizes, strides and offset in elements."""

    data: MutableSequence[Number]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    offset: int = 0

    def position(self, indices: Sequence[int]) -> int:
        """Return where an element stands in `data`."""
        return self.offset + sum(index * stride for index, stride in zip(indices, self.strides, strict=True))


Argument: TypeAlias = Memory | Number | Sequence[Number] | Sequence[Memory] | str | None


class _Flow(Enum):
    """How a statement ends: it goes on, breaks, continues or returns."""

    NEXT = "next"
    BREAK = "break"
    CONTINUE = "continue"
    RETURN = "return"


_NEXT = _Flow.NEXT
_NUMBER = attrgetter("number")


@dataclass(slots=True)
class _State:
    """The variables and tensors of a run, by their numbers."""

    values: dict[int, Number] = field(default_factory=dict[int, Number])
    memories: dict[int, Memory] = field(default_factory=dict[int, Memory])
    given: dict[int, Memory] = field(default_factory=dict[int, Memory])
    results: tuple[Memory, ...] = ()
    detector: Detector | None = None
    made: dict[int, int] = field(default_factory=dict[int, int])
    """The number of the array that each local is now."""
    arrays: int = 0


_Value: TypeAlias = Callable[[_State], Number]
_Step: TypeAlias = Callable[[_State], _Flow]


# ---------------------------------------------------------------- entry points


def run_program(
    program: Program, arguments: Sequence[Argument], *, out: Sequence[Memory] = (), key: int = 0, check: bool = False
) -> tuple[Memory, ...]:
    """Run an operator on arguments in the order of its parameters; return its results.

    `out` are the caller's tensors for the results that the program declares as given; `key` is the random key.
    """
    state = _State(detector=Detector() if check else None)
    parameters = [each for each in program.parameters if not isinstance(each, KeyParameter)]
    for parameter, argument in zip(parameters, arguments, strict=True):
        _bind(state, parameter, argument)
    for parameter in program.parameters:
        if isinstance(parameter, KeyParameter):
            state.values[parameter.symbol.number] = cast(key, INT64)
            if parameter.cell is not None:
                state.memories[parameter.cell.number] = Memory([cast(key, INT64)], (1,), (1,), INT64)
    returned = next((node.tensors for node in statements(program) if isinstance(node, Return)), ())
    if out:
        state.given = dict(zip(map(_NUMBER, returned), out, strict=True))
    _block(program.body)(state)
    return state.results


def run_kernel(
    kernel: Kernel, memories: Sequence[Memory], scalars: Sequence[Number] = (), *, check: bool = False
) -> None:
    """Run a kernel on its tensors and scalars, in the order in which it names them."""
    state = _State(detector=Detector() if check else None)
    state.memories.update(zip(map(_NUMBER, kernel.tensors), memories, strict=True))
    state.values.update(zip(map(_NUMBER, kernel.scalars), scalars, strict=True))
    _block(kernel.body)(state)


def _bind(state: _State, parameter: Parameter, argument: Argument) -> None:
    match parameter, argument:
        case AbsentParameter(), None:
            pass
        case TextParameter(value=value), str() if value == argument:
            pass
        case TensorParameter(), Memory():
            state.memories[parameter.tensor.number] = argument
        case ScalarParameter(value=value), bool() | int() | float() if value in {None, argument}:
            state.values[parameter.symbol.number] = cast(argument, parameter.symbol.dtype)
        case ListParameter(), Sequence():
            for symbol, value in zip(parameter.symbols, argument, strict=True):
                state.values[symbol.number] = cast(_number(value), symbol.dtype)
        case TensorListParameter(), Sequence():
            for tensor, memory in zip(parameter.tensors, argument, strict=True):
                _bind(state, TensorParameter(tensor), memory)
        case _:
            raise TypeError(f"{parameter} does not take {type(argument).__name__}")


def _number(value: Number | Memory | str) -> Number:
    if isinstance(value, Memory | str):
        raise TypeError(f"a number is needed, not a {'text' if isinstance(value, str) else 'tensor'}")
    return value


# ---------------------------------------------------------------- expressions


def _expression(node: Expression) -> _Value:
    match node:
        case Constant():
            value = node.value
            return lambda _: value
        case Read():
            return _read(node)
        case Size():
            tensor, axis = node.tensor.number, node.axis
            return lambda state: state.memories[tensor].sizes[axis]
        case Load():
            return _load(node)
        case Apply():
            return _apply(node)
        case Cast():
            operand, dtype = _expression(node.operand), node.dtype
            return lambda state: cast(operand(state), dtype)
        case Select():
            return _select(node)
        case Random():
            return _random(node)
        case _:
            assert_never(node)


def _read(node: Read) -> _Value:
    number = node.symbol.number

    def run(state: _State) -> Number:
        try:
            return state.values[number]
        except KeyError:
            raise UnboundLocalError(f"{node.loc}: `{node.symbol.name}` is read before it is assigned") from None

    return run


def _apply(node: Apply) -> _Value:
    function = function_of(node.operator, node.operands[0].dtype)
    operands = [_expression(operand) for operand in node.operands]
    if len(operands) != 2:
        return lambda state: function(*[operand(state) for operand in operands])
    left, right = operands
    return lambda state: function(left(state), right(state))


def _select(node: Select) -> _Value:
    condition, then, otherwise = _expression(node.condition), _expression(node.then), _expression(node.otherwise)

    def run(state: _State) -> Number:
        chosen, other = then(state), otherwise(state)
        return chosen if condition(state) else other

    return run


def _load(node: Load) -> _Value:
    locate = _element(node, writes=False)
    number, flat = node.tensor.number, node.access == FLAT_ACCESS
    indices = _places(node.indices)
    first = indices[0] if len(indices) == 1 and not flat else None

    def run(state: _State) -> Number:
        memory = state.memories[number]
        if first is None:
            return memory.data[locate(state, memory, [index(state) for index in indices])]
        value, (size,) = first(state), memory.sizes
        if state.detector is None and 0 <= value < size:  # The most frequent access, at once.
            return memory.data[memory.offset + value * memory.strides[0]]
        return memory.data[locate(state, memory, [value])]

    return run


def _places(indices: Sequence[Expression]) -> list[Callable[[_State], int]]:
    """Return what computes indices, which are integers."""
    return typed("list[Callable[[_State], int]]", [_expression(index) for index in indices])


def _element(node: Load | Store, *, writes: bool) -> Callable[[_State, Memory, list[int]], int]:
    """Return what finds the position of an access, checks it and reports it to the detector."""
    combine, literal = (node.combine, build.stored_literal(node)) if isinstance(node, Store) else (None, None)
    tensor, flat = node.tensor, node.access == FLAT_ACCESS

    def locate(state: _State, memory: Memory, values: list[int]) -> int:
        sizes = (*memory.sizes[:-1], math.prod(memory.sizes)) if flat else memory.sizes
        position = memory.offset
        for value, size, stride in zip(values, sizes, memory.strides, strict=True):
            if not 0 <= value < size:
                raise _outside(node, tensor, memory, values, sizes)
            position += value * stride
        if flat:  # The last index counts elements in memory; an axis of size 1 may have any stride in a dense tensor.
            position += values[-1] * (1 - memory.strides[-1])
        if state.detector is not None and state.detector.watches:
            now = Access(0, tensor, tuple(values), writes, combine, node.loc, literal)
            storage = -state.made[tensor.number] if tensor.is_local else id(memory.data)
            state.detector.access((storage, position), now)
        return position

    return locate


def _outside(node: Node, tensor: Tensor, memory: Memory, values: Sequence[int], sizes: Sequence[int]) -> IndexError:
    """Return what tells of the first index that is not below its size."""
    axis = next(axis for axis, value in enumerate(values) if not 0 <= value < sizes[axis])
    name = f"{'list' if tensor.is_local else 'tensor'} '{tensor.name}'"
    given = values[axis] - sizes[axis] if values[axis] < 0 else values[axis]  # A negative index counts from the end.
    shape = memory.sizes[tensor.added : tensor.type.axes]
    where = f"dimension {axis - tensor.added} of {name} with size {sizes[axis]} (shape {shape})"
    return IndexError(f"index {given} is out of bounds for {where} ({chain(node.loc)})")


def _random(node: Random) -> _Value:
    key, counter, extra = _expression(node.key), _expression(node.counter), _expression(node.extra)
    bounds, site, draw = [_expression(bound) for bound in node.bounds], node.site, node.draw

    def run(state: _State) -> Number:
        place = int(key(state)), int(counter(state)), int(extra(state)), site
        match draw:
            case Draw.UNIFORM:
                return philox.uniform(*place)
            case Draw.NORMAL:
                return philox.normal(*place)
            case Draw.INTEGER:
                low, high = (int(bound(state)) for bound in bounds)
                return cast(philox.integer(*place, (low, high)), INT64)
            case _:
                assert_never(draw)

    return run


# ---------------------------------------------------------------- statements


def _block(block: Block) -> _Step:
    steps = [_statement(statement) for statement in block]
    if len(steps) == 1:
        return steps[0]

    def run(state: _State) -> _Flow:
        for step in steps:
            flow = step(state)
            if flow is not _NEXT:
                return flow
        return _NEXT

    return run


def _statement(node: Statement) -> _Step:
    match node:
        case Assign():
            return _assign(node)
        case Store():
            return _store(node)
        case Local():
            return _local(node)
        case If():
            return _if(node)
        case For():
            return _for(node)
        case While():
            return _while(node)
        case Break():
            return lambda _: _Flow.BREAK
        case Continue():
            return lambda _: _Flow.CONTINUE
        case Check():
            return _check(node)
        case Allocate():
            return _allocate(node)
        case Rebind():
            return _rebind(node)
        case Launch():
            return _block(node.kernel.body)
        case Return():
            return _return(node)
        case _:
            assert_never(node)


def _assign(node: Assign) -> _Step:
    number, value = node.symbol.number, _expression(node.value)

    def run(state: _State) -> _Flow:
        state.values[number] = value(state)
        return _NEXT

    return run


def _store(node: Store) -> _Step:
    locate, indices, value = _element(node, writes=True), _places(node.indices), _expression(node.value)
    number, combine = node.tensor.number, node.combine

    def run(state: _State) -> _Flow:
        if state.detector is not None:
            state.detector.store()
        stored = value(state)
        memory = state.memories[number]
        position = locate(state, memory, [index(state) for index in indices])
        if combine is not None:
            stored = function_of(combine, value_dtype(memory.dtype))(memory.data[position], stored)
        memory.data[position] = narrow(stored, memory.dtype)
        return _NEXT

    return run


def _local(node: Local) -> _Step:
    tensor = node.tensor
    dtype, sizes = tensor.type.dtype, tensor.sizes
    strides = tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))
    initial = node.values or (cast(0, dtype),) * math.prod(sizes)

    def run(state: _State) -> _Flow:
        state.memories[tensor.number] = Memory([*initial], sizes, strides, dtype)
        state.arrays += 1
        state.made[tensor.number] = state.arrays
        return _NEXT

    return run


def _if(node: If) -> _Step:
    condition, then, otherwise = _expression(node.condition), _block(node.then), _block(node.otherwise)
    return lambda state: (then if condition(state) else otherwise)(state)


def _for(node: For) -> _Step:
    start, stop, body = _expression(node.start), _expression(node.stop), _block(node.body)
    parallel = node.role is not Role.SEQUENTIAL
    watched = parallel or node.claimed
    kept = {reduction.symbol for reduction in node.reductions}
    private = {each.number for each in assigned_symbols(node.body) - kept} if parallel else set[int]()
    number = node.index.number

    def run(state: _State) -> _Flow:
        detector = state.detector if watched else None
        bounds = range(int(start(state)), int(stop(state)))
        if detector is not None:
            detector.enter(node)
        flow = _NEXT
        for index in bounds:
            state.values[number] = index
            if detector is not None:
                detector.iterate(index)
            flow = body(state)
            if detector is not None:
                for symbol in private:
                    state.values.pop(symbol, None)
            if flow is _Flow.BREAK or flow is _Flow.RETURN:
                break
        if detector is not None:
            detector.leave()
        return _Flow.RETURN if flow is _Flow.RETURN else _NEXT

    return run


def _while(node: While) -> _Step:
    prelude, condition, body = _block(node.prelude), _expression(node.condition), _block(node.body)

    def run(state: _State) -> _Flow:
        while True:
            flow = prelude(state)
            if flow is _NEXT:
                if not condition(state):
                    return _NEXT
                flow = body(state)
            if flow is _Flow.BREAK:
                return _NEXT
            if flow is _Flow.RETURN:
                return flow

    return run


def _check(node: Check) -> _Step:
    condition, values = _expression(node.condition), [_expression(value) for value in node.values]
    failure = node.failure

    def run(state: _State) -> _Flow:
        if not condition(state):
            message = failure.message.format(*(value(state) for value in values))
            raise failure.kind.exception(f"{message} ({chain(node.loc)})")
        return _NEXT

    return run


def _rebind(node: Rebind) -> _Step:
    targets, sources = ([each.number for each in group] for group in (node.targets, node.sources))

    def run(state: _State) -> _Flow:
        state.memories.update(zip(targets, [state.memories[source] for source in sources], strict=True))
        return _NEXT

    return run


# ---------------------------------------------------------------- the host program


def _return(node: Return) -> _Step:
    def run(state: _State) -> _Flow:
        state.results = tuple(state.memories[tensor.number] for tensor in node.tensors)
        return _Flow.RETURN

    return run


def _allocate(node: Allocate) -> _Step:
    sizes, tensor = [_expression(size) for size in node.sizes], node.tensor
    fill = _expression(node.fill) if node.fill is not None else None

    def run(state: _State) -> _Flow:
        shape = tuple(int(size(state)) for size in sizes)
        if any(size < 0 for size in shape):
            raise RuntimeError(f"{node.loc}: `{tensor.name}` cannot have the shape {shape}")
        memory = _given(state, node, shape) or _new(state, node, shape)
        state.memories[tensor.number] = memory
        if state.detector is not None:
            state.detector.made[id(memory.data)] = node.loc
        if fill is not None:
            value = narrow(cast(fill(state), value_dtype(memory.dtype)), memory.dtype)
            for position in _positions(memory):
                memory.data[position] = value
        return _NEXT

    return run


_UNFILLED: dict[Kind, Number] = {Kind.BOOL: True, Kind.UINT: 90, Kind.INT: -91}
"""What new memory holds that nothing has filled, so that who reads it is seen; NaN for floats."""


def _given(state: _State, node: Allocate, shape: tuple[int, ...]) -> Memory | None:
    memory = state.given.get(node.tensor.number) if node.given else None
    if memory is not None and memory.sizes != shape:
        raise ValueError(f"{node.loc}: `out` for `{node.tensor.name}` has shape {memory.sizes}, the result {shape}")
    return memory


def _new(state: _State, node: Allocate, shape: tuple[int, ...]) -> Memory:
    order = _order(state.memories[node.like.number]) if node.like is not None else tuple(range(len(shape)))
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    dtype = node.tensor.type.dtype
    anything = _UNFILLED.get(dtype.kind, math.nan)
    return Memory([anything] * math.prod(shape), shape, tuple(strides), dtype)


def _order(like: Memory) -> tuple[int, ...]:
    """Return the axes from the slowest to the fastest, as `torch.empty_like` keeps them for dense tensors."""
    axes = [axis for axis in range(len(like.sizes)) if like.sizes[axis] != 1]
    step = 1
    for axis in sorted(axes, key=lambda axis: like.strides[axis]):
        if like.strides[axis] != step:
            return tuple(range(len(like.sizes)))
        step *= like.sizes[axis]
    return tuple(sorted(range(len(like.sizes)), key=lambda axis: like.strides[axis], reverse=True))


def _positions(memory: Memory) -> list[int]:
    positions = [memory.offset]
    for size, stride in zip(memory.sizes, memory.strides, strict=True):
        positions = [position + index * stride for position in positions for index in range(size)]
    return positions
