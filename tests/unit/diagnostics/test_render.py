"""What a diagnostic looks like: places, carets under wide characters, the chain of calls, help."""

import ast
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from brickwork.diagnostics.diagnostic import Diagnostic, Note
from brickwork.diagnostics.errors import BrickworkError, CompileError, InternalError, RaceError
from brickwork.diagnostics.location import Location
from brickwork.diagnostics.render import cells, render, snippet


def place(path: Path, node: ast.expr | ast.stmt, function: str = "f", call_site: Location | None = None) -> Location:
    return Location(
        file=str(path),
        line=node.lineno,
        column=node.col_offset,
        end_line=node.end_lineno or node.lineno,
        end_column=node.end_col_offset or 0,
        function=function,
        call_site=call_site,
    )


def write(tmp_path: Path, source: str) -> tuple[Path, list[ast.Call]]:
    path = tmp_path / "model.py"
    path.write_text(source, encoding="utf-8")
    return path, [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]


def test_whole_message(tmp_path: Path) -> None:
    path, calls = write(tmp_path, "def f(x):\n    y = 1 + print(x)\n\ndef g(x):\n    f(x)\n")
    inner, outer = sorted(calls, key=lambda call: call.lineno)
    loc = place(path, inner, "f", place(path, outer, "g"))
    diagnostic = Diagnostic(
        code="BW004",
        message="`print` cannot be compiled",
        loc=loc,
        notes=(Note(place(path, outer, "g"), "`f` is compiled inline here"),),
        help="print from the host part",
    )
    assert render(diagnostic).replace(str(path), "model.py").splitlines() == [
        "model.py:2: error BW004: `print` cannot be compiled",
        "     2 |     y = 1 + print(x)",
        "       |             ^^^^^^^^",
        "       in `f`, called at model.py:5 in `g`",
        "model.py:5: `f` is compiled inline here",
        "     5 |     f(x)",
        "       |     ^^^^",
        "help: print from the host part",
    ]


def test_carets_stand_under_wide_characters(tmp_path: Path) -> None:
    path, calls = write(tmp_path, 'x = "日本é" + abs(y)\n')
    source, carets = snippet(place(path, calls[0]))
    assert cells(source[: source.index("abs")]) == carets.index("^")
    assert carets.count("^") == len("abs(y)")


def test_combining_characters_take_no_cell() -> None:
    assert cells("e\u0301") == 1
    assert cells("日") == 2


def test_a_span_of_several_lines_is_marked_in_each(tmp_path: Path) -> None:
    path, calls = write(tmp_path, "def f():\n    y = abs(\n        x + 1,\n\n    ) + 3\n")
    assert snippet(place(path, calls[0])) == [
        "     2 |     y = abs(",
        "       |         ^^^^",
        "     3 |         x + 1,",
        "       |         ^^^^^^",
        "     4 |",
        "     5 |     ) + 3",
        "       |     ^",
    ]


def test_of_a_long_span_the_first_lines_are_shown(tmp_path: Path) -> None:
    path, calls = write(tmp_path, "abs(\n" + "x,\n" * 9 + ")\n")
    lines = snippet(place(path, calls[0]))
    assert lines[-3:] == ["     5 |     x,", "       |     ^^", "       |     ..."]


def test_of_a_statement_with_a_body_the_head_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("for i in x:\n    pass\n    pass\n")
    node = ast.parse(path.read_text()).body[0]
    assert snippet(place(path, node)) == ["     1 |     for i in x:", "       |     ^^^^^^^^^^^"]


def test_an_unreadable_source_leaves_the_place() -> None:
    loc = Location(file="<stdin>", line=3, column=0, end_line=3, end_column=4, function="f")
    assert render(Diagnostic(code="BW001", message="no source", loc=loc)) == "<stdin>:3: error BW001: no source"


def test_tabs_keep_the_carets_in_place(tmp_path: Path) -> None:
    path, calls = write(tmp_path, "if x:\n\ty = 1;\tabs(x)\n")
    source, carets = snippet(place(path, calls[0]))
    assert source.index("abs") == carets.index("^")


def test_errors_keep_their_diagnostics_through_pickling(tmp_path: Path) -> None:
    path, calls = write(tmp_path, "abs(x)\n")
    first = Diagnostic(code="BW004", message="one", loc=place(path, calls[0]))
    second = Diagnostic(code="BW003", message="two", loc=place(path, calls[0]))
    error = pickle.loads(pickle.dumps(RaceError([first, second])))
    assert isinstance(error, CompileError)
    assert error.diagnostics == (first, second)
    assert "one" in str(error)
    assert "two" in str(error)


def test_an_internal_error_apologises_and_names_the_bundle() -> None:
    text = str(InternalError("LLVM refused the module", bundle="/somewhere/crash"))
    assert "sorry" in text
    assert "/somewhere/crash" in text
    assert issubclass(InternalError, BrickworkError)
    assert not issubclass(InternalError, CompileError)


def test_a_cell_of_a_notebook_is_called_what_the_notebook_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls = write(tmp_path, "y = print(1)\n")
    loc = place(path, calls[0])
    cells = {str(path): ("Cell", "In[3]")}
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=cells.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert str(loc) == "Cell In[3], line 1"
    assert str(replace(loc, file="model.py")) == "model.py:1"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert str(loc) == f"{path}:1"
