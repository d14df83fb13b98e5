"""Iterations of a grid that share most of their work run together, and compute once what does not vary along them."""

import math
from dataclasses import replace

import pytest
import torch

import brickwork as bw
from brickwork.ir.build import apply, integer, read
from brickwork.ir.dtypes import INT64
from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Apply, Check, Constant, Continue, For, If, Load, Read, Role, Size, Store
from brickwork.ir.signature import Signature
from brickwork.ir.walk import rewrite, statements, walk
from brickwork.transform.schedule.shared_work import _is_known, _is_quotient
from brickwork.transform.verbs.varying import varying
from brickwork.transform.versions import SHARED
from brickwork.transform.without_continue import without_continue
from support.lowering import argument_type, memory, nested
from support.scheduling import GPU, kernel_of, loops_of
from support.shared import define, lower, schedule_program

Tensor = torch.Tensor


def deformed(x: Tensor, offset: Tensor, groups: int) -> Tensor:
    C, W = x.shape
    out = torch.zeros(C, W)
    for c in range(C):
        g = c // (C // groups)
        for w in range(W):
            u = w + offset[g, w] * 0.5
            left = math.floor(u)
            if left < 0 or left >= W - 1:
                continue
            out[c, w] = (u - left) * x[c, left] + (1.0 - (u - left)) * x[c, left + 1]
    return out


def looked_up(x: Tensor, index: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], index.shape[0])
    for c in range(x.shape[0]):
        for n in range(index.shape[0]):
            s = 0.0
            for k in range(index.shape[1]):
                s += x[c, index[n, k]] * math.exp(float(k))
            out[c, n] = s
    return out


def rows(count, width):
    return [[float((3 * k + 5 * j) % 11 - 4) for j in range(width)] for k in range(count)]


def pieces(function, *arguments, threads=1):
    """Return the program of a call, and as it is launched on a GPU with so few threads."""
    types = tuple(map(argument_type, arguments))
    program = lower(define(function), Signature(types, device="cuda", narrow=True, aligned=True))
    return program, schedule_program(program, replace(GPU, threads=threads))


def shared(kernels):
    return [node for node in walk(kernels.body) if isinstance(node, For) and node.index.name == "c_block"]


@pytest.mark.parametrize(
    ("channels", "groups"), [(8, 2), (8, 1), (9, 1), (6, 2), (6, 3), (4, 4), (3, 1), (12, 1), (16, 4)]
)
def test_places_are_computed_once_for_channels_of_a_group(channels, groups):
    given = [memory(rows(channels, 7)), memory(rows(groups, 7)), groups]
    program, (launched, _) = pieces(deformed, *given)
    assert nested(run_program(launched, given)[0]) == nested(run_program(program, given)[0])
    (nest,) = shared(launched)
    names = [node.operator.name for node in walk(nest) if isinstance(node, Apply)]
    stores = [node for node in walk(nest) if isinstance(node, Store)]
    assert (names.count("floor"), len(stores), sum(isinstance(node, Load) for node in walk(nest))) == (1, 4, 9)


def holds(version, channels, width, groups):
    """Whether the conditions of a version hold, by folding."""
    values = {"x": (channels, width), "out": (channels, width), "offset": (9, width)}

    def visit(node):
        match node:
            case Size(tensor=tensor, axis=axis):
                return integer(values[tensor.name][axis])
            case Read():
                return integer(groups)
            case Apply(operator=operator, operands=operands):
                return apply(operator.name, *operands)
            case _:
                return node

    found = [rewrite(each, visit) for each in version.conditions]
    assert all(isinstance(each, Constant) for each in found)
    return all(each.value for each in found)


def test_groups_are_positive_multiples():
    _, (_, (scheduled,)) = pieces(deformed, memory(rows(8, 7)), memory(rows(9, 7)), 2)
    (version,) = [each for each in scheduled.versions if each.name == SHARED]
    found = {groups: holds(version, 8, 7, groups) for groups in (-8, -4, -2, -1, 0, 1, 2, 3, 4, 8, 9)}
    assert {groups for groups, is_one in found.items() if is_one} == {1, 2}


def from_one(x: Tensor, offset: Tensor, groups: int) -> Tensor:
    out = torch.zeros(x.shape[0], x.shape[1])
    for c in range(1, x.shape[0]):
        for w in range(x.shape[1]):
            out[c, w] = x[c, w] * math.sin(math.exp(math.cos(math.tan(offset[0, w])))) + offset[c // groups, w] + c // 4
    return out


def of_elements(x: Tensor, offset: Tensor, groups: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], x.shape[1])
    for c in range(x.shape[0]):
        for w in range(x.shape[1]):
            out[c, w] = x[c, w] * math.sin(math.exp(math.cos(offset[0, w]))) + offset[c // groups[w % 2], w]
    return out


def of_one_element(x: Tensor, offset: Tensor, groups: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], x.shape[1])
    for c in range(x.shape[0]):
        for w in range(x.shape[1]):
            out[c, w] = x[c, w] * math.sin(math.exp(math.cos(offset[0, w]))) + c // groups[0]
    return out


