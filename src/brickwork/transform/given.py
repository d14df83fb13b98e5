"""A user's schedule (`schedule=`): read, asked whether it is legal, and put in place of the default's for its nests.

A nest that it names runs as it says, and in order where it says nothing; other nests keep the default. Verbs up to the
last one that moves a loop which is not independent change the program before it is analysed, as the compiler's own
interchange does (`interchange.py`); the rest is carried out as a default schedule is. Nothing is taken on trust: each
verb is refused where its file in `transform/verbs/` says why.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count
from typing import NoReturn

from brickwork.analysis.analyse import analyse
from brickwork.analysis.verdicts import Analysis
from brickwork.diagnostics.diagnostic import Diagnostic
from brickwork.diagnostics.location import Location
from brickwork.ir.nodes import Block, For, Kernel, Launch, Program, Statement, Symbol
from brickwork.ir.walk import statements, unused_number
from brickwork.records import dataclass
from brickwork.transform.guard import fast_body
from brickwork.transform.interchange import immovable
from brickwork.transform.schedule.schedule import (
    CHUNK_NUMBERS,
    Bind,
    Contract,
    Fuse,
    Level,
    Reorder,
    Rfactor,
    Schedule,
    Split,
    Unroll,
    Verb,
    chunk_of,
    named,
)
from brickwork.transform.schedule.text import Names, ScheduleError, UnreadableError, lines_of
from brickwork.transform.verbs import bind, fuse, reorder, rfactor, split, unroll
from brickwork.transform.verbs.apply import apply
from brickwork.transform.verbs.context import Context


@dataclass(frozen=True, slots=True)
class Given:
    """The verbs that a user has given for one kernel, each with the line that it was written in.

    `moved` are the indices that verbs name which are carried out already.
    """

    verbs: tuple[tuple[str, Verb], ...]
    moved: frozenset[Symbol] = frozenset()

    @property
    def loops(self) -> frozenset[Symbol]:
        """The indices that the verbs name: in their nests nothing is chosen but what they say."""
        return self.moved.union(index for _, verb in self.verbs for index in named(verb))

    def without(self, early: Collection[Verb]) -> Given:
        """Return the verbs but for those that are carried out already."""
        return Given(tuple(item for item in self.verbs if item[1] not in early), self.loops)


def given_for(program: Program, text: str, loc: Location) -> Mapping[str, Given]:
    """Return what a text says of each kernel of a program, by its name; `loc` is the operator's place."""
    kernels = [node.kernel for node in statements(program.body) if isinstance(node, Launch)]
    names = Names(*kernels)
    found: dict[str, list[tuple[str, Verb]]] = {}
    for line in lines_of(text):
        try:
            verb = names.verb(line)
        except UnreadableError as error:
            raise ScheduleError(Diagnostic(code="BW202", message=f"in the schedule, {error}", loc=loc)) from None
        homes = {_home(index, kernels) for index in named(verb)}
        if len(homes) > 1:
            message = f"the schedule says {line}, but these loops are in several nests, which run one after the other"
            raise ScheduleError(Diagnostic(code="BW202", message=message, loc=loc))
        found.setdefault(homes.pop(), []).append((line, verb))
    return {name: Given(tuple(verbs)) for name, verbs in found.items()}


def _home(index: Symbol, kernels: Collection[Kernel]) -> str:
    """Return the name of the kernel with a loop, or with the one that this is over the chunks of."""
    for kernel in kernels:
        for node in statements(kernel.body):
            if isinstance(node, For) and index in {node.index, chunk_of(node.index)}:
                return kernel.name
    raise KeyError(index)


# ---------------------------------------------------------------- before the analysis


def rearranged(kernel: Kernel, analysis: Analysis, given: Given) -> tuple[Kernel, tuple[Verb, ...]]:
    """Return a kernel whose loops were moved as the user says, where they are not independent, and by which verbs."""
    early = _early(kernel, analysis, given)
    context = Context(Schedule(tuple(verb for _, verb in given.verbs)), analysis, _numbers(kernel.body))
    done: list[Verb] = []
    for line, verb in given.verbs:
        if verb not in early:
            continue
        match verb:
            case Reorder():
                why = immovable(kernel, context.analysis, verb)
            case Split():
                why = split.refusal(kernel.body, verb, context)
            case _:
                why = "it stands before a reorder of this nest: write it after that"
        if why:
            _refuse(line, verb, why, kernel.body)
        kernel = replace(kernel, body=apply(kernel.body, verb, context))
        context = replace(context, analysis=analyse(kernel))
        done.append(verb)
    return kernel, tuple(done)


