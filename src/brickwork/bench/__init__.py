"""Measuring operators and their peers: timing, records, tables and plots. What is measured is in `benchmarks/`."""

from brickwork.bench.benchmark_decorator import Benchmarked, benchmark
from brickwork.bench.compare_runs import Change, Changes
from brickwork.bench.comparison import compare
from brickwork.bench.do_bench import do_bench
from brickwork.bench.perf_report import Benchmark, PerfReport, perf_report
from brickwork.bench.plan import Options, Protocol
from brickwork.bench.question import Question, Run, Suite
from brickwork.bench.roofline import peaks
from brickwork.bench.table import Table
from brickwork.bench.tabled import tabled
from brickwork.bench.timers import Timing

__all__ = [
    "Benchmark",
    "Benchmarked",
    "Change",
    "Changes",
    "Options",
    "PerfReport",
    "Protocol",
    "Question",
    "Run",
    "Suite",
    "Table",
    "Timing",
    "benchmark",
    "compare",
    "do_bench",
    "peaks",
    "perf_report",
    "tabled",
]
