"""What loops have to be like for their steps to be kept, or their tapes to be short: each condition, taken away."""

from dataclasses import replace

import pytest
import torch

from brickwork.ir.interpret import run_program
from brickwork.ir.nodes import Allocate, Launch, While
from brickwork.ir.parse import parse_program
from brickwork.ir.verify import verify_program
from brickwork.ir.walk import walk
from brickwork.transform.autodiff.kept_steps import keep_steps
from brickwork.transform.autodiff.shorter_tapes import shorten_tapes
from brickwork.transform.canonical.local_copies import without_local_copies
from brickwork.transform.scratch import names_of
from support.gradients import kernel_of, numbers
from support.tensors import to_memory

AGAIN = """\
x_t1 = tensor('x', 1, float64, 1, contiguous=True, unit_axis=0)
y_t2 = tensor('y', 2, float64, 1, contiguous=True, unit_axis=0)
m_t3 = tensor('m', 3, int64, 1, contiguous=True, unit_axis=0)
a_t4 = tensor('a', 4, float64, 1, contiguous=True, unit_axis=0, sizes=(3,))
b_t5 = tensor('b', 5, float64, 1, contiguous=True, unit_axis=0, sizes=(3,))
r_4 = symbol('r', 4, int64)
turned_5 = symbol('turned', 5, int64)
s_6 = symbol('s', 6, float64)
u_7 = symbol('u', 7, int64)
q_8 = symbol('q', 8, float64)
n_9 = symbol('n', 9, int64)
z_10 = symbol('z', 10, float64)
k_11 = symbol('k', 11, int64)
k_12 = symbol('k', 12, int64)
k_13 = symbol('k', 13, int64)
k_14 = symbol('k', 14, int64)
back_15 = symbol('back', 15, int64)
w_16 = symbol('w', 16, float64)
c_t6 = tensor('c', 6, float64, 1, contiguous=True, unit_axis=0, sizes=(3,))
program('again', mutated(x_t1), mutated(y_t2), mutated(m_t3))
with kernel('again', tensors=(x_t1, y_t2, m_t3,), scalars=(), facts=()):
    local(b_t5)
    for k_11 in range(0, 3):
        b_t5[k_11,] = float64(0.5) @ 1
    q_8 = float64(0.5)
    z_10 = float64(0.0)
    w_16 = float64(0.0)
    s_6 = float64(2.0)
    n_9 = (m_t3[0,] @ 2)
    local(a_t4)
    for k_13 in range(0, 3):
        a_t4[k_13,] = float64(1.5) @ 3
    for turned_5 in range(0, n_9):
        s_6 = float64(1.0)
        for k_12 in range(0, 3):
            a_t4[k_12,] = (b_t5[k_12,] @ 4) @ 5
        z_10 = q_8
        for u_7 in range(0, sub(sub(n_9, 1), turned_5)):
            s_6 = add(mul(s_6, (x_t1[u_7,] @ 6)), add(q_8, (a_t4[mod(u_7, 3),] @ 7)))
            a_t4[mod(u_7, 3),] = mul(s_6, float64(0.5)) @ 8
        y_t2[turned_5,] = add(add(s_6, add(z_10, w_16)), (a_t4[mod(turned_5, 3),] @ 9)) @ 10
return ()
"""

