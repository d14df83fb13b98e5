"""`lower`: a definition and the types of its arguments to IR.

The body is lowered again and again until the types of its variables no longer grow; the last pass is the result.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from brickwork.diagnostics.diagnostic import in_order
from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.complex_sources import Helpers
from brickwork.frontend.complex_values import as_complex
from brickwork.frontend.copied_rows import refuse_stale_copies
from brickwork.frontend.definition import Definition
from brickwork.frontend.environment import is_tensor
from brickwork.frontend.evaluation_order import keep_stale, refuse_shared
from brickwork.frontend.fixed_rates import with_rates
from brickwork.frontend.given_numbers import given_names, taken_out
from brickwork.frontend.grown_forms import call_comparing, extend
from brickwork.frontend.host import Host, is_host_expression, lower_host, scratch
from brickwork.frontend.inlining import inline
from brickwork.frontend.kept_lists import tensor_of_items
from brickwork.frontend.list_rooms import allocate_grown
from brickwork.frontend.list_slices import join_lists, slice_list
from brickwork.frontend.lists import make_list
from brickwork.frontend.lowering_state import (
    Frame,
    Known,
    ListDemanded,
    State,
    Together,
    ValueDemanded,
    Variable,
    several_names,
)
from brickwork.frontend.name_binding import assign_name, bound_together
from brickwork.frontend.optional_numbers import as_maybe
from brickwork.frontend.parameters import ParameterDeclaration, argument_type
from brickwork.frontend.random_sites import draw_sites
from brickwork.frontend.reductions import reduce
from brickwork.frontend.regular_loops import changing_names
from brickwork.frontend.rules import WrongRankError, error
from brickwork.frontend.source import rebound_names
from brickwork.frontend.statements import assign_target
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.tensor_rebinding import Draft, give_places
from brickwork.frontend.typing import Absent, Items, Opaque, Operand, Value, View
from brickwork.frontend.wanted_ranks import refuse_unpacked, wrong_ranks
from brickwork.ir.build import read
from brickwork.ir.dtypes import BOOL, INT64, DType
from brickwork.ir.nodes import (
    AbsentParameter,
    Allocate,
    Block,
    Check,
    Kernel,
    KeyParameter,
    Launch,
    ListParameter,
    Parameter,
    Program,
    Return,
    ScalarParameter,
    Statement,
    Store,
    Symbol,
    TensorListParameter,
    TensorParameter,
    TensorType,
    TextParameter,
)
from brickwork.ir.signature import AbsentType, ArgumentType, ListType, ScalarType, Signature, TensorListType, TextType
from brickwork.ir.walk import assigned_symbols, free_symbols, free_tensors, is_about, read_symbols, walk

PASSES = 64
"""More than any chain of widenings is long."""
PYTHON_ERRORS = (IndexError, RuntimeError, TypeError, ValueError)
"""What Python raises where a function is run with tensors of wrong ranks."""


def lower(definition: Definition, signature: Signature) -> Program:
    """Return the program of an operator for arguments of these types; tell a caller whose tensors have wrong ranks."""
    if definition.written is not None:
        return definition.written.lower(signature)
    try:
        return with_rates(_lowered(definition, signature), definition.rates, signature)
    except CompileError as error:
        wrong = None
        if type(error) is CompileError and definition.host == "native":
            wrong = wrong_ranks(definition, signature, partial(_lowered, definition))
        if wrong is None:
            raise
    raise wrong


def refuse_wrong_ranks(definition: Definition, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise a WrongRankError where arguments, which may be fake, have ranks with which the function is not lowered.

    Asked once Python has raised an error of its own.
    """
    given = dict(zip((item.name for item in definition.parameters), arguments, strict=False)) | dict(named)
    values = [given.get(item.name, item.default) for item in definition.parameters]
    if definition.host == "python":
        pairs = zip(definition.parameters, values, strict=True)
        refuse_unpacked(definition, {item.name: value.dim() for item, value in pairs if is_tensor(value)})
        return
    try:
        lower(definition, Signature(tuple(map(argument_type, definition.parameters, values))))
    except WrongRankError:
        raise
    except Exception:  # noqa: BLE001  # what Python raised is told instead
        return


def _lowered(definition: Definition, signature: Signature) -> Program:
    if definition.host == "python":
        message = f"the host part of `{definition.name}` is not compiled: {definition.reason}"
        raise error("BW901", message, definition.loc, "move torch calls and slices out of the operator")
    known = Known()
    for _ in range(PASSES):
        try:
            program, changed = _lower_once(definition, signature, known)
        except (ListDemanded, ValueDemanded):
            continue
        if not changed:
            _refuse_hidden_stores(definition, program)
            return program
    raise error("BW101", "the types of the variables do not settle", definition.loc, "give each a type of its own")


