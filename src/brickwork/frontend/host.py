"""The host part to IR: allocations, scalars that kernels see as expressions, asserts, and the results.

Lifted statements met on the way are written into the kernel, which runs once everything of the host part has run:
nothing in a native host part depends on elements.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field
from functools import partial

from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location
from brickwork.frontend.asserts import lower_guard
from brickwork.frontend.definition import Definition
from brickwork.frontend.element_stores import store
from brickwork.frontend.environment import ALLOCATIONS, MISSING, NEW_METHODS, intrinsic, resolve
from brickwork.frontend.expressions import condition, operand, operands
from brickwork.frontend.given_numbers import refuse_overflow
from brickwork.frontend.indexing import list_name, numeric, scalar, shape
from brickwork.frontend.iterables import is_listed, item, trips
from brickwork.frontend.lift import ALLOCATION_KEYWORDS, stored_names
from brickwork.frontend.loops import bind_target, head_of
from brickwork.frontend.lowering_state import Frame, LoopLevel, State, Variable, describe
from brickwork.frontend.raised import only_raise
from brickwork.frontend.results import miscounted_results, repeated_result
from brickwork.frontend.rows import slab_of, store_row
from brickwork.frontend.rules import certain_failure, error, other_device
from brickwork.frontend.statements import assign_target, lower_statement
from brickwork.frontend.typing import ElementType, Items, Opaque, Operand, Record, Row, Value, View, numbers_of
from brickwork.ir.build import apply, cast, integer, is_constant, read
from brickwork.ir.dtypes import COMPLEX, COMPLEX64, INT64, PARTS, DType, value_dtype
from brickwork.ir.effects import effects
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Assign,
    Check,
    Constant,
    Expression,
    FailureKind,
    Size,
    Statement,
    Tensor,
    TensorType,
)
from brickwork.ir.signature import Signature
from brickwork.ir.tensor_types import type_of
from brickwork.records import dataclass


@dataclass(slots=True)
class Host:
    """The program under construction: its kernel's statements, what is known of sizes, and the results."""

    definition: Definition
    signature: Signature
    block: list[Statement]
    kernel: list[Statement] = field(default_factory=list[Statement])
    facts: list[Expression] = field(default_factory=list[Expression])
    results: list[Tensor] = field(default_factory=list[Tensor])
    returned: bool = False


def lower_host(state: State, frame: Frame, host: Host, statements: Sequence[ast.stmt]) -> None:
    """Lower top-level statements in order, up to a `return`."""
    for node in statements:
        if host.returned:
            return
        if id(node) in host.definition.split.lifted:
            with state.into(host.kernel):
                state.lowering(frame, node, partial(lower_statement, state, frame, node))
            continue
        state.lowering(frame, node, partial(_host_statement, state, frame, host, node))


def _host_statement(state: State, frame: Frame, host: Host, node: ast.stmt) -> None:
    loc = frame.loc(node)
    _keep_for_kernel(state, frame, host, node)
    match node:
        case ast.Return():
            _return(state, frame, host, node)
        case ast.If() if (raised := only_raise(node.body)) is not None:
            before = len(state.block)
            goes_on = lower_guard(state, frame, node, raised)
            _note_facts(state, host, before, frame.loc(raised))
            lower_host(state, frame, host, node.orelse if goes_on else ())
        case ast.If():
            _if(state, frame, host, node, loc)
        case ast.For():
            _for(state, frame, host, node)
        case ast.Assert() | ast.Raise():
            before = len(state.block)
            lower_statement(state, frame, node)
            _note_facts(state, host, before, loc)
        case ast.Assign() if _makes(frame, node):
            found = _made(state, frame, host, node.targets[0], node.value)
            for target in node.targets:
                assign_target(state, frame, target, found, loc)
        case ast.AnnAssign(value=ast.expr() as source) if _makes(frame, node):
            assign_target(state, frame, node.target, _made(state, frame, host, node.target, source), loc)
        case _:
            lower_statement(state, frame, node)


def _note_facts(state: State, host: Host, before: int, loc: Location) -> None:
    """Note what holds in the kernel since checks of a place have passed."""
    for check in state.block[before:]:
        if isinstance(check, Check) and check.loc == loc:
            _refuse_certain_failure(check)
            host.facts.append(check.condition)


def _keep_for_kernel(state: State, frame: Frame, host: Host, node: ast.stmt) -> None:
    """Give variables that a host statement assigns a new symbol: the kernel, which runs later, may read the old one."""
    if not host.kernel or isinstance(node, ast.For):
        return
    for name in dict.fromkeys(stored_names(node)):
        binding = frame.bindings.get(name)
        if isinstance(binding, Variable) and binding.key in state.assigned:
            before = state.variable(binding.key)
            after = state.symbols[binding.key] = state.symbol(name, before.dtype)
            state.emit(Assign(symbol=after, value=read(before), loc=frame.loc(node)))