NOT_AGAIN = {
    "a claim": ("for turned_5 in range(0, n_9)", "for turned_5 in range(0, n_9, claimed=True)"),
    "steps that are left": (
        "            a_t4[mod(u_7, 3),] =",
        "            if lt(s_6, float64(0.0)):\n                break\n            a_t4[mod(u_7, 3),] =",
    ),
    "a loop that is left": (
        "        z_10 = q_8",
        "        z_10 = q_8\n        if lt(z_10, float64(0.0)):\n            break",
    ),
    "a loop that goes on": (
        "        z_10 = q_8",
        "        z_10 = q_8\n        if lt(z_10, float64(0.0)):\n            continue",
    ),
    "an exchange": ("        z_10 = q_8", "        z_10 = q_8\n        rebind((x_t1, y_t2,), (y_t2, x_t1,))"),
    "a variable that goes on": ("        s_6 = float64(1.0)\n", ""),
    "a variable that a branch sets": (
        "        s_6 = float64(1.0)\n",
        "        if lt(z_10, float64(1.0)):\n            s_6 = float64(1.0)\n",
    ),
    "a list that goes on": ("        for k_12 in range(0, 3):\n            a_t4[k_12,] = (b_t5[k_12,] @ 4) @ 5\n", ""),
    "a list that a part is set of": ("for k_12 in range(0, 3)", "for k_12 in range(0, 2)"),
    "elements that change": ("(x_t1[u_7,] @ 6)", "(y_t2[u_7,] @ 6)"),
    "a variable that changes": ("        z_10 = q_8", "        z_10 = q_8\n        q_8 = add(q_8, float64(1.0))"),
    "a beginning that changes": ("        s_6 = float64(1.0)", "        s_6 = z_10"),
    "a beginning in order": ("        s_6 = float64(1.0)", "        s_6 = to_float64(turned_5)"),
    "a list's beginning that changes": ("        z_10 = q_8", "        z_10 = q_8\n        b_t5[0,] = z_10 @ 11"),
    "the beginning read": ("        z_10 = q_8", "        z_10 = s_6"),
    "the list's beginning read": ("        z_10 = q_8", "        z_10 = (a_t4[0,] @ 11)"),
    "a variable that steps set": (
        "            a_t4[mod(u_7, 3),] =",
        "            w_16 = s_6\n            a_t4[mod(u_7, 3),] =",
    ),
    "another start": ("range(0, sub(sub", "range(1, sub(sub"),
    "another stop": ("sub(sub(n_9, 1), turned_5)", "sub(sub(n_9, 2), turned_5)"),
    "another stop with a name": [
        ("        for u_7 in range(0, sub(sub(n_9, 1), turned_5)):", "        for u_7 in range(0, back_15):"),
        ("        z_10 = q_8", "        z_10 = q_8\n        back_15 = sub(sub(n_9, 2), turned_5)"),
    ],
}


def parsed(text):
    program = parse_program(text)
    verify_program(program)
    return program


def changed_again(text):
    """Return a program and the one that keeps steps."""
    program = parsed(text)
    launch = next(node for node in walk(program) if isinstance(node, Launch))
    kernel = replace(launch.kernel, body=keep_steps(launch.kernel.body, names_of(program)))
    return program, replace(program, body=tuple(replace(n, kernel=kernel) if n is launch else n for n in program.body))


def results(program, *arguments):
    memories = [to_memory(item.clone()) for item in arguments]
    run_program(program, memories)
    return [list(memory.data) for memory in memories]


STILL_AGAIN = {
    "as it is": [],
    "a stop with a name": [
        ("        for u_7 in range(0, sub(sub(n_9, 1), turned_5)):", "        for u_7 in range(0, back_15):"),
        ("        z_10 = q_8", "        z_10 = q_8\n        back_15 = sub(sub(n_9, 1), turned_5)"),
    ],
    "a list of each iteration": [
        (
            "        z_10 = q_8",
            (
                "        z_10 = q_8\n        local(c_t6)\n"
                "        for k_14 in range(0, 3):\n            c_t6[k_14,] = q_8 @ 20"
            ),
        ),
        (
            "            a_t4[mod(u_7, 3),] =",
            "            c_t6[mod(u_7, 3),] = s_6 @ 21\n            a_t4[mod(u_7, 3),] =",
        ),
        ("add(add(s_6, add", "add(add((c_t6[1,] @ 22), add"),
    ],
    "a start": [
        ("for turned_5 in range(0, n_9)", "for turned_5 in range(2, n_9)"),
        ("range(0, sub(sub(n_9, 1), turned_5))", "range(2, sub(sub(add(2, n_9), 1), turned_5))"),
    ],
}


def replaced(text, changes):
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("what", STILL_AGAIN)
@pytest.mark.parametrize("length", [0, 1, 2, 31, 32, 33, 70])
def test_the_form_keeps_steps(length, what):
    program, other = changed_again(replaced(AGAIN, STILL_AGAIN[what]))
    verify_program(other)
    assert any(isinstance(node, While) for node in walk(other))
    given = numbers(70), numbers(70), torch.tensor([length])
    assert results(program, *given) == results(other, *given)


@pytest.mark.parametrize("what", NOT_AGAIN)
def test_what_has_another_form_stays(what):
    changes = NOT_AGAIN[what]
    program, other = changed_again(replaced(AGAIN, changes if isinstance(changes, list) else [changes]))
    assert other == program


