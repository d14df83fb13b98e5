"""The list of transforms, in order, with the reason for the order.

0. canonical: first of all, since the analyses look for loops with an index, and for what is written in terms of it.
   without_continue (only for grids): before what looks at nests, and rests on proofs.
   with_loops_of_groups (only for matrix instructions): nests with a loop more for all that follows.
   with_iterations_apart: then, as all that follows looks at which loops are independent.
   with_ranks, with_nests_of_one (only for grids): then, as they make nests of loops in order, with stores that
   with_last_stores sees.
   with_scattered_sums (only for grids): before nests are one range, with checks.
   with_padded_rows (only for grids): then, before others look at how many iterations loops have.
   with_gathers (only for grids): nests that scatter are nests over elements for all that follows.
   with_ascending_rows: on whole programs, since it makes kernels of its own for elements that ascend.
   with_expanded_scratch (only for grids): likewise, for scratch tensors with more elements than a thread has room for.
   with_strides, with_residues (only for grids): sums of one remainder, before sums are looked for.
   with_checks_ahead (only for matrix instructions): contractions without checks, which are looked for next.
   with_running_extremes (only for grids): sums that scale no more with each step, before sums are looked for.
   with_separate_sums (only for grids): nests of their own for contractions, in expanded scratch tensors, too.
   with_product_nests (only for matrix instructions): perfect nests of products, of those nests, too.
   with_free_parts (only for grids): nests of their own for parts that are freer than a whole nest.
   with_launched_steps (only for grids): then, as kernels with parts of scratch tensors have loops that are independent.
   with_own_scratch: then, since each of these kernels is to choose how its tensors lie in memory.
   without_argument_checks (only for grids): likewise, since checks keep loops in order.
1. joined_loops: before what looks at loops one by one; it sees what stands under conditions that the guards ask.
   privatise: first of what rests on proofs, since loops are independent then that were not.
   with_columns (only for grids): makes one nest of several, whose order can be chosen.
   distribute, interchange: before all that rests on the verdicts, since those of other loops are others; loops are cut
   first, since that makes nests perfect, whose order can be chosen.
2. promote: an element that an inner loop accumulates into becomes a variable, so that the analysis sees a reduction;
   after the order is chosen, since that says which loops accumulate.
3. analyse; recognise_reductions, which has to know what runs in parallel, makes reductions of loops that look like
   none; then the user's claims, since all that follows rests on the verdicts; for grids, updates that can be atomic.
4. sink, rectangle, unswitch_nests (only for grids), unswitch (only for processors): after the analysis, which holds for
   the nests that they make; the schedule follows.
5. schedule: chosen for the loops as they are in the source, so that `explain` speaks of those. On grids it says how
   threads access scratch tensors: with those laid out anew (scratch_layout), the program is scheduled once more.
6. guard: the careful copy of the body is taken before the schedule is applied to the fast one. Where loops were moved
   or an element put into a variable by proofs that may rest on the guards, it is taken from the source.
   persistent_blocks (only for grids): on the fast body before the schedule is applied, which leaves them alone.
7. without_repeated (only for grids): of checks that are the same the first.
   hoist_checks, with_interiors (only for processors): test the checks of innermost loops before them, then cut borders
   off those that check nothing; both need the loops as they are run.
8. specialise: what the guards fix is put into the fast body last, so that analysis and schedule speak of the source; on
   processors what the host part established, too.
9. without_needless_fills (only for grids): needs what analyses prove of kernels and under which guards.
   outline_kernels (only for grids): cuts whole programs, once all kernels are scheduled.
   privatise_reductions (only for processors): adds tensors to whole programs, likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache

from brickwork.analysis.analyse import analyse
from brickwork.analysis.atomic_updates import find_updates
from brickwork.analysis.carrying_loops import carrying_loops
from brickwork.analysis.verdicts import Analysis
from brickwork.diagnostics.location import NOWHERE, Location
from brickwork.ir import build
from brickwork.ir.nodes import (
    Assign,
    Block,
    Expression,
    For,
    If,
    Kernel,
    Launch,
    Node,
    Program,
    Statement,
    Symbol,
    Tensor,
)
from brickwork.ir.verify import unique_kernels
from brickwork.ir.walk import rewrite, rewrite_statements, statements, walk
from brickwork.records import dataclass
from brickwork.target.target import Target
from brickwork.transform.alternatives import branches_of, with_named_branches, with_own_scratch
from brickwork.transform.argument_checks import without_argument_checks
from brickwork.transform.argument_facts import ArgumentFacts, argument_facts_of
from brickwork.transform.ascending import with_ascending_rows, with_pairs_of_rows
from brickwork.transform.canonical.form import canonical
from brickwork.transform.carried_elements import with_carried_elements
from brickwork.transform.checks_ahead import with_checks_ahead
from brickwork.transform.claims import believe_claims, take_claims
from brickwork.transform.columns import may_have_columns, with_columns
from brickwork.transform.distribute import distribute, may_distribute
from brickwork.transform.expand_scratch import with_expanded_scratch
from brickwork.transform.explanation import GUARDS
from brickwork.transform.free_parts import with_free_parts
from brickwork.transform.gathered_scatters import with_gathers
from brickwork.transform.given import Given, completed, given_for, in_order_where_short, rearranged, touched_by
from brickwork.transform.guard import careful_body, conjunction, fast_body, guards, with_guard
from brickwork.transform.hoist_bounds import hoist_bounds
from brickwork.transform.hoist_checks import hoist_checks
from brickwork.transform.host_device_partition import launched, partition
from brickwork.transform.interchange import interchange, may_interchange
from brickwork.transform.interior import with_interiors
from brickwork.transform.iterations_apart import with_iterations_apart
from brickwork.transform.joined_loops import joined_loops, may_be_joined
from brickwork.transform.last_stores import with_last_stores
from brickwork.transform.launched_steps import with_launched_steps
from brickwork.transform.lone_recurrences import with_nests_of_one
from brickwork.transform.loops_of_groups import with_loops_of_groups
from brickwork.transform.needless_fills import Overwriting, without_needless_fills
from brickwork.transform.nests_apart import stand_apart
from brickwork.transform.outline import outline_kernels
from brickwork.transform.padded_rows import with_padded_rows
from brickwork.transform.persistent import Persistent, persistent_blocks
from brickwork.transform.preconditions import NOTHING, Preconditions, assuming_less, preconditions_of
from brickwork.transform.predicate import predicate
from brickwork.transform.privatise import privatise, scratch_of
from brickwork.transform.privatise_reductions import privatise_reductions
from brickwork.transform.product_nests import with_product_nests
from brickwork.transform.promote import apart_in, promote, promote_under_conditions
from brickwork.transform.ranks import with_ranks
from brickwork.transform.recognise_reductions import note_places, recognise_reductions, with_sums_added
from brickwork.transform.rectangle import rectangle
from brickwork.transform.recurrences import Carrying
from brickwork.transform.repeated_checks import without_repeated
from brickwork.transform.residue_nests import with_residues, with_strides
from brickwork.transform.running_extremes import with_running_extremes
from brickwork.transform.scattered_sums import with_scattered_sums
from brickwork.transform.schedule.contract import has_contraction
from brickwork.transform.schedule.defaults import default_schedule, few_iterations, find_windows
from brickwork.transform.schedule.long_sums import has_nests_of_sums
from brickwork.transform.schedule.schedule import Schedule, Verb
from brickwork.transform.schedule.shared_work import with_groups
from brickwork.transform.schedule.text import Names
from brickwork.transform.scratch import names_of
from brickwork.transform.scratch_layout import far_apart, layouts, with_layouts
from brickwork.transform.separate_sums import with_separate_sums
from brickwork.transform.sink import sink
from brickwork.transform.specialise import specialise
from brickwork.transform.strips import with_strips
from brickwork.transform.unguarded_analysis import careful_analysis
from brickwork.transform.unswitch import unswitch, unswitch_nests
from brickwork.transform.verbs.apply import apply_schedule
from brickwork.transform.versions import (
    SHARED,
    TILES,
    Version,
    conditions_of,
    versions_for_sizes,
)
from brickwork.transform.wavefront import wavefront
from brickwork.transform.without_continue import without_continue

_APART = (
    with_loops_of_groups,
    with_iterations_apart,
    with_ranks,
    with_nests_of_one,
    with_scattered_sums,
    with_padded_rows,
    with_gathers,
    with_ascending_rows,
    with_last_stores,
    with_pairs_of_rows,
    with_expanded_scratch,
    with_strides,
    with_residues,
    with_checks_ahead,
    with_running_extremes,
    with_separate_sums,
    with_product_nests,
    with_free_parts,
    with_launched_steps,
)
"""What makes kernels of their own for some arguments, or changes what stands around loops."""


@dataclass(frozen=True, slots=True)
class _Fast:
    """The body for arguments that satisfy the guards, or a part of it, with its schedules and persistent blocks."""

    body: Block
    schedule: Schedule
    versions: tuple[Version, ...]
    short: Schedule | None
    blocks: tuple[For, ...]


@dataclass(frozen=True, slots=True)
class ScheduledKernel:
    """A kernel ready for code generation, the schedule that was applied, and the facts that it rests on.

    The facts are those of `source`, the kernel before it was guarded and scheduled. `grid`: it is for a grid. `short`
    is the schedule where windows are short, if that is another. `persistent` are the blocks that run loops in order.
    Where all of `guards` hold, the first of the `versions` runs whose conditions do; else the `careful` one, in which
    other loops are independent. `moved` are the verbs that moved loops before the analysis, `given` the loops that a
    user's schedule is for, and `text` is the whole schedule, with loops named as in the program. `choices` are the
    names of all versions of loops in the program, `computed` the sizes that the host computes, `carrying` the loops of
    the source that are recurrences. `remark` says what sets it apart from a kernel of the same loops beside it, and
    `branches` are the choices that the host makes before it is launched: their names, and whether the condition holds.
    `guarded` is the name of the choice that the guards make.
    """

    kernel: Kernel
    source: Kernel
    schedule: Schedule
    analysis: Analysis
    grid: bool = False
    short: Schedule | None = None
    persistent: tuple[For, ...] = ()
    guards: tuple[Expression, ...] = ()
    versions: tuple[Version, ...] = ()
    careful: tuple[Schedule, Analysis] | None = None
    moved: tuple[Verb, ...] = ()
    given: frozenset[Symbol] = frozenset()
    text: str = ""
    choices: frozenset[str] = frozenset()
    computed: Mapping[Symbol, Expression] = field(default_factory=dict[Symbol, Expression])
    carrying: Carrying = field(default_factory=dict[Symbol, frozenset[Tensor]])
    remark: str = ""
    branches: tuple[tuple[str, bool], ...] = ()
    guarded: str = GUARDS


def schedule_kernel(
    kernel: Kernel,
    target: Target,
    known: ArgumentFacts | None = None,
    scratch: frozenset[Tensor] = frozenset(),
    before: Preconditions = NOTHING,
    given: Given | None = None,
) -> ScheduledKernel:
    """Return the kernel as it is to run on `target`; raises RaceError for a refuted `prange`.

    `known` is what is known of its arguments for a grid; `scratch` are the tensors that nothing else uses. What is in
    `before` is checked before each launch. `given` is a user's schedule; raises ScheduleError where it is illegal.
    """
    given = None if target.grid or kernel.may_alias else given
    written = kernel = note_places(kernel)
    as_written = cache(lambda: analyse(written))
    kernel, analysis, rests, moved = _freed(written, as_written, target, scratch, given)
    analysis = take_claims(kernel, analysis, scratch)
    analysis = find_updates(kernel, analysis, claimed=not target.grid)
    fixed, less = guards(analysis), known if target.grid else None
    fixed = fixed if target.grid else (*fixed, *kernel.facts)
    analysis, *rests = (assuming_less(each, less, before) for each in (analysis, *rests))
    if target.grid and not kernel.may_alias:
        kernel = replace(kernel, body=unswitch_nests(rectangle(sink(kernel.body, analysis), analysis), analysis))
    elif not kernel.may_alias:
        kernel = unswitch(kernel, analysis)
    user = None if given is None else given.without(moved)
    facts = (known, less)
    parts = enumerate(_parts(kernel, analysis, target))
    ways = [_fast_way(part, analysis, target, facts, fixed, user, f" of part {n}" * (n > 0)) for n, part in parts]
    if len(ways) > 1 and any(way.blocks for way in ways):
        ways = [_fast_way(kernel, analysis, target, facts, fixed, user, "")]
    fast = tuple(item for way in ways for item in way.body)
    schedule = Schedule(tuple(verb for way in ways for verb in way.schedule.verbs))
    versions = tuple(replace(item, part=place) for place, way in enumerate(ways) for item in way.versions)
    held = dict.fromkeys(item for each in (analysis, *rests) for item in guards(each))
    if rests and held:
        careful, slow = _careful(written, believe_claims(written, as_written(), scratch), target)
    else:
        careful, slow = _careful(kernel, analysis, target)
    body = with_guard(conjunction(held), fast, careful, GUARDS)
    final = replace(kernel, body=body, ascending=(), alone=frozenset(), launched=frozenset())
    rest = (tuple(held), versions, slow, moved, touched_by(kernel.body, given))
    carrying = carrying_loops(kernel, analysis) if target.grid else {}
    short, blocks = ways[0].short, tuple(block for way in ways for block in way.blocks)
    return ScheduledKernel(final, kernel, schedule, analysis, target.grid, short, blocks, *rest, carrying=carrying)


def _fast_way(
    kernel: Kernel,
    analysis: Analysis,
    target: Target,
    facts: tuple[ArgumentFacts | None, ArgumentFacts | None],
    fixed: Sequence[Expression],
    given: Given | None,
    suffix: str,
) -> _Fast:
    """Return a kernel's body, or a part of it, for arguments that satisfy the guards: a choice between versions.

    `facts` are what is known of its arguments, and that for a grid alone; names of versions end in `suffix`.
    """
    known, less = facts
    schedule = _chosen(kernel, analysis, target, given)
    windows = () if target.grid else find_windows(kernel.body, analysis, schedule)
    body = _in_order(kernel, analysis, schedule, target)
    fast = _fast(body, analysis, schedule, target, fixed, windows)
    short = None
    if windows:
        few_at_most = frozenset(each.index for each in windows)
        short = default_schedule(kernel.body, analysis, target, short=few_at_most)
        short = short if given is None else in_order_where_short(schedule, few_at_most)
        few = conjunction(few_iterations(windows))
        fast = with_guard(few, _fast(body, analysis, short, target, fixed), fast)
    conditions = conditions_of(kernel, analysis, target, schedule, known)
    versions = [Version("", (), schedule)]
    if conditions:
        nested = default_schedule(kernel.body, analysis, target, flat=False)
        versions = [Version(f"lanes{suffix}", conditions, schedule), Version("", (), nested)]
        fast = with_guard(conjunction(conditions), fast, _fast(body, analysis, nested, target, fixed), f"lanes{suffix}")
    for version in () if given is not None else versions_for_sizes(kernel, analysis, target, schedule, less):
        needed = conjunction(version.conditions)
        if build.is_constant(needed, 0):
            continue
        name = f"{version.name}{suffix}"
        versions.insert(0, replace(version, name=name))
        fast = with_guard(needed, _fast_of(version, body, analysis, target, fixed), fast, name)
        schedule = version.schedule if version.name == TILES else schedule
    fast = specialise(body.chosen(fast), fixed)
    return _Fast(fast, schedule, tuple(versions), short, body.all)


def _parts(kernel: Kernel, analysis: Analysis, target: Target) -> Iterator[Kernel]:
    """Yield a kernel with each nest of it alone, if some of several are for other sizes than others.

    Those are contractions, and nests of sums that blocks of threads share out.
    """
    body = kernel.body
    nests = len(body) > 1 and all(isinstance(item, For | If) for item in body)
    apart = nests and stand_apart(body) and not kernel.may_alias
    if apart and (has_contraction(body, analysis, target) or has_nests_of_sums(body, analysis, target)):
        yield from (replace(kernel, body=(statement,)) for statement in body)
    else:
        yield kernel


def _chosen(kernel: Kernel, analysis: Analysis, target: Target, given: Given | None) -> Schedule:
    """Return the schedule of a kernel: the default one, or the user's for the nests that it names."""
    schedule = Schedule() if kernel.may_alias else default_schedule(kernel.body, analysis, target)
    return schedule if given is None else completed(kernel, analysis, schedule, given)


