"""Reverse mode: the program that computes the gradients of a program's arguments.

    extremes            the iteration that has the least or greatest value is found beforehand (`extremes.py`)
    passed values       what a loop leaves in a tensor for another is computed again (`passed_values.py`)
    branches            what is computed on one condition alone is computed in a branch (`branches.py`)
    replay              the kernel on scratch tensors, if something below needs what it leaves in them (`replay.py`)
    copies              adjoints begin as the gradients that are given
    F(body), R(body)    the kernel's variables computed anew, and adjoints back to the arguments (`sweep.py`)
    rounding            of gradients that were summed in a wider type
    fewer tapes         where one expression alone reads several (`join_tapes.py`)
    gather form         of the loops that add to elements of adjoints (`gather.py`)

All of it is one kernel, without what no gradient depends on. Arguments are read and never written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress

from brickwork.analysis.scalars import NONE
from brickwork.analysis.verdicts import Analysis, LoopVerdict
from brickwork.diagnostics.diagnostic import Diagnostic, in_order
from brickwork.diagnostics.errors import CompileError
from brickwork.ir import build
from brickwork.ir.nodes import (
    Allocate,
    Apply,
    Block,
    Check,
    Expression,
    Failure,
    FailureKind,
    For,
    Kernel,
    KeyParameter,
    Launch,
    Load,
    Node,
    Parameter,
    Program,
    Rebind,
    Return,
    Size,
    Statement,
    Store,
    Symbol,
    Tensor,
    TensorListParameter,
    TensorParameter,
    TensorType,
    parameter_tensors,
)
from brickwork.ir.signature import Signature
from brickwork.ir.walk import NodeType, rewrite, walk
from brickwork.legality import legality
from brickwork.transform.autodiff.activity import Activity, activity
from brickwork.transform.autodiff.adjoints import adjoints
from brickwork.transform.autodiff.branches import branched
from brickwork.transform.autodiff.cancel_factors import cancel_factors
from brickwork.transform.autodiff.element_extremes import Chosen, choose_element_extremes
from brickwork.transform.autodiff.extremes import choose_extremes, extremes_apart
from brickwork.transform.autodiff.gather import gather, untouched
from brickwork.transform.autodiff.join_tapes import join_tapes
from brickwork.transform.autodiff.kept_steps import keep_steps
from brickwork.transform.autodiff.locations import with_locations
from brickwork.transform.autodiff.passed_values import with_passed_values
from brickwork.transform.autodiff.reaching_stores import ReachingStores
from brickwork.transform.autodiff.recompute import Recompute, Scope
from brickwork.transform.autodiff.replay import Replay
from brickwork.transform.autodiff.saved_places import SavedPlaces
from brickwork.transform.autodiff.saved_results import SavedResults
from brickwork.transform.autodiff.shifts import shifts
from brickwork.transform.autodiff.shorter_tapes import shorten_tapes
from brickwork.transform.autodiff.simplify import simplified
from brickwork.transform.autodiff.single_exit import single_exit
from brickwork.transform.autodiff.single_stores import store_once
from brickwork.transform.autodiff.store_forwarding import summed_symbols
from brickwork.transform.autodiff.sweep import Sweep
from brickwork.transform.autodiff.sweep_order import in_source_order
from brickwork.transform.autodiff.tapes import Tapes
from brickwork.transform.autodiff.trip_counts import TripCounts
from brickwork.transform.autodiff.varying_loads import varying_loops
from brickwork.transform.canonical.counted_while import counted_while
from brickwork.transform.canonical.dead import without_dead, without_unused
from brickwork.transform.canonical.form import canonical
from brickwork.transform.derivation import Backward
from brickwork.transform.free_variables import with_body
from brickwork.transform.preconditions import preconditions_of, strictest
from brickwork.transform.privatise import owned
from brickwork.transform.product_nests import with_whole_nests
from brickwork.transform.scratch import Names, names_of
from brickwork.transform.tensors import sizes_of
from brickwork.transform.unguarded_analysis import unguarded_analysis


def gathered(program: Program) -> Program:
    """Return a program of gradients with its loops in gather form, and elements that are stored once."""
    names = names_of(program)

    def visit(statement: Statement) -> Statement:
        if not isinstance(statement, Launch):
            return statement
        kernel = statement.kernel
        return replace(statement, kernel=replace(kernel, body=keep_steps(kernel.body, names)))

    made = shorten_tapes(gather(replace(program, body=tuple(map(visit, program.body))), names), names)
    first = next((place for place, item in enumerate(made.body) if isinstance(item, Launch)), 0)
    return store_once(made, untouched(made.body[:first]), names)


def backward(program: Program, derivation: Backward, signature: Signature) -> Program:
    """Return the program of the gradients of a program, for arguments of the types in `signature`.

    It adds to elements where contributions arise: that is the form to derive again.
    """
    program = with_whole_nests(canonical(program))
    derived, lost = _derived(program, derivation, signature, reached=False)
    if lost:
        derived, lost = _derived(program, derivation, signature, reached=True)
    _refuse(program, lost)
    return derived


def _derived(
    program: Program, derivation: Backward, signature: Signature, *, reached: bool
) -> tuple[Program, list[Load]]:
    """Return the program of gradients, and the loads whose values it does not know.

    With `reached`, the lengths of more loops are known, by what counts or is read in them.
    """
    names = names_of(program)
    host, kernel, results = _parts(program)
    parameters = [item for item in program.parameters if not isinstance(item, KeyParameter)]
    places = {source: target for node in host if isinstance(node, Rebind) for target, source in _pairs(node)}
    chosen = compress(parameters, derivation.wanted)
    asked = tuple(places.get(tensor, tensor) for tensor in parameter_tensors(chosen))
    outputs = (*parameter_tensors(parameters, mutated=True), *results)
    types = signature.arguments[len(parameters) :]
    given = _given(outputs, types, names)
    saved = _saved(results, derivation.results, types[len(given) :], names)
    given = {places.get(tensor, tensor): gradient for tensor, gradient in given.items()}
    allocated = {node.tensor: node for node in walk(host) if isinstance(node, Allocate)}
    moved = {*places, *places.values()}
    kept = {tensor: item for tensor, item in saved.items() if tensor in allocated.keys() - moved}
    told = tuple(replace(allocated[tensor], tensor=item) for tensor, item in kept.items())
    kernel = _plain(kernel, kept, names, reached=reached)
    noted = SavedPlaces(kept, kernel.scalars, _finality(kernel), names)
    kernel, apart = extremes_apart(kernel, lambda block: activity(block, asked, given).found, names)
    kernel, active, chosen = _prepared(kernel, asked, given, (allocated, kept), names, noted)
    allocated |= {item.tensor: item for item in chosen.made}
    kernel = _kernel(kernel, kernel.body, (*told, *chosen.made), {})
    analysis = unguarded_analysis(kernel)
    states = ReachingStores(kernel, analysis)
    found = adjoints(kernel.body, active.tensors, asked, given, states, names, results)
    lengths = TripCounts(kernel.body, kernel.scalars)
    tapes = Tapes(TripCounts(kernel.body, kernel.scalars, reached=True) if reached else lengths, names, lengths)
    replay = Replay(states, tapes, names, allocated, found.tensors, varying_loops(kernel.body), kept)
    free, summed = _in_any_order(kernel.body, analysis), summed_symbols(kernel.body)
    known = SavedResults(kept, states, names)
    recompute = Recompute(names, active, tapes, replay.load, replay.is_taped, free, summed, known)
    scratch = frozenset(allocated).difference(results, moved, asked)
    sweep = Sweep(
        recompute, found.tensors, frozenset(found.overwriting), owned(kernel, analysis, scratch), chosen.meeting
    )
    code: list[Statement] = []
    sweep.block(kernel.body, Scope({symbol: symbol for symbol in kernel.scalars}), code, NONE)
    gradients = tuple(found.results[tensor] for tensor in asked)
    code = [*found.before, *replay.block(kernel.body), *found.begin, *code, *found.end]
    before = preconditions_of(host, tuple(code))
    reduced = without_dead(tuple(code), gradients, before)
    allocations = [item.allocation for item in tapes.made]
    made = (*chosen.made, *found.made, *(item for _, item in replay.copies.values()), *allocations)
    sizes = {tensor: gradient for tensor, gradient in given.items() if tensor in allocated}
    derived, assumptions = in_source_order(_kernel(kernel, reduced, (*made, *told), sizes), sweep.turned)
    assumed = _renamed(dict.fromkeys((*apart, *analysis.assumptions, *noted.limits, *assumptions)), sizes)
    shorter = simplified(cancel_factors(derived.body, names), gradients, before)
    shorter, more = join_tapes(shorter, allocations, names)
    derived, made = _kernel(derived, with_locations(shorter, kernel.loc), more, sizes), (*made, *more)
    loads = (node for node in walk(derived.body) if isinstance(node, Load))
    needed = [replay.lost[node.tensor] for node in loads if node.tensor in replay.lost]
    body = _host(host, derived, (*made, *_limits(program, strictest(assumed, before))), (given, kept), gradients)
    return _program(program, parameters, (*given.values(), *saved.values()), body, signature), needed


def _plain(kernel: Kernel, kept: Collection[Tensor], names: Names, *, reached: bool) -> Kernel:
    """Return a kernel whose loops end at their ends, and pass on no elements that are cheap to compute again."""
    body = single_exit(counted_while(kernel.body, names) if reached else kernel.body, names)
    return with_passed_values(replace(kernel, body=body), kept, names)


def _prepared(
    kernel: Kernel,
    asked: Collection[Tensor],
    given: Collection[Tensor],
    known: tuple[Mapping[Tensor, Allocate], Mapping[Tensor, Tensor]],
    names: Names,
    noted: SavedPlaces,
) -> tuple[Kernel, Activity, Chosen]:
    """Return a kernel in the form that has an adjoint, what of it is active, and the scratch tensors that it uses.

    `known` are the tensors that the host makes and the results that are saved.
    """
    constant = shifts(kernel.body, activity(kernel.body, asked, given).found)
    body = choose_extremes(kernel.body, activity(kernel.body, asked, given, constant).found, names, noted)
    chosen = choose_element_extremes(body, activity(body, asked, given, constant).found, *known, names)
    body = branched(chosen.block, activity(chosen.block, asked, given, constant), names)
    return replace(kernel, body=body), activity(body, asked, given, constant), chosen


def _finality(kernel: Kernel) -> Callable[[Store], bool]:
    """Return what tells whether a store of a kernel is final; the kernel is analysed when that is first asked."""
    states = functools.cache(lambda: ReachingStores(kernel, unguarded_analysis(kernel)))
    return lambda store: states().is_final(store)


def _program(
    source: Program, parameters: Sequence[Parameter], given: Iterable[Tensor], body: Block, signature: Signature
) -> Program:
    """Return the program with this body, which takes what is given after the source's arguments."""
    arguments = (*map(_unwritten, parameters), *map(TensorParameter, given))
    return Program(
        name=source.name,
        parameters=(*arguments, *source.parameters[len(parameters) :]),
        body=body,
        device=signature.device,
        narrow=signature.narrow,
        aligned=signature.aligned,
        loc=source.loc,
    )


