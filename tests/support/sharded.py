"""Operators on DTensors: calls with their placements, and a program that runs them all on one machine of several.

torch.distributed.tensor is imported in functions: operators are defined before it is loaded, as in most programs.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import math
import multiprocessing
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import torch.distributed
from torch.distributed.device_mesh import init_device_mesh

import brickwork as bw
from brickwork.config import config
from brickwork.ops.timex import timex
from support.documents import ROOT, outputs, program
from support.quick_code import quick_code

GRADIENTS: Any = torch.autograd.grad
COMPILE: Any = attrgetter("compile")(torch)
BARRIER: Any = attrgetter("barrier")(torch.distributed)


@bw.op("bwsharded::product")
def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply two matrices."""
    m, n = a.shape
    assert b.shape[0] == n, "inner sizes differ"
    out = a.new_empty((m, b.shape[1]))
    for i in range(m):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(n):
                s += a[i, k] * b[k, j]
            out[i, j] = s
    return out


@bw.op("bwsharded::softmax")
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row."""
    m, n = x.shape
    out = torch.empty_like(x)
    for i in range(m):
        top = -math.inf
        for j in range(n):
            top = max(top, x[i, j])
        s = 0.0
        for j in range(n):
            s += math.exp(x[i, j] - top)
        for j in range(n):
            out[i, j] = math.exp(x[i, j] - top) / s
    return out


@bw.op("bwsharded::stencil")
def stencil(x: torch.Tensor) -> torch.Tensor:
    """Sum of the two neighbours in a column."""
    m, n = x.shape
    out = torch.zeros_like(x)
    for i in range(1, m - 1):
        for j in range(n):
            out[i, j] = x[i - 1, j] + x[i + 1, j]
    return out


@bw.op("bwsharded::mean")
def mean(x: torch.Tensor) -> torch.Tensor:
    """Mean of each column."""
    m, n = x.shape
    out = x.new_empty((n,))
    for j in range(n):
        s = 0.0
        for i in range(m):
            s += x[i, j]
        out[j] = s / m
    return out


@bw.op("bwsharded::sums")
def sums(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum of each column, halved, and of each row."""
    columns, rows = x.new_zeros((x.shape[1],)), x.new_zeros((x.shape[0],))
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            columns[j] += x[i, j]
            rows[i] += x[i, j]
    for j in range(x.shape[1]):
        columns[j] = columns[j] / 2
    return columns, rows


@bw.op("bwsharded::sum_from")
def sum_from(x: torch.Tensor, start: float) -> torch.Tensor:
    """Sum of each row, counted from `start`: the sum of the parts would count that more than once."""
    out = x.new_empty((x.shape[0],))
    for i in range(x.shape[0]):
        s = start
        for j in range(x.shape[1]):
            s += x[i, j]
        out[i] = s
    return out


