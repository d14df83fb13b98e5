"""Checks: a failed one writes the record of failures and leaves the function.

On the CPU the failed iteration of lowest order stays in the record; on a GPU the first one does. Checks of a device
kernel share one piece of code that writes the record, but for those in loops with branches. The assembler joins the
threads of a warp where all ways meet again: code that led out of a loop from inside of a branch would keep them apart
until the loop's end. There a thread writes the record where it is, comes back, and leaves as a single instruction.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from brickwork.codegen import lanes
from brickwork.codegen.builder import FailureSite, FunctionWriter
from brickwork.codegen.convention import (
    RECORD_FAILED,
    RECORD_LOCK,
    RECORD_ORDER,
    RECORD_OWNER,
    RECORD_SITE,
    RECORD_VALUES,
)
from brickwork.codegen.emitter_state import FailurePath, State
from brickwork.codegen.expressions import emit_all, emit_expression
from brickwork.codegen.lane_values import Uniform, Value, scalar_type
from brickwork.codegen.operators import cast
from brickwork.ir import build
from brickwork.ir.dtypes import BOOL, FLOAT64, INT64, UINT64
from brickwork.ir.effects import effects
from brickwork.ir.nodes import Apply, Check, Expression, FailureKind
from brickwork.ir.walk import walk
from brickwork.legality import legality

MOST_VALUES = 8
"""Values that a record holds."""
_EXIT = "{ .reg .pred p; setp.ne.b64 p, $0, 0; @p exit; }"

_HEAD = "define internal void @bw_fail(ptr %record, i64 %order, i64 %site, ptr %values, i64 %count)"
_WRITE = f"""{_HEAD} cold noinline nounwind {{
start:
  %lock = getelementptr i64, ptr %record, i64 {RECORD_LOCK}
  br label %spin
spin:
  %pair = cmpxchg ptr %lock, i64 0, i64 1 acquire monotonic
  %taken = extractvalue {{i64, i1}} %pair, 1
  br i1 %taken, label %held, label %spin
held:
  %failed.at = getelementptr i64, ptr %record, i64 {RECORD_FAILED}
  %order.at = getelementptr i64, ptr %record, i64 {RECORD_ORDER}
  %failed = load i64, ptr %failed.at
  %none = icmp eq i64 %failed, 0
  %known = load i64, ptr %order.at
  %earlier = icmp slt i64 %order, %known
  %write = or i1 %none, %earlier
  br i1 %write, label %fill, label %free
fill:
  store i64 1, ptr %failed.at
  store i64 %order, ptr %order.at
  %site.at = getelementptr i64, ptr %record, i64 {RECORD_SITE}
  store i64 %site, ptr %site.at
  %values.at = getelementptr i64, ptr %record, i64 {RECORD_VALUES}
  br label %copy
copy:
  %i = phi i64 [0, %fill], [%next, %one]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %free
one:
  %from = getelementptr i64, ptr %values, i64 %i
  %to = getelementptr i64, ptr %values.at, i64 %i
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %next = add i64 %i, 1
  br label %copy
free:
  store atomic i64 0, ptr %lock release, align 8
  ret void
}}"""


def emit_checks(state: State, checks: Sequence[Check]) -> None:
    """Emit checks that follow one another."""
    together = state.target.grid and state.apart and state.mask is None and len(checks) > 1
    conditions = [emit_expression(state, check.condition) for check in checks] if together else []
    texts = [condition.text for condition in conditions if isinstance(condition, Uniform)]
    if not together or len(texts) < len(checks):
        for check in checks:
            _emit_check(state, check)
        return
    writer = state.writer
    passed, failed = writer.label("passed"), writer.label("failed")
    good = reduce(lambda one, other: writer.emit(f"and i1 {one}, {other}"), texts)
    writer.branch_if(good, passed, failed, weights(state))
    writer.place(failed)
    for check, text in zip(checks, texts, strict=True):
        # The first that fails claims the record, and others find that it is taken.
        with writer.when(writer.emit(f"xor i1 {text}, true")):
            _claim(state, check, emit_all(state, check.values), "0")
    _leave(state)
    writer.branch(passed)
    writer.place(passed)


@legality
def may_be_tested_together(check: Check) -> bool:
    """Whether the condition of a check has a value also where a check before it fails."""
    return effects(check.condition).plain and not any(
        isinstance(node, Apply) and node.operator.name in {"floordiv", "mod"} for node in walk(check.condition)
    )


def _emit_check(state: State, check: Check) -> None:
    """Emit a check: where it fails in an active lane, record the first such lane and return from the function."""
    writer = state.writer
    condition = emit_expression(state, _condition(state, check))
    passed, failed = writer.label("passed"), writer.label("failed")
    if isinstance(condition, Uniform):
        mask = state.mask
        writer.branch_if(condition.text, passed, failed, weights(state))
        writer.place(failed)
    else:
        flags = f"<{state.width} x i1>"
        wrong = writer.emit(f"xor {flags} {lanes.vector(state, condition)}, splat (i1 true)")
        mask = lanes.both(state, state.mask, wrong)
        writer.branch_if(writer.emit(f"xor i1 {lanes.any_lane(state, mask)}, true"), passed, failed, weights(state))
        writer.place(failed)
    lane = "0" if mask is None else lanes.first_lane(state, mask)
    if state.target.grid and state.apart:
        _claim(state, check, emit_all(state, check.values), lane)
        _leave(state)
        writer.branch(passed)
    else:
        _record(state, check, emit_all(state, check.values), lane)
        writer.terminate(f"br label %{state.failure.label}" if state.failure else "ret void")
    writer.place(passed)


def _condition(state: State, check: Check) -> Expression:
    """Return the condition; that an index is in range, in scalar code, as one comparison of the element's place."""
    if state.width > 1 or state.target.grid or check.failure.kind is not FailureKind.INDEX:
        return check.condition
    match check.condition:
        case Apply(operands=(Apply(operands=(index, least)), Apply(operator=below, operands=(same, size)))) if (
            below.name == "lt" and index == same
        ):
            resolved = build.select(build.apply("lt", index, build.integer(0)), build.add(index, size), index)
            place = index if build.is_constant(least, 0) else resolved
            return build.apply("lt", build.cast(place, UINT64), build.cast(size, UINT64))
        case _:
            return check.condition