def of_the_inner_index(x: Tensor, offset: Tensor, groups: int) -> Tensor:
    out = torch.zeros(x.shape[0], x.shape[1])
    for c in range(x.shape[0]):
        for w in range(x.shape[1]):
            part = w + groups
            out[c, w] = x[c, w] * math.sin(math.exp(math.cos(offset[0, w]))) + offset[c // part, w // groups] + w // 4
    return out


def remainders(x: Tensor, offset: Tensor, groups: int) -> Tensor:
    out = torch.zeros(x.shape[0], x.shape[1])
    for c in range(x.shape[0]):
        for w in range(x.shape[1]):
            out[c, w] = (
                x[c, w] * math.sin(math.exp(math.cos(offset[0, w]))) + (c + groups) + c % groups + c // 8 + c // -4
            )
    return out


@pytest.mark.parametrize("function", [from_one, of_elements, of_one_element, of_the_inner_index, remainders])
def test_what_is_no_group_is_computed_for_each(function):
    groups = memory([4, 8], INT64) if function in {of_elements, of_one_element} else 4
    given = [memory(rows(13, 9)), memory(rows(9, 9)), groups]
    program, (launched, (scheduled,)) = pieces(function, *given)
    assert SHARED in [each.name for each in scheduled.versions]
    assert nested(run_program(launched, given)[0]) == nested(run_program(program, given)[0])


def test_a_group_is_a_quotient_by_what_the_host_knows():
    loop = loops_of(kernel_of(of_one_element, memory(rows(13, 9)), memory(rows(9, 9)), memory([4, 8], INT64)))["c"]
    index, size = read(loop.index), next(node for node in walk(loop) if isinstance(node, Size))
    element = next(node for node in walk(loop) if isinstance(node, Load))
    assert _is_known(size, frozenset((loop.index,)))
    assert not _is_known(element, frozenset())
    assert not _is_known(apply("add", index, integer(1)), frozenset((loop.index,)))
    names = ("floordiv", "mod", "mul")
    assert [_is_quotient(apply(name, index, integer(4)), loop) for name in names] == [True, False, False]
    assert not _is_quotient(apply("floordiv", apply("mul", index, integer(3)), integer(4)), loop)
    assert not _is_quotient(apply("floordiv", index, integer(4)), replace(loop, start=integer(1)))


@pytest.mark.parametrize("groups", [-2, 0, 9])
def test_what_divides_places_may_be_any_number(groups):
    given = [memory(rows(8, 7)), memory(rows(9, 7)), groups]
    program, (launched, _) = pieces(deformed, *given)
    found = []
    for each in (program, launched):
        try:
            found.append(nested(run_program(each, given)[0]))
        except (ZeroDivisionError, IndexError) as error:
            found.append(type(error))
    assert found[0] == found[1]


def test_iterations_that_may_fail_run_together_and_fail_in_any_order():
    given = [memory(rows(8, 5)), memory([[0, 4, -1], [2, -5, 3]], INT64)]
    program, (launched, _) = pieces(looked_up, *given)
    (nest,) = shared(launched)
    assert sum(isinstance(node, Check) for node in walk(nest)) == 1
    assert nested(run_program(launched, given)[0]) == nested(run_program(program, given)[0])
    given[1] = memory([[0, 4, -1], [2, -6, 3]], INT64)
    with pytest.raises(IndexError, match="index -6 is out of bounds"):
        run_program(launched, given)


def test_threads_lie_along_places_that_elements_say():
    given = [memory(rows(8, 5)), memory([[0, 4, -1], [2, -5, 3]], INT64)]
    _, (launched, _) = pieces(looked_up, *given)
    loops = [node for node in walk(launched) if isinstance(node, For) and node.role is Role.PARALLEL]
    assert {node.across for node in loops} == {0}


def test_too_few_iterations_are_for_a_thread_each():
    given = [memory(rows(8, 7)), memory(rows(1, 7)), 1]
    _, (_, (scheduled,)) = pieces(deformed, *given, threads=14)
    (version,) = [each for each in scheduled.versions if each.name == SHARED]
    limits = [text for text in map(str, version.conditions) if "value=56" in text]
    assert len(limits) == 1


def scaled(x: Tensor, factor: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], x.shape[1])
    for c in range(x.shape[0]):
        for n in range(x.shape[1]):
            out[c, n] = x[c, n] * factor[n] + 1.0
    return out