def _fast_of(
    version: Version, body: Persistent, analysis: Analysis, target: Target, fixed: Sequence[Expression]
) -> Block:
    """Return the body for the arguments of a version."""
    if version.name == SHARED:
        body = replace(body, body=with_groups(body.body, version.schedule))
    return _fast(body, analysis, version.schedule, target, fixed)


def _freed(
    kernel: Kernel,
    as_written: Callable[[], Analysis],
    target: Target,
    scratch: frozenset[Tensor],
    given: Given | None,
) -> tuple[Kernel, Analysis, tuple[Analysis, ...], tuple[Verb, ...]]:
    """Return what `_rewritten` does, without checks of arguments alone: that these hold is an assumption then."""
    free, asked = without_argument_checks(kernel) if target.grid else (kernel, ())
    if not asked:
        return _rewritten(kernel, as_written, target, scratch, given)
    found, analysis, rests, moved = _rewritten(free, cache(lambda: analyse(free)), target, scratch, given)
    return found, replace(analysis, assumptions=(*analysis.assumptions, *asked)), (*rests, as_written()), moved


def _rewritten(
    kernel: Kernel,
    as_written: Callable[[], Analysis],
    target: Target,
    scratch: frozenset[Tensor],
    given: Given | None,
) -> tuple[Kernel, Analysis, tuple[Analysis, ...], tuple[Verb, ...]]:
    """Return the kernel with its loops rewritten, its analysis, and the analyses that what was done rests on.

    What they prove is worth nothing where their guards do not hold. `as_written` gives the given kernel's analysis.
    Last come the verbs that moved loops: a user's, or else the compiler's own.
    """
    rests: list[Analysis] = []
    moved: tuple[Verb, ...] = ()
    source, found = kernel, None
    if given is None and may_be_joined(kernel):
        if (source := joined_loops(kernel, as_written())) is not kernel:
            rests.append(as_written())
        found = analysed = as_written() if source is kernel else analyse(source)
        kernel, as_written = source, cache(lambda: analysed)
    if scratch.intersection(kernel.tensors):
        source, found = privatise(kernel, as_written(), scratch, grid=target.grid)
        rests += [as_written()] if source is not kernel else []
    if target.grid and may_have_columns(source):
        before = found or as_written()
        if (moved_out := with_columns(source, before)) is not source:
            source, found, rests = moved_out, analyse(moved_out), [*rests, before]
    if given is not None:
        before = found or as_written()
        source, moved = rearranged(source, before, given)
        rests, found = ([*rests, before], None) if moved else (rests, before)
    elif may_distribute(source) or may_interchange(source):
        source, found, more, moved = reordered(source, found or as_written(), target)
        rests += more
    analysis_of = cache(lambda: analyse(source)) if found is None else lambda: found
    rewritten = promote(source, apart_in(analysis_of))
    plain = rewritten if source.may_alias else promote_under_conditions(source, apart_in(analysis_of), rewritten)
    if plain is not rewritten or rewritten.body != promote(source).body:
        rewritten = plain
        rests.append(analysis_of())
    analysis = analyse(rewritten) if found is None or rewritten.body != source.body else found
    if (recognised := recognise_reductions(rewritten, analysis, grid=target.grid)) is not rewritten:
        rewritten, analysis = recognised, analyse(recognised)
    if not target.grid and given is None and (strips := with_strips(rewritten, analysis, target)) is not rewritten:
        rests.append(analysis)
        rewritten, analysis = strips, analyse(strips)
    if target.grid:
        if (added := with_sums_added(rewritten, analysis)) is not rewritten:
            rewritten, analysis = added, analyse(added)
        skewed, after = wavefront(*hoist_bounds(rewritten, analysis))
        rests += [analysis] if skewed is not rewritten else []
        rewritten, analysis = skewed, after
        if (carried := with_carried_elements(rewritten, lambda: after)) is not rewritten:
            rests.append(analysis)
            rewritten, analysis = carried, analyse(carried)
    return rewritten, analysis, tuple(rests), moved