@bw.op("bwsharded::add_into")
def add_into(x: torch.Tensor, y: torch.Tensor) -> None:
    """Add a matrix to another one in place."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += y[i, j]


@bw.op("bwsharded::shift_")
def shift_(x: torch.Tensor) -> None:
    """Move all elements of a matrix up by one row."""
    for i in range(x.shape[0] - 1):
        for j in range(x.shape[1]):
            x[i, j] = x[i + 1, j]


@bw.op("bwsharded::outer_sum")
def outer_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Sum of the elements of x and of as many of y, however long that is."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


@bw.op("bwsharded::weighted")
def weighted(xs: list[torch.Tensor], weights: list[float], extra: torch.Tensor | None = None) -> torch.Tensor:
    """Weighted sum of two vectors, and perhaps a third."""
    out = torch.empty_like(xs[0])
    for i in range(xs[0].shape[0]):
        s = weights[0] * xs[0][i] + weights[1] * xs[1][i]
        if extra is not None:
            s += extra[i]
        out[i] = s
    return out


@bw.op("bwsharded::added")
def added(x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor:
    """Sum of two vectors, one of which is passed by keyword."""
    assert x.shape[0] == y.shape[0], "lengths differ"
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + y[i]
    return out


@bw.op("bwsharded::repeated")
def repeated(x: torch.Tensor, n: int) -> torch.Tensor:
    """Each element n times."""
    out = x.new_empty((x.shape[0], n))
    for i in range(x.shape[0]):
        for j in range(n):
            out[i, j] = x[i]
    return out


@bw.op("bwsharded::noise")
def noise(x: torch.Tensor) -> torch.Tensor:
    """A vector with noise added."""
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] + bw.rand()
    return out


@bw.op("bwsharded::centred")
def centred(x: torch.Tensor) -> torch.Tensor:
    """A vector less its mean, which torch computes: the host part needs Python."""
    middle = x.mean()
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] - middle[()]
    return out


@dataclass(frozen=True)
class Call:
    """An operator, a maker of its arguments, where each tensor is placed (`R`, `S0`, ...), and what comes out.

    `results` are the placements of what is returned (None: whatever torch chooses), `gradients` those of the arguments'
    gradients (None: none are asked for). `quiet` says that no machine may talk to another, `refused` is a part of the
    error's text.
    """

    operator: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    placements: str
    results: str | None = None
    gradients: str | None = None
    quiet: bool = True
    refused: str = ""
    named: tuple[tuple[str, Any], ...] = ()


def _matrix(m: int, n: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.randn(m, n),)


def _two(*shapes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    return lambda: tuple(torch.randn(shape) for shape in shapes)


def _timex() -> tuple[Any, ...]:
    return torch.randn(5, 7), torch.randn(3, 5, 7), 0.1


CALLS = {
    "timex over the batch": Call(timex, _timex, "R S0", "S0", "P S0"),
    "timex over the channels": Call(timex, _timex, "S0 S1", "S1", "S0 S1"),
    "timex over the channels of one": Call(timex, _timex, "R S1", "S1"),
    "timex over time": Call(timex, _timex, "R S2", None, "", quiet=False),
    "product over what is summed": Call(product, _two((4, 6), (6, 5)), "S1 S0", "P", "S1 S0"),
    "product over rows": Call(product, _two((4, 6), (6, 5)), "S0 R", "S0", "S0 P"),
    "product over columns": Call(product, _two((4, 6), (6, 5)), "R S1", "S1", "P S1"),
    "product of nothing on one": Call(product, _two((4, 1), (1, 5)), "S1 S0", "P", "S1 S0"),
    "softmax over rows": Call(softmax, _matrix(5, 4), "S0", "S0", "S0"),
    "softmax along rows": Call(softmax, _matrix(5, 4), "S1", quiet=False),
    "softmax of one row": Call(softmax, _matrix(1, 4), "S0", "S0", "S0"),
    "stencil along": Call(stencil, _matrix(6, 4), "S0", None, "", quiet=False),
    "stencil across": Call(stencil, _matrix(6, 4), "S1", "S1", "S1"),
    "mean of what is shared out": Call(mean, _matrix(6, 4), "S0", quiet=False),
    "mean of the rest": Call(mean, _matrix(6, 4), "S1", "S0", "S1"),
    "sums of two kinds": Call(sums, _matrix(5, 4), "S0", "P S0", "S0"),
    "sums of the other kinds": Call(sums, _matrix(5, 4), "S1", "S0 P", "S1"),
    "sum from a number": Call(sum_from, lambda: (torch.randn(4, 6), 2.0), "S1", quiet=False),
    "sum in place": Call(add_into, _two((5, 4), (5, 4)), "S0 S0", ""),
    "sum in place of what is elsewhere": Call(add_into, _two((5, 4), (5, 4)), "S0 S1", "", quiet=False),
    "shift along": Call(shift_, _matrix(5, 4), "S0", refused="redistribute it first"),
    "shift across": Call(shift_, _matrix(5, 4), "S1", ""),
    "vectors of unequal lengths": Call(outer_sum, _two((5,), (9,)), "S0 S0", quiet=False),
    "vectors of equal lengths": Call(outer_sum, _two((5,), (5,)), "S0 S0", "S0"),
    "a list": Call(weighted, lambda: ([torch.randn(5), torch.randn(5)], [0.5, 2.0]), "S0 S0", "S0"),
    "an optional tensor": Call(weighted, lambda: ([torch.ones(5)] * 2, [1.0, 2.0], torch.ones(5)), "S0 S0 S0", "S0"),
    "repeated twice": Call(repeated, lambda: (torch.randn(5), 2), "S0", "S0"),
    "repeated three times": Call(repeated, lambda: (torch.randn(5), 3), "S0", "S0"),
    "noise without a key": Call(noise, lambda: (torch.zeros(5),), "S0", refused="key="),
    "noise": Call(noise, lambda: (torch.zeros(5),), "S0", quiet=False, named=(("key", 3),)),
    "a host part in Python": Call(centred, lambda: (torch.randn(5),), "S0", quiet=False),
}
"""Every call by name."""


def _by_keyword(machines: Any) -> None:
    """Pass tensors by keyword, which torch does not move: the others follow, whatever was called before."""
    for place in ("S0", "R", "S0"):
        x, y = torch.randn(2, 5, device=machines.device_type)
        found: Any = added(_distributed(x, machines, "S0"), y=_distributed(y, machines, place))
        assert _word(found.placements[0]) == place
        torch.testing.assert_close(found.full_tensor(), x + y)


def _defined_anew(machines: Any) -> None:
    """Exchange an operator for one that is shared out otherwise; a number may decide what the shape is."""

    def copied(x: torch.Tensor, by: float) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * by
        return out

    def made_longer(x: torch.Tensor, by: float) -> torch.Tensor:
        out = x.new_zeros((int(x.shape[0] * by),))
        for i in range(x.shape[0]):
            out[i] = x[i]
        return out

    x = torch.randn(4, device=machines.device_type)
    for function, place, sizes in ((copied, "S0", (4, 4)), (made_longer, "R", (4, 8))):
        operator = bw.op("bwsharded::changing")(function)
        for by, size in zip((1.0, 2.0), sizes, strict=True):
            found: Any = operator(_distributed(x, machines, "S0"), by)
            assert (_word(found.placements[0]), found.shape[0]) == (place, size)
            torch.testing.assert_close(found.full_tensor(), operator(x, by))


def _twice_shared(machines: Any) -> None:
    """Share out over both axes of a mesh."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    kind: Any = Shard
    mesh = init_device_mesh(machines.device_type, (machines.size(), 1))
    w, k, by = _moved(_timex(), lambda tensor: tensor.to(machines.device_type))
    w_there = distribute_tensor(w, mesh, [Replicate(), kind(0)])
    found = timex(w_there, distribute_tensor(k, mesh, [kind(0), kind(1)]), by)
    assert [*map(_word, found.placements)] == ["S0", "S1"]
    torch.testing.assert_close(found.full_tensor(), timex(w, k, by))


