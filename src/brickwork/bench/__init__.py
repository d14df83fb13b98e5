"""Measuring operators and their peers: timing, records, tables and plots. What is measured is in `benchmarks/`."""

from brickwork.bench.benchmark_decorator import Benchmark, benchmark
from brickwork.bench.compare_runs import Change, Changes
from brickwork.bench.comparison import compare
from brickwork.bench.plan import Options, Protocol
from brickwork.bench.question import Question, Run, Suite
from brickwork.bench.roofline import peaks
from brickwork.bench.table import Table
from brickwork.bench.tabled import tabled
from brickwork.bench.timers import Timing

__all__ = [
    "Benchmark",
    "Change",
    "Changes",
    "Options",
    "Protocol",
    "Question",
    "Run",
    "Suite",
    "Table",
    "Timing",
    "benchmark",
    "compare",
    "peaks",
    "tabled",
]