def _refuse(program: Program, lost: Sequence[Load]) -> None:
    """Refuse gradients that need elements which nothing tells any more."""
    wrong = [
        Diagnostic(
            code="BW501",
            message=f"the gradient of `{program.name}` needs this element of `{node.tensor.name}` as it is here, but it"
            " is stored over in a loop whose length is not known beforehand",
            loc=node.loc,
            help="write a `for` over a range that sizes or integer arguments bound, as `range(min(n, len(x)))` does,"
            f" left by a `break` if need be, or give the gradient yourself with `@{program.name}.backward`",
        )
        for node in lost
    ]
    if wrong:
        raise CompileError(in_order(wrong))


def _in_any_order(block: Block, analysis: Analysis) -> frozenset[Symbol]:
    """Return the indices of loops whose iterations may run in any order, and their adjoints too: those of sums."""

    @legality
    def is_free(verdict: LoopVerdict) -> bool:
        return verdict.independent and all(item.operator.name == "add" for item in verdict.reductions)

    claimed = {node.index for node in walk(block) if isinstance(node, For) and node.claimed}
    return frozenset(claimed | {index for index, verdict in analysis.loops.items() if is_free(verdict)})


def _pairs(node: Rebind) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(node.targets, node.sources, strict=True)


# ---------------------------------------------------------------- the derived program


