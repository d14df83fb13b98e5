"""`python -m benchmarks.table`: write the measured table into README.md from the records, between its two marks."""

from __future__ import annotations

from pathlib import Path

from brickwork.bench.record import Record, load
from brickwork.bench.report import markdown

ROOT = Path(__file__).parents[1]
ORDER = ("brick_pad", "timex", "sin", "sample_normal", "launch", "first_call")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def table(records: list[Record]) -> str:
    """Return the table with a line on the machine and the versions."""
    first = records[0]
    machine = (
        f"{first.machine.get('processor', '')}, {first.machine['cores']} cores, {first.machine.get('vectors', '')}"
    )
    versions = ", ".join(f"{name} {version}" for name, version in first.versions.items() if name != "brickwork")
    said = (
        f"{machine}; {first.threads} threads; {versions}; {first.date}. Medians; contenders take turns in one process."
    )
    return f"{markdown(records)}\n\n{said}"


def main() -> None:
    """Rewrite the README's table."""
    folder = ROOT / "benchmarks" / "results" / "cpu-2core"
    records = [load(folder / f"{name}.json") for name in ORDER if (folder / f"{name}.json").exists()]
    if not records:
        raise SystemExit("there are no records: run `make bench` first")
    path = ROOT / "README.md"
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{table(records)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
