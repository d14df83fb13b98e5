"""Modules are compiled in parts, which find one another again; what is cut and how, and the file that they lie in."""

import ctypes
import re
import subprocess

import pytest

from brickwork.codegen import llvm, parts
from brickwork.codegen.archive import members, packed
from brickwork.runtime import loader
from brickwork.target.cpu import host_target

MODULE = """declare double @cos(double)
@scale = private constant i64 3
define internal i64 @helper(i64 %x) {
  %s = load i64, ptr @scale
  %r = mul i64 %x, %s
  ret i64 %r
}
define i64 @first(i64 %x) noinline nounwind "prefer-vector-width"="256" {
  %r = call i64 @helper(i64 %x)
  ret i64 %r
}
define i64 @second(i64 %x) noinline {
  %q = call i64 @first(i64 %x)
  %r = call i64 @helper(i64 %q)
  ret i64 %r
}
define ptr @third() {
  ret ptr @second
}
"""


@pytest.fixture
def cut_up(monkeypatch):
    monkeypatch.setattr(parts, "LEAST", 50)


def test_each_function_is_defined_in_one_part_and_declared_in_the_others(cut_up):
    for most in (2, 3):
        divided = parts.parts(MODULE, most)
        assert len(divided) == most
        for name in ("first", "second", "third"):
            assert sum(f"@{name}(" in text for part in divided for text in re.findall("define.*", part)) == 1
            assert sum(f"@{name}(" in text for part in divided for text in re.findall("declare.*", part)) == most - 1
        assert all("define internal i64 @helper" in part and "@scale = private" in part for part in divided)


def test_short_modules_and_one_processor_have_one_part(cut_up, monkeypatch):
    assert parts.parts(MODULE, 1) == (MODULE,)
    monkeypatch.setattr(parts, "LEAST", 20_000)
    assert parts.parts(MODULE, 8) == (MODULE,)


@pytest.mark.parametrize("processors", [2, 3])
def test_parts_call_one_another(cut_up, monkeypatch, processors):
    monkeypatch.setattr(llvm, "processors", lambda: processors)
    code = llvm.compile_in_parts(MODULE, host_target())
    assert len(members(code)) == processors
    loaded = loader.load(code, {})
    second = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(loaded.address("second"))
    third = ctypes.CFUNCTYPE(ctypes.c_void_p)(loaded.address("third"))
    assert second(5) == 45
    assert third() == loaded.address("second")


def test_archives_are_those_of_ar(tmp_path):
    objects = (b"abc", b"defg", b"")
    assert members(packed(objects)) == objects
    assert packed((b"alone",)) == b"alone"
    assert members(b"alone") == (b"alone",)
    path = tmp_path / "some.a"
    path.write_bytes(packed(objects))
    try:
        told = subprocess.run(["ar", "t", path], check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        pytest.skip("there is no ar")
    assert told.split() == ["0.o", "1.o", "2.o"]


def test_mistakes_in_a_part_are_told(cut_up, monkeypatch):
    monkeypatch.setattr(llvm, "processors", lambda: 2)
    with pytest.raises(llvm.InternalError, match="nonsense"):
        llvm.compile_in_parts(MODULE.replace("ret ptr @second", "ret ptr @nonsense"), host_target())
