"""What lowering knows while it runs: names, types of variables so far, the block being written, and fresh numbers.

Types of variables grow from pass to pass until a pass changes none; everything else starts anew with each pass.
A variable's key is the chain of calls that leads to its function and its name.
"""

from __future__ import annotations

import ast
import types
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import TypeAlias

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.lift import stored_names
from brickwork.frontend.random_sites import Path
from brickwork.frontend.regular_loops import changing_names, is_regular
from brickwork.frontend.rules import error
from brickwork.frontend.source import SourceFunction, rebound_names, span
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.typing import (
    Absent,
    ElementType,
    Grown,
    Items,
    Maybe,
    Nothing,
    Opaque,
    Operand,
    Record,
    Row,
    Value,
    ValueType,
    View,
    is_none,
    join,
    with_numbers,
)
from brickwork.frontend.value_methods import Values
from brickwork.ir.build import cast, read
from brickwork.ir.dtypes import BOOL, FLOAT32, DType
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Assign,
    Check,
    Constant,
    Expression,
    Failure,
    FailureKind,
    Read,
    Size,
    Statement,
    Symbol,
    Tensor,
    TensorType,
)
from brickwork.language.complex_numbers import Complex
from brickwork.records import dataclass

Key: TypeAlias = tuple[Path, str]

LARGEST = 65536
"""The most bytes of a list, or a tensor, that each iteration has for itself."""
ITEM_BYTES = 8
"""How many bytes a number of a list takes at most."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that stands for a variable of the program."""

    key: Key


@dataclass(frozen=True, slots=True)
class Together:
    """A name that stands for a tuple or a value with parts, with a variable for each number in it.

    It is assigned in several places. `latest` is what it was assigned last, which tells where its lists are made.
    """

    keys: tuple[Key, ...]
    form: Operand
    latest: Operand = field(compare=False)

    @property
    def site(self) -> Key | None:
        """Where the list was made that it was assigned last, as `Items.site`."""
        return self.latest.site if isinstance(self.latest, Items) else None


Binding: TypeAlias = Operand | Variable | Together


@dataclass(slots=True)
class Frame:
    """A function being lowered: the operator's own, or a helper's at one place of call."""

    source: SourceFunction
    local: frozenset[str]
    bindings: dict[str, Binding]
    path: Path = ()
    call_site: Location | None = None
    aliases: frozenset[str] = frozenset()
    """Names that the host part assigns in a straight line: they stand for the expression itself."""
    returning: Returning | None = None
    """In a helper: what the loop that is being lowered returns."""
    several: frozenset[str] = frozenset()
    """Names that more than one statement assigns."""
    rebound: frozenset[str] = frozenset()
    """Names that something other than the head of a `for` assigns."""
    branches: int = 0
    """How many `if`s of this function are around the statement that is being lowered."""
    changing: frozenset[str] = frozenset()
    """Names whose values may change from turn to turn, as the text says."""
    growing: frozenset[str] | None = None
    """Names of lists that grow; None where that was not asked yet."""
    given: frozenset[str] = frozenset()
    """Names that no lifted statement assigns, of the operator's own function."""

    def is_regular(self, iterable: ast.expr) -> bool:
        """Return whether the text says that a loop over this has equally many turns wherever it is run."""
        return is_regular(iterable, self.source, self.changing)

    def loc(self, node: ast.AST) -> Location:
        """Return the place of a node of this function."""
        return span(self.source.file, self.source.name, node, self.call_site)


@dataclass(slots=True)
class LoopLevel:
    """A loop around the statement that is being lowered."""

    iteration: Expression | None
    """The number of the iteration, from 0; None for a `while`."""
    trips: Expression | None
    regular: bool
    """Whether the text says that it has equally many turns in all turns of the loops around it."""
    outer: dict[str, Binding]
    """What names meant before the loop."""
    frame_path: Path
    flag: Symbol | None = None
    """Set by a `break` that must leave several IR loops."""
    claimed: bool = False
    over: tuple[Grown, ...] = ()
    """The lists that grow among what it runs over."""
    branches: int = 0
    """How many `if`s are around the loop."""
    written_out: bool = False
    """Whether its iterations are lowered one after the other, each with what names mean then."""
    exits: list[set[Key]] = field(default_factory=list[set[Key]])
    """What is assigned at each `break`."""


