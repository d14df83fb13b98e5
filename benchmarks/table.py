"""`python -m benchmarks.table`: write the measured tables from the records, between two marks in each document.

README.md has the headlines, docs/guide/measured.md everything, docs/guide/programs.md the loop
programs. Records of a GPU have tables and marks of their own, and pictures in
docs/images/; so have the registers that kernels take (`registers.py`).
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import loop_programs, registers
from benchmarks.cuda import programs
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
DOCUMENTS = (("README.md", HEADLINES, HEADLINES_OF_GPUS), ("docs/guide/measured.md", None, None))
CPU, GPU, REGISTERS = "measured", "measured on a GPU", "registers"


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


def write_programs() -> None:
    """Write the tables of the loop programs, each with a line on its machine."""
    on_cpus: list[str] = []
    for path in sorted(RESULTS.glob("*/programs.json")):
        found = load(path)
        said = f"{found.machine.get('processor', '')}, {found.threads} threads; {versions(found)}; {found.date}."
        on_cpus.append(f"{loop_programs.markdown(found.cases)}\n\n{said}")
    on_gpus: list[str] = []
    for path in sorted(RESULTS.glob("*/cuda-programs.json")):
        runs = load_all(path)
        said = f"{runs[0].machine['gpu']} beside {programs.PROCESSORS} cores of its machine; {runs[0].date}."
        on_gpus.append(f"{programs.markdown([case for run in runs for case in run.cases])}\n\n{said}")
    write("docs/guide/programs.md", "programs", "\n\n".join(on_cpus))
    write("docs/guide/programs.md", "programs on a GPU", "\n\n".join(on_gpus))


def versions(record: Record) -> str:
    """Return the versions of what was measured with."""
    return ", ".join(f"{name} {version}" for name, version in record.versions.items() if name != "brickwork")


def write(document: str, mark: str, text: str) -> None:
    """Put a text between the two marks of a document."""
    path = ROOT / document
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


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


def main() -> None:
    """Rewrite the tables, of every kind of machine that there are records of."""
    folder = RESULTS / "cpu-2core"
    records = [load(folder / f"{name}.json") for name in ORDER if (folder / f"{name}.json").exists()]
    runs = [load_all(path) for path in sorted(RESULTS.glob("*/cuda.json"))]
    if not records and not runs:
        raise SystemExit("there are no records: run `make bench` first")
    for document, titles, titles_of_gpus in DOCUMENTS:
        if records:
            write(document, CPU, table(records, titles))
        if runs:
            write(document, GPU, "\n\n".join(table_of_gpu(run, titles_of_gpus) for run in runs))
    if registers.PATH.exists():
        write("docs/guide/measured.md", REGISTERS, registers.markdown(registers.load()))
    write_programs()
    for run in runs:
        draw(run)


if __name__ == "__main__":
    main()
