"""Rules that IR keeps at every stage; a broken one is a fault of a pass, and `verify_program` names it.

Checked: types of operands, results and stores; one index for each axis; every read after an assignment on every path;
loop indices and the scalars of a kernel are never assigned; a loop's bounds read no element and nothing that its body
assigns; numbers of variables and of accesses are unique; locals are known where they are accessed, and private to what
runs in parallel; `break` stands in a loop; roles and reductions are legal. Copies of an access share its number, as
guarded and checked copies of a body have them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn, assert_never

from brickwork.diagnostics.errors import InternalError
from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, INT64, VALUE_DTYPES, DType, Kind, value_dtype
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
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TextParameter,
    While,
)
from brickwork.ir.operators import result_dtype
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, walk

ASSOCIATIVE = frozenset({"add", "mul", "minimum", "maximum"})
"""Operators of reductions."""
_PYTHON_TYPES = {Kind.BOOL: bool, Kind.INT: int, Kind.UINT: int, Kind.FLOAT: float}
RECORDED_VALUES = 8
"""How many values a failed check can record."""


def verify_program(program: Program) -> None:
    """Raise InternalError at the first broken rule of a program."""
    verifier = _Verifier()
    symbols: set[Symbol] = set()
    for parameter in program.parameters:
        match parameter:
            case TensorParameter():
                verifier.tensors.add(parameter.tensor)
            case ScalarParameter():
                symbols.add(parameter.symbol)
            case KeyParameter():
                symbols.add(parameter.symbol)
                verifier.tensors.update(() if parameter.cell is None else (parameter.cell,))
            case ListParameter():
                symbols.update(parameter.symbols)
            case TensorListParameter():
                verifier.tensors.update(parameter.tensors)
            case AbsentParameter() | TextParameter():
                pass
            case _:
                assert_never(parameter)
    unique_kernels(program)
    for node in walk(program):
        if isinstance(node, Kernel):
            _unique_accesses(node)
            _unique_variables(node.body, {symbol.number: symbol for symbol in node.scalars})
    verifier.block(program.body, symbols)


def verify_kernel(kernel: Kernel) -> None:
    """Raise InternalError at the first broken rule of a kernel."""
    verifier = _Verifier(tensors=set(kernel.tensors))
    _unique_accesses(kernel)
    _unique_variables(kernel.body, {symbol.number: symbol for symbol in kernel.scalars})
    verifier.kernel(kernel, set(kernel.scalars))


def _require(condition: bool, message: str, loc: Location) -> None:
    if not condition:
        _refuse(message, loc)


def _refuse(message: str, loc: Location) -> NoReturn:
    """Say what is wrong: of rules that are asked for each expression the text is made only then."""
    raise InternalError(f"{loc}: {message}")


def unique_kernels(program: Program) -> None:
    """Raise InternalError if two kernels of a program have one name: code is made, found and launched by names."""
    seen: dict[str, Kernel] = {}
    for node in statements(program.body):
        if isinstance(node, Launch) and seen.setdefault(node.kernel.name, node.kernel) != node.kernel:
            _refuse(f"two kernels have the name {node.kernel.name}", NOWHERE)


def _unique_accesses(kernel: Kernel) -> None:
    """Check that an access number means one place: copies are equal, or stand at one place of the source.

    Accesses that passes have made stand at none; copies of one are accesses of one tensor.
    """
    seen: dict[int, Load | Store] = {}
    for node in walk(kernel):
        if not isinstance(node, Load | Store) or node.access == FLAT_ACCESS:
            continue
        other = seen.setdefault(node.access, node)
        same_place = type(node) is type(other) and node.loc == other.loc
        same_place = same_place and (node.loc != NOWHERE or node.tensor == other.tensor)
        if not same_place and node != other:
            _refuse(f"two accesses have the number {node.access}", node.loc)


def _unique_variables(block: Block, seen: dict[int, Symbol]) -> None:
    """Check that a number means one variable, but for variables of two branches of which one runs."""
    for node in block:
        match node:
            case If():
                _numbers((node.condition,), seen)
                then, otherwise = dict(seen), dict(seen)
                _unique_variables(node.then, then)
                _unique_variables(node.otherwise, otherwise)
                seen |= {**then, **otherwise}
            case For():
                _numbers((node.start, node.stop, build.read(node.index)), seen)
                _unique_variables(node.body, seen)
            case While():
                _unique_variables(node.prelude, seen)
                _numbers((node.condition,), seen)
                _unique_variables(node.body, seen)
            case _:
                _numbers((node,), seen)


def _numbers(nodes: Iterable[Node], seen: dict[int, Symbol]) -> None:
    for symbol in assigned_symbols(nodes) | read_symbols(nodes):
        other = seen.setdefault(symbol.number, symbol)
        if symbol is not other and symbol != other:
            _refuse(f"`{symbol.name}` has the number of `{other.name}`", NOWHERE)


class _Verifier:
    """Walks statements in order, with the set of variables that have a value."""

    def __init__(self, tensors: set[Tensor] | None = None) -> None:
        self.tensors: set[Tensor] = tensors if tensors is not None else set()
        self.indices: list[Symbol] = []
        self.constant: set[Tensor] = set()
        """Locals that nothing stores into here: tables, and what is declared outside of a THREAD loop."""
        self.loops = 0
        self.in_block = False

    # ------------------------------------------------------------ expressions

    def expression(self, node: Expression, defined: set[Symbol], dtype: DType | None = None) -> None:
        """Check an expression, and that it has the type `dtype` if one is given."""
        found = node.dtype
        if found not in VALUE_DTYPES:
            _refuse(f"{found} is no type of a value", node.loc)
        if dtype is not None and found is not dtype and found != dtype:
            _refuse(f"{found} stands where {dtype} is needed", node.loc)
        match node:
            case Constant():
                self._constant(node)
            case Read():
                if node.symbol not in defined:
                    _refuse(f"`{node.symbol.name}` is read before it is assigned", node.loc)
            case Size():
                self._tensor(node.tensor, node.loc)
                _require(0 <= node.axis < node.tensor.type.rank, "no such axis", node.loc)
                _require(not node.tensor.is_local, "the sizes of locals are literals", node.loc)
            case Load():
                self._access(node.tensor, node.indices, defined, node.loc)
                _require(node.dtype is value_dtype(node.tensor.type.dtype), "a load is of the value type", node.loc)
            case Apply():
                self._apply(node, defined)
            case Cast():
                self.expression(node.operand, defined)
            case Select():
                self.expression(node.condition, defined, BOOL)
                self.expression(node.then, defined)
                self.expression(node.otherwise, defined, node.then.dtype)
            case Random():
                for operand in (node.key, node.counter, node.extra, *node.bounds):
                    self.expression(operand, defined, INT64)
                _require(
                    len(node.bounds) == (2 if node.draw is Draw.INTEGER else 0), "wrong bounds of a draw", node.loc
                )
            case _:
                assert_never(node)

    def _constant(self, node: Constant) -> None:
        if type(node.value) is not _PYTHON_TYPES[node.dtype.kind]:
            _refuse(f"{node.value!r} is no {node.dtype}", node.loc)

    def _apply(self, node: Apply, defined: set[Symbol]) -> None:
        operator, operands = node.operator, node.operands
        if len(operands) != operator.arity:
            _refuse(f"`{operator}` takes {operator.arity} operands", node.loc)
        kind = operands[0].dtype
        if kind not in operator.operands:
            _refuse(f"`{operator}` does not take {kind}", node.loc)
        for operand in operands:
            self.expression(operand, defined, kind)
        if node.dtype is not result_dtype(operator, kind):
            _refuse(f"`{operator}` does not give {node.dtype}", node.loc)

    def _tensor(self, tensor: Tensor, loc: Location) -> None:
        if tensor not in self.tensors:
            _refuse(f"the tensor `{tensor.name}` is not known here", loc)

    def _access(self, tensor: Tensor, indices: tuple[Expression, ...], defined: set[Symbol], loc: Location) -> None:
        self._tensor(tensor, loc)
        if len(indices) != tensor.type.rank:
            _refuse(f"`{tensor.name}` takes {tensor.type.rank} indices", loc)
        for index in indices:
            self.expression(index, defined, INT64)

    # ------------------------------------------------------------ statements

    def block(self, block: Block, defined: set[Symbol]) -> bool:
        """Check statements in order, adding to `defined`; return whether the end is reached."""
        known = set(self.tensors)
        ends = all(self.statement(statement, defined) for statement in block)
        self.tensors -= {tensor for tensor in self.tensors - known if tensor.is_local}
        return ends

    def statement(self, node: Statement, defined: set[Symbol]) -> bool:
        """Check a statement; return whether what follows is reached."""
        match node:
            case Assign():
                self.expression(node.value, defined, node.symbol.dtype)
                _require(node.symbol not in self.indices, f"the loop index `{node.symbol.name}` is assigned", node.loc)
                defined.add(node.symbol)
            case Store():
                self._access(node.tensor, node.indices, defined, node.loc)
                self.expression(node.value, defined, value_dtype(node.tensor.type.dtype))
                associative = node.combine is None or node.combine.name in ASSOCIATIVE
                _require(associative, f"no updates by `{node.combine}`", node.loc)
                _require(node.tensor not in self.constant, f"`{node.tensor.name}` is not stored into here", node.loc)
            case Local():
                self._local(node)
            case If():
                return self._if(node, defined)
            case For():
                self._for(node, defined)
            case While():
                self._while(node, defined)
            case Break() | Continue():
                _require(self.loops > 0, "`break` or `continue` outside of a loop", node.loc)
                return False
            case Check():
                self._check(node, defined)
                return not (isinstance(node.condition, Constant) and not node.condition.value)
            case Rebind():
                self._rebind(node)
            case Allocate():
                self._allocate(node, defined)
            case Launch():
                self.kernel(node.kernel, defined)
            case Return():
                for tensor in node.tensors:
                    self._tensor(tensor, node.loc)
                return False
            case _:
                assert_never(node)
        return True

    def _rebind(self, node: Rebind) -> None:
        """Check that tensors of one kind change places, or fill places that appear with that."""
        for source in node.sources:
            self._tensor(source, node.loc)
        targets, sources = set(node.targets), set(node.sources)
        _require(len(targets) == len(node.targets) == len(sources), "a tensor changes places twice", node.loc)
        _require(targets == sources or not targets & self.tensors, "tensors change places with others", node.loc)
        kinds = {(tensor.type.dtype, tensor.type.rank) for tensor in targets | sources}
        _require(len(kinds) == 1, "tensors that change places differ in type", node.loc)
        _require(targets != sources or len({item.type for item in targets}) == 1, "places differ in type", node.loc)
        self.tensors |= targets

    def _if(self, node: If, defined: set[Symbol]) -> bool:
        self.expression(node.condition, defined, BOOL)
        then, otherwise = set(defined), set(defined)
        ends = [found for part, found in ((node.then, then), (node.otherwise, otherwise)) if self.block(part, found)]
        if ends:
            defined |= set[Symbol].intersection(*ends)
        return bool(ends)

    def _for(self, node: For, defined: set[Symbol]) -> None:
        self.expression(node.start, defined, INT64)
        self.expression(node.stop, defined, INT64)
        bounds = (node.start, node.stop)
        _require(
            not any(isinstance(each, Load | Random) for each in walk(bounds)), "a bound reads an element", node.loc
        )
        _require(not read_symbols(bounds) & assigned_symbols(node.body), "a loop changes its bounds", node.loc)
        _require(node.width >= 1, "a loop has at least one lane", node.loc)
        lanes = node.width == 1 or node.role not in {Role.SEQUENTIAL, Role.BLOCK}
        _require(lanes, "loops in order and those for blocks have no lanes", node.loc)
        across = node.role is Role.PARALLEL and node.across > 0 and node.across & (node.across - 1) == 0
        staged = node.role in {Role.CONTRACT, Role.CONTRACT_GROUPS}
        among = across or staged or node.role is Role.BLOCK or node.across == 0
        _require(among, "threads lie along parallel loops, and are a power of two", node.loc)
        unrolled = node.unrolled == 1 or (node.role is Role.SEQUENTIAL and node.unrolled & (node.unrolled - 1) == 0)
        _require(node.unrolled >= 1 and unrolled, "loops in order are unrolled by powers of two", node.loc)
        shared = node.role in {Role.THREAD, Role.WARP, Role.TILE, Role.CHUNKED_TILE}
        _require(self.in_block or not shared, "threads share out loops inside of blocks", node.loc)
        for reduction in node.reductions:
            _require(reduction.operator.name in ASSOCIATIVE, f"no reduction by `{reduction.operator}`", node.loc)
            _require(reduction.symbol in defined, f"the reduction `{reduction.symbol.name}` has no start", node.loc)
        reduced = [reduction.symbol for reduction in node.reductions]
        _require(len({*reduced}) == len(reduced), "a variable is reduced twice", node.loc)
        inner = {*defined, node.index}
        if node.role is not Role.SEQUENTIAL:
            inner -= assigned_symbols(node.body) - {item.symbol for item in node.reductions} - {node.index}
        self.indices.append(node.index)
        around, self.in_block = (
            self.in_block,
            node.role is Role.BLOCK or (self.in_block and (node.role is not Role.THREAD or _is_level(node))),
        )
        tensors, constant = set(self.tensors), set(self.constant)
        if node.role in {Role.THREAD, Role.WARP}:
            self.constant |= {tensor for tensor in self.tensors if tensor.is_local}
        self._body(node.body, inner)
        if _runs(node):
            defined |= inner & assigned_symbols(node.body)
        self.tensors, self.constant = tensors, constant
        self.in_block = around
        self.indices.pop()

    def _local(self, node: Local) -> None:
        kind, sizes = node.tensor.type, node.tensor.sizes
        _require(kind.dtype in VALUE_DTYPES, "a local is of a value type", node.loc)
        _require(kind.contiguous and kind.unit_axis == kind.rank - 1, "a local is row-major", node.loc)
        _require(len(sizes) == kind.rank and all(size > 0 for size in sizes), "a local has its sizes", node.loc)
        _require(len(node.values) in {0, math.prod(sizes)}, "a table has all its values", node.loc)
        for value in node.values:
            self._constant(Constant(value=value, dtype=kind.dtype, loc=node.loc))
        self.tensors.add(node.tensor)
        if node.values:
            self.constant.add(node.tensor)

    def _while(self, node: While, defined: set[Symbol]) -> None:
        known = set(self.tensors)
        self.loops += 1
        for statement in node.prelude:
            self.statement(statement, defined)
        self.loops -= 1
        self.expression(node.condition, defined, BOOL)
        self._body(node.body, set(defined))
        self.tensors = known

    def _body(self, block: Block, defined: set[Symbol]) -> None:
        self.loops += 1
        self.block(block, defined)
        self.loops -= 1

    def _check(self, node: Check, defined: set[Symbol]) -> None:
        self.expression(node.condition, defined, BOOL)
        _require(len(node.values) <= RECORDED_VALUES, "a check records at most 8 values", node.loc)
        for value in node.values:
            self.expression(value, defined)

    def _allocate(self, node: Allocate, defined: set[Symbol]) -> None:
        _require(len(node.sizes) == node.tensor.type.rank, "one size for each axis", node.loc)
        for size in node.sizes:
            self.expression(size, defined, INT64)
        if node.fill is not None:
            self.expression(node.fill, defined)
        if node.like is not None:
            self._tensor(node.like, node.loc)
        self.tensors.add(node.tensor)

    def kernel(self, kernel: Kernel, defined: set[Symbol]) -> None:
        """Check a kernel, which sees only the tensors and scalars that it names."""
        for tensor in kernel.tensors:
            self._tensor(tensor, kernel.loc)
        for symbol in kernel.scalars:
            _require(symbol in defined, f"the scalar `{symbol.name}` has no value", kernel.loc)
        before, self.tensors = self.tensors, set(kernel.tensors)
        around, self.loops = self.loops, 0  # A kernel does not leave the loop that launches it.
        scalars, assigned = set(kernel.scalars), assigned_symbols(kernel.body)
        for symbol in kernel.scalars:  # guards and sharding speak of the value that is passed
            _require(symbol not in assigned, f"the scalar `{symbol.name}` is assigned", kernel.loc)
        for fact in kernel.facts:
            self.expression(fact, scalars, BOOL)
        self.block(kernel.body, scalars)
        self.tensors, self.loops = before, around


def _is_level(loop: For) -> bool:
    """Whether a loop that threads share out is one range with the only loop in it."""
    match loop.body:
        case (For(role=Role.THREAD) as inner,):
            apart = loop.index not in read_symbols((inner.start, inner.stop))
            return apart and loop.width == 1 and inner.reductions == loop.reductions
        case _:
            return False


def _runs(loop: For) -> bool:
    """Whether a loop in order surely runs an iteration to its end: what it assigns may be read after it."""
    length = build.sub(loop.stop, loop.start)
    jumps = any(isinstance(node, Break | Continue) for node in statements(loop.body))
    return loop.role is Role.SEQUENTIAL and isinstance(length, Constant) and length.value > 0 and not jumps