TAPED = """\
x_t1 = tensor('x', 1, float64, 1, contiguous=True, unit_axis=0)
y_t2 = tensor('y', 2, float64, 1, contiguous=True, unit_axis=0)
tape_t3 = tensor('tape', 3, float64, 3, contiguous=True, unit_axis=2)
a_t4 = tensor('a', 4, float64, 1, contiguous=True, unit_axis=0, sizes=(12,))
b_t5 = tensor('b', 5, float64, 1, contiguous=True, unit_axis=0, sizes=(12,))
more_t6 = tensor('more', 6, float64, 2, contiguous=True, unit_axis=1)
r_4 = symbol('r', 4, int64)
t_5 = symbol('t', 5, int64)
s_6 = symbol('s', 6, float64)
j_7 = symbol('j', 7, int64)
j_8 = symbol('j', 8, int64)
j_9 = symbol('j', 9, int64)
j_10 = symbol('j', 10, int64)
turned_11 = symbol('turned', 11, int64)
back_12 = symbol('back', 12, int64)
q_13 = symbol('q', 13, float64)
n_14 = symbol('n', 14, int64)
z_15 = symbol('z', 15, float64)
e_16 = symbol('e', 16, int64)
k_17 = symbol('k', 17, int64)
c_t7 = tensor('c', 7, float64, 1, contiguous=True, unit_axis=0, sizes=(2,))
m_t8 = tensor('m', 8, int64, 1, contiguous=True, unit_axis=0)
program('taped', tensor(x_t1), mutated(y_t2), tensor(m_t8), scalar(n_14))
allocate(tape_t3, 3, n_14, 12)
allocate(more_t6, 3, n_14)
with kernel('taped', tensors=(x_t1, y_t2, tape_t3, more_t6, m_t8,), scalars=(n_14,), facts=()):
    q_13 = float64(0.25)
    for r_4 in range(0, 3):
        e_16 = n_14
        local(a_t4)
        for j_7 in range(0, 12):
            a_t4[j_7,] = to_float64(r_4) @ 1
        s_6 = float64(0.5)
        for t_5 in range(0, e_16):
            for j_8 in range(0, 12):
                tape_t3[r_4, t_5, j_8] = (a_t4[j_8,] @ 2) @ 3
            more_t6[r_4, t_5] = s_6 @ 4
            local(c_t7)
            c_t7[0,] = (x_t1[t_5,] @ 5) @ 20
            s_6 = add(mul(s_6, float64(0.5)), (c_t7[0,] @ 21))
            for j_9 in range(0, 12):
                a_t4[j_9,] = add(mul((a_t4[j_9,] @ 6), q_13), mul(s_6, to_float64(j_9))) @ 7
        z_15 = s_6
        for turned_11 in range(0, e_16):
            back_12 = sub(sub(e_16, 1), turned_11)
            for j_10 in range(0, 12):
                z_15 = add(mul(z_15, float64(0.5)), (tape_t3[r_4, back_12, j_10] @ 8))
            y_t2[back_12,] = add((y_t2[back_12,] @ 9), mul(z_15, (more_t6[r_4, back_12] @ 10))) @ 11
return ()
"""