def _for(state: State, frame: Frame, host: Host, node: ast.For) -> None:
    """Lower a `for` over items, such as a list of tensors, with what the host does for each."""
    axes, loc = head_of(state, frame, node.iter).axes, frame.loc(node)
    count = trips(axes[0], loc)
    if len(axes) != 1 or not is_listed(axes[0]) or not isinstance(count, Constant):
        lower_statement(state, frame, node)
        return
    for turn in range(int(count.value)):
        state.loops.append(LoopLevel(integer(turn, loc), count, frame.is_regular(node.iter), {}, frame.path))
        bind_target(state, frame, node.target, item(state, axes[0], integer(turn, loc), loc), assign_target)
        lower_host(state, frame, host, node.body)
        state.loops.pop()


def _refuse_certain_failure(check: Check) -> None:
    """Refuse arguments of types for which an assert cannot hold, in the words of its message."""
    if isinstance(check.condition, Constant):
        values = [item.value if isinstance(item, Constant) else "?" for item in check.values]
        text = check.failure.message if "?" in values else check.failure.message.format(*values)
        raise certain_failure(check.failure.kind)(Diagnostic(code="BW301", message=text, loc=check.loc))


def _made(state: State, frame: Frame, host: Host, target: ast.expr, source: ast.expr) -> Operand:
    """Lower the right side of an assignment in which tensors are made."""
    if isinstance(source, ast.Call) and _allocation_name(frame, source) is not None:
        name = target.id if isinstance(target, ast.Name) else "tensor"
        return _allocate(state, frame, host, source, target=name, position=_result_position(host, name))
    if isinstance(source, ast.Tuple) and isinstance(target, ast.Tuple) and len(source.elts) == len(target.elts):
        pairs = zip(target.elts, source.elts, strict=True)
        return Items(tuple(_made(state, frame, host, part, item) for part, item in pairs))
    return operand(state, frame, source)


def _if(state: State, frame: Frame, host: Host, node: ast.If, loc: Location) -> None:
    inner = [item for item in ast.walk(node) if isinstance(item, ast.stmt)]
    makes = any(isinstance(item, ast.Return) or _makes(frame, item) for item in inner)
    if not makes and not any(id(item) in host.definition.split.lifted for item in inner):
        lower_statement(state, frame, node)
        return
    test = condition(state, frame, node.test)
    if not isinstance(test, Constant):
        message = "an `if` over values of the call decides what is allocated or returned"
        raise error("BW901", message, loc, "decide by ndim or dtype, or move the `if` into the loops")
    lower_host(state, frame, host, node.body if test.value else node.orelse)