def _early(kernel: Kernel, analysis: Analysis, given: Given) -> list[Verb]:
    """Return the verbs up to the last one of each nest that moves a loop which is not independent."""
    found: list[Verb] = []
    for nest in nests(kernel.body):
        own = [verb for _, verb in given.verbs if nest & {*named(verb)}]
        moving = [at for at, verb in enumerate(own) if isinstance(verb, Reorder) and not _is_free(verb, analysis)]
        found += own[: moving[-1] + 1] if moving else []
    return found


def _is_free(verb: Reorder, analysis: Analysis) -> bool:
    """Whether all loops of a nest are independent, so that they may be moved at any time."""
    context = Context(Schedule(), analysis, count())
    verdicts = [context.verdict(index) for index in verb.order]
    return all(verdict.is_free for verdict in verdicts)


def nests(block: Block) -> list[frozenset[Symbol]]:
    """Return the indices of each outermost loop's nest, with those over chunks of its loops."""
    found: list[frozenset[Symbol]] = []
    for loop in outermost(block):
        own = frozenset(node.index for node in statements(loop) if isinstance(node, For))
        found.append(own | {chunk_of(index) for index in own})
    return found


def outermost(block: Block) -> list[For]:
    """Return the loops that stand in no other one."""
    loops = [node for node in statements(block) if isinstance(node, For)]
    inside = {id(inner) for node in loops for inner in statements(node.body)}
    return [node for node in loops if id(node) not in inside]


# ---------------------------------------------------------------- after it


def completed(kernel: Kernel, analysis: Analysis, default: Schedule, given: Given) -> Schedule:
    """Return the default schedule with a user's verbs in place of those for the nests that it names."""
    body = fast_body(kernel.body, analysis)
    touched = touched_by(kernel.body, given)
    kept = tuple(verb for verb in default.verbs if verb.loop not in touched)
    schedule = Schedule((*kept, *(verb for _, verb in given.verbs)))
    context = Context(schedule, analysis, _numbers(body))
    for line, verb in given.verbs:
        if why := refusal(body, verb, context):
            _refuse(line, verb, why, kernel.body)
        body = apply(body, verb, context)
    return schedule


def touched_by(block: Block, given: Given | None) -> frozenset[Symbol]:
    """Return the indices of the nests that a user's verbs name a loop of."""
    loops = frozenset[Symbol]() if given is None else given.loops
    return frozenset(index for nest in nests(block) if nest & loops for index in nest)


def refusal(block: Block, verb: Verb, context: Context) -> str | None:
    """Return why a processor cannot carry a verb out, if it cannot."""
    match verb:
        case Split():
            return split.refusal(block, verb, context)
        case Fuse():
            return fuse.refusal(block, verb, context)
        case Reorder():
            return reorder.refusal(block, verb, context)
        case Bind():
            return bind.refusal(block, verb, context)
        case Rfactor():
            return rfactor.refusal(block, verb, context)
        case Unroll():
            return unroll.refusal(block, verb, context)
        case Contract():
            return "the compiler chooses the tiles of a contraction"


def in_order_where_short(schedule: Schedule, windows: Collection[Symbol]) -> Schedule:
    """Return a schedule without the lanes of windows, which few iterations do without."""

    def lanes(verb: Verb) -> bool:
        return isinstance(verb, Rfactor) and verb.level is Level.LANE and verb.loop in windows

    return Schedule(tuple(verb for verb in schedule.verbs if not lanes(verb)))


def _refuse(line: str, verb: Verb, why: str, block: Block) -> NoReturn:
    nodes: dict[Symbol, Statement] = {}
    for node in statements(block):
        if isinstance(node, For):
            nodes |= {node.index: node, chunk_of(node.index): node}
    message = f"the schedule says {line}, but {why}"
    help_text = "leave it out, or write another verb; op.explain(...) says how the loops run without a schedule"
    raise ScheduleError(Diagnostic(code="BW202", message=message, loc=nodes[verb.loop].loc, help=help_text))


def _numbers(block: Block) -> count[int]:
    return count(unused_number(block) + 2 * CHUNK_NUMBERS)