def _into_buffers(machines: Any) -> None:
    """Take results in buffers that are placed otherwise."""
    for place in ("S0", "S1", "R"):
        x = torch.randn(4, 6, device=machines.device_type)
        out = _distributed(torch.empty_like(x), machines, place)
        assert softmax(_distributed(x, machines, "S0"), out=out) is out
        assert _word(out.placements[0]) == place
        torch.testing.assert_close(out.full_tensor(), softmax(x))
    with pytest.raises(RuntimeError, match="expected `out` to have shape"):
        softmax(_distributed(torch.randn(4, 6), machines, "S0"), out=_distributed(torch.randn(2, 6), machines, "R"))


def _first_in_inference_mode(machines: Any) -> None:
    """Call an operator for the first time in inference mode, where no autograd key is passed, with a list."""

    @bw.op("bwsharded::doubled")
    def doubled(xs: list[torch.Tensor]) -> torch.Tensor:
        out = torch.empty_like(xs[0])
        for i in range(xs[0].shape[0]):
            out[i] = 2 * xs[0][i]
        return out

    x = torch.randn(5, device=machines.device_type)
    with torch.inference_mode():
        found: Any = doubled([_distributed(x, machines, "S0")])
        torch.testing.assert_close(found.full_tensor(), 2 * x)