def _makes(frame: Frame, node: ast.stmt) -> bool:
    """Return whether a statement assigns a tensor that it makes."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    return any(isinstance(part, ast.Call) and _allocation_name(frame, part) is not None for part in parts)


# ---------------------------------------------------------------- allocation


def _allocation_name(frame: Frame, node: ast.Call) -> str | None:
    """Return `empty`, `zeros_like`, `new_full`, ... of a call that makes a tensor."""
    found = resolve(node.func, frame.source.captured, frame.local)
    name = intrinsic(found)
    if name in ALLOCATIONS:
        return name.removeprefix("torch.")
    if found is MISSING and isinstance(node.func, ast.Attribute) and node.func.attr in NEW_METHODS:
        return node.func.attr
    return None


def _allocate(state: State, frame: Frame, host: Host, node: ast.Call, *, target: str, position: int | None) -> View:
    name, loc = _allocation_name(frame, node) or "", frame.loc(node)
    keywords = {item.arg: operand(state, frame, item.value) for item in node.keywords if item.arg is not None}
    arguments = [*operands(state, frame, node.args)]
    for keyword in keywords:
        if keyword not in ALLOCATION_KEYWORDS:
            raise error("BW004", f"`{name}` takes no `{keyword}` in an operator", loc, "leave it out")
    _refuse_other_device(host, keywords.get("device"), loc)
    like: View | None = None
    part = arguments[0] if name.endswith("_like") and arguments and isinstance(arguments[0], Row) else None
    if part is not None:
        like = View(part.reads[0].tensor)
        arguments.pop(0)
    elif name.endswith("_like") and arguments:
        like = _tensor(arguments.pop(0), loc)
    elif name.startswith("new_") and isinstance(node.func, ast.Attribute):
        like = _tensor(operand(state, frame, node.func.value), loc)
    kind = name.removeprefix("new_").removesuffix("_like")
    fill = _fill(state, kind, arguments, keywords, loc)
    sizes: Sequence[Operand]
    if part is not None:
        sizes = [Value(size) for size in part.sizes]
    elif name.endswith("_like") and like is not None:
        sizes = shape(like, loc).items
    else:
        sizes = _sizes(arguments, keywords)
    lengths = tuple(_size(state, item, loc) for item in sizes)
    element = _element_type(host, keywords.get("dtype"), like, fill if kind == "full" else None, loc=loc)
    if fill is not None and element not in PARTS:
        fill = scalar(state, fill, loc)
    if kind == "full" and isinstance(fill, Value) and element not in PARTS:
        refuse_overflow(state, fill, element, loc)
    same_layout = like if name.endswith("_like") and part is None else None
    layout = _layout(element, len(lengths), same_layout)
    expressions = _with_parts(layout, lengths)
    tensor = _new_tensor(state, host, target, layout, position, loc=loc)
    given = position is not None and bool(host.signature.out)
    is_whole = isinstance(fill, Value) and (element not in PARTS or is_constant(fill.expression, 0))
    filled = cast(fill.expression, value_dtype(layout.dtype), loc) if isinstance(fill, Value) and is_whole else None
    state.emit(
        Allocate(
            tensor=tensor,
            sizes=expressions,
            fill=filled,
            like=same_layout.tensor if same_layout is not None and not same_layout.indices and not given else None,
            given=given,
            loc=loc,
        )
    )
    host.facts.extend(
        apply("eq", Size(tensor=tensor, axis=axis, loc=loc), size, loc=loc) for axis, size in enumerate(lengths)
    )
    state.made.add(tensor)
    if fill is not None and filled is None:
        with state.into(host.kernel):
            store_row(state, slab_of(state, View(tensor), (), loc), fill, store, loc)
    return View(tensor)


def _with_parts(kind: TensorType, sizes: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Return the sizes of a tensor's real view where its elements are complex."""
    return (*sizes, integer(2)) if kind.pairs else sizes


def _refuse_other_device(host: Host, found: Operand | None, loc: Location) -> None:
    """Refuse a device that is named and is not the arguments'."""
    if isinstance(found, Opaque) and found.text and found.text != host.signature.device:
        raise other_device(found.text, host.signature.device, loc)


def _tensor(found: Operand, loc: Location) -> View:
    if not isinstance(found, View):
        raise error("BW101", f"a tensor is needed here, not {describe(found)}", loc, "pass a tensor")
    return found


def _fill(
    state: State, kind: str, arguments: list[Operand], keywords: dict[str, Operand], loc: Location
) -> Value | Record | None:
    if kind in {"zeros", "ones"}:
        return Value(integer(int(kind == "ones"), loc), weak=True)
    if kind != "full":
        return None
    found = keywords.get("fill_value") or (arguments.pop() if arguments else None)
    return numeric(state, found, loc)


def _sizes(arguments: Sequence[Operand], keywords: dict[str, Operand]) -> Sequence[Operand]:
    if "size" in keywords:
        arguments = [keywords["size"]]
    if len(arguments) == 1 and isinstance(arguments[0], Items):
        return arguments[0].items
    return arguments


def _size(state: State, found: Operand, loc: Location) -> Expression:
    number = scalar(state, found, loc)
    if not number.dtype.is_integer:
        raise error("BW101", f"a size is an integer, not {number.type}", loc, "write int(...) around it")
    size = cast(number.expression, INT64, loc)
    if not isinstance(size, Size):
        natural = apply("ge", size, integer(0, loc), loc=loc)
        # torch's exception and its words.
        state.check(natural, FailureKind.RUNTIME, "Trying to create tensor with negative dimension {0}", (size,), loc)
    return size


def _element_type(
    host: Host, dtype: Operand | None, like: View | None, fill: Value | Record | None, *, loc: Location
) -> DType:
    if isinstance(dtype, ElementType):
        return dtype.dtype
    if dtype is not None:
        raise error("BW101", "a dtype is needed here", loc, "write `dtype=x.dtype` or `dtype=torch.float32`")
    if like is not None:
        return like.tensor.type.element
    return host.signature.default_dtype if fill is None else _stored_type(host, fill)


def _stored_type(host: Host, value: Value | Record) -> DType:
    """Return the dtype of a tensor made of a number: a Python float has torch's default dtype."""
    if isinstance(value, Record):
        part = next(numbers_of(value))
        return COMPLEX.get(_stored_type(host, part), COMPLEX64)
    return host.signature.default_dtype if value.weak and value.dtype.is_float else value.dtype


