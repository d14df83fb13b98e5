"""Loops of kernels: over ranges, products, fields and arrays. Those at the top of a kernel claim to be parallel."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from brickwork.diagnostics.location import Location
from brickwork.ir import build
from brickwork.ir.nodes import Expression, For, Symbol
from brickwork.taichi.arithmetic import lift, type_of
from brickwork.taichi.blocks import THREADS, Blocks
from brickwork.taichi.errors import TaichiCompilationError, TaichiSyntaxError, TaichiTypeError
from brickwork.taichi.expressions import known_items
from brickwork.taichi.loops import Grouped, Range, ndrange
from brickwork.taichi.matrix import made
from brickwork.taichi.scalars import i32, join
from brickwork.taichi.statements import Statements
from brickwork.taichi.values import LoopIndex, Scalar
from brickwork.taichi.views import over


class Iteration(Statements):
    """One function that is compiled, loops and all."""

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise TaichiSyntaxError("'else' clause for 'for' not supported in Taichi kernels")
        if self._is_static(node.iter):
            items = self.expression(node.iter)
            if isinstance(items, Scalar):
                raise TaichiTypeError("a static loop runs over what is known while the kernel is compiled")
            self.unrolled(node, _static_items(items))
            return
        serialize, self.builder.serialize = self.builder.serialize, False
        block_dim, self.builder.block_dim = self.builder.block_dim, 0
        items = self.expression(node.iter)
        if isinstance(items, list | tuple | range | zip | enumerate | dict):
            raise TaichiSyntaxError("a loop over what Python knows is unrolled: write `ti.static(...)` around it")
        over_fields = not isinstance(items, Range | ndrange | Grouped)
        axes, kinds, grouped = self._axes(items)
        names = self._names(node.target, len(axes), grouped=grouped, product=not over_fields)
        top = self.builder.depth == 0 and not serialize
        loc = self.source.location(node)
        if (loc.line, loc.column) in self.builder.serial:
            top = False
        self._nest(node, axes, kinds, names, grouped=grouped, top=top, loc=loc, threads=block_dim or THREADS)
        self._leave_further()

    # ------------------------------------------------------------ what a loop runs over

    def _axes(self, items: Any) -> tuple[list[tuple[Expression, Expression]], list[Any], bool]:
        """Return where the indices begin and end, their types, and whether they are one vector."""
        grouped = isinstance(items, Grouped)
        what = items.over if grouped else items
        if isinstance(what, Range):
            kind = join(type_of(what.start), type_of(what.stop))
            kind = i32 if kind.is_real else kind
            return [(_whole(what.start), _whole(what.stop))], [kind], grouped
        if isinstance(what, ndrange):
            pairs = [(_whole(lift(start)), _whole(lift(stop))) for start, stop in what.bounds]
            return pairs, [i32] * len(pairs), grouped
        view = over(what)
        return view.extents(), [i32] * view.ndim, grouped

    def _names(self, target: ast.expr, count: int, *, grouped: bool, product: bool) -> list[str]:
        names = [target] if isinstance(target, ast.Name) else getattr(target, "elts", [])
        if not names or not all(isinstance(each, ast.Name) for each in names):
            raise TaichiSyntaxError("the variable of a loop must be a name")
        found = [each.id for each in names]
        for name in found:
            if self.scope.holds(name) and name != "_":
                raise TaichiSyntaxError(f"Loop variable '{name}' has been previously defined: give it another name")
        if len(found) != (1 if grouped else count) and not (len(found) == 1 and count == 0):
            what = "Ndrange for loop with number of the loop variables not equal to the dimension of the ndrange"
            said = f"{what} is not supported" if product else "Number of loop variables does not match the axes"
            raise TaichiSyntaxError(f"{said}: {len(found)} variables for {count} axes")
        return found

    # ------------------------------------------------------------ the loops themselves

    def _nest(
        self, node: ast.For, axes: Sequence[tuple[Expression, Expression]], kinds: Sequence[Any], names: list[str], *,
        grouped: bool, top: bool, loc: Location, threads: int,
    ) -> None:  # fmt: skip
        builder = self.builder
        bounds = [(builder.bound_of(start), builder.bound_of(stop)) for start, stop in axes]
        in_blocks = top and _waits(node)
        flat = in_blocks or (len(axes) > 1 and _leaves(node))
        run = [self._flat(bounds)] if flat else bounds
        own = [builder.new_index("flat" if flat else names[min(number, len(names) - 1)]) for number in range(len(run))]
        before = builder.in_order, builder.shared, builder.loops
        builder.in_order, builder.shared, builder.loops = False, [] if in_blocks else builder.shared, [*builder.loops]
        with self.scope.block(), self._loop("parallel" if top else "for"), builder.inside() as body:
            builder.depth += len(run) - 1
            for index, (start, _) in zip(own, run, strict=True):
                builder.loops.append(build.sub(build.read(index), start))
            values = [LoopIndex(build.read(index), kind, index=True) for index, kind in zip(own, kinds, strict=False)]
            values = self._unflattened(own[0], bounds, kinds) if flat else values
            self._bind(names, values, grouped=grouped)
            self.body(node.body)
            builder.depth -= len(run) - 1
        claimed = top and not builder.in_order
        if in_blocks:
            builder.block += Blocks(builder, own[0], run[0][1], loc, threads).written(body, claimed=claimed)
        else:
            for index, (start, stop) in reversed([*zip(own, run, strict=True)]):
                body = [For(index=index, start=start, stop=stop, body=tuple(body), claimed=claimed, loc=loc)]
            builder.block += body
        in_order = before[0] or (builder.in_order and not top)
        builder.in_order, builder.shared, builder.loops = in_order, *before[1:]

    @staticmethod
    def _flat(bounds: Sequence[tuple[Expression, Expression]]) -> tuple[Expression, Expression]:
        """Return the bounds of one loop over the product of all axes."""
        return build.integer(0), build.product([build.iterations(start, stop) for start, stop in bounds])

    def _unflattened(
        self, index: Symbol, bounds: Sequence[tuple[Expression, Expression]], kinds: Sequence[Any]
    ) -> list[LoopIndex]:
        """Return the index of each axis, of the one of the product."""
        rest: Expression = build.read(index)
        values: list[LoopIndex] = []
        for place, (start, stop) in enumerate(reversed(bounds)):
            length = build.iterations(start, stop)
            own = rest if place == len(bounds) - 1 else build.apply("mod", rest, length)
            kept = self.builder.keep(build.add(own, start))
            values.insert(0, LoopIndex(kept, kinds[len(bounds) - 1 - place], index=True))
            rest = build.apply("floordiv", rest, length)
        return values

    def _bind(self, names: list[str], values: list[LoopIndex], *, grouped: bool) -> None:
        if grouped:
            self.scope.bind(names[0], made(values, (len(values),), i32))
            return
        if len(names) == 1 and len(values) != 1:
            if not values:
                self.scope.bind(names[0], made([], (0,), i32))
                return
            self.scope.bind(names[0], made(values, (len(values),), i32))
            return
        for name, value in zip(names, values, strict=True):
            self.scope.bind(name, value)


def _whole(bound: Scalar) -> Expression:
    """Return a bound as a whole number."""
    if bound.type.is_real:
        return build.cast(bound.value, build.INT64)
    return build.cast(bound.compared, build.INT64)


def _static_items(items: Any) -> list[Any]:
    if isinstance(items, Range):
        start, stop = items.start.ir, items.stop.ir
        if not isinstance(start, build.Constant) or not isinstance(stop, build.Constant):
            raise TaichiCompilationError("a static range must be known while the kernel is compiled")
        return [*range(int(start.value), int(stop.value))]
    return known_items(items)


def _waits(node: ast.For) -> bool:
    """Return whether the threads of a block wait for one another, or share an array, in a loop."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Attribute)]
    return any(
        each.attr == "SharedArray" or (each.attr == "sync" and ast.unparse(each.value).endswith("block"))
        for each in names
    )


def _leaves(node: ast.For) -> bool:
    """Return whether a loop is left by a `break` of its own, or by a `return`."""
    if any(isinstance(each, ast.Return) for each in ast.walk(node)):
        return True
    waiting: list[ast.AST] = [*node.body]
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Break):
            return True
        if not isinstance(each, ast.For | ast.While):
            waiting += ast.iter_child_nodes(each)
    return False
