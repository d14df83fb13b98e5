"""`python -m benchmarks.published.worker`: one contender, asked over its standard input, a line of JSON for a request.

A contender has a process of its own, which can be ended when it takes too long, and in which another version of
brickwork can be imported. Requests are `make` (build the inputs of a case and call it once), `keep` (write what it
computed into a file) and `time` (take some samples); a reply has `error` where something failed. Inputs are the same in
all processes, since their generators are.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch

import brickwork
from benchmarks.published import PUBLISHED
from benchmarks.published.operator import Published, source
from benchmarks.published.peers import PEERS, Kernels, listed

Reply = dict[str, Any]
FORWARD, GRADIENT = "forward", "gradient"
_CYCLES_PER_SECOND = 2e9
_LEAST_CYCLES = 400_000
_LONGEST_WAIT = 0.02
"""Seconds that the device is kept busy at most while the host gets ahead of it."""
_SAMPLE = 0.001
"""Seconds that a sample should last at least; short calls are repeated."""
_MOST_CALLS = 20
"""Calls of a sample: few enough for the host to be done with them in `_LONGEST_WAIT`."""
_TURN = 0.08
"""Seconds that a turn may take, three samples at least unless they are long."""
_LONG = 0.5
_HOST_CALLS = 10


class Contender:
    """Ours or the published kernel, on the inputs of one case."""

    def __init__(self, each: Published, size: Any, direction: str, kernels: Kernels | None, device: str) -> None:
        """Make the inputs and what is called; the forward of a gradient runs here."""
        self.device = device
        peer = PEERS[each.name]
        arguments = each.arguments(size, device)
        if kernels is None:
            self.call, self.results = _ours(each, arguments, direction, peer.upstream)
        else:
            self.call, self.results = _published(each, arguments, direction, kernels)
        self.calls, self.cycles = 1, _LEAST_CYCLES
        self.seconds = 0.0

    def first(self) -> float:
        """Call it once and return the seconds that took, with what is compiled for it."""
        settle(self.device)
        start = time.perf_counter()
        self.last = self.call()
        settle(self.device)
        return time.perf_counter() - start

    def warm(self) -> None:
        """Call it until its times are known well enough to say how many calls make a sample."""
        self.seconds = self._timed()
        if self.seconds > _LONG:
            return
        self.call()
        start = time.perf_counter()
        self.call()
        host = time.perf_counter() - start
        settle(self.device)
        self.seconds = self._timed()
        self.calls = max(1, min(_MOST_CALLS, round(_SAMPLE / max(self.seconds, 1e-7))))
        wait = min(1.5 * host * self.calls, _LONGEST_WAIT)
        self.cycles = max(_LEAST_CYCLES, int(wait * _CYCLES_PER_SECOND))

    def _timed(self) -> float:
        start = time.perf_counter()
        self.call()
        settle(self.device)
        return time.perf_counter() - start

    def turn(self) -> list[float]:
        """Return the device's seconds of a call, in some samples; the level-two cache is warm."""
        if not self.seconds:
            self.warm()
        samples = 1 if self.seconds > _LONG else max(3, min(15, int(_TURN / (self.seconds * self.calls))))
        if self.device == "cpu":
            return [self._timed() for _ in range(samples)]
        cuda = cast("Any", torch.cuda)
        if self.seconds <= _LONG:
            self.call()
        pairs: list[tuple[Any, Any]] = []
        for _ in range(samples):
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            cuda._sleep(self.cycles)  # noqa: SLF001  # torch has no public name for it
            start.record()
            for _ in range(self.calls):
                self.call()
            end.record()
            pairs.append((start, end))
        settle(self.device)
        return [start.elapsed_time(end) / 1e3 / self.calls for start, end in pairs]

    def host(self) -> float:
        """Return the host's seconds of a call, with the device at rest before."""
        if self.seconds > _LONG:
            return 0.0
        settle(self.device)
        self.call()
        start = time.perf_counter()
        for _ in range(_HOST_CALLS):
            self.call()
        taken = (time.perf_counter() - start) / _HOST_CALLS
        settle(self.device)
        return taken


Made = tuple[Callable[[], Any], Callable[[Any], tuple[Any, ...]]]


def settle(device: str) -> None:
    """Wait for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def weights(results: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return gradients of results, the same for the same shapes."""
    return [
        source(result.device).normal(*result.shape).to(result.dtype) if result.ndim else torch.ones_like(result)
        for result in results
    ]


