"""What must hold of every case. `examine` runs a case in every way and says what it saw, or where two ways differ.

Python, the checking interpreter, the interpreter on scheduled IR, and machine code at several numbers of threads and
widths of vectors give the same bits, or fail with the same kind of exception; nothing around the tensors changes. The
text of the IR can be read back. A loop that is proved independent shows no race in the interpreter; a `prange` that is
refuted has one for some arguments.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from brickwork.analysis.analyse import analyse
from brickwork.config import config
from brickwork.diagnostics.errors import CompileError, RaceError
from brickwork.frontend.definition import Definition, define
from brickwork.frontend.lower import lower
from brickwork.frontend.reference import python_function as in_python
from brickwork.ir.nodes import For, If, Kernel, Node, Program, Role
from brickwork.ir.parse import parse_program
from brickwork.ir.text import print_program
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import rewrite, walk
from brickwork.op import Op
from brickwork.target.cpu import host_target
from brickwork.target.target import Target
from brickwork.transform.guard import careful_body, conjunction, fast_body, guards
from brickwork.transform.promote import promote
from support.fuzz.case import MARGIN, NAME, Case, TensorArgument, block
from support.fuzz.execute import (
    Outcome,
    Scheduled,
    in_interpreter,
    kernels_of,
    operator_of,
    outcome,
    rewritten,
    scheduled,
    signature_of,
    small_pieces,
    taken,
    with_kernels,
)
from support.fuzz.guarded import guarded_pages
from support.fuzz.one_type import with_one_type

LARGEST = 1e6
"""Floats that grow beyond this make sums whose last bits depend on the order."""
_WORDS = (
    "while ",
    "break",
    "continue",
    "bw.ndrange",
    "prange",
    "assert",
    "divmod",
    "mix(",
    "bw.rand",
    "else:",
    "elif ",
)
_EITHER = {IndexError, ZeroDivisionError}
"""Failures of one expression."""
_PLACE = re.compile(r" \([^()]*\.py:\d+\)$")
"""The place that a message ends with."""
THREADS = (1, 2, 7)
WIDTHS = (4, 16, 32, 64)
"""Bytes of a vector; 4 means none."""


class FoundError(Exception):
    """Two ways to run a case differ; `kind` says which, in a word or two that do not depend on the case."""

    def __init__(self, kind: str, text: str) -> None:
        """Take the kind and what was seen."""
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def examine(case: Case, folder: Path, *, widths: Sequence[int] = ()) -> Counter[str]:
    """Run a case in every way; return what it was made of, or raise FoundError. Without widths, one is chosen."""
    seen: Counter[str] = Counter(programs=1)
    chosen = widths or (WIDTHS[case.seed % len(WIDTHS)],)
    with small_pieces(), warnings.catch_warnings():
        warnings.simplefilter("error")
        # Programs store floats into integers on purpose, and some loops over rows are Python's.
        warnings.filterwarnings("ignore", message="BW40[45]")
        prepared = prepare(case, folder, seen)
        if prepared is None:
            if seen["refused BW901"] and not case.claims:
                _in_parts(case, define(case.function(folder)), seen, chosen[0])
            return seen
        definition, program = prepared
        expected = outcome(in_python(definition), case)
        seen[f"fails with {expected.failure.__name__}" if expected.failure else "succeeds"] += 1
        if not is_small(expected, case):
            seen["too large to compare"] += 1
            return seen
        agreed = agreed_outcome(case, program, expected, seen)
        if agreed is None:
            return seen
        expected = agreed
        made: dict[int, Scheduled] = {}
        for width in chosen:
            found = _schedule(case, program, seen, host_target(width))
            if found is None:
                return seen
            _run_scheduled(case, found, expected, width)
            made[width] = found
        _verdicts(case, program, expected, seen)
        for width in chosen:
            with taken(program, host_target(width), made[width]):
                _compiled(case, definition, expected, seen, width)
        seen["compared"] += 1
        seen["IndexErrors agreed upon"] += expected.failure is IndexError
    return seen


def _in_parts(case: Case, definition: Definition, seen: Counter[str], width: int) -> None:
    """Compare a program whose host part is left to Python, as where tensors are made of lists, with all of it there."""
    try:
        operator = operator_of(definition)
        try:
            expected = outcome(operator.python, case) if isinstance(operator, Op) else None
        except NotImplementedError:
            seen["torch lacks a function for a type"] += 1
            return
        except RuntimeError as error:
            if isinstance(error, CompileError):
                raise
            seen["torch refuses what Python runs"] += 1
            return
        if expected is None or expected.failure is not None or not is_small(expected, case):
            return
        _compiled(case, definition, expected, seen, width)
    except CompileError as error:
        seen[f"refused {error.diagnostics[0].code}"] += 1
        return
    seen["compared in parts"] += 1


def prepare(case: Case, folder: Path, seen: Counter[str]) -> tuple[Definition, Program] | None:
    """Return the definition and the program, or None where the language refuses the case."""
    try:
        definition = define(case.function(folder))
        program = lower(definition, signature_of(case, may_alias=case.shares))
    except CompileError as error:
        seen[f"refused {error.diagnostics[0].code}"] += 1
        return None
    verify_program(program)
    text = print_program(program)
    if print_program(parse_program(text)) != text:
        raise FoundError("text", f"the IR is not read back as it was printed:\n{text}")
    _count(case, program, seen)
    return definition, program


def _count(case: Case, program: Program, seen: Counter[str]) -> None:
    """Count what the case has."""
    body = case.source.partition(f"def {NAME}")[2]
    for word in _WORDS:
        seen[f"has {word}"] += word in body
    for item in case.arguments:
        if isinstance(item, TensorArgument):
            seen[f"dtype {item.dtype}"] += 1
            seen[f"layout {item.layout}"] += 1
            seen[f"data {item.data}"] += 1
            seen[f"rank {len(item.shape)}"] += 1
    seen["arguments share memory"] += case.shares
    seen["loops"] += sum(isinstance(node, For) for node in walk(program))


def agreed_outcome(case: Case, program: Program, expected: Outcome, seen: Counter[str]) -> Outcome | None:
    """Return how the program ends in the interpreter, which is as in Python, or fails sooner.

    Or it is as in Python where locals have one type.

    None where a loop that is claimed to be independent shows a race; no other loop may.
    """
    try:
        found = outcome(in_interpreter(program), case)
    except RaceError as error:
        if not case.claims:
            raise FoundError("race without a claim", str(error)) from None
        seen["claims broken by the data"] += 1
        return None
    if _sooner(found, expected):
        seen["fails sooner than in Python"] += 1
        return found
    if not _agree(found, expected) and (ruled := with_one_type(case, program)) is not None and _agree(found, ruled):
        seen["wide integers meet a local that becomes a float"] += 1
        return found
    compare("interpreter", found, expected, case)
    compare_words("interpreter", found, expected, case)
    return expected


def _sooner(found: Outcome, expected: Outcome) -> bool:
    """Whether a run that fails as it does in Python may name another failure.

    A number that elements cannot hold is refused before the loops. Of one statement divisors are tested before elements
    are read, and any index out of range may be named.
    """
    if found.failure is None or expected.failure is None:
        return False
    same = found.failure is expected.failure and _without_place(found.words) == _without_place(expected.words)
    return not same and (found.failure is RuntimeError or _same_statement(found, expected))


def _agree(found: Outcome, expected: Outcome) -> bool:
    """Whether two runs that fail in the same way, if at all, leave the same in memory."""
    pairs = zip((*found.memory, *found.results), (*expected.memory, *expected.results), strict=True)
    return found.failure is expected.failure and all(_same(*pair) for pair in pairs)


def _same_statement(found: Outcome, expected: Outcome) -> bool:
    return {found.failure, expected.failure} <= _EITHER and bool(found.lines & expected.lines)


def _schedule(case: Case, program: Program, seen: Counter[str], target: Target) -> Scheduled | None:
    """Return the kernels of a program as they are compiled; None where a `prange` is refuted."""
    try:
        made = scheduled(program, target)
    except RaceError as error:
        if not case.claims:
            raise FoundError("refused without a claim", str(error)) from None
        seen["claims refuted"] += 1
        _confirm(case, program, error)
        return None
    roles = {node.role for node in walk(made[0]) if isinstance(node, For)}
    seen["programs with threads"] += Role.PARALLEL in roles
    seen["programs with lanes"] += Role.VECTOR in roles
    before = {kernel.name: kernel for kernel in kernels_of(program)}
    for name in {name for item in made[1] for name in rewritten(before.get(item.source.name), item.source)}:
        seen[f"programs with {name}"] += 1
    return made


def _run_scheduled(case: Case, made: Scheduled, expected: Outcome, width: int) -> None:
    """Run the scheduled IR in the interpreter."""
    try:
        found = outcome(in_interpreter(made[0]), case)
    except RaceError as error:
        raise FoundError("race in the schedule", f"width {width}: {error}") from None
    compare("schedule", found, expected, case, f"width {width}")


def _confirm(case: Case, program: Program, refusal: RaceError) -> None:
    """See that iterations of a refuted `prange` collide on an element: for these arguments, or for larger ones."""
    if "stores into" not in str(refusal):
        return
    failed = False
    for other in (case, *(_resized(case, size) for size in (5, 9, 14)), *_with_ones(_resized(case, 5))):
        try:
            failed |= outcome(in_interpreter(program), other).failure is not None
        except RaceError:
            return
        except (RuntimeError, OverflowError):
            failed = True
    if not failed:
        raise FoundError("refuted without a collision", str(refusal))


def _with_ones(case: Case) -> Iterator[Case]:
    """Yield the case with all axes of one of its sizes made 1, and with one axis of one tensor."""
    tensors = [item for item in case.arguments if isinstance(item, TensorArgument)]
    for size in sorted({extent for item in tensors for extent in item.shape}):
        yield replace(
            case,
            arguments=tuple(
                replace(item, shape=tuple(1 if extent == size else extent for extent in item.shape))
                if isinstance(item, TensorArgument)
                else item
                for item in case.arguments
            ),
        )

    for place, item in enumerate(case.arguments):
        for axis in range(len(item.shape)) if isinstance(item, TensorArgument) else ():
            assert isinstance(item, TensorArgument)
            short = replace(item, shape=(*item.shape[:axis], 1, *item.shape[axis + 1 :]))
            yield replace(case, arguments=(*case.arguments[:place], short, *case.arguments[place + 1 :]))


def _resized(case: Case, size: int) -> Case:
    """Return the case with other sizes, which keep equal sizes equal."""
    known: dict[int, int] = {}
    arguments: list[Any] = []
    for item in case.arguments:
        if isinstance(item, TensorArgument):
            shape = tuple(known.setdefault(extent, size + len(known)) for extent in item.shape)
            item = replace(item, shape=shape, layout="dense", base=None, limit=size, strays=False)
        elif item.name == "m":
            item = replace(item, value=size)
        arguments.append(item)
    return replace(case, arguments=tuple(arguments))


def _verdicts(case: Case, program: Program, expected: Outcome, seen: Counter[str]) -> None:
    """Run every loop that is proved independent as a parallel one in the checking interpreter."""
    kernels = {kernel.name: _marked(kernel, seen) for kernel in kernels_of(program)}
    try:
        found = outcome(in_interpreter(with_kernels(program, kernels)), case)
    except RaceError as error:
        raise FoundError("race in a loop proved independent", str(error)) from None
    compare("loops proved independent", found, expected, case)


def _marked(kernel: Kernel, seen: Counter[str]) -> Kernel:
    """Return a kernel with the loops marked that are independent without reductions."""
    kernel = promote(kernel)
    analysis = analyse(kernel)

    def mark(node: Node) -> Node:
        if not isinstance(node, For):
            return node
        verdict = analysis.loops[node.index]
        seen["loops independent" if verdict.independent else "loops in order"] += 1
        seen["loops with reductions"] += bool(verdict.independent and verdict.reductions)
        return replace(node, role=Role.PARALLEL) if verdict.independent and not verdict.reductions else node

    fast = tuple(rewrite(item, mark) for item in fast_body(kernel.body, analysis))
    careful = careful_body(kernel.body, analysis)
    return replace(kernel, body=(If(condition=conjunction(guards(analysis)), then=fast, otherwise=careful),))


def _compiled(case: Case, definition: Definition, expected: Outcome, seen: Counter[str], width: int) -> None:
    """Run machine code at several numbers of threads."""
    before = torch.get_num_threads()
    try:
        with config.override(vector_bytes=width, cache_size=0):
            operator = operator_of(definition)
            for threads in THREADS:
                torch.set_num_threads(threads)
                where = f"width {width}, {threads} threads"
                pages = guarded_pages()
                found = outcome(operator, case, pages and pages.fresh())
                compare("machine code", found, expected, case, where)
                if threads == 1:
                    compare_words("machine code", found, expected, case, where)
                seen["runs of machine code"] += 1
    except RaceError as error:
        if not case.claims:
            raise FoundError("refused without a claim", str(error)) from None
        seen["claims refuted"] += 1
    finally:
        torch.set_num_threads(before)


# ---------------------------------------------------------------- comparing


def compare(kind: str, found: Outcome, expected: Outcome, case: Case, where: str = "", *, close: float = 0.0) -> None:
    """Raise FoundError unless two runs ended in the same way, and nothing around the tensors was touched.

    `close` is how far apart numbers may be, relative to one and to them.
    """
    if found.outside:
        raise FoundError(f"{kind}: outside", f"{where}: {found.outside}")
    if found.failure is not expected.failure:
        text = f"{where}: {found.failure} {found.words}, not {expected.failure} {expected.words}"
        raise FoundError(f"{kind}: failure", text)
    _margins(kind, found, case, where)
    if expected.failure is not None:
        return
    pairs = zip((*found.memory, *found.results), (*expected.memory, *expected.results), strict=True)
    for number, (left, right) in enumerate(pairs):
        if not _same(left, right, close):
            raise FoundError(f"{kind}: values", f"{where}: tensor {number} is\n{left}\nnot\n{right}")


def compare_words(kind: str, found: Outcome, expected: Outcome, case: Case, where: str = "") -> None:
    """Raise FoundError unless two failures say the same, but for the place, which Python says elsewhere.

    Of one statement any index out of range may be named. A list is Python's own there, and `x[i][j]` an element of a
    row.
    """
    told = "list " in found.words or "][" in case.source.partition(f"def {NAME}")[2]
    told |= _same_statement(found, expected)
    if not told and _without_place(found.words) != _without_place(expected.words):
        raise FoundError(f"{kind}: words", f"{where}: {found.words!r}, not {expected.words!r}")


def _without_place(words: str) -> str:
    """Return a message without the place that it ends with."""
    return _PLACE.sub("", words)


def _same(one: torch.Tensor, other: torch.Tensor, close: float = 0.0, *, signs: bool = True) -> bool:
    """Whether two tensors are the same; `signs`: also those of zeros, in which formulas of complex numbers differ."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.is_complex():
        return _same(torch.view_as_real(one), torch.view_as_real(other), close, signs=False)
    left, right = one.double(), other.double()
    if not one.dtype.is_floating_point:
        return torch.equal(one, other)
    if signs and not close and bool(((left == 0) & (right == 0) & (left.signbit() != right.signbit())).any()):
        return False
    near = (left - right).abs() <= close * (1 + left.abs())
    return bool(((left == right) | near | (left.isnan() & right.isnan())).all())


