"""Outlines pieces: the host part as Python that calls them, each piece as the definition of an operator of its own.

`python_body` is the user's function with every lifted piece replaced by a call of its runner; it serves real and fake
tensors alike. `piece_definition` makes of a piece what `define` would make of a function that holds just those
statements; places still name the user's file and lines.
"""

from __future__ import annotations

import ast
import builtins
import copy
import hashlib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.captures import originals
from brickwork.frontend.definition import Definition, draws
from brickwork.frontend.lift import Piece, Split, Splitter, stored_names
from brickwork.frontend.lift_python import is_element_read
from brickwork.frontend.parameters import NO_DEFAULT, Kind, ParameterDeclaration
from brickwork.frontend.piece_values import Shape, class_name, flattening
from brickwork.frontend.rates import rates
from brickwork.frontend.rules import error
from brickwork.frontend.source import Frozen, SourceFunction
from brickwork.frontend.stores import object_name, root, stored_parameters
from brickwork.frontend.stores import stored_names as stored_tensors
from brickwork.records import dataclass

RUN = "__brickwork_run__"
"""The name of the runner in the rewritten function, its first parameter: `runner(number, {name: value})` launches a
piece and returns the values of its outputs, and `runner.take(x[i])` is an element's value or a view."""
FLAT = "__brickwork_flat__"
"""The name of what puts the attributes of values with parts in place of them."""
CELL = "__brickwork_cell"
"""What the parameter for a tensor of rank 0 that stands for a number is called, before the number's own name."""

InputKind: TypeAlias = Kind | Literal["cell", "constant"]


@dataclass(frozen=True, slots=True)
class Input:
    """What a piece is given for a name: a parameter of that kind, a number in a tensor of rank 0, or a constant."""

    name: str
    kind: InputKind
    constant: object = None


# ---------------------------------------------------------------- the host part


def stores_into_computed(definition: Definition) -> bool:
    """Whether loops store into tensors that the function has neither been given nor allocated."""
    source = definition.source
    splitter = Splitter(source, definition.split.tensors)
    stored = stored_tensors(source, definition.helpers) - definition.mutated
    assignments = (node for node in ast.walk(source.node) if isinstance(node, ast.Assign))
    pairs = (pair for node in assignments for target in node.targets for pair in _pairs(target, node.value))
    return any(isinstance(one, ast.Name) and one.id in stored and not splitter.is_allocation(two) for one, two in pairs)