def _noise_with_a_gradient(machines: Any) -> None:
    """Draw with a key on all machines, but not without."""
    x = _distributed(torch.zeros(5, device=machines.device_type), machines, "S0").requires_grad_()
    found: Any = noise(x, key=3)
    torch.testing.assert_close(found.full_tensor(), noise(torch.zeros(5, device=machines.device_type), key=3))
    (gradient,) = GRADIENTS(found.sum(), x)
    torch.testing.assert_close(gradient.full_tensor(), torch.ones(5, device=machines.device_type))
    with pytest.raises(NotImplementedError, match="key="):
        noise(x)


def _gradients_of_gradients(machines: Any) -> None:
    """Differentiate twice."""

    def second(x: Any) -> Any:
        (first,) = GRADIENTS(softmax(x).square().sum(), x, create_graph=True)
        return GRADIENTS(first.square().sum(), x)[0]

    x = torch.randn(4, 3, device=machines.device_type, requires_grad=True)
    found = second(_distributed(x.detach(), machines, "S0").requires_grad_())
    assert _word(found.placements[0]) == "S0"
    torch.testing.assert_close(found.full_tensor(), second(x))


def _compiled(machines: Any) -> None:
    """Run forward and backward in a compiled graph."""
    compiler: Any = COMPILE(backend="aot_eager", fullgraph=True)

    @compiler
    def function(x: Any) -> Any:
        return 2 * softmax(x)

    x = torch.randn(4, 3, device=machines.device_type, requires_grad=True)
    there = _distributed(x.detach(), machines, "S0").requires_grad_()
    found: Any = function(there)
    torch.testing.assert_close(found.full_tensor(), 2 * softmax(x))
    (wanted,) = GRADIENTS((2 * softmax(x)).square().sum(), x)
    (gradient,) = GRADIENTS(found.square().sum(), there)
    torch.testing.assert_close(gradient.full_tensor(), wanted)


def _the_guide(machines: Any) -> None:
    """Run the program of the guide's page on these machines."""
    page = ROOT / "docs" / "guide" / "sharding.md"
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(program(page).replace('"cpu"', f'"{machines.device_type}"'), {})
    (expected,) = outputs(page)
    assert expected in said.getvalue(), said.getvalue()


SCENES: dict[str, Callable[[Any], None]] = {
    "tensors by keyword": _by_keyword,
    "defined anew": _defined_anew,
    "both axes of a mesh": _twice_shared,
    "results in buffers": _into_buffers,
    "inference mode first": _first_in_inference_mode,
    "noise with a gradient": _noise_with_a_gradient,
    "gradients of gradients": _gradients_of_gradients,
    "compiled": _compiled,
    "the guide": _the_guide,
}
"""What is not a single call, by name."""
NAMES = (*CALLS, *SCENES)

SECONDS = 150.0
"""The longest that all calls may take, on a busy machine: ones that are out of step wait for each other for ever."""


