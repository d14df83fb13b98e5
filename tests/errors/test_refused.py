"""Bad programs: the code, the marked text, the sentence and the help that the user sees."""

from __future__ import annotations

import linecache
import textwrap
from typing import Any

import pytest

from brickwork.diagnostics.errors import CompileError
from brickwork.frontend.definition import define
from brickwork.ir.dtypes import INT64, UINT64
from support.lowering import memory, run

HEAD = "import math, torch\nimport brickwork.language.loops as bw\nt = torch.ones(3)\n"


def function_of(body: str, name: str) -> tuple[Any, list[str]]:
    source = HEAD + textwrap.dedent(body).lstrip("\n")
    file = f"<errors:{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, object] = {}
    exec(compile(source, file, "exec"), namespace)
    return namespace["f"], source.splitlines()


def refused(body: str, *arguments: object) -> list[tuple[str, str, str]]:
    function, lines = function_of(body, str(abs(hash(body))))
    attempt = run if arguments else define
    with pytest.raises(CompileError) as caught:
        attempt(function, *arguments)
    found = caught.value.diagnostics
    marked = [lines[item.loc.line - 1][item.loc.column : item.loc.end_column] for item in found]
    return [(item.code, text, item.message) for item, text in zip(found, marked, strict=True)]


SYNTAX = [
    ("with x:\n        pass", "BW002", "`with` is not part of the language"),
    ("try:\n        pass\n    except ValueError:\n        pass", "BW002", "`try` is not part of the language"),
    ("a = {i for i in range(3)}", "BW003", "a comprehension is not part of the language"),
    (
        "(lambda: 1)()",
        "BW003",
        "a `lambda` stands only behind `name =`, once for each name, and where a Python function takes one",
    ),
    ("for i in {1, 2}:\n        pass", "BW008", "a `for` cannot run over `{1, 2}`"),
    ("for i in range(3):\n        enumerate(x)", "BW004", "`enumerate` stands only in the head of a `for`"),
    (
        "a = (i for i in range(3))",
        "BW003",
        "a generator stands only in tuple, list, sum, min, max, any, all and math.prod",
    ),
    ("x[0] = missing", "BW005", "`missing` is not defined"),
    ("x[0] = t[0]", "BW006", "`t` is a captured tensor"),
    ("x[0] = f(x)", "BW004", "`f` calls itself"),
    ("if 0 < 1 in (1, 2):\n        pass", "BW003", "`in` in a chain of comparisons is not part of the language"),
    ("raise OSError", "BW002", "`OSError` cannot be raised in compiled code"),
    ("raise", "BW002", "`raise` names no exception here"),
    ("raise ValueError('a', 'b')", "BW002", "an exception takes one text here"),
    ("for i in range(3):\n        raise ValueError('a', 'b')", "BW002", "an exception takes one text here"),
    ("return x", "BW009", "`x` is an argument and cannot be returned"),
    ("y = x.contiguous()\n    y[0] = 1", "BW010", "`y` is what `.contiguous()` gave, which may or may not be a copy"),
]


@pytest.mark.parametrize(("statement", "code", "message"), SYNTAX)
def test_refused_at_definition(statement: str, code: str, message: str) -> None:
    found = refused(f"def f(x: torch.Tensor):\n    {statement}\n")
    assert (code, message) in [(item[0], item[2]) for item in found]


def test_everything_wrong_is_said_at_once():
    found = refused("""
        def f(x, *y) -> float:
            with x:
                x[0] = t[0]
        """)
    assert [item[0] for item in found] == ["BW007", "BW007", "BW009", "BW002", "BW006"]
    assert found[1][1:] == ("y", "`y` takes any number of arguments")
    assert found[4][1] == "t"


def test_a_refusal_in_a_helper_shows_the_call():
    body = """
        def h(v):
            return {v}

        def f(x: torch.Tensor):
            for i in range(3):
                x[i] = h(x[i])
        """
    function, _ = function_of(body, "helper")
    with pytest.raises(CompileError) as caught:
        define(function)
    (found,) = caught.value.diagnostics
    assert found.message == "a set is not part of the language"
    assert found.loc.function == "h"
    assert found.loc.call_site is not None
    assert found.loc.call_site.function == "f"


def test_parameters_that_are_not_understood():
    found = refused("def f(x: torch.Tensor, d: dict, o: 'torch.Tensor | None'):\n    pass\n")
    assert [item[0] for item in found] == ["BW007"]


