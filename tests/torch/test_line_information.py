"""The lines of Python that code for GPUs was made of, in PTX, for profilers."""

import re
from pathlib import Path

import torch

import brickwork as bw
from support.lines import root

HERE = Path(__file__)


def lines(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(i):
            s += root(x[j])  # a helper in another file
        out[i] = s
    for i in range(x.shape[0]):
        out[index[i]] += x[i]  # an update
    return out


def line_of(path, text):
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def ptx(line_info):
    operator = bw.op("bwlines::lines")(lines)
    with bw.config.override(line_info=line_info):
        return operator.inspect("ptx", torch.ones(8), torch.zeros(8, dtype=torch.int64), device="sm_90")


def noted(text):
    """Each line that code was made of, with its file."""
    found = set()
    for kernel in re.split(r"^// kernel ", text, flags=re.MULTILINE):
        files = dict(re.findall(r'\.file\s+(\d+) "([^"]+)"', kernel))
        found |= {(files[number], int(line)) for number, line in re.findall(r"\.loc\s+(\d+) (\d+) ", kernel)}
    return found


def test_instructions_have_the_lines_of_their_statements():
    found = noted(ptx(1))
    helper = Path(root.__code__.co_filename)
    for path, text in ((HERE, "out[i] = s"), (HERE, "# an update"), (helper, "return math.sqrt(value)")):
        assert (str(path), line_of(path, text)) in found


def test_code_is_the_same_without_lines():
    def instructions(text):
        lines = [line.split("//")[0].rstrip() for line in text.splitlines()]
        return [line for line in lines if line.startswith("\t") and not re.match(r"\t\.(loc|file|section)", line)]

    assert noted(ptx(0)) == set()
    assert instructions(ptx(1)) == instructions(ptx(0))
