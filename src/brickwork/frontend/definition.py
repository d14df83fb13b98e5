"""What is known of an operator when it is decorated, before any call: `define` makes it, or refuses.

A definition holds what its source meant at that moment: later changes of globals or helpers do not reach it.
"""

from __future__ import annotations

import ast
import hashlib
import types
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Literal, TypeAlias

from brickwork.diagnostics.diagnostic import Diagnostic, in_order
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location, in_any_session
from brickwork.frontend import made_row_forms
from brickwork.frontend.aliases import follow
from brickwork.frontend.check import find_helpers, inner_returns, refusals, uncompiled_calls
from brickwork.frontend.early_returns import with_early_returns
from brickwork.frontend.element_methods import asks_for_functions, store_updates, with_functions, with_functions_where
from brickwork.frontend.environment import (
    ALLOCATIONS,
    DRAWS,
    MISSING,
    NEW_METHODS,
    constant_items,
    default_dtype,
    intrinsic,
    resolve,
    torch_dtype,
)
from brickwork.frontend.exchanged_results import with_begun_copied, with_copies_returned
from brickwork.frontend.inner_functions import with_inner
from brickwork.frontend.kept_lists import kept_rows, leaves_lists, with_lists_kept
from brickwork.frontend.lift import Split, Splitter
from brickwork.frontend.lift import stored_names as names_stored
from brickwork.frontend.lift_python import PythonSplitter, foreign_helper
from brickwork.frontend.list_forms import list_names
from brickwork.frontend.moved_tensors import with_tensors_moved
from brickwork.frontend.new_tensors import with_tensors_spelled_out
from brickwork.frontend.parameter_parts import Given, with_parts_given
from brickwork.frontend.parameters import Kinds, ParameterDeclaration, annotated, declare
from brickwork.frontend.rates import rates
from brickwork.frontend.results import result_count, result_expressions, returns_of, wrong_results
from brickwork.frontend.shape_annotations import with_shapes
from brickwork.frontend.source import SourceFunction, parse
from brickwork.frontend.stores import stored_names, stored_parameters
from brickwork.frontend.syntax import all_nodes
from brickwork.frontend.text_choices import with_choices
from brickwork.frontend.value_classes import described, is_value
from brickwork.frontend.value_methods import NO_VALUES, Values
from brickwork.ir.dtypes import FLOAT32, DType
from brickwork.ir.nodes import Program
from brickwork.ir.signature import Signature
from brickwork.records import dataclass

Known: TypeAlias = tuple[frozenset[str], frozenset[str], frozenset[str], Values]
"""Names of parameters that are tensors and lists of tensors, names of lists of numbers, and the classes of values."""


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """How an operator is lowered whose source another front end reads, and what makes its results without data."""

    lower: Callable[[Signature], Program]
    host: Callable[..., object]


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """An operator as it was decorated.

    `results` counts the returned tensors; `returns_tuple` tells one from a tuple of one. `reason` says why a "python"
    host part needs Python. `helpers` are the functions that are compiled inline.
    """

    source: SourceFunction
    parameters: tuple[ParameterDeclaration, ...]
    mutated: frozenset[str]
    results: int
    returns_tuple: bool
    draws_random: bool
    host: Literal["native", "python"]
    reason: str
    fingerprint: str
    helpers: Mapping[types.FunctionType, SourceFunction]
    split: Split
    whole: SourceFunction | None = None
    """The function that this one is a piece of: random draws are numbered in it."""
    reads_default_dtype: bool = False
    """Whether native code makes tensors, results that are numbers too, whose dtype the source does not name."""
    rates: frozenset[str] = frozenset()
    """The int parameters that places are multiplied or divided by: a GPU has code for each small value."""
    values: Values = NO_VALUES
    """The classes of the values with parts that the function and its helpers may have."""
    given: Given | None = None
    """How calls give objects with parts; None where the parameters are the function's own."""
    in_python: tuple[Diagnostic, ...] = ()
    """Warnings of loops over elements that Python runs."""
    unkept: Callable[[], Definition] | None = None
    """Gives the operator whose lists stay Python's, for rows of narrow types; None where no list became a tensor."""
    written: Written | None = None
    """What another front end says in place of what is read here; the rest is then what torch asks for."""

    @property
    def name(self) -> str:
        """The function's name."""
        return self.source.name

    @property
    def loc(self) -> Location:
        """Where the function begins."""
        return self.source.location(self.source.node)

    @property
    def default_dtype(self) -> DType:
        """The default dtype that code is made for now; FLOAT32 where it does not matter."""
        return default_dtype() if self.reads_default_dtype else FLOAT32

    @property
    def sources(self) -> tuple[SourceFunction, ...]:
        """The function and its helpers."""
        return (self.source, *self.helpers.values())

    @property
    def files(self) -> frozenset[str]:
        """The files that the function and its helpers stand in."""
        return frozenset(source.file for source in self.sources)