def _ours(each: Published, arguments: tuple[Any, ...], direction: str, upstream: tuple[int, ...]) -> Made:
    if direction == FORWARD:

        def forward() -> Any:
            with torch.no_grad():
                return each.op(*arguments)

        return forward, listed
    asked = [key in each.gradient for key in inspect.signature(each.op).parameters]
    made = [
        value.detach().requires_grad_() if wanted else value for value, wanted in zip(arguments, asked, strict=True)
    ]
    by_name = dict(zip(inspect.signature(each.op).parameters, made, strict=True))
    leaves = [by_name[key] for key in each.gradient]
    found = listed(each.op(*made))
    outputs = [found[place] for place in upstream]
    given = weights(outputs)
    return lambda: torch.autograd.grad(outputs, leaves, given, retain_graph=True), listed


def _published(each: Published, arguments: tuple[Any, ...], direction: str, kernels: Kernels) -> Made:
    peer = PEERS[each.name]
    prepared = tuple(
        value.contiguous() if isinstance(value, torch.Tensor) else value for value in peer.prepared(arguments)
    )
    forward = kernels.find(each.name, peer.forward or each.name)
    if direction == FORWARD:
        return lambda: forward(*prepared), lambda raw: peer.results(listed(raw))
    backward = kernels.find(each.name, peer.backward or f"{each.name}_backward")
    raw = listed(forward(*prepared))
    results = peer.results(raw)
    given = weights([cast("torch.Tensor", results[place]) for place in peer.upstream])
    saved = peer.saved(prepared, raw, tuple(given))
    return lambda: backward(*saved), lambda found: peer.gradients(listed(found), prepared)


def directions_of(name: str) -> tuple[str, ...]:
    """Return what there is to measure of an operator."""
    each = next(each for each in PUBLISHED if each.name == name)
    return (FORWARD, GRADIENT) if each.gradient else (FORWARD,)


class Answers:
    """What a process answers."""

    def __init__(self, kernels: Kernels | None, device: str) -> None:
        """Answer for the published kernels, or for ours if none are given."""
        self._kernels, self._device = kernels, device
        self._operators = {each.name: each for each in PUBLISHED}
        self._made: Contender | None = None

    def answer(self, request: Reply) -> Reply:
        """Return the reply to a request; what fails in it is said."""
        try:
            return getattr(self, f"_{request['do']}")(request)
        except Exception as error:  # noqa: BLE001  # a case that fails does not end the others
            self._made = None
            return {"error": f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]}

    def _hello(self, _: Reply) -> Reply:
        if self._device == "cuda":
            torch.cuda.init()
            torch.zeros(1, device="cuda")
        return {"brickwork": str(Path(brickwork.__file__).parent)}

    def _make(self, request: Reply) -> Reply:
        self._made = None
        if self._device == "cuda":
            torch.cuda.empty_cache()
        each = self._operators[request["name"]]
        made = Contender(each, request["size"], request["direction"], self._kernels, self._device)
        first = made.first()
        self._made = made
        return {"first": first}

    def _keep(self, request: Reply) -> Reply:
        made = self._contender()
        found = [each.detach().cpu() if each is not None else None for each in made.results(made.last)]
        torch.save(found, request["file"])
        return {}

    def _time(self, request: Reply) -> Reply:
        made = self._contender()
        made.last = None
        seconds = made.turn()
        return {"seconds": seconds, "calls": made.calls, "host": made.host() if request["host"] else 0.0}

    def _contender(self) -> Contender:
        assert self._made is not None, "a case is made before it is asked of"
        return self._made


def warm(names: list[str], device: str) -> None:
    """Compile our operators and their gradients by calling them on tiny inputs."""
    answers = Answers(None, device)
    for name in names:
        for direction in directions_of(name):
            answers.answer({"do": "make", "name": name, "size": "tiny", "direction": direction})


def main() -> None:
    """Answer requests until there are none."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--built", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--warm", nargs="*")
    options = parser.parse_args()
    if options.warm is not None:
        warm(options.warm, options.device)
        return
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what kernels print goes beside the errors
    answers = Answers(Kernels(options.built) if options.built else None, options.device)
    for line in sys.stdin:
        print(json.dumps(answers.answer(json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main()
