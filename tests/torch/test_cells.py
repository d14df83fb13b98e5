"""Cells of notebooks: what one session has compiled serves the next, which numbers cells in its own way."""

import linecache
import sys
from types import SimpleNamespace

import pytest
import torch

import brickwork as bw
from brickwork.runtime import cache

CELL = """
import torch
import brickwork as bw


def shifted(x, i):
    return x[i + 1]


@bw.op("test_cells::shift")
def shift(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = shifted(x, i)
    return out
"""


def session(monkeypatch, process, number, text=CELL):
    """Run the cell as IPython does in a kernel: in a file that is named for its process and for the cell's text."""
    file = f"/tmp/ipykernel_{process}/{abs(hash(text))}.py"
    for other in [name for name in linecache.cache if "ipykernel_" in name]:
        monkeypatch.delitem(linecache.cache, other)
    monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(keepends=True), file))
    compiler = SimpleNamespace(format_code_name=lambda name: ("Cell", f"In[{number}]") if name == file else None)
    shell = SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    cache.forget()
    space = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), space)
    return space["shift"]


def test_the_next_session_finds_what_was_compiled_and_calls_the_cell_by_its_number(monkeypatch):
    x = torch.arange(3.0)
    for process, number in ((100, 3), (2000, 15)):
        operator = session(monkeypatch, process, number)
        with pytest.raises(IndexError, match=rf"\(shift, Cell In\[{number}\], line 7 in shifted, called at Cell In"):
            operator(x)
        assert [each.cached for each in operator.stats().specialisations] == [number == 15]
        assert f"for i at Cell In[{number}], line 13" in operator.explain(x)
        assert "ipykernel" not in operator.explain(x)


def test_a_cell_with_another_text_is_compiled(monkeypatch):
    x = torch.ones(3)
    for process, text in ((100, CELL.replace("i + 1", "i")), (2000, CELL.replace("i + 1", "i - 1"))):
        operator = session(monkeypatch, process, 3, text)
        assert torch.equal(operator(x), x)
        assert [each.cached for each in operator.stats().specialisations] == [False]
    assert isinstance(operator, bw.Op)