def define(function: Callable[..., object], kinds: Kinds = (), *, keeps: bool = True) -> Definition:
    """Return what the source says; refuse what the language lacks, all of it at once.

    `kinds` are annotations of parameters that have none in the source. `keeps`: lists may become tensors.
    """
    whole, given = with_parts_given(annotated(parse(function), kinds), kinds)
    source, misused = with_inner(with_early_returns(with_copies_returned(with_shapes(with_choices(whole)))))
    parameters, wrong = declare(source)
    wrong.extend((*misused, *refusals(source)))
    helpers, values, wrong_helpers = find_helpers(source)
    wrong.extend(wrong_helpers)
    tensors = frozenset(item.name for item in parameters if item.kind == "tensor")
    lists = frozenset(item.name for item in parameters if item.kind == "list[tensor]")
    store_updates(source, tensors)
    arrays = list_names(source.node, source.captured, source.local, stored_names(source, helpers))
    splitter, plain = Splitter(source, tensors, lists, arrays, values), source
    split = splitter.split()
    if split.reason or asks_for_functions(source):
        splitter, split = _spelled_out(splitter, split, helpers, (tensors, lists, arrays, values))
        source, (helpers, values, _) = splitter.source, find_helpers(splitter.source)
    wrong.extend(splitter.without_formula())
    mutated = stored_parameters(source, helpers) & (tensors | lists)
    reason = split.reason or foreign_helper(source, helpers, values, frozenset(splitter.tensors - splitter.rows))
    in_python: tuple[Diagnostic, ...] = ()
    if reason:
        make = partial(PythonSplitter, tensors=tensors, lists=lists, helpers=helpers, reason=reason, values=values)
        splitter, split = _python_split(with_begun_copied(plain), make, keeps=keeps)
        source, (helpers, values, _) = splitter.source, find_helpers(splitter.source)
        flow = follow(source, helpers, split.lifted)
        mutated = flow.mutated & (tensors | lists)
        wrong.extend((*splitter.wrong(split), *flow.wrong))
        wrong.extend(uncompiled_calls(source, split.lifted))
        in_python = tuple(splitter.in_python(source.node.body))
    else:
        wrong.extend(inner_returns(source))
        wrong.extend(diagnostic for item in (source, *helpers.values()) for diagnostic in uncompiled_calls(item))
    own = frozenset(() if reason else (item.name for item in parameters)) - _rebound(source, split)
    wrong.extend(wrong_results(source, own, split.tensors - split.device - split.arrays, native=not reason))
    if wrong:
        raise CompileError(in_order(wrong))
    results = result_count(source, native=not reason)
    return Definition(
        source=source,
        parameters=parameters,
        mutated=mutated,
        results=results,
        returns_tuple=results > 1 or any(isinstance(node.value, ast.Tuple | ast.List) for node in returns_of(source)),
        draws_random=draws((source, *helpers.values())),
        host="python" if split.reason else "native",
        reason=split.reason,
        fingerprint=_fingerprint((source, *helpers.values())),
        helpers=helpers,
        values=values,
        split=split,
        reads_default_dtype=not reason and reads_default_dtype(source, split, helpers),
        rates=rates(source, parameters),
        given=given,
        in_python=in_python,
        unkept=partial(define, function, kinds, keeps=False) if reason and kept_rows(source) else None,
    )


def _rebound(source: SourceFunction, split: Split) -> frozenset[str]:
    """Return the names that loops give something new, which may be returned where that is a row."""
    lifted = (node for node in all_nodes(source.node) if isinstance(node, ast.stmt) and id(node) in split.lifted)
    return frozenset(name for node in lifted for name in names_stored(node))