def weights(state: State) -> str:
    """Return the note of a branch that nearly always takes its first target."""
    name = state.module.metadata('!{!"branch_weights", i32 1000000, i32 1}')
    return f", !prof {name}"


def emit_leave_if_failed(state: State) -> None:
    """Return from the function if a check has failed on any thread."""
    writer = state.writer
    address = writer.slot(state.slot_value(state.layout.record, "ptr"), RECORD_FAILED)
    good = writer.emit(f"icmp eq i64 {writer.load('i64', address)}, 0")
    go_on, leave = writer.label("good"), writer.label("leave")
    writer.branch_if(good, go_on, leave, weights(state))
    writer.place(leave)
    writer.terminate("ret void")
    writer.place(go_on)


def _record(state: State, check: Check, values: tuple[Value, ...], lane: str) -> None:
    writer, module = state.writer, state.module
    dtypes = tuple(value.dtype for value in values)
    site = module.site(FailureSite(check.failure, dtypes, check.loc))
    if state.failure is not None:
        _store_words(state, values, lane, state.failure.values)
        writer.store("i64", state.order, state.failure.order)
        writer.store("i64", str(site), state.failure.site)
        return
    if _WRITE not in module.functions:
        module.functions.append(_WRITE)
    words = writer.alloca("i64", max(len(values), 1))
    _store_words(state, values, lane, [writer.slot(words, number) for number in range(len(values))])
    record = state.slot_value(state.layout.record, "ptr")
    arguments = (f"ptr {record}", f"i64 {state.order}", f"i64 {site}", f"ptr {words}", f"i64 {len(values)}")
    writer.call("void", "@bw_fail", arguments)


