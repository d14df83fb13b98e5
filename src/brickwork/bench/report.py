"""Records as tables: for the terminal, and in Markdown for the README."""

from __future__ import annotations

from collections.abc import Container

from brickwork.bench.record import Case, Record


def duration(seconds: float) -> str:
    """Return a time with three digits and a fitting unit.

    >>> duration(0.0123), duration(4.5e-6)
    ('12.3 ms', '4.50 us')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            value = seconds / scale
            digits = 0 if value >= 100 else 1 if value >= 10 else 2
            return f"{value:.{digits}f} {unit}"
    raise AssertionError


def ratio(value: float) -> str:
    """Return a ratio with as many digits as it deserves."""
    return f"{value:.2f} x" if value < 10 else f"{value:.1f} x" if value < 100 else f"{value:.0f} x"


def rate(case: Case, name: str) -> str:
    """Return how fast a contender moves the bytes that the case is about, or nothing."""
    return f"{case.moved / case.timings[name].median / 1e9:.0f} GB/s" if case.moved else ""


def markdown(records: list[Record], titles: Container[str] | None = None) -> str:
    """Return the cases of records as one Markdown table, a row for each contender of ours; only `titles` if given."""
    lines = ["| | brickwork | others, and how many times as long they take |", "|---|---|---|"]
    for case in (case for result in records for case in result.cases):
        ours = {name: timing for name, timing in case.timings.items() if name.startswith("brickwork")}
        rest = {name: timing for name, timing in case.timings.items() if name not in ours}
        for name, timing in ours.items():
            title = f"{case.title}{name.removeprefix('brickwork')}"
            if titles is not None and title not in titles:
                continue
            others = [f"{other} {ratio(found.median / timing.median)}" for other, found in rest.items()]
            lines.append(f"| {title} | {duration(timing.median)} | {', '.join(others)} |")
    return "\n".join(lines)


def markdown_device(records: list[Record], titles: Container[str] | None = None) -> str:
    """Return the cases of records of a GPU as one Markdown table, a row each.

    If `titles` are given, only those, and without what was to reach.
    """
    reached = titles is None
    columns = ["", "brickwork", *(["to reach"] if reached else []), "others, and how many times as long they take"]
    lines = [f"| {' | '.join(columns)} |".replace("|  |", "| |"), "|" + "---|" * len(columns)]
    for case in (case for result in records for case in result.cases):
        ours = case.timings.get("brickwork")
        if ours is None or (titles is not None and case.title not in titles):
            continue
        rest = {name: timing for name, timing in case.timings.items() if name != "brickwork"}
        others = [f"{name} {ratio(timing.median / ours.median)}" for name, timing in rest.items()]
        found = ", ".join(text for text in (duration(ours.median), rate(case, "brickwork")) if text)
        reach = duration(case.at_most) + (" (missed)" if ours.median > case.at_most else "") if case.at_most else ""
        cells = [case.title, found, *([reach] if reached else []), ", ".join(others)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
