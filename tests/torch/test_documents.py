"""What the documents show is true: their programs run, their links lead somewhere, their settings exist."""

import re
from pathlib import Path

import pytest

from brickwork.config import settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROGRAMS = [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")]


def named(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PROGRAMS, ids=named)
def test_programs_run(path, tmp_path):
    """The blocks of one document are one program."""
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    program = tmp_path / f"{path.stem}_program.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), {"__name__": program.stem})


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


def test_settings_are_those_of_the_source():
    text = (ROOT / "docs" / "guide" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(.*?)` \| (.*) \|$", text, re.MULTILINE)
    expected = [(name, each.variable, repr(each.default), each.explanation) for name, each in settings().items()]
    assert rows == expected