def apart(x: Tensor, factor: Tensor) -> Tensor:
    out = torch.zeros(x.shape[0], x.shape[1])
    for c in range(x.shape[0]):
        for n in range(x.shape[1]):
            out[c, n] = math.exp(x[c, n]) * math.sin(x[c, n]) + factor[n]
    return out


@pytest.mark.parametrize("function", [scaled, apart])
def test_what_is_mostly_an_iterations_own_is_for_a_thread_each(function):
    _, (_, (scheduled,)) = pieces(function, memory(rows(8, 8)), memory([1.0] * 8))
    assert SHARED not in [each.name for each in scheduled.versions]


# ---------------------------------------------------------------- what varies


def many(x: Tensor, y: Tensor, n: Tensor, m: int) -> None:
    for c in range(8):
        branch, own_branch, turns, ended = 0.0, 0.0, 0, 0
        same = m * 2
        own = c * 2
        half = own // 4
        group, pair, odd = c // 8, c // 2, c // 6
        stored, read = y[m], x[m]
        drawn = bw.rand()
        if m > 1:
            branch = 1.0
        if c > 1:
            own_branch = 1.0
        total = 0.0
        later = 1.0
        for k in range(m):
            total += x[k]
            later += own
        for k in range(c):
            turns = 1
        for k in range(m):
            ended = 1
            if x[k] > 0.0:
                break
        w = m
        while w > 0:
            w -= 1
        noted = branch + own_branch + turns + ended
        y[c] = half + noted + drawn + stored + read + total + later + same + group + pair + odd


def test_what_depends_on_an_iteration_varies():
    loop = loops_of(kernel_of(many, memory([1.0]), memory([1.0]), memory([1], INT64), 3))["c"]
    assigned = {"same", "own", "group", "pair", "odd", "stored", "read", "drawn", "branch", "own_branch", "total"}
    assigned |= {"half", "later", "turns", "ended", "w"}
    names = {symbol.name for symbol in varying(loop, 4).symbols}
    assert assigned - names == {"same", "group", "read", "branch", "total"}
    assert assigned - {symbol.name for symbol in varying(loop, 2).symbols} == {
        *("same", "group", "pair", "odd", "read", "branch", "total")
    }
    assert "group" in {symbol.name for symbol in varying(loop).symbols}
    begun = replace(loop, start=replace(loop.stop, value=1))
    assert "group" in {symbol.name for symbol in varying(begun, 4).symbols}


# ---------------------------------------------------------------- continue


def skipping(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(n)
    for i in range(n):
        if x[i] < 0.0:
            y[i] = 1.0
            continue
        if x[i] > 3.0:
            if x[i] > 4.0:
                y[i] = 5.0
            else:
                y[i] = 7.0
                continue
            y[i] += 2.0
        else:
            continue
        y[i] += x[i]
    return y


def nothing_follows(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(n)
    for i in range(n):
        y[i] = x[i]
        if x[i] < 0.0:
            continue
    return y


def in_a_while(x: Tensor, n: int) -> Tensor:
    y = torch.zeros(n)
    i = 0
    while i < n:
        i += 1
        if x[i - 1] < 0.0:
            continue
        y[i - 1] = 2.0
    return y


def test_what_may_be_no_element_is_read_where_nothing_follows():
    program = lower(define(nothing_follows), Signature(tuple(map(argument_type, [memory([-1.0, 2.0]), 2]))))
    (launch,) = [node for node in program.body if type(node).__name__ == "Launch"]
    assert any(isinstance(node, If) for node in statements(without_continue(launch.kernel.body)))


@pytest.mark.parametrize("function", [skipping, nothing_follows, in_a_while])
def test_iterations_that_skip_their_end_have_it_in_a_branch(function):
    given = [memory([-1.0, 2.0, 3.5, 4.5, -2.0, 8.0]), 6]
    program = lower(define(function), Signature(tuple(map(argument_type, given))))
    (launch,) = [node for node in program.body if type(node).__name__ == "Launch"]
    body = without_continue(launch.kernel.body)
    assert not any(isinstance(node, Continue) for node in statements(body))
    place = program.body.index(launch)
    changed = replace(launch, kernel=replace(launch.kernel, body=body))
    made = replace(program, body=(*program.body[:place], changed, *program.body[place + 1 :]))
    assert nested(run_program(made, given)[0]) == nested(run_program(program, given)[0])