def _unwritten(parameter: Parameter) -> Parameter:
    match parameter:
        case TensorParameter() | TensorListParameter():
            return replace(parameter, mutated=False)
        case _:
            return parameter


def _kernel(source: Kernel, body: Block, made: Sequence[Allocate], sizes: Mapping[Tensor, Tensor]) -> Kernel:
    """Return the derived kernel; the sizes of what the source returned are those of the gradients given for it."""
    facts = [*source.facts]
    for item in made:
        facts += [build.apply("eq", build.size(item.tensor, axis), size) for axis, size in enumerate(item.sizes)]
    return with_body(source, _renamed(body, sizes), _renamed(facts, sizes))


def _renamed(nodes: Iterable[NodeType], sizes: Mapping[Tensor, Tensor]) -> tuple[NodeType, ...]:
    """Return the trees with the sizes of other tensors in place of those of some."""

    def visit(node: Node) -> Node:
        return replace(node, tensor=sizes[node.tensor]) if isinstance(node, Size) and node.tensor in sizes else node

    return tuple(rewrite(node, visit) for node in nodes)


def _limits(program: Program, assumptions: Iterable[Expression]) -> Iterator[Statement]:
    """Yield checks of what the derivation has taken for granted: that sizes and integers are not beyond all reason."""
    text = f"the gradient of `{program.name}` is derived for smaller sizes and integers: {{0}} is less than {{1}}"
    for condition in assumptions:
        if isinstance(condition, Apply):
            failure = Failure(FailureKind.RUNTIME, text)
            yield Check(condition=condition, failure=failure, values=condition.operands, loc=program.loc)


