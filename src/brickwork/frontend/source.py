"""Finds and parses the source of a function in place, so that every node has its true line and column.

A `SourceFunction` also knows what its free names meant when it was made: they are captured by value, once.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import cast

from brickwork.diagnostics.location import Location
from brickwork.frontend.comprehensions import Listed, Unshadowed
from brickwork.frontend.dictionaries import Dictionaries
from brickwork.frontend.environment import (
    MISSING,
    Missing,
    constant_items,
    intrinsic,
    is_tensor,
    number_of_numpy,
    resolve,
)
from brickwork.frontend.match_statements import Matches
from brickwork.frontend.named_heads import name_heads
from brickwork.frontend.names_apart import tell_names_apart
from brickwork.frontend.rules import error
from brickwork.frontend.spelled_calls import spell_calls
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.text_items import TextItems
from brickwork.frontend.value_classes import is_value, snapshot
from brickwork.records import dataclass

WRITTEN = "write it in a file or in a cell of a notebook: code at a prompt, or of `python -c`, leaves no source"
"""Advice where a source cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class SourceFunction:
    """A parsed function: its tree, where it stands, its text, and the values of its free names."""

    node: ast.FunctionDef
    file: str
    text: str
    captured: Mapping[str, object]
    function: types.FunctionType
    inner: Mapping[types.FunctionType, SourceFunction] = field(
        default_factory=dict["types.FunctionType", "SourceFunction"]
    )
    """The functions that were defined inside of it, or around and beside it."""
    around: types.FunctionType | None = None
    """The function that it was defined in."""
    is_method: bool = False
    """Whether its first parameter is the object whose method it is."""
    local: frozenset[str] = field(init=False)
    """Its parameters and every name that it assigns."""

    def __post_init__(self) -> None:
        """Look for its names once: a definition asks for them twenty times."""
        object.__setattr__(self, "local", local_names(self.node))

    @property
    def name(self) -> str:
        """The function's name."""
        return self.node.name

    @property
    def keyword_defaults(self) -> dict[str, object]:
        """The default values of keyword-only parameters."""
        return dict(getattr(self.function, "__kwdefaults__", None) or {})

    def is_made_of(self, function: object) -> bool:
        """Return whether this is the parsed form of `function`."""
        return id(function) == id(self.function)

    def location(self, node: ast.AST, call_site: Location | None = None) -> Location:
        """Return the place of a node of this function."""
        return span(self.file, self.name, node, call_site)


def span(file: str, function: str, node: ast.AST, call_site: Location | None = None) -> Location:
    """Return the place of a node of the tree."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    end_line = getattr(node, "end_lineno", None) or line
    end_column = getattr(node, "end_col_offset", None) or column
    return Location(
        file=file,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        function=function,
        call_site=call_site,
    )


def parse(function: Callable[..., object], *, lambdas: bool = False) -> SourceFunction:
    """Return the parsed function; refuse what has no source or is no plain function."""
    name, place = getattr(function, "__name__", str(function)), start_of(function)
    if not isinstance(function, types.FunctionType):
        message = f"`{name}` is not a plain Python function"
        raise error("BW001", message, place, "write it with `def`, and decorate that")
    if hasattr(function, "__wrapped__"):
        message = f"`{name}` was made by another decorator, whose effect its source does not show"
        raise error("BW001", message, place, "decorate the function itself, and what comes of it afterwards")
    is_lambda = name == "<lambda>" and lambdas
    try:
        lines, first = (_whole_file(function), 1) if is_lambda else inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise error("BW001", f"the source of `{name}` cannot be read", place, WRITTEN) from None
    text = "".join(lines)
    indented = text[:1] in {" ", "\t"}
    try:
        tree = ast.parse("if True:\n" + text if indented else text)
    except SyntaxError:
        raise error("BW001", f"the source of `{name}` cannot be parsed by itself", place, WRITTEN) from None
    ast.increment_lineno(tree, first - (2 if indented else 1))
    found = next((node for node in all_nodes(tree) if isinstance(node, ast.FunctionDef) and node.name == name), None)
    if is_lambda:
        found = _lambda(tree, function.__code__)
        text = ast.unparse(tree if found is None else found)
    if found is None:
        what = "a `lambda`" if name == "<lambda>" else f"`{name}`"
        raise error("BW001", f"{what} is not written as a plain `def`", place, "write it with `def`, in a file")
    without_parameters(found, bound_values(function))
    Unshadowed(found).visit(found)
    called = spell_calls(found, partial(capture, function, found), local_names(found))
    builtin = _builtin(function, found)
    name_heads(found, builtin)
    Listed(found, builtin).visit(found)
    if any(isinstance(item, ast.Match) for item in all_nodes(found)):
        Matches(found).visit(found)
    tell_names_apart(ast.fix_missing_locations(found))
    captured = capture(function, found)
    items = TextItems(captured, local_names(found), _builtin(function, found))
    items.visit(found)
    tables = items.tables | _without_dictionaries(found, captured)
    return SourceFunction(found, place.file, text, {**captured, **tables, **called}, function)


def _without_dictionaries(node: ast.FunctionDef, captured: Mapping[str, object]) -> dict[str, object]:
    """Write dictionaries as tuples; return what their names mean."""
    is_captured = any(isinstance(item, dict) for item in captured.values())
    if not is_captured and not any(isinstance(item, ast.Dict) for item in all_nodes(node)):
        return {}
    dictionaries = Dictionaries(node, captured, local_names(node))
    dictionaries.write(node)
    return {name: frozen(unbound(found)) for name, found in dictionaries.tables.items()}


def _builtin(function: types.FunctionType, node: ast.FunctionDef) -> frozenset[str]:
    """Return the names that mean Python's builtins in a function."""
    known, own = function.__globals__, {*local_names(node), *function.__code__.co_freevars}
    own |= {item.arg for item in all_nodes(node) if isinstance(item, ast.arg)}
    own |= {item.name for item in all_nodes(node) if isinstance(item, ast.FunctionDef)}
    own |= {name for name, found in vars(builtins).items() if known.get(name, found) is not found}
    return frozenset(vars(builtins).keys() - own)


