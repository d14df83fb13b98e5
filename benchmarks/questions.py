"""The questions that brickwork's benchmarks answer, in the order of the command line: `python -m brickwork bench sin`.

A question's module has a function that returns its tables by name, each measured when it is called; `sin.py` is a plain
example. What a run asks for (device, peers, seconds, sizes) is `Run`.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import aten, first_call, gradients, launch, matmul, pad, sample, scaling, sin, streaming, timex
from benchmarks.peers import registry
from brickwork.bench.question import Parts, Question, Run, Suite

__all__ = ["QUESTIONS", "RECORDS", "SUITE", "Parts", "Question", "Run"]

_ALL = (
    Question(
        name="pad",
        asks="How long does it take to fill an image with staggered bricks, and how many kernels does that launch?",
        tables=pad.tables,
    ),
    Question(
        name="timex",
        asks="How fast are a causal depthwise convolution and its gradients, over its length and over the batch?",
        tables=timex.tables,
    ),
    Question(
        name="sample",
        asks="How fast are 1024 samples of each of d normal distributions, independent ones and ones that share a z?",
        tables=sample.tables,
    ),
    Question(
        name="sin",
        asks="How fast is the sine of 4096 x N floats, and torch's own sine before and after it is overridden?",
        tables=sin.tables,
    ),
    Question(
        name="launch",
        asks="What does a call cost the host, over the number of its tensors?",
        tables=launch.tables,
    ),
    Question(
        name="compile",
        asks="How long does the first call take, with a cold cache and with a warm one?",
        tables=first_call.tables,
    ),
    Question(
        name="scaling",
        asks="How does the time grow with the work, and fall with threads and with a second GPU?",
        tables=scaling.tables,
    ),
    Question(
        name="gradients",
        asks="What does a differentiated call cost, and how fast are gradients that are derived from loops?",
        tables=gradients.tables,
    ),
    Question(
        name="matmul",
        asks="How fast is a matrix product of three plain loops, in each of their orders?",
        tables=matmul.tables,
    ),
    Question(
        name="streaming",
        asks="How fast are loops that memory limits, such as a transpose, a softmax and a histogram?",
        tables=streaming.tables,
    ),
    Question(
        name="aten",
        asks="How fast are 63 operators of torch, written as plain loops, beside torch's own kernels?",
        tables=aten.tables,
    ),
)
QUESTIONS = {question.name: question for question in _ALL}
RECORDS = Path(__file__).parent / "results"
SUITE = Suite(questions=QUESTIONS, peers=tuple(registry.SYSTEMS), absent=registry.absent, records=RECORDS)
