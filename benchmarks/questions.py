"""The questions that brickwork's benchmarks answer, in the order of the command line: `python -m brickwork bench sin`.

A question's module has a function that returns its tables by name, each measured when it is called; `sin.py` is a plain
example. What a run asks for (device, peers, seconds, sizes) is `Run`.
"""

from __future__ import annotations

from benchmarks import sin
from benchmarks.peers import registry
from brickwork.bench.question import Parts, Question, Run, Suite

__all__ = ["QUESTIONS", "SUITE", "Parts", "Question", "Run"]

_ALL = (
    Question(
        name="sin",
        asks="How fast is the sine of 4096 x N floats, beside copying and beside torch's own?",
        tables=sin.tables,
    ),
)
QUESTIONS = {question.name: question for question in _ALL}
SUITE = Suite(questions=QUESTIONS, peers=tuple(registry.SYSTEMS), absent=registry.absent)
