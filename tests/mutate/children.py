"""Work in forked children of a warm process: each answers through a pipe, or with nothing if it dies."""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux's `prctl`: children of a child end with it."""
_LIBRARY = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Task:
    """What a child does, how long it may take by the clock, and what becomes of its answer (None if it died)."""

    work: Callable[[], Any]
    seconds: float
    done: Callable[[Any], None]


@dataclass(slots=True)
class _Child:
    task: Task
    process: int
    pipe: int
    end: float
    data: bytes = b""


def run(tasks: Iterable[Task], jobs: int) -> None:
    """Run tasks in children, so many at a time, and call `done` in this process as they end."""
    waiting: Iterator[Task] = iter(tasks)
    running: dict[int, _Child] = {}
    more = True
    try:
        while more or running:
            while more and len(running) < jobs:
                task = next(waiting, None)
                if task is None:
                    more = False
                else:
                    child = _start(task)
                    running[child.pipe] = child
            ready, _, _ = select.select(list(running), [], [], 1.0)
            for pipe in ready:
                child = running[pipe]
                part = os.read(pipe, 1 << 16)
                child.data += part
                if not part:
                    _end(running.pop(pipe))
            for child in list(running.values()):
                if time.monotonic() > child.end:
                    child.data = b""
                    _end(running.pop(child.pipe))
    finally:
        for child in running.values():
            _stop(child)


def _start(task: Task) -> _Child:
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return _Child(task, process, reading, time.monotonic() + task.seconds)
    status = 1
    try:
        os.setsid()
        if hasattr(_LIBRARY, "prctl"):
            _LIBRARY.prctl(DIE_WITH_PARENT, signal.SIGKILL)
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        answer = pickle.dumps(task.work())
        while answer:
            answer = answer[os.write(writing, answer) :]
        status = 0
    finally:
        os._exit(status)


def _stop(child: _Child) -> None:
    os.close(child.pipe)
    try:
        os.killpg(child.process, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(child.process, 0)


def _end(child: _Child) -> None:
    _stop(child)
    try:
        answer = pickle.loads(child.data) if child.data else None
    except (pickle.UnpicklingError, EOFError):
        answer = None
    child.task.done(answer)
