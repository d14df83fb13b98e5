"""The catalogue of codes is well formed, and is the whole of what the source uses."""

import re
from pathlib import Path

from brickwork.diagnostics.catalogue import CATALOGUE

SOURCE = Path(__file__).parents[3] / "src" / "brickwork"


def used() -> set[str]:
    files = (path for path in SOURCE.rglob("*.py") if path.name != "catalogue.py")
    return {code for path in files for code in re.findall(r'"(BW\d{3})"', path.read_text(encoding="utf-8"))}


def test_codes_are_well_formed() -> None:
    assert all(re.fullmatch(r"BW\d{3}", code) for code in CATALOGUE)
    assert all(rule.title and not rule.title.endswith(".") for rule in CATALOGUE.values())
    assert all(rule.explanation.endswith(".") for rule in CATALOGUE.values())
    assert len({rule.title for rule in CATALOGUE.values()}) == len(CATALOGUE)


def test_the_catalogue_is_what_the_source_uses() -> None:
    assert used() == set(CATALOGUE)
