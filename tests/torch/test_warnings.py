"""Warnings: that each is given once, at the user's line, also from a warm cache, and how to silence them."""

import types
import warnings
from collections.abc import Callable

import pytest
import torch

import brickwork as bw
from brickwork.config import config
from brickwork.runtime import cache

SCALE = 2.0
settings = types.ModuleType("settings")
settings.__dict__["FACTOR"] = 2.0


def weight(v: torch.Tensor) -> torch.Tensor:
    return v + 1


def heavier(v: torch.Tensor) -> torch.Tensor:
    return v + 2


def weighted(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = SCALE * weight(x[i]) * settings.FACTOR
    return out


def running(x: torch.Tensor) -> None:
    for i in range(1, x.shape[0]):
        x[i] -= x[i - 1] * x[i - 1]


def told(action: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return [each for each in found if issubclass(each.category, bw.BrickworkWarning)]


@pytest.fixture
def operator(request: pytest.FixtureRequest) -> bw.Op:
    return bw.op(f"bwwarn::w{abs(hash(request.node.name))}")(weighted)


@pytest.mark.parametrize(
    ("space", "name", "new"),
    [
        (globals(), "SCALE", 3.0),
        (globals(), "weight", heavier),
        (vars(settings), "FACTOR", 5.0),
    ],
    ids=["global", "helper", "module"],
)
def test_a_rebound_name_is_told_once(
    operator: bw.Op, monkeypatch: pytest.MonkeyPatch, space: dict[str, object], name: str, new: object
) -> None:
    x = torch.ones(3)
    assert not told(lambda: operator(x))
    monkeypatch.setitem(space, name, new)
    (found,) = told(lambda: operator(x))
    assert found.filename == __file__
    assert f"{name}` was rebound" in str(found.message)
    assert torch.equal(operator(x), torch.full((3,), 8.0))  # as it was decorated
    assert not told(lambda: operator(x))
    again = bw.op(operator.name)(weighted)
    assert not told(lambda: again(x))
    assert torch.equal(again(x), weighted(x))  # decorated again, it is compiled again


def test_a_call_with_names_is_told_at_the_same_line(operator: bw.Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    (found,) = told(lambda: operator(x=torch.ones(3)))
    assert found.filename == __file__


def test_what_means_the_same_is_not_told(operator: bw.Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SCALE", float("2.0"))
    monkeypatch.setitem(globals(), "weight", types.FunctionType(weight.__code__.replace(co_firstlineno=9), globals()))
    assert not told(lambda: operator(torch.ones(3)))


def test_a_closure_is_watched() -> None:
    by = 2.0

    def shifted(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] + by
        return out

    operator = bw.op("bwwarn::shifted")(shifted)
    assert not told(lambda: operator(torch.ones(3)))
    by = 3.0
    assert len(told(lambda: operator(torch.ones(3)))) == 1


class Settings:
    """What operators read in the tests below."""

    factor = 2.0

    def __init__(self) -> None:
        self.weights = [1.0, [2.0, 3.0]]
        self.offset = 1.0

    @property
    def computed(self) -> float:
        raise AssertionError("code of the user's is not run by a check")


def test_what_is_changed_in_place_is_told() -> None:
    items, pairs, long, held = [1.0, 2.0], ((1.0, [2.0]), 3.0), [0.0] * 1000, Settings()

    def mixed(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * items[0] + pairs[0][1][0] + long[7] + held.offset + held.weights[1][0] * Settings.factor
        return out

    def change(name: str) -> None:
        match name:
            case "items":
                items.append(3.0)
            case "pairs":
                pairs[0][1][0] = 5.0
            case "long":
                long[7] = 1.0
            case "held.weights":
                held.weights[1] = [torch.ones(2), 3.0]
            case "held.offset":
                held.offset = 5.0
            case _:
                Settings.factor = 3.0

    x = torch.ones(3)
    for name in ("items", "pairs", "long", "held.weights", "held.offset", "Settings.factor"):
        operator = bw.op(f"bwwarn::in_place_{name.replace('.', '_')}")(mixed)
        before = operator(x)
        assert not told(lambda operator=operator: [operator(x) for _ in range(40)])
        change(name)
        (found,) = told(lambda operator=operator: [operator(x) for _ in range(40)])
        assert found.filename == __file__
        assert f"was decorated before `{name}` was changed, and keeps the old value" in str(found.message)
        assert torch.equal(operator(x), before)
        again = bw.op(operator.name)(mixed) if name != "held.weights" else operator
        held.weights[1] = [2.0, 3.0]
        assert not told(lambda again=again: [again(x) for _ in range(40)])
    held.offset = torch.ones(2)  # type: ignore[assignment]  # what cannot be compared is another value
    Settings.factor = 2.0


def test_traced_code_is_not_stopped_by_it(operator: bw.Op) -> None:
    compiled = torch.compile(lambda x: operator(x), fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(torch.ones(3)), operator(torch.ones(3)))


def test_a_loop_in_one_thread_of_a_gpu_is_told_once_and_again_from_a_warm_cache() -> None:
    for _ in range(2):
        cache.forget()
        operator = bw.op("bwwarn::running")(running)
        (found,) = told(lambda: operator.warmup(torch.ones(3), device="sm_90"))
        text = str(found.message)
        assert "one thread of the GPU runs the loop over 'i' in order, because 'x', assigned at line" in text
        assert (found.filename, found.lineno) == (__file__, operator.definition.loc.line + 1)
        assert not told(lambda: operator.warmup(torch.ones(3, dtype=torch.float64), device="sm_90"))
    assert operator.stats().specialisations[0].cached


def test_loops_in_parallel_and_short_ones_are_not_told(operator: bw.Op) -> None:
    def short(x: torch.Tensor) -> None:
        for i in range(1, 9):
            x[i] = x[i - 1]

    assert not told(lambda: operator.warmup(torch.ones(9), device="sm_90"))
    assert not told(lambda: bw.op("bwwarn::short")(short).warmup(torch.ones(9), device="sm_90"))


def test_warnings_can_be_silenced_and_made_errors(operator: bw.Op, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with config.override(warn=0):
        assert not told(lambda: operator(torch.ones(3)))
        assert not told(lambda: bw.op("bwwarn::silent")(running).warmup(torch.ones(3), device="sm_90"))
    other = bw.op("bwwarn::strict")(running)
    with warnings.catch_warnings():
        warnings.simplefilter("error", bw.BrickworkWarning)
        with pytest.raises(bw.BrickworkWarning):
            other.warmup(torch.ones(3), device="sm_90")
        other.warmup(torch.ones(3), device="sm_90")


def test_a_fraction_that_is_dropped_is_told_once_for_a_place() -> None:
    def counted(x: torch.Tensor, k: float) -> torch.Tensor:
        out = torch.empty(x.shape, dtype=torch.int32)
        for i in range(len(x)):
            out[i] = x[i] * k
            out[i] = int(x[i] * k)
            out[i] = torch.floor(x[i])
            out[i] = 2.0
            out[i] = 2.5
            out[i] += 0.5
        return out

    operator = bw.op("bwwarn::counted")(counted)
    first = operator.definition.loc.line + 2
    found = told(lambda: operator(torch.ones(3), 2.0))
    assert [each.lineno - first for each in found] == [1, 5, 6]
    assert all("BW404" in str(each.message) and each.filename == __file__ for each in found)
    assert not told(lambda: operator(torch.ones(3, dtype=torch.float64, requires_grad=True), 3.0))
    whole = bw.op("bwwarn::whole")(counted)
    assert len(told(lambda: whole(torch.ones(3, dtype=torch.int64), 2.0))) == 3
