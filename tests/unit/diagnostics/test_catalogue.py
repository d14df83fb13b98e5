"""The catalogue of codes is well formed, and is the whole of what the source uses."""

import re
from pathlib import Path

from brickwork.diagnostics.catalogue import CATALOGUE, title

SOURCE = Path(__file__).parents[3] / "src" / "brickwork"


def used() -> set[str]:
    files = (path for path in SOURCE.rglob("*.py") if path.name != "catalogue.py")
    return {code for path in files for code in re.findall(r'"(BW\d{3})"', path.read_text(encoding="utf-8"))}


def test_codes_are_well_formed():
    assert all(re.fullmatch(r"BW\d{3}", code) for code in CATALOGUE)
    assert all(title(code) and not title(code).endswith(".") for code in CATALOGUE)
    assert len(set(CATALOGUE.values())) == len(CATALOGUE)


def test_every_code_in_use_is_in_the_catalogue():
    assert used() <= set(CATALOGUE)
