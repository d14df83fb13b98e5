"""`python -m benchmarks.table`: write the measured tables from the records, between two marks in each document.

README.md has the headlines, docs/guide/measured.md everything.
"""

from __future__ import annotations

from pathlib import Path

from brickwork.bench.record import Record, load
from brickwork.bench.report import markdown

ROOT = Path(__file__).parents[1]
ORDER = ("brick_pad", "timex", "sin", "sample_normal", "launch", "first_call")
HEADLINES = frozenset(
    {
        "brick_pad 4144x8224, into a given image",
        "timex B=8 C=64 T=512",
        "sin 16M, into a given tensor",
        "sample_normal d=2500 n=1024",
        "a call with 16 floats, decorated name",
        "a call with 16 floats, 14 tensors, decorated name",
        "first call of timex, cold cache",
        "first call of timex, warm cache",
    }
)
DOCUMENTS = (("README.md", HEADLINES), ("docs/guide/measured.md", None))
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def table(records: list[Record], titles: frozenset[str] | None) -> str:
    """Return the table with a line on the machine and the versions."""
    first = records[0]
    machine = (
        f"{first.machine.get('processor', '')}, {first.machine['cores']} cores, {first.machine.get('vectors', '')}"
    )
    versions = ", ".join(f"{name} {version}" for name, version in first.versions.items() if name != "brickwork")
    said = (
        f"{machine}; {first.threads} threads; {versions}; {first.date}. Medians; contenders take turns in one process."
    )
    return f"{markdown(records, titles)}\n\n{said}"


def main() -> None:
    """Rewrite the tables."""
    folder = ROOT / "benchmarks" / "results" / "cpu-2core"
    records = [load(folder / f"{name}.json") for name in ORDER if (folder / f"{name}.json").exists()]
    if not records:
        raise SystemExit("there are no records: run `make bench` first")
    for name, titles in DOCUMENTS:
        path = ROOT / name
        before, rest = path.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        path.write_text(f"{before}{BEGIN}\n{table(records, titles)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
