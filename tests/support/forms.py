"""In which sizes and layouts kernels of the suite are run: in the usual one, and in others in turn."""

from __future__ import annotations

from support.kernels import SUITE
from support.pairs import in_turn
from support.tensors import LAYOUTS

SIZES = {"empty": 0, "one": 1, "some": 7}
USUAL = ("some", "plain")
_OTHERS = [("empty", "plain"), ("one", "plain"), *(("some", layout) for layout in LAYOUTS if layout != "plain")]


def forms() -> list[tuple[str, str, str]]:
    """Return names of kernels, of sizes and of layouts; of every two one is of each kernel."""
    pairs = [((name, *USUAL), (name, *other)) for name, other in in_turn(sorted(SUITE), _OTHERS, 1)]
    found = [item for place, pair in enumerate(pairs) for item in (pair if place % 2 else pair[::-1])]
    return [item for item in found if SIZES[item[1]] >= SUITE[item[0]].least]
