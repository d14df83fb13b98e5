"""Python expressions to IR. Whatever needs control flow writes statements into the current block before its value."""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from functools import partial

from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend import row_functions
from brickwork.frontend.arithmetic import BINARY, COMPARE, binary, unary
from brickwork.frontend.calls import call
from brickwork.frontend.captured_operands import captured_operand, literal_integer
from brickwork.frontend.comparisons import link
from brickwork.frontend.complex_values import PARTS as COMPLEX_PARTS
from brickwork.frontend.complex_values import is_complex, of_complex, part_of_real
from brickwork.frontend.environment import MISSING, constant_items, helper, intrinsic, resolve
from brickwork.frontend.evaluation_order import kept, kept_place
from brickwork.frontend.given_numbers import as_given
from brickwork.frontend.grown_lists import call_grown, is_filled, item_at, length, let_grow, place_of
from brickwork.frontend.indexing import (
    advice_for,
    attribute,
    called_on,
    index,
    is_complex_element,
    load,
    numeric,
    scalar,
)
from brickwork.frontend.list_forms import CHANGING, is_list
from brickwork.frontend.lowering_state import Arguments, Frame, State, describe, truth
from brickwork.frontend.merging import Branch, is_speculative, may_repeat, merge, merge_operands
from brickwork.frontend.mistaken_names import not_a_function, refuse_axis, refuse_unknown
from brickwork.frontend.optional_numbers import give_zeros, named_if, note_met, present_if, required
from brickwork.frontend.parts import (
    as_record,
    binary_number,
    binary_operand,
    call_method,
    construct,
    item_of,
    items_of,
    truth_of,
    unary_number,
    unary_of_parts,
)
from brickwork.frontend.parts import attribute as attribute_of
from brickwork.frontend.random_sites import place
from brickwork.frontend.row_forms import is_sliced, over_items, slices_of, spelled_out, step_of
from brickwork.frontend.rows import (
    Bounds,
    combined,
    is_of_rows,
    is_rows,
    part_of_row,
    row_of,
    slab_of,
)
from brickwork.frontend.rules import GENERATOR, REDUCTIONS, REFUSED_EXPRESSIONS, error, unsupported
from brickwork.frontend.tuple_indexing import looked_up, pick
from brickwork.frontend.typing import (
    Absent,
    Grown,
    Items,
    Maybe,
    Nothing,
    Opaque,
    Operand,
    Record,
    Row,
    Value,
    View,
    is_none,
    numbers_of,
    parts_of,
    with_parts,
)
from brickwork.frontend.value_calls import call_on_values, is_instance
from brickwork.frontend.value_classes import method as method_of
from brickwork.ir.build import apply, constant, logical_not
from brickwork.ir.dtypes import BOOL
from brickwork.ir.nodes import Constant, Expression, Statement
from brickwork.language.complex_numbers import Complex
from brickwork.language.math import FOLDED, METHODS, POWER_MODULO, is_of_items
from brickwork.language.pointwise import is_own


def value(state: State, frame: Frame, node: ast.expr) -> Value:
    """Return a Python expression as a scalar."""
    return scalar(state, operand(state, frame, node), frame.loc(node))