@dataclass(slots=True)
class Returning:
    """What the `return`s inside a helper's loop leave: a flag that is set, and values under numbered names."""

    flag: Symbol
    form: Operand | None = None
    """What is returned, with other numbers."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a helper is called with, and where."""

    positional: tuple[Operand, ...]
    keywords: Mapping[str, Operand]
    call: ast.expr


@dataclass(frozen=True, slots=True)
class ListArray:
    """A list that is an array: the key of its items' type, that type in this pass, and its sizes."""

    key: Key
    kind: ValueType
    sizes: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RowArray:
    """The array of a name whose rows are kept: its sizes, and the loops in which it is made."""

    tensor: Tensor
    sizes: tuple[Expression, ...]
    levels: list[LoopLevel]


@dataclass(frozen=True, slots=True)
class Copied:
    """An array that a loop fills: with items that Python would share with `source`, a part of a tensor, if any."""

    array: Tensor
    source: Row | None
    loc: Location
    adds: bool = False
    """Whether the array has other items, too, that stay."""


class ListDemanded(Exception):  # noqa: N818  # it is no error: the lowering begins again
    """Raised where a list has turned out to be an array: the lowering begins anew."""


class ValueDemanded(Exception):  # noqa: N818  # it is no error: the lowering begins again
    """A name has turned out to be read after the loop that gives it a value."""


@dataclass(slots=True)
class Growth:
    """What the passes before found out of a list that grows: the form of its items, and the most that it may hold."""

    form: Operand | None = None
    most: int | None = None
    """None where shapes and arguments say it."""
    axes: int = 0
    """How many axes an item has that is a row."""


@dataclass(frozen=True, slots=True)
class Known:
    """What outlives a pass: see the fields of `State` of these names."""

    types: dict[Key, ValueType] = field(default_factory=dict[Key, ValueType])
    arrays: set[Key] = field(default_factory=set[Key])
    tuples: set[Key] = field(default_factory=set[Key])
    kept: set[Key] = field(default_factory=set[Key])
    growth: dict[Key, Growth] = field(default_factory=dict["Key", "Growth"])
    maybe: dict[Key, Operand] = field(default_factory=dict["Key", "Operand"])
    complex: set[Key] = field(default_factory=set[Key])
    rows: set[Key] = field(default_factory=set[Key])