def _margins(kind: str, found: Outcome, case: Case, where: str) -> None:
    """Check what lies before and after each tensor, even where the program failed."""
    before = [block(item) for item in case.make() if isinstance(item, torch.Tensor)]
    tensors = [item for item in case.arguments if isinstance(item, TensorArgument)]
    for item, left, right in zip(tensors, found.memory, before, strict=True):
        for part in (slice(0, MARGIN - 2), slice(-MARGIN + 2, None)):
            if item.base is None and not case.shares and not _same(left[part], right[part]):
                raise FoundError(f"{kind}: margins", f"{where}: memory around `{item.name}` has changed")


def is_small(found: Outcome, case: Case) -> bool:
    """Whether no float has grown so large that the order of a sum would show, and no loop longer than Python counts.

    Of short floats, halves are exact below 1 / eps: what was changed stays below that.
    """
    given = (block(item) for item in case.make() if isinstance(item, torch.Tensor))
    pairs = (*zip(found.memory, given, strict=True), *((item, None) for item in found.results))
    return found.failure is not OverflowError and all(_is_small(item, before) for item, before in pairs)


def _is_small(item: torch.Tensor, before: torch.Tensor | None) -> bool:
    if item.is_complex():
        return _is_small(torch.view_as_real(item), None if before is None else torch.view_as_real(before))
    if not item.dtype.is_floating_point:
        return True
    size = item.double().nan_to_num(0.0, 0.0, 0.0).abs()
    exact = size <= 1 / torch.finfo(item.dtype).eps
    unchanged = exact if before is None else exact | (item == before)
    return bool(((size <= LARGEST) & unchanged).all())
