"""Pictures on one sheet, each with a line of text above it: what the examples and their pages show."""

# The annotations of matplotlib leave keyword arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

COLOURS = ("#d9b8a8", "#b3472e", "#4c78a8")


def sheet(
    pictures: Mapping[str, Tensor], path: Path, columns: int = 3, curves: Mapping[str, Sequence[float]] | None = None
) -> Path:
    """Write pictures of any sizes, (h, w) or (h, w, 3) from 0 to 1, as PNG or JPEG; `curves`, losses, stand last."""
    count = len(pictures) + bool(curves)
    rows = -(-count // columns)
    figure = Figure(figsize=(2.8 * columns, 2.3 * rows), layout="constrained")
    panels: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for panel in panels:
        panel.set_axis_off()
    for panel, (title, picture) in zip(panels, pictures.items(), strict=False):
        panel.imshow(picture.cpu().clamp(0, 1).numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        panel.set_title(title, fontsize=9, loc="left")
    if curves:
        _draw(panels[len(pictures)], curves)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    return path


def _draw(panel: Axes, curves: Mapping[str, Sequence[float]]) -> None:
    """Draw losses over updates, the first ones thick, since others may lie on them."""
    panel.set_axis_on()
    for number, (name, values) in enumerate(curves.items()):
        panel.plot(values, label=name, linewidth=max(5 - 2 * number, 1), color=COLOURS[number % len(COLOURS)])
    panel.set_yscale("log")
    panel.set_title("loss over updates", fontsize=9, loc="left")
    panel.tick_params(labelsize=7)
    panel.legend(frameon=False, fontsize=7)
    panel.spines[["top", "right"]].set_visible(False)
