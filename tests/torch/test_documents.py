"""What the documents show is true: programs run and print that, links lead somewhere, settings and commands exist."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from brickwork.config import settings
from support.documents import DOCUMENTS, ROOT, blocks, outputs, program, prose
from support.gpu import GPU, script

MADE = ROOT / "docs" / "errors"
"""Pages of programs that are wrong: `tests/errors` runs them, and makes the pages of what they say."""
ELSEWHERE = {"docs/guide/sharding.md": "on two machines, by test_sharding.py"}
LANGUAGES = {
    "": "messages, explanations, diagrams and commands; what is printed is compared, and commands are looked up",
    "sh": "commands, which are looked up",
    "text": "what a language model wrote",
    "python": "run here",
    "cpp": "built and run where a GPU is, by test_the_extension_in_cpp_is_built_and_runs",
}


def named(path):
    return str(path.relative_to(ROOT))


PROGRAMS = [path for path in DOCUMENTS if program(path) and named(path) not in ELSEWHERE]
PEERS = [(path, block) for path in DOCUMENTS for block in blocks(path) if block.title]


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_block_is_run_or_says_what_it_is(path):
    """Python stands behind a fence that says so, and no language is shown that nothing here runs."""
    for block in blocks(path):
        assert block.language in LANGUAGES
        if MADE not in path.parents:
            assert block.language == "python" or not block.python, f"nothing runs this:\n{block.text}"


@pytest.mark.parametrize("path", PROGRAMS, ids=named)
def test_programs_run(path, tmp_path, capsys):
    """The blocks of one document are one program, `model.py`; a plain block after one of them is what is printed."""
    file = tmp_path / "model.py"
    file.write_text(program(path), encoding="utf-8")
    exec(compile(program(path), str(file), "exec"), {"__name__": path.stem.replace("-", "_")})
    printed = of_any_machine(capsys.readouterr().out.replace(f"{tmp_path}/", ""))
    for expected in outputs(path):
        assert of_any_machine(expected) in printed


def of_any_machine(text):
    """What `explain` prints, without the lanes and chunks that processors differ in."""
    return re.sub(r"(by chunks of|vectorised by) \d+", r"\1 some", text)


@pytest.mark.parametrize(("path", "block"), PEERS, ids=[f"{path.stem}-{block.title}" for path, block in PEERS])
def test_programs_for_other_systems_run(path, block, tmp_path, monkeypatch):
    """In a process of their own, as each brings a compiler; Triton's without a GPU in its interpreter."""
    compile(block.text, f"{path.stem}.py", "exec")
    if importlib.util.find_spec(block.title.lower()) is None:
        pytest.skip(f"{block.title} is not installed")
    text = block.text
    if "cuda" in text and not torch.cuda.is_available():
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        text = text.replace('device="cuda"', 'device="cpu"')
    script(tmp_path, text)


EXTENSION = """
import sys

import torch

torch.ops.load_library(sys.argv[1])
x, index = torch.randn(100, 8, device="cuda"), torch.randint(0, 5, (100,), device="cuda")
expected = torch.zeros(5, 8, device="cuda").index_add(0, index, x)
torch.testing.assert_close(torch.ops.mine.pool(x, index, 5), expected)
"""


@pytest.mark.parametrize("path", [pytest.param(ROOT / "docs" / "coming-from" / "cuda.md", marks=GPU)])
def test_the_extension_in_cpp_is_built_and_runs(path, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    (source,) = [block.text for block in blocks(path) if block.language == "cpp"]
    (tmp_path / "pool.cu").write_text(source, encoding="utf-8")
    headers = [f"-I{folder}" for folder in cpp_extension.include_paths("cuda")]
    libraries = Path(torch.__file__).parent / "lib"
    links = [f"-L{libraries}", "-ltorch", "-ltorch_cpu", "-ltorch_cuda", "-lc10", "-lc10_cuda"]
    flags = ["-std=c++20", "-shared", "-Xcompiler=-fPIC", "-arch=native"]
    made = tmp_path / "pool.so"
    command = ["nvcc", *flags, *headers, str(tmp_path / "pool.cu"), *links, "-o", str(made)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    script(tmp_path, EXTENSION, str(made))


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", prose(path))
    missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("path", [*(ROOT / "docs" / "internals").glob("*.md"), *ROOT.glob("*.md")], ids=named)
def test_files_that_are_named_exist(path):
    files = [f"/{named(file)}" for folder in ("src", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.*")]
    wanted = re.findall(r"`([\w./-]+\.(?:py|ll))`", prose(path))
    assert not [name for name in wanted if not any(file.endswith(f"/{name}") for file in files)]


TARGETS = re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
COMMAND = re.compile(r"(?:python|torchrun [-\w ]*?) -m ((?:brickwork|examples|benchmarks|tests)[\w.]*)([^\n`#]*)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_commands_exist(path):
    """Each module, each option of it, and each target of `make`."""
    text = path.read_text(encoding="utf-8")
    for module, rest in COMMAND.findall(text):
        folder = ROOT / ("src" if module == "brickwork" else ".") / module.replace(".", "/")
        sources = [*folder.rglob("*.py")] or [folder.with_suffix(".py")]
        said = "\n".join(source.read_text(encoding="utf-8") for source in sources)
        for option in re.findall(r"--[a-z][\w-]*", rest):
            assert f'"{option}"' in said, f"{module} has no {option}"
    for target in re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE):
        assert target in TARGETS


def test_phrases_of_explain_are_those_of_the_source():
    text = (ROOT / "docs" / "guide" / "parallelism.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    phrases = [
        part.strip(" .") for cell in cells for phrase in re.findall(r"`(.*?)`", cell) for part in phrase.split("...")
    ]
    modules = (ROOT / "src" / "brickwork" / "transform" / name for name in ("explain.py", "spelling.py"))
    said = "".join(module.read_text(encoding="utf-8") for module in modules)
    said = said.replace("'{reduction.symbol.name}'", "").replace("{names}", "").replace("{item.tensor.name}", "p")
    assert len(phrases) > 20
    assert not [phrase for phrase in phrases if phrase not in said]


def test_settings_are_those_of_the_source():
    text = (ROOT / "docs" / "guide" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(.*?)` \| (.*) \|$", text, re.MULTILINE)
    expected = [(name, each.variable, repr(each.default), each.explanation) for name, each in settings().items()]
    assert rows == expected
