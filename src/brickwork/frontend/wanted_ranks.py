"""Which tensor argument of a call has a rank that the function does not take, and which ranks it takes.

Asked where a function cannot be lowered: if it can be for other ranks of tensor arguments, the caller is told. The text
of the function says which ranks to try, and lowering decides. `refuse_unpacked` needs the text alone: it is for host
parts in Python.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from brickwork.diagnostics.diagnostic import Diagnostic, Note
from brickwork.diagnostics.errors import CompileError
from brickwork.diagnostics.location import Location
from brickwork.frontend.definition import Definition
from brickwork.frontend.environment import intrinsic, resolve
from brickwork.frontend.loop_heads import sources
from brickwork.frontend.lowering_state import dimensions
from brickwork.frontend.ranks import asked, branches_by_rank, indexed, least_ranks
from brickwork.frontend.rules import WrongRankError
from brickwork.frontend.source import SourceFunction, rebound_names
from brickwork.frontend.value_methods import meant
from brickwork.ir.nodes import TensorType
from brickwork.ir.signature import ArgumentType, Signature, TensorListType
from brickwork.ir.tensor_types import type_of
from brickwork.language.math import is_pointwise, is_without_formula
from brickwork.records import dataclass

MOST = 6
"""The greatest rank that is tried where several may do."""
TRIES = 16
"""How many combinations of ranks are tried where the text says nothing of them."""

Ranks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A tensor among the arguments: which argument, which item of a list, what it is called, where it is declared."""

    position: int
    item: int | None
    parameter: str
    loc: Location

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.parameter if self.item is None else f"{self.parameter}[{self.item}]"


def wrong_ranks(
    definition: Definition, signature: Signature, lower: Callable[[Signature], object]
) -> WrongRankError | None:
    """Return what to raise where a signature cannot be lowered, if the ranks of tensor arguments are at fault.

    None where no other ranks do, or where it is not the caller who gives the tensor.
    """
    search = _Search(definition, signature, lower)
    given = search.given
    found = next((ranks for ranks in search.candidates() if ranks != given and search.failure(ranks) is None), None)
    if found is None:
        return None
    for place, rank in enumerate(given):
        kept = (*found[:place], rank, *found[place + 1 :])
        if kept != found and search.failure(kept) is None:
            found = kept
    wrong = [place for place, rank in enumerate(given) if rank != found[place] and not search.fits_all(rank)]
    if not wrong or not all(search.is_callers(search.tensors[place]) for place in wrong):
        return None
    return WrongRankError([search.diagnostic(found, place) for place in wrong])


class _Search:
    """Lowers a definition with other ranks of its tensor arguments."""

    def __init__(self, definition: Definition, signature: Signature, lower: Callable[[Signature], object]) -> None:
        self._definition = definition
        self._arguments = signature.arguments
        self._signature = replace(signature, out=())
        self._lower = lower
        self._known: dict[Ranks, CompileError | None] = {}
        pairs = [*_tensors(definition, signature.arguments)]
        self.tensors = [tensor for tensor, _ in pairs]
        self.given: Ranks = tuple(kind.axes for _, kind in pairs)

    def candidates(self) -> Iterator[Ranks]:
        """Yield the ranks to try: as the text says, with what it is silent of as it is given, or a number; or any."""
        wanted = _least(self._definition.source, self._definition.helpers)
        said = [wanted.get(each.parameter, 0) - (each.item is not None) for each in self.tensors]
        yield tuple(rank if rank > 0 else given for rank, given in zip(said, self.given, strict=True))
        yield tuple(max(rank, 0) for rank in said)
        if branches_by_rank(self._definition.source.node):
            singles = [
                (*self.given[:place], rank, *self.given[place + 1 :])
                for place in range(len(self.given))
                for rank in range(5)
            ]
            yield from singles[:TRIES]

    def failure(self, ranks: Ranks) -> CompileError | None:
        """Return why the function cannot be lowered with these ranks; None where it can."""
        if ranks not in self._known:
            try:
                self._lower(self._with(ranks))
                self._known[ranks] = None
            except CompileError as wrong:
                self._known[ranks] = wrong
        return self._known[ranks]

    def fits_all(self, rank: int) -> bool:
        """Return whether all tensors may have one rank: then it is not wrong by itself."""
        return self.failure((rank,) * len(self.given)) is None

    def is_callers(self, tensor: _Tensor) -> bool:
        """Return whether the caller gives a tensor: a piece of a function is also given what the function computes."""
        whole = self._definition.whole
        return whole is None or tensor.parameter in _arguments(whole).keys() - rebound_names(whole.node)

    def diagnostic(self, found: Ranks, place: int) -> Diagnostic:
        """Return what is told of one tensor; the others have ranks that go together."""
        tensor, given = self.tensors[place], self.given[place]
        replaced = {rank: (*found[:place], rank, *found[place + 1 :]) for rank in {*range(MOST + 1), given}}
        fitting = [rank for rank in range(MOST + 1) if self.failure(replaced[rank]) is None]
        wrong = self.failure(replaced[given])
        because = wrong.diagnostics[0] if wrong is not None else None
        whole = self._definition.whole
        loc = tensor.loc if whole is None else whole.location(_arguments(whole)[tensor.parameter])
        return _diagnostic(self._definition.name, tensor.name, given, fitting or [found[place]], loc, because)

    def _with(self, ranks: Ranks) -> Signature:
        arguments: list[ArgumentType] = [*self._arguments]
        for tensor, rank, given in zip(self.tensors, ranks, self.given, strict=True):
            if rank == given:
                continue
            match arguments[tensor.position]:
                case TensorType() as kind:
                    arguments[tensor.position] = _of_rank(kind, rank)
                case TensorListType(items=items) if tensor.item is not None:
                    changed = _of_rank(items[tensor.item], rank)
                    items = (*items[: tensor.item], changed, *items[tensor.item + 1 :])
                    arguments[tensor.position] = TensorListType(items)
                case _:
                    pass
        return replace(self._signature, arguments=tuple(arguments))