LOWERED = [
    ("if x[i] > 0:\n            s = 1\n        x[i] = s", "BW005", "s", "`s` may be read before it is assigned"),
    (
        "for j in range(x.shape[0]):\n            k = j\n        x[i] = k",
        "BW005",
        "k",
        "`k` may be read before it is assigned",
    ),
    ("x[i, 0] = x[i]", "BW102", "x[i, 0]", "`x` has 1 dimension, but 2 indices"),
    ("x[0.5] = 1", "BW103", "0.5", "an index of `x` is a Python float, not an integer"),
    ("x[i] = math.fsum(3.0)", "BW004", "math.fsum(3.0)", "`math.fsum` is not part of the language"),
    ("x[i] = 1 << 0.5", "BW101", "1 << 0.5", "bit operations take integers, not a Python float"),
    ("x[i] = 1 // 0", "BW101", "1 // 0", "the divisor is zero"),
    ("x[i] = x", "BW102", "x[i] = x", "`x` is a tensor here, not an element"),
    ("a, b = 1, 2, 3", "BW101", "a, b = 1, 2, 3", "2 names are assigned, but there are 3 values"),
    ("x[i] = repr(x)", "BW004", "repr(x)", "`repr` cannot be compiled"),
    (
        "for j in range(0.5):\n            pass",
        "BW101",
        "range(0.5)",
        "the bounds of a loop are integers, not a Python float",
    ),
]


@pytest.mark.parametrize(("statement", "code", "marked", "message"), LOWERED)
def test_refused_for_a_signature(statement: str, code: str, marked: str, message: str) -> None:
    body = f"def f(x: torch.Tensor):\n    for i in range(2):\n        {statement}\n"
    assert refused(body, memory([1.0, 2.0])) == [(code, marked, message)]


def test_uint64_beside_signed_integers():
    body = """
        def f(x: torch.Tensor, y: torch.Tensor):
            for i in range(2):
                x[i] = x[i] + y[i]
        """
    ((code, marked, message),) = refused(body, memory([1, 2], UINT64), memory([1, 2], INT64))
    assert (code, marked) == ("BW101", "x[i] + y[i]")
    assert message == "uint64 does not mix with signed integers"


def test_an_unpacked_shape_has_as_many_sizes_as_names():
    body = "def f(x: torch.Tensor):\n    n, m = x.shape\n    for i in range(n):\n        x[i] = int(x[i])\n"
    ((code, _, message),) = refused(body, memory([1.0]))
    assert (code, message) == ("BW101", "2 names are assigned, but there is 1 value")


def test_a_name_for_another_tensor_in_every_later_turn_is_refused():
    body = """
        def f(u: torch.Tensor, v: torch.Tensor):
            for t in range(3):
                u[0] = v[0] + 1
                u = v
        """
    ((code, _, message),) = refused(body, memory([1.0]), memory([2.0]))
    assert (code, message) == ("BW901", "`u` stands for the tensor of `v` from here on, in every later iteration")


def test_calls_without_a_meaning_on_elements_are_refused_at_definition():
    body = """
    def f(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            print(i)
            out[i] = x[i]
        return out
    """
    assert refused(body) == [("BW004", "print(i)", "`print` cannot be compiled")]


def test_arguments_that_grow_are_refused_at_definition():
    body = """
    def f(x: torch.Tensor, found: list[int]) -> None:
        for i in range(x.shape[0]):
            found.append(i)
    """
    assert refused(body) == [("BW011", "found.append(i)", "`found.append`: an argument is not changed")]


@pytest.mark.parametrize(
    ("before", "assignment", "kind"),
    [
        ("x", "s = x[i]", "a tensor with 1 dimension"),
        ("(1.0, 2.0)", "s = x[i]", "a tuple"),
    ],
)
def test_a_number_in_a_loop_for_a_name_of_something_else_is_refused(before: str, assignment: str, kind: str):
    body = f"""
    def f(x: torch.Tensor) -> None:
        s = {before}
        for i in range(x.shape[0]):
            {assignment}
        s
    """
    found = refused(body, memory([1.0]))
    assert ("BW901", assignment, f"`s` is {kind} before the loop, and a number in it") in found


@pytest.mark.parametrize(
    "condition",
    [
        "(n := x[i]) > 1 or (m := n * 2) < 100",
        "1 < x[i] < (m := x[i] * 2)",
        "(1 if x[i] > 1 else (m := x[i] * 2)) > 0",
    ],
)
def test_a_name_assigned_in_a_part_that_may_be_left_out_is_not_assigned(condition: str):
    body = f"""
    def f(x: torch.Tensor) -> None:
        for i in range(x.shape[0]):
            if {condition}:
                x[i] = m
    """
    assert refused(body, memory([1.0])) == [("BW005", "m", "`m` may be read before it is assigned")]


def test_objects_that_are_returned_are_refused_with_what_to_write() -> None:
    text = """
    from dataclasses import dataclass
    @dataclass
    class Pair:
        one: torch.Tensor
        other: torch.Tensor
    def f(x: torch.Tensor):
        y = torch.empty_like(x)
        for i in range(len(x)):
            y[i] = x[i]
        return Pair(y, y)
    """
    function, _ = function_of(text, "f")
    with pytest.raises(CompileError, match="`Pair` is returned, and an operator returns tensors"):
        define(function)