def _python_split(
    source: SourceFunction, splitter: Callable[[SourceFunction], PythonSplitter], *, keeps: bool
) -> tuple[PythonSplitter, Split]:
    """Return the split where the host part needs Python: with its lists as tensors, unless Python uses them, too."""
    kept = with_lists_kept(source) if keeps else None
    if kept is not None:
        found = splitter(with_functions_where(kept, splitter))
        split = found.split()
        if leaves_lists(split, found.kept):
            return found, split
    found = splitter(with_functions_where(source, splitter))
    return found, found.split()


def _with_new_tensors(
    helpers: Mapping[types.FunctionType, SourceFunction], splitter: Splitter
) -> SourceFunction | None:
    return with_tensors_spelled_out(splitter.source, helpers, splitter)


def _with_tensors_moved(splitter: Splitter) -> SourceFunction | None:
    return with_tensors_moved(splitter.source, splitter.lifted)


def _spelled_out(
    splitter: Splitter, split: Split, helpers: Mapping[types.FunctionType, SourceFunction], known: Known
) -> tuple[Splitter, Split]:
    """Return the split of a function in which more is spelled out, if nothing needs Python then; else as it was."""
    latest, found = splitter, split
    for spell in (
        with_functions,
        partial(_with_new_tensors, helpers),
        _with_tensors_moved,
    ):
        spelled = spell(latest)
        if spelled is None:
            continue
        latest = Splitter(spelled, *known)
        found = latest.split()
        if not found.reason:
            return latest, found
    return splitter, split


def reads_default_dtype(
    source: SourceFunction, split: Split, helpers: Mapping[types.FunctionType, SourceFunction]
) -> bool:
    """Return whether a function makes tensors without naming their dtype, or may return numbers as tensors."""
    local = source.local

    def allocation(node: ast.AST) -> str:
        name = intrinsic(resolve(node.func, source.captured, local)) if isinstance(node, ast.Call) else None
        return name if name in ALLOCATIONS else ""

    def is_unnamed(node: ast.AST) -> bool:
        made = allocation(node)
        named = isinstance(node, ast.Call) and any(word.arg == "dtype" for word in node.keywords)
        return bool(made) and not made.endswith("_like") and not named

    def is_tensor(node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in tensors
        method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        return method in NEW_METHODS or bool(allocation(node))

    tensors = split.tensors - split.device - split.arrays
    returned = (item for node in returns_of(source) for item in result_expressions(node))
    is_read = not all(map(is_tensor, returned)) or any(map(is_unnamed, all_nodes(source.node)))
    return is_read or _makes_rows((source, *helpers.values()))


def _makes_rows(sources: Iterable[SourceFunction]) -> bool:
    """Return whether loops make rows, which may be of the default dtype."""
    return any(
        isinstance(node, ast.Name) and node.id in made_row_forms.NAMES
        for each in sources
        for node in all_nodes(each.node)
    )


def draws(sources: Iterable[SourceFunction]) -> bool:
    """Return whether one of the functions draws random numbers."""
    return any(
        isinstance(node, ast.Call) and intrinsic(resolve(node.func, source.captured, local)) in DRAWS
        for source in sources
        for local in (source.local,)
        for node in all_nodes(source.node)
    )


def _fingerprint(sources: tuple[SourceFunction, ...]) -> str:
    """Return a digest of everything the operator is made of; the same in every process."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(f"{in_any_session(source.file)}:{source.node.lineno}\n{source.text}\n".encode())
        digest.update(repr((source.function.__defaults__, source.keyword_defaults)).encode())
        for name, found in sorted(source.captured.items()):
            digest.update(f"{name}={_describe(found)}\n".encode())
        local = source.local
        for node in all_nodes(source.node):
            if isinstance(node, ast.Attribute) and (found := resolve(node, source.captured, local)) is not MISSING:
                digest.update(f"{ast.unparse(node)}={_describe(found)}\n".encode())
    return digest.hexdigest()


def _describe(found: object) -> str:
    dtype = torch_dtype(found)
    if dtype is not None:
        return dtype
    items = constant_items(found)
    if items is not None or isinstance(found, int | float | bool | str):
        return repr(items if items is not None else found)
    if is_value(found):
        return repr(described(found))
    name = getattr(found, "__qualname__", getattr(found, "__name__", type(found).__qualname__))
    return f"{getattr(found, '__module__', '')}.{name}"