def operand(state: State, frame: Frame, node: ast.expr) -> Operand:
    """Return a Python expression as whatever it is: a scalar, a tensor, a tuple."""
    loc = frame.loc(node)
    match node:
        case ast.Constant():
            return captured_operand(node.value, repr(node.value), loc)
        case ast.Name():
            return _name(state, frame, node, loc)
        case ast.Attribute():
            return _attribute(state, frame, node, loc)
        case ast.Subscript():
            return _subscript(state, frame, node, loc)
        case ast.Tuple():
            return Items(operands(state, frame, node.elts))
        case ast.List() | ast.ListComp():
            return state.make_list(state, frame, node, "list")
        case _ if is_list(node, frame.source.captured, frame.local):
            return state.make_list(state, frame, node, "list")
        case ast.BinOp() | ast.UnaryOp() if (number := literal_integer(node)) is not None:
            return captured_operand(number, repr(number), loc)
        case ast.BinOp():
            return _binary(state, frame, node, loc)
        case ast.UnaryOp():
            return _unary(state, frame, node, loc)
        case ast.BoolOp():
            return _logic(state, frame, node, loc)
        case ast.Compare():
            return _comparison(state, frame, node, loc)
        case ast.IfExp():
            return _conditional(state, frame, node, loc)
        case ast.NamedExpr():
            found = operand(state, frame, node.value)
            state.assign_target(state, frame, node.target, found, loc)
            return operand(state, frame, ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
        case ast.GeneratorExp():
            raise error("BW003", GENERATOR[0], loc, GENERATOR[1])
        case ast.Call():
            result = call_operand(state, frame, node)
            return Nothing(ast.unparse(node.func)) if result is None else result
        case ast.JoinedStr():
            raise error("BW003", "a text is not part of the language", loc, "texts stand in the messages of `assert`")
        case _:
            message, advice = REFUSED_EXPRESSIONS.get(type(node), ("this expression is not part of the language", ""))
            raise error("BW003", message, loc, advice)


def condition(state: State, frame: Frame, node: ast.expr) -> Expression:
    """Return a Python expression as a bool."""
    loc = frame.loc(node)
    if isinstance(node, ast.BoolOp):
        return truth(_logic(state, frame, node, loc, as_bool=True), loc)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return logical_not(condition(state, frame, node.operand), loc)
    found = operand(state, frame, node)
    if isinstance(found, Maybe) and isinstance(found.there, Value):
        inner = found.inner if isinstance(found.inner, Value) else found.there
        return apply("logical_and", found.there.expression, truth(inner, loc), loc=loc)
    found = numeric(state, found, loc) if is_complex_element(found) else found
    if isinstance(found, Record):
        return truth_of(state, frame, found, node)
    if isinstance(found, Grown):
        return is_filled(state, found, loc)
    row_functions.refuse_condition(state, found, loc)
    return constant(False, BOOL, loc) if is_none(found) else truth(scalar(state, found, loc), loc)


def _name(state: State, frame: Frame, node: ast.Name, loc: Location) -> Operand:
    if node.id in frame.local:
        found = state.lookup(frame, node.id, loc)
        is_there = isinstance(found, Maybe) and any(
            each.expression in state.present for each in numbers_of(found.there)
        )
        return found.inner if isinstance(found, Maybe) and is_there else found
    found = frame.source.captured.get(node.id, MISSING)
    if found is MISSING:
        raise error("BW005", f"`{node.id}` is not defined", loc, "define it before the operator")
    return captured_operand(found, node.id, loc)


def _attribute(state: State, frame: Frame, node: ast.Attribute, loc: Location) -> Operand:
    found = resolve(node, frame.source.captured, frame.local)
    if found is not MISSING:
        return captured_operand(found, ast.unparse(node), loc)
    refuse_unknown(frame, node, loc)
    owner = required(state, operand(state, frame, node.value), loc)
    if isinstance(owner, View) and node.attr in COMPLEX_PARTS and (owner.is_element or is_complex_element(owner)):
        owner = numeric(state, owner, loc)
    if isinstance(owner, View | Row):
        return attribute(owner, node.attr, loc)
    if isinstance(owner, Value) and node.attr in COMPLEX_PARTS:
        return part_of_real(owner, node.attr, loc)
    if isinstance(owner, Record):
        return attribute_of(state, frame, owner, node)
    items = isinstance(owner, Items)
    advice = f"index it: `{ast.unparse(node.value)}[0]`" if items else advice_for(owner, "use a number or a tensor")
    raise error("BW003", f"`.{node.attr}` of {describe(owner)} is not part of the language", loc, advice)


def index_operands(state: State, frame: Frame, node: ast.Subscript) -> Sequence[Operand]:
    """Return the indices of `x[...]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is ...:
            raise error("BW003", "`...` is no index here", frame.loc(part), "write one index for each dimension")
        if isinstance(part, ast.Slice):
            raise error(
                "BW003", "a slice is not part of the language", frame.loc(part), "write a loop over the elements"
            )
    return operands(state, frame, parts)


def _subscript(state: State, frame: Frame, node: ast.Subscript, loc: Location) -> Operand:
    table = _table(state, frame, node, loc)
    if table is not None:
        return table
    owner = required(state, operand(state, frame, node.value), loc)
    position = len(state.block)
    if isinstance(owner, View) and owner.tensor not in state.lists:
        node = spelled_out(node, owner.rank)
    if isinstance(owner, View) and owner.tensor not in state.lists and is_sliced(node):
        bounds = slice_operands(state, frame, node)
        return row_of(state, slab_of(state, kept_place(state, owner, position), bounds, loc), loc)
    if isinstance(owner, Row):
        parts = slice_operands(state, frame, spelled_out(node, len(owner.sizes)))
        kept(state, owner, position, loc)
        return part_of_row(state, owner, parts, loc)
    if isinstance(owner, Grown | View | Items) and is_sliced(node):
        return state.slice_list(state, frame, owner, node)
    indices = index_operands(state, frame, node)
    owner = kept(state, owner, position, loc)
    if isinstance(owner, View):
        return index(state, owner, indices, loc)
    if isinstance(owner, Record):
        if not owner.is_tuple or method_of(owner.kind, "__getitem__") is not None:
            return item_of(state, frame, owner, node, indices)
        owner = Items(owner.parts)
    if isinstance(owner, Grown):
        if len(indices) != 1:
            raise error("BW103", "a list takes one index", loc, "write `w[i][j]`")
        return item_at(state, owner, place_of(state, owner, indices[0], loc), loc)
    if isinstance(owner, Items):
        if len(indices) != 1:
            raise error("BW103", "a tuple takes one index", loc, "write `w[i][j]`")
        at = scalar(state, indices[0], loc)
        refuse_axis(node.value, owner, at, loc)
        name = node.value.id if isinstance(node.value, ast.Name) else "tuple"
        return pick(state, owner.items, at, loc, name)
    if isinstance(owner, Absent):
        advice = f"test `{owner.name} is not None` before"
        raise error("BW003", f"{describe(owner)}, cannot be indexed", loc, advice)
    advice = advice_for(owner, "index a tensor")
    if isinstance(owner, Opaque) and owner.text:
        advice = "texts are only compared as a whole, with ==: pass what it says as numbers"
    raise error("BW003", f"{describe(owner)} cannot be indexed", loc, advice)


def _table(state: State, frame: Frame, node: ast.Subscript, loc: Location) -> Value | Record | None:
    """Return `W[i][j]` of a captured table of numbers; None of anything else."""
    owner, nodes = node.value, [node.slice]
    while isinstance(owner, ast.Subscript):
        nodes.insert(0, owner.slice)
        owner = owner.value
    captured = constant_items(resolve(owner, frame.source.captured, frame.local))
    if len(nodes) == 1 or captured is None or any(isinstance(item, ast.Tuple | ast.Slice) for item in nodes):
        return None
    items = captured_operand(captured, "table", loc)
    indices = [scalar(state, item, loc) for item in operands(state, frame, nodes)]
    if not isinstance(items, Items) or all(isinstance(item.expression, Constant) for item in indices):
        return None
    return looked_up(state, items.items, indices, loc, ast.unparse(owner))


def _binary(state: State, frame: Frame, node: ast.BinOp, loc: Location) -> Operand:
    sides = _ordered_operands(state, frame, node.left, node.right)
    name = BINARY.get(type(node.op), "matmul")
    is_product = name == "matmul" and is_of_rows(state, sides)
    if is_product and (made := row_functions.product_of_rows(state, frame, node, sides)) is not None:
        return made
    if any(isinstance(side, Record) or is_complex_element(side) for side in sides) or name == "matmul":
        if is_of_rows(state, sides) and any(map(is_complex, sides)):
            return combined(state, sides, lambda pair: binary_number(state, frame, name, pair, node), loc)
        return binary_operand(state, frame, name, sides, node)
    lists = [side for side in sides if isinstance(side, Grown | Items)]
    if name == "add" and len(lists) == len(sides):
        return state.join_lists(state, frame, lists, node)
    if is_of_rows(state, sides):
        return combined(state, sides, lambda pair: binary_number(state, frame, name, pair, node), loc)
    left, right = scalar(state, sides[0], frame.loc(node.left)), scalar(state, sides[1], frame.loc(node.right))
    return binary(state, name, left, right, loc)


def slice_operands(state: State, frame: Frame, node: ast.Subscript) -> list[Operand | Bounds]:
    """Return the indices of `x[i, a:b]`, with the bounds of each slice."""
    parts = slices_of(node)
    for part in parts:
        if isinstance(part, ast.Slice) and step_of(part) is None:
            message = "the step of a slice is a positive literal here"
            raise error("BW003", message, frame.loc(part), "write a loop")
        if isinstance(part, ast.Constant) and part.value is ...:
            raise error("BW003", "`...` stands once among indices", frame.loc(part), "write `:` for each dimension")
    nodes = [part for part in parts if not isinstance(part, ast.Slice)]
    nodes += [item for part in parts if isinstance(part, ast.Slice) for item in (part.lower, part.upper) if item]
    known = dict(zip(map(id, nodes), operands(state, frame, nodes), strict=True))
    return [
        (known.get(id(part.lower)), known.get(id(part.upper)), step_of(part) or 1)
        if isinstance(part, ast.Slice)
        else known[id(part)]
        for part in parts
    ]


def _unary(state: State, frame: Frame, node: ast.UnaryOp, loc: Location) -> Operand:
    found = operand(state, frame, node.operand)
    found = numeric(state, found, loc) if is_complex_element(found) else found
    if isinstance(found, Record) and isinstance(node.op, ast.Not):
        return Value(logical_not(truth_of(state, frame, found, node.operand), loc))
    if isinstance(found, Record):
        return unary_of_parts(state, frame, node, found)
    if is_of_rows(state, [found]):
        return combined(state, [found], lambda one: unary_number(state, frame, node, one[0]), loc)
    return unary(state, node.op, scalar(state, found, frame.loc(node.operand)), loc)


def _ordered_operands(state: State, frame: Frame, first: ast.expr, second: ast.expr) -> tuple[Operand, Operand]:
    left = operand(state, frame, first)
    if isinstance(left, View) and left.is_element:
        left = load(state, left, frame.loc(first))
    position = len(state.block)
    right = operand(state, frame, second)
    return kept(state, left, position, frame.loc(first)), right


def operands(state: State, frame: Frame, nodes: Sequence[ast.expr]) -> tuple[Operand, ...]:
    """Return operands, evaluated in order; each keeps its value if evaluating a later one changes what it reads."""
    found: list[Operand] = []
    for node in nodes:
        position = len(state.block)
        starred = isinstance(node, ast.Starred)
        latest = operand(state, frame, node.value if starred else node)
        latest = items_of(state, frame, latest, node) if starred else latest
        found = [kept(state, item, position, frame.loc(node)) for item in found]
        if not starred:
            found.append(latest)
        elif isinstance(latest, Items):
            found += latest.items
        else:
            advice = advice_for(latest, "unpack a tuple")
            raise error("BW101", f"{describe(latest)} cannot be unpacked", frame.loc(node), advice)
    return tuple(found)


def _branch(state: State, frame: Frame, node: ast.expr, *, as_bool: bool = False) -> Branch:
    """Lower an expression into a block of its own."""
    block: list[Statement] = []
    with state.perhaps(block):
        if as_bool:
            return block, Value(condition(state, frame, node))
        found = operand(state, frame, node)
        if isinstance(found, Maybe):
            raise _optional_logic(frame, node)
        return block, scalar(state, found, frame.loc(node))


def _optional_logic(frame: Frame, node: ast.expr) -> CompileError:
    message = f"`{ast.unparse(node)}` may be None, and is what `and` or `or` gives"
    return unsupported(message, frame.loc(node), "write `... if ... is not None else ...`")


def _or_else(state: State, frame: Frame, found: Maybe, node: ast.BoolOp, rest: Sequence[ast.expr]) -> Value:
    """Return `found or rest` of a number that may be None."""
    loc, inner = frame.loc(node), found.inner
    if isinstance(node.op, ast.And) or not isinstance(inner, Value) or not isinstance(found.there, Value):
        raise _optional_logic(frame, node.values[0])
    test = state.fix(apply("logical_and", found.there.expression, truth(inner, loc), loc=loc))
    inner = Value(state.fix(inner.expression), inner.weak)
    other = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(ast.Or(), [*rest]), node)
    return merge(state, test, ([], inner), _branch(state, frame, other), loc)


def _conditional(state: State, frame: Frame, node: ast.IfExp, loc: Location) -> Operand:
    test = condition(state, frame, node.test)
    if isinstance(test, Constant):
        return operand(state, frame, node.body if test.value else node.orelse)
    found: list[tuple[list[Statement], Operand | None]] = []
    for part, holds in ((node.body, True), (node.orelse, False)):
        block: list[Statement] = []
        with state.perhaps(block):
            state.present |= present_if(state, frame, node.test, holds=holds)
            result = operand(state, frame, part)
            if isinstance(result, View) and result.is_element:
                result = load(state, result, frame.loc(part))
        found.append((block, result))
    left, right = found
    if isinstance(left[1], Nothing) or isinstance(right[1], Nothing):
        nothing = left[1] if isinstance(left[1], Nothing) else right[1]
        raise error("BW101", f"a number is needed here, not {describe(nothing)}", loc, advice_for(nothing))
    merged = merge_operands(state, test, left, right, loc)
    return Opaque("None") if merged is None else merged


def _logic(state: State, frame: Frame, node: ast.BoolOp, loc: Location, *, as_bool: bool = False) -> Value:
    """Lower `and` and `or`: the value is that of the operand that decides."""
    is_and = isinstance(node.op, ast.And)
    first, *rest = node.values
    while rest and not is_and and isinstance(first, ast.Name) and isinstance(frame.bindings.get(first.id), Absent):
        first, *rest = rest
    found = None if as_bool else operand(state, frame, first)
    if isinstance(found, Maybe):
        return _or_else(state, frame, found, node, rest)
    result = Value(condition(state, frame, first)) if found is None else scalar(state, found, frame.loc(first))
    before, assigned, position = set(state.present), set(state.assigned), len(state.block)
    for done, item in enumerate(rest):
        if isinstance(result.expression, Constant) and bool(result.expression.value) is not is_and:
            break
        for each in (first, *rest[:done]):
            note_met(state, frame, each, holds=is_and)
        branch = _branch(state, frame, item, as_bool=as_bool)
        if is_speculative(branch) and result.dtype is BOOL and branch[1].dtype is BOOL:
            name = "logical_and" if is_and else "logical_or"
            result = Value(apply(name, result.expression, branch[1].expression, loc=loc))
            continue
        if not state.is_fixed(result.expression):
            result = Value(state.pin(result.expression), result.weak)
        test = truth(result, loc)
        kept: Branch = ([], result)
        result = merge(state, test, branch, kept, loc) if is_and else merge(state, test, kept, branch, loc)
    state.present, state.assigned = state.present & before, assigned
    give_zeros(state, named_if(frame, node, holds=is_and) - assigned, position, loc)
    return result


def _comparison(state: State, frame: Frame, node: ast.Compare, loc: Location) -> Operand:
    """Lower a chain of comparisons; each operand is evaluated at most once."""
    if len(node.ops) == 1:
        return _compare_one(state, frame, node)
    left = operand(state, frame, node.left)
    left = left if may_repeat(left, node) else _fixed(state, left, loc)
    return _chain(state, frame, left, node)


def _chain(state: State, frame: Frame, left: Operand, node: ast.Compare) -> Value:
    """Lower a chain whose first operand is there; the rest of it is a chain, too."""
    operator, right_node, loc = node.ops[0], node.comparators[0], frame.loc(node)
    position = len(state.block)
    right = operand(state, frame, right_node)
    left = kept(state, left, position, loc)
    if len(node.ops) == 1:
        return link(state, frame, node, operator, (left, right))
    right = right if may_repeat(right, *node.comparators[1:]) else _fixed(state, right, loc)
    first = link(state, frame, node, operator, (left, right))
    block: list[Statement] = []
    with state.perhaps(block):
        rest = ast.copy_location(ast.Compare(right_node, node.ops[1:], node.comparators[1:]), node)
        rest = _chain(state, frame, right, rest)
    if is_speculative((block, rest)):
        return Value(apply("logical_and", first.expression, rest.expression, loc=loc))
    return merge(state, first.expression, (block, rest), ([], Value(constant(False, BOOL, loc))), loc)


def _fixed(state: State, item: Operand, loc: Location) -> Operand:
    """Return an operand that is used twice, with the value that it has now; tuples item by item."""
    match item:
        case View() if item.is_element:
            return _fixed(state, load(state, item, loc), loc)
        case Value():
            return Value(state.fix(item.expression), item.weak)
        case _:
            return with_parts(item, lambda one: _fixed(state, one, loc), keep_sites=False)


def _compare_one(state: State, frame: Frame, node: ast.Compare) -> Operand:
    sides, operator = _ordered_operands(state, frame, node.left, node.comparators[0]), node.ops[0]
    if type(operator) in COMPARE and is_of_rows(state, sides):
        return combined(
            state, sides, lambda pair: link(state, frame, node, operator, (pair[0], pair[1])), frame.loc(node)
        )
    return link(state, frame, node, operator, sides)


def call_formula(
    state: State, frame: Frame, formula: types.FunctionType, arguments: tuple[Operand, ...], node: ast.Call
) -> Operand | None:
    """Return the call of a formula that the source does not name as a function."""
    return state.inline(state, state.helpers[formula], Arguments(arguments, {}, node), frame)


def call_folded(state: State, frame: Frame, node: ast.Call, neutral: float) -> Operand | None:
    """Return f(f(a, b), c) for f(a, b, c)."""
    if len(node.args) < 2:
        rest = [ast.copy_location(ast.Constant(value=neutral), node) for _ in range(2 - len(node.args))]
        arguments: list[ast.expr] = [*node.args, *rest]
    else:
        inner = ast.Call(func=node.func, args=node.args[:-1], keywords=[])
        arguments = [ast.copy_location(inner, node.args[-2]), node.args[-1]]
    return call_operand(state, frame, ast.copy_location(ast.Call(node.func, arguments, node.keywords), node))


def call_operand(state: State, frame: Frame, node: ast.Call) -> Operand | None:
    """Return the result of a call; None of a helper that returns nothing."""
    loc = frame.loc(node)
    found = resolve(node.func, frame.source.captured, frame.local)
    if found is MISSING and isinstance(node.func, ast.Attribute):
        refuse_unknown(frame, node.func, loc)
        owner = required(state, operand(state, frame, node.func.value), loc)
        owner = numeric(state, owner, loc) if is_complex_element(owner) and node.func.attr != "item" else owner
        if isinstance(owner, Record):
            return _call_of(state, frame, owner, node.func.attr, node)
        if node.func.attr in CHANGING:
            let_grow(state, owner)
        if isinstance(owner, Grown):
            return _call_grown(state, frame, owner, node.func.attr, node)
        if node.func.attr == "item" and isinstance(owner, Value) and not node.args:
            return owner
        formula = METHODS.get(node.func.attr)
        if formula and (own := called_on(state, owner, node.func.attr, operands(state, frame, node.args), loc)):
            return call_formula(state, frame, formula, own, node)
        if isinstance(owner, View | Row):
            return row_functions.of_row(state, frame, node, owner, operands(state, frame, node.args))
    value_called = _called_value(state, frame, node.func, found)
    if value_called is not None:
        return _call_of(state, frame, value_called, "__call__", node)
    name = intrinsic(found) or ""
    if name == "builtins.isinstance":
        return is_instance(state, frame, node, operand(state, frame, node.args[0]))
    if node.args and isinstance(node.args[0], ast.GeneratorExp) and name in REDUCTIONS:
        return state.reduce(state, frame, node, REDUCTIONS[name])
    if name in FOLDED and len(node.args) != 2 and not any(isinstance(item, ast.Starred) for item in node.args):
        return call_folded(state, frame, node, FOLDED[name])
    arguments, keywords = _given(state, frame, node, named=helper(found) is not None or name == "dataclasses.replace")
    if len(arguments) == 1 and is_rows(arguments[0]) and name in REDUCTIONS:
        return state.reduce(state, frame, over_items(node), REDUCTIONS[name])
    if name == "builtins.pow" and len(arguments) == 3:
        return call_formula(state, frame, POWER_MODULO, arguments, node)
    summed = parts_of(arguments[0]) if name == "builtins.sum" and arguments else ()
    if (is_of_items(name) or is_own(found)) and is_of_rows(state, (*arguments, *keywords.values())):
        return row_functions.of_rows(state, frame, found, Arguments(arguments, keywords, node))
    arguments = tuple(numeric(state, item, loc) if name and is_complex_element(item) else item for item in arguments)
    complex_function = of_complex(name, arguments)
    if complex_function is not None:
        return call_formula(state, frame, complex_function, arguments, node)
    inlined = helper(found) is not None and any(map(is_complex, arguments))
    if name and not inlined and any(isinstance(item, Record) for item in (*arguments, *summed)):
        return call_on_values(state, frame, name, Arguments(arguments, keywords, node))
    if name == "builtins.len" and len(arguments) == 1 and isinstance(arguments[0], Grown):
        return Value(length(state, arguments[0], loc), weak=True)
    if helper(found) is None:
        if not name:
            raise not_a_function(state, frame, node.func, loc)
        if node.keywords:
            raise error("BW004", f"`{name}` takes no keywords here", loc, "pass the arguments by position")
        return call(state, name, arguments, (*frame.path, place(node)), loc)
    source = state.helpers[found] if (found := helper(found)) is not None else frame.source
    if source in state.calls:
        raise error("BW004", f"`{source.name}` calls itself", loc, "write a loop instead of the recursion")
    return row_functions.call_on_rows(state, frame, found, source, Arguments(arguments, keywords, node))


def _call_grown(state: State, frame: Frame, owner: Grown, name: str, node: ast.Call) -> Operand | None:
    """Return the call of a method of a list that grows."""
    if name in {"sort", "remove", "index"}:
        return state.call_comparing(state, frame, owner, name, node)
    if name != "extend" or len(node.args) != 1:
        return call_grown(state, owner, name, operands(state, frame, node.args), node, frame.loc(node))
    state.extend(state, frame, owner, node.args[0])
    return None


def _given(
    state: State, frame: Frame, node: ast.Call, *, named: bool
) -> tuple[tuple[Operand, ...], dict[str, Operand]]:
    """Return the arguments of a call, evaluated in order."""
    keywords = [item for item in node.keywords if item.arg is not None] if named else []
    found = operands(state, frame, [*node.args, *(item.value for item in keywords)])
    positional, last = found[: len(found) - len(keywords)], found[len(found) - len(keywords) :]
    if not any(isinstance(item, ast.Starred) for item in node.args):
        positional = tuple(map(partial(as_given, frame), node.args, positional))
    pairs = zip(keywords, last, strict=True)
    return positional, {item.arg or "": as_given(frame, item.value, value) for item, value in pairs}


def _called_value(state: State, frame: Frame, node: ast.expr, found: object) -> Record | type | None:
    """Return what is called, where it is a class of values with parts or such a value."""
    if found is Complex or found is complex:
        return Complex
    if isinstance(found, type) and state.values.has(found):
        return found
    if state.values.holds(found):
        return as_record(captured_operand(found, ast.unparse(node), frame.loc(node)))
    if isinstance(node, ast.Name) and node.id in frame.local:
        return as_record(state.lookup(frame, node.id, frame.loc(node)))
    if isinstance(node, ast.Call) and resolve(node.func, frame.source.captured, frame.local) is type:
        made = as_record(operand(state, frame, node.args[0])) if len(node.args) == 1 else None
        return None if made is None else made.kind
    return None


def _call_of(state: State, frame: Frame, called: Record | type, name: str, node: ast.Call) -> Operand | None:
    """Return the call of a class, or of a method of a value with parts."""
    position, loc = len(state.block), frame.loc(node)
    positional, keywords = _given(state, frame, node, named=True)
    if isinstance(called, type):
        return construct(state, frame, called, node, positional, keywords)
    owner = as_record(kept(state, called, position, loc)) or called
    return call_method(state, frame, owner, name, Arguments(positional, keywords, node))
