"""What the documents show is true: programs run and print that, links lead somewhere, settings exist."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from brickwork.config import settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROGRAMS = [path for path in DOCUMENTS if "```python\n" in path.read_text(encoding="utf-8")]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n+```\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
"""A block of a program, and the plain block that may follow it at once: what it prints."""
PEER = re.compile(r'^```python title="(\w+)"\n(.*?)^```\n', re.DOTALL | re.MULTILINE)
"""A program for another system, which runs where that is installed."""
PEERS = [(path, *found) for path in DOCUMENTS for found in PEER.findall(path.read_text(encoding="utf-8"))]


def named(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PROGRAMS, ids=named)
def test_programs_run(path, tmp_path, capsys):
    """The blocks of one document are one program, `model.py`; a plain block after one of them is what is printed."""
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    program = tmp_path / "model.py"
    program.write_text("\n".join(block for block, _ in blocks), encoding="utf-8")
    exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), {"__name__": path.stem.replace("-", "_")})
    printed = capsys.readouterr().out.replace(f"{tmp_path}/", "")
    for _, expected in blocks:
        assert expected in printed


@pytest.mark.parametrize(("path", "system", "program"), PEERS, ids=[each[1] for each in PEERS])
def test_programs_of_others_run(path, system, program, tmp_path):
    """In a process of their own, as each brings a compiler."""
    if importlib.util.find_spec(system.lower()) is None:
        pytest.skip(f"{system} is not installed")
    if "cuda" in program and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    file = tmp_path / f"{system}_program.py"
    file.write_text(program, encoding="utf-8")
    subprocess.run([sys.executable, str(file)], check=True)


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path):
    prose = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", prose)
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


def test_settings_are_those_of_the_source():
    text = (ROOT / "docs" / "guide" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(.*?)` \| (.*) \|$", text, re.MULTILINE)
    expected = [(name, each.variable, repr(each.default), each.explanation) for name, each in settings().items()]
    assert rows == expected