@dataclass(slots=True)
class State:
    """The state of one pass of lowering; see the module for what outlives a pass."""

    random_key: Symbol
    draws_random: bool
    helpers: Mapping[types.FunctionType, SourceFunction]
    values: Values
    inline: Callable[[State, SourceFunction, Arguments, Frame], Operand | None]
    assign_target: Callable[[State, Frame, ast.expr, Operand, Location], None]
    reduce: Callable[..., Operand]
    make_list: Callable[[State, Frame, ast.expr, str], Operand]
    extend: Callable[[State, Frame, Grown, ast.expr], None]
    slice_list: Callable[[State, Frame, Grown | View | Items, ast.Subscript], Operand]
    join_lists: Callable[[State, Frame, Sequence[Grown | Items], ast.BinOp], Operand]
    call_comparing: Callable[[State, Frame, Grown, str, ast.Call], Operand | None]
    tensor_of_items: Callable[[State, Operand, Location], Operand]
    types: dict[Key, ValueType] = field(default_factory=dict[Key, ValueType])
    arrays: set[Key] = field(default_factory=set[Key])
    """Lists that are arrays though their items are few."""
    tuples: set[Key] = field(default_factory=set[Key])
    """Calls of `min` and `max` that compare tuples."""
    kept: set[Key] = field(default_factory=set[Key])
    """Names that are read after a loop that certainly has given them a value."""
    growth: dict[Key, Growth] = field(default_factory=dict["Key", "Growth"])
    """Lists that grow, by where they are made."""
    bounds: dict[Key, list[Expression | None]] = field(default_factory=dict["Key", "list[Expression | None]"])
    """How often each place may add an item to a list that grows; None where that is not known."""
    maybe: dict[Key, Operand] = field(default_factory=dict["Key", "Operand"])
    """Names that stand for a number, or the like, at some times and for None at others, with the form of the first."""
    complex: set[Key] = field(default_factory=set[Key])
    """Names that stand for a real number at some times and for a complex one at others: it is complex then, too."""
    present: set[Expression] = field(default_factory=set[Expression])
    """The conditions of such names that hold here."""
    pending: list[tuple[Tensor, Key, Location, tuple[Expression, ...]]] = field(
        default_factory=list["tuple[Tensor, Key, Location, tuple[Expression, ...]]"]
    )
    """Arrays of such lists that the host allocates, once their length is known, with the sizes of further axes."""
    default_dtype: DType = FLOAT32
    """What floats of Python are stored as, where a tensor is made of them."""
    bounded: set[Key] = field(default_factory=set[Key])
    """Lists that grow whose room the source says."""
    inner: set[Key] = field(default_factory=set[Key])
    """Lists that grow and are made in loops."""
    ranges: dict[Expression, tuple[Expression, Expression]] = field(
        default_factory=dict["Expression", "tuple[Expression, Expression]"]
    )
    """The first value of each loop index, and the one after the last; those that lengths of lists may have."""
    given: set[Key] = field(default_factory=set[Key])
    """Names to which loops so far have certainly given a value."""
    lists: dict[Tensor, ListArray] = field(default_factory=dict["Tensor", "ListArray"])
    """The arrays that lists are."""
    fresh: set[Tensor] = field(default_factory=set[Tensor])
    """Lists that no name stands for yet."""
    held: list[tuple[list[Statement], int, Row, Key]] = field(
        default_factory=list["tuple[list[Statement], int, Row, Key]"]
    )
    """Rows that names stand for: the block and the place in it where they are taken, and the key under which they may
    be kept in an array."""
    rows: set[Key] = field(default_factory=set[Key])
    """Names, and places of the source, whose rows are kept in arrays."""
    row_arrays: dict[Key, RowArray] = field(default_factory=dict["Key", "RowArray"])
    """The arrays of such names."""
    copied: dict[Symbol, Copied] = field(default_factory=dict["Symbol", "Copied"])
    """The arrays that loops fill, by the outermost loop's index."""
    at_most: dict[Expression, Expression] = field(default_factory=dict["Expression", "Expression"])
    """Of lengths of slices, how long the axis is that they are parts of."""
    kept_at: Counter[Key] = field(default_factory=Counter["Key"])
    """How many rows were settled at each place of the source."""
    constant: set[Tensor] = field(default_factory=set[Tensor])
    """Arguments that the operator does not change."""
    made: set[Tensor] = field(default_factory=set[Tensor])
    """Tensors that the host has made and that no name stands for yet."""
    kept_arrays: set[Tensor] = field(default_factory=set[Tensor])
    """All arrays that rows are kept in."""
    part_of: dict[Row, Row] = field(default_factory=dict["Row", "Row"])
    """Of which computed row a row is a part, which Python would have change with it."""
    weak: set[Tensor] = field(default_factory=set[Tensor])
    """Arrays of rows of Python's numbers."""
    shared: set[Tensor] = field(default_factory=set[Tensor])
    """Tensors of which an array is a copy, where Python has one tensor under two names, and such arrays."""
    changed_in_place: dict[Tensor, Location] = field(default_factory=dict["Tensor", "Location"])
    """Where arrays of rows are stored into, item by item."""
    branch_places: list[tuple[tuple[Path, int], list[Statement], int]] = field(
        default_factory=list["tuple[tuple[Path, int], list[Statement], int]"]
    )
    """The branches around: of which function, in how many loops, and where they stand."""
    frames: list[Frame] = field(default_factory=list[Frame])
    either: dict[str, bool] = field(default_factory=dict[str, bool])
    """Names that branches have given different lists, or else rows."""
    moved: dict[str, Location] = field(default_factory=dict[str, Location])
    """Names that were taken out of use when their list got another name, and where."""
    allocate: Callable[[str, TensorType, tuple[Expression, ...], Location], Tensor] | None = None
    """Makes scratch memory of sizes that the host knows."""
    is_host: Callable[[Expression], bool] = lambda _: False
    """Whether the host part knows an expression."""
    kernel: list[Statement] | None = None
    """Where lifted statements are written, while the block is the host's."""
    may_alias: bool = False
    """Whether arguments may share memory."""
    reduced: bool = False
    """Whether an argument has elements of half precision, which are float32 in loops."""
    in_place: bool = True
    """Whether elements may decide that arrays change places: on a GPU the host holds their addresses."""
    changed: bool = False
    symbols: dict[Key, Symbol] = field(default_factory=dict[Key, Symbol])
    block: list[Statement] = field(default_factory=list[Statement])
    assigned: set[Key] = field(default_factory=set[Key])
    ended: bool = False
    nonnegative: set[Expression] = field(default_factory=set[Expression])
    limits: dict[Expression, tuple[int, int]] = field(default_factory=dict["Expression", "tuple[int, int]"])
    """The least and the greatest value of loop indices whose bounds are literals."""
    parameters: set[Symbol] = field(default_factory=set[Symbol])
    """Scalar arguments."""
    invariant: set[Symbol] = field(default_factory=set[Symbol])
    loops: list[LoopLevel] = field(default_factory=list[LoopLevel])
    sites: Mapping[Path, int] = field(default_factory=dict[Path, int])
    while_counter: Symbol | None = None
    exchanged_at: Location | None = None
    """Where a name for a tensor came to stand for another one last."""
    calls: list[SourceFunction] = field(default_factory=list[SourceFunction])
    numbers: int = 0
    accesses: int = 0
    wrong: list[Diagnostic] = field(default_factory=list[Diagnostic])
    """What the user is told of statements that were left out."""
    unknown: set[Key] = field(default_factory=set[Key])
    """Names that those statements would have assigned."""

    def symbol(self, name: str, dtype: DType) -> Symbol:
        """Return a new variable."""
        self.numbers += 1
        return Symbol(name, self.numbers, dtype)

    def tensor(self, name: str, kind: TensorType) -> Tensor:
        """Return a new tensor."""
        self.numbers += 1
        return Tensor(name, self.numbers, kind)

    def access(self) -> int:
        """Return a new access number."""
        self.accesses += 1
        return self.accesses - 1

    def emit(self, statement: Statement) -> None:
        """Append a statement to the block; nothing is written after a `break` or `continue`."""
        if not self.ended:
            self.block.append(statement)

    @contextmanager
    def into(self, block: list[Statement]) -> Generator[None]:
        """Write into another block meanwhile."""
        before, self.block = self.block, block
        ended, self.ended = self.ended, False
        yield
        self.block, self.ended = before, ended

    @contextmanager
    def perhaps(self, block: list[Statement]) -> Generator[None]:
        """Write into a block that need not run: what it assigns is not assigned after it."""
        assigned, present = set(self.assigned), set(self.present)
        with self.into(block):
            yield
        self.assigned, self.present = assigned, self.present & present

    def check(
        self, condition: Expression, kind: FailureKind, message: str, values: tuple[Expression, ...], loc: Location
    ) -> None:
        """Emit a check, but for one that holds always."""
        if not (isinstance(condition, Constant) and condition.value):
            self.emit(Check(condition=condition, failure=Failure(kind, message), values=values, loc=loc))

    def pin(self, expression: Expression, name: str = "value", position: int | None = None) -> Expression:
        """Return an expression with the value that this one has now, cheap and free of loads.

        `position` puts the assignment before statements that were emitted since.
        """
        if isinstance(expression, Constant | Size) or (
            isinstance(expression, Read) and expression.symbol in self.invariant
        ):
            return expression
        symbol = self.symbol(name, expression.dtype)
        statement = Assign(symbol=symbol, value=expression, loc=expression.loc)
        if position is None:
            self.emit(statement)
        elif not self.ended:
            self.block.insert(position, statement)
        self.invariant.add(symbol)
        result = read(symbol, expression.loc)
        if expression in self.nonnegative:
            self.nonnegative.add(result)
        if expression in self.ranges:
            self.ranges[result] = self.ranges[expression]
        return result

    def is_fixed(self, expression: Expression) -> bool:
        """Return whether the value stays the same while the statements to come run."""
        return effects(expression).made_of(self.invariant)

    def fix(self, expression: Expression, name: str = "value") -> Expression:
        """Return the expression itself where it cannot change, else its value now."""
        return expression if self.is_fixed(expression) else self.pin(expression, name)

    def assign(self, key: Key, value: Value, loc: Location) -> None:
        """Assign to a variable, widening its type for the next pass where that is needed."""
        known = self.types.get(key)
        kind = value.type if known is None else join(known, value.type)
        if kind is None:
            raise error(
                "BW101", f"`{key[1]}` is assigned {known} and {value.type}", loc, "write int(...) around the uint64 one"
            )
        if kind != known:
            self.types[key] = kind
            self.changed = True
        symbol = self.variable(key)
        self.emit(Assign(symbol=symbol, value=cast(value.expression, symbol.dtype, loc), loc=loc))
        self.assigned.add(key)

    def widen(self, key: Key, kind: ValueType, name: str, loc: Location) -> None:
        """Let the items of a list be of a type that holds this one too, in the next pass."""
        known = self.types.get(key)
        joined = kind if known is None else join(known, kind)
        if joined is None:
            message = f"`{name}` holds {known} and {kind}"
            raise error("BW101", message, loc, "write int(...) around the uint64 one")
        if joined != known:
            self.types[key] = joined
            self.changed = True

    @contextmanager
    def in_kernel(self) -> Generator[None]:
        """Write what touches elements into the kernel, also from statements of the host part."""
        if self.kernel is None or self.loops:
            yield
        else:
            with self.into(self.kernel):
                yield

    def variable(self, key: Key) -> Symbol:
        """Return the symbol of a variable whose type is known; one that is widened in this pass gets a new one."""
        symbol = self.symbols.get(key)
        if symbol is None or symbol.dtype != self.types[key].dtype:
            symbol = self.symbols[key] = self.symbol(key[1], self.types[key].dtype)
        return symbol

    def lookup(self, frame: Frame, name: str, loc: Location) -> Operand:
        """Return what a local name stands for; refuse one that may have no value yet."""
        binding = frame.bindings.get(name)
        if isinstance(binding, Variable):
            if binding.key in self.assigned:
                weak = self.types[binding.key].weak
                return Value(read(self.variable(binding.key), loc), weak, given=name in frame.given)
        elif isinstance(binding, Together):
            if all(key in self.assigned for key in binding.keys):
                pairs = [(self.variable(key), self.types[key].weak) for key in binding.keys]
                return with_numbers(binding.latest, (Value(read(symbol, loc), weak) for symbol, weak in pairs))
        elif isinstance(binding, Value) and name in frame.given:
            return replace(binding, given=True)
        elif binding is not None and not (is_none(binding) and (frame.path, name) in self.unknown):
            return binding
        if self.either.get(name) and binding is None and (frame.path, name) not in self.rows:
            self.rows.add((frame.path, name))
            raise ListDemanded
        if name in self.either and binding is None:
            message = f"`{name}` stands for one list or another here, or for one row or another"
            advice = f"give `{name}` a list of that length before the `if`, or store rows in each branch"
            raise error("BW901", message, loc, advice)
        if name in self.moved and binding is None:
            message = f"`{name}` is read, but line {self.moved[name].line} has given its list another name"
            raise error("BW005", message, loc, f"copy the items there: `... = {name}[:]`")
        if (frame.path, name) in self.unknown:
            raise CompileError(())
        if (frame.path, name) in self.given - self.kept:
            self.kept.add((frame.path, name))
            raise ValueDemanded
        raise error("BW005", f"`{name}` may be read before it is assigned", loc, f"give `{name}` a value before")

    # ------------------------------------------------------------ what is wrong

    def lowering(self, frame: Frame, node: ast.stmt, lower: Callable[[], None]) -> None:
        """Lower a statement; keep what is wrong with it, and leave the state as if it had not been there.

        What it would have assigned is unknown from then on: nothing is said of names that are missing for it.
        """
        block, ended, loops, calls = self.block, self.ended, len(self.loops), len(self.calls)
        frames, branches, places = len(self.frames), frame.branches, len(self.branch_places)
        try:
            lower()
        except CompileError as wrong:
            if type(wrong) is not CompileError:
                raise
            self.wrong += wrong.diagnostics
            self.block, self.ended = block, ended
            del self.loops[loops:], self.calls[calls:], self.frames[frames:], self.branch_places[places:]
            frame.branches = branches
            self.unknown |= {(frame.path, name) for name in stored_names(node)}


