"""Sheets of text: how they appear in a terminal, in Markdown and in a notebook. What stands in them is not known."""

from __future__ import annotations

import html as markup
import io
import textwrap
from typing import TYPE_CHECKING, Literal, TypeAlias

from brickwork.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console, ConsoleOptions, Group, RenderableType
    from rich.table import Table as RichTable

Manner: TypeAlias = Literal["plain", "good", "bad", "faint"]
_RICH: dict[Manner, str] = {"plain": "", "good": "bold green", "bad": "red", "faint": "dim"}
_HTML: dict[Manner, str] = {
    "plain": "",
    "good": "font-weight:600;color:#2e7d4f",
    "bad": "color:#b3472e",
    "faint": "opacity:.6",
}
_WIDTH = 140
"""Characters of a line where there is no terminal."""
_BETWEEN = 3
"""Characters between columns."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text and the manner in which it is shown."""

    text: str
    manner: Manner = "plain"


Rows: TypeAlias = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table of text with what is said around it; `details` is a second, smaller table below the first."""

    title: str
    headings: tuple[str, ...]
    rows: Rows
    subtitle: str = ""
    details: tuple[tuple[str, ...], Rows] | None = None
    remarks: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """How it was measured: what is said of what."""
    warnings: tuple[str, ...] = ()

    @property
    def footer(self) -> tuple[str, ...]:
        """What stands below the tables, line by line."""
        return (*self.remarks, *(f"{key}: {value}" for key, value in self.facts))


def digits(value: float) -> str:
    """Return a number with three digits, without exponents where that is short."""
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:#.3g}"


def named(x: float | str) -> str:
    """Return a value of x as it is shown."""
    return f"{x:g}" if isinstance(x, float) else str(x)


def amount(count: float) -> str:
    """Return a number of bytes with a fitting unit.

    >>> amount(512), amount(4 << 20)
    ('512 B', '4.00 MiB')
    """
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{digits(count / scale)} {unit}"
    return f"{count:.0f} B"


# ---------------------------------------------------------------- terminal


def renderable(sheet: Sheet) -> Group:
    """Return a sheet as rich prints it."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(sheet.title, style="bold")]
    if sheet.subtitle:
        parts.append(Text(sheet.subtitle, style="dim"))
    parts += [Text(f"WARNING: {warning}", style="bold yellow") for warning in sheet.warnings]
    parts.append(_Grid(sheet.headings, sheet.rows))
    if sheet.details is not None:
        parts.append(_Grid(*sheet.details))
    parts += [Text(remark, style="dim") for remark in sheet.footer]
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Rows and columns; what has no room beside the others stands below, with the first column again."""

    headings: tuple[str, ...]
    rows: Rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RichTable]:
        """Yield tables that fit a width, as rich asks for them."""
        widths = [self._width(column, (heading,)) for column, heading in enumerate(self.headings)]
        if sum(widths) + _BETWEEN * len(widths) > options.max_width:
            widths = [self._width(column, heading.split()) for column, heading in enumerate(self.headings)]
        shown, left = [0], options.max_width - widths[0]
        for column in range(1, len(widths)):
            if widths[column] + _BETWEEN > left and len(shown) > 1:
                yield self._table(widths, shown)
                shown, left = [0], options.max_width - widths[0]
            shown.append(column)
            left -= widths[column] + _BETWEEN
        yield self._table(widths, shown)

    def _width(self, column: int, heading: Iterable[str]) -> int:
        """Return how wide a column is: as the longest line in it or part of its heading."""
        lines = (line for row in self.rows for line in row[column].text.split("\n"))
        return max(map(len, (*lines, *heading, " ")))

    def _table(self, widths: list[int], columns: list[int]) -> RichTable:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for column in columns:
            heading = textwrap.fill(self.headings[column], widths[column])
            table.add_column(Text(heading), justify="right" if column else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*(Text(row[column].text, style=_RICH[row[column].manner]) for column in columns))
        return table


def show(sheet: Sheet) -> None:
    """Print a sheet in the terminal."""
    console().print(renderable(sheet))


def console() -> Console:
    """Return what prints in the terminal, or in wide lines where there is none."""
    from rich.console import Console

    found = Console()
    return found if found.is_terminal else Console(width=_WIDTH)


def plain(sheet: Sheet) -> str:
    """Return a sheet as it is printed, without colours; as Markdown where rich is not installed."""
    try:
        from rich.console import Console
    except ImportError:
        return markdown(sheet)
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None, force_terminal=False).print(renderable(sheet))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


# ---------------------------------------------------------------- Markdown and HTML


def markdown(sheet: Sheet) -> str:
    """Return a sheet as Markdown."""
    lines = [f"**{sheet.title}**", ""]
    lines += [sheet.subtitle, ""] if sheet.subtitle else []
    lines += [f"> **Warning:** {warning}\n" for warning in sheet.warnings]
    lines += _pipes(sheet.headings, sheet.rows)
    if sheet.details is not None:
        lines += ["", *_pipes(*sheet.details)]
    lines += ["", *(f"- {remark}" for remark in sheet.footer)] if sheet.footer else []
    return "\n".join(lines) + "\n"


def _pipes(headings: tuple[str, ...], rows: Rows) -> list[str]:
    marks = {"good": "**{}**", "bad": "{}", "plain": "{}", "faint": "{}"}
    lines = [f"| {' | '.join(map(_escaped, headings))} |", "|---|" + "---:|" * (len(headings) - 1)]
    lines += [f"| {' | '.join(marks[cell.manner].format(_escaped(cell.text)) for cell in row)} |" for row in rows]
    return lines


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def html(sheet: Sheet, picture: str = "") -> str:
    """Return a sheet as HTML that stands for itself, in a notebook or a page; `picture` is markup beside the table."""
    warnings = "".join(f"<p style='{_HTML['bad']}'>Warning: {markup.escape(text)}</p>" for text in sheet.warnings)
    details = _html_grid(*sheet.details) if sheet.details is not None else ""
    remarks = "".join(f"<li>{markup.escape(text)}</li>" for text in sheet.footer)
    subtitle = f"<p style='opacity:.7;margin:.2em 0'>{markup.escape(sheet.subtitle)}</p>" if sheet.subtitle else ""
    return (
        "<div style='font-family:system-ui,sans-serif'>"
        f"<p style='font-weight:600;margin:.4em 0 0'>{markup.escape(sheet.title)}</p>{subtitle}{warnings}"
        f"<div style='display:flex;flex-wrap:wrap;gap:2em;align-items:flex-start'>"
        f"<div>{_html_grid(sheet.headings, sheet.rows)}{details}</div>{picture}</div>"
        f"<ul style='opacity:.7;font-size:smaller;padding-left:1.2em'>{remarks}</ul></div>"
    )


def _html_grid(headings: tuple[str, ...], rows: Rows) -> str:
    def row(tag: str, cells: tuple[Cell, ...]) -> str:
        return "".join(
            f"<{tag} style='text-align:{'right' if number else 'left'};padding:.2em .8em;"
            f"{'white-space:nowrap;' if tag == 'td' else ''}{_HTML[cell.manner]}'>"
            f"{markup.escape(cell.text)}</{tag}>"
            for number, cell in enumerate(cells)
        )

    head = row("th", tuple(Cell(heading) for heading in headings))
    body = "".join(f"<tr>{row('td', cells)}</tr>" for cells in rows)
    return (
        "<table style='border-collapse:collapse;font-variant-numeric:tabular-nums'>"
        f"<thead style='border-bottom:1px solid'><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