def _host(
    host: Block,
    kernel: Kernel,
    made: Block,
    given: tuple[Mapping[Tensor, Tensor], Mapping[Tensor, Tensor]],
    results: tuple[Tensor, ...],
) -> Block:
    """Return the host part: that of the source with checks of what is given, all that is made, the launch.

    Gradients are given, and results, which the host part allocates.
    """
    statements: list[Statement] = []
    gradients, saved = given
    unchecked = dict(gradients)
    for statement in host:
        statements.append(statement)
        match statement:
            case Allocate(tensor=tensor, sizes=sizes):
                if tensor in unchecked:
                    statements += _checks(f"gradient of `{tensor.name}`", unchecked.pop(tensor), sizes)
                if tensor in saved:
                    statements += _checks(f"result `{tensor.name}`", saved[tensor], sizes)
            case Rebind(targets=targets):
                for tensor in unchecked.keys() & targets:
                    statements += _checks(f"gradient of `{tensor.name}`", unchecked.pop(tensor), sizes_of(tensor))
            case _:
                pass
    for tensor, gradient in unchecked.items():
        statements += _checks(f"gradient of `{tensor.name}`", gradient, sizes_of(tensor))
    end = (Launch(kernel=kernel, loc=kernel.loc), Return(tensors=results, loc=kernel.loc))
    return without_unused((*statements, *made, *end))


def _checks(what: str, given: Tensor, sizes: Sequence[Expression]) -> Iterator[Statement]:
    """Yield that what is given has the sizes that it has to have."""
    for axis, size in enumerate(sizes):
        found = build.size(given, axis)
        text = f"the {what} has the size {{0}} on axis {axis}, not {{1}}"
        failure = Failure(FailureKind.VALUE, text)
        yield Check(condition=build.apply("eq", found, size), failure=failure, values=(found, size))


# ---------------------------------------------------------------- the source


def _parts(program: Program) -> tuple[Block, Kernel, tuple[Tensor, ...]]:
    """Return the host statements, the kernels of all launches as one, and the results."""
    host: list[Statement] = []
    kernels: list[Kernel] = []
    results: tuple[Tensor, ...] = ()
    for statement in program.body:
        match statement:
            case Launch(kernel=kernel):
                kernels.append(kernel)
            case Return(tensors=tensors):
                results = tensors
            case _:
                host.append(statement)
    whole = Kernel(
        name=program.name,
        tensors=tuple(dict.fromkeys(item for kernel in kernels for item in kernel.tensors)),
        scalars=tuple(dict.fromkeys(item for kernel in kernels for item in kernel.scalars)),
        facts=tuple(dict.fromkeys(item for kernel in kernels for item in kernel.facts)),
        body=tuple(statement for kernel in kernels for statement in kernel.body),
        loc=program.loc,
    )
    return tuple(host), whole, results


def _given(outputs: Sequence[Tensor], types: Sequence[object], names: Names) -> dict[Tensor, Tensor]:
    """Return the gradients that are given, by the float tensors that they are of."""
    floats = [tensor for tensor in outputs if tensor.type.dtype.is_float]
    kinds = [kind for kind in types if isinstance(kind, TensorType)]
    pairs = zip(floats, kinds, strict=False)
    return {tensor: Tensor(f"grad_{place}", next(names.tensors), kind) for place, (tensor, kind) in enumerate(pairs)}


def _saved(
    results: Sequence[Tensor], given: Sequence[bool], types: Sequence[object], names: Names
) -> dict[Tensor, Tensor]:
    """Return the results that are given, by the tensors that they are of; their numbers are the same whichever are."""
    kinds = (kind for kind in types if isinstance(kind, TensorType))
    numbered = [(place, tensor, next(names.tensors)) for place, tensor in enumerate(results)]
    pairs = zip(compress(numbered, given), kinds, strict=True)
    return {tensor: Tensor(f"result_{place}", number, kind) for (place, tensor, number), kind in pairs}