def _of_rank(kind: TensorType, rank: int) -> TensorType:
    return type_of(kind.element, rank, dense=True)


def _tensors(definition: Definition, arguments: Sequence[ArgumentType]) -> Iterator[tuple[_Tensor, TensorType]]:
    for position, (declared, kind) in enumerate(zip(definition.parameters, arguments, strict=True)):
        if isinstance(kind, TensorType):
            yield _Tensor(position, None, declared.name, declared.loc), kind
        elif isinstance(kind, TensorListType):
            for item, each in enumerate(kind.items):
                yield _Tensor(position, item, declared.name, declared.loc), each


def _arguments(source: SourceFunction) -> dict[str, ast.arg]:
    """Return the parameters of a function by their names."""
    arguments = source.node.args
    return {item.arg: item for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}


def _diagnostic(
    operator: str, name: str, given: int, fitting: Sequence[int], loc: Location, because: Diagnostic | None
) -> Diagnostic:
    """Return what is told of an argument; `because` is what is wrong in the function with the rank that was given."""
    open_ended = len(fitting) > 2 and fitting[-1] == MOST
    wanted = f"at least {fitting[0]}" if open_ended else " or ".join(map(str, fitting))
    message = f"argument `{name}` of {operator} has {dimensions(given)}, and {wanted} {_are(wanted)} needed"
    advice = f"pass a tensor with {wanted} dimension{'' if wanted == '1' else 's'}"
    if because is not None and because.help.startswith("write"):
        advice += f"; for one with {given}, {because.help}"
    notes = () if because is None else (Note(because.loc, because.message),)
    return Diagnostic(code="BW301", message=message, loc=loc, notes=notes, help=advice)


def _are(wanted: str) -> str:
    return "is" if wanted == "1" else "are"


# ---------------------------------------------------------------- what the text says


def _least(
    source: SourceFunction,
    helpers: Mapping[types.FunctionType, SourceFunction],
    seen: tuple[SourceFunction, ...] = (),
) -> dict[str, int]:
    """Return the ranks that names have at least, also by loops over them and by the helpers that they are given to."""
    local = source.local

    def is_like(node: ast.Call) -> bool:
        name = intrinsic(resolve(node.func, source.captured, local))
        return is_pointwise(name) or is_without_formula(name)

    ranks = dict(least_ranks(source.node, is_like))
    for node in ast.walk(source.node):
        if isinstance(node, ast.Call):
            for inner in meant(node, source, helpers):
                if inner in seen:
                    continue
                below = _least(inner, helpers, (*seen, source))
                names = [*_arguments(inner)][inner.is_method :]
                given = [*zip(names, node.args, strict=False), *((item.arg, item.value) for item in node.keywords)]
                for parameter, argument in given:
                    _add(ranks, argument, below.get(parameter or "", 0))
    loops = [node for node in ast.walk(source.node) if isinstance(node, ast.For | ast.comprehension)]
    for node in reversed(loops):
        for target, over in sources(node.target, node.iter, source.captured, local):
            _add(ranks, over, 1 + (ranks.get(target.id, 0) if isinstance(target, ast.Name) else 0))
    return ranks


def _add(ranks: dict[str, int], node: ast.expr, rank: int) -> None:
    """Note that `x[i]` has a rank of at least so much."""
    name, count = indexed(node)
    if name is not None and rank:
        ranks[name] = max(ranks.get(name, 0), rank + count)


def refuse_unpacked(definition: Definition, ranks: Mapping[str, int]) -> None:
    """Raise what says so where `B, C, T = x.shape` asks an argument for another rank than it has."""
    source = definition.source
    given = {name: rank for name, rank in ranks.items() if name not in rebound_names(source.node)}
    for node in source.node.body:
        if not isinstance(node, ast.Assign) or any(isinstance(item, ast.Starred) for item in ast.walk(node)):
            continue
        for name, rank in asked(node):
            if given.get(name, rank) != rank:
                place = source.location(_arguments(source)[name])
                message = f"{rank} names are assigned, but there are {given[name]} values"
                because = Diagnostic(code="BW101", message=message, loc=source.location(node))
                raise WrongRankError(_diagnostic(definition.name, name, given[name], [rank], place, because))
