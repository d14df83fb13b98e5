"""The record of what statements may do."""

import pickle

from brickwork.ir import build
from brickwork.ir.dtypes import FLOAT32, INT64
from brickwork.ir.effects import NOTHING, Effects, effects
from brickwork.ir.nodes import (
    Assign,
    Break,
    Check,
    Continue,
    Draw,
    Failure,
    FailureKind,
    For,
    If,
    Load,
    Local,
    Random,
    Rebind,
    Store,
    Symbol,
    Tensor,
    TensorType,
    While,
)

S, I, FLAG = (Symbol(name, number, INT64) for number, name in enumerate("sih"))
X, Y, Z = (Tensor(name, number, TensorType(FLOAT32, 1)) for number, name in enumerate("xyz"))
ZERO, HOLDS = build.integer(0), build.read(FLAG)
CHECK = Check(condition=HOLDS, failure=Failure(FailureKind.INDEX, ""))


def loaded(tensor):
    return Load(tensor=tensor, indices=(build.read(I),), access=0, dtype=FLOAT32)


def loop(*body):
    return For(index=I, start=ZERO, stop=build.read(S), body=body)


def test_statements_do_what_stands_in_them():
    random = Random(draw=Draw.INTEGER, key=ZERO, counter=ZERO, extra=ZERO, site=0, dtype=INT64)
    assert effects(()) == effects(ZERO) == NOTHING
    assert effects(Assign(symbol=S, value=random)) == Effects(draws=True, assigns=frozenset({S}))
    assert effects(Store(tensor=Y, indices=(ZERO,), value=loaded(X), access=1)) == Effects(
        loads=frozenset({X}), stores=frozenset({Y}), reads=frozenset({I})
    )
    assert effects((Local(tensor=Z), CHECK)) == Effects(
        fails=frozenset({FailureKind.INDEX}), declares=frozenset({Z}), reads=frozenset({FLAG})
    )
    exchange = Rebind(targets=(X, Y), sources=(Y, X))
    assert effects(exchange) == Effects(rebinds=frozenset({X, Y}))
    stored = Store(tensor=Z, indices=(ZERO,), value=ZERO, access=1)
    assert effects((exchange, stored)).changes == {X, Y, Z}
    whole = effects(loop(If(condition=HOLDS, then=(exchange,), otherwise=(CHECK,))))
    assert (whole.rebinds, whole.fails) == ({X, Y}, {FailureKind.INDEX})
    assert (whole.assigns, whole.reads) == ({I}, {S, FLAG})
    assert (whole.depth, effects(loop(CHECK, loop())).depth) == (1, 2)
    assert not whole.whiles


def test_a_jump_leaves_the_loop_around_and_no_other():
    for jump, breaks in ((Break(), True), (Continue(), False)):
        branch = If(condition=HOLDS, then=(), otherwise=(jump,))
        for statement in (jump, branch):
            found = effects(statement)
            assert (found.leaves, found.breaks, found.continues, found.jumps) == (True, breaks, not breaks, True)
        for around in (loop(branch), While(prelude=(branch,), condition=HOLDS, body=(jump,))):
            found = effects((CHECK, around))
            assert (found.leaves, found.jumps, found.loops) == (False, True, True)
            assert found.whiles is isinstance(around, While)


def test_what_is_remembered_is_no_part_of_a_node():
    statement, other = loop(CHECK), loop(CHECK)
    assert effects(statement) is effects(statement)
    assert statement == other
    assert pickle.loads(pickle.dumps(statement)) == statement  # ours


def test_values_are_made_of_variables_and_sizes():
    random = Random(draw=Draw.INTEGER, key=ZERO, counter=ZERO, extra=ZERO, site=0, dtype=INT64)
    value = build.add(build.read(S), build.mul(build.size(X, 0), build.read(I)))
    assert effects(value).made_of({S, I})
    assert effects(value).made_of({S: 1, I: 2})
    assert not effects(value).made_of({S})
    assert not effects(loaded(X)).made_of({I})
    assert not effects(random).made_of({S})
