"""`op.tune`: what is measured, what is kept, and that no bit of a result changes."""

import pytest
import torch

import brickwork as bw
from brickwork.pytorch.tune import GAIN, ROUNDS, in_turn

OPTIMISED = True


def across(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.new_empty((x.shape[1], x.shape[0]))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j] * y[i, j] + 0.1
    return out


def sums(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = x.new_empty(x.shape[0])
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s += x[i, j] * y[i, j]
        out[i] = s
    return out


def added(x: torch.Tensor, y: torch.Tensor) -> None:
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += 1.5 * y[i, j]


def pair(*shape):
    generator = torch.Generator().manual_seed(7)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def last_is_fastest(calls):
    return [1.0 / (place + 1) for place, _ in enumerate(calls)]


@pytest.fixture
def cache(tmp_path):
    with bw.config.override(cache_dir=str(tmp_path)):
        yield


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("function", [across, sums, added])
def test_calls_of_these_sizes_run_by_the_fastest_schedule_with_the_same_bits(function):
    operator = bw.op(function)
    x, y = pair(20, 30)

    def left(by, *arguments):
        given = [item.clone() for item in arguments]
        result = by(*given)
        return given if result is None else [result]

    before = left(operator, x, y)
    found = operator._tuned((x, y), {}, last_is_fastest)
    *_, last = found.seconds
    assert last
    assert found.chosen == last
    assert found.sizes == ((20, 30), (20, 30))
    assert operator.explain(x, y).endswith("\n  ".join(("the same bits:", *last.splitlines())))
    assert "op.tune" not in operator.explain(*pair(20, 31))
    (code,) = operator._tuner.for_sizes(found.signature)
    assert code.stages["schedule"].startswith(last)
    for now, then in zip(left(operator, x, y), before, strict=True):
        assert torch.equal(now, then)
    for size in ((20, 31), (1, 1), (0, 3)):
        for now, then in zip(left(operator, *pair(*size)), left(operator.python, *pair(*size)), strict=True):
            torch.testing.assert_close(now, then)


@pytest.mark.usefixtures("cache")
def test_code_for_some_sizes_takes_no_other_call():
    operator = bw.op(across)
    found = operator._tuned(pair(20, 30), {}, last_is_fastest)
    (code,) = operator._tuner.for_sizes(found.signature)
    gate = operator._registration.gates["default"]
    gate.clear()
    gate.add(code.code, code.description)
    before = len(operator.stats().specialisations)
    operator(*pair(20, 30))
    assert len(operator.stats().specialisations) == before
    torch.testing.assert_close(operator(*pair(20, 31)), operator.python(*pair(20, 31)))


@pytest.mark.usefixtures("cache")
def test_what_was_found_is_kept_for_the_next_definition():
    found = bw.op(across)._tuned(pair(20, 30), {}, last_is_fastest)
    again = bw.op(across)
    assert "op.tune" in again.explain(*pair(20, 30))
    (code,) = again._tuner.for_sizes(found.signature)
    assert code.stages["schedule"].startswith(found.chosen)
    again._tuned(pair(20, 30), {}, lambda calls: [1.0 for _ in calls])
    assert "op.tune" not in again.explain(*pair(20, 30))


@pytest.mark.usefixtures("cache")
def test_a_little_faster_is_not_enough():
    found = bw.op(across)._tuned(pair(6, 7), {}, lambda calls: [1.0, *(1.0 - GAIN / 2 for _ in calls[1:])])
    assert len(found.seconds) > 1
    assert found.chosen == ""
    assert "*  1000000.0 us  the default" in str(found)


@pytest.mark.usefixtures("cache")
def test_it_measures():
    found = bw.op(across).tune(*pair(40, 50))
    assert all(0 < seconds < 10 for seconds in found.seconds.values())
    assert found.chosen in found.seconds


@pytest.mark.usefixtures("cache")
def test_what_the_operator_stores_into_is_copied():
    x, y = pair(5, 6)
    before = x.clone()
    bw.op(added)._tuned((x, y), {}, last_is_fastest)
    assert torch.equal(x, before)


def test_times_are_the_least_of_turns():
    now = 0.0
    turns = {"a": 0, "b": 0}

    def clock():
        return now

    def call(name, usual):
        def run():
            nonlocal now
            turns[name] += 1
            now += usual if turns[name] % 3 == 0 else 4 * usual

        return run

    assert in_turn([call("a", 1.0), call("b", 2.0)], clock) == pytest.approx([1.0, 2.0])
    assert turns == {"a": ROUNDS + 2, "b": ROUNDS + 2}


def in_python(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.sort(x)[0]
    for i in range(x.shape[0]):
        z[i, 0] += y[i, 0]
    return z


@pytest.mark.parametrize(
    ("operator", "named", "reason"),
    [
        (lambda: bw.op(in_python), {}, "its host part runs in Python"),
        (lambda: bw.op(schedule="bind(i, pool)")(across), {}, "it was given a schedule"),
        (lambda: bw.op(across), {"out": torch.empty(4, 3)}, "without out="),
        (lambda: bw.op(across), {"y": torch.empty(3, 4, device="meta")}, "elsewhere"),
    ],
)
def test_what_cannot_be_tuned_is_refused(operator, named, reason):
    x, y = pair(3, 4)
    with pytest.raises(ValueError, match=reason):
        operator().tune(x, **{"y": y, **named})