def _refuse_hidden_stores(definition: Definition, program: Program) -> None:
    """Refuse to store into an argument by way of a value with parts: the schema does not say that it is written."""
    if not definition.values.kinds:
        return
    tensors = [item for item in program.parameters if isinstance(item, TensorParameter | TensorListParameter)]
    given = {
        tensor
        for item in tensors
        for tensor in (item.tensors if isinstance(item, TensorListParameter) else (item.tensor,))
        if not item.mutated
    }
    for node in walk(program):
        if isinstance(node, Store) and node.tensor in given:
            message = f"`{node.tensor.name}` is stored into by way of an object that holds it"
            advice = f"pass `{node.tensor.name}` itself to what stores into it"
            raise error("BW002", message, node.loc or definition.loc, advice)


def _lower_once(definition: Definition, signature: Signature, known: Known) -> tuple[Program, bool]:
    """Return the program, and whether the type of a variable has grown meanwhile: then it has to be lowered again."""
    key = Symbol("key", 0, INT64)
    state = _begin(definition, signature, known, key)
    source = definition.source
    frame = Frame(
        source,
        source.local,
        {},
        aliases=_aliases(definition),
        rebound=rebound_names(source.node),
        several=several_names(source.node),
        changing=changing_names(source, definition.split.device),
        given=given_names(source, definition.split.lifted),
    )
    parameters = _parameters(state, frame, definition, signature)
    state.parameters.add(key)
    state.invariant |= state.parameters
    host = Host(definition, signature, state.block)
    state.frames.append(frame)
    state.kernel = host.kernel
    state.allocate, state.is_host = partial(scratch, state, host), partial(is_host_expression, state, host)
    _give_variables(state, frame, host)
    lower_host(state, frame, host, source.node.body)
    if state.wrong:
        raise CompileError(in_order(state.wrong))
    keep_stale(state)
    refuse_shared(state)
    refuse_stale_copies(state, host.kernel)
    host.block += allocate_grown(state, host.facts)
    if len(host.results) != definition.results:
        raise error("BW009", "not every path returns", definition.loc, "end the function with one `return`")
    give_places(state, Draft(host.block, host.kernel, host.facts, host.results), definition.loc)
    host.kernel, tests = taken_out(host.kernel)
    host.block += tests
    if definition.draws_random:
        parameters.append(KeyParameter(key))
    return _program(host, parameters), state.changed


def _begin(definition: Definition, signature: Signature, known: Known, key: Symbol) -> State:
    """Return the state in which a pass begins, with what the passes before found out of types and lists."""
    return State(
        random_key=key,
        draws_random=definition.draws_random,
        helpers=Helpers(definition.helpers),
        values=definition.values,
        inline=inline,
        assign_target=assign_target,
        reduce=partial(reduce, assign=assign_target),
        make_list=partial(make_list, assign=assign_target),
        extend=partial(extend, assign=assign_target),
        slice_list=slice_list,
        join_lists=join_lists,
        call_comparing=call_comparing,
        tensor_of_items=tensor_of_items,
        types=known.types,
        arrays=known.arrays,
        tuples=known.tuples,
        kept=known.kept,
        growth=known.growth,
        maybe=known.maybe,
        complex=known.complex,
        rows=known.rows,
        may_alias=signature.may_alias,
        reduced=any(map(_is_reduced, signature.arguments)),
        in_place=signature.device == "cpu",
        default_dtype=signature.default_dtype,
        sites=draw_sites(definition.whole or definition.source, definition.helpers),
    )


def _is_reduced(argument: ArgumentType) -> bool:
    items = argument.items if isinstance(argument, TensorListType) else (argument,)
    return any(isinstance(item, TensorType) and item.element.bits == 16 and item.element.is_float for item in items)


def _program(host: Host, parameters: Sequence[Parameter]) -> Program:
    """Return the program of a body that is lowered: the host part, the launch of the kernel, the results."""
    definition, signature = host.definition, host.signature
    body = [*host.block]
    if host.kernel:
        body.append(Launch(kernel=_kernel(host), loc=definition.loc))
    body.append(Return(tensors=tuple(host.results), loc=definition.loc))
    return Program(
        name=definition.name,
        parameters=tuple(parameters),
        body=tuple(body),
        device=signature.device,
        narrow=signature.narrow,
        aligned=signature.aligned,
        may_alias=signature.may_alias,
        loc=definition.loc,
    )