def _new_tensor(
    state: State, host: Host, name: str, kind: TensorType, position: int | None, *, loc: Location
) -> Tensor:
    """Return the tensor for an allocation; that of a result takes the type of the caller's tensor, if there is one."""
    if position is None or not host.signature.out:
        return state.tensor(name, kind)
    given = host.signature.out[position]
    if given.element != kind.element or given.axes != kind.axes:
        message = f"`out` has {given.axes} dimensions of {given.element}, the result {kind.axes} of {kind.element}"
        raise error("BW301", message, loc, "pass a tensor of the result's dtype and rank")
    return state.tensor(name, given)


def _layout(dtype: DType, rank: int, like: View | None) -> TensorType:
    dense = like is None or like.tensor.type.contiguous
    return type_of(dtype, rank, dense=dense)


def _result_position(host: Host, name: str) -> int | None:
    """Return which result the tensor called `name` is."""
    for node in ast.walk(host.definition.source.node):
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
            names = [part.id if isinstance(part, ast.Name) else None for part in parts]
            if name in names:
                return names.index(name)
    return None


# ---------------------------------------------------------------- lists


def is_host_expression(state: State, host: Host, expression: Expression) -> bool:
    """Return whether the host part knows an expression before the kernel runs."""
    assigned = [node.symbol for node in host.block if isinstance(node, Assign)]
    known = state.parameters | {symbol for symbol in assigned if assigned.count(symbol) == 1}
    return effects(expression).made_of(known)


def scratch(
    state: State, host: Host, name: str, kind: TensorType, sizes: tuple[Expression, ...], loc: Location
) -> Tensor:
    """Allocate memory for a list; the sizes are not negative."""
    tensor = state.tensor(name, kind)
    host.block.append(Allocate(tensor=tensor, sizes=sizes, loc=loc))
    for axis, size in enumerate(sizes):
        extent = Size(tensor=tensor, axis=axis, loc=loc)
        host.facts.append(apply("eq", extent, size, loc=loc))
        if isinstance(size, Apply) and size.operator.name == "maximum":
            host.facts.append(apply("ge", extent, size.operands[0], loc=loc))
    return tensor


# ---------------------------------------------------------------- results


def _return(state: State, frame: Frame, host: Host, node: ast.Return) -> None:
    host.returned = True
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return
    parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
    for part in parts:
        _add_result(state, frame, host, part)
    if len(host.results) != host.definition.results:
        raise miscounted_results(frame.source, node, len(host.results))


def _add_result(state: State, frame: Frame, host: Host, node: ast.expr) -> None:
    """Lower an expression that is returned, and its items if it is a tuple of numbers."""
    loc = frame.loc(node)
    if isinstance(node, ast.Call) and _allocation_name(frame, node) is not None:
        made = _allocate(state, frame, host, node, target="result", position=len(host.results))
        host.results.append(made.tensor)
        return
    with state.into(host.kernel):
        found = operand(state, frame, node)
        for item in found.items if isinstance(found, Items) else (found,):
            if isinstance(item, View) and not item.is_element:
                tensor = _returned_tensor(state, host, item, loc)
                if tensor in host.results:
                    raise repeated_result(frame.source, node)
                host.results.append(tensor)
                continue
            result = numeric(state, item, loc)
            cell = _cell(state, host, node, result, loc)
            store(state, View(cell), result, loc)
            host.results.append(cell)


def _returned_tensor(state: State, host: Host, found: View, loc: Location) -> Tensor:
    if found.tensor in state.lists:
        advice = "store its items into a tensor, and return that"
        raise error("BW009", f"{list_name(found)} is a list, and operators return tensors", loc, advice)
    made = {item.tensor for item in host.block if isinstance(item, Allocate)} | {item[0] for item in state.pending}
    allocated = found.tensor in made
    if found.indices or not allocated:
        message = f"`{found.tensor.name}` is an argument, or a view, and cannot be returned"
        raise error("BW009", message, loc, "return a tensor that the function allocates")
    return found.tensor


def _cell(state: State, host: Host, node: ast.expr, result: Value | Record, loc: Location) -> Tensor:
    """Make a tensor of rank 0 for a scalar that a loop computes: a Python float is a float64, as in Python."""
    if not host.kernel:
        raise error("BW009", "an operator returns tensors, not Python numbers", loc, "return a tensor")
    name = node.id if isinstance(node, ast.Name) else "result"
    kind = type_of(_stored_type(host, result), 0, dense=True)
    tensor = _new_tensor(state, host, name, kind, len(host.results), loc=loc)
    sizes = _with_parts(kind, ())
    host.block.append(Allocate(tensor=tensor, sizes=sizes, given=bool(host.signature.out), loc=loc))
    return tensor