def reordered(
    kernel: Kernel, analysis: Analysis, target: Target
) -> tuple[Kernel, Analysis | None, tuple[Analysis, ...], tuple[Verb, ...]]:
    """Return the kernel with its loops cut and exchanged, its analysis where that was made, and what this rests on.

    Last come the verbs that exchanged loops.
    """
    rests: list[Analysis] = []
    if (cut_up := distribute(kernel, analysis, grid=target.grid)) is not kernel:
        rests.append(analysis)
        kernel, analysis = cut_up, analyse(cut_up)
    exchanged, moved = interchange(kernel, analysis, grid=target.grid)
    if not moved:
        return kernel, analysis, tuple(rests), ()
    return exchanged, None, (*rests, analysis), moved


def _careful(kernel: Kernel, analysis: Analysis, target: Target) -> tuple[Block, tuple[Schedule, Analysis]]:
    """Return the body for arguments that no proof is made for, with its schedule and what that rests on."""
    body = careful_body(kernel.body, analysis)
    if not target.grid or kernel.may_alias:
        return body, (Schedule(), analysis)
    slow = careful_analysis(analysis)
    schedule = default_schedule(kernel.body, slow, target, flat=False)
    return apply_schedule(body, schedule, slow), (schedule, slow)


def _in_order(kernel: Kernel, analysis: Analysis, schedule: Schedule, target: Target) -> Persistent:
    """Return the body for arguments that satisfy the guards, with loops in order for a block of a grid."""
    body = fast_body(kernel.body, analysis)
    if not target.grid or kernel.may_alias:
        return Persistent(body, {})
    names = names_of(kernel)
    pieces = predicate(apply_schedule(body, schedule, analysis), names.symbols)
    return persistent_blocks(kernel, body, launched(pieces, partition(pieces)), analysis, target)