def helper_frame(source: SourceFunction, path: Path, call_site: Location) -> Frame:
    """Return the frame of a helper that is inlined at a place."""
    return Frame(
        source,
        source.local,
        {},
        path,
        call_site,
        rebound=rebound_names(source.node),
        several=several_names(source.node, source.node.args),
        changing=changing_names(source, None),
    )


def several_names(function: ast.FunctionDef, given: ast.arguments | None = None) -> frozenset[str]:
    """Return the names that are assigned in more than one place; what is `given` is assigned before."""
    parameters = [item.arg for item in (*given.posonlyargs, *given.args, *given.kwonlyargs)] if given else []
    stores = parameters + [
        node.id for node in all_nodes(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    return frozenset(name for name, count in Counter(stores).items() if count > 1)


def truth(value: Value, loc: Location) -> Expression:
    """Return the value as a bool."""
    return cast(value.expression, BOOL, loc)


def dimensions(rank: int) -> str:
    """Return how messages call a rank."""
    return f"{rank} dimension{'' if rank == 1 else 's'}"


def describe(operand: Operand | None) -> str:
    """Return how messages call an operand."""
    match operand:
        case Value():
            return str(operand.type)
        case View():
            return f"a tensor with {dimensions(operand.rank)}"
        case Absent():
            return f"`{operand.name}`, which is None in this call"
        case Nothing():
            return f"the None that `{operand.function}` returns"
        case ElementType():
            return "a dtype"
        case None:
            return "nothing"
        case _ if is_none(operand):
            return "None"
        case Opaque():
            return "a device" if operand.what == "device" else operand.what
        case Grown():
            return "a list"
        case Maybe():
            return f"{describe(operand.inner)} or None"
        case Row():
            return f"a part of a tensor, with {dimensions(len(operand.sizes))}"
        case Record() if operand.kind is Complex:
            return "a complex number"
        case Record():
            return f"{'an' if operand.kind.__name__[:1] in 'AEIOUaeiou' else 'a'} `{operand.kind.__name__}`"
        case _:
            return "a tuple" if hasattr(operand, "items") else "something else"