def _aliases(definition: Definition) -> frozenset[str]:
    """Return the names that only straight-line host statements assign."""
    straight: set[str] = set()
    other: set[str] = set()
    waiting = [*definition.source.node.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.For) and id(node) not in definition.split.lifted:
            waiting += node.body  # The host runs no loops: this one is written out, item by item.
            continue
        names = {item.id for item in all_nodes(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
        plain = isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        (straight if plain and id(node) not in definition.split.lifted else other).update(names)
    return frozenset(straight - other)


# ---------------------------------------------------------------- parameters


def _parameters(state: State, frame: Frame, definition: Definition, signature: Signature) -> list[Parameter]:
    if len(signature.arguments) != len(definition.parameters):
        message = f"`{definition.name}` takes {len(definition.parameters)} arguments, not {len(signature.arguments)}"
        raise error("BW301", message, definition.loc, "pass one argument for each parameter")
    result: list[Parameter] = []
    for declaration, argument in zip(definition.parameters, signature.arguments, strict=True):
        parameter, bound = _parameter(state, declaration, argument, definition)
        result.append(parameter)
        frame.bindings[declaration.name] = bound
    return result


def _give_variables(state: State, frame: Frame, host: Host) -> None:
    """Give a scalar argument that the body assigns a variable of its own."""
    for declaration in host.definition.parameters:
        name, bound = declaration.name, frame.bindings[declaration.name]
        form = state.maybe.get((frame.path, name))
        if form is not None and not isinstance(bound, Variable | Together):
            with state.into(host.kernel):
                found = as_maybe(bound, form, declaration.loc)
                frame.bindings[name] = bound_together(state, frame, name, found, declaration.loc)
            continue
        if (frame.path, name) in state.complex and not isinstance(bound, Variable | Together):
            with state.into(host.kernel):
                found = as_complex(bound, declaration.loc)
                frame.bindings[name] = bound_together(state, frame, name, found, declaration.loc)
            continue
        if (frame.path, name) in state.rows and isinstance(bound, View):
            assign_name(state, frame, name, bound, declaration.loc)
            continue
        if isinstance(bound, Value) and name in frame.rebound and name not in frame.aliases:
            with state.into(host.kernel if name in host.definition.split.device else state.block):
                state.assign((frame.path, name), bound, declaration.loc)
            frame.bindings[name] = Variable((frame.path, name))


def _parameter(
    state: State, declaration: ParameterDeclaration, argument: ArgumentType, definition: Definition
) -> tuple[Parameter, Operand]:
    name, mutated, optional = declaration.name, declaration.name in definition.mutated, declaration.optional
    match argument:
        case TensorType() if declaration.kind == "tensor":
            tensor = state.tensor(name, argument)
            state.constant |= set() if mutated else {tensor}
            return TensorParameter(tensor, mutated, optional), View(tensor)
        case ScalarType() if declaration.kind in {"int", "float", "bool"}:
            symbol = _argument(state, name, argument.dtype)
            weak = argument.dtype is not BOOL
            return ScalarParameter(symbol, optional), Value(read(symbol, declaration.loc), weak=weak)
        case AbsentType() if optional:
            return AbsentParameter(name), Absent(name)
        case TextType(value=value) if declaration.kind == "str":
            return TextParameter(name, value), Opaque("a text", value)
        case TensorListType() if declaration.kind == "list[tensor]":
            tensors = tuple(state.tensor(f"{name}[{place}]", item) for place, item in enumerate(argument.items))
            return TensorListParameter(name, tensors, mutated), Items(tuple(map(View, tensors)))
        case ListType() if declaration.kind.startswith("list") and declaration.kind != "list[tensor]":
            symbols = tuple(
                _argument(state, f"{declaration.name}[{place}]", argument.dtype) for place in range(argument.length)
            )
            items = tuple(Value(read(symbol, declaration.loc), weak=argument.dtype is not BOOL) for symbol in symbols)
            return ListParameter(declaration.name, symbols), Items(items)
        case _:
            raise error(
                "BW301", f"`{declaration.name}` is declared as {declaration.kind}", declaration.loc, "pass that"
            )


def _argument(state: State, name: str, dtype: DType) -> Symbol:
    symbol = state.symbol(name, dtype)
    state.parameters.add(symbol)
    return symbol


# ---------------------------------------------------------------- the kernel


def _kernel(host: Host) -> Kernel:
    """Return the lifted statements with what they use, in order of first use."""
    body: Block = tuple(host.kernel)
    tensors, scalars = free_tensors(body), free_symbols(body)
    changing = _changing(host.block)
    facts = tuple(fact for fact in host.facts if is_about(fact, tensors, scalars) and not read_symbols(fact) & changing)
    definition = host.definition
    return Kernel(
        name=definition.name,
        tensors=tensors,
        scalars=scalars,
        facts=facts,
        body=body,
        may_alias=host.signature.may_alias,
        loc=definition.loc,
    )


def _changing(block: Sequence[Statement]) -> frozenset[Symbol]:
    """Return the host's variables that are set after something has been found out of them.

    What was true of a size then may not be when the kernel runs.
    """
    known: set[Symbol] = set()
    changing: set[Symbol] = set()
    for statement in block:
        changing |= known & assigned_symbols(statement)
        if isinstance(statement, Allocate | Check):
            known |= read_symbols(statement)
    return frozenset(changing)