def _fast(
    body: Persistent,
    analysis: Analysis,
    schedule: Schedule,
    target: Target,
    fixed: Sequence[Expression],
    windows: Sequence[For] = (),
) -> Block:
    """Return the body for arguments that satisfy the guards; `fixed` are those, and what was checked of them before.

    One of the `windows` is long.
    """
    long = frozenset(window.index for window in windows if len(windows) == 1)
    applied = body.restored(apply_schedule(body.body, schedule, analysis, long))
    if target.grid:
        return specialise(hoist_checks(without_repeated(applied), grid=True), fixed)
    return specialise(with_interiors(hoist_checks(applied)), fixed)


def schedule_program(
    program: Program, target: Target, given: str = "", loc: Location = NOWHERE
) -> tuple[Program, tuple[ScheduledKernel, ...]]:
    """Return the program as it is to run on `target`, and its kernels as they were scheduled, for explanations.

    Every kernel to emit is one that a launch in the program names. `given` is a user's schedule, of the operator at a
    place.
    """
    program = canonical(program, sizes=True, given=given)
    if target.grid:
        program = rewrite(program, _without_continue)
    by_user = given_for(program, given, loc)
    remarks: dict[str, str] = {}
    for apart in () if by_user else _APART:
        program, found = apart(program, target)
        remarks |= found
    unique_kernels(program)
    program = with_named_branches(with_own_scratch(program))
    scratch = scratch_of(program)
    scheduled = _schedule_kernels(program, target, scratch, by_user)
    if target.grid and scratch:
        program, scheduled = _laid_out(program, scheduled, target, scratch)
    around = branches_of(program)
    scheduled = {
        name: _with_own_choices(replace(item, remark=remarks.get(name, ""), branches=around[name]), place)
        for place, (name, item) in enumerate(scheduled.items())
    }
    computed = {node.symbol: node.value for node in program.body if isinstance(node, Assign)}
    known = argument_facts_of(program)
    names = Names(*(node.kernel for node in walk(program.body) if isinstance(node, Launch)))
    whole = {name: Schedule((*item.moved, *item.schedule.verbs)) for name, item in scheduled.items()}
    scheduled = {name: replace(item, text=names.text(whole[name])) for name, item in scheduled.items()}
    if target.grid:
        overwriting = {name: Overwriting(item.source, item.analysis, item.guards) for name, item in scheduled.items()}
        program, late = without_needless_fills(program, overwriting)
        bodies = {name: item.kernel for name, item in scheduled.items()}
        carrying = {name: item.carrying for name, item in scheduled.items()}
        program = outline_kernels(program, bodies, known, carrying, target, late)
        choices = _choices(program)
        return program, tuple(replace(item, choices=choices, computed=computed) for item in scheduled.values())

    def visit(node: Node) -> Node:
        return replace(node, kernel=scheduled[node.kernel.name].kernel) if isinstance(node, Launch) else node

    schedules = {name: item.schedule for name, item in scheduled.items()}
    program = privatise_reductions(rewrite(program, visit), schedules)
    final = {node.kernel.name: node.kernel for node in statements(program.body) if isinstance(node, Launch)}
    choices = _choices(program)
    made = (replace(item, kernel=final[name]) for name, item in scheduled.items())
    return program, tuple(replace(item, choices=choices, computed=computed) for item in made)