NOT_TAPED = {
    "a claim": ("for t_5 in range(0, e_16)", "for t_5 in range(0, e_16, claimed=True)"),
    "a claim on the way back": ("for turned_11 in range(0, e_16)", "for turned_11 in range(0, e_16, claimed=True)"),
    "steps that are left": (
        "            s_6 = add(mul",
        "            if lt(s_6, float64(-9.0)):\n                break\n            s_6 = add(mul",
    ),
    "a way back that is left": (
        "            back_12 =",
        "            if lt(z_15, float64(-9.0)):\n                break\n            back_12 =",
    ),
    "an exchange": ("            back_12 =", "            rebind((x_t1, y_t2,), (y_t2, x_t1,))\n            back_12 ="),
    "an exchange of steps": (
        "            s_6 = add(mul",
        "            rebind((x_t1, y_t2,), (y_t2, x_t1,))\n            s_6 = add(mul",
    ),
    "another length": ("        z_15 = s_6", "        z_15 = s_6\n        e_16 = sub(e_16, 0)"),
    "a result of the steps": (
        "            s_6 = add(mul",
        "            y_t2[t_5,] = s_6 @ 12\n            s_6 = add(mul",
    ),
    "elements that change": ("(x_t1[t_5,] @ 5)", "(y_t2[t_5,] @ 5)"),
    "elements of the tape": ("(x_t1[t_5,] @ 5)", "(more_t6[r_4, t_5] @ 5)"),
    "a variable that changes": ("        z_15 = s_6", "        z_15 = s_6\n        q_13 = mul(q_13, float64(0.5))"),
    "a tape of some steps": (
        "            more_t6[r_4, t_5] = s_6 @ 4",
        "            if lt(s_6, float64(0.0)):\n                more_t6[r_4, t_5] = s_6 @ 4",
    ),
    "a tape of a part": ("for j_8 in range(0, 12)", "for j_8 in range(0, 11)"),
    "a tape that is read elsewhere": ("        z_15 = s_6", "        z_15 = (more_t6[r_4, 0] @ 12)"),
    "a tape of another step": ("(more_t6[r_4, back_12] @ 10)", "(more_t6[r_4, turned_11] @ 10)"),
    "a tape of another iteration": ("(more_t6[r_4, back_12] @ 10)", "(more_t6[0, back_12] @ 10)"),
    "tapes of other iterations": ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[0, t_5] = s_6 @ 4"),
    "a tape of places that are read": ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[(m_t8[0,] @ 22), t_5] = s_6 @ 4"),
    "a tape of places that change": (
        "            more_t6[r_4, t_5] = s_6 @ 4",
        "            k_17 = sub(2, r_4)\n            more_t6[k_17, t_5] = s_6 @ 4",
    ),
    "a tape in turns": ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[r_4, sub(sub(e_16, 1), t_5)] = s_6 @ 4"),
    "another start": [
        ("for turned_11 in range(0, e_16)", "for turned_11 in range(1, e_16)"),
        ("back_12 = sub(sub(e_16, 1), turned_11)", "back_12 = sub(sub(add(1, e_16), 1), turned_11)"),
    ],
    "another stop": [
        ("for turned_11 in range(0, e_16)", "for turned_11 in range(0, n_14)"),
        ("back_12 = sub(sub(e_16, 1), turned_11)", "back_12 = sub(sub(n_14, 1), turned_11)"),
    ],
    "places that are read": [
        ("tape_t3[r_4, t_5, j_8]", "tape_t3[(m_t8[0,] @ 22), t_5, j_8]"),
        ("(tape_t3[r_4, back_12, j_10] @ 8)", "(tape_t3[(m_t8[0,] @ 22), back_12, j_10] @ 8)"),
        ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[(m_t8[0,] @ 22), t_5] = s_6 @ 4"),
        ("(more_t6[r_4, back_12] @ 10)", "(more_t6[(m_t8[0,] @ 22), back_12] @ 10)"),
    ],
    "places that steps set": [
        ("tape_t3[r_4, t_5, j_8]", "tape_t3[k_17, t_5, j_8]"),
        ("(tape_t3[r_4, back_12, j_10] @ 8)", "(tape_t3[k_17, back_12, j_10] @ 8)"),
        ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[k_17, t_5] = s_6 @ 4\n            k_17 = sub(2, k_17)"),
        ("(more_t6[r_4, back_12] @ 10)", "(more_t6[k_17, back_12] @ 10)"),
        ("        e_16 = n_14", "        e_16 = n_14\n        k_17 = r_4"),
    ],
    "places that change": [
        ("tape_t3[r_4, t_5, j_8]", "tape_t3[k_17, t_5, j_8]"),
        ("(tape_t3[r_4, back_12, j_10] @ 8)", "(tape_t3[k_17, back_12, j_10] @ 8)"),
        ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[k_17, t_5] = s_6 @ 4"),
        ("(more_t6[r_4, back_12] @ 10)", "(more_t6[k_17, back_12] @ 10)"),
        ("        e_16 = n_14", "        e_16 = n_14\n        k_17 = r_4"),
        ("        z_15 = s_6", "        z_15 = s_6\n        k_17 = sub(2, k_17)"),
    ],
    "a tape less two": ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[r_4, sub(t_5, 2)] = s_6 @ 4"),
    "a tape less two on the way back": ("(more_t6[r_4, back_12] @ 10)", "(more_t6[r_4, sub(back_12, 2)] @ 10)"),
    "a tape and two": ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[r_4, add(t_5, 2)] = s_6 @ 4"),
    "tapes and two": [
        ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[r_4, add(t_5, 2)] = s_6 @ 4"),
        ("(more_t6[r_4, back_12] @ 10)", "(more_t6[r_4, add(back_12, 2)] @ 10)"),
    ],
    "tapes from the end": [
        ("more_t6[r_4, t_5] = s_6 @ 4", "more_t6[r_4, sub(e_16, t_5)] = s_6 @ 4"),
        ("(more_t6[r_4, back_12] @ 10)", "(more_t6[r_4, sub(e_16, back_12)] @ 10)"),
    ],
    "a tape of a part from one on": ("for j_8 in range(0, 12)", "for j_8 in range(1, 12)"),
    "a tape that is turned": ("tape_t3[r_4, t_5, j_8]", "tape_t3[r_4, t_5, sub(11, j_8)]"),
    "a tape with more": (
        "            more_t6[r_4, t_5] = s_6 @ 4",
        "                q_13 = (a_t4[j_8,] @ 23)\n            more_t6[r_4, t_5] = s_6 @ 4",
    ),
    "a tape of as many as is known later": ("for j_8 in range(0, 12)", "for j_8 in range(0, n_14)"),
    "a way forwards": ("back_12 = sub(sub(e_16, 1), turned_11)", "back_12 = turned_11"),
}