def _pairs(target: ast.expr, found: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(found, ast.Tuple) and len(target.elts) == len(found.elts):
        for one, two in zip(target.elts, found.elts, strict=True):
            yield from _pairs(one, two)
    elif isinstance(target, ast.Tuple):
        yield from ((one, found) for one in target.elts)
    else:
        yield target, found


def python_body(definition: Definition) -> Callable[..., Any]:
    """Return the function that takes a runner and the operator's arguments, and returns what the user's returns."""
    source = definition.source
    node = copy.deepcopy(source.node)
    twins = {id(one): other for one, other in zip(ast.walk(source.node), ast.walk(node), strict=True)}
    first = {id(twins[id(piece.statements[0])]): piece for piece in definition.split.pieces}
    rest = {id(twins[id(item)]) for piece in definition.split.pieces for item in piece.statements[1:]}
    node.body = _launching(node.body, first, rest) or [ast.Pass()]
    if definition.values.kinds:
        _Flattening().visit(node)
    node.decorator_list, node.returns = [], None
    for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        argument.annotation = None
    (node.args.posonlyargs or node.args.args).insert(0, ast.arg(arg=RUN))
    node.args.defaults, node.args.kw_defaults = [], [None for _ in node.args.kwonlyargs]
    Frozen(definition.source).visit(node)
    module = ast.fix_missing_locations(ast.Module(body=[node], type_ignores=[]))
    space: dict[str, Any] = {"__builtins__": builtins, **source.captured, **originals(source)}
    space[FLAT] = flattening(definition.values)
    exec(compile(module, source.file, "exec"), space)  # noqa: S102  # the user's own function, rewritten
    function = cast("types.FunctionType", space[source.name])
    function.__defaults__ = source.function.__defaults__
    function.__kwdefaults__ = source.keyword_defaults or None
    return function


class _Flattening(ast.NodeTransformer):
    """Hands values with parts to pieces attribute by attribute."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Flatten what a runner is given."""
        if isinstance(node.func, ast.Name) and node.func.id == RUN:
            node.args[1] = ast.fix_missing_locations(ast.copy_location(_call(_name(FLAT), node.args[1]), node))
        return node


def _launching(body: Sequence[ast.stmt], first: Mapping[int, Piece], rest: set[int]) -> list[ast.stmt]:
    """Return a body with its pieces, inner ones too, replaced by launches."""
    made: list[ast.stmt] = []
    for node in body:
        piece = first.get(id(node))
        if piece is not None:
            made.append(_launch(piece, node))
        elif id(node) not in rest:
            if isinstance(node, ast.If | ast.For | ast.While):
                node.body = _launching(node.body, first, rest) or [ast.copy_location(ast.Pass(), node)]
                node.orelse = _launching(node.orelse, first, rest)
            elif isinstance(node, ast.Assign) and is_element_read(node.value):
                node.value = ast.copy_location(_call(ast.Attribute(_name(RUN), "take", ast.Load()), node.value), node)
            made.append(node)
    return made


def _launch(piece: Piece, place: ast.stmt) -> ast.stmt:
    given = ast.Dict([ast.Constant(name) for name in piece.inputs], [_name(name) for name in piece.inputs])
    launched = _call(_name(RUN), ast.Constant(piece.number), given)
    made: ast.stmt = ast.Expr(launched)
    if piece.outputs:
        made = ast.Assign([ast.Tuple([ast.Name(name, ast.Store()) for name in piece.outputs], ast.Store())], launched)
    return ast.fix_missing_locations(ast.copy_location(made, place))


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _call(function: ast.expr, *arguments: ast.expr) -> ast.Call:
    return ast.Call(function, list(arguments), [])


# ---------------------------------------------------------------- a piece


def scalar_names(piece: Piece) -> frozenset[str]:
    """Return the names that a piece uses as numbers: a tensor of rank 0 with such a name is read as it begins."""
    nodes = [item for node in piece.statements for item in ast.walk(node)]
    indexed = {root(item) for item in nodes if isinstance(item, ast.Subscript)}
    asked = {root(item.value) for item in nodes if isinstance(item, ast.Attribute)}
    return frozenset(piece.inputs) - indexed - asked


def piece_definition(definition: Definition, piece: Piece, inputs: Sequence[Input]) -> Definition:
    """Return the operator that a piece is, for inputs of these kinds; its outputs are its results."""
    source = _piece_source(definition, piece, inputs)
    kinds: dict[str, Kind] = {_parameter(item): _kind(item) for item in inputs if item.kind != "constant"}
    places = [definition.source.location(piece.statements[0])] * len(kinds)
    parameters = tuple(
        ParameterDeclaration(name, kind, NO_DEFAULT, keyword_only=False, loc=loc)
        for (name, kind), loc in zip(kinds.items(), places, strict=True)
    )
    tensors = frozenset(name for name, kind in kinds.items() if kind == "tensor")
    lists = frozenset(name for name, kind in kinds.items() if kind == "list[tensor]")
    split = _all_lifted(source, tensors, lists)
    helpers = definition.helpers
    digest = hashlib.sha256(f"{definition.fingerprint} piece {piece.number} {inputs}".encode())
    return Definition(
        source=source,
        parameters=parameters,
        mutated=stored_parameters(source, helpers) & (tensors | lists),
        results=len(piece.outputs),
        returns_tuple=len(piece.outputs) > 1,
        draws_random=draws((source, *_called(source, helpers))),
        host="native",
        reason="",
        fingerprint=digest.hexdigest(),
        helpers=helpers,
        values=definition.values,
        split=split,
        whole=definition.source,
        reads_default_dtype=bool(piece.outputs),
        rates=rates(source, parameters),
    )


def refused_input(definition: Definition, piece: Piece, given: Input) -> CompileError:
    """Return the refusal of an object that a piece cannot take, where it is used first."""
    nodes = [item for node in piece.statements for item in ast.walk(node)]
    uses = [item for item in nodes if isinstance(item, ast.Name) and item.id == given.name]
    parts = [item for item in nodes if isinstance(item, ast.Attribute) and object_name(item.value) == given.name]
    first = min([*parts, *uses] or [piece.statements[0]], key=lambda item: (item.lineno, item.col_offset))
    kind = type(given.constant).__name__
    message = f"`{given.name}` is of type {kind}, and a loop takes tensors, numbers and lists of one of them"
    advice = "give each item a name before, and use the names"
    if kind == "ndarray":
        advice = f"write `{given.name} = torch.from_numpy({given.name})` before"
    elif parts:
        read = sorted({item.attr for item in parts})
        values = ", ".join(f"{given.name}.{attribute}" for attribute in read)
        advice = f"give what is needed of it names where it is made, `{', '.join(read)} = {values}`, and use the names"
    return error("BW301", message, definition.source.location(first), advice)


def _all_lifted(source: SourceFunction, tensors: frozenset[str], lists: frozenset[str]) -> Split:
    """Return the split of a piece: everything but the return is lifted."""
    known = Splitter(source, tensors, lists).split()
    statements = [node for node in ast.walk(source.node) if isinstance(node, ast.stmt)]
    lifted = frozenset(id(node) for node in statements[1:] if not isinstance(node, ast.Return))
    names = frozenset(name for node in statements[1:] for name in stored_names(node))
    return Split(lifted, names, known.tensors, "")


def _called(source: SourceFunction, helpers: Mapping[types.FunctionType, SourceFunction]) -> Iterator[SourceFunction]:
    """Yield the helpers whose names a piece mentions, and theirs: no more than may be called."""
    names = {item.id for item in ast.walk(source.node) if isinstance(item, ast.Name)}
    names |= {item.attr for item in ast.walk(source.node) if isinstance(item, ast.Attribute)}
    for function, inner in helpers.items():
        known = {name for name, found in source.captured.items() if found is function}
        if names & {inner.name, *known}:
            yield inner
            remaining = {other: found for other, found in helpers.items() if other is not function}
            yield from _called(inner, remaining)


def _parameter(item: Input) -> str:
    return f"{CELL}_{item.name}" if item.kind == "cell" else item.name


def _kind(item: Input) -> Kind:
    return "tensor" if item.kind in {"cell", "constant"} else cast("Kind", item.kind)


def _piece_source(definition: Definition, piece: Piece, inputs: Sequence[Input]) -> SourceFunction:
    """Return the piece as a function: numbers read from tensors of rank 0, the statements, a return of the outputs."""
    begin, end = piece.statements[0], piece.statements[-1]
    body: list[ast.stmt] = []
    for item in inputs:
        if item.kind == "cell":
            value = ast.Subscript(_name(_parameter(item)), ast.Tuple([], ast.Load()), ast.Load())
            body.append(_placed(ast.Assign([ast.Name(item.name, ast.Store())], value), begin))
        elif isinstance(item.constant, Shape):
            made = item.constant.made(begin)
            body.append(_placed(ast.Assign([ast.Name(item.name, ast.Store())], made), begin))
    body.extend(piece.statements)
    if piece.outputs:
        names = [_name(name) for name in piece.outputs]
        body.append(_placed(ast.Return(names[0] if len(names) == 1 else ast.Tuple(names, ast.Load())), end))
    arguments = [_placed(ast.arg(_parameter(item)), begin) for item in inputs if item.kind != "constant"]
    node = ast.FunctionDef(
        name=definition.source.name,
        args=ast.arguments(posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=body,
        decorator_list=[],
        lineno=begin.lineno,
        col_offset=begin.col_offset,
        end_lineno=end.end_lineno,
        end_col_offset=end.end_col_offset,
    )
    whole = definition.source
    constants = {item.name: item.constant for item in inputs if item.kind == "constant"}
    shapes = [item for item in constants.values() if isinstance(item, Shape)]
    classes = {class_name(kind): kind for shape in shapes for kind in shape.classes()}
    captured = {**whole.captured, **constants, **classes}
    return SourceFunction(node, whole.file, whole.text, captured, _bare(cast("Any", whole).function))


def _placed(node: Any, place: ast.stmt) -> Any:
    """Return a made node at the place of the user's own."""
    for item in ast.walk(node):
        ast.copy_location(item, place)
    return node


def _bare(function: types.FunctionType) -> types.FunctionType:
    """Return the function without its defaults, which are not a piece's."""
    return types.FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