def _store_words(state: State, values: tuple[Value, ...], lane: str, addresses: Sequence[str]) -> None:
    """Store the values of a lane as words of the record."""
    writer = state.writer
    for address, value in zip(addresses, values, strict=False):
        kind = scalar_type(value.dtype)
        text = value.text if isinstance(value, Uniform) else lanes.pick(state, kind, lanes.vector(state, value), lane)
        wide = FLOAT64 if value.dtype.is_float else INT64 if value.dtype is BOOL else value.dtype
        writer.store(scalar_type(wide), cast(state, text, value.dtype, wide, 1), address)


def _claim(state: State, check: Check, values: tuple[Value, ...], lane: str) -> None:
    """Fill the record of failures of a device, if this thread is the first to claim it."""
    writer = state.writer
    site = state.module.site(FailureSite(check.failure, tuple(value.dtype for value in values), check.loc))
    record, owner = state.slot_value(state.layout.record, "ptr"), state.slot_value(state.layout.owner or 0)
    pair = writer.emit(f"cmpxchg ptr {writer.slot(record, RECORD_LOCK)}, i64 0, i64 1 monotonic monotonic")
    with writer.when(writer.emit(f"extractvalue {{ i64, i1 }} {pair}, 1")):
        for word, text in ((RECORD_ORDER, state.order), (RECORD_SITE, str(site)), (RECORD_OWNER, owner)):
            writer.store("i64", text, writer.slot(record, word))
        places = [writer.slot(record, RECORD_VALUES + number) for number in range(min(len(values), MOST_VALUES))]
        _store_words(state, values, lane, places)
        writer.effect("fence seq_cst")
        writer.effect(f"store atomic volatile i64 1, ptr {writer.slot(record, RECORD_FAILED)} monotonic, align 8")


def _leave(state: State) -> None:
    """End this thread of a device, which neither LLVM nor the assembler is to see: there is always a record."""
    writer = state.writer
    record = writer.emit(f"ptrtoint ptr {state.slot_value(state.layout.record, 'ptr')} to i64")
    writer.effect(f'call void asm sideeffect "{_EXIT}", "l,~{{memory}}"(i64 {record})')


def begin_failure_path(writer: FunctionWriter) -> FailurePath:
    """Make room for what a failed check of a device kernel records."""
    slots = [writer.alloca("i64") for _ in range(2 + MOST_VALUES)]
    return FailurePath(writer.label("failed"), slots[0], slots[1], tuple(slots[2:]))


def emit_failure_path(state: State, path: FailurePath) -> None:
    """Write where failed checks of a device kernel end that share it: the first to claim the record fills it."""
    writer = state.writer
    record, owner = state.slot_value(state.layout.record, "ptr"), state.slot_value(state.layout.owner or 0)
    writer.place(path.label)
    lock = writer.slot(record, RECORD_LOCK)
    pair = writer.emit(f"cmpxchg ptr {lock}, i64 0, i64 1 monotonic monotonic")
    fill, leave = writer.label("fill"), writer.label("leave")
    writer.branch_if(writer.emit(f"extractvalue {{ i64, i1 }} {pair}, 1"), fill, leave)
    writer.place(fill)
    items = {RECORD_ORDER: path.order, RECORD_SITE: path.site}
    items |= {RECORD_VALUES + number: slot for number, slot in enumerate(path.values)}
    for word, slot in items.items():
        writer.store("i64", writer.load("i64", slot), writer.slot(record, word))
    writer.store("i64", owner, writer.slot(record, RECORD_OWNER))
    writer.effect("fence seq_cst")
    writer.effect(f"store atomic volatile i64 1, ptr {writer.slot(record, RECORD_FAILED)} monotonic, align 8")
    writer.branch(leave)
    writer.place(leave)
    writer.terminate("ret void")