def _whole_file(function: types.FunctionType) -> list[str]:
    """Return the lines of the file that a function stands in."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    if not lines:
        raise OSError
    return lines


def _lambda(tree: ast.AST, code: types.CodeType) -> ast.FunctionDef | None:
    """Return the lambda that begins in the line of the code and has its parameters and its place, as a function."""
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = [
        node
        for node in all_nodes(tree)
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and tuple(item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)) == names
    ]
    if len(found) > 1:
        found = [node for node in found if _is_code_of(node.body, code)]
    if len(found) != 1:
        return None
    result = ast.copy_location(ast.Return(value=found[0].body), found[0].body)
    made = ast.parse("def _lambda(): pass").body[0]
    if not isinstance(made, ast.FunctionDef):
        return None
    made.args, made.body = found[0].args, [result]
    return ast.copy_location(made, found[0])


def _is_code_of(node: ast.expr, code: types.CodeType) -> bool:
    """Return whether the code of a function, but for its first instruction, stands where an expression does."""
    _, *places = code.co_positions()
    first, last = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    spans = [((line, column), (end, end_column)) for line, end, column, end_column in places if end_column]
    return bool(spans) and all(first <= begin and end <= last for begin, end in spans)


def start_of(function: Callable[..., object]) -> Location:
    """Return the line where a function begins, be it wrapped by others; without one, that which decorates it."""
    name = getattr(function, "__name__", str(function))
    code = getattr(inspect.unwrap(function), "__code__", None)
    if not isinstance(code, types.CodeType):
        file, line = _caller()
    else:
        file, line = code.co_filename, code.co_firstlineno
    length = len(linecache.getline(file, line).rstrip().encode())
    return Location(file=file, line=line, column=0, end_line=line, end_column=length, function=name)


def _caller() -> tuple[str, int]:
    """Return the file and the line that called brickwork."""
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "brickwork":
        frame = frame.f_back
    return ("<unknown>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def local_names(node: ast.FunctionDef) -> frozenset[str]:
    """Return the parameters of a function and every name that it assigns."""
    arguments = node.args
    names = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {item.arg for item in (arguments.vararg, arguments.kwarg) if item is not None}
    names |= {item.id for item in all_nodes(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    return frozenset(names)


def rebound_names(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names that are assigned elsewhere than in the head of one `for`, which ends with it.

    A parameter is assigned before, and so is the name of a `for` around one with the same name.
    """
    nodes = all_nodes(function)
    heads = [node.target for node in nodes if isinstance(node, ast.For | ast.comprehension)]
    loop_targets = {id(name) for head in heads for name in all_nodes(head)}
    arguments = function.args
    before = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    outer = [node for node in nodes if isinstance(node, ast.For)]
    again = {name for node in outer for name in _targets(node) & before}
    for node in outer:
        inner = [item for item in all_nodes(node) if isinstance(item, ast.For) and item is not node]
        again |= {name for item in inner for name in _targets(item) & _targets(node)}
    return (
        frozenset(again)
        | _read_behind(function)
        | frozenset(
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in loop_targets
        )
    )