def run_all(store: str, machines: int, device: str) -> dict[str, str]:
    """Run all calls on several machines, which are processes here; return what was wrong on any of them."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_run, args=(rank, machines, store, device)) for rank in range(machines)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(SECONDS + 10)
        process.kill()
    ends = [process.exitcode for process in processes]
    assert not any(ends), f"the processes ended with {ends}: what they wrote to the error stream says why"
    found: list[dict[str, str]] = [json.loads(Path(f"{store}.{rank}").read_text()) for rank in range(machines)]
    return {name: next((each[name] for each in found if each[name]), "") for name in NAMES}


def _run(rank: int, machines: int, store: str, device: str) -> None:
    assert "torch.distributed.tensor" not in sys.modules, "an import of brickwork loads DTensor"
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    if device == "cuda":
        torch.cuda.set_device(rank)
    backend = "nccl" if device == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=machines)
    mesh = init_device_mesh(device, (machines,))
    with quick_code(), config.override(cache_dir=f"{store}.cache"):
        found = {name: _problem(partial(_check, call, mesh), call.refused) for name, call in CALLS.items()}
        found |= {name: _problem(partial(scene, mesh)) for name, scene in SCENES.items()}
    Path(f"{store}.{rank}").write_text(json.dumps(found))
    torch.distributed.destroy_process_group()
    faulthandler.cancel_dump_traceback_later()


def _problem(check: Callable[[], None], refused: str = "") -> str:
    """Return what is wrong on this machine; empty if nothing is. All machines draw the same numbers."""
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.default_generators[torch.cuda.current_device()].manual_seed(0)
    try:
        check()
    except Exception as error:  # it is told in the process that asks
        text = "".join(traceback.format_exception(error))
        return "" if refused and refused in text else text
    return "it was not refused" if refused else ""


def _in_turn(run: Callable[[], Any]) -> Any:
    """Run something on the first machine and then on the others, which so find what it has compiled."""
    later = torch.distributed.get_rank() > 0
    try:
        if later:
            BARRIER()
        return run()
    finally:
        if not later:
            BARRIER()


def _check(call: Call, mesh: Any) -> None:
    from torch.distributed.tensor.debug import CommDebugMode

    whole = _moved(call.arguments(), lambda tensor: tensor.to(mesh.device_type))
    places = iter(call.placements.split())
    shared = _moved(whole, lambda tensor: _distributed(tensor, mesh, next(places)))
    expected = _in_turn(lambda: call.operator(*whole, **dict(call.named)))
    with CommDebugMode() as talk:
        found = call.operator(*shared, **dict(call.named))
    assert not call.quiet or talk.get_total_counts() == 0, f"{talk.get_total_counts()} collectives"
    results = _results(found)
    if call.results is not None:
        said = [_word(result.placements[0]) for result in results]
        assert said == call.results.split(), f"results are placed as {said}"
    wanted = [*_tensors(whole), *_results(expected)]
    for one, other in zip([*_tensors(shared), *results], wanted, strict=True):
        torch.testing.assert_close(one.full_tensor(), other)
    if call.gradients is not None:
        _check_gradients(call, whole, shared)


def _check_gradients(call: Call, whole: Sequence[Any], shared: Sequence[Any]) -> None:
    """Compare the gradients with those of one machine."""
    from torch.distributed.tensor import Replicate, distribute_tensor
    from torch.distributed.tensor.debug import CommDebugMode

    for tensor in (*_tensors(whole), *_tensors(shared)):
        tensor.requires_grad_()
    expected, found = _results(call.operator(*whole)), _results(call.operator(*shared))
    towards = [torch.randn_like(result) for result in expected]
    spread: list[Any] = []
    for gradient, result in zip(towards, found, strict=True):
        place = Replicate() if result.placements[0].is_partial() else result.placements[0]
        spread.append(distribute_tensor(gradient, result.device_mesh, [place]))
    _in_turn(lambda: torch.autograd.backward(expected, towards))
    with CommDebugMode() as talk:
        torch.autograd.backward(found, spread)
    assert not call.quiet or talk.get_total_counts() == 0, f"{talk.get_total_counts()} collectives for gradients"
    said = [_word(tensor.grad.placements[0]) for tensor in _tensors(shared)]
    assert not call.gradients or said == call.gradients.split(), f"gradients are placed as {said}"
    for one, other in zip(_tensors(shared), _tensors(whole), strict=True):
        torch.testing.assert_close(one.grad.full_tensor(), other.grad)


def _distributed(tensor: torch.Tensor, mesh: Any, place: str) -> Any:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    kind: Any = Shard
    return distribute_tensor(tensor.clone(), mesh, [Replicate() if place == "R" else kind(int(place[1:]))])


def _word(placement: Any) -> str:
    return "R" if placement.is_replicate() else "P" if placement.is_partial() else f"S{placement.dim}"


def _results(returned: Any) -> list[Any]:
    if returned is None:
        return []
    return [*cast("tuple[Any, ...]", returned)] if isinstance(returned, tuple) else [returned]


def _tensors(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, list):
            found += _tensors(cast("list[Any]", value))
    return found


def _moved(values: Sequence[Any], move: Callable[[torch.Tensor], Any]) -> tuple[Any, ...]:
    """Return arguments with their tensors, items of lists too, changed."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in cast("list[Any]", value)]
        return move(value) if isinstance(value, torch.Tensor) else value

    return tuple(map(change, values))