def _without_continue(node: Node) -> Node:
    return replace(node, body=without_continue(node.body)) if isinstance(node, Kernel) else node


def _laid_out(
    program: Program, scheduled: dict[str, ScheduledKernel], target: Target, scratch: frozenset[Tensor]
) -> tuple[Program, dict[str, ScheduledKernel]]:
    """Return the program for a grid with scratch tensors in the layouts that its kernels want, and these kernels.

    Tensors of a kernel that is scheduled otherwise then stay, but where accesses were far apart and are as wanted now.
    """
    written = {node.kernel.name: node.kernel for node in walk(program.body) if isinstance(node, Launch)}
    found = ((item.kernel, written[name], item.analysis) for name, item in scheduled.items())
    chosen = layouts(found, scratch)
    while chosen:
        moved = with_layouts(program, chosen)
        touched = frozenset(name for name, kernel in written.items() if not chosen.keys().isdisjoint(kernel.tensors))
        again = _schedule_kernels(moved, target, scratch, {}, touched)
        others = {name for name, item in again.items() if item.schedule != scheduled[name].schedule}
        bad = frozenset(item for name in others for item in far_apart(scheduled[name].kernel, scratch))
        wrong = layouts(((again[name].kernel, written[name], again[name].analysis) for name in others), scratch)
        kept = frozenset(item for name in others for item in written[name].tensors if item not in bad or item in wrong)
        if kept.isdisjoint(chosen):
            return moved, scheduled | again
        chosen = {tensor: layout for tensor, layout in chosen.items() if tensor not in kept}
    return program, scheduled