STILL_TAPED = {
    "as it is": [],
    "a start": [
        ("for t_5 in range(0, e_16)", "for t_5 in range(1, e_16)"),
        ("for turned_11 in range(0, e_16)", "for turned_11 in range(1, e_16)"),
        ("back_12 = sub(sub(e_16, 1), turned_11)", "back_12 = sub(sub(add(1, e_16), 1), turned_11)"),
        ("tape_t3[r_4, t_5, j_8]", "tape_t3[r_4, sub(t_5, 1), j_8]"),
        ("(tape_t3[r_4, back_12, j_10] @ 8)", "(tape_t3[r_4, sub(back_12, 1), j_10] @ 8)"),
    ],
    "a step without a name": [
        ("(tape_t3[r_4, back_12, j_10] @ 8)", "(tape_t3[r_4, sub(sub(e_16, 1), turned_11), j_10] @ 8)")
    ],
}


@pytest.mark.parametrize("what", STILL_TAPED)
@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 33, 70])
def test_the_form_has_short_tapes(length, what):
    program = parsed(replaced(TAPED, STILL_TAPED[what]))
    other = shorten_tapes(program, names_of(program))
    verify_program(other)
    assert [len(node.sizes) for node in walk(other) if isinstance(node, Allocate)] == [2, 3]
    given = numbers(70), numbers(70), torch.tensor([0])
    found = [[*map(to_memory, (item.clone() for item in given)), length] for _ in range(2)]
    for memories, each in zip(found, (program, other), strict=True):
        run_program(each, memories)
    assert found[0][1].data == found[1][1].data


@pytest.mark.parametrize("what", NOT_TAPED)
def test_a_tape_of_another_form_stays(what):
    changes = NOT_TAPED[what]
    program = parsed(replaced(TAPED, changes if isinstance(changes, list) else [changes]))
    assert shorten_tapes(program, names_of(program)) == program


COPIES = """\
y_t2 = tensor('y', 2, float64, 1, contiguous=True, unit_axis=0)
a_t4 = tensor('a', 4, float64, 1, contiguous=True, unit_axis=0, sizes=(3,))
b_t5 = tensor('b', 5, float64, 1, contiguous=True, unit_axis=0, sizes=(3,))
i_1 = symbol('i', 1, int64)
i_2 = symbol('i', 2, int64)
i_3 = symbol('i', 3, int64)
s_4 = symbol('s', 4, float64)
program('copies', mutated(y_t2))
with kernel('copies', tensors=(y_t2,), scalars=(), facts=()):
    local(a_t4)
    for i_1 in range(0, 3):
        a_t4[i_1,] = (y_t2[i_1,] @ 1) @ 2
    local(b_t5)
    for i_2 in range(0, 3):
        b_t5[i_2,] = (a_t4[i_2,] @ 3) @ 4
    s_4 = (b_t5[0,] @ 5)
    for i_3 in range(0, 3):
        a_t4[i_3,] = (b_t5[i_3,] @ 6) @ 7
    y_t2[0,] = add((a_t4[2,] @ 8), s_4) @ 9
return ()
"""

NO_COPIES = {
    "one that changes": ("    s_4 = (b", "    a_t4[0,] = float64(1.0) @ 10\n    s_4 = (b"),
    "the other": ("    s_4 = (b", "    b_t5[0,] = float64(1.0) @ 10\n    s_4 = (b"),
    "another value": ("a_t4[i_3,] = (b_t5[i_3,] @ 6) @ 7", "a_t4[i_3,] = neg((b_t5[i_3,] @ 6)) @ 7"),
    "another element": ("(b_t5[i_3,] @ 6)", "(b_t5[sub(2, i_3),] @ 6)"),
    "a part": ("for i_3 in range(0, 3)", "for i_3 in range(0, 2)"),
    "a longer list": (
        "'b', 5, float64, 1, contiguous=True, unit_axis=0, sizes=(3,)",
        "'b', 5, float64, 1, contiguous=True, unit_axis=0, sizes=(4,)",
    ),
}


def test_a_copy_of_what_is_the_same_goes():
    body = kernel_of(parsed(COPIES)).body
    assert without_local_copies(body) == (*body[:5], *body[6:])


@pytest.mark.parametrize("what", NO_COPIES)
def test_other_copies_stay(what):
    old, new = NO_COPIES[what]
    assert COPIES.count(old) == 1
    body = kernel_of(parsed(COPIES.replace(old, new))).body
    assert without_local_copies(body) == body
