"""How much work deriving is, counted and not timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from brickwork.analysis.analyse import analyse
from brickwork.analysis.isl import Solver
from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT64, INT64
from brickwork.ir.nodes import (
    Allocate,
    Assign,
    Block,
    Check,
    Failure,
    FailureKind,
    For,
    If,
    Node,
    Program,
    Read,
    Rebind,
    Store,
    Symbol,
    Tensor,
    TensorParameter,
    TensorType,
    parameter_tensors,
)
from brickwork.ir.signature import Signature
from brickwork.ir.walk import walk
from brickwork.target.cpu import host_target
from brickwork.transform import derive
from brickwork.transform.canonical import dead
from brickwork.transform.derivation import Backward, Derived
from brickwork.transform.guard import guards
from brickwork.transform.tensors import without_tensors
from support.kernels_models import root_mean_square
from support.shared import define, schedule_program, verify_program
from support.tensors import argument_type


def numbers(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.float64)


def backward_of(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Derived, Signature]:
    """Return the gradient of a function with one result by all tensors, and its signature.

    The last argument is the gradient that is given.
    """
    definition = define(function)
    wanted = tuple(isinstance(item, torch.Tensor) for item in arguments[:-1])
    counts = tuple(int(item) for item in wanted)
    every = (True,) * len(wanted)
    made = Derived(definition, Backward(wanted), (True,), counts, every)
    return made, Signature(tuple(map(argument_type, arguments)))


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[Signature]:
    """The signatures that gradients are derived for, as the test goes on."""
    found: list[Signature] = []
    backward = derive.backward

    def counted(program: Any, wanted: Any, signature: Signature) -> Any:
        found.append(signature)
        return backward(program, wanted, signature)

    monkeypatch.setattr(derive, "backward", counted)
    return found


def test_a_program_is_derived_once(derived: list[Signature]) -> None:
    arguments = (numbers(2, 4, 3), numbers(3), numbers(2, 4, 3))
    made, signature = backward_of(root_mean_square, arguments)
    assert derive.elements_read(made, signature) == (True, True)
    derive.program_of(made, signature)
    again = Derived(made, Backward((True, True, True)), (True, True), (1, 1, 1), (True, True, True))
    types = tuple(map(argument_type, (*arguments, numbers(2, 4, 3), numbers(3))))
    derive.program_of(again, Signature(types))
    assert len(derived) == 2


def scaled(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * by[j]
    return out


def test_a_gradient_is_derived_once_for_all_layouts_of_what_is_given(derived: list[Signature]) -> None:
    made, dense = backward_of(scaled, (numbers(4, 3), numbers(3), numbers(4, 3)))
    made = replace(made, derivation=Backward((True, False)))
    assert derive.elements_read(made, dense) == (False, True)
    made = replace(made, read=(False, True))
    apart = argument_type(numbers(1, 1).expand(4, 3))
    laid = Signature((apart, dense.arguments[1], apart))
    program = derive.program_of(made, laid)
    assert len(derived) == 1
    verify_program(program)
    kinds = [item.tensor.type for item in program.parameters if isinstance(item, TensorParameter)]
    assert kinds == [*laid.arguments]
    assert not any(isinstance(node, Allocate) and node.like for node in walk(program))
    base = derive.program_of(made.base, Signature(laid.arguments[:2]))
    given = replace(laid, arguments=(*laid.arguments, dense.arguments[2]))
    whole = derive.derive(base, Backward((True, False), (True,)), given)
    assert program == without_result(whole)


def without_result(program: Program) -> Program | None:
    """Return a program of gradients without the result that it is given, which stands last."""
    return without_tensors(program, parameter_tensors(program.parameters)[-1:])


def test_a_gradient_that_reads_no_result_is_derived_once(derived: list[Signature]) -> None:
    made, plain = backward_of(scaled, (numbers(4, 3), numbers(3), numbers(4, 3)))
    given = replace(made, derivation=Backward((True, True), (True,)))
    assert derive.elements_read(given, replace(plain, arguments=(*plain.arguments, plain.arguments[2])))[2:] == (False,)
    program = derive.program_of(made, plain)
    verify_program(program)
    assert len(derived) == 1
    assert [item.name for item in parameter_tensors(program.parameters)] == ["x", "by", "grad_0"]
    names = {getattr(node, "tensor", None) for node in walk(program)}
    assert not any(isinstance(tensor, Tensor) and tensor.name.startswith("result") for tensor in names)


@pytest.mark.parametrize("kind", ["checked", "limited", "compared", "like", "moved", "elsewhere"])
def test_a_result_whose_sizes_are_asked_for_more_than_that_they_are_right_stays(kind: str) -> None:
    made, plain = backward_of(scaled, (numbers(4, 3), numbers(3), numbers(4, 3)))
    base = derive.program_of(made.base, Signature(plain.arguments[:2]))
    given = Signature((*plain.arguments, plain.arguments[2]))
    whole = derive.derive(base, Backward((True, True), (True,)), given)
    x, *_, result = parameter_tensors(whole.parameters)
    rows, columns = build.size(result, 0), build.size(result, 1)
    conditions = {
        "checked": build.apply("eq", rows, build.size(x, 0)),
        "limited": build.apply("lt", rows, build.integer(9)),
        "compared": build.apply("eq", rows, build.add(build.size(x, 1), columns)),
    }
    like = Tensor("like", 99, result.type)
    others = {
        "like": Allocate(tensor=like, sizes=(build.integer(2), build.integer(2)), like=result),
        "moved": Rebind(targets=(like, x), sources=(x, result)),
        "elsewhere": Rebind(targets=(like,), sources=(x,)),
    }
    failure = Failure(FailureKind.VALUE, "")
    added = Check(condition=conditions[kind], failure=failure) if kind in conditions else others[kind]
    found = without_result(replace(whole, body=(added, *whole.body)))
    plainly = without_result(whole)
    assert plainly is not None
    assert sum(isinstance(node, Check) for node in plainly.body) == 2
    kept = {"checked": plainly, "elsewhere": replace(plainly, body=(added, *plainly.body))}
    assert found == kept.get(kind)


def test_a_gradient_that_is_not_given_what_it_would_read_is_derived_without() -> None:
    made, plain = backward_of(root_mean_square, (numbers(2, 4, 3), numbers(3), numbers(2, 4, 3)))
    given = Signature((*plain.arguments, plain.arguments[2]))
    base = derive.program_of(made.base, Signature(plain.arguments[:2]))
    reading = derive.derive(base, Backward((True, True), (True,)), given)
    assert derive.loaded(reading)[-1] == (without_result(reading) is None)
    assert derive.loaded(derive.program_of(made, plain)) == (True, True, True)


def nest(depth: int) -> tuple[Block, Tensor]:
    """Return loops in one another around a store of a variable that each turn of each of them changes."""
    out = Tensor("out", 0, TensorType(FLOAT64, 0))
    total = Symbol("total", 0, FLOAT64)
    body: Block = (Store(tensor=out, indices=(), value=Read(symbol=total), access=0),)
    for level in range(depth):
        index = Symbol(f"i{level}", level + 1, INT64)
        more = Assign(symbol=total, value=build.add(Read(symbol=total), build.constant(1.0, FLOAT64)))
        body = (For(index=index, start=build.integer(0), stop=build.integer(3), body=(*body, more)),)
    return (Assign(symbol=total, value=build.constant(0.0, FLOAT64)), *body), out


def test_nests_are_gone_through_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    statement = dead._Cleaner.statement  # pyright: ignore[reportPrivateUsage]  # counted

    def counted(self: Any, node: Any, *more: Any) -> Any:
        seen.append(1)
        return statement(self, node, *more)

    monkeypatch.setattr(dead._Cleaner, "statement", counted)  # pyright: ignore[reportPrivateUsage]  # counted
    block, out = nest(10)
    assert dead.without_dead(block, (out,)) == block
    assert len(seen) < 300


def strided(x: torch.Tensor, w: torch.Tensor, stride: int, groups: int) -> torch.Tensor:
    """Divides by one argument that the host checks, and by one that the kernel does."""
    _channels, length = x.shape
    out = x.new_empty((w.shape[0], length // stride))
    for o in range(w.shape[0]):
        for t in range(length // stride):
            s = 0.0
            for c in range(w.shape[1]):
                for k in range(w.shape[2]):
                    u = t * stride + k
                    if 0 <= u < length:
                        s += w[o, c, k] * x[o // (w.shape[0] // groups), u]
            out[o, t] = s
    return out


def laid(tile: torch.Tensor, height: int, shift: int) -> torch.Tensor:
    """Needs limits of the integer arguments, which the derived host part checks."""
    out = tile.new_empty((height, 8))
    for i in range(height):
        y = i - shift
        for j in range(8):
            out[i, j] = tile[y - y // tile.shape[0] * tile.shape[0]] * j
    return out


def counted(program: Program, kind: type[Node]) -> int:
    return sum(isinstance(node, kind) for node in walk(program))


def test_loops_that_only_check_divisors_are_not_repeated() -> None:
    made, signature = backward_of(strided, (numbers(2, 9), numbers(4, 2, 3), 2, 2, numbers(4, 4)))
    program = derive.program_of(made, signature)
    assert counted(program, For) <= 21
    again = Derived(made, Backward((True, True, False, False, True)), (True, True), (1, 1, 0, 0, 1), (True,) * 5)
    types = (*signature.arguments, *map(argument_type, (numbers(2, 9), numbers(4, 2, 3))))
    assert counted(derive.program_of(again, Signature(types)), For) <= 60


def test_what_the_host_has_checked_has_no_second_body() -> None:
    made, signature = backward_of(laid, (numbers(4), 9, 2, numbers(9, 8)))
    program = derive.program_of(made, signature)
    assert not counted(program, If)
    _, (scheduled,) = schedule_program(program, host_target())
    checked = {node.condition for node in program.body if isinstance(node, Check)}
    assert guards(analyse(scheduled.source))
    assert not checked & {*guards(scheduled.analysis)}


def test_little_is_asked_of_isl(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    may_ask = Solver._may_ask  # pyright: ignore[reportPrivateUsage]  # counted

    def counted(self: Solver) -> Any:
        asked.append(1)
        return may_ask(self)

    monkeypatch.setattr(Solver, "_may_ask", counted)
    made, signature = backward_of(strided, (numbers(2, 9), numbers(4, 2, 3), 2, 2, numbers(4, 4)))
    program = derive.program_of(made, signature)
    assert len(asked) <= 4
    schedule_program(program, host_target())
    assert len(asked) <= 60
