"""What a user sees of a failure: the lines of the user's own files, and none of brickwork's."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import brickwork as bw
from brickwork.config import config

OPS: Any = torch.ops.bwtraceback
ANY = (ArithmeticError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError, bw.BrickworkError)
OWN = str(Path(bw.__file__).parent)


def neighbour(v: torch.Tensor, i: int) -> torch.Tensor:
    return v[i + 1]


@bw.op("bwtraceback::native")
def native(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = neighbour(x, i)
    return out


@bw.op("bwtraceback::hosted")
def hosted(x: torch.Tensor) -> torch.Tensor:
    out = torch.relu(x)
    for i in range(x.shape[0]):
        out[i] = neighbour(out, i)
    return out


@bw.op("bwtraceback::mistyped")
def mistyped(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i, 0] = x[i]
    return out


def frames(action: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the files and functions of the traceback that an action ends in, below the test's own."""
    with pytest.raises(ANY) as caught:
        action()
    found = [(frame.filename, frame.name) for frame in traceback.extract_tb(caught.value.__traceback__)]
    return found[found.index((__file__, "frames")) + 1 :]


CALLS: dict[str, Callable[[], object]] = {
    "a failed check": lambda: native(torch.ones(3)),
    "a refused type": lambda: mistyped(torch.ones(3)),
    "a wrong argument": lambda: native(3),
    "too many arguments": lambda: native(torch.ones(3), 1),
    "a wrong name": lambda: native(y=torch.ones(3)),
    "a gradient": lambda: native(torch.ones(3, requires_grad=True)),
    "an unknown type": lambda: native(torch.zeros(3, dtype=torch.complex32)),
    "a result of the wrong shape": lambda: native(torch.ones(3), out=torch.ones(4)),
    "a call through torch": lambda: OPS.native(torch.ones(3)),
    "warmup": lambda: mistyped.warmup(torch.ones(3)),
    "explain": lambda: mistyped.explain(torch.ones(3)),
    "inspect": lambda: mistyped.inspect("ir", torch.ones(3)),
    "no stage": lambda: native.inspect("ptx", torch.ones(3)),
    "a name": lambda: bw.op("nonsense"),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_frame_is_ours(name: str) -> None:
    found = frames(CALLS[name])
    assert found[0][1] == "<lambda>"
    assert not [file for file, _ in found if file.startswith(OWN)]


def test_decoration() -> None:
    def wrong(x: torch.Tensor):
        with x:
            pass

    assert len(frames(lambda: bw.op(wrong))) == 1
    assert len(frames(lambda: bw.op("bwtraceback::wrong")(wrong))) == 1


def test_a_host_part_in_python_shows_its_own_line() -> None:
    assert [name for _, name in frames(lambda: hosted(torch.ones(3)))] == ["<lambda>", "hosted"]
    assert [name for _, name in frames(lambda: OPS.hosted(torch.ones(3)))][-1] == "hosted"


def test_python_shows_the_lines_of_the_body() -> None:
    assert [name for _, name in frames(lambda: native.python(torch.ones(3)))] == ["<lambda>", "native", "neighbour"]


def test_all_frames_are_shown_on_demand() -> None:
    with config.override(frames=1):
        assert [file for file, _ in frames(CALLS["a failed check"]) if file.startswith(OWN)]


def test_a_failure_in_a_helper_names_its_callers() -> None:
    line = native.definition.source.node.lineno
    place = (
        rf"\(native, {__file__}:{neighbour.__code__.co_firstlineno + 1} in neighbour, called at {__file__}:{line + 3}\)"
    )
    with pytest.raises(IndexError, match=place):
        native(torch.ones(3))


def test_the_interpreter_says_the_same():
    with config.override(check="interpret"):
        checked = bw.op("bwtraceback::checked")(native.definition.source.function)
    said = []
    for operator in (native, checked):
        with pytest.raises(IndexError) as caught:
            operator(torch.ones(3))
        said.append(str(caught.value).replace("(native, ", "("))
    assert said[0] == said[1]
