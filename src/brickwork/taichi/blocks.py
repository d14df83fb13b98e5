"""Blocks of threads that wait for one another: `ti.simt.block.sync` and `SharedArray`, as loops.

The parallel loop becomes one over blocks. What stands between two waits becomes a loop over the threads of a block, so
that a wait is where one loop ends and the next begins. A variable that lives across a wait has an element per thread.
Invariant: loops and branches around a wait have the same bounds and conditions for all threads of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.dtypes import INT64
from brickwork.ir.nodes import Assign, Expression, For, If, Load, Local, Random, Statement, Store, Symbol, Tensor, While
from brickwork.ir.walk import assigned_symbols, read_symbols, statements, walk
from brickwork.taichi.builder import Builder
from brickwork.taichi.errors import TaichiCompilationError, unsupported
from brickwork.taichi.scalars import ScalarType
from brickwork.taichi.values import current
from brickwork.taichi.views import View
from brickwork.transform.tensors import dense_type

THREADS = 128
"""Threads of a block where `loop_config` says nothing, as in Taichi."""


def shared_array(shape: tuple[int, ...], kind: ScalarType) -> View:
    """Return an array that the threads of a block share."""
    builder = current()
    if builder.shared is None:
        raise TaichiCompilationError("SharedArray is for the outermost loop of a kernel")
    number = builder.symbol("shared", INT64).number
    tensor = Tensor("shared", number, dense_type(kind.value, len(shape)), shape)
    builder.shared.append(tensor)
    return View(tensor, kind, len(shape), (), sizes=shape)


def sync() -> None:
    """Let each thread of a block wait for the others."""
    builder = current()
    if builder.shared is None:
        raise TaichiCompilationError("block.sync is for the outermost loop of a kernel")
    builder.emit(Assign(symbol=builder.waits, value=build.integer(0), loc=builder.loc))


class Blocks:
    """Writes a loop over `total` iterations, each run by a thread, as loops over blocks and over their threads."""

    def __init__(self, builder: Builder, flat: Symbol, total: Expression, loc: Location, threads: int) -> None:
        """Take the number of the iteration, which the body reads, and how many threads a block has."""
        self.builder, self.flat, self.total, self.loc = builder, flat, total, loc
        self.threads = threads
        self.block = builder.new_index("block")
        builder.fixed.discard(flat)  # it is a variable here
        self.claimed = False
        self.again: list[Statement] = []
        """What each loop over threads computes anew: numbers that depend on the iteration alone."""
        self.kept: dict[Symbol, Tensor] = {}
        """Variables that live across a wait, each with an element per thread."""

    def written(self, body: Sequence[Statement], *, claimed: bool) -> list[Statement]:
        """Return the loops."""
        self.claimed = claimed
        rest = self._computed_anew(body)
        runs = self._runs(rest)
        self._keep_across(runs, rest)
        blocks = build.apply(
            "floordiv", build.add(self.total, build.integer(self.threads - 1)), build.integer(self.threads)
        )
        shared: list[Tensor] = [*(self.builder.shared or ()), *self.kept.values()]
        inside: list[Statement] = [Local(tensor=tensor, loc=self.loc) for tensor in shared]
        inside += self._iteration(build.integer(0))
        inside += self._phases(rest)
        stop = self.builder.bound_of(blocks)
        loop = For(
            index=self.block, start=build.integer(0), stop=stop, body=tuple(inside), claimed=claimed, loc=self.loc
        )
        return [loop]

    # ------------------------------------------------------------ what is cut where

    def _waits(self, node: Statement) -> bool:
        return any(isinstance(each, Assign) and each.symbol == self.builder.waits for each in statements(node))

    def _is_wait(self, node: Statement) -> bool:
        return isinstance(node, Assign) and node.symbol == self.builder.waits

    def _computed_anew(self, body: Sequence[Statement]) -> list[Statement]:
        """Take the assignments at the top that read no element; return the rest."""
        counts: dict[Symbol, int] = {}
        for node in statements(tuple(body)):
            if isinstance(node, Assign):
                counts[node.symbol] = counts.get(node.symbol, 0) + 1
        known = {self.flat}
        changing = {symbol for symbol in counts if symbol not in known}
        rest: list[Statement] = []
        for node in body:
            pure = isinstance(node, Assign) and not any(isinstance(each, Load | Random) for each in walk(node.value))
            if (
                isinstance(node, Assign)
                and pure
                and counts[node.symbol] == 1
                and not self._is_wait(node)
                and not read_symbols(node.value) & changing
            ):
                self.again.append(node)
                changing.discard(node.symbol)
            else:
                rest.append(node)
        return rest

    def _runs(self, body: Sequence[Statement]) -> list[list[Statement]]:
        """Return the statements between waits, in order, those in loops and branches too."""
        found: list[list[Statement]] = [[]]
        for node in body:
            if self._is_wait(node):
                found.append([])
            elif self._waits(node):
                for inner in self._inner(node):
                    found += self._runs(inner)
                found.append([])
            else:
                found[-1].append(node)
        return [each for each in found if each]

    @staticmethod
    def _inner(node: Statement) -> list[Sequence[Statement]]:
        if isinstance(node, For):
            return [node.body]
        if isinstance(node, If):
            return [node.then, node.otherwise]
        raise unsupported("block.sync in a `while` loop")

    def _keep_across(self, runs: list[list[Statement]], body: Sequence[Statement]) -> None:
        """Note the variables that one run sets and another one, or a loop around, reads."""
        again = {node.symbol for node in self.again if isinstance(node, Assign)}
        around = [each for each in statements(tuple(body)) if isinstance(each, For | If) and self._waits(each)]
        headers = read_symbols([each for node in around for each in _header(node)])
        for number, run in enumerate(runs):
            for symbol in sorted(assigned_symbols(run) - again, key=lambda each: each.number):
                others = any(symbol in read_symbols(other) for place, other in enumerate(runs) if place != number)
                if (others or symbol in headers) and symbol not in self.kept:
                    kind = dense_type(symbol.dtype, 1)
                    number_of = self.builder.symbol("kept", INT64).number
                    self.kept[symbol] = Tensor(symbol.name, number_of, kind, (self.threads,))

    def _apart(self, run: Sequence[Statement]) -> bool:
        """Return whether no shared array is both read and written between two waits."""
        nodes = [*walk(tuple(run))]
        loaded = {each.tensor for each in nodes if isinstance(each, Load)}
        stored = {each.tensor for each in nodes if isinstance(each, Store)}
        return self.claimed and not any(tensor in loaded for tensor in stored if tensor.is_local)

    # ------------------------------------------------------------ what is written

    def _iteration(self, thread: Expression) -> list[Statement]:
        """Return what makes the numbers that depend on the iteration alone."""
        place = build.add(build.mul(build.read(self.block), build.integer(self.threads)), thread)
        return [Assign(symbol=self.flat, value=place, loc=self.loc), *self.again]

    def _phases(self, body: Sequence[Statement]) -> list[Statement]:
        result: list[Statement] = []
        run: list[Statement] = []
        for node in body:
            if not self._waits(node):
                run.append(node)
                continue
            result += self._over_threads(run)
            run = []
            if not self._is_wait(node):
                result += self._around(node)
        return result + self._over_threads(run)

    def _around(self, node: Statement) -> list[Statement]:
        """Return a loop or a branch with waits in it."""
        zero = (build.integer(0),)
        first: list[Statement] = [
            Assign(symbol=symbol, value=self.builder.load(tensor, zero, symbol.dtype), loc=self.loc)
            for symbol, tensor in self.kept.items()
            if symbol in read_symbols(_header(node))
        ]
        if isinstance(node, For):
            return [*first, replace(node, body=tuple(self._phases(node.body)))]
        if isinstance(node, If):
            then, otherwise = (tuple(self._phases(each)) for each in (node.then, node.otherwise))
            return [*first, replace(node, then=then, otherwise=otherwise)]
        raise unsupported("block.sync in a `while` loop")

    def _over_threads(self, run: list[Statement]) -> list[Statement]:
        """Return a loop over threads.

        It is claimed as the source claims it, but where threads read and write one shared array without a wait between.
        """
        if not run:
            return []
        thread = self.builder.new_index("thread")
        place = (build.read(thread),)
        read, assigned = read_symbols(run), assigned_symbols(run)
        body: list[Statement] = []
        for symbol, tensor in self.kept.items():
            if symbol in read and not _sets_first(run, symbol):
                value = self.builder.load(tensor, place, symbol.dtype)
                body.append(Assign(symbol=symbol, value=value, loc=self.loc))
        body += run
        for symbol, tensor in self.kept.items():
            if symbol in assigned:
                access, value = self.builder.access(), build.read(symbol)
                body.append(Store(tensor=tensor, indices=place, value=value, access=access, loc=self.loc))
        here = build.apply("lt", build.read(self.flat), self.total)
        guarded = If(condition=here, then=tuple(body), loc=self.loc)
        inside = (*self._iteration(build.read(thread)), guarded)
        stop = build.integer(self.threads)
        return [
            For(index=thread, start=build.integer(0), stop=stop, body=inside, claimed=self._apart(run), loc=self.loc)
        ]


def _header(node: Statement) -> list[Expression]:
    """Return what a loop or a branch asks before it runs."""
    if isinstance(node, For):
        return [node.start, node.stop]
    return [node.condition] if isinstance(node, If | While) else []


def _sets_first(run: Sequence[Statement], symbol: Symbol) -> bool:
    """Return whether a run sets a variable before anything in it reads it."""
    for node in run:
        if isinstance(node, Assign) and node.symbol == symbol:
            return symbol not in read_symbols(node.value)
        if symbol in read_symbols(node) or symbol in assigned_symbols(node):
            return False
    return False
