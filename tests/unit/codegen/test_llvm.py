"""LLVM's door: mistakes are errors of brickwork, and objects ask for nothing that a process lacks."""

import pytest

from brickwork.codegen.llvm import assembly, compile_module, optimised_ir
from brickwork.diagnostics.errors import InternalError
from brickwork.target.cpu import host_target

GOOD = "define i64 @twice(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"


def test_a_module_becomes_an_object():
    target = host_target()
    assert compile_module(GOOD, target)[:4] in {b"\x7fELF", b"\xcf\xfa\xed\xfe"}
    assert "shl i64" in optimised_ir(GOOD, target)
    assert "twice" in assembly(GOOD, target)


@pytest.mark.parametrize("text", ["define nonsense", GOOD.replace("%x, %x", "%x, %z"), GOOD.replace("ret i64 %y", "")])
def test_wrong_text_is_an_internal_error(text):
    with pytest.raises(InternalError, match="refused"):
        compile_module(text, host_target())


@pytest.mark.parametrize("size", [16, 32, 64])
def test_narrower_vectors_can_be_asked_for(size):
    widest = host_target().vector_bytes
    assert host_target(size).vector_bytes == min(size, widest)
    assert host_target(size).identity != host_target().identity or size >= widest