def _schedule_kernels(
    program: Program,
    target: Target,
    scratch: frozenset[Tensor],
    by_user: Mapping[str, Given],
    only: frozenset[str] | None = None,
) -> dict[str, ScheduledKernel]:
    """Return the kernels of a program, or `only` some, as they are to run on `target`, by their names."""
    nodes = ((place, node) for place, statement in enumerate(program.body) for node in walk(statement))
    kernels = [(place, node.kernel) for place, node in nodes if isinstance(node, Launch)]
    kernels = [(place, kernel) for place, kernel in kernels if only is None or kernel.name in only]
    known = argument_facts_of(program)
    return {
        kernel.name: schedule_kernel(
            kernel,
            target,
            known,
            scratch,
            preconditions_of(program.body[:place], kernel.body),
            by_user.get(kernel.name),
        )
        for place, kernel in kernels
    }


def _with_own_choices(scheduled: ScheduledKernel, place: int) -> ScheduledKernel:
    """Return a kernel, the one at a place among those of a program, with names for its choices that no other has."""
    if not place:
        return scheduled
    named = {
        name: f"{name} of kernel {place}" for name in (GUARDS, *(item.name for item in scheduled.versions)) if name
    }

    def visit(statement: Statement) -> Block:
        if isinstance(statement, If) and statement.version in named:
            return (replace(statement, version=named[statement.version]),)
        return (statement,)

    kernel = replace(scheduled.kernel, body=rewrite_statements(scheduled.kernel.body, visit))
    versions = tuple(replace(item, name=named.get(item.name, "")) for item in scheduled.versions)
    return replace(scheduled, kernel=kernel, versions=versions, guarded=named[GUARDS])


def _choices(program: Program) -> frozenset[str]:
    return frozenset(node.version for node in statements(program.body) if isinstance(node, If)) - {""}