def _read_behind(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names of the heads of loops that are read outside of these loops."""
    loops = [node for node in all_nodes(function) if isinstance(node, ast.For)]
    targets = [_targets(node) for node in loops]
    names = frozenset[str]().union(*targets)
    inside = {
        id(item)
        for node, own in zip(loops, targets, strict=True)
        for item in all_nodes(node)
        if isinstance(item, ast.Name) and item.id in own
    }
    nodes = [item for item in all_nodes(function) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)]
    return frozenset(item.id for item in nodes if item.id in names and id(item) not in inside)


def _targets(node: ast.For) -> frozenset[str]:
    return frozenset(item.id for item in all_nodes(node.target) if isinstance(item, ast.Name))


def capture(function: types.FunctionType, node: ast.FunctionDef) -> dict[str, object]:
    """Return the values that the free names of the body have now, and dotted names that lead through modules.

    Names that have no value are left out.
    """
    local = local_names(node)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    captured: dict[str, object] = {}
    bound = bound_values(function)
    nodes = [item for statement in node.body for item in all_nodes(statement)]
    for name in dict.fromkeys(item.id for item in nodes if isinstance(item, ast.Name)):
        if name in local:
            continue
        if name in bound:
            captured[name] = bound[name]
        elif name in cells:
            try:
                captured[name] = cells[name].cell_contents
            except ValueError:
                continue
        elif name in function.__globals__:
            captured[name] = function.__globals__[name]
        elif hasattr(builtins, name):
            captured[name] = getattr(builtins, name)
    for item in (item for item in nodes if isinstance(item, ast.Attribute)):
        found = resolve(item, captured, local)
        if found is MISSING:
            found = _member(item, captured, local)
        if found is not MISSING:
            captured[ast.unparse(item)] = found
    return {name: frozen(unbound(found)) for name, found in captured.items()}


def frozen(found: object) -> object:
    """Return a copy of a list of constants, of which nobody else can change the items; anything else as it is.

    Numbers and arrays of NumPy's become Python's.
    """
    found = number_of_numpy(found)
    if is_value(found):
        return snapshot(found)
    if isinstance(found, dict):
        return {**cast("dict[object, object]", found)}
    if constant_items(found) is None or not isinstance(found, list | tuple):
        return found
    items = cast("list[object] | tuple[object, ...]", found)
    copies = [frozen(item) for item in items]
    if isinstance(items, list):
        return copies
    return items if all(one is other for one, other in zip(items, copies, strict=True)) else tuple(copies)


def _member(node: ast.Attribute, captured: Mapping[str, object], local: frozenset[str]) -> object:
    """Return what an attribute of a captured object or class is."""
    owner = resolve(node.value, captured, local)
    if isinstance(owner, types.ModuleType | Missing) or is_tensor(owner):
        return MISSING
    if callable(owner) and not isinstance(owner, type):
        return MISSING
    return getattr(owner, node.attr, MISSING)


# ---------------------------------------------------------------- methods and partial functions


def bound_values(function: object) -> dict[str, object]:
    """Return the values of the parameters that a function made by `unbound` no longer has."""
    return dict(getattr(function, "__bound__", {}))


def unbound(found: object) -> object:
    """Return a method of an object, or `functools.partial`, as a plain function with its first values fixed."""
    if isinstance(found, types.MethodType) and isinstance(found.__func__, types.FunctionType):
        return _with_fixed(found.__func__, (found.__self__,), {})
    if isinstance(found, functools.partial):
        fixed = cast("functools.partial[object]", found)
        inner = unbound(fixed.func)
        if isinstance(inner, types.FunctionType) and intrinsic(inner) is None:
            return _with_fixed(inner, fixed.args, fixed.keywords)
        return fixed
    return found


def _with_fixed(
    function: types.FunctionType, values: Sequence[object], named: Mapping[str, object]
) -> types.FunctionType:
    before, code = bound_values(function), function.__code__
    positional = [name for name in code.co_varnames[: code.co_argcount] if name not in before]
    fixed = {**dict(zip(positional, values, strict=False)), **named}
    made = types.FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    defaults = function.__defaults__ or ()
    known = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    made.__defaults__ = tuple(value for name, value in known.items() if name not in fixed)
    made.__kwdefaults__ = {name: item for name, item in (function.__kwdefaults__ or {}).items() if name not in fixed}
    made.__dict__["__bound__"] = {**before, **fixed}
    return made


def without_parameters(node: ast.FunctionDef, bound: Mapping[str, object]) -> None:
    """Take the parameters that have a value out of a function."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    first = len(positional) - len(arguments.defaults)
    arguments.defaults = [
        item for name, item in zip(positional[first:], arguments.defaults, strict=True) if name.arg not in bound
    ]
    kept = [
        (name, item)
        for name, item in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if name.arg not in bound
    ]
    arguments.kwonlyargs, arguments.kw_defaults = [name for name, _ in kept], [item for _, item in kept]
    arguments.posonlyargs = [item for item in arguments.posonlyargs if item.arg not in bound]
    arguments.args = [item for item in arguments.args if item.arg not in bound]


class Frozen(ast.NodeTransformer):
    """Puts the numbers that were read through modules at decoration in place of their dotted names."""

    def __init__(self, source: SourceFunction) -> None:
        """Take what was captured."""
        self._captured = source.captured

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return the number itself."""
        found = self._captured.get(ast.unparse(node))
        if isinstance(found, bool | int | float):
            return ast.copy_location(ast.Constant(value=found), node)
        self.generic_visit(node)
        return node
