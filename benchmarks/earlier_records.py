"""Records as they were before the questions: lists of cases, from which the tables are made until all is measured anew.

Nothing writes such records any more. When `make bench` and `make bench-gpu` have been run, this file goes.
"""

from __future__ import annotations

from pathlib import Path

from brickwork.bench import plots
from brickwork.bench.record import Case, Record, load, load_all
from brickwork.bench.report import markdown, markdown_device

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"
ORDER = ("brick_pad", "timex", "gradients", "sin", "sample_normal", "launch", "first_call", "matrix_product")
HEADLINES = frozenset(
    {
        "brick_pad 4144x8224, into a given image",
        "timex B=8 C=64 T=512",
        "timex backward, both gradients, B=8 C=64 T=512",
        "sin 16M, into a given tensor",
        "sample_normal d=2500 n=1024",
        "a call with 16 floats, decorated name",
        "a call with 16 floats, 14 tensors, decorated name",
        "first call of timex, cold cache",
        "first call of timex, warm cache",
    }
)
HEADLINES_OF_GPUS = frozenset(
    {
        "brick_pad 4144x8224",
        "sin 4096x12672",
        "sample_normal d=5000 n=1024",
        "sample_normal d=100000 n=1024",
        "sample_normal d=100000 n=1024, fast_math",
        "timex B=32 C=768 T=768",
        "timex backward, both gradients, B=32 C=768 T=768",
        "host time of a call with 1024 floats",
        "transpose 8192x8192",
        "softmax of 65536x1024",
        "first call of timex, cold cache",
        "first call of timex, warm cache",
    }
)


def on_the_cpu(*, headlines: bool) -> str:
    """Return the CPU's table, or nothing where there are no such records."""
    folder = RESULTS / "cpu-2core"
    records = [load(path) for name in ORDER if (path := folder / f"{name}.json").exists()]
    return table(records, HEADLINES if headlines else None) if records else ""


def on_gpus(*, headlines: bool) -> str:
    """Return the GPUs' tables, and draw their pictures; nothing where there are no such records."""
    runs = [load_all(path) for path in sorted(RESULTS.glob("*/cuda.json"))]
    for run in runs:
        draw(run)
    return "\n\n".join(table_of_gpu(run, HEADLINES_OF_GPUS if headlines else None) for run in runs)


def table(records: list[Record], titles: frozenset[str] | None) -> str:
    """Return the table with a line on the machine and the versions."""
    first = records[0]
    machine = (
        f"{first.machine.get('processor', '')}, {first.machine['cores']} cores, {first.machine.get('vectors', '')}"
    )
    said = f"{machine}; {first.threads} threads; {versions(first)}; {first.date}."
    return f"{markdown(records, titles)}\n\n{said} Medians; contenders take turns in one process."


def table_of_gpu(records: list[Record], titles: frozenset[str] | None) -> str:
    """Return the table of one GPU, with a line on it and the versions, and what was noted of the cases."""
    first = records[0]
    said = f"{first.machine['gpu']} ({first.machine['compute']}); {versions(first)}; {first.date}."
    lines = [
        markdown_device(records, titles),
        "",
        f"{said} Medians; the level-two cache is emptied before each sample.",
    ]
    if titles is None:
        lines += ["", "![The sine's rate over the size, for each contender](../images/sin-gpu.png)", ""]
        cases = [case for result in records for case in result.cases]
        lines += [f"- {case.title}: {name}: {note}." for case in cases for name, note in case.notes.items()]
    return "\n".join(lines)


def versions(record: Record) -> str:
    """Return the versions of what was measured with."""
    return ", ".join(f"{name} {version}" for name, version in record.versions.items() if name != "brickwork")


def draw(records: list[Record]) -> None:
    """Draw the sine's rates over its sizes, and the times of the other headlines."""
    cases = {case.title: case for result in records for case in result.cases}
    sines = [case for title, case in cases.items() if title.startswith("sin 4096x")]
    if sines:
        widths = [int(case.title.removeprefix("sin 4096x")) for case in sines]
        plots.rates(sines, widths, IMAGES / "sin-gpu.png", f"sin of 4096 x N floats, {records[0].machine['gpu']}")
    bars: list[Case] = [case for title, case in cases.items() if title in HEADLINES_OF_GPUS and len(case.timings) > 1]
    if bars:
        plots.timings(bars, IMAGES / "timings-gpu.png")
